/* lower_await.c: elements of lists that the body of a loop takes out above where it puts them in: in the first turn nobody does, or what
 * takes them stands behind a cond. In the first walk over the body nothing is known of such an element. What needs it is left out, as on
 * a side of a cond that is not taken, and the body is walked through again when the walk has seen what is put in. A list that this loop
 * puts nothing in may be one that a loop around it does: then it is that loop's to walk again. Where nobody puts anything in, a last walk
 * says so at the node that takes it out. */
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

void lower_await_begin(struct lower *lw, struct awaiting *a) {
  *a = (struct awaiting){.lists = lw->facts.objects.count, .outer = lw->walk.awaiting};
  lw->walk.awaiting = a;
}

void lower_await_end(struct lower *lw, const struct awaiting *a) { lw->walk.awaiting = a->outer; }

/* The innermost of these loops that may see what is put into the list: one that the list comes into from outside. */
static struct awaiting *awaits_list(struct awaiting *a, uint32_t list) {
  while (a && (a->is_last || list >= a->lists))
    a = a->outer;
  return a;
}

bool lower_await_element(struct lower *lw, const struct node *list) {
  struct object_shapes *o = lower_object(lw, list);
  struct awaiting *a = o ? awaits_list(lw->walk.awaiting, lower_object_number(lw, list)) : NULL;
  if (!a)
    return false;
  a->count++;
  return o->awaited = true;
}

bool lower_is_awaiting(const struct lower *lw) {
  const struct awaiting *a = lw->walk.awaiting;
  while (a && !a->count)
    a = a->outer;
  return a != NULL;
}

bool lower_await_again(struct lower *lw, struct awaiting *a) {
  bool came = false, is_lost = false;
  for (uint32_t i = 0; i < a->lists && a->count; i++) {
    struct object_shapes *o = lw->facts.objects.items[i];
    if (!o->awaited)
      continue;
    struct awaiting *around = awaits_list(a->outer, i);
    o->awaited = !o->count;
    came |= o->count > 0;
    is_lost |= !o->count && !around;
    if (!o->count && around)
      around->count++;
  }
  a->count = 0;
  a->is_last = a->is_last || (is_lost && !came);
  return came || is_lost;
}

value_id lower_await_result(struct flow *flow, const struct flow_value *like) {
  value_id v = like ? flow_add_value(flow, like->dtype, like->rank, like->dims) : flow_add_value(flow, DTYPE_BOOL, 0, NULL);
  vec_push(&flow->results, v);
  return v;
}
