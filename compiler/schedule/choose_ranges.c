/* choose_ranges.c: nests that do something else in parts of a loop's range, as tests, clamps and remainders of its variable say: what pads,
 * rolls, mirrors, puts beside each other, or has windows that reach beyond a border. The loop is cut where they change, so that each part
 * does one thing: what lies inside goes by whole vectors, and nothing is tested in it. */
#include "compiler/schedule/choose.h"

#include <math.h>
#include <string.h>

#include "ir/schedule/vectors.h"

#define LOOPS_MAX 8
#define POINTS_MAX 5
#define DEPTH_MAX 8            /* of an index: what is deeper may be made of itself many times */
#define FAR (INT64_C(1) << 60) /* no number is */
#define TURNS_MIN 8            /* of the loops around: they are what threads share */

struct ranges {
  const struct nest *n;
  const struct stmt *loops[LOOPS_MAX];
  int count;
  int64_t points[POINTS_MAX + 1]; /* where the loop at hand is cut, ascending */
  int point_count;
};

/* ---- where a loop's tests change ---- */

/* e = factor * local + rest: of constants, and of loops inside of constant extents, which take the rest from `low` to `high`. */
struct linear {
  int64_t factor, low, high;
};
static bool find_sum(struct linear a, struct linear b, struct linear *out) {
  return !__builtin_add_overflow(a.factor, b.factor, &out->factor) && !__builtin_add_overflow(a.low, b.low, &out->low) &&
         !__builtin_add_overflow(a.high, b.high, &out->high);
}
static bool find_multiple(struct linear a, int64_t by, struct linear *out) {
  return !__builtin_mul_overflow(a.factor, by, &out->factor) && !__builtin_mul_overflow(by < 0 ? a.high : a.low, by, &out->low) &&
         !__builtin_mul_overflow(by < 0 ? a.low : a.high, by, &out->high);
}
static bool find_difference(struct linear a, struct linear b, struct linear *out) {
  return find_multiple(b, -1, &b) && find_sum(a, b, out);
}
/* The last value of a loop's variable inside; -1: it is not known. */
static int64_t last_turn(const struct kernel *k, const struct stmt *s, uint32_t local) {
  int64_t last = -1, extent;
  for (; s && last < 0; s = s->next) {
    if (s->kind == STMT_FOR && s->local == local)
      return expr_is_const(k, s->value, &extent) ? extent - 1 : -1;
    last = last_turn(k, s->body, local);
  }
  return last;
}
static bool is_near(int64_t a) { return a > -FAR && a < FAR; }
static bool find_term(const struct ranges *r, expr_id e, uint32_t local, int depth, struct linear *out);
static bool find_linear(const struct ranges *r, expr_id e, uint32_t local, int depth, struct linear *out) {
  *out = (struct linear){0};
  return depth > 0 && find_term(r, e, local, depth, out) && is_near(out->factor) && is_near(out->low) && is_near(out->high);
}
static bool find_term(const struct ranges *r, expr_id e, uint32_t local, int depth, struct linear *out) {
  const struct kernel *k = r->n->k;
  const struct expr *x = expr_get(k, e);
  struct linear a, b;
  if (x->op == SCALAR_LOCAL) {
    out->factor = (uint32_t)x->imm == local;
    out->high = out->factor ? 0 : last_turn(k, r->loops[r->count - 1]->body, (uint32_t)x->imm);
    return out->high >= 0;
  }
  if (expr_is_const(k, e, &out->low)) {
    out->high = out->low;
    return true;
  }
  if (x->count != 2 || !find_linear(r, expr_operand(k, e, 0), local, depth - 1, &a) ||
      !find_linear(r, expr_operand(k, e, 1), local, depth - 1, &b))
    return false;
  switch (x->op) {
  case SCALAR_ADD: return find_sum(a, b, out);
  case SCALAR_SUB: return find_difference(a, b, out);
  case SCALAR_MUL: return !b.factor && b.low == b.high && find_multiple(a, b.low, out);
  default: return false;
  }
}
static int64_t floor_of(int64_t a, int64_t by) { return a / by - (a % by < 0); }

/* Kept in order, each once; one too many is kept too, and says so. */
static void add_point(struct ranges *r, int64_t point, int64_t extent) {
  int i = r->point_count;
  if (point <= 0 || point >= extent || r->point_count > POINTS_MAX)
    return;
  for (int j = 0; j < r->point_count; j++)
    if (r->points[j] == point)
      return;
  for (; i > 0 && r->points[i - 1] > point; i--)
    r->points[i] = r->points[i - 1];
  r->points[i] = point;
  r->point_count++;
}
/* d < 0 begins or ends to hold, for some turns of loops inside or for all; with `further` 1: d <= 0. */
static void add_sign(struct ranges *r, struct linear d, int further, int64_t extent) {
  const int64_t rests[] = {d.low, d.high};
  for (int i = 0; i < 2; i++)
    if (d.factor > 0)
      add_point(r, floor_of(-rests[i] + further + d.factor - 1, d.factor), extent);
    else if (d.factor < 0)
      add_point(r, floor_of(rests[i] - further, -d.factor) + 1, extent);
}
/* Each multiple of `by` that the value passes. */
static void add_multiples(struct ranges *r, struct linear x, int64_t by, int64_t extent) {
  int64_t last;
  if (by < 1 || !x.factor || x.low != x.high || __builtin_mul_overflow(x.factor, extent - 1, &last) ||
      __builtin_add_overflow(last, x.low, &last))
    return;
  int64_t low = floor_of(last < x.low ? last : x.low, by), high = floor_of(last < x.low ? x.low : last, by);
  for (int64_t q = low + 1; q <= high && r->point_count <= POINTS_MAX; q++)
    add_sign(r, (struct linear){x.factor, x.low - q * by, x.low - q * by}, 0, extent);
}
/* Which side of a minimum or maximum is taken where both are the same is open: a point beside it that a test has will do. */
static void add_clamp(struct ranges *r, struct linear d, int64_t extent) {
  struct ranges either = *r;
  add_sign(&either, d, 0, extent);
  struct ranges other = *r;
  add_sign(&other, d, 1, extent);
  if (either.point_count > r->point_count && other.point_count > r->point_count)
    *r = either;
}
/* Of one expression: of clamps, or of all else. */
static void find_points_at(struct ranges *r, expr_id e, uint32_t local, int64_t extent, bool clamps) {
  const struct kernel *k = r->n->k;
  const struct expr *x = expr_get(k, e);
  struct linear a, b, d;
  if (x->count != 2 || expr_get(k, expr_operand(k, e, 0))->dtype != DTYPE_INT64 ||
      !find_linear(r, expr_operand(k, e, 0), local, DEPTH_MAX, &a) || !find_linear(r, expr_operand(k, e, 1), local, DEPTH_MAX, &b) ||
      !find_difference(a, b, &d))
    return;
  if (clamps && (x->op == SCALAR_MIN || x->op == SCALAR_MAX))
    add_clamp(r, d, extent);
  else if (!clamps && (x->op == SCALAR_LT || x->op == SCALAR_LE))
    add_sign(r, d, x->op == SCALAR_LE, extent);
  else if (!clamps && (x->op == SCALAR_FLOORDIV || x->op == SCALAR_FLOORMOD) && !b.factor && b.low == b.high)
    add_multiples(r, a, b.low, extent);
}
static void find_points_in(struct ranges *r, expr_id e, uint32_t local, int64_t extent, bool clamps, bool *seen) {
  if (e == NO_EXPR || seen[e] || !uses_local(r->n->uses, e, local))
    return;
  seen[e] = true;
  find_points_at(r, e, local, extent, clamps);
  for (int i = 0; i < expr_get(r->n->k, e)->count; i++)
    find_points_in(r, expr_operand(r->n->k, e, i), local, extent, clamps, seen);
}
static void find_points_of(struct ranges *r, const struct stmt *s, uint32_t local, int64_t extent, bool clamps, bool *seen) {
  for (; s; s = s->next) {
    find_points_in(r, s->value, local, extent, clamps, seen);
    for (int i = 0; i < s->index_count; i++)
      find_points_in(r, s->index[i], local, extent, clamps, seen);
    find_points_of(r, s->body, local, extent, clamps, seen);
  }
}
static bool find_points(struct ranges *r, int loop) {
  uint32_t count = r->n->k->exprs.count;
  bool *seen = arena_alloc(r->n->arena, count * sizeof *seen);
  int64_t extent;
  r->point_count = 0;
  if (!expr_is_const(r->n->k, r->loops[loop]->value, &extent))
    return false;
  for (int clamps = 0; clamps < 2; clamps++) {
    memset(seen, 0, count * sizeof *seen);
    find_points_of(r, r->loops[r->count - 1]->body, r->loops[loop]->local, extent, clamps, seen);
  }
  return r->point_count > 0 && r->point_count <= POINTS_MAX;
}

/* ---- what it costs ---- */

/* Operations, as cost.h has them, each as often as the innermost loop that it hangs on turns: what a cut gains is that less hangs on that
 * one. (vectors.h counts what stands inside of a loop for each of its turns.) Loops around the statement at hand: */
struct turns {
  const struct kernel *k;
  const struct kernel_uses *uses;
  const struct stmt *loops[LOOPS_MAX];
  double trips[LOOPS_MAX + 1]; /* of so many of them; of the innermost of par vectors are counted */
  int count;
  int lanes; /* the number of that one + 1; 0: there is none */
  double vector_bytes;
  bool *seen;
};
static int deepest(const struct turns *t, expr_id e) {
  int at = t->count;
  while (at && !uses_local(t->uses, e, t->loops[at - 1]->local))
    at--;
  return at;
}
/* What is loaded or stored: of a vector, and of its lanes one by one. */
static double access_operations(const struct turns *t, const expr_id *index, int rank, enum dtype dtype, double each) {
  double lanes = t->vector_bytes / (double)dtype_size(dtype);
  uint32_t lane = t->lanes ? t->loops[t->lanes - 1]->local : 0;
  int64_t step;
  for (int d = 0; d < rank && t->lanes; d++)
    if (uses_local(t->uses, index[d], lane) && (d + 1 < rank || !index_coefficient(t->uses, index[d], lane, &step) || step != 1))
      return lanes * each;
  return 1;
}
static double operations_of(struct turns *t, expr_id e) {
  const struct expr *x = expr_get(t->k, e);
  if (e == NO_EXPR || t->seen[e])
    return 0;
  t->seen[e] = true;
  double own = x->op != SCALAR_LOAD
               ? op_operations((enum scalar_op)x->op)
               : access_operations(t, &t->k->operands.items[x->first], x->count, t->k->buffers.items[x->imm].dtype, GATHER_OPERATIONS);
  /* what a test outside of the vectors decides is a branch there */
  int at = deepest(t, x->op == SCALAR_SELECT ? expr_operand(t->k, e, 0) : e);
  double sum = own * t->trips[at] * (at < t->lanes ? INDEX_SHARE : 1);
  for (int i = 0; i < x->count; i++)
    sum += operations_of(t, expr_operand(t->k, e, i));
  return sum;
}
static double block_cost(struct turns *t, const struct stmt *s);
static double loop_cost(struct turns *t, const struct stmt *s) {
  bool is_lanes = s->loop == LOOP_PAR && !(s->body && s->body->kind == STMT_FOR && s->body->loop == LOOP_PAR);
  double trips = loop_trips(t->k, s->value);
  int around = t->lanes;
  t->loops[t->count] = s;
  t->trips[t->count + 1] = t->trips[t->count] * (is_lanes ? ceil(trips / (t->vector_bytes / 4)) : trips);
  t->count++;
  t->lanes = s->loop == LOOP_PAR ? t->count : t->lanes;
  double sum = PAR_OPERATIONS * t->trips[t->count - 1] + block_cost(t, s->body);
  t->count--;
  t->lanes = around;
  return sum;
}
static double block_cost(struct turns *t, const struct stmt *s) {
  double sum = 0;
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR) {
      sum += loop_cost(t, s);
      continue;
    }
    memset(t->seen, 0, t->k->exprs.count * sizeof *t->seen);
    sum += operations_of(t, s->value);
    for (int i = 0; i < s->index_count; i++)
      sum += operations_of(t, s->index[i]);
    if (s->kind == STMT_STORE)
      sum += t->trips[t->count] * access_operations(t, s->index, s->index_count, t->k->buffers.items[s->buffer].dtype, SCATTER_OPERATIONS);
  }
  return sum;
}
/* Of so many statements at the top of a kernel, from the nest's on. */
static double nests_cost(const struct nest *n, const struct kernel *k, int count) {
  struct kernel_uses uses;
  kernel_uses_find(k, n->arena, &uses);
  struct turns t = {.k = k, .uses = &uses, .trips = {1}, .vector_bytes = (double)n->machine->vector_bytes};
  struct stmt *s = k->body;
  double sum = 0;
  t.seen = arena_alloc(n->arena, k->exprs.count * sizeof *t.seen);
  for (int i = 0; i < n->number; i++)
    s = s->next;
  for (int i = 0; i < count; i++, s = s->next) {
    struct stmt one = *s;
    one.next = NULL;
    sum += block_cost(&t, &one);
  }
  return sum;
}

/* ---- the candidate ---- */

/* Values, stores, and sums over so many loops at most: nothing that runs for some turns alone. */
static bool is_plain(const struct stmt *s, int loops) {
  for (; s; s = s->next) {
    bool is_sum = s->kind == STMT_FOR && s->loop == LOOP_RED && s->run == RUN_PLAIN && loops > 0;
    if (is_sum ? !is_plain(s->body, loops - 1) : s->kind != STMT_STORE && s->kind != STMT_VAR && s->kind != STMT_SET)
      return false;
  }
  return true;
}
static bool find_loops(struct ranges *r) {
  const struct stmt *s = r->n->top;
  for (; s && s->kind == STMT_FOR && s->loop == LOOP_PAR && !(r->count && s->next); s = s->body) {
    if (r->count == LOOPS_MAX)
      return false;
    r->loops[r->count++] = s;
  }
  return r->count > 0 && is_plain(s, LOOPS_MAX - r->count);
}
static const char *cut_text(const struct ranges *r, int loop) {
  struct arena *a = r->n->arena;
  int number = r->n->first_loop + loop;
  const char *points = "", *names = arena_printf(a, " i%da", number);
  for (int i = 0; i < r->point_count; i++) {
    points = arena_printf(a, "%s %lld", points, (long long)r->points[i]);
    names = arena_printf(a, "%s i%d%c", names, number, 'b' + i);
  }
  return arena_printf(a, "cut i%d at%s ->%s", number, points, names);
}
/* Whether threads have enough to share then: the loops around; of the outermost loop the parts, of which none may be one turn. */
static bool leaves_tasks(const struct ranges *r, int loop) {
  double turns = 1;
  int64_t from = 0, extent;
  for (int i = 0; i < loop; i++)
    turns *= loop_trips(r->n->k, r->loops[i]->value);
  if (loop)
    return turns >= TURNS_MIN;
  for (int i = 0; i < r->point_count; from = r->points[i++])
    if (r->points[i] - from < 2)
      return false;
  return expr_is_const(r->n->k, r->loops[0]->value, &extent) && extent - from >= 2;
}
/* The innermost loop that has such tests: those of loops around it are worked out in front of it. */
void propose_ranges(const struct nest *n, struct candidates *out) {
  struct ranges r = {.n = n};
  struct schedule s = {0};
  struct kernel *made;
  int loop;
  if (!find_loops(&r))
    return;
  for (loop = r.count - 1; loop >= 0 && !find_points(&r, loop); loop--)
    ;
  if (loop < 0 || !leaves_tasks(&r, loop))
    return;
  const char *text = cut_text(&r, loop);
  if (schedule_parse(text, n->arena, &s) != OK || schedule_apply(n->k, &s, n->arena, &made) != OK)
    return;
  out->items.items[0].cycles = nests_cost(n, n->k, 1);
  vec_push(&out->items, ((struct candidate){.steps = text, .cycles = nests_cost(n, made, loop ? 1 : r.point_count + 1)}));
  kernel_free(made);
}
