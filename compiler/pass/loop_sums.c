/* loop_sums.c: variables of a loop to which each turn adds a product, as the gradients of weights that all turns read: the products of all
 * turns become one, behind the loop (ir/schedule/over_turns.h). What its factors are in each turn are rows of arrays that the loop takes,
 * or makes now; the variable itself, which each turn read and wrote anew, is gone.
 *
 * That is done where the number of turns is known, where what is no longer moved is more than what the rows move, and where a turn adds so
 * few terms that reading and writing the sum takes longer. */
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/loop_form.h"
#include "compiler/edit/loop_rows.h"
#include "compiler/edit/producer_form.h"
#include "compiler/pass/loops.h"
#include "ir/schedule/over_turns.h"

#define TURNS_MIN 2
/* Of a turn, at most: by them a sum in the second cache is read and written in the time of its multiply-adds (a Xeon of 2024), and one from
 * beyond it. */
#define TERMS_NEAR 16
#define TERMS_FAR 64

/* What a value of the body is behind the loop. */
enum factor_kind { FACTOR_NONE, FACTOR_STEADY, FACTOR_ROW, FACTOR_NEW_ROW };

struct turn_sum {
  const struct build *build;
  struct flow *flow;
  flow_id loop;
  dim turns;
  int64_t turn_count; /* that are so many */
  uint32_t var;
  const struct flow_node *add, *product; /* of the body */
  enum factor_kind *kinds;               /* by argument of the product */
  int64_t bytes;                         /* of the sum */
};

static struct flow_node *loop_of(const struct turn_sum *s) { return s->flow->nodes.items[s->loop]; }
static struct flow *body_of(const struct turn_sum *s) { return loop_of(s)->branches[1]; }

/* ---- how many turns ---- */

static bool all_have_rows(struct flow *f, const value_id *arrays, uint32_t count, dim rows) {
  for (uint32_t i = 0; i < count; i++)
    if (dim_equal(f->dims, f->values.items[arrays[i]].dims[0], rows) != 1)
      return false;
  return true;
}
/* Where it is known, and all its arrays have a row for each. */
static bool count_turns(struct turn_sum *s) {
  struct flow *f = s->flow;
  const struct flow_node *n = loop_of(s);
  uint32_t vars = loop_var_count(n);
  s->turns = loop_turns_known(f, s->loop);
  return s->turns != NO_DIM && dim_is_const(f->dims, s->turns, &s->turn_count) && s->turn_count >= TURNS_MIN &&
         all_have_rows(f, n->inputs.items + vars, n->rows_in, s->turns) && all_have_rows(f, n->outputs.items + vars, n->rows_out, s->turns);
}

/* ---- what each turn adds ---- */

static const struct flow_node *only_maker(const struct flow *body, value_id v) {
  flow_id user;
  const struct flow_node *n = body->nodes.items[body->values.items[v].producer];
  return n && n->op == FLOW_KERNEL && !n->guard_count && !n->stateful && !n->is_target && n->outputs.count == 1 && !n->kernel->size_count &&
             flow_use_count(body, v, &user) == 1
         ? n
         : NULL;
}
/* The two values that a kernel adds up, element by element. */
static bool adds(const struct flow_node *n, value_id out[2]) {
  struct producer p;
  if (!producer_form(n, &p) || !p.is_map)
    return false;
  const struct expr *x = expr_get(n->kernel, p.value[0]);
  if (x->op != SCALAR_ADD || dtype_is_complex(n->kernel->buffers.items[p.buffer].dtype))
    return false;
  for (int i = 0; i < 2; i++) {
    const struct expr *load = expr_get(n->kernel, expr_operand(n->kernel, p.value[0], i));
    if (load->op != SCALAR_LOAD || !producer_loads_own(&p, (uint32_t)load->imm))
      return false;
    out[i] = n->args[load->imm].value;
  }
  return out[0] && out[1] && out[0] != out[1];
}
static bool find_sum(struct turn_sum *s) {
  const struct flow_node *n = loop_of(s);
  const struct flow *body = n->branches[1];
  value_id param = body->params.items[s->var], terms[2];
  flow_id user;
  s->add = only_maker(body, body->results.items[s->var]);
  if (!s->add || flow_use_count(body, param, &user) != 1 || loop_condition_takes(n, s->var) || !adds(s->add, terms) ||
      (terms[0] != param && terms[1] != param))
    return false;
  s->product = only_maker(body, terms[terms[0] == param]);
  return s->product != NULL;
}

/* ---- factors ---- */

static enum factor_kind factor_kind(const struct turn_sum *s, value_id v) {
  const struct flow_node *n = loop_of(s);
  const struct flow *body = body_of(s);
  const struct flow_value *x = &body->values.items[v];
  const struct flow_node *maker = x->producer ? body->nodes.items[x->producer] : NULL;
  uint32_t var = loop_var_of(n, v);
  if (x->rank == LIMIT_RANK || x->any_rank)
    return FACTOR_NONE;
  if ((var != UINT32_MAX && loop_hands_on(n, var)) || (maker && maker->op == FLOW_CONST))
    return FACTOR_STEADY;
  if (!maker && var == UINT32_MAX)
    return FACTOR_ROW;
  return !maker || (!maker->guard_count && !loop_is_variable_memory(body, v)) ? FACTOR_NEW_ROW : FACTOR_NONE;
}
static int64_t bytes_of(const struct flow_node *n, uint32_t buffer) {
  const struct kernel_buffer *b = &n->kernel->buffers.items[buffer];
  int64_t bytes = (int64_t)dtype_size(b->dtype);
  for (int i = 0; i < b->rank; i++)
    bytes *= b->dims[i];
  return bytes;
}
/* Of each turn: the sum is read and written no more; rows are read again, and new ones written. */
static bool find_factors(struct turn_sum *s) {
  const struct flow_node *p = s->product;
  int64_t moved = 0;
  s->bytes = 0;
  s->kinds = ARENA_ARRAY(s->flow->arena, enum factor_kind, p->kernel->buffers.count + 1);
  for (uint32_t i = 0; i < p->kernel->buffers.count; i++) {
    if (p->kernel->buffers.items[i].mode != BUFFER_IN) {
      s->bytes += bytes_of(p, i);
      continue;
    }
    s->kinds[i] = p->args[i].value ? factor_kind(s, p->args[i].value) : FACTOR_NONE;
    if (s->kinds[i] == FACTOR_NONE)
      return false;
    moved += s->kinds[i] == FACTOR_NEW_ROW ? 2 * bytes_of(p, i) : s->kinds[i] == FACTOR_ROW ? bytes_of(p, i) : 0;
  }
  return 2 * s->bytes > moved;
}
/* Whether the second cache of every CPU keeps the sum from turn to turn. */
static bool is_near(const struct turn_sum *s) {
  for (uint32_t i = 0; i < s->build->cpus.count; i++)
    if (2 * s->bytes > cpu_machine(&s->build->cpus, i)->bytes[LEVEL_L2])
      return false;
  return true;
}
/* A variable that the loop reads, which may be missing until it turns: behind it there is no other who says so. */
static value_id needed_now(struct flow *f, value_id v) {
  struct flow_node *from = f->nodes.items[f->values.items[v].producer];
  if (from && from->op == FLOW_READ)
    from->imm = READ_NOW;
  return v;
}
static value_id factor_behind(const struct turn_sum *s, value_id v, enum factor_kind kind) {
  const struct flow_node *n = loop_of(s);
  const struct flow *body = body_of(s);
  switch (kind) {
  case FACTOR_STEADY: {
    uint32_t var = loop_var_of(n, v);
    return var != UINT32_MAX ? needed_now(s->flow, n->inputs.items[var]) : loop_copy_constant(s->flow, body, v);
  }
  case FACTOR_ROW: return n->inputs.items[body->values.items[v].index];
  default: return loop_add_row_out(s->flow, s->loop, v, s->turns);
  }
}

/* ---- behind the loop ---- */

/* A copy of a node of the body, with these arguments to read. */
static value_id append_kernel(const struct turn_sum *s, const struct flow_node *like, struct kernel *kernel, const value_id *in) {
  const struct flow_node *n = loop_of(s);
  struct flow *f = s->flow;
  flow_id id;
  struct flow_node *made = flow_append(f, FLOW_KERNEL, like, n->task, &id);
  made->kernel = kernel;
  made->guards = n->guards;
  made->guard_count = n->guard_count;
  made->args = ARENA_ARRAY(f->arena, struct flow_arg, kernel->buffers.count + 1);
  value_id out = flow_append_output(f, made, id, body_of(s)->values.items[like->outputs.items[0]]);
  for (uint32_t i = 0; i < kernel->buffers.count; i++) {
    bool is_in = kernel->buffers.items[i].mode == BUFFER_IN;
    made->args[i].value = is_in ? in[i] : out;
    if (is_in)
      vec_push(&made->inputs, in[i]);
  }
  return out;
}
static value_id append_product(const struct turn_sum *s, struct kernel *kernel) {
  const struct flow_node *p = s->product;
  value_id *in = ARENA_ARRAY(s->flow->arena, value_id, kernel->buffers.count + 1);
  for (uint32_t i = 0; i < kernel->buffers.count; i++)
    in[i] = s->kinds[i] != FACTOR_NONE ? factor_behind(s, p->args[i].value, s->kinds[i]) : NO_VALUE;
  return append_kernel(s, p, kernel, in);
}
static value_id append_add(const struct turn_sum *s, value_id product) {
  value_id param = body_of(s)->params.items[s->var], start = loop_of(s)->inputs.items[s->var];
  value_id *in = ARENA_ARRAY(s->flow->arena, value_id, s->add->kernel->buffers.count + 1);
  for (uint32_t i = 0; i < s->add->kernel->buffers.count; i++)
    in[i] = s->add->args[i].value == param ? start : product;
  return append_kernel(s, s->add, s->add->kernel, in);
}

/* The product over all turns; NULL: it is none, or no better so. */
static struct kernel *make_product(const struct turn_sum *s) {
  const struct kernel *k = s->product->kernel;
  bool *is_row = ARENA_ARRAY(s->flow->arena, bool, k->buffers.count + 1);
  int64_t terms;
  for (uint32_t i = 0; i < k->buffers.count; i++)
    is_row[i] = s->kinds[i] == FACTOR_ROW || s->kinds[i] == FACTOR_NEW_ROW;
  struct kernel *made = kernel_over_turns(k, is_row, s->turn_count, s->flow->arena, &terms);
  return made && terms <= (is_near(s) ? TERMS_NEAR : TERMS_FAR) ? made : NULL;
}
static bool sum_behind(struct turn_sum *s) {
  struct kernel *product = find_sum(s) && find_factors(s) ? make_product(s) : NULL;
  if (!product)
    return false;
  value_id sum = append_add(s, append_product(s, product));
  flow_replace_uses(s->flow, loop_of(s)->outputs.items[s->var], sum);
  body_of(s)->results.items[s->var] = body_of(s)->params.items[s->var];
  return true;
}

bool loops_sum_behind(const struct build *b, struct flow *f) {
  uint32_t count = f->nodes.count;
  bool any = false;
  for (flow_id id = 1; id < count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    struct turn_sum s = {.build = b, .flow = f, .loop = id};
    if (!n || n->op != FLOW_WHILE || !loop_is_regular(n) || !count_turns(&s))
      continue;
    for (s.var = 0; s.var < loop_var_count(n); s.var++)
      any |= sum_behind(&s);
  }
  if (any)
    flow_sort(f);
  return any;
}
