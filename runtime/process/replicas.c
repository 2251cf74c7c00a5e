/* replicas.c: what is said between replicas: who hears what, how a task joins the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/process/replicas_state.h"

/* ---- hearing ---- */

static struct talk what_is_here(struct replicas *r, enum talk_kind kind) {
  struct ledger_row row = replicas_row(r->task, r->program->task);
  pthread_mutex_lock(&r->lock);
  struct talk talk = {.kind = kind, .view = r->own.view, .round = row.last, .command = row.command, .has_state = r->own.has_state};
  pthread_mutex_unlock(&r->lock);
  return talk;
}

static uint32_t seat_of(const struct replicas *r, uint32_t task) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->seats[i] == task)
      return i;
  return VIEW_NOBODY;
}

static void hear_tell(struct replicas *r, uint32_t seat, const struct talk *t) {
  if (!r->trains) {
    replicas_say(r, seat, &(struct talk){.kind = TALK_NONE, .request = t->request});
    return;
  }
  struct view_state state = {t->has_state, t->command, t->view, t->round};
  pthread_mutex_lock(&r->lock);
  view_tell(&r->view, seat, cluster_session(r->cluster, r->seats[seat]), t->request, t->step, &state);
  replicas_start_serving(r);
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

static void hear_has(struct replicas *r, uint32_t seat, const struct talk *t) {
  struct view_state state = {t->has_state, t->command, t->view, t->round};
  pthread_mutex_lock(&r->lock);
  view_finish(&r->view, seat, cluster_session(r->cluster, r->seats[seat]), &state);
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

static void hear(void *self, uint32_t from, const void *data, size_t size) {
  struct replicas *r = self;
  struct talk talk;
  uint32_t seat = seat_of(r, from);
  if (size != sizeof talk || seat == VIEW_NOBODY)
    return;
  memcpy(&talk, data, sizeof talk);
  if (talk.kind == TALK_TELL && is_registrar(r)) {
    hear_tell(r, seat, &talk);
  } else if (talk.kind == TALK_HAS && is_registrar(r)) {
    hear_has(r, seat, &talk);
  } else if (talk.kind == TALK_WHAT && seat == 0) {
    talk = what_is_here(r, TALK_HAS);
    replicas_say(r, 0, &talk);
  } else if (talk.kind == TALK_ASK && seat == 0) {
    replicas_start_giving(r, &talk);
  } else {
    pthread_mutex_lock(&r->lock);
    if (talk.request == r->requests)
      r->answer = (struct answer){true, talk};
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
  }
}

/* ---- joining ---- */

static void say_state(const struct replicas *r, const struct talk *talk) {
  if (talk->is_copied && talk->round > 0)
    fprintf(stderr, "%s: has the state of the other replicas, after step %llu\n", cluster_task_name(r->cluster, r->program->task),
            (unsigned long long)talk->round);
}

static status join_others(struct replicas *r) {
  bool has_come = false;
  while (!has_come) {
    TRY(cluster_wait_peers(r->cluster, &r->seats[0], 1));
    struct talk talk = what_is_here(r, TALK_TELL);
    TRY(replicas_ask_for_state(r, 0, &talk, &has_come));
    if (has_come)
      say_state(r, &talk);
  }
  return OK;
}

static bool has_finished(const struct replicas *r, uint32_t seat) { return cluster_has_finished(r->cluster, r->seats[seat]); }

/* Under the lock. What was told by one that is gone does not hold; who has finished does not tell by itself. */
static void look_at_seats(struct replicas *r) {
  for (uint32_t i = 1; i < r->count; i++) {
    uint64_t session = cluster_session(r->cluster, r->seats[i]);
    if (r->view.seat[i].session != session)
      view_forget(&r->view, i);
    if (cluster_has_left_well(r->cluster, r->seats[i]))
      view_leave(&r->view, i);
    if (session && has_finished(r, i) && view_ask(&r->view, i, session))
      replicas_say(r, i, &(struct talk){.kind = TALK_WHAT});
  }
}

/* Who has all there is: the others need not come. */
static bool somebody_has_all(const struct replicas *r) {
  for (uint32_t i = 1; i < r->count && !r->options->elastic; i++)
    if (has_finished(r, i))
      return true;
  return false;
}

/* But for those who have left. */
static status wait_others(struct replicas *r) {
  for (uint32_t i = 0; i < r->count; i++)
    if (!cluster_has_left_well(r->cluster, r->seats[i]))
      TRY(cluster_wait_peers(r->cluster, &r->seats[i], 1));
  return OK;
}

/* The registrar has no state: all have to tell what they have, but where one has all there is, and but those who have left: as all had
 * finished then, who is there and has all steps of this task has enough. */
static status gather(struct replicas *r) {
  for (;;) {
    pthread_mutex_lock(&r->lock);
    look_at_seats(r);
    bool is_stopped = r->is_stopped, waits = view_waits_for(&r->view) != VIEW_NOBODY, is_lost = false;
    if (!waits) {
      view_settle(&r->view);
      is_lost = view_is_lost(&r->view, r->rounds);
    } else if (!is_stopped) {
      replicas_wait(r, LOOK_MS);
    }
    pthread_mutex_unlock(&r->lock);
    if (is_stopped)
      return replicas_stopped();
    if (is_lost)
      return fail(UNAVAILABLE, "others have finished and left, and nobody who is there has the state of all steps any more");
    if (!waits)
      return OK;
    status waited = wait_others(r);
    if (waited != OK && !somebody_has_all(r))
      return waited;
  }
}

/* All others are, in this task's ledger too, where the state is. */
static status place_all(struct replicas *r, const struct talk *talk) {
  for (uint32_t i = 0; i < r->count; i++)
    TRY(commit_place(r->task, r->seats[i], talk->command, talk->round));
  return OK;
}

static status fetch(struct replicas *r, uint32_t source) {
  bool has_come;
  struct talk talk = {.kind = TALK_ASK};
  status result = replicas_ask_for_state(r, source, &talk, &has_come);
  has_come = has_come && talk.has_state; /* else it was started again since it told */
  if (result == OK && has_come)
    result = place_all(r, &talk);
  pthread_mutex_lock(&r->lock);
  view_fetched(&r->view, result == OK && has_come, talk.view);
  r->own.view = r->view.number;
  pthread_mutex_unlock(&r->lock);
  if (result == OK && has_come)
    say_state(r, &talk);
  return result;
}

/* A checkpoint whose chief had done its steps, and that has been gone back to: all replicas had, as their rounds were the same. It is the
 * next command for all of them, whoever comes first. */
static status begin_command(struct replicas *r) {
  struct ledger_row row = replicas_row(r->task, r->program->task);
  pthread_mutex_lock(&r->lock);
  bool is_first = !r->own.has_state;
  pthread_mutex_unlock(&r->lock);
  return is_first && row.finished ? place_all(r, &(struct talk){.command = row.command + 1}) : OK;
}

static status join_as_registrar(struct replicas *r) {
  for (;;) {
    pthread_mutex_lock(&r->lock);
    enum view_phase phase = r->view.phase;
    uint32_t source = r->view.source;
    pthread_mutex_unlock(&r->lock);
    if (phase == VIEW_SERVES)
      TRY(begin_command(r)); /* before anybody is told where the replicas are */
    pthread_mutex_lock(&r->lock);
    if (phase == VIEW_SERVES) {
      r->own.has_state = true;
      r->own.view = r->view.number;
      replicas_start_serving(r);
    }
    pthread_mutex_unlock(&r->lock);
    if (phase == VIEW_SERVES) {
      hall_admit(r->task->hall, r->program->task);
      return OK;
    }
    TRY(phase == VIEW_GATHERS ? gather(r) : fetch(r, source));
  }
}

status replicas_join(struct replicas *r, uint64_t rounds) {
  if (!r || !r->trains)
    return OK;
  r->rounds = rounds;
  return is_registrar(r) ? join_as_registrar(r) : join_others(r);
}

bool replicas_decide_rounds(const struct replicas *r) { return r && r->trains && is_registrar(r); }

bool replicas_serve_others(const struct replicas *r) { return r && r->trains && (is_registrar(r) || !FAULT(40)); }

/* ---- life ---- */

static void list_seats(struct replicas *r) {
  const char *job = program_text(r->program, r->program->replicated_job);
  for (uint32_t i = 0; i < r->program->tables[PROGRAM_TASKS].count; i++) {
    if (strcmp(program_text(r->program, program_task(r->program, i)->job), job) != 0)
      continue;
    if (i == r->program->task)
      r->self = r->count;
    r->seats[r->count++] = i;
  }
}

/* Some phase meets the others in rounds: its entry has a part on the first worker. */
static bool phases_train(const struct replicas *r) {
  for (uint32_t i = 0; i < r->options->phase_count; i++) {
    uint32_t number = task_find_entry(r->task, r->options->phases[i].entry);
    if (number != PROGRAM_NONE && program_entry(r->program, number)->tasks.count > 0)
      return true;
  }
  return false;
}

status replicas_create(struct task *task, struct cluster *cluster, const struct task_options *options, struct replicas **out) {
  const struct program *program = task_program(task);
  *out = NULL;
  if (!(program->init_flags & INIT_EVERYWHERE) || program->tables[PROGRAM_TASKS].count < 2)
    return OK;
  struct replicas *r = calloc(1, sizeof *r);
  if (!r)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  *r = (struct replicas){.task = task, .cluster = cluster, .program = program, .options = options, .self = VIEW_NOBODY};
  pthread_mutex_init(&r->lock, NULL);
  monotonic_cond_init(&r->changed);
  r->seats = calloc(program->tables[PROGRAM_TASKS].count, sizeof *r->seats);
  if (r->seats)
    list_seats(r);
  if (!r->seats || !view_init(&r->view, r->count, 0, options->elastic)) {
    replicas_destroy(r);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  r->trains = r->self != VIEW_NOBODY && phases_train(r);
  cluster_on_control(cluster, CONTROL_VIEW, hear, r);
  if (is_registrar(r))
    hall_require_admission(task->hall, (uint32_t)program->tables[PROGRAM_TASKS].count);
  *out = r;
  return OK;
}

void replicas_stop(struct replicas *r) {
  if (!r)
    return;
  pthread_mutex_lock(&r->lock);
  r->is_stopped = true;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

void replicas_destroy(struct replicas *r) {
  if (!r)
    return;
  view_deinit(&r->view);
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
  free(r->seats);
  free(r);
}
