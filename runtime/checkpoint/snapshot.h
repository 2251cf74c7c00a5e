/* snapshot.h: the variables of a task at one moment, copied aside and written behind the steps that go on.
 *
 * prepare (any time) -> take (while no step is amid its updates: it only marks) -> write (in no hurry: copies what
 * nobody has changed yet, then writes). One snapshot of a task at a time; one thread, but steps may run beside prepare
 * and write.
 */
#ifndef TFC_RUNTIME_CHECKPOINT_SNAPSHOT_H
#define TFC_RUNTIME_CHECKPOINT_SNAPSHOT_H

#include "runtime/checkpoint/task_note.h"

struct task;

/* Variables that a checkpoint holds: not the states of generators. */
uint32_t snapshot_size(const struct task *task);
int64_t snapshot_bytes(struct task *task);
/* Memory for the copies: one more of each variable, kept for the next time. */
void snapshot_prepare(struct task *task);
/* `note` is empty before, and the caller's to free. */
void snapshot_take(struct task *task, const struct note_head *head, struct wire_buffer *note);
/* All files are complete and on the disk when it returns OK. DATA_LOSS, NOT_FOUND, PERMISSION_DENIED: they cannot be
 * written; RESOURCE_EXHAUSTED. */
status snapshot_write(struct task *task, const char *prefix, const struct wire_buffer *note);
/* The task has ended its command with the step that the checkpoint was taken behind: its files say so from now on. Failures as above; the
 * checkpoint stays. */
status snapshot_note_end(struct task *task, const char *prefix);

#endif
