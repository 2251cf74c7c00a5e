/* lower_gather.c: a training step on several workers (compiler/pass/spread.c) puts the rows of all of them behind each
 * other before they are applied. How many there are then only the step knows, so what takes them is lowered with that size. */
#include <string.h>

#include "ir/lower/lower_state.h"

struct gathered {
  struct gathered *next;
  const struct flow *flow;
  const struct lower_gather *what;
  value_id from, to;
  dim size;         /* how many came */
  value_id numbers; /* of unique indices, for each that came: which of them it is; else NO_VALUE */
};

static bool is_listed(const char *const *names, uint32_t count, const char *node) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(names[i], node) == 0)
      return true;
  return false;
}

static bool lists_inside(const char *const *names, uint32_t count, const char *node) {
  size_t size = strlen(node);
  for (uint32_t i = 0; i < count; i++)
    if (strncmp(names[i], node, size) == 0 && names[i][size] == '/')
      return true;
  return false;
}

/* A cond hands its branches what they take (an optimizer that steps only where all gradients are finite): it is a user where they are. */
static bool is_user(const struct lower_gather *g, const struct node *n) {
  if (is_listed(g->users, g->user_count, n->name))
    return true;
  bool branches =
    strcmp(n->op, "If") == 0 || strcmp(n->op, "StatelessIf") == 0 || strcmp(n->op, "Case") == 0 || strcmp(n->op, "StatelessCase") == 0;
  return branches && lists_inside(g->users, g->user_count, n->name) && !lists_inside(g->makers, g->maker_count, n->name);
}

static const struct gathered *find(const struct lower *lw, const struct lower_gather *what, value_id from) {
  const struct gathered *g = lw->facts.gathered;
  while (g && (g->flow != lw->walk.flow || g->what != what || g->from != from))
    g = g->next;
  return g;
}

/* Rows and indices are as many. */
static dim pair_size(struct op_call *c, const struct lower_gather *what) {
  for (const struct gathered *g = c->lw->facts.gathered; g; g = g->next)
    if (g->flow == c->lw->walk.flow && g->what->pair == what->pair)
      return g->size;
  return op_new_symbol(c);
}

static struct flow_attr *gather_attrs(struct arena *a, const struct lower_gather *g, uint32_t *count) {
  const char *names[] = {"group_size", "group_key", "instance_key"};
  int64_t values[] = {g->workers, 0, g->key};
  struct flow_attr *attrs = ARENA_ARRAY(a, struct flow_attr, 4);
  for (uint32_t i = 0; i < 3; i++)
    attrs[i] = (struct flow_attr){.name = names[i], .value = {.kind = ATTR_INT, .i = values[i]}};
  attrs[3].name = "final_op";
  attrs[3].value.kind = ATTR_STRING;
  attrs[3].value.s.data = g->is_mean ? "Div" : "Id";
  attrs[3].value.s.size = strlen(attrs[3].value.s.data);
  *count = 4;
  return attrs;
}

static value_id behind_each_other(struct op_call *c, const struct lower_gather *what, value_id from) {
  struct lower *lw = c->lw;
  struct flow_value x = *op_value(c, from);
  flow_id id;
  x.dims[0] = pair_size(c, what);
  struct flow_node *n = flow_add_node(lw->walk.flow, FLOW_HOST, what->value, "CollectiveGather", c->node->task, &id);
  n->host = "CollectiveGather";
  n->blocks = n->stateful = true;
  n->attrs = gather_attrs(lw->arena, what, &n->attr_count);
  vec_push(&n->inputs, from);
  value_id to = flow_add_value(lw->walk.flow, x.dtype, x.rank, x.dims);
  lw->walk.flow->values.items[to].producer = id;
  vec_push(&n->outputs, to);
  return to;
}

/* Lowers an op that the graph has not, under no condition. */
static status call_beside(struct op_call *c, const struct lower_gather *what, const char *op, struct bound *in, struct bound *out) {
  struct arena *arena = c->lw->arena;
  struct node *node = arena_copy(arena, c->node, sizeof *node);
  node->name = arena_printf(arena, "%s/%s", what->value, op);
  node->op = op;
  node->def = registry_find(op);
  node->attr_count = 0;
  node->output_count = node->def->output_count;
  const uint8_t dtypes[] = {op_value(c, in[0].value)->dtype, DTYPE_INT32};
  node->output_dtypes = arena_copy(arena, dtypes, sizeof dtypes);
  struct op_call call = {.lw = c->lw, .node = node, .row = op_row_find(op), .in = in, .out = out};
  call.in_count = node->def->input_count;
  call.out_count = node->output_count;
  return call.row->build(&call);
}

/* The indices of rows are there before them: the first that are as many, as their node may count them, too. */
static value_id indices_of(const struct op_call *c, const struct lower_gather *rows, value_id from) {
  const struct flow *f = c->lw->walk.flow;
  for (value_id v = 1; v < f->values.count; v++) {
    const struct flow_value *x = &f->values.items[v];
    const struct flow_node *maker = f->nodes.items[x->producer];
    if (maker && x->rank == 1 && strcmp(maker->name, rows->indices) == 0 && flow_is_same_dim(f, v, from, 0))
      return v;
  }
  return NO_VALUE;
}

static status gather(struct op_call *c, const struct lower_gather *what, value_id from, const struct gathered **out);

/* Each index once. */
static status take_unique(struct op_call *c, struct gathered *g) {
  struct bound in = {.value = g->to}, out[2] = {{0}};
  TRY(call_beside(c, g->what, "Unique", &in, out));
  g->to = out[0].value;
  g->numbers = out[1].value;
  return OK;
}

/* Rows of one index are added up, as on one machine that index had been looked up once: whoever squares them squares the sum. */
static status add_up(struct op_call *c, struct gathered *g) {
  const struct lower_options *o = c->lw->options;
  const struct gathered *indices = NULL;
  value_id own = indices_of(c, g->what, g->from);
  for (uint32_t i = 0; i < o->gather_count && own && !indices; i++)
    if (o->gathers[i].pair == g->what->pair && strcmp(o->gathers[i].value, g->what->indices) == 0)
      TRY(gather(c, &o->gathers[i], own, &indices));
  if (!indices)
    return fail(UNIMPLEMENTED, "rows of several workers are to be added up by '%s', which is not found", g->what->indices);
  dim count = op_value(c, indices->to)->dims[0];
  struct bound in[3] = {{.value = g->to}, {.value = indices->numbers}, {.value = op_dims_value(c, DTYPE_INT32, 0, &count, 1)}};
  struct bound out = {0};
  TRY(call_beside(c, g->what, "UnsortedSegmentSum", in, &out));
  g->to = out.value;
  return OK;
}

static status gather(struct op_call *c, const struct lower_gather *what, value_id from, const struct gathered **out) {
  *out = find(c->lw, what, from);
  if (*out)
    return OK;
  struct gathered *g = ARENA_NEW(c->lw->arena, struct gathered);
  *g = (struct gathered){.flow = c->lw->walk.flow, .what = what, .from = from, .to = behind_each_other(c, what, from)};
  g->size = op_value(c, g->to)->dims[0];
  if (what->indices)
    TRY(strcmp(what->value, what->indices) == 0 ? take_unique(c, g) : add_up(c, g));
  g->next = c->lw->facts.gathered;
  c->lw->facts.gathered = g;
  *out = g;
  return OK;
}

status lower_gather_inputs(struct op_call *c) {
  struct lower *lw = c->lw;
  for (uint32_t k = 0; k < lw->options->gather_count && !lw->walk.region_depth && !lw->walk.trial_depth; k++) {
    if (!is_user(&lw->options->gathers[k], c->node))
      continue;
    for (uint32_t i = 0; i < c->in_count; i++) {
      value_id v = c->in[i].value;
      const struct flow_node *maker = v ? lw->walk.flow->nodes.items[op_value(c, v)->producer] : NULL;
      if (!maker || maker->guard_count || op_value(c, v)->rank < 1 || maker->op == FLOW_HOST ||
          strcmp(maker->name, lw->options->gathers[k].value) != 0)
        continue;
      const struct gathered *g;
      TRY(gather(c, &lw->options->gathers[k], v, &g));
      c->in[i].value = g->to;
      c->in[i].shares = 0;
    }
  }
  return OK;
}
