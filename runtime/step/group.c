/* group.c: kernels that the compiler found to need nothing of each other, side by side on the pool: the threads that one of them has
 * no tiles for work on the next. */
#include <string.h>

#include "runtime/step/pool.h"
#include "runtime/step/task_state.h"

#define GROUP_ARGS 96 /* buffers of all of them */

struct group {
  const struct program_instr *instrs;
  uint32_t count;
  int64_t cost; /* of all kernels */
  void *buffers[GROUP_ARGS];
  struct kernel_fault faults[PROGRAM_GROUP_MAX];
  struct pool_kernel kernels[PROGRAM_GROUP_MAX];
};

static const struct kernel_launch *launch_of(const struct frame *frame, const struct program_instr *instr) {
  return &frame->launches[instr->kernel_at];
}

static int64_t scratch_of(const struct frame *frame, const struct program_instr *instr) {
  return (launch_of(frame, instr)->scratch + 63) / 64 * 64;
}

static int64_t cost_of(const struct frame *frame, const struct program_instr *instrs, uint32_t count) {
  int64_t cost = 0;
  for (uint32_t i = 0; i < count; i++)
    cost += launch_of(frame, &instrs[i])->cost;
  return cost;
}
/* Whether together they are worth the pool's while. Where each instruction is recorded, they run one after the other. */
static bool is_worth_it(const struct frame *frame, const struct program_instr *instrs, uint32_t count, int64_t cost) {
  uint32_t args = 0;
  bool have_shapes = true;
  for (uint32_t i = 0; i < count; i++) {
    args += instrs[i].args.count;
    have_shapes = have_shapes && launch_of(frame, &instrs[i])->cost != KERNEL_NO_SHAPE;
  }
  return have_shapes && cost >= KERNEL_WORTH_NS && args <= GROUP_ARGS && !frame->is_recorded && pool_threads(frame->part->task->pool) > 1 &&
         frame_has_pool(frame);
}

/* Each kernel has buffers, scratch and fault of its own. */
static status bind_group(struct frame *frame, struct group *g) {
  int64_t scratch = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    scratch += scratch_of(frame, &g->instrs[i]);
    if (g->instrs[i].flags & INSTR_MAKES)
      TRY(frame_make_outputs(frame, &g->instrs[i]));
  }
  TRY(frame_reserve_scratch(frame, scratch));
  char *room = frame->scratch;
  void **buffers = g->buffers;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct program_instr *instr = &g->instrs[i];
    const uint32_t *args = program_operands(frame->program, instr->args.first);
    g->kernels[i] = (struct pool_kernel){&frame->part->task->kernels[instr->number],
                                         {buffers, frame->sizes + instr->sizes_at, room, &g->faults[i]},
                                         launch_of(frame, instr)->phases};
    for (uint32_t j = 0; j < instr->args.count; j++)
      *buffers++ = args[j] == PROGRAM_ARG_SCRATCH ? NULL : frame->data[args[j]];
    g->faults[i].code = 0;
    room += scratch_of(frame, instr);
  }
  return OK;
}

static status run_beside(struct frame *frame, struct group *g) {
  atomic_store_explicit(&frame->at, g->instrs, memory_order_relaxed);
  status result = bind_group(frame, g);
  if (result != OK)
    return frame_blame(frame, g->instrs, result);
  pool_run(frame->part->task->pool, g->kernels, g->count, g->cost >= KERNEL_WAKES_NS);
  for (uint32_t i = 0; i < g->count; i++) {
    if (g->faults[i].code)
      return frame_blame(frame, &g->instrs[i], fail_shown((status)g->faults[i].code, g->faults[i].text, g->faults[i].shown));
    frame_release_slots(frame, &g->instrs[i]);
  }
  return OK;
}

status frame_run_group(struct frame *frame, const struct program_instr *first, uint32_t *last) {
  uint32_t count = 1;
  while (first[count - 1].flags & INSTR_BESIDE)
    count++;
  *last += count - 1;
  int64_t cost = cost_of(frame, first, count);
  if (is_worth_it(frame, first, count, cost)) {
    struct group g;
    g.instrs = first;
    g.count = count;
    g.cost = cost;
    return run_beside(frame, &g);
  }
  for (uint32_t i = 0; i < count; i++)
    TRY(frame_run_instr(frame, &first[i]));
  return OK;
}
