/* read_ahead.h: the elements of a cursor, made by a worker before they are asked for, in the cursor's order.
 *
 * An error stands in the place of its element and is given once; the elements after it follow. Threads: one reader at a time. The cursor
 * belongs to the worker from the first element until read_ahead_destroy.
 */
#ifndef TFC_RUNTIME_DATA_READ_AHEAD_H
#define TFC_RUNTIME_DATA_READ_AHEAD_H

#include "runtime/data/dataset.h"

#define READ_AHEAD_AUTO (-1)
#define READ_AHEAD_MAX 1024 /* elements that are kept at most, whatever is asked for */

struct read_ahead;
/* Begins at once. size: how many elements are kept, at least 1; READ_AHEAD_AUTO: as many as turn out to be needed. The cursor stays the
 * caller's. */
status read_ahead_create(struct cursor *cursor, int64_t size, const struct dataset_run *run, struct read_ahead **out);
/* Ends the worker, frees what was made. Accepts NULL. */
void read_ahead_destroy(struct read_ahead *ahead);
/* As cursor_next. CANCELLED: the step that asks was given up (nothing is lost), or the task stops. */
status read_ahead_next(struct read_ahead *ahead, const struct dataset_run *run, struct tensor **out, bool *end);

#endif
