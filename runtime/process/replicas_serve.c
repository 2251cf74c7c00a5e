/* replicas_serve.c: replicas that give their state: the registrar to those that wait, a survivor to the registrar. A copy is taken between two
 * rounds, when the last one is applied. */
#include <stdlib.h>

#include "runtime/process/replicas_state.h"

/* ---- between rounds ---- */

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

/* Waits for a moment between two rounds, in which nobody else looks at the variables either. CANCELLED. */
static status freeze_between_rounds(struct replicas *r) {
  for (;;) {
    pthread_mutex_lock(&r->lock);
    bool is_stopped = r->is_stopped;
    pthread_mutex_unlock(&r->lock);
    if (is_stopped)
      return replicas_stopped();
    if (is_even(r) && commit_freeze(r->task, FREEZE_MS)) {
      if (is_even(r))
        return OK;
      commit_thaw(r->task);
    }
    pthread_mutex_lock(&r->lock);
    if (!r->is_stopped)
      replicas_wait(r, EVEN_MS);
    pthread_mutex_unlock(&r->lock);
  }
}

/* Copies the values as they are then; *row: the last step of the seat's driver that they have, *own: what they are. */
static status copy_between_rounds(struct replicas *r, uint32_t seat, struct tensor **values, struct ledger_row *row,
                                  struct view_state *own) {
  TRY(freeze_between_rounds(r));
  status result = replicas_take_values(r->task, values);
  *row = replicas_row(r->task, r->program->task);
  *own = own_state(r);
  struct ledger_row theirs = replicas_row(r->task, r->seats[seat]);
  uint64_t taken = hall_last_serial(r->task->hall, r->seats[seat]);
  if (is_registrar(r) && !r->options->elastic && (theirs.last > 0 || taken > 0)) {
    *row = theirs;
    row->last = taken > row->last ? taken : row->last;
  }
  commit_thaw(r->task);
  return result;
}

static void drop_values(const struct replicas *r, struct tensor **values) {
  for (uint32_t i = 0; values && i < r->task->variable_count; i++)
    tensor_release(values[i]);
  free(values);
}

/* The registrar has finished, and others have gone on: how many rounds one that lives has, as it has told, or as those decided here say. */
static uint64_t rounds_of(struct replicas *r, uint32_t seat) {
  uint32_t task = r->seats[seat];
  uint64_t taken = hall_last_serial(r->task->hall, task), done = replicas_row(r->task, task).last;
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
    while (rounds_of(r, i) > replicas_row(r->task, r->program->task).last) {
      bool has_come;
      struct talk talk = {.kind = TALK_ASK};
      TRY(replicas_ask_for_state(r, i, &talk, &has_come));
      commit_finish(r->task, r->program->task, true); /* as it had before */
      pthread_mutex_lock(&r->lock);
      replicas_wait(r, EVEN_MS);
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
  bool is_undone = decided > replicas_row(r->task, r->program->task).last;
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
    replicas_say(r, seat, &talk);
  else if (copies)
    result = replicas_send_values(r, seat, asked->step, values);
  if (is_same && result == RESOURCE_EXHAUSTED)
    replicas_say(r, seat, &(struct talk){.kind = TALK_CANNOT, .request = asked->request});
  if (is_asked && !is_gone && result == OK && commit_place(r->task, r->seats[seat], row.command, row.last) == OK) {
    hall_admit(r->task->hall, r->seats[seat]);
    if (cluster_session(r->cluster, r->seats[seat]) == asked->session)
      replicas_say(r, seat, &talk);
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

void replicas_start_serving(struct replicas *r) {
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
    result = replicas_send_values(r, 0, gift.step, values);
  if (result == RESOURCE_EXHAUSTED)
    replicas_say(r, 0, &(struct talk){.kind = TALK_CANNOT, .request = gift.request});
  else if (result == OK)
    replicas_say(r, 0, &(struct talk){TALK_GIVEN, true, gift.request, gift.step, own.view, row.last, row.command, own.has_state});
  drop_values(r, values);
}

void replicas_start_giving(struct replicas *r, const struct talk *talk) {
  struct gift *gift = malloc(sizeof *gift);
  if (gift)
    *gift = (struct gift){r, talk->request, talk->step};
  if (gift && crew_run(r->task->crew, give_state, gift) == OK)
    return;
  free(gift);
  replicas_say(r, 0, &(struct talk){.kind = TALK_CANNOT, .request = talk->request});
}
