/* course.c: see course.h. What tasks say to each other is in course_talk.c; who waits for answers waits on one condition. */
#include "runtime/process/course_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cluster/cluster.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"

#define ASK_AGAIN_MS 1000 /* a question may have met a task that was just lost */
#define AGREE_MS 20       /* between questions to holders of which some have gone back, and some not yet */
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

/* Under the lock. */
static void wait_changed(struct course *course, uint64_t until_ms) { monotonic_wait(&course->changed, &course->lock, until_ms); }

static bool is_in(const uint32_t *list, uint32_t count, uint32_t task) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == task)
      return true;
  return false;
}

bool course_is_replica(const struct program *program, uint32_t task) {
  return strcmp(program_text(program, program_task(program, task)->job), program_text(program, program->replicated_job)) == 0;
}

/* Replicas have one state, and each is told where that stands before it asks here (replicas.h): its own ledger says it. Another one's may
 * be that of a process which has no state yet. */
static bool is_told_for(const struct course *course, uint32_t task) {
  return task == course->program->task || (course->program->init_flags & INIT_EVERYWHERE && course_is_replica(course->program, task));
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

/* One that was half made. */
static void course_free(struct course *course) {
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

status course_create(struct task *task, const struct task_options *options, struct course **out) {
  struct course *course = calloc(1, sizeof *course);
  if (!course)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  uint32_t tasks = (uint32_t)task_program(task)->tables[PROGRAM_TASKS].count;
  *course = (struct course){.own = {.task = task},
                            .task = task,
                            .program = task_program(task),
                            .options = options,
                            .phase_count = options->phase_count,
                            .command = 1,
                            .next = 1};
  pthread_mutex_init(&course->lock, NULL);
  monotonic_cond_init(&course->changed);
  course->phases = calloc((size_t)course->phase_count + 1, sizeof *course->phases);
  course->holders = calloc((size_t)tasks + 1, sizeof *course->holders);
  course->also = calloc((size_t)tasks + 1, sizeof *course->also);
  course->answers = calloc((size_t)tasks + 1, sizeof *course->answers);
  course->held = calloc((size_t)tasks + 1, sizeof *course->held);
  if (!course->phases || !course->holders || !course->also || !course->answers || !course->held) {
    course_free(course);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  read_phases(course);
  *out = course;
  return OK;
}

/* ---- lanes ---- */

#define LANE_STEPS (INT64_MAX / 2) /* without end */

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

/* The chief's `init` is expected to run there. */
static bool init_concerns(const struct course *course, uint32_t holder) {
  uint32_t init = task_find_entry(course->task, "init");
  if (init == PROGRAM_NONE || course->options->no_init)
    return false;
  const struct program_range tasks = program_entry(course->program, init)->tasks;
  return is_in(program_operands(course->program, tasks.first), tasks.count, holder);
}

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
      course_ask(course, course->holders[i], turn);
  }
}

/* Under the lock. */
static void forget_answers(struct course *course) {
  for (uint32_t i = 0; i < course->holder_count; i++)
    course->answers[course->holders[i]].has_come = false;
  driver_states_clear(&course->own.offered);
}

static uint32_t next_turn(struct course *course) {
  pthread_mutex_lock(&course->lock);
  course->turn = (course->turn + 1) & ((1u << TURN_LANE_SHIFT) - 1);
  course->turn = (course->turn ? course->turn : 1) | course->lane << TURN_LANE_SHIFT;
  uint32_t turn = course->turn;
  forget_answers(course);
  pthread_mutex_unlock(&course->lock);
  return turn;
}

/* Of one history. What a holder said that is gone, or has gone back since, is no answer any more: it does not know then that steps will
 * come to it, and a checkpoint would be without them there. */
static bool answers_agree(struct course *course) {
  bool agree = true;
  pthread_mutex_lock(&course->lock);
  for (uint32_t i = 1; i < course->holder_count && !FAULT(48); i++)
    agree = agree && course->answers[course->holders[i]].history == course->answers[course->holders[0]].history;
  if (!agree) {
    forget_answers(course);
    wait_changed(course, monotonic_ms() + AGREE_MS);
  }
  pthread_mutex_unlock(&course->lock);
  return agree;
}

static status await_answers(struct course *course, uint32_t turn) {
  uint64_t timeout_ms = (uint64_t)(course->options->timeout_s * 1000);
  for (uint32_t silent = 0; silent != PROGRAM_NONE;) {
    TRY(cluster_wait_peers(course->cluster, course->holders, course->holder_count));
    ask_silent(course, turn);
    pthread_mutex_lock(&course->lock);
    uint64_t until_ms = monotonic_ms() + ASK_AGAIN_MS, changes = course->changes;
    while ((silent = first_silent(course)) != PROGRAM_NONE && !course->is_stopped && changes == course->changes &&
           monotonic_ms() < until_ms)
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
      course->lacking_since_ms = monotonic_ms();
    if (has_answered && monotonic_ms() - course->lacking_since_ms > timeout_ms)
      return fail(UNAVAILABLE, "%s at %s has lost its variables, and nobody has initialised them again within %.3g s",
                  cluster_task_name(course->cluster, silent), cluster_task_address(course->cluster, silent), course->options->timeout_s);
  }
  course->lacking_since_ms = 0;
  return OK;
}

static status ask_all(struct course *course) {
  uint32_t turn = next_turn(course);
  do
    TRY(await_answers(course, turn));
  while (!answers_agree(course));
  return OK;
}

/* What all holders have of this driver's steps. */
static status collect_rows(struct course *course, struct ledger_row *rows, uint32_t *count) {
  struct ledger own = {0};
  uint64_t history;
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
  TRY(commit_ask(course->task, course->program->task, course->lane, &own, &history, &is_serving));
  const struct ledger_row *row = ledger_find(&own, course->program->task, course->lane);
  rows[*count] = row ? *row : (struct ledger_row){0};
  if (course->has_joined && rows[*count].command == course->command)
    rows[*count].finished = false; /* as above */
  (*count)++;
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
  return course->lane == 0 && !(course->holds && course_is_replica(course->program, course->program->task));
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

status course_await_init(struct course *course) {
  return course->cluster && course->step_count > 0 && course->holder_count > 0 && !FAULT(52) ? ask_all(course) : OK;
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
    course_tell_state(course, course->next);
  return request;
}

status course_begin(struct course *course) { return course_has_keeper(course) ? own_state_first(&course->own) : OK; }
status course_initialises(struct course *course) { return course_has_keeper(course) ? own_state_mark(&course->own) : OK; }

status course_draw_again(struct course *course, bool is_init) {
  if (!course_has_keeper(course))
    return OK;
  return is_init ? own_state_rebirth(&course->own) : own_state_back(&course->own);
}

status course_resume(struct course *course, bool *is_early, struct course_place *place, struct run_request *request) {
  uint64_t serial = course->repeated ? course->repeated : course->missing; /* not the next one: preparations may have been run */
  *is_early = false;
  if (!course_has_keeper(course))
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

uint64_t course_steps(const struct course *course) { return course->step_count; }

uint32_t course_command(const struct course *course) { return course->command; }

void course_end(struct course *course) {
  if (course->step_count > 0)
    course_tell_state(course, course->step_count + 1);
  course->next = course->step_count + 1;
  if (!FAULT(53))
    course->place = (struct course_place){course->phase_count, 0}; /* the last step comes again only when it is missing somewhere */
}

/* ---- failures ---- */

/* All are there, and nothing has changed since the step began: waits until somebody goes or comes, or it is time to try
 * again. */
static bool wait_for_change(struct course *course, uint64_t until_ms) {
  pthread_mutex_lock(&course->lock);
  while (course->changes == course->seen_changes && !course->is_stopped && monotonic_ms() < until_ms)
    wait_changed(course, until_ms);
  bool has_changed = course->changes != course->seen_changes && !course->is_stopped;
  pthread_mutex_unlock(&course->lock);
  return has_changed;
}

static void count_failure(struct course *course, uint64_t serial) {
  if (course->failures == 0 || course->failing_serial != serial) {
    course->failures = 0;
    course->failing_since_ms = monotonic_ms();
    course->failing_serial = serial;
  }
  course->failures++;
}

static bool somebody_is_missing(const struct course *course) {
  bool was_up, is = false;
  for (uint32_t i = 0; i < course->program->tables[PROGRAM_TASKS].count; i++)
    is = is || (i != course->program->task && cluster_missing_ms(course->cluster, i, &was_up) > 0);
  return is;
}

/* For how long the one of those that a course cannot go on without has been missing that has been so longest. */
static uint64_t longest_missing_ms(const struct course *course, const struct program_entry *entry) {
  const struct program *program = course->program;
  const uint32_t *tasks = program_operands(program, entry->tasks.first);
  bool has_replicas = program->init_flags & INIT_EVERYWHERE && !course->options->elastic, was_up;
  uint64_t longest = 0;
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++) {
    bool is_needed = is_in(course->holders, course->holder_count, i) || is_in(tasks, entry->tasks.count, i) ||
                     (has_replicas && course_is_replica(program, i));
    uint64_t missing = is_needed && i != program->task ? cluster_missing_ms(course->cluster, i, &was_up) : 0;
    longest = missing > longest ? missing : longest;
  }
  return longest;
}

/* A step that others have waited in for as long as they may is not tried again: its failure is that somebody was lost. */
static status end_waiting(const struct course *course) {
  return fail(course->cluster && somebody_is_missing(course) ? UNAVAILABLE : DEADLINE_EXCEEDED, "%s", status_text());
}

status course_recover(struct course *course, struct course_place place, status failure) {
  if (failure == DEADLINE_EXCEEDED)
    return end_waiting(course);
  if (!course->cluster || (failure != UNAVAILABLE && failure != ABORTED) || course->phase_count == 0)
    return failure;
  char text[2048];
  uint64_t timeout_ms = (uint64_t)(course->options->timeout_s * 1000);
  snprintf(text, sizeof text, "%s", status_text());
  count_failure(course, course_serial(course->phases, place) + 1);
  uint32_t phase = place.phase < course->phase_count ? place.phase : course->phase_count - 1; /* all was done: the last one's tasks */
  const struct program_entry *entry = program_entry(course->program, task_find_entry(course->task, course->options->phases[phase].entry));
  uint64_t missing_ms = longest_missing_ms(course, entry), end_ms = course->failing_since_ms + timeout_ms;
  if (monotonic_ms() + timeout_ms - missing_ms < end_ms)
    end_ms = monotonic_ms() + timeout_ms - missing_ms;
  if (failure == ABORTED && course->failures > TRIES_AT_ONCE)
    wait_for_change(course, monotonic_ms() + TRY_AGAIN_MS);
  bool may_try = failure == ABORTED || wait_for_change(course, end_ms);
  pthread_mutex_lock(&course->lock);
  may_try = may_try && !course->is_stopped;
  course->seen_changes = course->changes;
  pthread_mutex_unlock(&course->lock);
  may_try = may_try && !(course->is_over && course->is_over(course->is_over_self));
  if (!may_try || (course->failures > TRIES_AT_ONCE && monotonic_ms() > end_ms))
    return fail(failure, "%s", text);
  return cluster_wait_peers(course->cluster, program_operands(course->program, entry->tasks.first), entry->tasks.count);
}
