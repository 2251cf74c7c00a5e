/* task_note.h: what a checkpoint has beside the variables that TensorFlow knows: which moment of the job it is, the
 * steps that each driver has done, states of random generators, positions of iterators. It travels in the index, where
 * other readers pass over it. */
#ifndef TFC_RUNTIME_CHECKPOINT_TASK_NOTE_H
#define TFC_RUNTIME_CHECKPOINT_TASK_NOTE_H

#include "base/arena.h"
#include "base/wire.h"
#include <stdbool.h>
#include <stdint.h>

struct ledger;
struct task;

struct note_head {
  uint64_t id;      /* of the moment: equal in the files of all holders; 0: of a checkpoint without a note */
  uint32_t holders; /* so many files make the checkpoint */
  int64_t steps;    /* that changed the state here, since the first start */
};

/* The steps that each driver had done; where nothing is said of them *out stays. DATA_LOSS: they cannot be read. */
status task_note_steps(const void *data, size_t size, struct ledger *out);
/* Says these steps, as many rows as it has, in their place. NOT_FOUND: it says nothing of steps. */
status task_note_set_steps(void *data, size_t size, const struct ledger *steps);
/* As the task is now: while no step is amid its updates. */
void task_note_write(struct task *task, const struct note_head *head, struct wire_buffer *out);
/* DATA_LOSS: it is none. */
status task_note_read(const void *data, size_t size, struct note_head *out);
/* is_start: nothing has been run here, not even `init`; lacks_values: some variables have to be initialised. Puts the rest of it back,
 * while no step is amid its updates: what the task does not have any more is passed over. */
status task_note_apply(struct task *task, const void *data, size_t size, bool is_start, bool lacks_values);

/* Of a task that drives steps: the states of its generators and the places of its iterators alone. Empty: it has none. Not
 * while a step of its own runs. */
void task_own_write(struct task *task, struct wire_buffer *out);
/* Its generators alone. DATA_LOSS: they are none of these. */
status task_own_draw_again(struct task *task, const void *data, size_t size);
/* Puts all there; iterators that it does not name had not begun. DATA_LOSS. */
status task_own_apply(struct task *task, const void *data, size_t size);

#endif
