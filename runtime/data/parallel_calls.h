/* parallel_calls.h: a function that is called for several elements of a cursor at once. What it gives comes in the elements' order.
 *
 * An error, of the cursor or of a call, stands in the place of its element and is given once; what follows is not affected. Threads: one
 * reader at a time. The cursor belongs to the workers from the first element until parallel_calls_destroy; one of them at a time moves it.
 */
#ifndef TFC_RUNTIME_DATA_PARALLEL_CALLS_H
#define TFC_RUNTIME_DATA_PARALLEL_CALLS_H

#include "runtime/data/dataset.h"

#define PARALLEL_CALLS_MAX 64 /* at once, whatever is asked for */

/* Makes `out` (of the owner's components) of an element of its source, whose references stay the caller's. *skip: nothing comes of it. */
typedef status (*element_call)(const struct dataset *owner, const struct dataset_run *run, struct tensor *const *element,
                               struct tensor **out, bool *skip);

struct parallel_calls;
/* at_once: calls; AUTOTUNE (-1): one for each thread of the pool. A few results more are kept. */
status parallel_calls_create(struct cursor *source, const struct dataset *owner, int64_t at_once, element_call call,
                             const struct dataset_run *run, struct parallel_calls **out);
/* Ends the workers (a call that waits is given up), frees what was made. Accepts NULL. */
void parallel_calls_destroy(struct parallel_calls *calls);
/* As cursor_next. CANCELLED: the step that asks was given up (nothing is lost), or the task stops. */
status parallel_calls_next(struct parallel_calls *calls, const struct dataset_run *run, struct tensor **out, bool *end);

/* num_parallel_calls, an input: INVALID_ARGUMENT unless it is positive or AUTOTUNE. */
status parallel_calls_check(const struct dataset *dataset, uint32_t input);

#endif
