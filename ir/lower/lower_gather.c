/* lower_gather.c: a training step on several workers (compiler/pass/spread.c) puts the rows of all of them behind each
 * other before they are applied. How many there are then only the step knows, so what takes them is lowered with that size. */
#include <string.h>

#include "ir/lower/lower_state.h"

struct gathered {
  struct gathered *next;
  const struct flow *flow;
  const struct lower_gather *what;
  value_id from, to;
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
      return op_value(c, g->to)->dims[0];
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

static value_id gather(struct op_call *c, const struct lower_gather *what, value_id from) {
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
  struct gathered *g = ARENA_NEW(lw->arena, struct gathered);
  *g = (struct gathered){lw->facts.gathered, lw->walk.flow, what, from, to};
  lw->facts.gathered = g;
  return to;
}

void lower_gather_inputs(struct op_call *c) {
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
      const struct gathered *g = find(lw, &lw->options->gathers[k], v);
      c->in[i].value = g ? g->to : gather(c, &lw->options->gathers[k], v);
      c->in[i].shares = 0;
    }
  }
}
