/* host_collective.c: CollectiveReduce, and the two ends of a synchronous update (compiler/pass/sync.c). */
#include <stdio.h>
#include <string.h>

#include "runtime/collective.h"
#include "runtime/task_state.h"

static status join(struct host_call *call, const char *name, const struct collective_spec *spec) {
  struct resource *resource;
  bool is_new;
  TRY(container_get(call->task->container, "tfc-collective", name, &collective_maker, (void *)spec, &is_new, &resource));
  return collective_join((struct collective *)resource, call);
}

static bool text_is(struct string_view text, const char *word) {
  return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* inputs: the value; attrs group_size, group_key, instance_key, merge_op, final_op */
status host_collective_reduce(struct host_call *call) {
  char name[96];
  struct collective_spec spec = { .size = host_attr_int(call, "group_size", 1),
                                  .mean = text_is(host_attr_string(call, "final_op", "Id"), "Div") };
  if (!text_is(host_attr_string(call, "merge_op", "Add"), "Add"))
    return fail(UNIMPLEMENTED, "merge_op other than Add");
  snprintf(name, sizeof name, "%lld %lld", (long long)host_attr_int(call, "group_key", 0),
           (long long)host_attr_int(call, "instance_key", 0));
  return join(call, name, &spec);
}

/* attrs group_size, round: a name. Output, if any: whether this step leads. */
status host_sync_round(struct host_call *call) {
  char name[512];
  struct collective_spec spec = { .size = host_attr_int(call, "group_size", 1) };
  struct string_view round = host_attr_string(call, "round", "");
  snprintf(name, sizeof name, "round %.*s", (int)(round.size < 400 ? round.size : 400), round.data);
  return join(call, name, &spec);
}
