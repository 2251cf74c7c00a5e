/* course_talk.c: what drivers and holders say to each other: which steps a holder has, and what a driver has of its own and lets the first
 * holder keep. Control messages, taken on the network thread. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cluster/cluster.h"
#include "runtime/process/course_state.h"

enum talk_kind {
  TALK_ASK = 1,
  TALK_TELL,
  TALK_STATE, /* a driver's own, before a step: what follows is a struct talk_state */
  TALK_OFFER, /* the same, back, before TALK_TELL */
};
struct talk {
  uint32_t kind, turn;
};
struct talk_told { /* and what a struct ledger is as bytes */
  struct talk talk;
  uint64_t history;
};
struct talk_state {
  struct talk talk;
  uint32_t command, reserved;
  uint64_t serial;
};

static void send_state(struct course *course, uint32_t to, struct talk talk, const struct driver_state *state) {
  struct talk_state head = {talk, state->command, 0, state->serial};
  char bytes[sizeof head + DRIVER_STATE_MAX];
  memcpy(bytes, &head, sizeof head);
  memcpy(bytes + sizeof head, state->data, state->size);
  cluster_send_control(course->cluster, to, CONTROL_LEDGER, bytes, sizeof head + state->size);
}

uint32_t course_keeper(const struct course *course) {
  uint32_t first = PROGRAM_NONE;
  for (uint32_t i = 0; i < course->holder_count; i++)
    first = course->holders[i] < first ? course->holders[i] : first;
  bool has_keeper = first != PROGRAM_NONE && !course_is_replica(course->program, first);
  return !has_keeper || course->holds || course->lane || !course->cluster ? PROGRAM_NONE : first;
}

void course_tell_state(struct course *course, uint64_t serial) {
  uint32_t keeper = course_keeper(course);
  const struct driver_state *state = NULL;
  if (keeper != PROGRAM_NONE && own_state_note(&course->own, course->command, serial, &state) == OK && state)
    send_state(course, keeper, (struct talk){TALK_STATE, 0}, state);
}

void course_ask(struct course *course, uint32_t holder, uint32_t turn) {
  cluster_send_control(course->cluster, holder, CONTROL_LEDGER, &(struct talk){TALK_ASK, turn}, sizeof(struct talk));
}

struct offer {
  struct course *course;
  uint32_t driver, turn;
};
static void offer_state(void *self, const struct driver_state *state) {
  const struct offer *offer = self;
  if (state->driver == offer->driver)
    send_state(offer->course, offer->driver, (struct talk){TALK_OFFER, offer->turn}, state);
}

/* The course of a lane; lanes are added, never taken away. */
static struct course *lane_of(struct course *course, uint32_t lane) {
  pthread_mutex_lock(&course->lock);
  struct course *found = lane ? course->lanes : course;
  while (found && found->lane != lane)
    found = found->next_lane;
  pthread_mutex_unlock(&course->lock);
  return found;
}

static void tell(struct course *course, uint32_t driver, uint32_t turn) {
  struct ledger ledger = {0};
  struct talk_told told = {.talk = {TALK_TELL, turn}};
  bool is_serving;
  if (commit_ask(course->task, driver, turn >> TURN_LANE_SHIFT, &ledger, &told.history, &is_serving) != OK)
    return; /* it asks again */
  if (!is_serving) {
    pthread_mutex_lock(&course->lock);
    course->held[driver] = turn;
    pthread_mutex_unlock(&course->lock);
    return;
  }
  if (turn >> TURN_LANE_SHIFT == 0)
    commit_each_state(course->task, offer_state, &(struct offer){course, driver, turn});
  size_t size = sizeof told + ledger_byte_size(&ledger);
  char *bytes = malloc(size);
  if (bytes) {
    memcpy(bytes, &told, sizeof told);
    ledger_write(&ledger, bytes + sizeof told);
    cluster_send_control(course->cluster, driver, CONTROL_LEDGER, bytes, size);
  }
  free(bytes);
  ledger_deinit(&ledger);
}

static void on_serve(void *self) {
  struct course *course = self;
  uint32_t tasks = (uint32_t)course->program->tables[PROGRAM_TASKS].count;
  for (uint32_t i = 0; i < tasks; i++) {
    pthread_mutex_lock(&course->lock);
    uint32_t turn = course->held[i];
    course->held[i] = 0;
    pthread_mutex_unlock(&course->lock);
    if (turn)
      tell(course, i, turn);
  }
}

static void hear(struct course *course, uint32_t from, const void *data, size_t size) {
  struct ledger ledger = {0};
  struct talk_told told;
  if (size < sizeof told || ledger_read((const char *)data + sizeof told, size - sizeof told, &ledger) != OK)
    return;
  memcpy(&told, data, sizeof told);
  const struct ledger_row *row = ledger_find(&ledger, course->program->task, course->lane);
  pthread_mutex_lock(&course->lock);
  struct answer *answer = &course->answers[from];
  if (told.talk.turn == course->turn) {
    answer->has_come = true;
    answer->history = told.history;
    answer->is_initialised = ledger.initialised;
    answer->row = row ? *row : (struct ledger_row){.driver = course->program->task};
    pthread_cond_broadcast(&course->changed);
  }
  pthread_mutex_unlock(&course->lock);
  ledger_deinit(&ledger);
}

/* A driver's, to be kept; or this driver's, back. */
static void take_state(struct course *course, uint32_t from, const void *data, size_t size) {
  struct talk_state head;
  if (size < sizeof head || size - sizeof head > DRIVER_STATE_MAX)
    return;
  memcpy(&head, data, sizeof head);
  const struct driver_state state = {
    .driver = from, .command = head.command, .serial = head.serial, .size = size - sizeof head, .data = (char *)data + sizeof head};
  if (head.talk.kind == TALK_STATE) {
    (void)!commit_keep_state(course->task, &state); /* without memory the one before stays */
    return;
  }
  pthread_mutex_lock(&course->lock);
  if (head.talk.turn == course->turn)
    (void)!own_state_offer(&course->own, &state);
  pthread_mutex_unlock(&course->lock);
}

static void on_talk(void *self, uint32_t from, const void *data, size_t size) {
  struct course *course = self;
  struct talk talk;
  if (size < sizeof talk)
    return;
  memcpy(&talk, data, sizeof talk);
  if (talk.kind == TALK_STATE || talk.kind == TALK_OFFER)
    take_state(course, from, data, size);
  else if (talk.kind == TALK_ASK && talk.turn > 0)
    tell(course, from, talk.turn);
  else if (talk.kind == TALK_TELL && lane_of(course, talk.turn >> TURN_LANE_SHIFT))
    hear(lane_of(course, talk.turn >> TURN_LANE_SHIFT), from, data, size);
}

static void note_change(void *self) {
  struct course *course = self;
  pthread_mutex_lock(&course->lock);
  course->changes++;
  pthread_cond_broadcast(&course->changed);
  struct course *lane = course->lanes;
  pthread_mutex_unlock(&course->lock);
  for (; lane; lane = lane->next_lane)
    note_change(lane);
}

status course_attach(struct course *course, struct cluster *cluster) {
  course->cluster = cluster;
  commit_put_back(course->task, course_has_keeper(course));
  cluster_on_control(cluster, CONTROL_LEDGER, on_talk, course);
  commit_on_serve(course->task, on_serve, course);
  task_watch_peers(course->task, note_change, course);
  return course_has_keeper(course) ? own_state_born(&course->own) : OK;
}
