/* keeper.c: a checkpoint is written under another name first, then the state file names it: a task that is killed in
 * between finds the one before. */
#include "runtime/process/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checkpoint.h"
#include "base/checkpoint_write.h"
#include "base/folders.h"
#include "runtime/memory/variable.h"
#include "runtime/step/task_state.h"

#define FOLDER_MAX 3072
#define STATE_BYTES_MAX 65536

struct keeper {
  struct task *task;
  char folder[FOLDER_MAX];
  int64_t save_steps, steps, saved_at, tried_at; /* steps: since the first start, if global_step does not say */
  bool restored;
  int64_t kept[KEEPER_CHECKPOINTS_MAX]; /* numbers of the checkpoints on disk, the oldest first */
  int kept_count;
  pthread_mutex_t lock;
  bool has_failed;   /* some save since the start did */
  char text[1024];   /* how the last of them did */
};

/* ---- which variables, where ---- */

/* States of generators are the task's own matter. */
static bool is_kept(const struct variable *variable) { return strcmp(variable->container, "tfc-random") != 0; }

static uint32_t count_kept(const struct task *task) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < task->variable_count; i++)
    count += is_kept(&task->variables[i]);
  return count;
}

static bool job_has_others(const struct program *program) {
  const char *job = program_text(program, program_task(program, program->task)->job);
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++)
    if (i != program->task && strcmp(program_text(program, program_task(program, i)->job), job) == 0)
      return true;
  return false;
}

static status choose_folder(struct keeper *keeper, const char *folder) {
  const struct program *program = keeper->task->program;
  const struct program_task *self = program_task(program, program->task);
  int length = job_has_others(program) ? snprintf(keeper->folder, sizeof keeper->folder, "%s/%s_%u", folder,
                                                  program_text(program, self->job), self->index)
                                       : snprintf(keeper->folder, sizeof keeper->folder, "%s", folder);
  if (length >= FOLDER_MAX)
    return fail(INVALID_ARGUMENT, "--checkpoint-dir: the path is too long");
  return OK;
}

/* ---- the state file ---- */

static void prefix_path(const struct keeper *keeper, int64_t number, char *out, size_t size) {
  snprintf(out, size, "%s/model.ckpt-%lld", keeper->folder, (long long)number);
}

/* The number behind a line `key: "...model.ckpt-N"`; -1 when the line is another. */
static int64_t line_number(const char *line, const char *key) {
  if (strncmp(line, key, strlen(key)) != 0)
    return -1;
  const char *dash = strstr(line, "model.ckpt-");
  char *end;
  int64_t number = dash ? strtoll(dash + strlen("model.ckpt-"), &end, 10) : -1;
  return dash && *end == '"' && number >= 0 ? number : -1;
}

/* The latest checkpoint's number, or -1; fills `kept`. */
static int64_t read_state(struct keeper *keeper) {
  char path[FOLDER_MAX + 32], line[4096];
  int64_t latest = -1;
  snprintf(path, sizeof path, "%s/checkpoint", keeper->folder);
  FILE *file = fopen(path, "r");
  for (size_t read = 0; file && read < STATE_BYTES_MAX && fgets(line, sizeof line, file); read += strlen(line)) {
    int64_t number = line_number(line, "model_checkpoint_path:");
    latest = number >= 0 ? number : latest;
    number = line_number(line, "all_model_checkpoint_paths:");
    if (number >= 0 && keeper->kept_count < KEEPER_CHECKPOINTS_MAX)
      keeper->kept[keeper->kept_count++] = number;
  }
  if (file)
    fclose(file);
  return latest;
}

static status write_state(const struct keeper *keeper) {
  char path[FOLDER_MAX + 32], made[FOLDER_MAX + 40];
  snprintf(path, sizeof path, "%s/checkpoint", keeper->folder);
  snprintf(made, sizeof made, "%s.tmp", path);
  FILE *file = fopen(made, "w");
  if (!file)
    return fail(DATA_LOSS, "%s: %s", made, strerror(errno));
  fprintf(file, "model_checkpoint_path: \"model.ckpt-%lld\"\n", (long long)keeper->kept[keeper->kept_count - 1]);
  for (int i = 0; i < keeper->kept_count; i++)
    fprintf(file, "all_model_checkpoint_paths: \"model.ckpt-%lld\"\n", (long long)keeper->kept[i]);
  bool good = !ferror(file);
  if (fclose(file) != 0 || !good || rename(made, path) != 0)
    return fail(DATA_LOSS, "%s: %s", path, strerror(errno));
  return OK;
}

static void delete_oldest(struct keeper *keeper) {
  static const char *const endings[] = { ".index", ".data-00000-of-00001", ".meta" };
  char prefix[FOLDER_MAX + 64], path[FOLDER_MAX + 96];
  prefix_path(keeper, keeper->kept[0], prefix, sizeof prefix);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    snprintf(path, sizeof path, "%s%s", prefix, endings[i]);
    unlink(path);
  }
  memmove(keeper->kept, keeper->kept + 1, sizeof *keeper->kept * (size_t)(keeper->kept_count - 1));
  keeper->kept_count--;
}

/* ---- saving ---- */

/* A copy of the value at this moment; NULL when the variable has none. */
static status copy_value(struct variable *variable, struct tensor **out) {
  *out = NULL;
  pthread_mutex_lock(&variable->lock);
  status result = atomic_load(&variable->initialized) ? tensor_clone(variable->value, out) : OK;
  pthread_mutex_unlock(&variable->lock);
  return result;
}

static status save_variables(struct keeper *keeper, struct checkpoint_writer *writer) {
  for (uint32_t i = 0; i < keeper->task->variable_count; i++) {
    struct variable *variable = &keeper->task->variables[i];
    struct tensor *value;
    if (!is_kept(variable))
      continue;
    TRY(copy_value(variable, &value));
    status result = value ? checkpoint_writer_add(writer, variable->name, value) : OK;
    tensor_release(value);
    TRY(result);
  }
  return OK;
}

/* The value of an integer scalar; false: it is none, or has no value. */
static bool scalar_of(struct variable *variable, int64_t *out) {
  pthread_mutex_lock(&variable->lock);
  bool is_number = atomic_load(&variable->initialized) && variable->value->count == 1 &&
                   (variable->dtype == DTYPE_INT64 || variable->dtype == DTYPE_INT32);
  if (is_number)
    *out = variable->dtype == DTYPE_INT64 ? *(const int64_t *)variable->value->data : *(const int32_t *)variable->value->data;
  pthread_mutex_unlock(&variable->lock);
  return is_number;
}

/* What a checkpoint is called: the variable global_step says, else the number of steps. */
static int64_t current_number(const struct keeper *keeper) {
  int64_t number;
  for (uint32_t i = 0; i < keeper->task->variable_count; i++)
    if (strcmp(keeper->task->variables[i].name, "global_step") == 0 && scalar_of(&keeper->task->variables[i], &number))
      return number;
  return keeper->steps;
}

static status save_locked(struct keeper *keeper) {
  char prefix[FOLDER_MAX + 64];
  int64_t number = current_number(keeper);
  struct checkpoint_writer *writer;
  prefix_path(keeper, number < 0 ? 0 : number, prefix, sizeof prefix);
  TRY(checkpoint_writer_create(prefix, &writer));
  status result = save_variables(keeper, writer);
  if (result != OK) {
    checkpoint_writer_destroy(writer);
    return result;
  }
  TRY(checkpoint_writer_close(writer));
  bool again = keeper->kept_count && keeper->kept[keeper->kept_count - 1] == number;
  if (!again && keeper->kept_count == KEEPER_CHECKPOINTS_MAX)
    delete_oldest(keeper);
  if (!again)
    keeper->kept[keeper->kept_count++] = number;
  keeper->saved_at = keeper->steps;
  return write_state(keeper);
}

/* Says it at once, but not the same again and again; training goes on, and the last complete checkpoint stays. Under the lock. */
static void note_failure(struct keeper *keeper) {
  bool is_news = !keeper->has_failed || strcmp(keeper->text, status_text()) != 0;
  keeper->has_failed = true;
  snprintf(keeper->text, sizeof keeper->text, "%s", status_text());
  if (is_news)
    fprintf(stderr, "%s: a checkpoint could not be saved to %s, the work goes on: %s\n", keeper->task->name, keeper->folder, keeper->text);
}

status keeper_save(struct keeper *keeper) {
  if (!keeper)
    return OK;
  pthread_mutex_lock(&keeper->lock);
  status saved = keeper->steps > keeper->saved_at ? save_locked(keeper) : OK;
  bool has_failed = keeper->has_failed;
  char text[1024];
  snprintf(text, sizeof text, "%s", saved != OK ? status_text() : keeper->text);
  pthread_mutex_unlock(&keeper->lock);
  if (saved != OK)
    return fail(DATA_LOSS, "saving to %s: %s", keeper->folder, text);
  return has_failed ? fail(DATA_LOSS, "saving to %s: the last checkpoint is there, one before it failed: %s", keeper->folder, text) : OK;
}

void keeper_count_step(void *self) {
  struct keeper *keeper = self;
  pthread_mutex_lock(&keeper->lock);
  keeper->steps++;
  if (keeper->save_steps && keeper->steps - keeper->tried_at >= keeper->save_steps) {
    keeper->tried_at = keeper->steps;
    if (save_locked(keeper) != OK)
      note_failure(keeper);
  }
  pthread_mutex_unlock(&keeper->lock);
}

/* ---- the folder ---- */

/* What tasks that were killed while saving left behind: "...tempstatePID", where no such process is. */
static void remove_leftovers(const struct keeper *keeper) {
  DIR *folder = opendir(keeper->folder);
  for (const struct dirent *entry; folder && (entry = readdir(folder));) {
    const char *mark = strstr(entry->d_name, ".tempstate");
    char *end = NULL;
    long process = mark ? strtol(mark + strlen(".tempstate"), &end, 10) : 0;
    if (process > 0 && *end == 0 && strncmp(entry->d_name, "model.ckpt-", 11) == 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH)
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  if (folder)
    closedir(folder);
}

/* That nothing can be saved is known before anything is computed. */
static status check_folder(const struct keeper *keeper) {
  char path[FOLDER_MAX + 64];
  snprintf(path, sizeof path, "%s/model.ckpt-0.tempstate%d", keeper->folder, (int)getpid());
  folders_make_above(path);
  FILE *file = fopen(path, "we");
  bool good = file && fputc('0', file) != EOF;
  int error = errno;
  if (file && fclose(file) != 0 && good) {
    good = false;
    error = errno;
  }
  if (file)
    unlink(path);
  return good ? OK : fail(DATA_LOSS, "--checkpoint-dir %s cannot be written: %s", keeper->folder, strerror(error));
}

/* ---- restoring ---- */

static status restore_variable(struct keeper *keeper, const struct checkpoint *checkpoint, struct variable *variable) {
  struct checkpoint_entry entry;
  struct checkpoint_value value;
  status found = checkpoint_find(checkpoint, variable->name, &entry);
  if (found == NOT_FOUND)
    return OK; /* new since then: init gives it a value */
  TRY(found);
  if (entry.dtype != variable->dtype)
    return fail(INVALID_ARGUMENT, "variable '%s' is %s, in the checkpoint it is %s", variable->name,
                dtype_name(variable->dtype), dtype_name(entry.dtype));
  TRY(checkpoint_read(checkpoint, variable->name, &value));
  TRY(variable_assign(variable, &value.shape, value.data));
  variable->restored = true;
  keeper->restored = true;
  return OK;
}

static status restore(struct keeper *keeper, int64_t number) {
  char prefix[FOLDER_MAX + 64];
  struct arena arena;
  struct checkpoint *checkpoint;
  prefix_path(keeper, number, prefix, sizeof prefix);
  arena_init(&arena);
  status result = checkpoint_open(prefix, &arena, &checkpoint);
  for (uint32_t i = 0; i < keeper->task->variable_count && result == OK; i++)
    if (is_kept(&keeper->task->variables[i]))
      result = restore_variable(keeper, checkpoint, &keeper->task->variables[i]);
  arena_deinit(&arena);
  keeper->steps = keeper->saved_at = keeper->tried_at = number;
  return result == OK ? OK : status_prefix(result, "restoring %s: ", prefix);
}

static status keeper_start(struct keeper *keeper, const char *folder) {
  TRY(choose_folder(keeper, folder));
  if (count_kept(keeper->task) == 0)
    return fail(UNIMPLEMENTED, "--checkpoint-dir on %s, which has no variables: give it to the tasks that have them",
                keeper->task->name);
  TRY(check_folder(keeper));
  remove_leftovers(keeper);
  int64_t latest = read_state(keeper);
  return latest >= 0 ? restore(keeper, latest) : OK;
}

status keeper_create(struct task *task, const char *folder, int64_t save_steps, struct keeper **out) {
  struct keeper *keeper = calloc(1, sizeof *keeper);
  if (!keeper)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  keeper->task = task;
  keeper->save_steps = save_steps;
  pthread_mutex_init(&keeper->lock, NULL);
  status result = keeper_start(keeper, folder);
  if (result != OK) {
    keeper_destroy(keeper);
    return result;
  }
  task_watch_steps(task, keeper_count_step, keeper);
  *out = keeper;
  return OK;
}

void keeper_destroy(struct keeper *keeper) {
  if (!keeper)
    return;
  pthread_mutex_destroy(&keeper->lock);
  free(keeper);
}

bool keeper_has_restored(const struct keeper *keeper) { return keeper && keeper->restored; }
