/* schedule.h: the text of what pass `schedule` has decided, and what must be true of it; part of the table of passes. */
#ifndef TFC_COMPILER_SCHEDULE_H
#define TFC_COMPILER_SCHEDULE_H

#include "ir/flow/flow.h"

/* INTERNAL: a scheduled kernel is no kernel, or has other arguments than the one that it stands for. */
status scheduled_verify(const struct flow *flow);
/* For each kernel of the flow, once: its steps and what they make of it. */
void scheduled_print(const struct flow *flow, struct arena *arena, FILE *out);

#endif
