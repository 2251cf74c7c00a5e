/* memory_report.h: what held memory when there was none left (RunOptions.report_tensor_allocations_upon_oom). */
#ifndef TFC_RUNTIME_STEP_MEMORY_REPORT_H
#define TFC_RUNTIME_STEP_MEMORY_REPORT_H

#include "runtime/step/frame.h"

#define MEMORY_REPORT "; the largest tensors of the step on " /* how the list begins */

/* Puts the frame's largest tensors behind the recorded text. The frame's thread. */
status frame_report_memory(const struct frame *frame, status code);
/* The same when the step had no memory to begin with: by their sizes. */
status part_report_memory(const struct part *part, const int64_t *symbols, status code);

#endif
