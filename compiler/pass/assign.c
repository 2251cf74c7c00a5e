/* assign.c: see assign.h.
 *
 * The kernel moves to where the update stands, which nobody notices who does not take its value or wait for it. There it may wait for long:
 * updates are held back (order.h), and what it takes waits with it. So it stays where it is when that would be more than what it makes,
 * unless somebody reads the variable right behind.
 *
 * A kernel that takes the old value, too, may have it overwritten element by element, if nothing else of the flow updates the variable:
 * then its value is still the one that was read. The read stays: it says that the variable has none. */
#include "compiler/pass/assign.h"

#include <stdlib.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_clone.h"
#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"

struct assigner {
  struct flow *flow;
  const struct flow_var *vars;
  uint32_t *uses;      /* per value */
  uint32_t *followers; /* per node: nodes that wait for it */
  bool *is_read_after; /* per node: somebody reads a variable behind it */
  uint32_t *updates;   /* per variable: nodes that update it, in regions too */
};

/* ---- tables ---- */

static void count_update(void *self, uint32_t var, enum touch touch) {
  uint32_t *updates = self;
  updates[var] += touch == TOUCH_UPDATE;
}

static void count_node(struct assigner *a, flow_id id) {
  const struct flow_node *n = a->flow->nodes.items[id];
  for (uint32_t i = 0; i < node_input_count(n); i++)
    a->uses[node_input(n, i)]++;
  for (uint32_t i = 0; i < n->controls.count; i++) {
    a->followers[n->controls.items[i]]++;
    a->is_read_after[n->controls.items[i]] |= n->op == FLOW_READ;
  }
}

static void assigner_init(struct assigner *a, struct flow *f, const struct flow_var *vars, uint32_t var_count) {
  *a = (struct assigner){.flow = f, .vars = vars};
  a->uses = calloc((size_t)f->values.count + 1, sizeof *a->uses);
  a->followers = calloc((size_t)f->nodes.count + 1, sizeof *a->followers);
  a->is_read_after = calloc((size_t)f->nodes.count + 1, sizeof *a->is_read_after);
  a->updates = calloc((size_t)var_count + 1, sizeof *a->updates);
  flow_touches(f, count_update, a->updates);
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id])
      count_node(a, id);
  for (uint32_t i = 0; i < f->results.count; i++)
    a->uses[f->results.items[i]]++;
}

static void assigner_deinit(struct assigner *a) {
  free(a->uses);
  free(a->followers);
  free(a->is_read_after);
  free(a->updates);
}

/* ---- the kernel ---- */

static bool has_check(const struct stmt *s) {
  for (; s; s = s->next)
    if (s->kind == STMT_CHECK || has_check(s->body) || has_check(s->otherwise))
      return true;
  return false;
}

/* Whether all that the kernel does is to make the value, and no fault ends it halfway. */
static bool only_makes(const struct flow_node *n, value_id v) {
  if (n->op != FLOW_KERNEL || n->stateful || has_check(n->kernel->body))
    return false;
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++)
    if (n->args[i].var || (flow_arg_is_output(n, i) && n->args[i].value != v))
      return false;
  return true;
}

/* -1: the step knows. */
static int64_t bytes_of(const struct flow *f, value_id v) {
  const struct flow_value *x = &f->values.items[v];
  int64_t bytes = (int64_t)dtype_size(x->dtype), size;
  for (int i = 0; i < x->rank; i++)
    if (!dim_is_const(f->dims, dim_resolve(f->dims, x->dims[i]), &size) || __builtin_mul_overflow(bytes, size, &bytes))
      return -1;
  return bytes;
}

/* Whether its memory is there all the step long. */
static bool is_lasting(const struct flow_node *maker) {
  return !maker || maker->op == FLOW_READ || maker->op == FLOW_CONST || maker->op == FLOW_FEED;
}

/* Whether what would wait with the kernel for the update's time is no more than what waits now: the value. */
static bool may_wait(const struct assigner *a, flow_id maker, value_id made) {
  const struct flow_node *n = a->flow->nodes.items[maker];
  int64_t room = bytes_of(a->flow, made);
  for (uint32_t i = 0; i < n->inputs.count; i++) {
    value_id root = flow_root(a->flow, n->inputs.items[i]);
    if (is_lasting(a->flow->nodes.items[a->flow->values.items[root].producer]))
      continue;
    int64_t bytes = bytes_of(a->flow, root);
    if (bytes < 0 || bytes > room)
      return false;
    room -= bytes;
  }
  return true;
}

/* ---- the variable ---- */

/* Whether a value is of the dtype and of the one shape that the variable has. */
static bool fits(const struct flow *f, const struct flow_var *var, value_id v) {
  const struct flow_value *x = &f->values.items[v];
  bool is_number = x->dtype != DTYPE_STRING && x->dtype != DTYPE_RESOURCE && x->dtype != DTYPE_VARIANT;
  if (!is_number || !var->has_shape || x->dtype != var->dtype || x->rank != var->rank)
    return false;
  int64_t size;
  for (int i = 0; i < x->rank; i++)
    if (!dim_is_const(f->dims, dim_resolve(f->dims, x->dims[i]), &size) || size != var->dims[i])
      return false;
  return true;
}

/* What the kernel takes that is the variable's old value. False: it is not to be overwritten while the kernel runs; as a complex element
 * is, part by part. */
static bool find_old(const struct assigner *a, const struct flow_node *maker, uint32_t var, struct clone *made) {
  struct producer form;
  bool is_form = producer_form(maker, &form) && form.value[1] == NO_EXPR;
  for (uint32_t i = 0; i < maker->kernel->buffers.count; i++) {
    value_id v = maker->kernel->buffers.items[i].mode == BUFFER_IN ? maker->args[i].value : NO_VALUE;
    const struct flow_node *read = a->flow->nodes.items[a->flow->values.items[flow_root(a->flow, v)].producer];
    if (!v || !read || read->op != FLOW_READ || read->var != var)
      continue;
    if (!is_form || flow_root(a->flow, v) != v || a->updates[var] != 1 || !producer_loads_own(&form, i))
      return false;
    vec_push(&made->old, v);
  }
  return true;
}

/* ---- joining ---- */

/* Whether the node, which updates the variable, may do what makes the value `v`. */
static bool may_join(const struct assigner *a, flow_id id, value_id v, uint32_t var) {
  const struct flow_node *n = a->flow->nodes.items[id];
  flow_id from = a->flow->values.items[v].producer;
  const struct flow_node *maker = a->flow->nodes.items[from];
  if (!maker || a->uses[v] != 1 || a->followers[from] > node_follows(n, from) || maker->task != n->task || !nodes_same_guards(maker, n))
    return false;
  return only_makes(maker, v) && fits(a->flow, &a->vars[var], v) && (a->is_read_after[id] || may_wait(a, from, v));
}

/* The node waits for what the maker waited for, and for what says that there is no old value. */
static void take_place(struct assigner *a, struct flow_node *n, flow_id from, const struct clone *made) {
  struct flow_node *maker = a->flow->nodes.items[from];
  for (uint32_t i = 0; i < made->old.count; i++)
    node_follow(n, a->flow->values.items[made->old.items[i]].producer);
  node_follow_no_more(n, from);
  for (uint32_t i = 0; i < maker->controls.count; i++)
    node_follow(n, maker->controls.items[i]);
  n->is_target = n->is_target || maker->is_target;
  a->flow->nodes.items[from] = NULL;
}

static void take_kernel(struct assigner *a, struct flow_node *assign, const struct flow_node *maker, uint32_t buffer) {
  assign->kernel = maker->kernel;
  assign->sizes = maker->sizes;
  assign->args = arena_copy(a->flow->arena, maker->args, sizeof *maker->args * maker->kernel->buffers.count);
  assign->args[buffer] = flow_arg_of_variable(a->flow, assign->var, maker->args[buffer].value);
  assign->inputs.count = 0;
  for (uint32_t i = 0; i < maker->inputs.count; i++)
    vec_push(&assign->inputs, maker->inputs.items[i]);
}

/* The assignment becomes the kernel that makes what is assigned. */
static void try_assign(struct assigner *a, flow_id id) {
  struct flow_node *assign = a->flow->nodes.items[id];
  value_id v = assign->inputs.items[0];
  flow_id from = a->flow->values.items[v].producer;
  const struct flow_node *maker = a->flow->nodes.items[from];
  struct clone made;
  if (!may_join(a, id, v, assign->var))
    return;
  clone_begin(&made, a->flow, maker->kernel->name);
  made.updates = assign->var + 1;
  if (find_old(a, maker, assign->var, &made)) {
    assign->op = FLOW_KERNEL;
    take_place(a, assign, from, &made);
    if (made.old.count == 0) {
      take_kernel(a, assign, maker, flow_buffer_of(maker, v));
    } else {
      clone_update(&made, maker, flow_buffer_of(maker, v));
      clone_finish(&made, assign);
    }
    assign->var = 0;
  }
  vec_free(&made.old);
}

/* An update takes a map whose only use it is: fusing (fuse.c) leaves those to it that take the old value. A map has its value's shape: what
 * is made in another one has sums. */
static bool try_map(struct assigner *a, flow_id id, const struct producer *update, uint32_t buffer) {
  struct flow_node *n = a->flow->nodes.items[id];
  uint32_t var = n->args[update->buffer].var - 1;
  value_id v = n->kernel->buffers.items[buffer].mode == BUFFER_IN ? n->args[buffer].value : NO_VALUE;
  flow_id from = a->flow->values.items[v].producer;
  struct producer map;
  struct clone made;
  if (!v || !may_join(a, id, v, var) || !producer_form(a->flow->nodes.items[from], &map) || !map.is_map ||
      !producer_loads_own(update, buffer))
    return false;
  clone_begin(&made, a->flow, n->kernel->name);
  made.updates = var + 1;
  bool joins = find_old(a, map.node, var, &made) && made.old.count > 0;
  if (joins) {
    take_place(a, n, from, &made);
    clone_inline(&made, n, buffer, &map);
    clone_finish(&made, n);
  }
  vec_free(&made.old);
  return joins;
}

static bool try_maps(struct assigner *a, flow_id id) {
  struct producer update;
  if (!update_form(a->flow->nodes.items[id], &update) || !update.is_map)
    return false;
  for (uint32_t i = 0; i < update.node->kernel->buffers.count; i++)
    if (try_map(a, id, &update, i))
      return true;
  return false;
}

void assign_in_place(struct flow *f, const struct flow_var *vars, uint32_t var_count) {
  struct assigner a;
  assigner_init(&a, f, vars, var_count);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_ASSIGN)
      try_assign(&a, id);
    while (try_maps(&a, id))
      ;
  }
  assigner_deinit(&a);
}

static status assign_flow(struct build *b, const struct part_ref *part, struct flow *flow, void *self) {
  (void)part, (void)self;
  assign_in_place(flow, b->vars.items, b->vars.count);
  return OK;
}

status pass_assign(struct build *b) { return part_each_flow(b, assign_flow, NULL); }
