/* signals.h: SIGTERM and SIGINT: the first stops in order, the second at once. */
#ifndef TFC_RUNTIME_SIGNALS_H
#define TFC_RUNTIME_SIGNALS_H

/* Blocks both in the calling thread and those it makes later: call it first in main. Ignores SIGPIPE. */
void signals_block(void);
/* From now on a thread waits for them: on the first it calls stop(self), on the second it ends the program with 128+n. */
void signals_watch(void (*stop)(void *self), void *self);
/* The signal that came, or 0. */
int signals_caught(void);

#endif
