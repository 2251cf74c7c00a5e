/* hall.c: the meetings of a task: what concerns all of them, and what other tasks say to them. */
#include "runtime/resource/meeting_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/program/fault.h"

#define HALL_EARLY_MAX 65536 /* messages for meetings that no step of ours has begun yet */

status hall_create(struct hall **out) {
  struct hall *hall = calloc(1, sizeof *hall);
  if (!hall)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_init(&hall->lock, NULL);
  hall->early_end = &hall->early;
  *out = hall;
  return OK;
}

void hall_destroy(struct hall *hall) {
  if (!hall)
    return;
  for (struct early *e = hall->early, *next; e; e = next) {
    next = e->next;
    free(e);
  }
  pthread_mutex_destroy(&hall->lock);
  free(hall->admitted);
  vec_free(&hall->finished);
  free(hall);
}

void hall_set_peers(struct hall *hall, const struct hall_peers *peers) {
  hall->peers = *peers;
  hall->has_peers = true;
}

static void finish_all(struct hall *hall, struct wait_entry *over) {
  pthread_mutex_unlock(&hall->lock);
  (void)wait_list_finish(over, NULL); /* none of them is the caller's */
}

const struct hall_peers *hall_get_peers(const struct hall *hall) { return hall->has_peers ? &hall->peers : NULL; }

void hall_tick(struct hall *hall) {
  struct wait_entry *over = NULL;
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    meeting_look(m, &over);
  finish_all(hall, over);
}

bool hall_misses(struct hall *hall, uint32_t task, char *text, size_t size) {
  bool was_up;
  char who[400];
  if (!hall->has_peers || hall->peers.missing_ms(hall->peers.self, task, &was_up) < hall->peers.timeout_ms)
    return false;
  hall->peers.describe(hall->peers.self, task, who, sizeof who);
  snprintf(text, size, "the group waits for %s, which was not there for %.3g s", who, (double)hall->peers.timeout_ms / 1000);
  return true;
}

static void keep_early(struct hall *hall, const struct wire_message *w) {
  struct early *e = hall->early_count < HALL_EARLY_MAX ? malloc(sizeof *e) : NULL;
  if (!e)
    return;
  *e = (struct early){NULL, *w};
  *hall->early_end = e;
  hall->early_end = &e->next;
  hall->early_count++;
}

void hall_hear(struct hall *hall, uint32_t from, const void *data, size_t size) {
  struct wait_entry *over = NULL;
  pthread_mutex_lock(&hall->lock);
  for (size_t at = 0; at + sizeof(struct wire_message) <= size; at += sizeof(struct wire_message)) {
    struct wire_message w;
    memcpy(&w, (const char *)data + at, sizeof w);
    struct meeting *m = hall->meetings;
    while (m && m->key != w.key)
      m = m->next;
    if (!m)
      keep_early(hall, &w);
    else if (w.holder < m->round.options.holders && m->holders[w.holder] == from)
      meeting_hear(m, &w);
  }
  for (struct meeting *m = hall->meetings; m; m = m->next)
    meeting_follow_up(m, &over);
  finish_all(hall, over);
}

static void note_task(struct hall *hall, uint32_t task, void (*note)(struct round *round, uint32_t seat)) {
  struct wait_entry *over = NULL;
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    for (uint32_t i = 0; i < m->round.options.seats; i++)
      if (m->seats[i] == task) {
        note(&m->round, i);
        meeting_look(m, &over);
      }
  finish_all(hall, over);
}

static void forget_finished(struct hall *hall, uint32_t task) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < hall->finished.count; i++)
    if (hall->finished.items[i] != task)
      hall->finished.items[kept++] = hall->finished.items[i];
  hall->finished.count = kept;
}

void hall_finish(struct hall *hall, uint32_t task) {
  pthread_mutex_lock(&hall->lock);
  hall->has_finished = true;
  forget_finished(hall, task);
  vec_push(&hall->finished, task);
  pthread_mutex_unlock(&hall->lock);
  note_task(hall, task, round_finish);
}

void hall_begin(struct hall *hall, uint32_t task) {
  pthread_mutex_lock(&hall->lock);
  forget_finished(hall, task);
  pthread_mutex_unlock(&hall->lock);
  note_task(hall, task, round_begin);
}

bool hall_somebody_finished(struct hall *hall) {
  pthread_mutex_lock(&hall->lock);
  bool has = hall->has_finished;
  pthread_mutex_unlock(&hall->lock);
  return has;
}

bool hall_step_over(struct hall *hall, uint32_t driver, uint64_t step, bool has_changed) {
  struct wait_entry *over = NULL;
  bool is_whole = true;
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    for (uint32_t i = 0; i < m->round.options.seats; i++) {
      if (m->seats[i] != driver)
        continue;
      if (!has_changed)
        round_abdicate(&m->round, i, step);
      bool was_whole = round_withdraw(&m->round, i, step);
      if (!was_whole)
        meeting_append_over(&over, meeting_fail_all(m, FAILED_PRECONDITION, "the step that made the updates of the round has failed"));
      is_whole = is_whole && was_whole;
      meeting_follow_up(m, &over);
    }
  finish_all(hall, over);
  return is_whole;
}

void hall_reset(struct hall *hall) {
  struct wait_entry *over = NULL;
  pthread_mutex_lock(&hall->lock);
  hall->finished.count = 0;
  for (struct meeting *m = hall->meetings; m; m = m->next) {
    struct round_options options = m->round.options;
    meeting_append_over(&over, meeting_fail_all(m, ABORTED, "the job was put back to an earlier moment"));
    struct round fresh;
    if (round_init(&fresh, &options)) {
      round_deinit(&m->round);
      m->round = fresh;
      m->numbered = 0;
    } else {
      round_deinit(&fresh);
      m->round.is_torn = true;
    }
    for (struct value *v = m->values; v; v = v->next)
      v->is_known = false;
  }
  finish_all(hall, over);
}

void hall_require_admission(struct hall *hall, uint32_t tasks) {
  hall->admitted = calloc((size_t)tasks + 1, sizeof *hall->admitted); /* without memory all are admitted, and the task soon ends */
  hall->task_count = tasks;
}

void hall_admit(struct hall *hall, uint32_t task) {
  pthread_mutex_lock(&hall->lock);
  if (hall->admitted && task < hall->task_count)
    hall->admitted[task] = true;
  pthread_mutex_unlock(&hall->lock);
}

bool hall_is_admitted(struct hall *hall, uint32_t task) {
  pthread_mutex_lock(&hall->lock);
  bool is = !hall->admitted || (task < hall->task_count && hall->admitted[task]);
  pthread_mutex_unlock(&hall->lock);
  return is;
}

/* All that holders say goes to the first one, or comes from it. Of the others' losses a holder may hear when all have gone back already:
 * they tear nothing. */
static bool talks_with(const struct meeting *m, uint32_t h) {
  return h != m->round.options.holder && (h == 0 || m->round.options.holder == 0 || FAULT(50));
}

void hall_lose(struct hall *hall, uint32_t task) {
  struct wait_entry *over = NULL;
  pthread_mutex_lock(&hall->lock);
  if (hall->admitted && task < hall->task_count)
    hall->admitted[task] = false;
  for (struct meeting *m = hall->meetings; m; m = m->next)
    for (uint32_t h = 0; h < m->round.options.holders; h++)
      if (m->holders[h] == task && talks_with(m, h)) {
        m->round.is_torn = true; /* until the job is put back: what was said may be lost */
        meeting_follow_up(m, &over);
      }
  finish_all(hall, over);
}

static uint32_t seat_of(const struct meeting *m, uint32_t task) {
  uint32_t seat = 0;
  while (seat < m->round.options.seats && m->seats[seat] != task)
    seat++;
  return seat;
}

void hall_join(struct hall *hall, uint32_t task) {
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    if (seat_of(m, task) < m->round.options.seats)
      round_join(&m->round, seat_of(m, task));
  pthread_mutex_unlock(&hall->lock);
}

/* Under the lock. */
static struct seat_numbers last_taken(struct meeting *m, uint32_t task) {
  meeting_note_numbers(m);
  uint32_t seat = seat_of(m, task);
  return seat < m->round.options.seats && m->round.seats[seat].taken ? m->taken[seat] : (struct seat_numbers){0};
}

bool hall_is_applied(struct hall *hall, uint32_t task, bool (*has)(void *self, uint32_t command, uint64_t serial), void *self) {
  bool is = true;
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next) {
    struct seat_numbers last = last_taken(m, task);
    is = is && (!last.serial || has(self, last.command, last.serial));
  }
  pthread_mutex_unlock(&hall->lock);
  return is;
}

uint64_t hall_last_serial(struct hall *hall, uint32_t task) {
  uint64_t serial = 0;
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    serial = last_taken(m, task).serial > serial ? last_taken(m, task).serial : serial;
  pthread_mutex_unlock(&hall->lock);
  return serial;
}

void hall_undo(struct hall *hall) {
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    meeting_undo(m);
  pthread_mutex_unlock(&hall->lock);
}

void hall_each_taken(struct hall *hall, void (*found)(void *self, uint32_t task, uint32_t command, uint64_t serial), void *self) {
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    for (uint32_t i = 0; i < m->round.options.seats; i++) {
      struct seat_numbers last = last_taken(m, m->seats[i]);
      if (last.serial)
        found(self, m->seats[i], last.command, last.serial);
    }
  pthread_mutex_unlock(&hall->lock);
}

bool hall_is_behind(struct hall *hall, uint32_t task) {
  bool is = false;
  pthread_mutex_lock(&hall->lock);
  for (struct meeting *m = hall->meetings; m; m = m->next)
    is = is || (m->round.number && seat_of(m, task) < m->round.options.seats && !m->round.seats[seat_of(m, task)].taken);
  pthread_mutex_unlock(&hall->lock);
  return is;
}
