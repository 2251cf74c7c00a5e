/* fuse.c: kernels that need not store in between become one.
 *
 * Four moves, tried for each kernel in order, so that chains collapse from their start:
 *   constants  a scalar that is known while compiling is written into the expressions
 *   inline     a producer that is one expression for each element (`map`) takes the place of the loads of its value. Where an
 *              element is loaded more than once (a matrix product's operand, a broadcast), or by several kernels, only
 *              what costs no more than a load is repeated: views, casts, a little arithmetic. What is the same everywhere
 *              is so in any shape
 *   epilogue   a map over results of a reduction or contraction is applied where those are stored; of them only what others want
 *              is stored then. Only so many different ones for a program: behind that products stay by themselves, where all of
 *              one form are one kernel (share.c)
 *   part       a reduction or contraction of which one map loads a box (a slice of a product) is made for that
 * What lies between kernels of a task only to give a value another shape goes first: each kernel knows a value in the shape that it
 * wants (`look_through`), or in several, and an epilogue may be of another shape than its product, as where rows of a batch are one row
 * after the other.
 * A kernel is only moved later, to where its consumer stands; the order protects what it reads from updates in between. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_clone.h"
#include "compiler/edit/kernel_form.h"
#include "compiler/edit/kernel_loads.h"
#include "compiler/edit/producer_form.h"
#include "compiler/edit/value_users.h"
#include "compiler/pass/pass.h"
#include "ir/schedule/cost.h"

#define FUSE_EXPRS 600 /* larger kernels cost more to compile than they save */
#define FUSE_BUFFERS 20
#define EPILOGUES_MAX 128 /* different ones, sizes apart: more than models have that people design; a product is long code */

/* The kernels of the program that have an epilogue. */
struct epilogues {
  struct map forms; /* kernel_form_hash -> how many */
  uint32_t different;
};
struct fuser {
  struct build *build;
  struct epilogues *epilogues;
  struct flow *flow;
  struct value_users *users; /* by value */
  bool *followed;            /* by node */
};

/* ---- costs ---- */

/* The cost of an expression's value; the index arithmetic of its loads counts too when it is more than sums. */
static int expr_cost(const struct kernel *k, expr_id e, bool *seen) {
  if (seen[e])
    return 0;
  seen[e] = true;
  const struct expr *x = expr_get(k, e);
  int cost = op_repeat_cost((enum scalar_op)x->op, (enum dtype)x->dtype);
  for (int i = 0; i < x->count; i++)
    cost += expr_cost(k, expr_operand(k, e, i), seen);
  return cost;
}
static int producer_cost(const struct producer *p) {
  bool *seen = calloc(p->node->kernel->exprs.count, 1);
  int cost = expr_cost(p->node->kernel, p->value[0], seen);
  if (p->value[1])
    cost += expr_cost(p->node->kernel, p->value[1], seen);
  free(seen);
  return cost;
}

/* ---- shapes ---- */

static dim buffer_dim(struct flow *f, const struct flow_node *n, uint32_t buffer, int d) {
  kernel_dim size = n->kernel->buffers.items[buffer].dims[d];
  return DIM_IS_SIZE(size) ? n->sizes[SIZE_OF_DIM(size)] : dim_const(f->dims, size);
}
static int buffer_rank(const struct flow_node *n, uint32_t buffer) { return n->kernel->buffers.items[buffer].rank; }
/* How many of the last dimensions are alike. */
static int common_dims(struct flow *f, const struct flow_node *a, uint32_t in_a, const struct flow_node *b, uint32_t in_b) {
  int i = buffer_rank(a, in_a), j = buffer_rank(b, in_b), count = 0;
  while (i-- > 0 && j-- > 0 && dim_equal(f->dims, buffer_dim(f, a, in_a, i), buffer_dim(f, b, in_b, j)) == 1)
    count++;
  return count;
}
static bool same_shape(struct flow *f, const struct flow_node *a, uint32_t in_a, const struct flow_node *b, uint32_t in_b) {
  return buffer_rank(a, in_a) == buffer_rank(b, in_b) && common_dims(f, a, in_a, b, in_b) == buffer_rank(a, in_a);
}

/* In how many shapes the node loads the value. */
static uint32_t shapes_of(const struct flow_node *n, value_id v) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < n->kernel->buffers.count; b++)
    count += n->args[b].value == v && n->kernel->buffers.items[b].mode == BUFFER_IN;
  return count;
}

/* ---- inlining ---- */

/* The variable whose memory a value is, + 1; 0: none. */
static uint32_t memory_of(const struct flow *f, value_id v) {
  const struct flow_node *n = f->nodes.items[f->values.items[v].producer];
  while (n && n->op == FLOW_ALIAS)
    n = f->nodes.items[f->values.items[n->inputs.items[0]].producer];
  return n && n->op == FLOW_READ ? n->var + 1 : 0;
}

/* Whether the producer reads a variable that the consumer updates: moved there, it would read what is being written. */
static bool reads_what_is_updated(const struct flow *f, const struct flow_node *producer, const struct flow_node *consumer) {
  for (uint32_t i = 0; i < producer->inputs.count; i++) {
    uint32_t var = memory_of(f, producer->inputs.items[i]);
    for (uint32_t j = 0; var && j < consumer->kernel->buffers.count; j++)
      if (consumer->args[j].var == var)
        return true;
  }
  return false;
}

static bool has_dim(const struct flow *f, const struct flow_node *n, enum buffer_mode mode, dim d) {
  for (uint32_t b = 0; b < n->kernel->buffers.count; b++) {
    const struct flow_value *x = &f->values.items[n->args[b].value];
    for (int i = 0; n->args[b].value && n->kernel->buffers.items[b].mode == mode && i < x->rank; i++)
      if (dim_equal(f->dims, x->dims[i], d) == 1)
        return true;
  }
  return false;
}
/* Whether the producer reads another place for each element along a dimension: whoever said its size has looked at what is there. */
static bool is_read_along(const struct producer *p, int d) {
  const struct kernel *k = p->node->kernel;
  const struct expr *at = expr_get(k, p->index[d]);
  for (expr_id e = 1; at->op == SCALAR_LOCAL && e < k->exprs.count; e++)
    if (expr_get(k, e)->op == SCALAR_LOAD && expr_reads_local(k, e, (uint32_t)at->imm))
      return true;
  return false;
}
/* Whether each size of the value that a step may find to be below 0 is one of a value that stays, too: then the step fails. */
static bool sizes_stay(const struct fuser *fu, const struct producer *p, const struct flow_node *c, value_id v) {
  const struct flow *f = fu->flow;
  dim zero = dim_const(f->dims, 0);
  for (int i = 0; i < f->values.items[v].rank; i++) {
    dim d = f->values.items[v].dims[i];
    if (dim_less(f->dims, d, zero) < 0 && !is_read_along(p, i) && !has_dim(f, p->node, BUFFER_IN, d) && !has_dim(f, c, BUFFER_OUT, d))
      return false;
  }
  return true;
}
static bool may_inline(const struct fuser *fu, const struct producer *p, const struct flow_node *c, uint32_t buffer) {
  const struct kernel *k = c->kernel;
  value_id v = p->node->args[p->buffer].value;
  if (!p->is_map || p->node->task != c->task || !nodes_same_guards(p->node, c) || reads_what_is_updated(fu->flow, p->node, c) ||
      !(p->is_uniform || same_shape(fu->flow, p->node, p->buffer, c, buffer)))
    return false;
  if (k->exprs.count + p->node->kernel->exprs.count > FUSE_EXPRS || k->buffers.count + p->node->kernel->buffers.count > FUSE_BUFFERS ||
      !sizes_stay(fu, p, c, v))
    return false;
  struct kernel_loads l = kernel_loads(k, buffer);
  bool once = !l.repeated && fu->users[v].nodes.count == 1 && shapes_of(c, v) == 1 && l.count <= 8;
  return once || producer_cost(p) <= (l.repeated ? 0 : REPEAT_COST_MAX);
}

static void merge_controls(struct flow_node *to, const struct flow_node *from) {
  for (uint32_t i = 0; i < from->controls.count; i++) {
    bool known = false;
    for (uint32_t j = 0; j < to->controls.count; j++)
      known = known || to->controls.items[j] == from->controls.items[i];
    if (!known)
      vec_push(&to->controls, from->controls.items[i]);
  }
}

/* Gives a node its new kernel; inputs, outputs and users follow from the arguments. */
static void replace_kernel(struct fuser *fu, flow_id id, const struct clone *made) {
  struct flow_node *n = fu->flow->nodes.items[id];
  for (uint32_t i = 0; i < n->inputs.count; i++)
    value_users_drop(&fu->users[n->inputs.items[i]], id);
  clone_place(made, fu->flow, id);
  for (uint32_t i = 0; i < n->inputs.count; i++)
    value_users_add(&fu->users[n->inputs.items[i]], id);
}

static void drop_node(struct fuser *fu, flow_id id) {
  struct flow_node *n = fu->flow->nodes.items[id];
  for (uint32_t i = 0; i < n->inputs.count; i++)
    value_users_drop(&fu->users[n->inputs.items[i]], id);
  flow_drop_node(fu->flow, id, fu->followed);
}

static bool has_scalar_constant(const struct fuser *fu, const struct flow_node *n) {
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++)
    if (n->args[i].value && n->kernel->buffers.items[i].mode == BUFFER_IN && clone_constant(fu->flow, n->args[i].value))
      return true;
  return false;
}

static bool inline_one(struct fuser *fu, flow_id id) {
  struct flow_node *c = fu->flow->nodes.items[id];
  for (uint32_t b = 0; b < c->kernel->buffers.count; b++) {
    value_id v = c->args[b].value;
    if (!v || c->kernel->buffers.items[b].mode != BUFFER_IN)
      continue;
    flow_id from = fu->flow->values.items[v].producer;
    struct producer p;
    if (!producer_form(fu->flow->nodes.items[from], &p) || !may_inline(fu, &p, c, b))
      continue;
    struct clone made;
    clone_begin(&made, fu->flow, c->kernel->name);
    clone_inline(&made, c, b, &p);
    merge_controls(c, p.node);
    replace_kernel(fu, id, &made);
    if (fu->users[v].nodes.count == 0)
      drop_node(fu, from);
    return true;
  }
  return false;
}

/* ---- epilogues ---- */

/* Whether the consumer loads the producer's results only at its own element, and has the producer's shape, or can be made in it: what else
 * it loads moves with the last dimensions, those that both have. */
static bool same_elements(struct fuser *fu, const struct producer *p, const struct producer *c) {
  struct flow *f = fu->flow;
  bool same = same_shape(f, p->node, p->buffer, c->node, c->buffer);
  for (uint32_t b = 0; b < c->node->kernel->buffers.count; b++)
    if (c->node->args[b].value && f->nodes.items[f->values.items[c->node->args[b].value].producer] == p->node && b != c->buffer &&
        (!same_shape(f, c->node, c->buffer, c->node, b) || !producer_loads_own(c, b)))
      return false;
  return same || producer_reshapes(c, common_dims(f, p->node, p->buffer, c->node, c->buffer));
}

static bool used_before(const struct fuser *fu, value_id v, flow_id id) {
  for (uint32_t i = 0; i < fu->users[v].nodes.count; i++)
    if (fu->users[v].nodes.items[i] < id)
      return true;
  return false;
}

static const char *form_of(struct fuser *fu, const struct kernel *k) { return kernel_hash_text(kernel_form_hash(k), &fu->build->arena); }

/* Whether the program may have `to`, a reduction with its epilogue, in the place of `from`. */
static bool take_epilogue(struct fuser *fu, const struct kernel *from, const struct kernel *to) {
  struct epilogues *known = fu->epilogues;
  const char *old = form_of(fu, from), *new = form_of(fu, to);
  uint32_t old_count = 0, new_count = 0;
  map_find(&known->forms, old, &old_count);
  map_find(&known->forms, new, &new_count);
  uint32_t different = known->different - (old_count == 1) + (new_count == 0);
  if (different > EPILOGUES_MAX)
    return false;
  if (old_count)
    map_set(&known->forms, old, old_count - 1);
  map_set(&known->forms, new, new_count + 1);
  known->different = different;
  return true;
}

/* C's inputs may not depend on other users of P's values: they come before C, so used_before has excluded them. */
static bool may_take_epilogue(struct fuser *fu, const struct producer *p, const struct producer *c, flow_id id) {
  for (uint32_t i = 0; i < p->node->outputs.count; i++)
    if (used_before(fu, p->node->outputs.items[i], id))
      return false;
  return p->is_reduction && p->node->task == c->node->task && nodes_same_guards(p->node, c->node) && same_elements(fu, p, c) &&
         c->node->kernel->exprs.count + p->node->kernel->exprs.count <= FUSE_EXPRS &&
         c->node->kernel->buffers.count + p->node->kernel->buffers.count <= FUSE_BUFFERS;
}
/* Whether others than `id` want this of what the producer makes. */
static bool others_use(const struct fuser *fu, value_id v, flow_id id) {
  const struct value_users *users = &fu->users[v];
  return users->nodes.count > 1 || (users->nodes.count == 1 && users->nodes.items[0] != id);
}
/* The producer's results that stay, by its buffers; whether there are any. */
static bool find_kept(const struct fuser *fu, const struct producer *p, flow_id id, bool *keep) {
  bool any = false;
  for (uint32_t b = 0; b < p->node->kernel->buffers.count; b++) {
    keep[b] = p->node->kernel->buffers.items[b].mode == BUFFER_OUT && others_use(fu, p->node->args[b].value, id);
    any = any || keep[b];
  }
  return any;
}

/* ---- parts of sums ---- */

/* Whether the map loads a box of the value: each index is its own, moved by a constant. */
static bool loads_box(const struct producer *c, uint32_t buffer) {
  const struct kernel *k = c->node->kernel;
  uint32_t count = 0;
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *load = expr_get(k, e);
    if (load->op != SCALAR_LOAD || load->imm != (int64_t)buffer)
      continue;
    bool fits = load->count == c->index_count && count++ == 0;
    for (int i = 0; fits && i < load->count; i++) {
      int64_t by;
      expr_id at = expr_operand(k, e, i);
      const struct expr *x = expr_get(k, at);
      for (int side = 0; at != c->index[i] && x->op == SCALAR_ADD && side < 2; side++)
        if (expr_operand(k, at, side) == c->index[i] && expr_is_const(k, expr_operand(k, at, 1 - side), &by))
          at = c->index[i];
      fits = at == c->index[i];
    }
    if (!fits)
      return false;
  }
  return count == 1;
}

static bool may_take_part(struct fuser *fu, const struct producer *p, const struct producer *c, uint32_t buffer) {
  const struct kernel *k = c->node->kernel;
  value_id v = p->node->args[p->buffer].value;
  return p->is_reduction && fu->users[v].nodes.count == 1 && shapes_of(c->node, v) == 1 &&
         same_shape(fu->flow, p->node, p->buffer, c->node, buffer) && loads_box(c, buffer) && !kernel_loads(k, buffer).repeated &&
         p->node->task == c->node->task && nodes_same_guards(p->node, c->node) && !reads_what_is_updated(fu->flow, p->node, c->node) &&
         k->exprs.count + p->node->kernel->exprs.count <= FUSE_EXPRS;
}

/* ---- maps in the kernels of their inputs ---- */

/* The name of a kernel that does what both do. */
static const char *joined_name(struct fuser *fu, const struct producer *p, const struct producer *c) {
  return arena_printf(&fu->build->arena, "%s_%s", p->node->kernel->name, c->node->kernel->name);
}

/* Whether what a map makes goes, through other maps at most, into the update of a variable that it reads: then it will be part of that
 * (assign.c), which costs less than a value in between. */
static bool goes_into_update(const struct fuser *fu, const struct producer *map) {
  struct producer p = *map, update;
  while (p.is_map && fu->users[p.node->args[p.buffer].value].nodes.count == 1) {
    flow_id user = fu->users[p.node->args[p.buffer].value].nodes.items[0];
    const struct flow_node *n = user == USER_OUTSIDE ? NULL : fu->flow->nodes.items[user];
    if (!n || n->op != FLOW_KERNEL || n->task != map->node->task)
      return false;
    if (reads_what_is_updated(fu->flow, map->node, n))
      return update_form(n, &update) && update.is_map;
    if (!producer_form(n, &p))
      return false;
  }
  return false;
}

/* Whether all who take the map's value are kernels into which it will be inlined: that costs no value in between, where an epilogue that
 * keeps what it is applied to would store one more. */
static bool goes_into_users(const struct fuser *fu, const struct producer *map) {
  value_id v = map->node->args[map->buffer].value;
  const struct value_users *users = &fu->users[v];
  for (uint32_t i = 0; i < users->nodes.count; i++) {
    const struct flow_node *n = users->nodes.items[i] == USER_OUTSIDE ? NULL : fu->flow->nodes.items[users->nodes.items[i]];
    if (!n || n->op != FLOW_KERNEL)
      return false;
    for (uint32_t b = 0; b < n->kernel->buffers.count; b++)
      if (n->args[b].value == v && n->kernel->buffers.items[b].mode == BUFFER_IN && !may_inline(fu, map, n, b))
        return false;
  }
  return users->nodes.count > 0;
}
static void inline_into_users(struct fuser *fu, flow_id id, const struct producer *map) {
  value_id v = map->node->args[map->buffer].value;
  while (fu->users[v].nodes.count) {
    flow_id user = fu->users[v].nodes.items[0];
    struct flow_node *n = fu->flow->nodes.items[user];
    struct clone made;
    clone_begin(&made, fu->flow, n->kernel->name);
    clone_inline(&made, n, flow_buffer_of(n, v), map); /* of which there is one: others would have another shape */
    merge_controls(n, map->node);
    replace_kernel(fu, user, &made);
  }
  drop_node(fu, id);
}

/* Puts the kernel that does what `from` and the node do in its place. */
static bool place_joined(struct fuser *fu, flow_id id, flow_id from, struct clone *made) {
  if (!take_epilogue(fu, fu->flow->nodes.items[from]->kernel, made->kernel)) {
    clone_drop(made);
    return false;
  }
  merge_controls(fu->flow->nodes.items[id], fu->flow->nodes.items[from]);
  drop_node(fu, from);
  replace_kernel(fu, id, made);
  return true;
}
static bool join_epilogue(struct fuser *fu, flow_id id, flow_id from, const struct producer *c, value_id v) {
  struct producer p;
  if (!producer_form_of(fu->flow->nodes.items[from], v, &p) || !may_take_epilogue(fu, &p, c, id))
    return false;
  bool keep[FUSE_BUFFERS], keeps = find_kept(fu, &p, id, keep);
  if (keeps && goes_into_users(fu, c)) {
    inline_into_users(fu, id, c);
    return false;
  }
  struct clone made;
  clone_begin(&made, fu->flow, joined_name(fu, &p, c));
  clone_epilogue(&made, &p, c, keep);
  return place_joined(fu, id, from, &made);
}
static bool join_part(struct fuser *fu, flow_id id, flow_id from, const struct producer *c, uint32_t buffer) {
  struct producer p;
  if (!producer_form(fu->flow->nodes.items[from], &p) || !may_take_part(fu, &p, c, buffer))
    return false;
  struct clone made;
  clone_begin(&made, fu->flow, joined_name(fu, &p, c));
  clone_part(&made, &p, c, buffer);
  return place_joined(fu, id, from, &made);
}
/* The map with a sum that it reads. It may be gone then without one: in its users. */
static bool join_one(struct fuser *fu, flow_id id, bool is_part) {
  struct producer c;
  if (!producer_form(fu->flow->nodes.items[id], &c) || !c.is_map || c.value[1] || goes_into_update(fu, &c))
    return false;
  for (uint32_t b = 0; fu->flow->nodes.items[id] && b < c.node->kernel->buffers.count; b++) {
    value_id v = c.node->args[b].value;
    if (!v || c.node->kernel->buffers.items[b].mode != BUFFER_IN)
      continue;
    flow_id from = fu->flow->values.items[v].producer;
    if (is_part ? join_part(fu, id, from, &c, b) : join_epilogue(fu, id, from, &c, v))
      return true;
  }
  return false;
}

/* ---- views ---- */

/* The value that a kernel made and `v` is, in another shape or in the same. */
static value_id made_as(const struct flow *f, const struct flow_node *user, value_id v) {
  const struct flow_node *n;
  value_id root = v;
  while ((n = f->nodes.items[f->values.items[root].producer]) && flow_is_view(n) && n->task == user->task &&
         f->values.items[n->inputs.items[0]].dtype == f->values.items[root].dtype)
    root = n->inputs.items[0];
  return n && n->op == FLOW_KERNEL && n->task == user->task ? root : v;
}
static void look_through(struct flow *f, struct flow_node *n) {
  n->inputs.count = 0;
  for (uint32_t b = 0; b < n->kernel->buffers.count; b++)
    if (n->args[b].value && n->kernel->buffers.items[b].mode == BUFFER_IN) {
      n->args[b].value = made_as(f, n, n->args[b].value);
      vec_push(&n->inputs, n->args[b].value);
    }
}
/* Views that nobody looks at any more: they would be users of what they show. */
static void drop_views(struct flow *f, bool *followed) {
  bool *keep = calloc(f->nodes.count, 1);
  flow_mark_live(f, keep);
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_ALIAS && !keep[id])
      flow_drop_node(f, id, followed);
  free(keep);
}

/* ---- the walk ---- */

static void fuse_flow(struct build *b, struct epilogues *epilogues, struct flow *f) {
  uint32_t values = f->values.count;
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_KERNEL)
      look_through(f, f->nodes.items[id]);
  bool *followed = flow_followed(f);
  drop_views(f, followed);
  struct fuser fu = {.build = b, .epilogues = epilogues, .flow = f, .users = value_users_find(f), .followed = followed};
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = 0; n && r < n->region_count; r++)
      fuse_flow(b, epilogues, n->branches[r]);
    if (!n || n->op != FLOW_KERNEL)
      continue;
    if (has_scalar_constant(&fu, n)) {
      struct clone made;
      clone_begin(&made, f, n->kernel->name);
      clone_inline(&made, n, UINT32_MAX, NULL);
      replace_kernel(&fu, id, &made);
    }
    while (inline_one(&fu, id) || join_one(&fu, id, false) || join_one(&fu, id, true))
      ;
  }
  value_users_free(fu.users, values);
  free(followed);
}

status pass_fuse(struct build *b) {
  struct epilogues epilogues = {0};
  for (uint32_t i = 0; i < b->entries.count; i++)
    fuse_flow(b, &epilogues, b->entries.items[i].flow);
  map_deinit(&epilogues.forms);
  return OK;
}
