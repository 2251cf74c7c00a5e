/* loop_saves.c: values that a loop saves, one in each turn, and the loop of its gradient takes back, the last one first: stacks
 * (TensorFlow 1) and lists that are pushed to and popped from (TensorFlow 2).
 *
 * Where the second loop makes as many turns as the first, both ends are known: what the first one pushes is an array with a row for each
 * turn, which its body writes and the other's body reads in place. Of a value that no turn changes nothing is saved: the second loop
 * takes it from where the first one has it. */
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/loop/loop_rows.h"
#include "compiler/loop/loops.h"
#include "compiler/pass/pass.h"

/* One end of what is saved: a variable of a loop that one node of its body uses. */
struct save_end {
  flow_id loop;
  uint32_t var;
  flow_id node;
  value_id value; /* pushed, or popped */
};
struct save {
  struct save_end push, pop;
};

/* The node of the body that pushes to variable `var` of the loop, or pops from it; nothing else is done with it. */
static bool find_end(const struct flow *f, flow_id loop, uint32_t var, struct save_end *out, bool *pushes) {
  const struct flow_node *n = f->nodes.items[loop];
  if (n->op != FLOW_WHILE || !loop_is_regular(n) || var >= loop_var_count(n) || loop_condition_takes(n, var))
    return false;
  const struct flow *body = n->branches[1];
  value_id param = body->params.items[var];
  *out = (struct save_end){.loop = loop, .var = var};
  uint32_t uses = flow_use_count(body, param, &out->node);
  const struct flow_node *user = out->node ? body->nodes.items[out->node] : NULL;
  if (!user || user->guard_count || user->op != FLOW_HOST || user->inputs.items[0] != param)
    return false;
  bool is_list = node_is_call(user, "TensorListPushBack") || node_is_call(user, "TensorListPopBack");
  *pushes = node_is_call(user, "StackPushV2") || node_is_call(user, "StackPush") || node_is_call(user, "TensorListPushBack");
  if (!is_list && !*pushes && !node_is_call(user, "StackPopV2") && !node_is_call(user, "StackPop"))
    return false;
  out->value = *pushes ? user->inputs.items[1] : user->outputs.items[is_list];
  if (!is_list)
    return loop_hands_on(n, var) && uses == 2;
  flow_id after;
  value_id rest = user->outputs.items[0];
  return uses == 1 && body->results.items[var] == rest && flow_use_count(body, rest, &after) == 1;
}

/* No turn pushes more than the stack or list may hold. */
static bool has_room(struct flow *f, const struct flow_node *maker, const struct flow_node *loop) {
  uint32_t input = strcmp(maker->host, "EmptyTensorList") == 0 ? 1 : 0;
  if (input >= maker->inputs.count)
    return true;
  const struct flow_value *limit = &f->values.items[maker->inputs.items[input]];
  dim turns = loop_turns(f, loop);
  if (limit->data && limit->rank == 0 && limit->dtype == DTYPE_INT32) {
    int64_t most = *(const int32_t *)limit->data, count;
    return most < 0 || (turns != NO_DIM && dim_is_const(f->dims, turns, &count) && count <= most);
  }
  return limit->content && turns != NO_DIM && dim_equal(f->dims, limit->content[0], turns) == 1;
}

/* Both ends of what `maker` makes; false: something else is done with it. */
static bool find_save(struct flow *f, flow_id maker, struct save *out) {
  const struct flow_node *m = f->nodes.items[maker];
  bool is_list = strcmp(m->host, "EmptyTensorList") == 0, has[2] = {false, false};
  value_id now = m->outputs.items[0], was = NO_VALUE; /* the stack, and what the first loop hands on of it: of a list, its new value */
  for (uint32_t i = 0; i < f->results.count; i++)
    if (f->results.items[i] == now)
      return false;
  for (flow_id id = maker + 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && i < node_input_count(n); i++) {
      value_id v = node_input(n, i);
      struct save_end end;
      bool pushes;
      flow_id user;
      if (!v || (v != now && v != was))
        continue;
      if ((is_list && v == was) || !find_end(f, id, i, &end, &pushes) || has[pushes] || (has[0] && pushes))
        return false;
      has[pushes] = true;
      *(pushes ? &out->push : &out->pop) = end;
      if (!pushes && flow_use_count(f, n->outputs.items[i], &user))
        return false;
      if (pushes) {
        was = now;
        now = n->outputs.items[i];
      }
    }
  }
  if (!has[0] || !has[1])
    return false;
  const struct flow_node *first = f->nodes.items[out->push.loop], *later = f->nodes.items[out->pop.loop];
  return nodes_same_guards(first, later) && first->task == later->task && loop_follows(f, first, later) && has_room(f, m, first);
}

/* ---- rows ---- */

/* What is pushed has the same size in each turn, and what is popped is known to have it. */
static bool has_one_size(struct flow *f, const struct save *s) {
  const struct flow_node *first = f->nodes.items[s->push.loop], *later = f->nodes.items[s->pop.loop];
  const struct flow_value *x = &first->branches[1]->values.items[s->push.value];
  const struct flow_value *y = &later->branches[1]->values.items[s->pop.value];
  return loop_rows_may_be(x->dtype) && x->rank < LIMIT_RANK && values_are_alike(f, x, y) && loop_sizes_last(f, first, x) &&
         loop_sizes_last(f, later, x);
}

/* What the later loop's body takes in the place of what it pops. */
static value_id taken_value(struct flow *f, const struct save *s) {
  struct flow_node *first = f->nodes.items[s->push.loop], *later = f->nodes.items[s->pop.loop];
  struct flow *from = first->branches[1], *to = later->branches[1];
  flow_id maker = from->values.items[s->push.value].producer;
  if (maker && from->nodes.items[maker]->op == FLOW_CONST)
    return loop_copy_constant(to, from, s->push.value);
  uint32_t var = loop_var_of(first, s->push.value);
  if (var != UINT32_MAX && loop_hands_on(first, var)) {
    for (uint32_t i = 0; i < loop_var_count(later); i++)
      if (later->inputs.items[i] == first->inputs.items[var] && loop_hands_on(later, i))
        return to->params.items[i];
    return loop_add_invariant(f, s->pop.loop, first->inputs.items[var]);
  }
  if (!loop_may_face(later, !first->from_last))
    return NO_VALUE;
  /* the array of a loop that begins at the last must be as long as it is said to be from the start */
  bool has_length = !first->from_last || loop_turns(f, first) != NO_DIM;
  if ((maker && from->nodes.items[maker]->guard_count) || loop_is_variable_memory(from, s->push.value) || !has_length)
    return NO_VALUE;
  later->from_last = !first->from_last;
  return loop_add_row_in(f, s->pop.loop, loop_add_row_out(f, s->push.loop, s->push.value, loop_turns(f, first)));
}

/* The variable comes back as it was. */
static void leave_alone(struct flow_node *loop, const struct save_end *end) {
  struct flow *body = loop->branches[1];
  body->results.items[end->var] = body->params.items[end->var];
  node_make_noop(body->nodes.items[end->node]);
}

static bool join_save(struct flow *f, const struct save *s) {
  struct flow_node *first = f->nodes.items[s->push.loop], *later = f->nodes.items[s->pop.loop];
  const struct flow_node *push = first->branches[1]->nodes.items[s->push.node];
  value_id taken = has_one_size(f, s) ? taken_value(f, s) : NO_VALUE;
  if (taken == NO_VALUE)
    return false;
  if (!node_is_call(push, "TensorListPushBack")) /* a stack's push gives what it takes */
    flow_replace_uses(first->branches[1], push->outputs.items[0], s->push.value);
  flow_replace_uses(later->branches[1], s->pop.value, taken);
  leave_alone(first, &s->push);
  leave_alone(later, &s->pop);
  flow_sort(later->branches[1]);
  return true;
}

bool loops_join_saves(const struct build *b, struct flow *f) {
  (void)b;
  bool any = false;
  uint32_t count = f->nodes.count;
  for (flow_id id = 1; id < count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    struct save s = {0};
    if (n && (node_is_call(n, "StackV2") || node_is_call(n, "Stack") || node_is_call(n, "EmptyTensorList")) && find_save(f, id, &s))
      any |= join_save(f, &s);
  }
  return any;
}
