/* run_trace.h: the traces of several tasks as one file. */
#ifndef TFC_COMPILER_RUN_TRACE_H
#define TFC_COMPILER_RUN_TRACE_H

#include <stddef.h>

#include "base/status.h"

/* Joins the traces (runtime/step/trace.h) that there are among `parts`, removes them, and writes `path`. DATA_LOSS with the system's
 * words. */
status run_trace_join(const char *path, const char *const *parts, size_t count);

#endif
