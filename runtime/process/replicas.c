/* replicas.c: what is said between replicas, and how a state travels: the values of all variables as transfers of a step of the receiver's,
 * then, in order behind them, the message that says which state it is. */
#include "runtime/process/replicas.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cluster/control.h"
#include "runtime/cluster/view.h"
#include "runtime/memory/variable.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/commit.h"
#include "runtime/step/crew.h"
#include "runtime/step/task_state.h"

#define LOOK_MS 200 /* between looks whether the other side is still the same */
#define EVEN_MS 5   /* between looks whether the last round is applied here */
#define FREEZE_MS 1000
#define CANNOT_MS 100 /* before who has no memory for its state is asked again */

enum talk_kind {
  TALK_TELL = 1, /* to the registrar: what I have; may I go on? */
  TALK_GO,       /* from the registrar: yes, with this state, which came before if `is_copied` */
  TALK_ASK,      /* from the registrar: give me your state */
  TALK_GIVEN,    /* to the registrar: it came before this */
  TALK_NONE,     /* from the first worker: it does not train */
  TALK_GONE,     /* from the registrar: it had fewer steps than the others, who have left with what they did without it */
  TALK_WHAT,     /* from the registrar, to who has finished and tells no more: what do you have? */
  TALK_HAS,      /* to the registrar: this */
  TALK_CANNOT,   /* to whoever asked for a state: there is no memory for a copy of it now */
};
struct talk {
  uint32_t kind, is_copied;
  uint64_t request, step; /* step: whose transfers the receiver waits for */
  uint64_t view, round;
  uint32_t command, has_state;
};
struct answer {
  bool has_come;
  struct talk talk;
};

struct replicas {
  struct task *task;
  struct cluster *cluster;
  const struct program *program;
  const struct task_options *options;
  uint32_t *seats, count, self; /* tasks; self: the seat */
  bool trains;
  uint64_t rounds; /* that this task's command takes part in */
  struct view_state own;
  pthread_mutex_t lock; /* all below */
  pthread_cond_t changed;
  struct view view; /* of the registrar: seat 0 */
  uint64_t requests;
  struct answer answer;
  uint64_t cannot_ms; /* since when whoever is asked has no memory for its state; 0: it has */
  bool is_stopped, is_serving;
};

/* Under the lock. */
static void wait_changed(struct replicas *r, uint64_t ms) { monotonic_wait(&r->changed, &r->lock, monotonic_ms() + ms); }

static bool is_registrar(const struct replicas *r) { return r->self == 0; }
static status stopped(void) { return fail(CANCELLED, "the task was stopped"); }

static bool say(struct replicas *r, uint32_t seat, const struct talk *talk) {
  return cluster_send_control(r->cluster, r->seats[seat], CONTROL_VIEW, talk, sizeof *talk);
}

/* ---- states ---- */

static bool is_copied(const struct variable *variable) { return !variable_is_random(variable); }

/* What this task has of a driver's steps. */
static struct ledger_row row_of(struct task *task, uint32_t driver) {
  struct ledger ledger = {0};
  struct ledger_row row = {.driver = driver, .command = 1};
  if (commit_ledger(task, &ledger) == OK) {
    const struct ledger_row *found = ledger_find(&ledger, driver, 0);
    row = found ? *found : row;
    ledger_deinit(&ledger);
  }
  return row;
}

/* A copy of each variable's value; NULL: it has none. */
static status take_values(struct task *task, struct tensor **out) {
  for (uint32_t i = 0; i < task->variable_count; i++) {
    out[i] = NULL;
    if (is_copied(&task->variables[i]))
      TRY(variable_copy(&task->variables[i], &out[i]));
  }
  return OK;
}

/* Gives up the references. */
static status send_values(struct replicas *r, uint32_t seat, uint64_t step, struct tensor **values) {
  struct task *task = r->task;
  struct tensor *present;
  int64_t count = task->variable_count;
  TRY(tensor_create(DTYPE_UINT8, &(struct shape){1, {count}}, &present));
  for (int64_t i = 0; i < count; i++)
    ((uint8_t *)present->data)[i] = values[i] != NULL;
  task->exchange->send(task->exchange->self, r->seats[seat], step, TRANSFER_STATE, present);
  for (int64_t i = 0; i < count; i++) {
    if (values[i])
      task->exchange->send(task->exchange->self, r->seats[seat], step, TRANSFER_STATE + 1 + (uint32_t)i, values[i]);
    values[i] = NULL;
  }
  return OK;
}

static status load_value(struct task *task, uint64_t step, uint32_t i) {
  struct tensor *value = rendezvous_poll(task->rendezvous, step, TRANSFER_STATE + 1 + i);
  if (!value)
    return fail(INTERNAL, "the state that was copied lacks variable '%s'", task->variables[i].name);
  status result = variable_assign(&task->variables[i], &value->shape, value->data);
  tensor_release(value);
  return result;
}

/* What has come behind each other before the message that said so. */
static status load_values(struct task *task, uint64_t step) {
  struct tensor *present = rendezvous_poll(task->rendezvous, step, TRANSFER_STATE);
  status result = present && present->count == task->variable_count ? OK : fail(INTERNAL, "a state of other variables was copied");
  for (uint32_t i = 0; i < task->variable_count && result == OK; i++)
    if (is_copied(&task->variables[i])) {
      if (((const uint8_t *)present->data)[i])
        result = load_value(task, step, i);
      else
        variable_forget(&task->variables[i]);
    }
  tensor_release(present);
  return result;
}

static status place_own(struct replicas *r, const struct talk *talk) {
  pthread_mutex_lock(&r->lock);
  r->own = (struct view_state){true, talk->command, talk->view, talk->round};
  pthread_mutex_unlock(&r->lock);
  return commit_place(r->task, r->program->task, talk->command, talk->round);
}

/* This replica has the state now that the message names: nobody who copies it meanwhile takes values of one for those of another. */
static status adopt(struct replicas *r, const struct talk *talk, uint64_t step) {
  bool is_frozen = false;
  if (!talk->is_copied)
    return place_own(r, talk);
  for (int i = 0; i < 30 && !is_frozen; i++)
    is_frozen = commit_freeze(r->task, FREEZE_MS);
  if (!is_frozen)
    return fail(UNAVAILABLE, "the state of another replica could not be taken over: a step does not end");
  status result = load_values(r->task, step);
  if (result == OK)
    result = place_own(r, talk);
  commit_thaw(r->task);
  return result;
}

/* ---- asking ---- */

/* A question, and its answer; *has_come is false when the other side is not the same any more, so that it has to be asked again. */
static status ask(struct replicas *r, uint32_t seat, struct talk *talk, bool *has_come) {
  bool is_same = true;
  uint64_t session = cluster_session(r->cluster, r->seats[seat]);
  pthread_mutex_lock(&r->lock);
  talk->request = ++r->requests;
  r->answer.has_come = false;
  pthread_mutex_unlock(&r->lock);
  is_same = session != 0 && say(r, seat, talk);
  pthread_mutex_lock(&r->lock);
  while (!r->answer.has_come && !r->is_stopped && is_same) {
    wait_changed(r, LOOK_MS);
    pthread_mutex_unlock(&r->lock);
    is_same = cluster_session(r->cluster, r->seats[seat]) == session;
    pthread_mutex_lock(&r->lock);
  }
  *has_come = r->answer.has_come;
  bool is_stopped = r->is_stopped;
  if (*has_come)
    *talk = r->answer.talk;
  pthread_mutex_unlock(&r->lock);
  return is_stopped ? stopped() : OK;
}

static status check_answer(const struct replicas *r, uint32_t seat, const struct talk *talk) {
  const char *name = cluster_task_name(r->cluster, r->seats[seat]), *address = cluster_task_address(r->cluster, r->seats[seat]);
  if (talk->kind == TALK_NONE)
    return fail(FAILED_PRECONDITION, "%s at %s does not train: it has no state to give", name, address);
  if (talk->kind == TALK_GONE)
    return fail(UNAVAILABLE,
                "%s at %s has finished its steps, and those that went on without it have left: nobody has their state any more", name,
                address);
  return OK;
}

/* It is asked again after a while: *has_come is false then. UNAVAILABLE: it has had no memory for its state for the time-out. */
static status check_memory(struct replicas *r, uint32_t seat, const struct talk *talk, bool *has_come) {
  uint64_t now_ms = monotonic_ms();
  pthread_mutex_lock(&r->lock);
  r->cannot_ms = talk->kind != TALK_CANNOT ? 0 : r->cannot_ms ? r->cannot_ms : now_ms;
  bool is_late = r->cannot_ms && now_ms - r->cannot_ms >= (uint64_t)(r->options->timeout_s * 1000);
  if (r->cannot_ms && !is_late && !r->is_stopped)
    wait_changed(r, CANNOT_MS);
  *has_come = !r->cannot_ms;
  bool is_stopped = r->is_stopped;
  pthread_mutex_unlock(&r->lock);
  if (is_late)
    return fail(UNAVAILABLE, "%s at %s has had no memory for a copy of its state within %.3g s",
                cluster_task_name(r->cluster, r->seats[seat]), cluster_task_address(r->cluster, r->seats[seat]), r->options->timeout_s);
  return is_stopped ? stopped() : OK;
}

/* The same as one step of ours, whose transfers the state is. */
static status ask_for_state(struct replicas *r, uint32_t seat, struct talk *talk, bool *has_come) {
  struct step *step = calloc(1, sizeof *step);
  if (!step)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  step_begin_background(step, r->task, 0);
  talk->step = step->id;
  status result = ask(r, seat, talk, has_come);
  if (result == OK && *has_come)
    result = check_memory(r, seat, talk, has_come);
  if (result == OK && *has_come)
    result = check_answer(r, seat, talk);
  if (result == OK && *has_come && (talk->kind == TALK_GO || talk->has_state))
    result = adopt(r, talk, step->id);
  step_end_background(step);
  rendezvous_end(r->task->rendezvous, step->id);
  free(step);
  return result;
}

/* ---- serving ---- */

static bool is_applied(void *self, uint32_t command, uint64_t serial) {
  struct task *task = self;
  return commit_has(task, task->program->task, command, serial);
}

/* The last round that was decided here is applied to this replica. */
static bool is_even(struct replicas *r) { return hall_is_applied(r->task->hall, r->program->task, is_applied, r->task); }

static struct view_state own_state(struct replicas *r) {
  pthread_mutex_lock(&r->lock);
  struct view_state own = r->own;
  pthread_mutex_unlock(&r->lock);
  return own;
}

/* A moment between two rounds: the values are copied, `step` is the last one that they have of seat's driver, *own what they are. */
static status copy_between_rounds(struct replicas *r, uint32_t seat, struct tensor **values, struct ledger_row *row,
                                  struct view_state *own) {
  for (;;) {
    pthread_mutex_lock(&r->lock);
    bool goes_on = !r->is_stopped;
    if (goes_on && !is_even(r))
      wait_changed(r, EVEN_MS);
    pthread_mutex_unlock(&r->lock);
    if (!goes_on)
      return stopped();
    if (!is_even(r) || !commit_freeze(r->task, FREEZE_MS))
      continue;
    bool is_still_even = is_even(r);
    status result = is_still_even ? take_values(r->task, values) : OK;
    *row = row_of(r->task, r->program->task);
    *own = own_state(r);
    struct ledger_row theirs = row_of(r->task, r->seats[seat]);
    uint64_t taken = hall_last_serial(r->task->hall, r->seats[seat]);
    if (is_registrar(r) && !r->options->elastic && (theirs.last > 0 || taken > 0)) {
      *row = theirs;
      row->last = taken > row->last ? taken : row->last;
    }
    commit_thaw(r->task);
    if (is_still_even || result != OK)
      return result;
  }
}

static void drop_values(const struct replicas *r, struct tensor **values) {
  for (uint32_t i = 0; values && i < r->task->variable_count; i++)
    tensor_release(values[i]);
  free(values);
}

/* The registrar has finished, and others have gone on: how many rounds one that lives has, as it has told, or as those decided here say. */
static uint64_t rounds_of(struct replicas *r, uint32_t seat) {
  uint32_t task = r->seats[seat];
  uint64_t taken = hall_last_serial(r->task->hall, task), done = row_of(r->task, task).last;
  pthread_mutex_lock(&r->lock);
  struct view_seat told = r->view.seat[seat];
  bool is_of_view = told.state.has_state && told.state.view == r->view.number;
  pthread_mutex_unlock(&r->lock);
  if (told.has_told && told.session == cluster_session(r->cluster, task))
    return is_of_view ? told.state.round : 0;
  return !hall_is_admitted(r->task->hall, task) ? 0 : taken > done ? taken : done;
}

/* From all that live and have more; who has is asked until it has applied its last round, or is lost. */
static status catch_up(struct replicas *r) {
  for (uint32_t i = 1; i < r->count; i++)
    while (rounds_of(r, i) > row_of(r->task, r->program->task).last) {
      bool has_come;
      struct talk talk = {.kind = TALK_ASK};
      TRY(ask_for_state(r, i, &talk, &has_come));
      commit_finish(r->task, r->program->task, true); /* as it had before */
      pthread_mutex_lock(&r->lock);
      wait_changed(r, EVEN_MS);
      pthread_mutex_unlock(&r->lock);
    }
  return OK;
}

/* What nobody has any more who lives is done again, in another view. UNAVAILABLE: it was not lost: who had it has left with it. */
static status go_on_from_here(struct replicas *r) {
  uint64_t decided = 0;
  bool has_left = false;
  for (uint32_t i = 0; i < r->count; i++) {
    uint64_t taken = hall_last_serial(r->task->hall, r->seats[i]);
    decided = taken > decided ? taken : decided;
    has_left = has_left || (i > 0 && cluster_had_finished(r->cluster, r->seats[i]));
  }
  bool is_undone = decided > row_of(r->task, r->program->task).last;
  if (is_undone && has_left)
    return fail(UNAVAILABLE, "nobody has the state any more");
  if (is_undone)
    hall_undo(r->task->hall);
  pthread_mutex_lock(&r->lock);
  r->own.view = is_undone ? view_begin(&r->view) : r->view.number;
  pthread_mutex_unlock(&r->lock);
  return OK;
}

/* Rounds need nobody who has finished: the registrar, too, may lack what others have done since. */
static status come_even(struct replicas *r) {
  if (!hall_is_behind(r->task->hall, r->program->task) || FAULT(41))
    return OK;
  TRY(catch_up(r));
  return go_on_from_here(r);
}

/* The registrar answers one that waits. */
static void serve_seat(struct replicas *r, uint32_t seat, const struct view_seat *asked) {
  struct tensor **values = calloc((size_t)r->task->variable_count + 1, sizeof *values);
  struct ledger_row row = {0};
  struct view_state own;
  hall_join(r->task->hall, r->seats[seat]);
  bool is_gone = come_even(r) != OK;
  status result = values ? copy_between_rounds(r, seat, values, &row, &own) : fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_lock(&r->lock);
  const struct view_seat *now = &r->view.seat[seat];
  bool is_same = now->session == asked->session && now->request == asked->request;
  if (is_same && cluster_session(r->cluster, r->seats[seat]) != asked->session)
    view_forget(&r->view, seat);
  bool is_asked = result == OK && is_same && now->has_told;
  bool copies = is_asked && view_serve(&r->view, seat, row.last);
  struct talk talk = {
    .kind = TALK_GO, .is_copied = copies, .request = asked->request, .view = r->view.number, .round = row.last, .command = row.command};
  if (is_gone) /* nobody goes on from an older state */
    talk = (struct talk){.kind = TALK_GONE, .request = asked->request};
  if (result != OK)
    view_forget(&r->view, seat);
  pthread_mutex_unlock(&r->lock);
  if (is_asked && is_gone)
    say(r, seat, &talk);
  else if (copies)
    result = send_values(r, seat, asked->step, values);
  if (is_same && result == RESOURCE_EXHAUSTED)
    say(r, seat, &(struct talk){.kind = TALK_CANNOT, .request = asked->request});
  if (is_asked && !is_gone && result == OK && commit_place(r->task, r->seats[seat], row.command, row.last) == OK) {
    hall_admit(r->task->hall, r->seats[seat]);
    if (cluster_session(r->cluster, r->seats[seat]) == asked->session)
      say(r, seat, &talk);
    else
      hall_lose(r->task->hall, r->seats[seat]); /* meanwhile, and another process may be there that has not told */
  }
  drop_values(r, values);
}

/* On a thread of the crew. */
static void serve_all(void *self) {
  struct replicas *r = self;
  for (;;) {
    pthread_mutex_lock(&r->lock);
    uint32_t seat = r->is_stopped ? VIEW_NOBODY : view_next(&r->view);
    struct view_seat asked = seat == VIEW_NOBODY ? (struct view_seat){0} : r->view.seat[seat];
    r->is_serving = seat != VIEW_NOBODY;
    pthread_mutex_unlock(&r->lock);
    if (seat == VIEW_NOBODY)
      return;
    serve_seat(r, seat, &asked);
  }
}

/* Under the lock. */
static void start_serving(struct replicas *r) {
  if (r->is_serving || r->is_stopped || view_next(&r->view) == VIEW_NOBODY)
    return;
  r->is_serving = crew_run(r->task->crew, serve_all, r) == OK;
}

/* ---- a survivor gives its state to the registrar ---- */

struct gift {
  struct replicas *replicas;
  uint64_t request, step;
};

static void give_state(void *argument) {
  struct gift gift = *(struct gift *)argument;
  free(argument);
  struct replicas *r = gift.replicas;
  struct tensor **values = calloc((size_t)r->task->variable_count + 1, sizeof *values);
  struct ledger_row row = {0};
  struct view_state own;
  status result = values ? copy_between_rounds(r, 0, values, &row, &own) : RESOURCE_EXHAUSTED;
  if (result == OK)
    result = send_values(r, 0, gift.step, values);
  if (result == RESOURCE_EXHAUSTED)
    say(r, 0, &(struct talk){.kind = TALK_CANNOT, .request = gift.request});
  else if (result == OK)
    say(r, 0, &(struct talk){TALK_GIVEN, true, gift.request, gift.step, own.view, row.last, row.command, own.has_state});
  drop_values(r, values);
}

static void start_giving(struct replicas *r, const struct talk *talk) {
  struct gift *gift = malloc(sizeof *gift);
  if (gift)
    *gift = (struct gift){r, talk->request, talk->step};
  if (gift && crew_run(r->task->crew, give_state, gift) == OK)
    return;
  free(gift);
  say(r, 0, &(struct talk){.kind = TALK_CANNOT, .request = talk->request});
}

/* ---- hearing ---- */

static struct talk what_is_here(struct replicas *r, enum talk_kind kind) {
  struct ledger_row row = row_of(r->task, r->program->task);
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
    say(r, seat, &(struct talk){.kind = TALK_NONE, .request = t->request});
    return;
  }
  struct view_state state = {t->has_state, t->command, t->view, t->round};
  pthread_mutex_lock(&r->lock);
  view_tell(&r->view, seat, cluster_session(r->cluster, r->seats[seat]), t->request, t->step, &state);
  start_serving(r);
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
    say(r, 0, &talk);
  } else if (talk.kind == TALK_ASK && seat == 0) {
    start_giving(r, &talk);
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
    TRY(ask_for_state(r, 0, &talk, &has_come));
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
      say(r, i, &(struct talk){.kind = TALK_WHAT});
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
      wait_changed(r, LOOK_MS);
    }
    pthread_mutex_unlock(&r->lock);
    if (is_stopped)
      return stopped();
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
  status result = ask_for_state(r, source, &talk, &has_come);
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
  struct ledger_row row = row_of(r->task, r->program->task);
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
      start_serving(r);
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
