/* The CPU target against the reference evaluator: every operation, loops of all kinds, contractions with their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "tests/support/kernel_runner.h"
#include "tests/targets/cpu_cases.h"

#include <cmocka.h>

/* Whether the code has a function of its own for some operation, which differs from libm's in the last places. */
static bool has_functions(const struct kernel *k) {
  for (expr_id e = 1; e < k->exprs.count; e++)
    switch (expr_get(k, e)->op) {
    case SCALAR_EXP:
    case SCALAR_EXPM1:
    case SCALAR_LOG:
    case SCALAR_LOG1P:
    case SCALAR_TANH:
    case SCALAR_ERF:
    case SCALAR_SIN:
    case SCALAR_COS:
    case SCALAR_TAN: return true;
    default: break;
    }
  return false;
}

/* Of each text and sizes: the same for all CPUs and kinds of arithmetic. */
static struct evaluated expected[TEXT_COUNT][6];

static void run_texts(const char *cpu, enum math_mode math) {
  struct arena arena;
  arena_init(&arena);
  struct kernel *kernels[TEXT_COUNT];
  for (size_t i = 0; i < TEXT_COUNT; i++) {
    if (kernel_parse(texts[i].text, &arena, &kernels[i]) != OK)
      fail_msg("%s: %s", texts[i].text, status_text());
    kernels[i]->name = arena_printf(&arena, "%s%zu", kernels[i]->name, i);
  }
  const struct target_options options = {.cpu = cpu, .math = math};
  struct compiled c = compile_kernels_with(kernels, TEXT_COUNT, &options);
  for (size_t i = 0; i < TEXT_COUNT; i++)
    for (int n = 0; n < 6 && texts[i].sizes[n][0] >= 0; n++) {
      char what[256];
      bool exact = math == MATH_STRICT && !has_functions(kernels[i]);
      double rtol = exact ? 0 : 2e-5, atol = exact ? 0 : 4e-5;
      if (!expected[i][n].is_there)
        evaluate(kernels[i], texts[i].sizes[n], &expected[i][n]);
      if (!agrees_with(&expected[i][n], kernels[i], &c.code[i], texts[i].sizes[n], rtol, atol, what, sizeof what))
        fail_msg("sizes %d %d %d: %s", (int)texts[i].sizes[n][0], (int)texts[i].sizes[n][1], (int)texts[i].sizes[n][2], what);
    }
  dlclose(c.handle);
  arena_deinit(&arena);
}
static void kernels_agree_with_the_evaluator(void **state) {
  (void)state;
  run_texts("native", MATH_DEFAULT);
}
static void kernels_agree_without_avx512(void **state) {
  (void)state;
  run_texts("x86-64-v3", MATH_DEFAULT);
}
static void kernels_agree_with_sse_alone(void **state) {
  (void)state;
  run_texts("x86-64", MATH_DEFAULT);
}

static void strict_kernels_have_the_evaluators_bits(void **state) {
  (void)state;
  run_texts("native", MATH_STRICT);
  run_texts("x86-64-v3", MATH_STRICT);
  run_texts("x86-64", MATH_STRICT);
}
static void fast_kernels_agree_with_the_evaluator(void **state) {
  (void)state;
  run_texts("native", MATH_FAST);
}

/* ---- every operation over special values ---- */

static const double specials[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  0.5,
                                  -0.5,
                                  1.5,
                                  2.5,
                                  -2.5,
                                  3,
                                  7,
                                  -7,
                                  10,
                                  31,
                                  33,
                                  63,
                                  64,
                                  100,
                                  127,
                                  128,
                                  255,
                                  300,
                                  1e-3,
                                  -1e-3,
                                  1e-10,
                                  1e-30,
                                  88.5,
                                  89,
                                  -87,
                                  -88,
                                  -104,
                                  1e4,
                                  65504,
                                  1e6,
                                  2147483647.0,
                                  -2147483648.0,
                                  4e9,
                                  1e10,
                                  -1e10,
                                  9.3e18,
                                  1.9e19,
                                  1e30,
                                  3e38,
                                  -3e38,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  0.7853981633974483,
                                  1.5707963267948966,
                                  3.141592653589793,
                                  6.283185307179586,
                                  0.9999999,
                                  1.0000001,
                                  0.1,
                                  0.3,
                                  -0.3,
                                  -0.75,
                                  4.5,
                                  -9.1,
                                  12.25,
                                  50,
                                  -50,
                                  1e-38};
#define SPECIAL_COUNT ((int)(sizeof specials / sizeof *specials))

static const enum dtype tested[] = {DTYPE_FLOAT,  DTYPE_DOUBLE, DTYPE_HALF,   DTYPE_BFLOAT16, DTYPE_INT8,   DTYPE_UINT8, DTYPE_INT16,
                                    DTYPE_UINT16, DTYPE_INT32,  DTYPE_UINT32, DTYPE_INT64,    DTYPE_UINT64, DTYPE_BOOL};
#define TESTED ((int)(sizeof tested / sizeof *tested))

static bool op_takes(enum scalar_op op, enum dtype dtype) {
  if (op == SCALAR_CAST)
    return true;
  if (dtype_is_float(dtype))
    return !(op >= SCALAR_AND && op <= SCALAR_MULHI) && op != SCALAR_NOT && op != SCALAR_POPCOUNT && op != SCALAR_BITCAST;
  if (dtype == DTYPE_BOOL)
    return op == SCALAR_AND || op == SCALAR_OR || op == SCALAR_XOR || op == SCALAR_NOT || (op >= SCALAR_EQ && op <= SCALAR_SELECT);
  if (op == SCALAR_MULHI)
    return dtype == DTYPE_UINT32 || dtype == DTYPE_UINT64;
  return op < SCALAR_SQRT || op == SCALAR_POW;
}

static void *special_values(enum dtype dtype, int64_t repeat, int64_t stride) {
  void *data = aligned_block(8 * (size_t)repeat);
  for (int64_t i = 0; i < repeat; i++) {
    double v = specials[i / stride % SPECIAL_COUNT];
    int64_t n = fabs(v) < 9.2e18 ? (int64_t)v : v > 0 ? INT64_MAX : INT64_MIN;
    int64_t bits = dtype_is_float(dtype) ? expr_double_to_bits(dtype, v) : dtype == DTYPE_BOOL ? v > 1 : n;
    memcpy((char *)data + dtype_size(dtype) * (size_t)i, &bits, dtype_size(dtype));
  }
  return data;
}

struct op_case {
  struct kernel *k;
  enum scalar_op op;
  enum dtype in, out;
};

/* out[i] = op(a[i], b[i], c[i]) */
static struct op_case make_op_case(struct arena *arena, enum scalar_op op, enum dtype in, enum dtype own, int64_t count, int number) {
  struct op_case c = {kernel_create(arena, arena_printf(arena, "op%d", number)), op, in, own};
  uint32_t buffers[3];
  expr_id v[3];
  int operands = scalar_operands(op);
  kernel_dim dim = count;
  for (int i = 0; i < operands; i++)
    buffers[i] = kernel_add_buffer(c.k, op == SCALAR_SELECT && i == 0 ? DTYPE_BOOL : in, BUFFER_IN, 1, &dim);
  enum dtype result = op == SCALAR_CAST || op == SCALAR_BITCAST || op == SCALAR_POPCOUNT ? own
                    : op >= SCALAR_EQ && op <= SCALAR_LE                                 ? DTYPE_BOOL
                                                                                         : in;
  uint32_t out = kernel_add_buffer(c.k, result, BUFFER_OUT, 1, &dim);
  struct stmt *loop = stmt_for(c.k, &c.k->body, LOOP_PAR, expr_int(c.k, DTYPE_INT64, count));
  expr_id at = expr_local(c.k, loop->local);
  for (int i = 0; i < operands; i++)
    v[i] = expr_load(c.k, buffers[i], 0, &at, 1);
  stmt_store(c.k, &loop->body, out, 0, &at, 1, expr_make(c.k, op, own, v, operands));
  c.out = result;
  return c;
}

static double tolerance_of(enum dtype dtype) {
  return dtype == DTYPE_HALF ? 2e-3 : dtype == DTYPE_BFLOAT16 ? 1e-2 : dtype == DTYPE_DOUBLE ? 1e-13 : 1e-6;
}

static void run_op(const struct op_case *c, const struct kernel_code *code, int64_t count) {
  void *buffers[4], *expected[4];
  int operands = scalar_operands(c->op);
  for (int i = 0; i < operands; i++)
    buffers[i] = expected[i] = special_values(c->op == SCALAR_SELECT && i == 0 ? DTYPE_BOOL : c->in, count, i == 0 ? 1 : SPECIAL_COUNT);
  buffers[operands] = aligned_block(16 * (size_t)count);
  expected[operands] = aligned_block(16 * (size_t)count);
  assert_int_equal(kernel_eval(c->k, expected, NULL), OK);
  run_compiled(code, buffers, NULL);
  int64_t at = first_difference(c->out, buffers[operands], expected[operands], count, tolerance_of(c->out), 1e-36);
  if (at >= 0) {
    bool is_float = dtype_is_float(c->out);
    fail_msg("%s of %s (%g, %g) to %s: %g, expected %g", scalar_text(c->op), dtype_short(c->in), specials[at % SPECIAL_COUNT],
             specials[at / SPECIAL_COUNT % SPECIAL_COUNT], dtype_short(c->out),
             is_float ? element_value(c->out, buffers[operands], at)
                      : (double)*((uint8_t *)buffers[operands] + dtype_size(c->out) * (size_t)at),
             is_float ? element_value(c->out, expected[operands], at)
                      : (double)*((uint8_t *)expected[operands] + dtype_size(c->out) * (size_t)at));
  }
  for (int i = 0; i <= operands; i++)
    free(buffers[i]);
  free(expected[operands]);
}

static void every_operation_agrees_on_special_values(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  static struct op_case cases[2000];
  static struct kernel *kernels[2000];
  int count = 0;
  int64_t elements = (int64_t)SPECIAL_COUNT * SPECIAL_COUNT;
  for (int op = SCALAR_LOAD + 1; op < SCALAR_OP_COUNT; op++)
    for (int t = 0; t < TESTED; t++) {
      if (!op_takes(op, tested[t]))
        continue;
      for (int to = 0; to < (op == SCALAR_CAST ? TESTED : 1); to++) {
        enum dtype own = op == SCALAR_CAST ? tested[to] : op == SCALAR_POPCOUNT ? DTYPE_UINT8 : tested[t];
        if ((op == SCALAR_CAST && own == tested[t]) || op == SCALAR_BITCAST)
          continue;
        cases[count] = make_op_case(&arena, op, tested[t], own, elements, count);
        kernels[count] = cases[count].k;
        count++;
      }
    }
  struct compiled c = compile_kernels(kernels, (uint32_t)count, "native");
  for (int i = 0; i < count; i++)
    run_op(&cases[i], &c.code[i], elements);
  dlclose(c.handle);
  arena_deinit(&arena);
}

/* ---- faults ---- */

static void a_check_reports_the_element_that_fails(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k;
  assert_int_equal(
    kernel_parse("kernel gather(in a: f32[100], in b: i32[n0], out c: f32[n0]) sizes 1 { par i0 < n0 {"
                 "  check and(le(0:i32, b[i0]), lt(b[i0], 100:i32)) else INVALID_ARGUMENT \"index %d at %d\": cast.i64(b[i0]), i0"
                 "  c[i0] = a[cast.i64(b[i0])] } }",
                 &arena, &k),
    OK);
  struct compiled c = compile_kernels(&k, 1, "native");
  float a[100] = {0}, *out = aligned_block(4 * 1000);
  int32_t *index = aligned_block(4 * 1000);
  int64_t size = 1000;
  for (int i = 0; i < 1000; i++)
    index[i] = i % 100;
  void *buffers[3] = {a, index, out};
  assert_int_equal(run_compiled(c.code, buffers, &size).code, OK);
  index[777] = 100;
  struct kernel_fault fault = run_compiled(c.code, buffers, &size);
  assert_int_equal(fault.code, INVALID_ARGUMENT);
  assert_string_equal(fault.text, "index %d at %d");
  assert_int_equal(fault.shown[0], 100);
  assert_int_equal(fault.shown[1], 777);
  dlclose(c.handle);
  arena_deinit(&arena);
}

static void the_program_is_linked_in(void **state) {
  (void)state;
  char object[] = "/tmp/tfc-program-XXXXXX", command[128], library[64];
  close(mkstemp(object));
  struct target_unit unit = {.data = "twelve bytes", .data_size = 12};
  struct target_options options = {.cpu = "native"};
  assert_int_equal(target_find("cpu")->compile(&options, &unit, object), OK);
  snprintf(library, sizeof library, "%s.so", object);
  snprintf(command, sizeof command, "cc -shared -o %s %s", library, object);
  assert_int_equal(system(command), 0);
  void *handle = dlopen(library, RTLD_NOW);
  const char *program = dlsym(handle, "tfc_program");
  assert_non_null(program);
  assert_memory_equal(program, "twelve bytes", 12);
  assert_int_equal((uintptr_t)program % 64, 0);
  dlclose(handle);
  unlink(object);
  unlink(library);
}

static void what_is_no_text_of_the_target_is_refused(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct target_unit unit = {0};
  struct target_options options = {.cpu = "native"};
  char *text;
  assert_int_equal(target_find("cpu")->emit(&options, &unit, "ptx", &arena, &text), UNIMPLEMENTED);
  assert_int_equal(target_find("cpu")->emit(&options, &unit, "asm", &arena, &text), OK);
  assert_non_null(strstr(text, "tfc_kernels"));
  arena_deinit(&arena);
}

/* How often a word is in the code of a kernel. */
static int count_in_code(const char *text, const char *word) {
  struct arena arena;
  struct kernel *k;
  struct target_options options = {.cpu = "x86-64-v4"};
  char *code;
  int count = 0;
  arena_init(&arena);
  assert_int_equal(kernel_parse(text, &arena, &k), OK);
  struct kernel *marked = marked_kernel(k, &options, &arena);
  struct target_unit unit = {.kernels = &marked, .count = 1};
  assert_int_equal(target_find("cpu")->emit(&options, &unit, "llvm", &arena, &code), OK);
  for (const char *at = code; (at = strstr(at, word)); at++)
    count++;
  arena_deinit(&arena);
  return count;
}
/* Each loop has a variable that counts. */
static int loops_of(const char *text) { return count_in_code(text, "phi i64"); }
#define WINDOW(loop, taps)                                                                                                        \
  "kernel k(in a: f32[1600,64], out b: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32 " loop " i1 < " taps " { " loop " i2 < " taps \
  " { v0 = max(v0, a[add(mul(i1, " taps "), i2),i0]) } } b[i0] = v0 } }"

static void short_loops_among_lanes_are_written_out(void **state) {
  (void)state;
  int map = loops_of("kernel k(in a: f32[64], out b: f32[64]) { par i0 < 64 { b[i0] = max(0:f32, a[i0]) } }");
  assert_int_equal(loops_of(WINDOW("red", "2")), map);
  assert_int_equal(loops_of(WINDOW("seq", "3")), map);
  assert_int_equal(loops_of(WINDOW("seq", "40")), map + 2);
}

#define ROWS(rows, width)                                                                                                  \
  "kernel k(in a: f32[" rows "," width "], in b: f32[" width "], out c: f32[" rows "," width "]) sizes 1 { par i0 < " rows \
  " { par i1 < " width " { c[i0,i1] = add(a[i0,i1], b[i1]) } } }"

static void rows_of_whole_vectors_have_no_masks(void **state) {
  (void)state;
  assert_int_equal(count_in_code(ROWS("100", "128"), "masked"), 0);
  assert_int_equal(count_in_code(ROWS("n0", "128"), "masked"), 0);
  assert_true(count_in_code(ROWS("n0", "120"), "masked") > 0);
  assert_true(count_in_code(ROWS("128", "n0"), "masked") > 0);
}

int main(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040); /* denormals are zero, as in the runtime's threads */
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_agree_with_the_evaluator),
    cmocka_unit_test(rows_of_whole_vectors_have_no_masks),
    cmocka_unit_test(kernels_agree_without_avx512),
    cmocka_unit_test(kernels_agree_with_sse_alone),
    cmocka_unit_test(strict_kernels_have_the_evaluators_bits),
    cmocka_unit_test(fast_kernels_agree_with_the_evaluator),
    cmocka_unit_test(every_operation_agrees_on_special_values),
    cmocka_unit_test(a_check_reports_the_element_that_fails),
    cmocka_unit_test(the_program_is_linked_in),
    cmocka_unit_test(what_is_no_text_of_the_target_is_refused),
    cmocka_unit_test(short_loops_among_lanes_are_written_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
