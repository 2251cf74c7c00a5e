/* lower_optimizer.c: what TensorFlow's optimizer (grappler) rewrites before a step runs, where values change by more than rounding.
 *
 * The logarithm of a softmax is a LogSoftmax, which is finite where the probability is 0. What is reduced is taken before a monotonic
 * function, so that argmax does not see what saturates and a maximum not where the function is undefined. A comparison is turned around
 * instead of negated, which differs for NaN. Powers of a half are roots.
 *
 * The optimizer keeps nodes that the step hands out, and a function that somebody else uses too. Left alone is what changes rounding only:
 * sums and products of constants that it joins, factors that it takes out of sums, kernels that it fuses. */
#include <string.h>

#include "ir/graph/attr_hash.h"
#include "ir/graph/function.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

#define TWIN_DEPTH 4    /* how far nodes are compared */
#define MONOTONIC_MAX 8 /* functions of functions */

/* A softmax that has been lowered. */
struct lowered_softmax {
  const struct flow *flow;
  value_id out;
  const struct frame *unit;
  struct bound in;
  const struct lowered_softmax *next;
};

static bool is_op(const struct node *n, const char *op) { return strcmp(n->op, op) == 0; }

static bool is_listed(const char *const *ops, const char *op) {
  for (; *ops; ops++)
    if (strcmp(*ops, op) == 0)
      return true;
  return false;
}

/* What is optimised together: the frame of a function that is not inlined, or NULL: the step's own graph. */
static const struct frame *frame_unit(const struct lower *lw, const struct frame *fr) {
  for (; fr && fr->function; fr = fr->parent) {
    const struct function *f = function_find(lw->graph, fr->function);
    if (f && f->is_shared)
      return fr;
  }
  return NULL;
}

/* 1: grows with its argument, -1: falls, 0: neither, or not known to. */
static int slope_of(const struct node *n) {
  static const char *const grows[] = {"Acosh", "Asin",  "Asinh",    "Atan",     "Atanh", "Ceil",  "Elu",  "Erf",  "Exp",
                                      "Expm1", "Floor", "Log",      "Log1p",    "Relu",  "Relu6", "Rint", "Selu", "Sigmoid",
                                      "Sign",  "Sinh",  "Softsign", "Softplus", "Sqrt",  "Tanh",  NULL};
  static const char *const falls[] = {"Acos", "Erfc", "Neg", "Rsqrt", NULL};
  return is_listed(grows, n->op) ? 1 : is_listed(falls, n->op) ? -1 : 0;
}

static const char *reversed(const char *op, const char *const *pairs) {
  for (int i = 0; pairs[i]; i++)
    if (strcmp(pairs[i], op) == 0)
      return pairs[i ^ 1];
  return NULL;
}

static const char *const extremes[] = {"Max", "Min", "ArgMax", "ArgMin", NULL};
static const char *const comparisons[] = {"Less", "GreaterEqual", "Greater", "LessEqual", "Equal", "NotEqual", NULL};

/* The step hands it out. */
static bool is_kept(const struct lower *lw, const struct frame *fr, uint32_t node) {
  const struct lower_request *r = lw->walk.request;
  for (uint32_t i = 0; i < fr->wanted_count && !fr->function; i++)
    if (fr->wanted[i].node == node)
      return true;
  for (uint32_t i = 0; r && i < r->target_count && !fr->function; i++)
    if (r->targets[i] == node)
      return true;
  return false;
}

/* How many inputs, control inputs and results a node is. */
static uint32_t count_uses(const struct frame *fr, uint32_t node) {
  const struct graph *g = fr->graph;
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->nodes.count; i++) {
    for (uint32_t k = 0; fr->needed[i] && k < g->nodes.items[i].input_count; k++)
      count += g->nodes.items[i].inputs[k].node == node;
    for (uint32_t k = 0; fr->needed[i] && k < g->nodes.items[i].control_count; k++)
      count += g->nodes.items[i].controls[k] == node;
  }
  for (uint32_t i = 0; i < fr->wanted_count; i++)
    count += fr->wanted[i].node == node;
  return count;
}

static bool same_attrs(const struct node *a, const struct node *b) {
  bool same = true;
  for (uint32_t i = 0; i < a->attr_count && same; i++) {
    const struct attr_value *other = attr_find(b->attrs, b->attr_count, a->attrs[i].name);
    same = a->attrs[i].name[0] == '_' || (other && attr_hash_value(other) == attr_hash_value(&a->attrs[i].value));
  }
  return same;
}

/* Whether the optimizer makes one node of both. */
static bool are_twins(const struct graph *g, uint32_t a, uint32_t b, int depth) {
  const struct node *x = &g->nodes.items[a], *y = &g->nodes.items[b];
  if (a == b || depth == 0)
    return a == b;
  if (strcmp(x->op, y->op) != 0 || !x->def || x->def->is_stateful || x->input_count != y->input_count ||
      x->control_count + y->control_count)
    return false;
  for (uint32_t i = 0; i < x->input_count; i++)
    if (x->inputs[i].port != y->inputs[i].port || !are_twins(g, x->inputs[i].node, y->inputs[i].node, depth - 1))
      return false;
  return same_attrs(x, y) && same_attrs(y, x);
}

/* Whether a node like this one is used otherwise than by a node like its user, or by one that stays what it is. */
static bool is_used_as_twin(const struct lower *lw, const struct frame *fr, uint32_t node, uint32_t user) {
  const struct graph *g = fr->graph;
  for (uint32_t i = 0; i < g->nodes.count; i++) {
    if (!fr->needed[i] || i == node || strcmp(g->nodes.items[i].op, g->nodes.items[node].op) != 0 || !are_twins(g, i, node, TWIN_DEPTH))
      continue;
    for (uint32_t u = 0; u < g->nodes.count; u++)
      for (uint32_t k = 0; fr->needed[u] && k < g->nodes.items[u].input_count; k++)
        if (g->nodes.items[u].inputs[k].node == i && (is_kept(lw, fr, u) || !are_twins(g, u, user, TWIN_DEPTH)))
          return true;
  }
  return false;
}

/* A node of a frame. */
struct place {
  struct frame *fr;
  uint32_t node;
};

static bool is_call(const struct node *n) { return !n->def || is_op(n, "PartitionedCall") || is_op(n, "StatefulPartitionedCall"); }

/* The frame of the body that a call has inlined; NULL: none. */
static struct frame *frame_of_call(const struct lower *lw, const struct frame *fr, const struct node *call) {
  struct frame *body = lw->walk.newest_frame;
  while (body && !(body->parent == fr && body->call == call))
    body = body->older;
  return body && frame_unit(lw, body) != body ? body : NULL;
}

/* The node behind an input that nobody else uses, through identities and calls that are inlined. */
static bool sole_input(const struct lower *lw, struct place from, struct place *out) {
  struct edge e = from.fr->graph->nodes.items[from.node].inputs[0];
  struct frame *fr = from.fr;
  for (;;) {
    const struct node *n = &fr->graph->nodes.items[e.node];
    bool passes = is_op(n, "Identity") || is_call(n);
    if (!passes && !slope_of(n) && !reversed(n->op, comparisons))
      return false;
    if (!fr->needed[e.node] || is_kept(lw, fr, e.node) || count_uses(fr, e.node) != 1)
      return false;
    *out = (struct place){fr, e.node};
    struct frame *body = is_call(n) ? frame_of_call(lw, fr, n) : NULL;
    if (body) {
      e = body->wanted[e.port];
      fr = body;
      if (!fr->needed[e.node])
        return false; /* an argument */
    } else if (is_op(n, "Identity")) {
      e = n->inputs[0];
    } else {
      return fr != from.fr || !is_used_as_twin(lw, fr, e.node, from.node);
    }
  }
}

static const struct node *node_at(struct place p) { return &p.fr->graph->nodes.items[p.node]; }

static struct bound input_at(struct place p, uint32_t i) {
  const struct edge e = node_at(p)->inputs[i];
  return p.fr->bound[e.node][e.port];
}

static struct node renamed(const struct node *n, const char *op) {
  struct node copy = *n;
  copy.op = op;
  copy.def = registry_find(op);
  copy.input_count = copy.input_count < copy.def->input_count ? copy.input_count : copy.def->input_count;
  return copy;
}

/* Lowers the call as one of another op, with these inputs. */
static status call_as(struct op_call *c, const struct node *like, const char *op, struct bound *in) {
  struct op_call other = *c;
  struct node *node = arena_copy(c->lw->arena, like, sizeof *node);
  *node = renamed(like, op);
  node->name = c->node->name;
  node->task = c->node->task;
  node->assigned = c->node->assigned;
  other.node = node;
  other.in = in;
  other.in_count = node->input_count;
  status s = lower_each_alternative(&other);
  op_go_on(c, &other);
  return s;
}

static status take_log(struct op_call *c, bool *done) {
  const struct lowered_softmax *s = c->lw->facts.softmaxes;
  while (s && !(s->flow == c->lw->walk.flow && s->out == c->in[0].value && s->unit == frame_unit(c->lw, c->lw->walk.frame)))
    s = s->next;
  if (!s)
    return OK;
  struct bound in = s->in;
  *done = true;
  return call_as(c, c->node, "LogSoftmax", &in);
}

/* The number that all elements of a known tensor are; 0: they are not one, or not known. */
static double same_number(const struct flow_value *x, int64_t count) {
  const size_t size = dtype_size(x->dtype);
  for (int64_t i = 1; i < count; i++)
    if (memcmp(x->data, (const char *)x->data + (size_t)i * size, size) != 0)
      return 0;
  if (count == 0)
    return 0;
  const uint16_t *bits = x->data;
  switch (x->dtype) {
  case DTYPE_FLOAT: return *(const float *)x->data;
  case DTYPE_DOUBLE: return *(const double *)x->data;
  case DTYPE_HALF: return *bits == 0x3800 ? 0.5 : *bits == 0xb800 ? -0.5 : 0;
  case DTYPE_BFLOAT16: return *bits == 0x3f00 ? 0.5 : *bits == 0xbf00 ? -0.5 : 0;
  default: return 0;
  }
}

/* Where the exponents do not broadcast the base. */
static status take_root(struct op_call *c, bool *done) {
  if (!c->in[0].value || !c->in[1].value)
    return OK;
  const struct flow_value *power = op_value(c, c->in[1].value), *base = op_value(c, c->in[0].value);
  bool fits = power->data && power->rank <= base->rank;
  int64_t count = 1, size;
  for (int i = 0; fits && i < power->rank; i++) {
    size = op_dim_value(c, power->dims[i]);
    count *= size;
    fits = size == 1 || dim_equal(c->lw->dims, power->dims[i], base->dims[base->rank - power->rank + i]) == 1;
  }
  double exponent = fits ? same_number(power, count) : 0;
  *done = exponent == 0.5 || exponent == -0.5;
  return *done ? call_as(c, c->node, exponent > 0 ? "Sqrt" : "Rsqrt", c->in) : OK;
}

static status compare(struct op_call *c, struct place at, bool *done) {
  struct place inner;
  const char *op = sole_input(c->lw, at, &inner) ? reversed(node_at(inner)->op, comparisons) : NULL;
  if (!op)
    return OK;
  *done = true;
  struct bound in[2] = {input_at(inner, 0), input_at(inner, 1)};
  return call_as(c, node_at(inner), op, in);
}

/* TensorFlow fuses these instead. */
static bool is_fused(struct place inner) {
  const char *before = inner.fr->graph->nodes.items[node_at(inner)->inputs[0].node].op;
  return strncmp(node_at(inner)->op, "Relu", 4) == 0 && (strcmp(before, "BiasAdd") == 0 || strncmp(before, "FusedBatchNorm", 14) == 0);
}

/* The extreme of a monotonic function: the function of the extreme, or where that lies. */
static status reduce(struct op_call *c, struct place at, bool *done) {
  struct place inner[MONOTONIC_MAX];
  const char *op = c->node->op;
  uint32_t count = 0;
  while (count < MONOTONIC_MAX && sole_input(c->lw, count ? inner[count - 1] : at, &inner[count]) && slope_of(node_at(inner[count])) &&
         !is_fused(inner[count])) {
    op = slope_of(node_at(inner[count])) > 0 ? op : reversed(op, extremes);
    count++;
  }
  *done = count > 0;
  if (count == 0)
    return OK;
  struct bound in[2] = {input_at(inner[count - 1], 0), c->in[1]};
  TRY(call_as(c, c->node, op, in));
  while (count-- > 0 && strncmp(op, "Arg", 3) != 0) {
    struct bound reduced = c->out[0];
    c->out[0] = (struct bound){0};
    TRY(call_as(c, node_at(inner[count]), node_at(inner[count])->op, &reduced));
  }
  return OK;
}

status lower_optimized(struct op_call *c, struct frame *fr, uint32_t index, bool *done) {
  const struct node *n = c->node;
  bool root = is_op(n, "Pow"), negates = is_op(n, "LogicalNot"), extreme = reversed(n->op, extremes) && n->input_count == 2;
  *done = false;
  if ((!is_op(n, "Log") && !root && !negates && !extreme) || !lower_is_optimized(c->lw))
    return OK;
  if (is_kept(c->lw, fr, index) && (negates || extreme))
    return OK;
  const struct place at = {fr, index};
  return root ? take_root(c, done) : negates ? compare(c, at, done) : extreme ? reduce(c, at, done) : take_log(c, done);
}

void lower_note_softmax(struct op_call *c, struct frame *fr, uint32_t index) {
  if (!is_op(c->node, "Softmax") || !c->out[0].value || is_kept(c->lw, fr, index))
    return;
  struct lowered_softmax *s = ARENA_NEW(c->lw->arena, struct lowered_softmax);
  *s = (struct lowered_softmax){c->lw->walk.flow, c->out[0].value, frame_unit(c->lw, fr), c->in[0], c->lw->facts.softmaxes};
  c->lw->facts.softmaxes = s;
}
