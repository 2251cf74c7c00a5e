/* job_gone.c: which tasks have left for good, in a file beside the coordinator's checkpoints.
 *
 * A checkpoint is complete before those may leave whose last step it has, so it says only that they were about to. Who is killed then is
 * started again with the same command, who has left with the next one: when the holders' memory is lost, too, this file tells them apart. A
 * line has a task, its command, and the newest checkpoint that was complete then.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/synced_file.h"
#include "runtime/checkpoint/job_coordinator.h"
#include "runtime/cluster/cluster.h"
#include "runtime/program/fault.h"

#define LINE_MAX_BYTES 256

static void path_of(const struct job *job, const char *ending, char out[CHECKPOINT_PATH_MAX + 32]) {
  snprintf(out, CHECKPOINT_PATH_MAX + 32, "%s/finished%s", keeper_folder(job->seat.keeper), ending);
}

static status put_lines(const struct job *job, struct synced_file *file) {
  char line[LINE_MAX_BYTES];
  for (uint32_t i = 0; i < job->coordinator->gone.count; i++) {
    const struct job_gone *gone = &job->coordinator->gone.items[i];
    int length =
      snprintf(line, sizeof line, "%s %" PRIu32 " %" PRIx64 "\n", cluster_task_name(job->cluster, gone->task), gone->command, gone->id);
    TRY(synced_file_put(file, line, (size_t)length));
  }
  return OK;
}

static status write_file(const struct job *job) {
  char path[CHECKPOINT_PATH_MAX + 32], made[CHECKPOINT_PATH_MAX + 32];
  struct synced_file *file;
  path_of(job, "", path);
  path_of(job, ".tmp", made);
  TRY(synced_file_create(made, &file));
  status result = put_lines(job, file);
  if (result != OK) {
    synced_file_destroy(file);
    return result;
  }
  TRY(synced_file_close(file));
  if (rename(made, path) != 0)
    return fail(DATA_LOSS, "'%s': %s", path, strerror(errno));
  return synced_folder_of(path);
}

/* What cannot be written holds while this process lives. */
static void save(struct job *job) {
  if (write_file(job) != OK)
    holder_note_failure(job, status_text());
}

static struct job_gone *find(struct job_coordinator *coordinator, uint32_t task) {
  for (uint32_t i = 0; i < coordinator->gone.count; i++)
    if (coordinator->gone.items[i].task == task)
      return &coordinator->gone.items[i];
  return NULL;
}

/* A line of another cluster is passed over. */
static void read_line(struct job *job, const char *line) {
  char name[LINE_MAX_BYTES];
  struct job_gone gone;
  if (sscanf(line, "%255s %" SCNu32 " %" SCNx64, name, &gone.command, &gone.id) != 3)
    return;
  for (gone.task = 0; gone.task < job->task_count; gone.task++)
    if (strcmp(name, cluster_task_name(job->cluster, gone.task)) == 0 && !find(job->coordinator, gone.task)) {
      vec_push(&job->coordinator->gone, gone);
      return;
    }
}

void gone_read(struct job *job) {
  char path[CHECKPOINT_PATH_MAX + 32], line[LINE_MAX_BYTES];
  path_of(job, "", path);
  FILE *file = fopen(path, "re");
  job->coordinator->gone.count = 0;
  while (file && fgets(line, sizeof line, file))
    read_line(job, line);
  if (file)
    fclose(file);
}

/* Whether its last step is in a checkpoint that the job goes back to, if it does. There need be no history for that: holders may be gone
 * when one is started again as all are about to end. */
static bool is_safe(const struct job *job, const struct job_message *message) {
  const struct job_coordinator *coordinator = job->coordinator;
  bool knows_folder = job->seat.keeper || !job->is_holder;
  return message->history == coordinator->history || (!coordinator->history && knows_folder && !FAULT(49));
}

void gone_take(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  uint32_t command = (uint32_t)message->number;
  if (!is_safe(job, message)) {
    if (coordinator->has_history) /* else it says so again */
      coordinator_tell_run(job, from);
    return;
  }
  struct job_gone *known = find(coordinator, from);
  bool is_news = !known || known->command != command || known->id != message->id;
  if (!known && job->seat.keeper && message->id)
    vec_push(&coordinator->gone, (struct job_gone){from, command, message->id});
  else if (known)
    *known = (struct job_gone){from, command, message->id};
  if (is_news && find(coordinator, from))
    save(job);
  coordinator->seen[from].is_gone = true;
  job_send(job, from, &(struct job_message){.kind = JOB_NOTED, .history = coordinator->history});
}

void gone_go_back(struct job *job, uint64_t id) {
  struct job_coordinator *coordinator = job->coordinator;
  uint32_t kept = 0, count = coordinator->gone.count;
  for (uint32_t i = 0; i < count; i++)
    if (coordinator->gone.items[i].id <= id)
      coordinator->gone.items[kept++] = coordinator->gone.items[i];
  coordinator->gone.count = kept;
  if (kept < count)
    save(job);
}

status gone_list(const struct job *job, struct ledger *out) {
  for (uint32_t i = 0; i < job->coordinator->gone.count; i++)
    TRY(ledger_rewind(out, job->coordinator->gone.items[i].task, job->coordinator->gone.items[i].command, 0));
  return OK;
}
