/* loop_parts.c: products of which a factor is several values beside each other along the sum, as cells of recurrent layers that read their
 * input and their state as one. Where one of these is a row that is there before the loop, and its product is worth making for all turns
 * there (loop_products.c), each value has a product of its own, over its part of the terms, and their sum is what the one was.
 *
 * At most one product stays in the loop: several would read their rows, and write sums, more often than one. */
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/flow_kernel.h"
#include "compiler/edit/joined_form.h"
#include "compiler/loop/loop_factors.h"
#include "compiler/loop/loops.h"
#include "ir/schedule/over_turns.h"

struct parted {
  const struct loop_moves *moves;
  struct flow_node *product; /* of the body */
  uint32_t factor;           /* its argument that is joined */
  struct joined joined;
};

static bool find_joined(struct parted *p) {
  const struct flow *body = moves_body(p->moves);
  for (p->factor = 0; p->factor < p->product->kernel->buffers.count; p->factor++) {
    value_id v = p->product->args[p->factor].value;
    bool is_in = p->product->kernel->buffers.items[p->factor].mode == BUFFER_IN && v;
    const struct flow_node *maker = is_in ? body->nodes.items[body->values.items[v].producer] : NULL;
    if (maker && !maker->guard_count && joined_form(maker, &p->joined))
      return true;
  }
  return false;
}
/* The product over the terms of one of the values; NULL: it is none. */
static struct flow_node *append_part(const struct parted *p, const struct joined_part *part) {
  struct flow *body = moves_body(p->moves);
  const struct kernel *whole = p->product->kernel;
  struct kernel *k = kernel_of_terms(whole, p->factor, p->joined.dim, part->from, part->count, body->arena);
  value_id *in = ARENA_ARRAY(body->arena, value_id, whole->buffers.count + 1);
  for (uint32_t i = 0; i < whole->buffers.count; i++)
    in[i] = i == p->factor ? part->value : p->product->args[i].value;
  if (!k)
    return NULL;
  struct flow_node *n = flow_append_kernel(body, p->product, p->product->task, k, in, body->values.items[p->product->outputs.items[0]]);
  n->sizes = p->product->sizes;
  return n;
}
static void replace_by_sum(const struct parted *p, value_id *terms) {
  struct flow *body = moves_body(p->moves);
  value_id sum = terms[0];
  for (int i = 1; i < p->joined.count; i++)
    sum = flow_append_map(body, p->product, p->product->task, "AddV2", SCALAR_ADD, sum, terms[i]);
  flow_replace_uses(body, p->product->outputs.items[0], sum);
  node_make_noop(p->product);
}
static bool part_product(struct parted *p) {
  struct flow *body = moves_body(p->moves);
  uint32_t nodes = body->nodes.count, values = body->values.count;
  value_id terms[JOINED_PARTS];
  int in_front = 0;
  bool are_products = true;
  for (int i = 0; i < p->joined.count && are_products; i++) {
    struct flow_node *n = append_part(p, &p->joined.parts[i]);
    are_products = n != NULL;
    terms[i] = n ? n->outputs.items[0] : NO_VALUE;
    in_front += n && loop_product_goes_in_front(p->moves, n);
  }
  if (!are_products || !in_front || in_front < p->joined.count - 1) {
    flow_take_back(body, nodes, values);
    return false;
  }
  replace_by_sum(p, terms);
  return true;
}

static bool part_all(struct loop_moves *m) {
  struct parted p = {.moves = m};
  struct flow *body = moves_body(m);
  uint32_t count = body->nodes.count;
  bool any = false;
  for (flow_id id = 1; id < count; id++) {
    p.product = body->nodes.items[id];
    any |= loop_may_move(m, p.product) && find_joined(&p) && part_product(&p);
  }
  if (any)
    flow_sort(body);
  return any;
}
bool loops_part_products(const struct build *b, struct flow *f) { return loops_each_move(b, f, part_all); }
