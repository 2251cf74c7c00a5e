/* tokens.h: workers whose gradients meet in accumulators, and who wait for tokens: when one of them is missing. */
#ifndef TFC_RUNTIME_STEP_TOKENS_H
#define TFC_RUNTIME_STEP_TOKENS_H

#include <stdint.h>

struct task;

/* A few times a second: rounds go on without a worker that is missing where enough others are left, or with --elastic;
 * else whoever waits ends after the time-out, with DEADLINE_EXCEEDED. Nobody goes on without the chief, which closes
 * the rounds. */
void tokens_tick(struct task *task);
/* A replica has finished its steps. */
void tokens_leave(struct task *task, uint32_t replica);
/* All has been put back to an earlier moment. */
void tokens_reset(struct task *task);

#endif
