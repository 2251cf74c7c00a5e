/* events.h: an event file that TensorBoard reads: records of `Event` messages (tensorflow/core/util/event.proto).
 *
 * Each step of a phase writes one event: its scalar fetches by name, and what the graph's own summary ops made. The number of
 * a step is the fetch `global_step` where there is one, else the count of the entry's steps. One thread.
 */
#ifndef TFC_RUNTIME_DATA_EVENTS_H
#define TFC_RUNTIME_DATA_EVENTS_H

#include <stdbool.h>

#include "base/status.h"
#include "base/tensor.h"

struct events;

/* Makes the folder (and those above it) and a file in it, named after the time, the host and the task ("worker_0"). */
status events_create(const char *folder, const char *task, struct events **out);
/* Begins the event of a step. */
void events_begin(struct events *events, int64_t step);
/* A scalar number under its name; a string scalar that holds a Summary message; anything else is left out. */
void events_add(struct events *events, const char *name, const struct tensor *value);
/* Writes the event, if anything was added. DATA_LOSS with the system's words. */
status events_end(struct events *events);
/* Of what the graph writes itself (host_summary_writer.c): adds a serialised Summary to the event; false when it is none. */
bool events_add_summary(struct events *events, struct string_view bytes);
/* An event with a serialised GraphDef; an event that somebody else made. DATA_LOSS with what is wrong. */
status events_graph(struct events *events, int64_t step, struct string_view graph);
status events_copy(struct events *events, struct string_view event);
/* What was written is in the file. */
status events_flush(struct events *events);
/* Accepts NULL. */
status events_close(struct events *events);

#endif
