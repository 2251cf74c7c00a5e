/* course.c: see course.h. Questions and answers are control messages; who waits for answers waits on one condition. */
#include "runtime/process/course.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/cluster/cluster.h"
#include "runtime/process/own_state.h"
#include "runtime/program/fault.h"
#include "runtime/step/commit.h"

#define ASK_AGAIN_MS 1000 /* a question may have met a task that was just lost */
#define TRIES_AT_ONCE 3   /* of a step that fails again and again though all are there */
#define TRY_AGAIN_MS 100

/* ---- places ---- */

static uint64_t count_before(const struct course_phase *phases, uint32_t phase) {
  uint64_t before = 0;
  for (uint32_t i = 0; i < phase; i++)
    before += phases[i].counts ? (uint64_t)phases[i].steps : 0;
  return before;
}

uint64_t course_serial(const struct course_phase *phases, struct course_place place) {
  return phases[place.phase].counts ? count_before(phases, place.phase) + (uint64_t)place.step + 1 : 0;
}

struct course_place course_find(const struct course_phase *phases, uint32_t count, uint64_t serial) {
  struct course_place place = {0, 0};
  uint64_t done = serial - 1;
  for (uint32_t i = 0; i < count && done > 0; i++) {
    uint64_t steps = phases[i].counts ? (uint64_t)phases[i].steps : 0;
    if (steps == 0)
      continue;
    place = done < steps ? (struct course_place){i, (int64_t)done} : (struct course_place){i + 1, 0};
    done -= done < steps ? done : steps;
  }
  return place;
}

/* ---- who is asked ---- */

struct answer {
  bool has_come, is_initialised, was_initialised;
  struct ledger_row row;
};
struct course {
  struct task *task;
  const struct program *program;
  struct cluster *cluster; /* NULL: alone */
  const struct task_options *options;
  uint32_t lane;               /* 0: the phases */
  bool (*is_over)(void *self); /* or NULL */
  void *is_over_self;
  struct task_options lane_options;
  struct phase_options lane_phase;
  struct course_phase *phases;
  uint32_t phase_count;
  uint64_t step_count;             /* that are numbered */
  uint32_t *holders, holder_count; /* of variables that the command's entries change, but for this task */
  bool holds;                      /* this task is one */
  uint32_t *also, also_count;      /* holders beyond an entry's own tasks, for the request made last */
  struct course_place place;
  uint32_t command;
  uint64_t next;     /* the number of the step at `place` */
  uint64_t missing;  /* the first that some holder lacks, when it was asked last */
  uint64_t repeated; /* the one that all have, and that is done once more for what it gives; 0: none */
  uint64_t ended;    /* the last step of the command before this one; 0: it is not known */
  bool has_joined;
  uint64_t lacking_since_ms; /* a holder says that it has to be initialised, also when it was asked before; 0: none does */
  uint64_t failing_since_ms, failing_serial;
  uint32_t failures;
  pthread_mutex_t lock; /* all below */
  pthread_cond_t changed;
  uint32_t turn;          /* of the question that is out */
  struct answer *answers; /* one for each task */
  struct own_state own;   /* what was offered */
  uint32_t *held;         /* for each task: the turn of its question that cannot be answered yet; 0: none */
  uint64_t changes, seen_changes;
  bool is_stopped;
  struct course *lanes; /* of the phases': the others */
  struct course *next_lane;
};

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Under the lock. */
static void wait_changed(struct course *course, uint64_t until_ms) {
  struct timespec until = {.tv_sec = (time_t)(until_ms / 1000), .tv_nsec = (long)(until_ms % 1000) * 1000000};
  pthread_cond_timedwait(&course->changed, &course->lock, &until);
}

static bool is_in(const uint32_t *list, uint32_t count, uint32_t task) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == task)
      return true;
  return false;
}

static bool is_replica(const struct program *program, uint32_t task) {
  return strcmp(program_text(program, program_task(program, task)->job), program_text(program, program->replicated_job)) == 0;
}

/* Replicas have one state, and each is told where that stands before it asks here (replicas.h): its own ledger says it. Another one's may
 * be that of a process which has no state yet. */
static bool is_told_for(const struct course *course, uint32_t task) {
  return task == course->program->task || (course->program->init_flags & INIT_EVERYWHERE && is_replica(course->program, task));
}

static void add_holders(struct course *course, const struct program_entry *entry) {
  const uint32_t *tasks = program_operands(course->program, entry->tasks.first);
  for (uint32_t i = 0; i < entry->tasks.count; i++) {
    if (!(program_task(course->program, tasks[i])->flags & PROGRAM_TASK_HOLDS))
      continue;
    if (is_told_for(course, tasks[i]))
      course->holds = true;
    else if (!is_in(course->holders, course->holder_count, tasks[i]))
      course->holders[course->holder_count++] = tasks[i];
  }
}

static void read_phases(struct course *course) {
  for (uint32_t i = 0; i < course->phase_count; i++) {
    const struct phase_options *options = &course->options->phases[i];
    uint32_t entry = task_find_entry(course->task, options->entry);
    bool is_init = i == 0 && strcmp(options->entry, "init") == 0;
    course->phases[i].steps = options->steps;
    if (entry == PROGRAM_NONE)
      continue; /* phase_check says so */
    course->phases[i].counts = program_entry(course->program, entry)->changes_state && !is_init;
    if (!course->phases[i].counts)
      continue;
    course->step_count += (uint64_t)options->steps;
    add_holders(course, program_entry(course->program, entry));
  }
}

status course_create(struct task *task, const struct task_options *options, struct course **out) {
  struct course *course = calloc(1, sizeof *course);
  if (!course)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  uint32_t tasks = (uint32_t)task_program(task)->tables[PROGRAM_TASKS].count;
  pthread_condattr_t attributes;
  *course = (struct course){.own = {.task = task},
                            .task = task,
                            .program = task_program(task),
                            .options = options,
                            .phase_count = options->phase_count,
                            .command = 1,
                            .next = 1};
  pthread_mutex_init(&course->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&course->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  course->phases = calloc((size_t)course->phase_count + 1, sizeof *course->phases);
  course->holders = calloc((size_t)tasks + 1, sizeof *course->holders);
  course->also = calloc((size_t)tasks + 1, sizeof *course->also);
  course->answers = calloc((size_t)tasks + 1, sizeof *course->answers);
  course->held = calloc((size_t)tasks + 1, sizeof *course->held);
  if (!course->phases || !course->holders || !course->also || !course->answers || !course->held) {
    course_destroy(course);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  read_phases(course);
  *out = course;
  return OK;
}

void course_destroy(struct course *course) {
  if (!course)
    return;
  for (struct course *next; course->lanes; course->lanes = next) {
    next = course->lanes->next_lane;
    course_destroy(course->lanes);
  }
  pthread_cond_destroy(&course->changed);
  pthread_mutex_destroy(&course->lock);
  own_state_deinit(&course->own);
  free(course->phases);
  free(course->holders);
  free(course->also);
  free(course->answers);
  free(course->held);
  free(course);
}

/* ---- lanes ---- */

#define LANE_STEPS (INT64_MAX / 2) /* without end */
#define TURN_LANE_SHIFT 24         /* whose question it is stands in the upper bits of its turn */

status course_create_lane(struct course *course, uint32_t entry, uint32_t lane, struct course **out) {
  struct phase_options phase = {.entry = program_text(course->program, program_entry(course->program, entry)->name), .steps = LANE_STEPS};
  struct task_options options = {
    .timeout_s = course->options->timeout_s, .no_init = course->options->no_init, .phases = &phase, .phase_count = 1};
  struct course *made;
  if (lane == 0 || lane >= LEDGER_LANES_MAX)
    return fail(UNIMPLEMENTED, "more than %d entries that are run beside the phases", LEDGER_LANES_MAX - 1);
  TRY(course_create(course->task, &options, &made));
  made->lane = lane;
  made->lane_phase = phase;
  made->lane_options = options;
  made->lane_options.phases = &made->lane_phase;
  made->options = &made->lane_options;
  made->cluster = course->cluster;
  pthread_mutex_lock(&course->lock);
  made->next_lane = course->lanes;
  made->is_stopped = course->is_stopped;
  course->lanes = made;
  pthread_mutex_unlock(&course->lock);
  *out = made;
  return OK;
}

void course_expect_end(struct course *course, bool (*is_over)(void *self), void *self) {
  course->is_over = is_over;
  course->is_over_self = self;
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

/* ---- questions ---- */

enum talk_kind {
  TALK_ASK = 1,
  TALK_TELL,
  TALK_STATE, /* a driver's own, before a step: what follows is a struct talk_state */
  TALK_OFFER, /* the same, back, before TALK_TELL */
};
struct talk {
  uint32_t kind, turn;
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

/* The first holder keeps what this task has of its own; a task that holds variables itself has its own checkpoint, and replicas have the
 * whole state of one another: a step that one of them did once more would change it. */
static uint32_t keeper_of(const struct course *course) {
  uint32_t first = PROGRAM_NONE;
  for (uint32_t i = 0; i < course->holder_count; i++)
    first = course->holders[i] < first ? course->holders[i] : first;
  bool has_keeper = first != PROGRAM_NONE && !is_replica(course->program, first);
  return !has_keeper || course->holds || course->lane || !course->cluster ? PROGRAM_NONE : first;
}

/* Without memory its successor begins with it anew. */
static void tell_state(struct course *course, uint64_t serial) {
  uint32_t keeper = keeper_of(course);
  const struct driver_state *state = NULL;
  if (keeper != PROGRAM_NONE && own_state_note(&course->own, course->command, serial, &state) == OK && state)
    send_state(course, keeper, (struct talk){TALK_STATE, 0}, state);
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

static void tell(struct course *course, uint32_t driver, uint32_t turn) {
  struct ledger ledger = {0};
  bool is_serving;
  if (commit_ask(course->task, driver, turn >> TURN_LANE_SHIFT, &ledger, &is_serving) != OK)
    return; /* it asks again */
  if (!is_serving) {
    pthread_mutex_lock(&course->lock);
    course->held[driver] = turn;
    pthread_mutex_unlock(&course->lock);
    return;
  }
  if (turn >> TURN_LANE_SHIFT == 0)
    commit_each_state(course->task, offer_state, &(struct offer){course, driver, turn});
  size_t size = sizeof(struct talk) + ledger_byte_size(&ledger);
  char *bytes = malloc(size);
  if (bytes) {
    memcpy(bytes, &(struct talk){TALK_TELL, turn}, sizeof(struct talk));
    ledger_write(&ledger, bytes + sizeof(struct talk));
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

/* The chief's `init` is expected to run there. */
static bool init_concerns(const struct course *course, uint32_t holder) {
  uint32_t init = task_find_entry(course->task, "init");
  if (init == PROGRAM_NONE || course->options->no_init)
    return false;
  const struct program_range tasks = program_entry(course->program, init)->tasks;
  return is_in(program_operands(course->program, tasks.first), tasks.count, holder);
}

static void hear(struct course *course, uint32_t from, struct talk talk, const void *data, size_t size) {
  struct ledger ledger = {0};
  if (ledger_read(data, size, &ledger) != OK)
    return;
  const struct ledger_row *row = ledger_find(&ledger, course->program->task, course->lane);
  pthread_mutex_lock(&course->lock);
  struct answer *answer = &course->answers[from];
  if (talk.turn == course->turn) {
    answer->has_come = true;
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
    hear(lane_of(course, talk.turn >> TURN_LANE_SHIFT), from, talk, (const char *)data + sizeof talk, size - sizeof talk);
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

void course_attach(struct course *course, struct cluster *cluster) {
  course->cluster = cluster;
  commit_put_back(course->task, keeper_of(course) != PROGRAM_NONE);
  cluster_on_control(cluster, CONTROL_LEDGER, on_talk, course);
  commit_on_serve(course->task, on_serve, course);
  task_watch_peers(course->task, note_change, course);
}

void course_stop(struct course *course) {
  pthread_mutex_lock(&course->lock);
  course->is_stopped = true;
  pthread_cond_broadcast(&course->changed);
  struct course *lane = course->lanes;
  pthread_mutex_unlock(&course->lock);
  for (; lane; lane = lane->next_lane)
    course_stop(lane);
}

/* ---- joining ---- */

/* Under the lock. Its variables are gone: it has to be initialised again before a step can use them. */
static bool lacks_init(const struct course *course, uint32_t holder) {
  const struct answer *answer = &course->answers[holder];
  return answer->has_come && !answer->is_initialised &&
         (answer->was_initialised || (init_concerns(course, holder) && cluster_is_initialised(course->cluster)));
}

/* Under the lock. */
static uint32_t first_silent(const struct course *course) {
  for (uint32_t i = 0; i < course->holder_count; i++)
    if (!course->answers[course->holders[i]].has_come || lacks_init(course, course->holders[i]))
      return course->holders[i];
  return PROGRAM_NONE;
}

static void ask_silent(struct course *course, uint32_t turn) {
  for (uint32_t i = 0; i < course->holder_count; i++) {
    pthread_mutex_lock(&course->lock);
    bool is_asked = !course->answers[course->holders[i]].has_come || lacks_init(course, course->holders[i]);
    pthread_mutex_unlock(&course->lock);
    if (is_asked)
      cluster_send_control(course->cluster, course->holders[i], CONTROL_LEDGER, &(struct talk){TALK_ASK, turn}, sizeof(struct talk));
  }
}

static status ask_all(struct course *course) {
  uint64_t timeout_ms = (uint64_t)(course->options->timeout_s * 1000);
  pthread_mutex_lock(&course->lock);
  course->turn = (course->turn + 1) & ((1u << TURN_LANE_SHIFT) - 1);
  course->turn = (course->turn ? course->turn : 1) | course->lane << TURN_LANE_SHIFT;
  uint32_t turn = course->turn;
  for (uint32_t i = 0; i < course->holder_count; i++)
    course->answers[course->holders[i]].has_come = false;
  driver_states_clear(&course->own.offered);
  pthread_mutex_unlock(&course->lock);
  for (uint32_t silent = 0; silent != PROGRAM_NONE;) {
    TRY(cluster_wait_peers(course->cluster, course->holders, course->holder_count));
    ask_silent(course, turn);
    pthread_mutex_lock(&course->lock);
    uint64_t until_ms = now_ms() + ASK_AGAIN_MS, changes = course->changes;
    while ((silent = first_silent(course)) != PROGRAM_NONE && !course->is_stopped && changes == course->changes && now_ms() < until_ms)
      wait_changed(course, until_ms);
    bool is_stopped = course->is_stopped, has_answered = silent != PROGRAM_NONE && course->answers[silent].has_come;
    pthread_mutex_unlock(&course->lock);
    if (is_stopped)
      return fail(CANCELLED, "the task was stopped");
    if (has_answered && course->program->chief == course->program->task && !course->options->no_init)
      return fail(ABORTED, "%s has lost its variables, which are to be initialised again", cluster_task_name(course->cluster, silent));
    if (silent != PROGRAM_NONE && !has_answered) /* it may have to be told itself what the job goes on from */
      TRY(cluster_wait_peers(course->cluster, &(uint32_t){cluster_identity(course->cluster).coordinator}, 1));
    if (has_answered && !course->lacking_since_ms)
      course->lacking_since_ms = now_ms();
    if (has_answered && now_ms() - course->lacking_since_ms > timeout_ms)
      return fail(UNAVAILABLE, "%s at %s has lost its variables, and nobody has initialised them again within %.3g s",
                  cluster_task_name(course->cluster, silent), cluster_task_address(course->cluster, silent), course->options->timeout_s);
  }
  course->lacking_since_ms = 0;
  return OK;
}

/* What all holders have of this driver's steps. */
static status collect_rows(struct course *course, struct ledger_row *rows, uint32_t *count) {
  struct ledger own = {0};
  bool is_serving;
  *count = 0;
  pthread_mutex_lock(&course->lock);
  for (uint32_t i = 0; i < course->holder_count; i++) {
    struct answer *answer = &course->answers[course->holders[i]];
    answer->was_initialised = answer->is_initialised;
    if (course->has_joined && answer->row.command == course->command)
      answer->row.finished = false; /* a checkpoint it was to leave behind: this is no new command */
    rows[(*count)++] = answer->row;
  }
  pthread_mutex_unlock(&course->lock);
  if (*count > 0 && !course->holds)
    return OK;
  TRY(commit_ask(course->task, course->program->task, course->lane, &own, &is_serving));
  const struct ledger_row *row = ledger_find(&own, course->program->task, course->lane);
  rows[(*count)++] = row ? *row : (struct ledger_row){0};
  ledger_deinit(&own);
  return OK;
}

static const char *own_name(const struct course *course) {
  return course->cluster ? cluster_task_name(course->cluster, course->program->task) : task_name(course->task);
}

static void say_place(const struct course *course) {
  if (course->next > course->step_count)
    fprintf(stderr, "%s: all of its %llu steps were done before\n", own_name(course), (unsigned long long)course->step_count);
  else
    fprintf(stderr, "%s: goes on with step %llu of %llu\n", own_name(course), (unsigned long long)course->next,
            (unsigned long long)course->step_count);
}

static uint64_t steps_of(const struct ledger_row *rows, uint32_t count, uint32_t command) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < count; i++)
    last = rows[i].command == command && rows[i].last > last ? rows[i].last : last;
  return last;
}

/* The step it was in has been done everywhere, and what it gives has not come here: it is done once more, and changes nothing. A replica
 * has copied the state that the step made; what runs beside the phases gives nobody anything. */
static bool may_repeat(const struct course *course) {
  return course->lane == 0 && !(course->holds && is_replica(course->program, course->program->task));
}

static status go_on(struct course *course, struct ledger_next next) {
  bool was_there = course->has_joined;
  bool is_repeated = was_there && may_repeat(course) && next.count == course->next + 1;
  course->missing = next.count;
  course->repeated = is_repeated ? course->next : 0;
  next.count = is_repeated ? course->next : next.count;
  bool is_expected = course->has_joined ? next.count == course->next : next.count == 1;
  if (FAULT(3) && course->has_joined)
    next.count = course->next;
  course->command = next.command;
  course->next = next.count;
  course->has_joined = true;
  if (!is_expected || !was_there)
    course->place = course_find(course->phases, course->phase_count, next.count);
  if (!is_expected && course->lane == 0)
    say_place(course);
  return commit_follow(course->task, next.command, serial_of(course->lane, next.count - 1));
}

status course_join(struct course *course) {
  if (course->step_count == 0)
    return OK;
  struct ledger_row *rows = calloc((size_t)course->holder_count + 1, sizeof *rows);
  uint32_t count = 0;
  pthread_mutex_lock(&course->lock);
  course->seen_changes = course->changes;
  pthread_mutex_unlock(&course->lock);
  status result = rows ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
  if (result == OK && course->holder_count > 0)
    result = ask_all(course);
  if (result == OK)
    result = collect_rows(course, rows, &count);
  if (result == OK) {
    struct ledger_next next = ledger_next(rows, count);
    course->ended = steps_of(rows, count, next.command - 1);
    result = go_on(course, next);
  }
  free(rows);
  return result;
}

struct course_place course_place(const struct course *course) {
  return course->place;
}

status course_follow(struct course *course, struct course_place place) {
  uint64_t done = count_before(course->phases, place.phase) + (course->phases[place.phase].counts ? (uint64_t)place.step : 0);
  return commit_prepare(course->task, course->command, serial_of(course->lane, done));
}

void course_next(struct course *course) {
  course->place.step++;
  course->next++;
}

static struct run_request request_of(struct course *course, struct course_place place) {
  const struct phase_options *options = &course->options->phases[place.phase];
  uint64_t serial = course_serial(course->phases, place);
  struct run_request request = {.command = course->command, .serial = serial ? serial_of(course->lane, serial) : 0};
  request.is_once = place.phase == 0 && strcmp(options->entry, "init") == 0;
  const struct program_entry *entry = program_entry(course->program, task_find_entry(course->task, options->entry));
  const uint32_t *tasks = program_operands(course->program, entry->tasks.first);
  course->also_count = 0;
  for (uint32_t i = 0; serial > 0 && i < course->holder_count; i++)
    if (!is_in(tasks, entry->tasks.count, course->holders[i]))
      course->also[course->also_count++] = course->holders[i];
  request.also = course->also;
  request.also_count = course->also_count;
  return request;
}

struct run_request course_request(struct course *course, struct course_place place) {
  struct run_request request = request_of(course, place);
  course->place = place;
  course->next = request.serial > 0 ? serial_count(request.serial) : count_before(course->phases, place.phase) + 1;
  if (request.serial > 0 && course->next >= course->missing) /* else it is done once more, as a preparation */
    tell_state(course, course->next);
  return request;
}

status course_resume(struct course *course, bool *is_early, struct course_place *place, struct run_request *request) {
  uint64_t serial = course->repeated ? course->repeated : course->missing; /* not the next one: preparations may have been run */
  *is_early = false;
  if (course->step_count == 0 || keeper_of(course) == PROGRAM_NONE)
    return OK;
  pthread_mutex_lock(&course->lock);
  status result = own_state_resume(&course->own, course->command, serial, course->ended, is_early);
  pthread_mutex_unlock(&course->lock);
  if (result != OK || !*is_early)
    return result;
  *place = course_find(course->phases, course->phase_count, serial - 1);
  *request = request_of(course, *place);
  return commit_prepare(course->task, course->command, serial_of(course->lane, serial - 2));
}

bool course_is_repeated(const struct course *course, struct course_place place) {
  return course->repeated > 0 && course_serial(course->phases, place) == course->repeated;
}

bool course_is_done(const struct course *course) { return course->next > course->step_count; }

void course_end(struct course *course) {
  if (course->step_count > 0)
    tell_state(course, course->step_count + 1);
  course->next = course->step_count + 1;
}

/* ---- failures ---- */

/* All are there, and nothing has changed since the step began: waits until somebody goes or comes, or it is time to try
 * again. */
static bool wait_for_change(struct course *course, uint64_t until_ms) {
  pthread_mutex_lock(&course->lock);
  while (course->changes == course->seen_changes && !course->is_stopped && now_ms() < until_ms)
    wait_changed(course, until_ms);
  bool has_changed = course->changes != course->seen_changes && !course->is_stopped;
  pthread_mutex_unlock(&course->lock);
  return has_changed;
}

static void count_failure(struct course *course, uint64_t serial) {
  if (course->failures == 0 || course->failing_serial != serial) {
    course->failures = 0;
    course->failing_since_ms = now_ms();
    course->failing_serial = serial;
  }
  course->failures++;
}

status course_recover(struct course *course, struct course_place place, status failure) {
  if (!course->cluster || (failure != UNAVAILABLE && failure != ABORTED) || course->phase_count == 0)
    return failure;
  char text[2048];
  uint64_t timeout_ms = (uint64_t)(course->options->timeout_s * 1000);
  snprintf(text, sizeof text, "%s", status_text());
  count_failure(course, course_serial(course->phases, place) + 1);
  uint64_t end_ms = course->failing_since_ms + timeout_ms;
  if (failure == ABORTED && course->failures > TRIES_AT_ONCE)
    wait_for_change(course, now_ms() + TRY_AGAIN_MS);
  bool may_try = failure == ABORTED || wait_for_change(course, end_ms);
  pthread_mutex_lock(&course->lock);
  may_try = may_try && !course->is_stopped;
  course->seen_changes = course->changes;
  pthread_mutex_unlock(&course->lock);
  may_try = may_try && !(course->is_over && course->is_over(course->is_over_self));
  if (!may_try || (course->failures > TRIES_AT_ONCE && now_ms() > end_ms))
    return fail(failure, "%s", text);
  const struct program_entry *entry =
    program_entry(course->program, task_find_entry(course->task, course->options->phases[place.phase].entry));
  return cluster_wait_peers(course->cluster, program_operands(course->program, entry->tasks.first), entry->tasks.count);
}
