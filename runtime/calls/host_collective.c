/* host_collective.c: values that members of a group exchange, and the two ends of a synchronous update (compiler/pass/sync.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/resource/collective.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/task_state.h"

static status find_group(struct host_call *call, const char *name, const struct collective_spec *spec, struct collective **out) {
  struct resource *resource;
  bool is_new;
  TRY(container_get(call->task->container, "tfc-collective", name, &collective_maker, (void *)spec, &is_new, &resource));
  *out = (struct collective *)resource;
  return OK;
}

static enum element_merge merge_of(struct string_view text) {
  return string_is(text, "Mul") ? MERGE_MUL : string_is(text, "Min") ? MERGE_MIN : string_is(text, "Max") ? MERGE_MAX : MERGE_ADD;
}

/* Group and instance: attributes of the old ops, inputs from `at` on of the new ones. Attribute tfc_member: the
 * number of the member in its step. */
static status meet(struct host_call *call, enum collective_kind kind, uint32_t at, bool gives) {
  int64_t values[3] = {host_attr_int(call, "group_size", 1), host_attr_int(call, "group_key", 0), host_attr_int(call, "instance_key", 0)};
  for (uint32_t i = 0; i < 3 && call->input_count >= at + 3; i++) {
    if (call->inputs[at + i].count != 1)
      return fail(INVALID_ARGUMENT, "group_size, group_key and instance_key must be scalars");
    values[i] = host_scalar_int(&call->inputs[at + i]);
  }
  if (values[0] < 1)
    return fail(INVALID_ARGUMENT, "group_size must be positive, got %lld", (long long)values[0]);
  struct collective_spec spec = {.size = values[0],
                                 .kind = kind,
                                 .mean = string_is(host_attr_string(call, "final_op", "Id"), "Div"),
                                 .merge = merge_of(host_attr_string(call, "merge_op", "Add"))};
  char name[96];
  struct collective *group;
  snprintf(name, sizeof name, "%lld %lld", (long long)values[1], (long long)values[2]);
  TRY(find_group(call, name, &spec, &group));
  TRY(collective_check(group, &spec));
  return collective_meet(group, call, host_attr_int(call, "tfc_member", 0), gives, call->step->serial > 0);
}

status host_collective_reduce(struct host_call *call) { return meet(call, COLLECTIVE_REDUCE, 1, true); }
status host_collective_gather(struct host_call *call) { return meet(call, COLLECTIVE_GATHER, 1, true); }
status host_collective_all_to_all(struct host_call *call) { return meet(call, COLLECTIVE_ALL_TO_ALL, 1, true); }
status host_collective_scatter(struct host_call *call) { return meet(call, COLLECTIVE_SCATTER, 1, true); }
status host_collective_send(struct host_call *call) { return meet(call, COLLECTIVE_BROADCAST, 1, true); }
status host_collective_receive(struct host_call *call) { return meet(call, COLLECTIVE_BROADCAST, 0, false); }

/* ---- rounds of a synchronous strategy ---- */

/* "0 2" */
static uint32_t read_tasks(struct string_view text, uint32_t *out, uint32_t room) {
  uint32_t count = 0;
  for (size_t at = 0; at < text.size && count < room; at++) {
    uint32_t task = 0;
    for (; at < text.size && text.data[at] != ' '; at++)
      task = task * 10 + (uint32_t)(text.data[at] - '0');
    out[count++] = task;
  }
  return count;
}

static uint32_t list_seats(const struct program *program, uint32_t *out, uint32_t room) {
  const char *job = program_text(program, program->replicated_job);
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count && count < room; i++)
    if (strcmp(program_text(program, program_task(program, i)->job), job) == 0)
      out[count++] = i;
  return count;
}

static status make_meeting(struct host_call *call, const char *name, struct resource **out) {
  uint32_t tasks = (uint32_t)call->program->tables[PROGRAM_TASKS].count;
  uint32_t *seats = calloc(2 * (size_t)tasks + 1, sizeof *seats), *holders = seats + tasks;
  bool is_new;
  if (!seats)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  struct meeting_spec spec = {.hall = call->task->hall,
                              .seats = seats,
                              .holders = holders,
                              .has_leader = host_attr_int(call, "has_leader", 0),
                              .has_turns = host_attr_int(call, "has_turns", 0)};
  spec.seat_count = list_seats(call->program, seats, tasks);
  spec.holder_count = read_tasks(host_attr_string(call, "holders", ""), holders, tasks);
  status result = container_get(call->task->container, "tfc-meeting", name, &meeting_maker, &spec, &is_new, out);
  free(seats);
  return result;
}

static status find_meeting(struct host_call *call, struct meeting **out) {
  struct string_view round = host_attr_string(call, "round", "");
  struct resource *resource;
  char name[400];
  snprintf(name, sizeof name, "%.*s", (int)(round.size < sizeof name ? round.size : sizeof name - 1), round.data);
  TRY(make_meeting(call, name, &resource));
  *out = (struct meeting *)resource;
  return OK;
}

static bool is_committed(const struct meeting_step *step) {
  const struct step *s = step->call->step;
  return s->is_dry || commit_has(step->call->task, s->driver, step->command, step->serial);
}

static struct meeting_step step_of(struct host_call *call) {
  const struct step *s = call->step;
  return (struct meeting_step){.call = call, .id = s->id, .serial = s->serial, .command = s->command, .is_committed = is_committed};
}

/* What the leader has updated is applied for all whose steps the round has taken. */
static status commit_members(struct host_call *call, struct meeting *meeting, const struct meeting_step *step) {
  uint32_t tasks = (uint32_t)call->program->tables[PROGRAM_TASKS].count;
  struct meeting_taken *taken = calloc((size_t)tasks + 1, sizeof *taken);
  if (!taken)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  uint32_t count = meeting_taken(meeting, step->id, taken, tasks);
  status result = OK;
  for (uint32_t i = 0; i < count && result == OK; i++)
    result = commit_other(call->task, taken[i].driver, taken[i].command, taken[i].serial);
  free(taken);
  return result;
}

static status end_round(struct host_call *call, struct meeting *meeting, const struct meeting_step *step) {
  TRY(commit_members(call, meeting, step));
  return meeting_end(meeting, step);
}

/* attrs round: its name, holders: tasks, has_leader, has_turns, when: enters, gives, leads or ends. Inputs are only waited for. Output of
 * `leads`: whether this step makes the updates. */
status host_sync_round(struct host_call *call) {
  struct meeting *meeting;
  struct string_view when = host_attr_string(call, "when", "");
  TRY(find_meeting(call, &meeting));
  struct meeting_step step = step_of(call);
  if (string_is(when, "enters"))
    return meeting_enter(meeting, &step);
  if (string_is(when, "gives"))
    return meeting_give(meeting, &step);
  return string_is(when, "leads") ? meeting_lead(meeting, &step) : end_round(call, meeting, &step);
}

/* attrs as above, instance_key: which value, kind: "reduce", else the rows of all, final_op: "Div": the mean. */
status host_sync_value(struct host_call *call) {
  struct meeting *meeting;
  struct meeting_value_spec spec = {.key = host_attr_int(call, "instance_key", 0), .kind = COLLECTIVE_GATHER};
  TRY(find_meeting(call, &meeting));
  if (string_is(host_attr_string(call, "kind", ""), "reduce"))
    spec.kind = COLLECTIVE_REDUCE;
  spec.mean = string_is(host_attr_string(call, "final_op", "Id"), "Div");
  struct meeting_step step = step_of(call);
  return meeting_value(meeting, &step, &spec);
}
