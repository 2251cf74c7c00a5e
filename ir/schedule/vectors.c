/* vectors.c: see vectors.h. */
#include "ir/schedule/vectors.h"

#include <math.h>
#include <string.h>

#include "ir/schedule/cost.h"

#define LONG_BODY 40  /* operations */
#define TRIPS_LEAST 3 /* that are worth vectors */

void vector_costs_create(const struct kernel_uses *uses, const struct machine *machine, struct arena *arena, struct vector_costs *out) {
  *out = (struct vector_costs){.machine = machine, .seen = ARENA_ARRAY(arena, bool, uses->k->exprs.count + 1)};
  lane_view_create(uses, arena, &out->view);
}

double loop_trips(const struct kernel *k, expr_id extent) {
  const struct expr *x = expr_get(k, extent);
  int64_t n;
  if (expr_is_const(k, extent, &n))
    return n < 0 ? 0 : (double)n;
  if (x->op == SCALAR_SUB) /* the part of a range that is left */
    return loop_trips(k, expr_operand(k, extent, 0));
  if (x->op == SCALAR_SIZE && x->imm < k->usual_count)
    return k->usual[x->imm];
  if (x->op != SCALAR_MIN)
    return TRIPS_OPEN;
  double a = loop_trips(k, expr_operand(k, extent, 0)), b = loop_trips(k, expr_operand(k, extent, 1));
  return a < b ? a : b;
}

double block_trips(const struct kernel *k, const struct stmt *block) {
  double most = 1;
  for (const struct stmt *s = block; s; s = s->next) {
    double body = block_trips(k, s->body), otherwise = block_trips(k, s->otherwise);
    double trips = (s->kind == STMT_FOR ? loop_trips(k, s->value) : 1) * (body > otherwise ? body : otherwise);
    most = trips > most ? trips : most;
  }
  return most;
}

double group_trips(const struct kernel *k, const struct chain *chain, int group) {
  double trips = 1;
  for (int i = chain->groups[group].first; i <= chain->groups[group].last; i++)
    trips *= loop_trips(k, chain->loops[i]->value);
  return trips;
}

/* ---- expressions ---- */

static const struct kernel *kernel_of(const struct vector_costs *c) { return c->view.uses->k; }

static bool divides(const struct expr *x) { return op_effort(x->op) == EFFORT_DIVIDE || op_effort(x->op) == EFFORT_LONG; }
/* Integer divisions are done lane by lane, but for those by constants of small indices. */
static bool divides_by_lane(const struct vector_costs *c, expr_id e) {
  const struct kernel *k = kernel_of(c);
  const struct expr *x = expr_get(k, e);
  if (dtype_is_float(x->dtype) || !divides(x) || x->count != 2) /* a square root of integers has one */
    return false;
  expr_id by = expr_operand(k, e, 1);
  int64_t a = c->view.uses->bounds[expr_operand(k, e, 0)], b = c->view.uses->bounds[by];
  return !(expr_is_const(k, by, NULL) && a >= 0 && a <= INT32_MAX && b >= 0 && b <= INT32_MAX);
}
/* --math strict takes the machine's functions of f64. */
static bool is_written_out(const struct vector_costs *c, const struct expr *x) {
  bool is_kept = x->dtype == DTYPE_DOUBLE && c->machine->is_strict;
  return dtype_is_float(x->dtype) && !is_kept && op_is_written_out(x->op, x->dtype);
}
/* *apart: set where each lane has an address of its own. */
static double access_operations(const struct vector_costs *c, uint32_t buffer, const expr_id *index, double lanes, double alone,
                                bool *apart) {
  int64_t stride = lane_stride(&c->view, buffer, index);
  *apart = *apart || stride == STRIDE_FAR;
  return stride == STRIDE_FAR ? lanes * alone : stride == 0 || stride == 1 ? 1 : STRIDED_OPERATIONS;
}

/* Of one whose value differs from lane to lane. */
static double lanes_operations(struct vector_costs *c, expr_id e, double lanes) {
  const struct kernel *k = kernel_of(c);
  const struct expr *x = expr_get(k, e);
  double one = op_operations(x->op);
  if (x->op == SCALAR_LOAD)
    return access_operations(c, (uint32_t)x->imm, &k->operands.items[x->first], lanes, GATHER_OPERATIONS, &c->gathers);
  if (divides_by_lane(c, e) || (op_effort(x->op) == EFFORT_FUNCTION && !is_written_out(c, x)))
    return one * lanes;
  return dtype_size(x->dtype) == 8 ? one * WIDE_SHARE : one;
}
/* lanes: native ones, 1 for scalar code. */
static double expr_operations(struct vector_costs *c, expr_id e, double lanes) {
  const struct kernel *k = kernel_of(c);
  const struct expr *x = expr_get(k, e);
  if (e == NO_EXPR || c->seen[e])
    return 0;
  c->seen[e] = true;
  double sum = lanes > 1 && view_varies(&c->view, e) ? lanes_operations(c, e, lanes) : op_operations(x->op);
  if (c->together.count > 1 && !uses_local(c->view.uses, e, c->together.local))
    sum /= c->together.count;
  if (x->op == SCALAR_LOAD && lanes > 1 && lane_is_affine(&c->view, (uint32_t)x->imm, &k->operands.items[x->first]))
    return sum; /* its index is a scalar that costs next to nothing */
  for (int i = 0; i < x->count; i++)
    sum += expr_operations(c, expr_operand(k, e, i), lanes) * (x->op == SCALAR_LOAD ? INDEX_SHARE : 1);
  return sum;
}
static double value_operations(struct vector_costs *c, const struct stmt *s, double lanes) {
  memset(c->seen, 0, kernel_of(c)->exprs.count * sizeof *c->seen);
  return expr_operations(c, s->value, lanes);
}
double stmt_operations(struct vector_costs *c, const struct stmt *s) { return value_operations(c, s, 1); }

/* ---- blocks ---- */

/* What stores that lie apart cost more in a loop along which they lie side by side: lanes then are lines of their own, often as many powers
 * of two apart, of which a cache keeps few until their next element comes. */
static double lines_kept_open(const struct vector_costs *c, const struct stmt *loop, double lanes) {
  double sum = 0;
  for (const struct stmt *s = loop->body; s; s = s->next) {
    int64_t step;
    if (s->kind == STMT_STORE && s->index_count && lane_stride(&c->view, s->buffer, s->index) == STRIDE_FAR &&
        index_coefficient(c->view.uses, s->index[s->index_count - 1], loop->local, &step) && (step == 1 || step == -1))
      sum += lanes * OPEN_LINE_OPERATIONS;
  }
  return sum;
}
static double best_operations(struct vector_costs *c, const struct stmt *loop);

static double operations_of(struct vector_costs *c, const struct stmt *s, double lanes) {
  double sum = 0;
  for (; s; s = s->next) {
    sum += 0.5 + value_operations(c, s, lanes);
    if (s->kind == STMT_STORE)
      sum += lanes > 1 ? access_operations(c, s->buffer, s->index, lanes, SCATTER_OPERATIONS, &c->scatters) : 1;
    if (s->kind == STMT_FOR)
      sum += lanes > 1 ? loop_trips(kernel_of(c), s->value) * (operations_of(c, s->body, lanes) + lines_kept_open(c, s, lanes))
                       : best_operations(c, s);
    else if (s->kind == STMT_WHILE)
      sum += TRIPS_INSIDE * (lanes > 1 ? SLOWEST_LANE : 1) * operations_of(c, s->body, lanes);
    else
      sum += operations_of(c, s->body, lanes) + operations_of(c, s->otherwise, lanes);
  }
  return sum;
}
double block_operations(struct vector_costs *c, const struct stmt *body) { return operations_of(c, body, 1); }

/* ---- a loop as vectors ---- */

static uint32_t wider(uint32_t most, enum dtype dtype) {
  uint32_t bytes = (uint32_t)dtype_size(dtype);
  return bytes > most ? bytes : most;
}
static uint32_t widest_element(const struct kernel *k, const struct stmt *s) {
  uint32_t widest = 1;
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE)
      widest = wider(widest, dtype_real(k->buffers.items[s->buffer].dtype));
    if (s->kind == STMT_SET || s->kind == STMT_VAR)
      widest = wider(widest, k->locals.items[s->local].dtype);
    uint32_t inner = widest_element(k, s->body), other = widest_element(k, s->otherwise);
    widest = inner > widest ? inner : widest;
    widest = other > widest ? other : widest;
  }
  return widest;
}
static uint32_t varying_count(const struct vector_costs *c) {
  const struct kernel *k = kernel_of(c);
  uint32_t count = 0;
  for (expr_id e = 1; e < k->exprs.count; e++) {
    enum scalar_op op = (enum scalar_op)expr_get(k, e)->op;
    if (view_varies(&c->view, e) && op > SCALAR_LOAD)
      count += op_effort(op) <= EFFORT_SHORT ? (uint32_t)op_operations(op) : divides_by_lane(c, e) ? LONG_BODY : 6;
  }
  return count;
}
/* Lanes of one register. */
static uint32_t native_lanes(const struct vector_costs *c, const struct stmt *body) {
  uint32_t element = widest_element(kernel_of(c), body);
  return c->machine->vector_bytes / (element < 2 ? 2 : element);
}
#define LOST_SHARE 0.06 /* of lanes, that is worth a loop of more turns */

static double in_vectors(double trips, uint32_t lanes) { return ceil(trips / lanes) * lanes; }
uint32_t lanes_that_fit(uint32_t lanes, uint32_t native, double trips) {
  while (lanes > native && trips > lanes && in_vectors(trips, lanes) > (1 + LOST_SHARE) * in_vectors(trips, lanes / 2))
    lanes /= 2;
  return lanes;
}
/* Times a few for independent operations where registers last: sums wait for each other, and gain by that though lanes be lost. What sums
 * up is summed up for all columns at once, if they are few. */
static uint32_t choose_lanes(const struct vector_costs *c, uint32_t native, double trips, bool is_par, bool has_red) {
  uint32_t heavy = varying_count(c), lanes = native, factor = !is_par ? 4 : heavy <= 12 ? 4 : heavy <= 30 ? 2 : 1;
  if (is_par && has_red && trips > native && trips < 2 * native)
    return 2 * native;
  while (factor > 1 && (double)(lanes * factor) > trips)
    factor /= 2;
  lanes = is_par && !has_red ? lanes_that_fit(lanes * factor, native, trips) : lanes * factor;
  while (lanes > 4 && (double)lanes >= 2 * trips)
    lanes /= 2;
  return lanes;
}

bool vector_plan_make(struct vector_costs *c, uint32_t local, bool is_par, double trips, const struct stmt *body, uint32_t lanes,
                      struct vector_plan *out) {
  struct lane_facts facts;
  *out = (struct vector_plan){0};
  if ((!lanes && trips < TRIPS_LEAST) || !lane_view_enter(&c->view, local, is_par, body, c->machine->is_strict, &facts))
    return false;
  uint32_t native = native_lanes(c, body);
  trips = trips < 1 ? 1 : trips;
  out->native = native;
  out->lanes = lanes ? lanes : choose_lanes(c, native, trips, is_par, facts.has_red);
  out->is_long = c->machine->vector_bytes == 64 && varying_count(c) > LONG_BODY;
  out->has_check = facts.has_check;
  out->has_red = facts.has_red;
  double width = native < out->lanes ? native : out->lanes;
  width = trips < width ? trips : width;
  c->gathers = c->scatters = false;
  out->cost = trips / width * operations_of(c, body, width > 1 ? width : 1.01) + (is_par ? PAR_OPERATIONS : RED_OPERATIONS);
  out->gathers = c->gathers;
  out->scatters = c->scatters;
  double turns = c->together.count;
  c->together.count = 0;
  out->share = out->cost / (trips * operations_of(c, body, 1.01));
  c->together.count = turns;
  lane_view_leave(&c->view, local, body, &facts);
  return true;
}

/* cost: of the cheaper way. */
static bool is_cheaper(struct vector_costs *c, const struct stmt *loop, struct vector_plan *out, double *cost) {
  double trips = loop_trips(kernel_of(c), loop->value), scalar = 1 + trips * operations_of(c, loop->body, 1);
  bool may = loop->loop != LOOP_SEQ && vector_plan_make(c, loop->local, loop->loop == LOOP_PAR, trips, loop->body, 0, out);
  *cost = may && out->cost < scalar ? out->cost : scalar;
  return may && out->cost < scalar;
}
bool loop_is_vectors(struct vector_costs *c, const struct stmt *loop, struct vector_plan *out) {
  double cost;
  return is_cheaper(c, loop, out, &cost);
}
static double best_operations(struct vector_costs *c, const struct stmt *loop) {
  struct vector_plan plan;
  double cost;
  is_cheaper(c, loop, &plan, &cost);
  return cost;
}
