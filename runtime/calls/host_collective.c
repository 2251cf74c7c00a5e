/* host_collective.c: values that members of a group exchange, and the two ends of a synchronous update (compiler/pass/sync.c). */
#include <stdio.h>
#include <string.h>

#include "runtime/resource/collective.h"
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
  int64_t values[3] = { host_attr_int(call, "group_size", 1), host_attr_int(call, "group_key", 0), host_attr_int(call, "instance_key", 0) };
  for (uint32_t i = 0; i < 3 && call->input_count >= at + 3; i++) {
    if (call->inputs[at + i].count != 1)
      return fail(INVALID_ARGUMENT, "group_size, group_key and instance_key must be scalars");
    values[i] = host_scalar_int(&call->inputs[at + i]);
  }
  if (values[0] < 1)
    return fail(INVALID_ARGUMENT, "group_size must be positive, got %lld", (long long)values[0]);
  struct collective_spec spec = { .size = values[0], .kind = kind, .mean = string_is(host_attr_string(call, "final_op", "Id"), "Div"),
                                  .merge = merge_of(host_attr_string(call, "merge_op", "Add")) };
  char name[96];
  struct collective *group;
  snprintf(name, sizeof name, "%lld %lld", (long long)values[1], (long long)values[2]);
  TRY(find_group(call, name, &spec, &group));
  TRY(collective_check(group, &spec));
  return collective_meet(group, call, host_attr_int(call, "tfc_member", 0), gives);
}

status host_collective_reduce(struct host_call *call) { return meet(call, COLLECTIVE_REDUCE, 1, true); }
status host_collective_gather(struct host_call *call) { return meet(call, COLLECTIVE_GATHER, 1, true); }
status host_collective_all_to_all(struct host_call *call) { return meet(call, COLLECTIVE_ALL_TO_ALL, 1, true); }
status host_collective_scatter(struct host_call *call) { return meet(call, COLLECTIVE_SCATTER, 1, true); }
status host_collective_send(struct host_call *call) { return meet(call, COLLECTIVE_BROADCAST, 1, true); }
status host_collective_receive(struct host_call *call) { return meet(call, COLLECTIVE_BROADCAST, 0, false); }

/* attrs group_size, round: a name. Output, if any: whether this step leads. */
status host_sync_round(struct host_call *call) {
  char name[512];
  struct collective *group;
  struct collective_spec spec = { .size = host_attr_int(call, "group_size", 1) };
  struct string_view round = host_attr_string(call, "round", "");
  snprintf(name, sizeof name, "round %.*s", (int)(round.size < 400 ? round.size : 400), round.data);
  TRY(find_group(call, name, &spec, &group));
  return collective_join(group, call);
}
