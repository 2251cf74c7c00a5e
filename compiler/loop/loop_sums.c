/* loop_sums.c: variables of a loop to which each turn adds a product, as the gradients of weights that all turns read: the products of all
 * turns become one, behind the loop (ir/schedule/over_turns.h). What its factors are in each turn are rows of arrays that the loop takes,
 * or makes now; the variable itself, which each turn read and wrote anew, is gone.
 *
 * That is done where the number of turns is known in front of the loop, where what is no longer moved is more than what the rows move, and
 * where a turn adds so few terms, or may add so few, that reading and writing the sum takes longer. */
#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/edit/producer_form.h"
#include "compiler/loop/loop_factors.h"
#include "compiler/loop/loops.h"
#include "ir/schedule/over_turns.h"

struct turn_sum {
  struct loop_moves moves;
  uint32_t var;
  const struct flow_node *add, *product; /* of the body */
  enum factor_kind *kinds;               /* by argument of the product */
  int64_t bytes;                         /* of the sum */
};

/* ---- what each turn adds ---- */

static const struct flow_node *only_maker(const struct loop_moves *m, value_id v) {
  flow_id user;
  const struct flow *body = moves_body(m);
  const struct flow_node *n = body->nodes.items[body->values.items[v].producer];
  return loop_may_move(m, n) && flow_use_count(body, v, &user) == 1 ? n : NULL;
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
  const struct flow_node *n = moves_loop(&s->moves);
  const struct flow *body = n->branches[1];
  value_id param = body->params.items[s->var], terms[2];
  flow_id user;
  s->add = only_maker(&s->moves, body->results.items[s->var]);
  if (!s->add || flow_use_count(body, param, &user) != 1 || loop_condition_takes(n, s->var) || !adds(s->add, terms) ||
      (terms[0] != param && terms[1] != param))
    return false;
  s->product = only_maker(&s->moves, terms[terms[0] == param]);
  return s->product != NULL;
}

/* Of each turn: the sum is read and written no more; rows are read again, and new ones written. */
static bool find_factors(struct turn_sum *s) {
  const struct flow_node *p = s->product;
  int64_t moved = 0;
  s->bytes = 0;
  s->kinds = ARENA_ARRAY(s->moves.flow->arena, enum factor_kind, p->kernel->buffers.count + 1);
  if (!loop_factors_find(&s->moves, p, s->kinds))
    return false;
  for (uint32_t i = 0; i < p->kernel->buffers.count; i++) {
    int64_t bytes = loop_buffer_bytes(p, i);
    s->bytes += p->kernel->buffers.items[i].mode != BUFFER_IN ? bytes : 0;
    moved += s->kinds[i] == FACTOR_NEW_ROW ? 2 * bytes : s->kinds[i] == FACTOR_ROW ? bytes : 0;
  }
  return 2 * s->bytes > moved;
}

/* ---- behind the loop ---- */

static struct flow_value result_of(const struct turn_sum *s, const struct flow_node *n) {
  return moves_body(&s->moves)->values.items[n->outputs.items[0]];
}
static value_id append_add(const struct turn_sum *s, value_id product) {
  value_id param = moves_body(&s->moves)->params.items[s->var], start = moves_loop(&s->moves)->inputs.items[s->var];
  value_id *in = ARENA_ARRAY(s->moves.flow->arena, value_id, s->add->kernel->buffers.count + 1);
  for (uint32_t i = 0; i < s->add->kernel->buffers.count; i++)
    in[i] = s->add->args[i].value == param ? start : product;
  return loop_append_kernel(&s->moves, s->add, s->add->kernel, in, result_of(s, s->add));
}

/* The product over all turns; NULL: it is none, or no better so. */
static struct kernel *make_product(const struct turn_sum *s) {
  const bool *is_row = loop_factor_rows(&s->moves, s->product, s->kinds);
  int64_t terms;
  struct kernel *made = kernel_over_turns(s->product->kernel, is_row, loop_turns_of(&s->moves, s->product), s->moves.flow->arena, &terms);
  return made && loop_is_used_little(&s->moves, s->bytes, terms) ? made : NULL;
}
static bool sum_behind(struct turn_sum *s) {
  struct kernel *product = find_sum(s) && find_factors(s) ? make_product(s) : NULL;
  if (!product)
    return false;
  value_id sum = append_add(s, loop_append_product(&s->moves, s->product, product, s->kinds, result_of(s, s->product)));
  flow_replace_uses(s->moves.flow, moves_loop(&s->moves)->outputs.items[s->var], sum);
  moves_body(&s->moves)->results.items[s->var] = moves_body(&s->moves)->params.items[s->var];
  return true;
}

static bool sum_all(struct loop_moves *m) {
  struct turn_sum s = {.moves = *m};
  bool any = false;
  for (s.var = 0; s.var < loop_var_count(moves_loop(m)); s.var++)
    any |= sum_behind(&s);
  return any;
}
bool loops_sum_behind(const struct build *b, struct flow *f) { return loops_each_move(b, f, sum_all); }
