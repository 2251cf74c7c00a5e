/* crew.h: threads for what has to run beside its caller: parts of steps that others drive. A thread that has finished waits
 * for the next job for a while, so that a step seldom pays for making one. Threads: any. */
#ifndef TFC_RUNTIME_STEP_CREW_H
#define TFC_RUNTIME_STEP_CREW_H

#include "base/status.h"

struct crew;
status crew_create(struct crew **out);
/* Takes no more jobs, and waits for those it has. */
void crew_close(struct crew *crew);
/* Accepts NULL. */
void crew_destroy(struct crew *crew);
/* Runs job(argument) on a thread of its own. RESOURCE_EXHAUSTED when there is none to be had. */
status crew_run(struct crew *crew, void (*job)(void *), void *argument);

#endif
