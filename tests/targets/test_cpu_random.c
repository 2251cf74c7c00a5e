/* Random kernels against the reference evaluator: nests of par and red loops over transposed, broadcast and shifted operands, every other
 * element of one, elements backwards, parts of complex ones; conditions, several results; each with sizes around those of vectors and
 * blocks. The seed is in the message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "ir/schedule/cost.h"
#include "tests/support/kernel_runner.h"

#include <cmocka.h>

#define KERNELS 80
#define LOOPS_MAX 6

struct maker {
  struct kernel *k;
  struct sequence s;
  enum dtype dtype;
  expr_id loops[LOOPS_MAX]; /* variables that are alive */
  kernel_dim extents[LOOPS_MAX];
  int loop_count;
  uint32_t vars[4];
  int var_count;
};

static int pick(struct maker *m, int count) { return (int)(next_random(&m->s) % (uint64_t)count); }

static kernel_dim random_extent(struct maker *m) {
  static const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 12, 16, 17, 31, 33, 64};
  return pick(m, 3) == 0 ? DIM_OF_SIZE(pick(m, 3)) : sizes[pick(m, 12)];
}

static expr_id number_i64(struct maker *m, int64_t n) { return expr_int(m->k, DTYPE_INT64, n); }

/* How the elements of an operand's axis are taken: as they lie, the same for all, moved, every other, backwards. */
enum way { WAY_PLAIN, WAY_BROADCAST, WAY_SHIFTED, WAY_APART, WAY_BACKWARDS };
static enum way random_way(struct maker *m, kernel_dim extent) {
  int of = pick(m, 16);
  if (of < 2)
    return WAY_BROADCAST;
  if (of == 2)
    return WAY_BACKWARDS;
  return DIM_IS_SIZE(extent) || of > 5 ? WAY_PLAIN : of == 3 ? WAY_APART : WAY_SHIFTED;
}
static expr_id backwards(struct maker *m, kernel_dim extent, expr_id at) {
  return expr_binary(m->k, SCALAR_SUB, expr_binary(m->k, SCALAR_SUB, expr_dim(m->k, extent), number_i64(m, 1)), at);
}
static expr_id random_place(struct maker *m, kernel_dim extent, expr_id at, kernel_dim *dim) {
  enum way way = random_way(m, extent);
  *dim = way == WAY_BROADCAST ? 1 : way == WAY_SHIFTED ? extent + 2 : way == WAY_APART ? 2 * extent - 1 : extent;
  switch (way) {
  case WAY_BROADCAST: return number_i64(m, 0);
  case WAY_SHIFTED: return expr_binary(m->k, SCALAR_ADD, at, number_i64(m, pick(m, 3)));
  case WAY_APART: return expr_binary(m->k, SCALAR_MUL, at, number_i64(m, 2));
  case WAY_BACKWARDS: return backwards(m, extent, at);
  default: return at;
  }
}

/* A new operand whose dimensions are some of the loops in any order, one perhaps of size 1, and its element here. */
static expr_id random_load(struct maker *m, enum dtype dtype) {
  kernel_dim dims[3];
  expr_id index[3];
  int order[LOOPS_MAX], rank = 0, wanted = 1 + pick(m, 3);
  for (int i = 0; i < m->loop_count; i++)
    order[i] = i;
  for (int i = m->loop_count - 1; i > 0; i--) {
    int j = pick(m, 4) ? i : pick(m, i + 1), t = order[i]; /* mostly in order */
    order[i] = order[j];
    order[j] = t;
  }
  for (int i = 0; i < m->loop_count && rank < 3; i++) {
    if (m->loop_count - i > wanted - rank && pick(m, 2))
      continue;
    index[rank] = random_place(m, m->extents[order[i]], m->loops[order[i]], &dims[rank]);
    rank++;
  }
  if (m->k->buffers.count >= RUNNER_BUFFERS - 3)
    return expr_int(m->k, dtype, 1);
  bool is_complex = dtype == DTYPE_DOUBLE && pick(m, 6) == 0;
  uint32_t buffer = kernel_add_buffer(m->k, is_complex ? DTYPE_COMPLEX128 : dtype, BUFFER_IN, rank, dims);
  return expr_load(m->k, buffer, is_complex ? pick(m, 2) : 0, index, rank);
}

static expr_id random_expr(struct maker *m, int depth);

static expr_id random_condition(struct maker *m, int depth) {
  static const enum scalar_op ops[] = {SCALAR_LT, SCALAR_LE, SCALAR_EQ, SCALAR_NE};
  return expr_binary(m->k, ops[pick(m, 4)], random_expr(m, depth - 1), random_expr(m, depth - 1));
}
static expr_id random_float(struct maker *m, int depth) {
  static const enum scalar_op binary[] = {SCALAR_ADD, SCALAR_SUB, SCALAR_MUL, SCALAR_MIN, SCALAR_MAX};
  static const enum scalar_op unary[] = {SCALAR_NEG, SCALAR_ABS, SCALAR_TANH, SCALAR_FLOOR, SCALAR_ERF, SCALAR_SIN};
  expr_id a = random_expr(m, depth - 1);
  if (pick(m, 3) == 0)
    return expr_unary(m->k, unary[pick(m, 6)], a);
  if (pick(m, 8) == 0)
    return expr_binary(
      m->k, SCALAR_DIV, a,
      expr_binary(m->k, SCALAR_ADD, expr_unary(m->k, SCALAR_ABS, random_expr(m, depth - 1)), expr_float(m->k, m->dtype, 1)));
  return expr_binary(m->k, binary[pick(m, 5)], a, random_expr(m, depth - 1));
}
static expr_id random_integer(struct maker *m, int depth) {
  static const enum scalar_op binary[] = {SCALAR_ADD, SCALAR_SUB, SCALAR_MUL, SCALAR_MIN, SCALAR_MAX,
                                          SCALAR_XOR, SCALAR_AND, SCALAR_SHR, SCALAR_DIV, SCALAR_FLOORMOD};
  expr_id a = random_expr(m, depth - 1);
  return pick(m, 5) == 0 ? expr_unary(m->k, SCALAR_NEG, a) : expr_binary(m->k, binary[pick(m, 10)], a, random_expr(m, depth - 1));
}
static expr_id random_expr(struct maker *m, int depth) {
  if (depth <= 0 && m->var_count && pick(m, 3) == 0)
    return expr_local(m->k, m->vars[pick(m, m->var_count)]);
  if (depth <= 0)
    return random_load(m, m->dtype);
  if (pick(m, 6) == 0)
    return expr_select(m->k, random_condition(m, depth), random_expr(m, depth - 1), random_expr(m, depth - 1));
  if (pick(m, 10) == 0)
    return expr_cast(m->k, m->dtype, m->loops[pick(m, m->loop_count)]);
  return dtype_is_float(m->dtype) ? random_float(m, depth) : random_integer(m, depth);
}

static struct stmt *open_loop(struct maker *m, struct stmt **tail, enum loop_kind kind) {
  kernel_dim extent = random_extent(m);
  struct stmt *s = stmt_for(m->k, tail, kind, expr_dim(m->k, extent));
  m->extents[m->loop_count] = extent;
  m->loops[m->loop_count++] = expr_local(m->k, s->local);
  return s;
}

/* Both parts of complex elements, the last axis perhaps backwards. */
static void store_complex(struct maker *m, struct stmt **tail) {
  int last = m->loop_count - 1;
  expr_id index[LOOPS_MAX], parts[2] = {random_expr(m, 2), random_expr(m, 2)};
  memcpy(index, m->loops, sizeof index);
  if (pick(m, 2))
    index[last] = backwards(m, m->extents[last], index[last]);
  uint32_t out = kernel_add_buffer(m->k, DTYPE_COMPLEX128, BUFFER_OUT, m->loop_count, m->extents);
  for (int part = 0; part < 2; part++)
    stmt_store(m->k, tail, out, part, index, m->loop_count, parts[part]);
}
/* At even places of the last axis, and at odd ones. */
static void store_between(struct maker *m, struct stmt **tail) {
  int last = m->loop_count - 1;
  expr_id index[LOOPS_MAX];
  kernel_dim dims[LOOPS_MAX];
  memcpy(index, m->loops, sizeof index);
  memcpy(dims, m->extents, sizeof dims);
  dims[last] *= 2;
  uint32_t out = kernel_add_buffer(m->k, m->dtype, BUFFER_OUT, m->loop_count, dims);
  expr_id even = expr_binary(m->k, SCALAR_MUL, m->loops[last], number_i64(m, 2));
  for (int odd = 0; odd < 2; odd++) {
    index[last] = odd ? expr_binary(m->k, SCALAR_ADD, even, number_i64(m, 1)) : even;
    stmt_store(m->k, tail, out, 0, index, m->loop_count, random_expr(m, 1));
  }
}
static void store_result(struct maker *m, struct stmt **tail, expr_id value) {
  uint32_t out = kernel_add_buffer(m->k, expr_get(m->k, value)->dtype, BUFFER_OUT, m->loop_count, m->extents);
  stmt_store(m->k, tail, out, 0, m->loops, m->loop_count, value);
}

/* var x = 0; red ..: x = op(x, e): often a sum of products */
static void add_reduction(struct maker *m, struct stmt **tail) {
  static const enum scalar_op ops[] = {SCALAR_ADD, SCALAR_ADD, SCALAR_ADD, SCALAR_MIN, SCALAR_MAX};
  struct stmt *var = stmt_var(m->k, tail, m->dtype, expr_int(m->k, m->dtype, pick(m, 2)));
  int outer = m->loop_count, vars = m->var_count, depth = 1 + pick(m, 2);
  enum scalar_op op = ops[pick(m, 5)];
  struct stmt **at = tail;
  for (int i = 0; i < depth && m->loop_count < LOOPS_MAX; i++)
    at = &open_loop(m, at, LOOP_RED)->body;
  bool product = op == SCALAR_ADD && pick(m, 3);
  expr_id e = product ? expr_binary(m->k, SCALAR_MUL, random_load(m, m->dtype), random_load(m, m->dtype)) : random_expr(m, 1);
  stmt_set(m->k, at, var->local, expr_binary(m->k, op, expr_local(m->k, var->local), e));
  m->loop_count = outer;
  m->var_count = vars;
  m->vars[m->var_count++] = var->local;
}
static void add_condition(struct maker *m, struct stmt **tail) {
  struct stmt *var = stmt_var(m->k, tail, m->dtype, random_expr(m, 0));
  struct stmt *s = stmt_if(m->k, tail, random_condition(m, 1));
  stmt_set(m->k, &s->body, var->local, random_expr(m, 1));
  if (pick(m, 2))
    stmt_set(m->k, &s->otherwise, var->local, random_expr(m, 1));
  m->vars[m->var_count++] = var->local;
}

static struct kernel *random_kernel(struct arena *arena, int number, enum dtype dtype) {
  struct maker m = {.k = kernel_create(arena, arena_printf(arena, "random%d", number)), .s = {(uint64_t)number * 77 + 5}, .dtype = dtype};
  next_random(&m.s);
  expr_size(m.k, 2); /* all have three sizes */
  int rank = 1 + pick(&m, 3);
  struct stmt **tail = &m.k->body;
  for (int i = 0; i < rank; i++)
    tail = &open_loop(&m, tail, LOOP_PAR)->body;
  for (int i = pick(&m, 3); i > 0 && m.var_count < 3; i--)
    pick(&m, 3) ? add_reduction(&m, tail) : add_condition(&m, tail);
  if (m.var_count && pick(&m, 4) == 0) {
    struct stmt *inner = open_loop(&m, tail, LOOP_PAR);
    store_result(&m, &inner->body, random_expr(&m, 2));
    return m.k;
  }
  store_result(&m, tail, random_expr(&m, 2));
  if (pick(&m, 4) == 0)
    store_result(&m, tail, random_condition(&m, 1));
  else if (m.dtype == DTYPE_DOUBLE && pick(&m, 4) == 0)
    store_complex(&m, tail);
  else if (!DIM_IS_SIZE(m.extents[m.loop_count - 1]) && pick(&m, 4) == 0)
    store_between(&m, tail);
  return m.k;
}

static const int64_t sizes[][3] = {{0, 3, 5}, {1, 1, 1}, {9, 37, 13}, {40, 18, 66}};
#define SIZES (sizeof sizes / sizeof *sizes)

static int64_t work_of(const struct kernel *k, const int64_t *n) {
  int64_t most = 0;
  for (uint32_t i = 0; i < k->buffers.count; i++)
    most = buffer_count(k, i, n) > most ? buffer_count(k, i, n) : most;
  return most;
}

/* How kernels are compiled, and how near to the evaluator their code must be. */
struct compiled_variant {
  struct target_options options;
  double tolerance;
};
#define VARIANTS_MAX 4

static void check_sizes(const struct kernel *k, const int64_t *n, const struct compiled_variant *variants, const struct compiled *made,
                        int count, int number, struct arena *arena) {
  struct evaluated expected;
  char what[256];
  evaluate(k, n, &expected);
  for (int v = 0; v < count; v++) {
    double tolerance = variants[v].tolerance;
    if (!agrees_with(&expected, k, &made[v].code[number], n, tolerance, tolerance, what, sizeof what))
      fail_msg("%s, math %d: kernel %d, sizes %d %d %d: %s\n%s", variants[v].options.cpu, (int)variants[v].options.math, number, (int)n[0],
               (int)n[1], (int)n[2], what, kernel_print(k, arena));
  }
  evaluated_free(&expected);
}

static bool has_functions(const struct kernel *k) {
  for (expr_id e = 1; e < k->exprs.count; e++)
    if (op_effort((enum scalar_op)expr_get(k, e)->op) == EFFORT_FUNCTION)
      return true;
  return false;
}
/* Of the kernel as it is marked, the very bits, sums over lanes too; but for functions that are written out: false, it has some. */
static bool check_bits(const struct kernel *k, const int64_t *n, const struct compiled_variant *v, const struct kernel_code *code) {
  struct arena arena;
  struct evaluated expected;
  char what[256];
  if (has_functions(k))
    return false;
  arena_init(&arena);
  struct kernel *marked = marked_kernel(k, &v->options, &arena);
  evaluate(marked, n, &expected);
  if (!agrees_with(&expected, k, code, n, 0, 0, what, sizeof what))
    fail_msg("%s: as marked, sizes %d %d %d: %s\n%s", v->options.cpu, (int)n[0], (int)n[1], (int)n[2], what, kernel_print(marked, &arena));
  evaluated_free(&expected);
  kernel_free(marked);
  arena_deinit(&arena);
  return true;
}

static void check_all(enum dtype dtype, const struct compiled_variant *variants, int count) {
  struct arena arena;
  arena_init(&arena);
  struct kernel *kernels[KERNELS];
  struct compiled made[VARIANTS_MAX];
  for (int i = 0; i < KERNELS; i++) {
    kernels[i] = random_kernel(&arena, i, dtype);
    if (kernel_verify(kernels[i]) != OK)
      fail_msg("%d: %s", i, status_text());
  }
  for (int v = 0; v < count; v++)
    made[v] = compile_kernels_with(kernels, KERNELS, &variants[v].options);
  int exact = 0;
  for (int i = 0; i < KERNELS; i++)
    for (size_t n = 0; n < SIZES; n++) {
      if (work_of(kernels[i], sizes[n]) >= 40000)
        continue;
      check_sizes(kernels[i], sizes[n], variants, made, count, i, &arena);
      for (int v = 0; v < count; v++)
        exact += check_bits(kernels[i], sizes[n], &variants[v], &made[v].code[i]);
    }
  assert_true(exact > KERNELS * (int)SIZES * count * 2 / 5); /* the others have functions */
  for (int v = 0; v < count; v++)
    dlclose(made[v].handle);
  arena_deinit(&arena);
}

static void random_integer_kernels_agree(void **state) {
  (void)state;
  check_all(DTYPE_INT32, &(struct compiled_variant){{.cpu = "native"}, 0}, 1);
  check_all(DTYPE_INT64, &(struct compiled_variant){{.cpu = "x86-64-v3"}, 0}, 1);
}
/* Sums may be added up in another order and floors and comparisons then differ: doubles keep that away from the tests. Strict ones have the
 * evaluator's bits: doubles' functions are libm's in both. */
static void random_double_kernels_agree_and_strict_ones_have_the_evaluators_bits(void **state) {
  (void)state;
  static const struct compiled_variant variants[VARIANTS_MAX] = {{{.cpu = "native"}, 1e-9},
                                                                 {{.cpu = "x86-64"}, 1e-9},
                                                                 {{.cpu = "native", .math = MATH_STRICT}, 0},
                                                                 {{.cpu = "x86-64-v3", .math = MATH_STRICT}, 0}};
  check_all(DTYPE_DOUBLE, variants, VARIANTS_MAX);
}

int main(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_integer_kernels_agree),
    cmocka_unit_test(random_double_kernels_agree_and_strict_ones_have_the_evaluators_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
