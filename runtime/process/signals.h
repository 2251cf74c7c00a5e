/* signals.h: SIGTERM, SIGINT and SIGHUP: the first stops in order, the second at once. SIGUSR1: says what the task is at, and ends nothing;
 * so does SIGHUP where there is something to read again. */
#ifndef TFC_RUNTIME_PROCESS_SIGNALS_H
#define TFC_RUNTIME_PROCESS_SIGNALS_H

/* Blocks them in the calling thread and those it makes later: call it first in main. Ignores SIGPIPE. */
void signals_block(void);
/* From now on a thread waits for them: on the first it calls stop(self), on the second it ends the program with 128+n; on SIGUSR1 it
 * calls report(self). */
void signals_watch(void (*stop)(void *self), void (*report)(void *self), void *self);
/* Before signals_watch: SIGHUP calls reload(self) instead. */
void signals_reload_by(void (*reload)(void *self));
/* The signal that came, or 0. */
int signals_caught(void);

#endif
