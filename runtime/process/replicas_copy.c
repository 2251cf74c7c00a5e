/* replicas_copy.c: how a state travels between replicas: the values of all variables as transfers of a step of the receiver's, then, in order
 * behind them, the message that says which state it is; and how one is asked for. */
#include <stdlib.h>

#include "runtime/process/replicas_state.h"

/* ---- states ---- */

static bool is_copied(const struct variable *variable) { return !variable_is_random(variable); }

struct ledger_row replicas_row(struct task *task, uint32_t driver) {
  struct ledger ledger = {0};
  struct ledger_row row = {.driver = driver, .command = 1};
  if (commit_ledger(task, &ledger) == OK) {
    const struct ledger_row *found = ledger_find(&ledger, driver, 0);
    row = found ? *found : row;
    ledger_deinit(&ledger);
  }
  return row;
}

status replicas_take_values(struct task *task, struct tensor **out) {
  for (uint32_t i = 0; i < task->variable_count; i++) {
    out[i] = NULL;
    if (is_copied(&task->variables[i]))
      TRY(variable_copy(&task->variables[i], &out[i]));
  }
  return OK;
}

status replicas_send_values(struct replicas *r, uint32_t seat, uint64_t step, struct tensor **values) {
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

#define CANNOT_MS 100 /* before who has no memory for its state is asked again */

/* ---- asking ---- */

/* A question, and its answer; *has_come is false when the other side is not the same any more, so that it has to be asked again. */
static status ask(struct replicas *r, uint32_t seat, struct talk *talk, bool *has_come) {
  bool is_same = true;
  uint64_t session = cluster_session(r->cluster, r->seats[seat]);
  pthread_mutex_lock(&r->lock);
  talk->request = ++r->requests;
  r->answer.has_come = false;
  pthread_mutex_unlock(&r->lock);
  is_same = session != 0 && replicas_say(r, seat, talk);
  pthread_mutex_lock(&r->lock);
  while (!r->answer.has_come && !r->is_stopped && is_same) {
    replicas_wait(r, LOOK_MS);
    pthread_mutex_unlock(&r->lock);
    is_same = cluster_session(r->cluster, r->seats[seat]) == session;
    pthread_mutex_lock(&r->lock);
  }
  *has_come = r->answer.has_come;
  bool is_stopped = r->is_stopped;
  if (*has_come)
    *talk = r->answer.talk;
  pthread_mutex_unlock(&r->lock);
  return is_stopped ? replicas_stopped() : OK;
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
    replicas_wait(r, CANNOT_MS);
  *has_come = !r->cannot_ms;
  bool is_stopped = r->is_stopped;
  pthread_mutex_unlock(&r->lock);
  if (is_late)
    return fail(UNAVAILABLE, "%s at %s has had no memory for a copy of its state within %.3g s",
                cluster_task_name(r->cluster, r->seats[seat]), cluster_task_address(r->cluster, r->seats[seat]), r->options->timeout_s);
  return is_stopped ? replicas_stopped() : OK;
}

status replicas_ask_for_state(struct replicas *r, uint32_t seat, struct talk *talk, bool *has_come) {
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
