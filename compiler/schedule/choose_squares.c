/* choose_squares.c: nests whose elements lie along one loop where they are read and along another where they go: transpositions, alone or
 * with what else is computed of each element. Squares of a vector's lanes, or of half as many, are transposed in registers
 * (targets/cpu/codegen_square.c): each line of memory is read once and written once, whole. */
#include "compiler/schedule/choose.h"

#define LOOPS_MAX 8
#define EXTENT_OPEN 64 /* of a loop whose extent only the step knows: what is taken for it */
#define TASKS_FEW 32   /* with fewer columns of squares, each square is one */

struct squares {
  const struct nest *n;
  const struct stmt *loops[LOOPS_MAX], *store;
  int64_t extents[LOOPS_MAX];
  int count, rows, lanes; /* loops: along which elements go, and are read */
  int turned;             /* loads along the lanes */
  uint8_t *seen;          /* by expression */
  double elements;
  int64_t vector, side; /* lanes of a vector; of a square */
};

static uint32_t local_of(const struct squares *s, int loop) { return s->loops[loop]->local; }

static bool is_known(const struct squares *s, int loop) { return expr_is_const(s->n->k, s->loops[loop]->value, NULL); }
/* Loops around one store of elements of 4 or 8 bytes. */
static bool find_loops(struct squares *s) {
  const struct kernel *k = s->n->k;
  const struct stmt *t = s->n->top;
  for (s->elements = 1; t && t->kind == STMT_FOR && t->loop == LOOP_PAR && !(s->count && t->next); t = t->body) {
    if (s->count == LOOPS_MAX)
      return false;
    if (!expr_is_const(k, t->value, &s->extents[s->count]))
      s->extents[s->count] = EXTENT_OPEN;
    else if (s->extents[s->count] < 1)
      return false;
    s->elements *= (double)s->extents[s->count];
    s->loops[s->count++] = t;
  }
  s->store = t;
  return t && t->kind == STMT_STORE && !t->next && s->count >= 2 && dtype_is_word(k->buffers.items[t->buffer].dtype);
}
/* The loop that the last index moves with by one, and no other index; -1: there is none. */
static int loop_along(const struct squares *s, const expr_id *index, int rank) {
  for (int i = 0; i < s->count; i++) {
    int64_t step;
    bool is_other = false;
    for (int d = 0; d + 1 < rank; d++)
      is_other = is_other || uses_local(s->n->uses, index[d], local_of(s, i));
    if (rank && !is_other && index_coefficient(s->n->uses, index[rank - 1], local_of(s, i), &step) && step == 1)
      return i;
  }
  return -1;
}
/* Whether each load that varies with the rows lies along them, or along the same other loop, a few of them so. */
static bool find_lanes(struct squares *s, expr_id e) {
  const struct kernel *k = s->n->k;
  const struct expr *x = expr_get(k, e);
  if (s->seen[e] || !uses_local(s->n->uses, e, local_of(s, s->rows)))
    return true;
  s->seen[e] = 1;
  for (int i = 0; i < x->count && x->op != SCALAR_LOAD; i++)
    if (!find_lanes(s, expr_operand(k, e, i)))
      return false;
  if (x->op != SCALAR_LOAD)
    return true;
  const expr_id *index = &k->operands.items[x->first];
  enum dtype dtype = k->buffers.items[x->imm].dtype;
  int along = loop_along(s, index, x->count);
  bool is_apart = along >= 0 && along != s->rows && !uses_local(s->n->uses, index[x->count - 1], local_of(s, s->rows));
  if (is_apart && (s->lanes < 0 || s->lanes == along) && dtype_is_word(dtype)) {
    s->lanes = along;
    return ++s->turned <= SQUARE_LOADS;
  }
  return along == s->rows && !dtype_is_complex(dtype);
}
static double copy_cycles(const struct squares *s, double elements, int64_t side) {
  const struct turned_copy copy = {.elements = s->elements,
                                   .width = (double)s->extents[s->lanes],
                                   .length = (double)s->extents[s->rows],
                                   .bytes = (double)dtype_size(s->n->k->buffers.items[s->store->buffer].dtype),
                                   .lanes = (double)s->vector};
  return copy_turned_cycles(s->n->machine, &copy, elements, (double)side);
}
/* What no square of this side covers goes element by element. */
static double cycles_of(const struct squares *s, int64_t side) {
  double whole = s->elements;
  const int along[] = {s->rows, s->lanes};
  for (int i = 0; i < 2; i++)
    whole *= (double)(s->extents[along[i]] / side * side) / (double)s->extents[along[i]];
  return copy_cycles(s, whole, side) + copy_cycles(s, s->elements - whole, 1);
}
/* As many as a vector has lanes, or half of them. */
static void find_side(struct squares *s) {
  s->vector = lanes_for(s->n, s->n->k->buffers.items[s->store->buffer].dtype, INT64_MAX);
  s->side = s->vector > 4 && cycles_of(s, s->vector / 2) < cycles_of(s, s->vector) ? s->vector / 2 : s->vector;
}

/* Turns of the rows that are left, the largest first. */
static const char *tails_of(const struct squares *s) {
  const char *text = "";
  for (int64_t tail = s->side / 2, left = s->extents[s->rows] % s->side; left; left %= tail, tail /= 2)
    if (left >= tail)
      text = arena_printf(s->n->arena, "%s %lld", *text ? text : " tail cut", (long long)tail);
  return text;
}
static const char *other_loops(const struct squares *s) {
  const char *text = "";
  for (int i = 0; i < s->count; i++)
    if (i != s->rows && i != s->lanes)
      text = arena_printf(s->n->arena, "%s i%d", text, s->n->first_loop + i);
  return text;
}
void propose_squares(const struct nest *n, struct candidates *out) {
  struct squares s = {.n = n, .rows = -1, .lanes = -1, .seen = arena_alloc(n->arena, n->k->exprs.count)};
  if (!find_loops(&s))
    return;
  s.rows = loop_along(&s, s.store->index, s.store->index_count);
  if (s.rows < 0 || !find_lanes(&s, s.store->value) || s.lanes < 0 || !is_known(&s, s.rows) || !is_known(&s, s.lanes) ||
      uses_local(n->uses, s.store->index[s.store->index_count - 1], local_of(&s, s.lanes)))
    return;
  find_side(&s);
  struct arena *a = n->arena;
  const char *others = other_loops(&s), *m = n->number ? arena_printf(a, "%d", n->number) : "";
  int rows = n->first_loop + s.rows;
  const char *text =
    arena_printf(a, "split i%d %lld -> lo%s li%s; order%s lo%s i%d li%s; split i%d %lld -> ro%s ri%s%s; ", n->first_loop + s.lanes,
                 (long long)s.side, m, m, others, m, rows, m, rows, (long long)s.side, m, m, tails_of(&s));
  bool are_few = s.elements / (double)(s.extents[s.rows] * s.side) < TASKS_FEW && s.extents[s.rows] % s.side == 0;
  text = arena_printf(a, "%srun%s lo%s%s tasks; run ri%s unroll; run li%s lanes", text, others, m,
                      are_few ? arena_printf(a, " ro%s", m) : "", m, m);
  out->items.items[0].cycles = copy_cycles(&s, s.elements, 1);
  vec_push(&out->items, ((struct candidate){.steps = text, .cycles = cycles_of(&s, s.side)}));
}
