/* saver.c: when to save. */
#include "runtime/checkpoint/saver.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/checkpoint/keeper.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/program/monotonic.h"
#include "runtime/step/task_state.h"

/* How long a step that is to be saved waits for the save before it: small ones are each made, for large ones no step
 * stands still. */
#define SMALL_BYTES (INT64_C(8) << 20)
#define SMALL_PATIENCE_MS 2000
#define PATIENCE_MS 15
#define FREEZE_MS 20 /* for steps that are amid their updates */
#define LAST_FREEZE_MS 5000

struct saver {
  struct task *task;
  struct keeper *keeper; /* NULL: nothing is saved */
  int64_t save_steps;
  uint64_t save_ms;
  pthread_mutex_t lock; /* all below */
  int64_t steps;        /* since the first start */
  int64_t saved_at;     /* steps in the last complete one */
  int64_t taken_at;     /* in the last that was begun */
  uint64_t taken_ms;
  bool was_patient; /* a step has waited for what is being written */
  bool has_failed;  /* some save since the start did */
  char text[1024];  /* how the last of them did */
};

/* ---- saving ---- */

/* Says it at once, but not the same again and again; training goes on, and the last complete checkpoint stays. Under
 * the lock. */
static void note_failure(struct saver *saver, const char *text) {
  bool is_news = !saver->has_failed || strcmp(saver->text, text) != 0;
  saver->has_failed = true;
  snprintf(saver->text, sizeof saver->text, "%s", text);
  if (is_news)
    fprintf(stderr, "%s: a checkpoint could not be saved to %s, the work goes on: %s\n", saver->task->name, keeper_folder(saver->keeper),
            saver->text);
}

static void on_written(void *self, const char *name, const struct note_head *head, status code, const char *text) {
  struct saver *saver = self;
  char said[1024];
  snprintf(said, sizeof said, "%s", text);
  if (code == OK && (code = keeper_complete(saver->keeper, name)) != OK)
    snprintf(said, sizeof said, "%s", status_text());
  pthread_mutex_lock(&saver->lock);
  if (code == OK)
    saver->saved_at = head->steps;
  else
    note_failure(saver, said);
  saver->was_patient = false;
  pthread_mutex_unlock(&saver->lock);
}

/* The keeper is idle. Under the lock. Nothing when steps stay amid their updates: then the next one tries again. */
static void take(struct saver *saver, uint32_t wait_ms) {
  struct note_head head = {.holders = 1, .steps = saver->steps};
  int64_t number = keeper_number(saver->task);
  char name[CHECKPOINT_NAME_MAX];
  if (getrandom(&head.id, sizeof head.id, GRND_NONBLOCK) != sizeof head.id)
    head.id = monotonic_ms() << 20 ^ (uint64_t)saver->steps;
  if (!commit_freeze(saver->task, wait_ms))
    return;
  saver->taken_at = saver->steps;
  saver->taken_ms = monotonic_ms();
  if (keeper_take(saver->keeper, &head, number >= 0 ? number : saver->steps, name) != OK)
    note_failure(saver, status_text());
  commit_thaw(saver->task);
}

static bool is_due(const struct saver *saver) {
  return (saver->save_steps && saver->steps - saver->taken_at >= saver->save_steps) ||
         (saver->save_ms && monotonic_ms() - saver->taken_ms >= saver->save_ms);
}

/* The one before; only one step waits for it. */
static bool is_writing(struct saver *saver) {
  if (!keeper_is_busy(saver->keeper))
    return false;
  bool was_patient = saver->was_patient;
  saver->was_patient = true;
  pthread_mutex_unlock(&saver->lock);
  bool is_small = snapshot_bytes(saver->task) <= SMALL_BYTES;
  bool is_idle = !was_patient && keeper_wait_idle(saver->keeper, is_small ? SMALL_PATIENCE_MS : PATIENCE_MS);
  pthread_mutex_lock(&saver->lock);
  return !is_idle;
}

/* One step that changes state has ended. */
static void on_step(void *self) {
  struct saver *saver = self;
  pthread_mutex_lock(&saver->lock);
  bool is_first = saver->steps++ == saver->saved_at;
  if (is_due(saver) && !is_writing(saver) && is_due(saver))
    take(saver, FREEZE_MS);
  pthread_mutex_unlock(&saver->lock);
  if (is_first)
    keeper_warm(saver->keeper);
}

/* The last step is in a checkpoint that was taken before it was known to be the last. */
static void note_end(struct saver *saver) {
  char prefix[CHECKPOINT_PATH_MAX];
  struct note_head head;
  bool is_own = keeper_latest(saver->keeper, prefix, sizeof prefix) && restore_peek(prefix, &head, NULL) == OK && head.id;
  status result = is_own ? snapshot_note_end(saver->task, prefix) : OK;
  pthread_mutex_lock(&saver->lock);
  if (result != OK)
    note_failure(saver, status_text());
  pthread_mutex_unlock(&saver->lock);
}

status saver_finish(struct saver *saver) {
  if (!saver || !saver->keeper)
    return OK;
  while (!keeper_wait_idle(saver->keeper, 60000))
    continue;
  pthread_mutex_lock(&saver->lock);
  bool had_failed = saver->has_failed;
  saver->has_failed = false; /* of the last one all is said */
  bool is_needed = saver->steps > saver->saved_at;
  if (is_needed)
    take(saver, LAST_FREEZE_MS);
  pthread_mutex_unlock(&saver->lock);
  while (!keeper_wait_idle(saver->keeper, 60000))
    continue;
  if (!is_needed)
    note_end(saver);
  if (saver->has_failed)
    return fail(DATA_LOSS, "saving to %s: %s", keeper_folder(saver->keeper), saver->text);
  return had_failed ? fail(DATA_LOSS, "saving to %s: the last checkpoint is there, one before it failed: %s", keeper_folder(saver->keeper),
                           saver->text)
                    : OK;
}

/* ---- starting ---- */

status saver_folder(const struct program *program, const char *folder, char *out, size_t size) {
  const struct program_task *self = program_task(program, program->task);
  uint32_t holders = 0;
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++)
    holders += (program_task(program, i)->flags & PROGRAM_TASK_HOLDS) != 0;
  int length = holders > 1 ? snprintf(out, size, "%s/%s_%u", folder, program_text(program, self->job), self->index)
                           : snprintf(out, size, "%s", folder);
  return (size_t)length < size ? OK : fail(INVALID_ARGUMENT, "--checkpoint-dir: the path is too long");
}

static void say_missing(const struct saver *saver, const struct restored *restored, const char *path) {
  if (restored->missing)
    fprintf(stderr, "%s: %s has no value for %s%s: initialised anew\n", saver->task->name, path, restored->names,
            restored->missing > 8 ? " and others" : "");
}

static status restore_from(struct saver *saver, const char *path, bool is_own) {
  struct arena arena;
  struct restore_source source;
  struct restored restored;
  arena_init(&arena);
  status result = restore_source_find(path, &arena, &source);
  if (result == OK)
    result = restore_task(saver->task, &source, is_own ? RESTORE_START : RESTORE_VALUES, &restored);
  arena_deinit(&arena);
  TRY(result);
  if (restored.values == 0 && !is_own)
    return fail(NOT_FOUND, "%s has no value for any variable of %s", path, saver->task->name);
  say_missing(saver, &restored, path);
  if (is_own)
    saver->steps = saver->saved_at = saver->taken_at = restored.head.id ? restored.head.steps : restored.number;
  return OK;
}

static status start(struct saver *saver, const struct saver_config *config) {
  char prefix[CHECKPOINT_PATH_MAX];
  if (snapshot_size(saver->task) == 0)
    return fail(UNIMPLEMENTED, "--checkpoint-dir and --restore on %s, which has no variables: give them to the tasks that have them",
                saver->task->name);
  if (config->folder)
    TRY(keeper_create(saver->task, config->folder, config->keep, on_written, saver, &saver->keeper));
  if (saver->keeper && keeper_latest(saver->keeper, prefix, sizeof prefix))
    return restore_from(saver, prefix, true);
  return config->restore ? status_prefix(restore_from(saver, config->restore, false), "--restore: ") : OK;
}

status saver_create(struct task *task, const struct saver_config *config, struct saver **out) {
  struct saver *saver = calloc(1, sizeof *saver);
  if (!saver)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  saver->task = task;
  saver->save_steps = config->save_steps;
  saver->save_ms = (uint64_t)(config->save_seconds * 1000);
  saver->taken_ms = monotonic_ms();
  pthread_mutex_init(&saver->lock, NULL);
  status result = start(saver, config);
  if (result != OK) {
    saver_destroy(saver);
    return result;
  }
  if (saver->keeper)
    task_watch_steps(task, on_step, saver);
  *out = saver;
  return OK;
}

void saver_destroy(struct saver *saver) {
  if (!saver)
    return;
  keeper_destroy(saver->keeper);
  pthread_mutex_destroy(&saver->lock);
  free(saver);
}
