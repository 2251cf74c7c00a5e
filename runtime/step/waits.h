/* waits.h: what the steps of a task wait for, found by looking at them: a step that runs pays nothing for it. */
#ifndef TFC_RUNTIME_STEP_WAITS_H
#define TFC_RUNTIME_STEP_WAITS_H

#include <stdint.h>
#include "runtime/step/stall.h"

struct task;

/* At most `max` waits: values of other tasks, queues and rounds, parts that have not ended; returns how many. Of a queue that nobody
 * has filled (emptied) yet no holder is known. Any thread; takes the locks of the task's steps and resources for a moment. */
uint32_t task_waits(struct task *task, struct stall_wait *out, uint32_t max);

#endif
