/* loop_arrays.c: tensor arrays (TensorFlow 1) of which each turn of a loop reads or writes the next element, and their gradients.
 *
 * An array is known by its handle, wherever that goes. Where one call writes all elements (a scatter of a tensor's rows, or a write in each
 * turn of a loop) and others read all of them (a gather, or a read in each turn), they are the rows of one tensor: a loop takes and makes
 * them as such, and nobody needs the array. Its gradient, which its gradient calls give by a name, is an array of its own. */
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/loop/loop_rows.h"
#include "compiler/loop/loops.h"

enum role { ROLE_OTHER, ROLE_GRADIENT, ROLE_WRITES, ROLE_READS };
/* A call that uses a handle, of the flow or of the body of one of its loops. */
struct use {
  struct flow *flow;
  struct flow_node *node;
  flow_id loop;       /* in whose body it is; 0: none */
  flow_id at;         /* in the outer flow: where it runs */
  const char *source; /* of a gradient's array: the name that tells it from others; "": the array itself */
  enum role role;     /* known when all uses are */
};
/* All that is done with the array that `maker` makes. */
struct array {
  struct flow *flow;
  struct flow_node *maker;
  VEC(struct use) uses;
};

/* ---- uses ---- */

static bool find_uses(struct array *a, struct use place, value_id handle);

static uint32_t result_count(const struct flow *f, value_id v) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->results.count; i++)
    count += f->results.items[i] == v;
  return count;
}
/* The loop hands the handle on: its body uses it, and what comes out of the loop is it too. */
static bool find_in_loop(struct array *a, struct use place, struct flow_node *n, value_id handle) {
  if (place.loop || !loop_is_regular(n) || n->guard_count)
    return false;
  for (uint32_t i = 0; i < loop_var_count(n); i++) {
    if (n->inputs.items[i] != handle)
      continue;
    struct use inside = {.flow = n->branches[1], .loop = place.at, .at = place.at, .source = place.source};
    struct use behind = place;
    if (!loop_hands_on(n, i) || loop_condition_takes(n, i) || !find_uses(a, inside, n->branches[1]->params.items[i]) ||
        !find_uses(a, behind, n->outputs.items[i]))
      return false;
  }
  return true;
}
/* False: something is done with the handle that is not understood. */
static bool find_uses(struct array *a, struct use place, value_id handle) {
  bool is_handed_on = place.loop && !place.flow->values.items[handle].producer; /* as the variable that it is */
  if (result_count(place.flow, handle) != is_handed_on)
    return false;
  for (flow_id id = 1; id < place.flow->nodes.count; id++) {
    struct flow_node *n = place.flow->nodes.items[id];
    if (!n || !node_takes(n, handle))
      continue;
    place.at = place.loop ? place.at : id;
    place.node = n;
    if (n->op == FLOW_WHILE) {
      if (!find_in_loop(a, place, n, handle))
        return false;
      continue;
    }
    if (n->op != FLOW_HOST || n->guard_count || n->inputs.items[0] != handle)
      return false;
    vec_push(&a->uses, place);
    if (!node_is_free_call(n, "TensorArrayGradV3"))
      continue;
    const struct attr_value *source = node_call_attr(n, "source");
    struct use gradient = place;
    gradient.source = source ? source->s.data : NULL;
    if (*place.source || !gradient.source || !*gradient.source || !find_uses(a, gradient, n->outputs.items[0]))
      return false;
  }
  return true;
}

/* ---- what they do ---- */

static bool are_all_indices(const struct flow *f, value_id v, dim count) {
  const struct flow_value *x = &f->values.items[v];
  const int32_t *index = x->data;
  int64_t length;
  if (!index || x->dtype != DTYPE_INT32 || x->rank != 1 || !dim_is_const(f->dims, dim_resolve(f->dims, x->dims[0]), &length) ||
      dim_equal(f->dims, dim_const(f->dims, length), count) != 1)
    return false;
  for (int64_t i = 0; i < length; i++)
    if (index[i] != i)
      return false;
  return true;
}
/* Whether the call is about the element of the turn, and the loop makes as many turns as there are elements. */
static bool is_of_turn(const struct array *a, const struct use *u, dim count) {
  const struct flow_node *n = a->flow->nodes.items[u->loop];
  dim turns = u->loop ? loop_turns_known(a->flow, u->loop) : NO_DIM;
  bool from_last;
  return turns != NO_DIM && dim_equal(a->flow->dims, turns, count) == 1 &&
         loop_row_number(a->flow, n, u->node->inputs.items[1], &from_last) && loop_may_face(n, from_last);
}
static enum role role_of(const struct array *a, const struct use *u, dim count) {
  const struct flow_node *n = u->node;
  if (node_is_free_call(n, "TensorArrayGradV3"))
    return ROLE_GRADIENT;
  if (node_is_free_call(n, "TensorArrayScatterV3"))
    return !u->loop && are_all_indices(u->flow, n->inputs.items[1], count) ? ROLE_WRITES : ROLE_OTHER;
  if (node_is_free_call(n, "TensorArrayGatherV3"))
    return !u->loop && are_all_indices(u->flow, n->inputs.items[1], count) ? ROLE_READS : ROLE_OTHER;
  if (node_is_free_call(n, "TensorArrayWriteV3"))
    return is_of_turn(a, u, count) && loop_may_be_row(a->flow, a->flow->nodes.items[u->loop], n->inputs.items[2]) ? ROLE_WRITES
                                                                                                                  : ROLE_OTHER;
  bool reads = node_is_free_call(n, "TensorArrayReadV3") && is_of_turn(a, u, count);
  return reads && u->flow->values.items[n->outputs.items[0]].rank < LIMIT_RANK ? ROLE_READS : ROLE_OTHER;
}

/* ---- one array ---- */

/* The only call that writes it; NULL: there are several, or none. */
static const struct use *writer_of(const struct array *a, const char *source) {
  const struct use *writer = NULL;
  for (uint32_t i = 0; i < a->uses.count; i++) {
    const struct use *u = &a->uses.items[i];
    if (strcmp(u->source, source) != 0 || u->role != ROLE_WRITES)
      continue;
    if (writer)
      return NULL;
    writer = u;
  }
  return writer;
}
/* A tensor of all elements, by one call that writes or reads some. */
static struct flow_value elements_of(const struct use *u, value_id v, dim count) {
  const struct flow_value x = u->flow->values.items[v];
  return u->loop ? loop_array_of(x, count) : x;
}
/* Whether the tensor can be all elements of the array. */
static bool fits(const struct array *a, const struct flow_value *elements, dim count) {
  const struct attr_value *dtype = node_call_attr(a->maker, "dtype");
  return dtype && dtype->i == (int64_t)elements->dtype && loop_rows_may_be(elements->dtype) && !elements->any_rank && elements->rank > 0 &&
         dim_equal(a->flow->dims, elements->dims[0], count) == 1;
}
/* Whether all calls for the array with this source are understood, and read what the writer wrote before. An array that is read twice must
 * be one that keeps its elements. */
static bool is_understood(const struct array *a, const char *source, dim count) {
  const struct use *writer = writer_of(a, source);
  const struct attr_value *clears = node_call_attr(a->maker, "clear_after_read");
  struct flow_value written = {0};
  uint32_t reads = 0;
  if (writer) {
    written = elements_of(writer, writer->node->inputs.items[2], count);
    if (!fits(a, &written, count))
      return false;
  }
  for (uint32_t i = 0; i < a->uses.count; i++) {
    const struct use *u = &a->uses.items[i];
    if (strcmp(u->source, source) != 0 || u->role == ROLE_GRADIENT || u == writer)
      continue;
    if (u->role != ROLE_READS || !writer || u->at <= writer->at)
      return false;
    const struct flow_value read = elements_of(u, u->node->outputs.items[0], count);
    if (!values_are_alike(a->flow, &read, &written))
      return false;
    reads++;
  }
  return reads <= 1 || (*source == 0 && clears && !clears->i);
}

/* ---- the rewrite ---- */

static void face(const struct array *a, const struct use *u) {
  struct flow_node *n = a->flow->nodes.items[u->loop];
  bool from_last = false;
  loop_row_number(a->flow, n, u->node->inputs.items[1], &from_last);
  n->from_last = from_last;
}
static value_id rows_written(const struct array *a, const struct use *writer, dim count) {
  value_id v = writer->node->inputs.items[2];
  if (!writer->loop)
    return v;
  face(a, writer);
  return loop_add_row_out(a->flow, writer->loop, v, count);
}
static void read_rows(const struct array *a, const struct use *u, value_id rows) {
  if (u->loop)
    face(a, u);
  flow_replace_uses(u->flow, u->node->outputs.items[0], u->loop ? loop_add_row_in(a->flow, u->loop, rows) : rows);
}
static void rewrite_source(const struct array *a, const char *source, dim count) {
  const struct use *writer = writer_of(a, source);
  value_id rows = writer ? rows_written(a, writer, count) : NO_VALUE;
  for (uint32_t i = 0; writer && i < a->uses.count; i++) {
    const struct use *u = &a->uses.items[i];
    if (strcmp(u->source, source) == 0 && u->role == ROLE_READS)
      read_rows(a, u, rows);
  }
}
/* The calls are gone; their flows, which said in which order they run, are those that they took. */
static void drop_calls(const struct array *a) {
  for (uint32_t i = 0; i < a->uses.count; i++) {
    const struct use *u = &a->uses.items[i];
    struct flow_node *n = u->node;
    bool is_gradient = node_is_free_call(n, "TensorArrayGradV3");
    if (is_gradient || node_is_free_call(n, "TensorArrayScatterV3") || node_is_free_call(n, "TensorArrayWriteV3"))
      flow_replace_uses(u->flow, n->outputs.items[is_gradient], vec_last(&n->inputs));
  }
  for (uint32_t i = 0; i < a->uses.count; i++)
    node_make_noop(a->uses.items[i].node);
  flow_id id;
  struct flow_node *none = flow_append(a->flow, FLOW_CONST, a->maker, a->maker->task, &id);
  value_id first = a->maker->outputs.items[1], flow = flow_append_output(a->flow, none, id, a->flow->values.items[first]);
  a->flow->values.items[flow].data = ARENA_NEW(a->flow->arena, float);
  flow_replace_uses(a->flow, first, flow);
  node_make_noop(a->maker); /* the loops that hand the handle on are trimmed */
}

/* The number of elements, where it is known and stays. */
static dim count_of(const struct array *a) {
  const struct flow_value *size = &a->flow->values.items[a->maker->inputs.items[0]];
  const struct attr_value *grows = node_call_attr(a->maker, "dynamic_size");
  bool is_known = size->data && size->dtype == DTYPE_INT32 && size->rank == 0 && *(const int32_t *)size->data >= 0;
  return is_known && !(grows && grows->i) ? dim_const(a->flow->dims, *(const int32_t *)size->data) : NO_DIM;
}
static bool rewrite_array(struct array *a) {
  dim count = count_of(a);
  struct use outside = {.flow = a->flow, .source = ""};
  if (count == NO_DIM || !find_uses(a, outside, a->maker->outputs.items[0]) || !a->uses.count)
    return false;
  for (uint32_t i = 0; i < a->uses.count; i++)
    a->uses.items[i].role = role_of(a, &a->uses.items[i], count);
  if (!is_understood(a, "", count))
    return false;
  for (uint32_t i = 0; i < a->uses.count; i++)
    if (!is_understood(a, a->uses.items[i].source, count))
      return false;
  for (uint32_t i = 0; i < a->uses.count; i++) { /* each source once, at its first use */
    uint32_t first = 0;
    while (strcmp(a->uses.items[first].source, a->uses.items[i].source) != 0)
      first++;
    if (first == i)
      rewrite_source(a, a->uses.items[i].source, count);
  }
  drop_calls(a);
  return true;
}

bool loops_array_rows(const struct build *b, struct flow *f) {
  (void)b;
  uint32_t count = f->nodes.count;
  bool any = false;
  for (flow_id id = 1; id < count; id++) {
    struct array a = {.flow = f, .maker = f->nodes.items[id]};
    if (node_is_free_call(a.maker, "TensorArrayV3"))
      any |= rewrite_array(&a);
    vec_free(&a.uses);
  }
  if (any)
    flow_sort(f);
  return any;
}
