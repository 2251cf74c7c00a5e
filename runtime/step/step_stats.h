/* step_stats.h: what a step did, as TensorFlow's StepStats (step_stats.proto): for each instruction its node, op, inputs, begin, duration,
 * thread, and the sizes of what it gave. Only for steps whose client asks (RunOptions.trace_level). Threads: any.
 */
#ifndef TFC_RUNTIME_STEP_STEP_STATS_H
#define TFC_RUNTIME_STEP_STEP_STATS_H

#include <stdint.h>
#include "base/status.h"
#include "base/tensor.h"
#include "base/wire.h"

struct frame;
struct program_instr;
struct task;
struct step_stats;

#define STEP_STATS_BYTES (16 << 20) /* of one task in one step: what comes later is not kept */

status step_stats_create(const struct task *task, struct step_stats **out);
void step_stats_destroy(struct step_stats *stats); /* accepts NULL */
/* begin, end: trace_now(). */
void step_stats_add(struct step_stats *stats, struct frame *frame, const struct program_instr *instr, uint64_t begin, uint64_t end);
/* The DeviceStepStats of this task, as a scalar string; NULL without memory. */
struct tensor *step_stats_take(struct step_stats *stats);
/* Adds what another task took (NULL: nothing). */
void step_stats_join(struct step_stats *stats, const struct tensor *taken);
/* A StepStats as field 1 of a RunMetadata. */
void step_stats_write(struct step_stats *stats, struct wire_buffer *metadata);

/* The parts of an entry that run on this task as GraphDefs, field 3 of a RunMetadata: nodes are the instructions, edges the values
 * between them. */
void entry_graphs_write(const struct task *task, uint32_t entry, struct wire_buffer *metadata);

#endif
