/* trace.h: when which instruction ran, as a file for chrome://tracing or Perfetto ("Trace Event Format", JSON).
 *
 * Times are the machine's, so that the traces of its tasks can be put together (compiler/run_trace.h).
 * Without --trace there is no trace, and a step pays one test of a pointer for each instruction. Threads: any.
 */
#ifndef TFC_RUNTIME_STEP_TRACE_H
#define TFC_RUNTIME_STEP_TRACE_H

#include <stdint.h>
#include "base/status.h"

struct trace;

#define TRACE_EVENTS_MAX 1000000 /* about 150 MB of JSON: more than the viewers take */

/* pid and name: the task's number and name. Nothing is written before trace_close. */
status trace_create(const char *path, uint32_t task, const char *name, struct trace **out);
uint64_t trace_now(void); /* nanoseconds */
/* Names are kept by reference. Beyond TRACE_EVENTS_MAX events are counted, not kept. */
void trace_add(struct trace *trace, const char *node, const char *op, uint64_t begin, uint64_t end);
/* Writes the file. Accepts NULL. */
status trace_close(struct trace *trace);

#endif
