/* job_message.h: what coordinator and tasks say to each other about histories and checkpoints (notes: cluster/cut.h, cluster/history.h). */
#ifndef TFC_RUNTIME_CHECKPOINT_JOB_MESSAGE_H
#define TFC_RUNTIME_CHECKPOINT_JOB_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include "base/limits.h"
#include "base/wire.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/cluster/history.h"

enum job_kind {
  JOB_JOIN = 1, /* a task: which history it is in, options it knows, files it has */
  JOB_ASK,      /* the coordinator, new: who is there? */
  JOB_OPTIONS,  /* the coordinator: what was given to some task */
  JOB_RESTORE,  /* the coordinator: go back to `id` (0: `text` is the path of another, or "": from nothing), as `history`; `ledger`: who had
                   left for good with which command */
  JOB_RESTORED, /* a holder */
  JOB_RUN,      /* the coordinator: the job is in `history` */
  JOB_GIVE_UP,  /* the coordinator: it cannot go on, for the reason `text`; a holder: it cannot restore */
  JOB_FREEZE,
  JOB_FROZEN,
  JOB_SNAP,
  JOB_TAKEN,
  JOB_DONE,
  JOB_REFUSED,
  JOB_COMMIT,
  JOB_ABORT,
  JOB_LEAVE_ASK, /* a task: my phases are done, may I go? */
  JOB_LEAVE,     /* the coordinator: your last step is in a complete checkpoint, `id` (0: none could be made) */
  JOB_GONE,      /* a task: I leave, my command `number` is done, and in checkpoint `id` */
  JOB_NOTED,     /* the coordinator: that is on the disk */
};

struct job_options {
  char folder[CHECKPOINT_PATH_MAX], restore[CHECKPOINT_PATH_MAX];
  int64_t save_steps, save_ms, keep;
};

struct job_message {
  enum job_kind kind;
  uint64_t id, history, newest, life; /* life: of JOIN, of the process that sends it */
  int64_t number, steps;
  uint32_t wait_ms;
  bool is_uneven, has_options, has_files, has_phases, is_initialised;
  bool is_failure; /* of REFUSED: it could not be written */
  bool is_gone;    /* of JOIN: it has left for good, and its coordinator, which may be another process now, has noted it */
  struct job_options options;
  uint32_t file_count;
  uint64_t files[HISTORY_FILES_MAX];
  char text[CHECKPOINT_PATH_MAX];
  uint64_t finished[LIMIT_TASKS / 64]; /* JOIN: a bit for each task whose steps are done, and which may have left for good */
  const void *ledger;                  /* read: in the bytes that were read */
  size_t ledger_size;
};

/* Bytes to be freed with wire_buffer_free. */
void job_message_write(const struct job_message *message, struct wire_buffer *out);
/* DATA_LOSS: it is none. */
status job_message_read(const void *data, size_t size, struct job_message *out);

#endif
