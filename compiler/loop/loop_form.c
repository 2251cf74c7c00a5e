/* loop_form.c: see loop_form.h. Counters and conditions are kernels of one expression over scalars, as lowering makes them. */
#include "compiler/loop/loop_form.h"

#include "compiler/edit/flow_edit.h"

uint32_t loop_var_count(const struct flow_node *n) { return n->inputs.count - n->rows_in; }

bool loop_is_regular(const struct flow_node *n) {
  uint32_t vars = loop_var_count(n);
  return n->op == FLOW_WHILE && n->region_count == 2 && n->branches[0]->params.count == vars &&
         n->branches[1]->params.count == n->inputs.count && n->outputs.count == vars + n->rows_out &&
         n->branches[1]->results.count == n->outputs.count;
}

bool loop_hands_on(const struct flow_node *n, uint32_t i) { return n->branches[1]->results.items[i] == n->branches[1]->params.items[i]; }

bool loop_condition_takes(const struct flow_node *loop, uint32_t var) {
  const struct flow *c = loop->branches[0];
  for (flow_id id = 1; id < c->nodes.count; id++)
    if (c->nodes.items[id] && node_takes(c->nodes.items[id], c->params.items[var]))
      return true;
  return c->results.items[0] == c->params.items[var];
}

uint32_t loop_var_of(const struct flow_node *n, value_id param) {
  for (uint32_t i = 0; i < loop_var_count(n); i++)
    if (n->branches[1]->params.items[i] == param)
      return i;
  return UINT32_MAX;
}

/* ---- scalars ---- */

/* A value as its kernel computes it: one expression. */
struct scalar_form {
  const struct flow *flow;
  const struct flow_node *node;
  const struct expr *value;
};

static bool scalar_form(const struct flow *f, value_id v, struct scalar_form *out) {
  const struct flow_node *n = f->nodes.items[f->values.items[v].producer];
  if (!n || n->op != FLOW_KERNEL || n->guard_count || f->values.items[v].rank != 0)
    return false;
  const struct stmt *s = n->kernel->body;
  if (!s || s->next || s->kind != STMT_STORE || s->index_count || n->args[s->buffer].value != v)
    return false;
  *out = (struct scalar_form){f, n, expr_get(n->kernel, s->value)};
  return out->value->count == 2;
}

static value_id operand_value(const struct scalar_form *x, int i) {
  const struct expr *load = expr_get(x->node->kernel, x->node->kernel->operands.items[x->value->first + (uint32_t)i]);
  return load->op == SCALAR_LOAD && load->count == 0 ? x->node->args[load->imm].value : NO_VALUE;
}

static bool value_number(const struct flow *f, value_id v, int64_t *out) {
  const struct flow_value *x = &f->values.items[v];
  if (!v || !x->data || x->rank != 0 || (x->dtype != DTYPE_INT32 && x->dtype != DTYPE_INT64))
    return false;
  *out = x->dtype == DTYPE_INT32 ? *(const int32_t *)x->data : *(const int64_t *)x->data;
  return true;
}

static bool operand_number(const struct scalar_form *x, int i, int64_t *out) {
  expr_id e = x->node->kernel->operands.items[x->value->first + (uint32_t)i];
  return expr_is_const(x->node->kernel, e, out) || value_number(x->flow, operand_value(x, i), out);
}

/* What the variable grows by in each turn; 0: it is no counter. */
static int64_t step_of(const struct flow_node *n, uint32_t i) {
  const struct flow *body = n->branches[1];
  value_id param = body->params.items[i];
  struct scalar_form x;
  int64_t by;
  if (!scalar_form(body, body->results.items[i], &x))
    return 0;
  if (x.value->op == SCALAR_SUB)
    return operand_value(&x, 0) == param && operand_number(&x, 1, &by) ? -by : 0;
  for (int k = 0; x.value->op == SCALAR_ADD && k < 2; k++)
    if (operand_value(&x, k) == param && operand_number(&x, 1 - k, &by))
      return by;
  return 0;
}

bool loop_counts(const struct flow *f, const struct flow_node *n, uint32_t i) {
  int64_t start;
  return value_number(f, n->inputs.items[i], &start) && start == 0 && step_of(n, i) == 1;
}

/* ---- turns ---- */

/* A condition `variable < limit`. */
struct bound {
  uint32_t var;
  value_id limit; /* of the condition; NO_VALUE: number */
  int64_t number;
};

static uint32_t param_number(const struct flow *f, value_id v) {
  for (uint32_t i = 0; v && i < f->params.count; i++)
    if (f->params.items[i] == v)
      return i;
  return UINT32_MAX;
}

/* Of the condition's value v. less_than: variable < limit; else: variable > limit. */
static bool condition_bound(const struct flow *c, value_id v, bool less_than, struct bound *out) {
  struct scalar_form x;
  if (!scalar_form(c, v, &x) || (x.value->op != SCALAR_LT && x.value->op != SCALAR_LE))
    return false;
  int side = less_than ? 0 : 1;
  bool is_number = operand_number(&x, 1 - side, &out->number);
  out->var = param_number(c, operand_value(&x, side));
  out->limit = is_number ? NO_VALUE : operand_value(&x, 1 - side);
  if (x.value->op == SCALAR_LE)
    out->number += less_than ? 1 : -1;
  return out->var != UINT32_MAX && (is_number || (out->limit && x.value->op == SCALAR_LT));
}

/* How many turns have the condition's value v, one `variable < limit`. */
static dim turns_below(const struct flow *f, const struct flow_node *n, value_id v) {
  struct bound b;
  if (!condition_bound(n->branches[0], v, true, &b) || !loop_counts(f, n, b.var))
    return NO_DIM;
  if (!b.limit)
    return dim_const(f->dims, b.number > 0 ? b.number : 0);
  uint32_t i = param_number(n->branches[0], b.limit);
  const struct flow_value *limit = i == UINT32_MAX || !loop_hands_on(n, i) ? NULL : &f->values.items[n->inputs.items[i]];
  if (!limit || limit->rank != 0)
    return NO_DIM;
  if (value_number(f, n->inputs.items[i], &b.number))
    return dim_const(f->dims, b.number > 0 ? b.number : 0);
  return limit->content && limit->content[0] != NO_DIM ? dim_max(f->dims, limit->content[0], dim_const(f->dims, 0)) : NO_DIM;
}

dim loop_turns(const struct flow *f, const struct flow_node *n) {
  const struct flow *c = loop_is_regular(n) ? n->branches[0] : NULL;
  struct scalar_form x;
  if (!c)
    return NO_DIM;
  bool are_two = scalar_form(c, c->results.items[0], &x) && x.value->op == SCALAR_AND; /* as with a greatest number of turns */
  value_id a = are_two ? operand_value(&x, 0) : c->results.items[0], b = are_two ? operand_value(&x, 1) : a;
  dim turns = a && b ? turns_below(f, n, a) : NO_DIM, more = turns != NO_DIM ? turns_below(f, n, b) : NO_DIM;
  return more != NO_DIM ? dim_min(f->dims, turns, more) : NO_DIM;
}

/* Whether a value is what `first` has counted when it ends. */
static bool is_count_of(const struct flow *f, const struct flow_node *first, value_id v) {
  for (uint32_t i = 0; i < loop_var_count(first); i++)
    if (first->outputs.items[i] == v)
      return loop_counts(f, first, i);
  return false;
}

bool loop_follows(const struct flow *f, const struct flow_node *first, const struct flow_node *later) {
  struct bound b;
  if (!loop_is_regular(first) || !loop_is_regular(later))
    return false;
  if (condition_bound(later->branches[0], later->branches[0]->results.items[0], false, &b) && !b.limit && b.number == 0)
    return step_of(later, b.var) == -1 && is_count_of(f, first, later->inputs.items[b.var]);
  if (!condition_bound(later->branches[0], later->branches[0]->results.items[0], true, &b) || !b.limit || !loop_counts(f, later, b.var))
    return false;
  uint32_t i = param_number(later->branches[0], b.limit);
  return i != UINT32_MAX && loop_hands_on(later, i) && is_count_of(f, first, later->inputs.items[i]);
}

dim loop_turns_known(const struct flow *f, flow_id loop) {
  const struct flow_node *n = f->nodes.items[loop];
  dim turns = loop_turns(f, n);
  for (flow_id id = 1; id < loop && turns == NO_DIM; id++) {
    const struct flow_node *first = f->nodes.items[id];
    if (first && first->op == FLOW_WHILE && loop_follows(f, first, n))
      turns = loop_turns(f, first);
  }
  return turns;
}
