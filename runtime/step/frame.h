/* frame.h: the state of one part of an entry while it runs: its slots, its arena, its sizes.
 *
 * Frames are kept by their part and used again: a step whose sizes have been seen finds everything in place. One thread.
 */
#ifndef TFC_RUNTIME_STEP_FRAME_H
#define TFC_RUNTIME_STEP_FRAME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/host/host.h"
#include "runtime/host/inbox.h"
#include "runtime/memory/arena_plan.h"
#include "runtime/program/program.h"
#include "runtime/step/rendezvous.h"

struct partial;
struct record;
struct record_item;
struct rehearsal;
struct step_stats;
struct task;
struct variable;

#define STEP_REPORTS 64 /* tasks of an entry that are told apart when somebody asks who has not reported */

/* A run of an entry as this task sees it. */
struct step {
  struct step *next; /* in the task's list */
  struct task *task;
  uint64_t id;
  uint32_t entry, driver;      /* driver: a task */
  struct tensor *const *feeds; /* NULL but in the driver's own parts */
  struct tensor **fetches;
  atomic_bool cancelled;
  const atomic_bool *gone;  /* of a step run for a client: true when he does not wait any more; or NULL */
  struct partial *partial;  /* where its feeds come from and its fetches go; NULL: feeds and fetches */
  struct step_stats *stats; /* where each instruction is recorded; or NULL */
  bool reports_memory;      /* out of memory: the largest tensors are named */
  /* how often it counts (ledger.h) */
  uint32_t command;
  uint64_t serial;      /* 0: it has no number */
  const uint32_t *also; /* driver: tasks that count it and have no part in it */
  uint32_t also_count;
  bool is_once;                /* `init`, `local_init`: a task runs one of them, once */
  bool is_dry;                 /* it was committed here before: it changes nothing */
  uint32_t era;                /* of the gate, when that was decided (commit.h) */
  struct record *record;       /* of the changes it makes; NULL: it is never repeated */
  atomic_bool sealed;          /* of another driver: it has begun to change something, and runs on whether or not its driver is lost */
  atomic_uint parts_left;      /* here, that have not ended well */
  bool is_background;          /* no run of an entry, but what an iterator does beside such ones (background.h) */
  struct inbox *inboxes;       /* of frames that may wait; under the task's lock */
  bool reported[STEP_REPORTS]; /* driver: per task of the entry: it has; under the task's lock */
  uint32_t waiting;            /* driver: tasks and local parts that have not reported; under the task's lock */
  bool is_launched;            /* driver: all other tasks have been told to begin; under the task's lock */
  status code;                 /* the first failure; under the task's lock */
  char text[2048];
};

/* A part of an entry, ready to run. */
struct part {
  struct task *task;
  const struct program *program;
  const struct program_part *code;
  uint32_t symbol_count, size_count, kernel_count;
  uint32_t arg_max;   /* arguments of an instruction */
  uint32_t rehearsed; /* instructions of its outer block that are rehearsed first (rehearsal.h); 0: none */
  void **constants;   /* per slot: data of CONST slots */
  int64_t *unbound;   /* per symbol: SYMBOL_UNBOUND, with which a function starts */
  uint32_t *holders;  /* slots that may hold a tensor when a step ends */
  uint32_t holder_count;
  pthread_mutex_t lock; /* idle, busy */
  struct frame *idle;
  struct frame *busy; /* those of steps that are running, for who asks what they do */
};

/* What an instruction of a dataflow part waits for. */
struct dataflow_wait {
  struct host_call call; /* first: an inbox item is its wait */
  struct rendezvous_waiter waiter;
  uint32_t instr;      /* in the block */
  uint64_t begin;      /* trace_now(), where the frame is recorded */
  atomic_bool pending; /* others read it, as `at` */
};

struct frame {
  struct frame *next, *previous; /* idle: next only */
  struct part *part;
  struct step *step;
  struct rehearsal *rehearsal; /* or NULL: the part is run once, for good */
  const struct program *program;
  const struct program_slot *slots;
  void **data;          /* per slot: its elements */
  struct tensor **held; /* per slot: the tensor that keeps them, for TENSOR and VARIABLE */
  int64_t *symbols;
  int64_t *sizes;
  struct kernel_launch *launches;
  void **buffers;       /* of the kernel call being made */
  struct tensor *views; /* of the host call being made */
  struct tensor **views_held;
  struct tensor **outputs;
  struct arena_plan *plans; /* for the bindings seen last; the first is in force */
  uint32_t plan_count;
  void *arena;
  uint64_t arena_bytes;
  void *scratch;
  int64_t scratch_bytes;
  struct kernel_fault fault;
  struct tensor **strings; /* string tensors whose elements may still be seen: kept until the step ends */
  uint32_t string_count, string_capacity;
  bool is_part;                             /* of its step: else a function of a host call, whose changes are that call's */
  bool is_inside;                           /* the task's gate (commit.h) */
  bool is_recorded;                         /* each instruction, in the task's trace or the step's statistics */
  _Atomic(const struct program_instr *) at; /* the instruction that runs; NULL: none yet. Others read it under the part's lock */
  struct inbox inbox;
  uint32_t *needs; /* dataflow: per instruction */
  uint32_t *ready;
  struct dataflow_wait *waits;
};

status part_init(struct part *part, struct task *task, const struct program_part *code, uint32_t symbol_count);
void part_deinit(struct part *part);
/* A frame for a step, its slots placed for these symbols. */
status frame_acquire(struct part *part, struct step *step, const int64_t *symbols, struct frame **out);
/* Releases what its slots hold. */
void frame_release(struct frame *frame);

/* The slot now has this tensor (takes the reference). */
void frame_set(struct frame *frame, uint32_t slot, struct tensor *tensor);
/* Gives up what the slot holds. */
void frame_drop(struct frame *frame, uint32_t slot);
status frame_shape(const struct frame *frame, uint32_t slot, struct shape *out);
/* Gives the symbols of the slot's shape their values; those that have one must agree. */
status frame_bind(struct frame *frame, uint32_t slot, const struct shape *shape);
/* A tensor with the slot's value that outlives the step: shared where possible, else a copy. */
status frame_take(struct frame *frame, uint32_t slot, struct tensor **out);
/* A new tensor for a slot, of the size that the symbols give now. */
status frame_make(struct frame *frame, uint32_t slot);
status frame_reserve_scratch(struct frame *frame, int64_t bytes);

/* Runs the part: step.c. */
status frame_run(struct frame *frame);
/* The instruction has ended well, begun at `begin` (trace_now): where the frame is recorded. */
void frame_record(struct frame *frame, const struct program_instr *instr, uint64_t begin);
/* For region.c and dataflow.c. */
status frame_run_block(struct frame *frame, const struct program_block *block);
status frame_run_instr(struct frame *frame, const struct program_instr *instr);
/* The kernel `first` and those that may run beside it; *last (its place in the block) becomes that of the last one. */
status frame_run_group(struct frame *frame, const struct program_instr *first, uint32_t *last);
/* Tensors for those outputs of a kernel that are not in the arena. */
status frame_make_outputs(struct frame *frame, const struct program_instr *instr);
/* Whether it may use the pool: what goes on beside steps does not take the threads from them. */
bool frame_has_pool(const struct frame *frame);
/* Gives up what the instruction was the last to use. */
static inline void frame_release_slots(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *release = program_operands(frame->program, instr->release.first);
  for (uint32_t i = 0; i < instr->release.count; i++)
    frame_drop(frame, release[i]);
}
status frame_run_if(struct frame *frame, const struct program_instr *instr);
status frame_run_while(struct frame *frame, const struct program_instr *instr);
status frame_run_dataflow(struct frame *frame);
/* Runs a part that is a function, in a frame of its own, as long as `step` is not given up: tensors in (kept only during the call),
 * a reference of each tensor out. Any thread; several at once. */
status part_call(struct part *part, struct step *step, struct tensor *const *in, uint32_t in_count, struct tensor **out,
                 uint32_t out_count);
/* Prepares a host call in frame->views; sets outputs afterwards. */
void host_call_init(struct frame *frame, const struct program_instr *instr, struct host_call *call);
status host_call_start(struct frame *frame, struct host_call *call);
status host_call_end(struct frame *frame, struct host_call *call);
status frame_receive(struct frame *frame, const struct program_instr *instr, struct tensor *tensor);

/* What is to be done where an instruction changes something. */
struct change {
  bool applies;            /* make it; else it was made before: */
  bool was_noted;          /* and a host call gave this: */
  struct tensor **outputs; /* the record's */
};
/* Before the change: change.c. CANCELLED: the step was given up, it changes nothing any more; ABORTED: variables were restored. */
status frame_change(struct frame *frame, const struct program_instr *instr, struct change *out);
/* After one that was made. outputs: of a host call. */
status frame_changed(struct frame *frame, const struct program_instr *instr, struct tensor *const *outputs, uint32_t output_count);
/* A host call that was made before: its outputs, again. */
status frame_repeat_call(struct frame *frame, const struct program_instr *instr, const struct change *change);
/* These, for the call's outputs. */
status frame_give_again(struct frame *frame, const struct program_instr *instr, struct tensor *const *outputs);
/* It is going to wait: whoever freezes the gate need not wait for it. */
void frame_pause(struct frame *frame);
/* What its rehearsal has changed on copies is there. ABORTED, as frame_change. */
status frame_take_over(struct frame *frame);
/* The part has ended well: the step is committed when it was the last one. */
status frame_commit(struct frame *frame);
/* A step that has no part here counts all the same. */
status step_commit(struct step *step);
/* Whether the instruction is on the side of its conds that is taken. */
bool frame_guards_hold(const struct frame *frame, const struct program_instr *instr);
/* "MatMul 'dense/MatMul': " in front of the recorded text. */
status frame_blame(const struct frame *frame, const struct program_instr *instr, status code);

#endif
