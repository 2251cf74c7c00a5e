/* loop_products.c: products with weights that all turns of a loop read, of rows that are there before it (the part of a recurrent cell that
 * sees the input) or that nobody in the loop takes (the gradient of that input): one product in front of the loop, or behind it, makes
 * those of all turns (ir/schedule/over_turns.h). Each of its sums is what it was.
 *
 * That is done where the number of turns is known in front of the loop, and where a turn has so few rows that it takes longer to read the
 * weights; an open number is taken for a usual one. */
#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/loop/loop_rows.h"
#include "compiler/loop/loop_factors.h"
#include "compiler/loop/loops.h"
#include "ir/schedule/over_turns.h"

struct turn_product {
  struct loop_moves moves;
  struct flow_node *product; /* of the body */
  enum factor_kind *kinds;   /* by argument */
};

static bool is_there_before(const struct turn_product *p) {
  for (uint32_t i = 0; i < p->product->kernel->buffers.count; i++)
    if (p->kinds[i] == FACTOR_NEW_ROW)
      return false;
  return true;
}
/* Whether the body's value is nothing but rows of arrays that the loop makes. */
static bool is_row_alone(const struct turn_product *p, value_id v) {
  const struct flow *body = moves_body(&p->moves);
  flow_id user;
  uint32_t rows = 0;
  for (uint32_t i = loop_var_count(moves_loop(&p->moves)); i < body->results.count; i++)
    rows += body->results.items[i] == v;
  return rows && flow_use_count(body, v, &user) == rows;
}
static struct kernel *make_product(const struct turn_product *p) {
  const struct kernel *k = p->product->kernel;
  const bool *is_row = loop_factor_rows(&p->moves, p->product, p->kinds);
  int64_t uses;
  uint32_t steady;
  struct kernel *made = kernel_each_turn(k, is_row, loop_turns_of(&p->moves, p->product), p->moves.flow->arena, &uses, &steady);
  return made && loop_is_used_little(&p->moves, loop_buffer_bytes(p->product, steady), uses) ? made : NULL;
}
/* Behind the loop, what takes the arrays of which the value is a row takes that one. */
static void replace_rows(const struct turn_product *p, value_id v, value_id array) {
  const struct flow_node *n = moves_loop(&p->moves);
  for (uint32_t i = loop_var_count(n); i < n->outputs.count; i++)
    if (moves_body(&p->moves)->results.items[i] == v)
      flow_replace_uses(p->moves.flow, n->outputs.items[i], array);
}
static bool find_factors(struct turn_product *p) {
  p->kinds = ARENA_ARRAY(p->moves.flow->arena, enum factor_kind, p->product->kernel->buffers.count + 1);
  return loop_factors_find(&p->moves, p->product, p->kinds);
}
bool loop_product_goes_in_front(const struct loop_moves *m, struct flow_node *product) {
  struct turn_product p = {.moves = *m, .product = product};
  return loop_may_move(m, product) && find_factors(&p) && is_there_before(&p) && make_product(&p);
}
static bool move_product(struct turn_product *p) {
  struct flow *f = p->moves.flow, *body = moves_body(&p->moves);
  if (!find_factors(p))
    return false;
  value_id v = p->product->outputs.items[0];
  bool in_front = is_there_before(p);
  struct kernel *made = in_front || is_row_alone(p, v) ? make_product(p) : NULL;
  if (!made)
    return false;
  value_id array = loop_append_product(&p->moves, p->product, made, p->kinds, loop_array_of(body->values.items[v], p->moves.turns));
  if (in_front) {
    flow_replace_uses(body, v, loop_add_row_in(f, p->moves.loop, array));
    node_make_noop(p->product);
  } else {
    replace_rows(p, v, array);
  }
  return true;
}

static bool move_all(struct loop_moves *m) {
  struct turn_product p = {.moves = *m};
  const struct flow *body = moves_body(m);
  bool any = false;
  for (flow_id id = 1; id < body->nodes.count; id++) {
    p.product = body->nodes.items[id];
    any |= loop_may_move(m, p.product) && move_product(&p);
  }
  return any;
}
bool loops_move_products(const struct build *b, struct flow *f) { return loops_each_move(b, f, move_all); }
