/* keeper.c: a thread that waits for a snapshot to write. */
#include "runtime/checkpoint/keeper.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint/snapshot.h"
#include "runtime/memory/variable.h"
#include "runtime/program/monotonic.h"
#include "runtime/step/task_state.h"

struct keeper {
  struct task *task;
  keeper_done *done;
  void *self;
  pthread_t thread;
  bool has_thread;
  pthread_mutex_t lock; /* all below */
  pthread_cond_t changed;
  struct checkpoint_folder folder;
  bool is_busy, wants_warmth, is_ending;
  char name[CHECKPOINT_NAME_MAX];
  struct note_head head;
  struct wire_buffer note;
};

/* ---- the thread ---- */

static void write_taken(struct keeper *keeper) {
  char prefix[CHECKPOINT_PATH_MAX + CHECKPOINT_NAME_MAX], text[1024] = "";
  checkpoint_folder_prefix(&keeper->folder, keeper->name, prefix, sizeof prefix);
  status result = snapshot_write(keeper->task, prefix, &keeper->note);
  if (result != OK)
    snprintf(text, sizeof text, "%s", status_text());
  wire_buffer_free(&keeper->note);
  keeper->done(keeper->self, keeper->name, &keeper->head, result, text);
  snapshot_prepare(keeper->task);
}

static void *keeper_main(void *argument) {
  struct keeper *keeper = argument;
  pthread_mutex_lock(&keeper->lock);
  for (;;) {
    while (!keeper->is_busy && !keeper->wants_warmth && !keeper->is_ending)
      pthread_cond_wait(&keeper->changed, &keeper->lock);
    if (!keeper->is_busy && !keeper->wants_warmth)
      break;
    bool is_taken = keeper->is_busy;
    keeper->wants_warmth = false;
    pthread_mutex_unlock(&keeper->lock);
    if (is_taken)
      write_taken(keeper);
    else
      snapshot_prepare(keeper->task);
    pthread_mutex_lock(&keeper->lock);
    keeper->is_busy = is_taken ? false : keeper->is_busy;
    pthread_cond_broadcast(&keeper->changed);
  }
  pthread_mutex_unlock(&keeper->lock);
  return NULL;
}

void keeper_warm(struct keeper *keeper) {
  pthread_mutex_lock(&keeper->lock);
  keeper->wants_warmth = true;
  pthread_cond_broadcast(&keeper->changed);
  pthread_mutex_unlock(&keeper->lock);
}

bool keeper_is_busy(struct keeper *keeper) {
  pthread_mutex_lock(&keeper->lock);
  bool is_busy = keeper->is_busy;
  pthread_mutex_unlock(&keeper->lock);
  return is_busy;
}

bool keeper_wait_idle(struct keeper *keeper, uint32_t wait_ms) {
  uint64_t until_ms = monotonic_ms() + wait_ms;
  pthread_mutex_lock(&keeper->lock);
  while (keeper->is_busy && monotonic_wait(&keeper->changed, &keeper->lock, until_ms))
    ;
  bool is_idle = !keeper->is_busy;
  pthread_mutex_unlock(&keeper->lock);
  return is_idle;
}

/* ---- snapshots ---- */

status keeper_take(struct keeper *keeper, const struct note_head *head, int64_t number, char name[CHECKPOINT_NAME_MAX]) {
  pthread_mutex_lock(&keeper->lock);
  status result = checkpoint_folder_begin(&keeper->folder, number < 0 ? 0 : number, keeper->name, sizeof keeper->name);
  if (result == OK) {
    memcpy(name, keeper->name, sizeof keeper->name);
    keeper->head = *head;
    snapshot_take(keeper->task, head, &keeper->note);
    keeper->is_busy = true;
    pthread_cond_broadcast(&keeper->changed);
  }
  pthread_mutex_unlock(&keeper->lock);
  return result;
}

status keeper_complete(struct keeper *keeper, const char *name) {
  pthread_mutex_lock(&keeper->lock);
  status result = checkpoint_folder_add(&keeper->folder, name);
  pthread_mutex_unlock(&keeper->lock);
  return result;
}

status keeper_discard(struct keeper *keeper, const char *name) {
  pthread_mutex_lock(&keeper->lock);
  status result = checkpoint_folder_remove(&keeper->folder, name);
  pthread_mutex_unlock(&keeper->lock);
  return result;
}

bool keeper_latest(struct keeper *keeper, char *prefix, size_t size) {
  pthread_mutex_lock(&keeper->lock);
  bool is_there = checkpoint_folder_latest(&keeper->folder, prefix, size);
  pthread_mutex_unlock(&keeper->lock);
  return is_there;
}

const char *keeper_folder(const struct keeper *keeper) { return keeper->folder.path; }

int64_t keeper_number(struct task *task) {
  int64_t number = -1;
  for (uint32_t i = 0; i < task->variable_count && number < 0; i++) {
    struct variable *variable = &task->variables[i];
    if (strcmp(variable->name, "global_step") != 0)
      continue;
    pthread_mutex_lock(&variable->lock);
    if (atomic_load(&variable->initialized) && variable->value->count == 1) {
      const void *value = variable->value->data;
      number = variable->dtype == DTYPE_INT64 ? *(const int64_t *)value : variable->dtype == DTYPE_INT32 ? *(const int32_t *)value : -1;
    }
    pthread_mutex_unlock(&variable->lock);
  }
  return number;
}

/* ---- life ---- */

status keeper_create(struct task *task, const char *folder, int64_t keep, keeper_done *done, void *self, struct keeper **out) {
  struct keeper *keeper = calloc(1, sizeof *keeper);
  if (!keeper)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  keeper->task = task;
  keeper->done = done;
  keeper->self = self;
  pthread_mutex_init(&keeper->lock, NULL);
  monotonic_cond_init(&keeper->changed);
  status result = checkpoint_folder_open(&keeper->folder, folder, keep);
  if (result == OK && pthread_create(&keeper->thread, NULL, keeper_main, keeper) != 0)
    result = fail(RESOURCE_EXHAUSTED, "no thread for checkpoints");
  keeper->has_thread = result == OK;
  if (result == OK)
    *out = keeper;
  else
    keeper_destroy(keeper);
  return result;
}

void keeper_destroy(struct keeper *keeper) {
  if (!keeper)
    return;
  pthread_mutex_lock(&keeper->lock);
  keeper->is_ending = true;
  pthread_cond_broadcast(&keeper->changed);
  pthread_mutex_unlock(&keeper->lock);
  if (keeper->has_thread)
    pthread_join(keeper->thread, NULL);
  checkpoint_folder_close(&keeper->folder);
  wire_buffer_free(&keeper->note);
  pthread_cond_destroy(&keeper->changed);
  pthread_mutex_destroy(&keeper->lock);
  free(keeper);
}
