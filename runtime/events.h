/* events.h: an event file that TensorBoard reads: records of `Event` messages (tensorflow/core/util/event.proto).
 *
 * Each step of a phase writes one event: its scalar fetches by name, and what the graph's own summary ops made. The number of
 * a step is the fetch `global_step` where there is one, else the count of the entry's steps. One thread.
 */
#ifndef TFC_RUNTIME_EVENTS_H
#define TFC_RUNTIME_EVENTS_H

#include "base/status.h"
#include "base/tensor.h"

struct events;

/* Makes the folder and a file in it, named after the time, the host and the task ("worker_0"). */
status events_create(const char *folder, const char *task, struct events **out);
/* Begins the event of a step. */
void events_begin(struct events *events, int64_t step);
/* A scalar number under its name; a string scalar that holds a Summary message; anything else is left out. */
void events_add(struct events *events, const char *name, const struct tensor *value);
/* Writes the event, if anything was added. DATA_LOSS with the system's words. */
status events_end(struct events *events);
/* Accepts NULL. */
status events_close(struct events *events);

#endif
