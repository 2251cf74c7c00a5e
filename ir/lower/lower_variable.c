/* lower_variable.c: the inputs of a call, of which variables are read. One that is declared without a shape has the rank that the
 * graph's assignments give it; where they give several, a read is a value for each of them (lower_alternatives.c), and the step takes the
 * one that is there. */
#include <string.h>

#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"
#include "ir/lower/host_call.h"

/* Adds the ranks of all assignments that tell theirs. *missed: one does not. */
static void search_ranks(struct op_call *c, const struct flow_var *var, struct assigned_rank *search, bool *missed) {
  const struct graph *g = c->lw->graph;
  uint32_t maker = graph_find(g, var->node);
  *missed = false;
  for (uint32_t n = 0; n < g->nodes.count; n++) {
    const struct node *assign = &g->nodes.items[n];
    bool assigns = strcmp(assign->op, "Assign") == 0 || strcmp(assign->op, "AssignVariableOp") == 0;
    int rank;
    int64_t sizes[LIMIT_RANK];
    if (!assigns || assign->inputs[0].node != maker)
      continue;
    if (lower_said_shape(c->lw, assign->inputs[1], &rank, sizes))
      search->ranks |= ranks_of(rank);
    else if (lower_static_shape(c->lw, assign->inputs[1], &rank, sizes))
      search->ranks |= ANY_RANK; /* what is fed has any */
    else
      *missed = true;
  }
}

/* The ranks of a variable that is declared without one: those of all values which the graph assigns to it, in any entry. A value
 * that is computed from the variable itself has a rank once another one does, so what was missed is looked at once more. */
static status assigned_ranks(struct op_call *c, uint32_t number, rank_set *ranks) {
  const struct flow_var var = *op_var(c, number);
  struct assigned_rank *search = *c->lw->facts.assigned_ranks;
  while (search && search->var != number)
    search = search->next;
  if (!search) {
    bool missed;
    search = ARENA_NEW(c->lw->arena, struct assigned_rank);
    *search = (struct assigned_rank){.var = number, .next = *c->lw->facts.assigned_ranks};
    *c->lw->facts.assigned_ranks = search;
    search_ranks(c, &var, search, &missed);
    if (missed && search->ranks)
      search_ranks(c, &var, search, &missed);
  }
  *ranks = search->ranks;
  return *ranks ? OK : fail(UNIMPLEMENTED, "variable '%s' has no rank, and nothing in the graph that says it assigns to it", var.name);
}

/* The ranks that it may have here: after an assignment of this step, that of the value. */
static status variable_ranks(struct op_call *c, struct bound b, rank_set *ranks) {
  const struct lower *lw = c->lw;
  int declared = op_var(c, b.var - 1)->rank, given = -1;
  for (uint32_t i = 0; i < lw->facts.given_ranks.count && (b.after || c->controls.count); i++)
    if (lw->facts.given_ranks.items[i].var == b.var - 1)
      given = lw->facts.given_ranks.items[i].rank;
  int rank = declared >= 0 ? declared : given;
  *ranks = rank >= 0 ? ranks_of(rank) : 0;
  return rank >= 0 ? OK : assigned_ranks(c, b.var - 1, ranks);
}

void lower_note_rank(struct op_call *c, uint32_t var, int rank) {
  bool certain = !c->guards && !c->lw->walk.region_depth && !c->lw->walk.alternative_depth;
  vec_push(&c->lw->facts.given_ranks, (struct given_rank){var, certain ? rank : -1});
}

static struct flow_node *emit_read(struct op_call *c, struct bound b) {
  op_add_control(c, b.after);
  struct flow_node *n = op_emit(c, FLOW_READ, true);
  n->var = b.var - 1;
  n->task = op_var(c, b.var - 1)->task; /* a reference used on another task is read where the variable is, and sent */
  return n;
}

status lower_read_variable(struct op_call *c, struct bound b, value_id *out) {
  rank_set ranks;
  TRY(variable_ranks(c, b, &ranks));
  const struct flow_var *var = op_var(c, b.var - 1); /* lowering what is assigned may have moved it */
  if (ranks_are_many(ranks)) {
    c->lw->wants.var = b.var;
    return fail(UNIMPLEMENTED, "variable '%s' has several ranks", var->name);
  }
  int rank = ranks_lowest(ranks);
  struct flow_node *n = emit_read(c, b);
  dim dims[LIMIT_RANK];
  for (int i = 0; i < rank; i++)
    dims[i] = var->rank < 0 || var->dims[i] < 0 ? op_new_symbol(c) : op_dim(c, var->dims[i]);
  *out = op_add_output(c, n, var->dtype, rank, dims);
  return OK;
}

bool lower_variable_has_ranks(struct op_call *c, struct bound b) {
  rank_set ranks;
  return b.var && !b.value && !b.alternatives && variable_ranks(c, b, &ranks) == OK && ranks_are_many(ranks);
}

value_id lower_read_any_rank(struct op_call *c, struct bound b) {
  value_id v = op_add_output(c, emit_read(c, b), op_var(c, b.var - 1)->dtype, 0, NULL);
  op_value(c, v)->any_rank = true;
  return v;
}

/* The leaves are still the variable: an update of it needs them so. */
static void stay_variable(struct bound *b, struct bound of) {
  b->var = of.var;
  b->after = of.after;
  if (!b->alternatives)
    return;
  struct alternatives *a = (struct alternatives *)b->alternatives;
  b->var = 0;
  stay_variable(&a->side[0], of);
  stay_variable(&a->side[1], of);
}

void op_after_inputs(struct op_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (c->in[i].value)
      op_add_control(c, op_value(c, c->in[i].value)->producer);
}

status lower_each_rank(struct op_call *c) {
  op_after_inputs(c);
  struct op_call one = *c;
  one.in = ARENA_ARRAY(c->lw->arena, struct bound, c->in_count + 1);
  for (uint32_t i = 0; i < c->in_count; i++) {
    struct bound b = one.in[i] = c->in[i];
    rank_set ranks;
    if (b.var != c->lw->wants.var || !lower_variable_has_ranks(c, b))
      continue;
    TRY(variable_ranks(c, b, &ranks));
    status read = op_any_rank(&one, lower_read_any_rank(&one, b), ranks, &one.in[i]);
    op_go_on(c, &one);
    TRY(read);
    stay_variable(&one.in[i], b);
  }
  status s = lower_each_alternative(&one);
  op_go_on(c, &one);
  c->keeps_guards = one.keeps_guards && !c->lw->walk.alternative_depth;
  return s;
}

/* ---- inputs ---- */

/* What the memory of the variable that a value shares holds now, in the value's shape. */
static status read_again(struct op_call *c, struct bound b, value_id *out) {
  TRY(lower_read_variable(c, (struct bound){.var = b.shares, .after = b.after}, out));
  const struct flow_value was = *op_value(c, b.value);
  if (was.producer && c->lw->walk.flow->nodes.items[was.producer]->op == FLOW_ALIAS)
    *out = op_alias(c, *out, was.dtype, was.rank, was.dims);
  return OK;
}

status op_input(struct op_call *c, uint32_t i, value_id *out) {
  struct bound b = c->in[i];
  if (b.alternatives)
    return fail(UNIMPLEMENTED, "input %u has a rank that only the step knows", i);
  if (b.rank_open != NO_DIM && strcmp(c->node->op, "Reshape") != 0) {
    c->lw->wants.size = b.rank_open;
    return fail(UNIMPLEMENTED, "the rank of input %u is not known while compiling: it was reduced over axes that are not", i);
  }
  bool shares = b.value && b.shares && (b.rereads || c->controls.count);
  if (shares && lower_may_have_changed(c->lw, b.shares - 1) && op_var(c, b.shares - 1)->task == c->node->task)
    return read_again(c, b, out);
  if (b.value) {
    *out = b.value;
    return OK;
  }
  if (b.var)
    return lower_read_variable(c, b, out);
  return fail(INVALID_ARGUMENT, "input %u is never computed", i);
}

status op_read(const struct op_call *c, struct bound b, value_id *out) {
  struct op_call one = *c;
  one.in = &b;
  one.in_count = 1;
  one.guards = b.guards;
  memset(&one.controls, 0, sizeof one.controls); /* they grow: a list of its own */
  for (uint32_t i = 0; i < c->controls.count; i++)
    vec_push(&one.controls, c->controls.items[i]);
  status s = op_input(&one, 0, out);
  vec_free(&one.controls);
  return s;
}

status op_input_var(struct op_call *c, uint32_t i, uint32_t *out) {
  struct bound b = c->in[i];
  if (!b.var)
    return fail(INVALID_ARGUMENT, "input %u is no variable", i);
  op_add_control(c, b.after);
  *out = b.var - 1;
  return OK;
}
