/* CUDA C, compiled for the CPU under a shim, against the reference evaluator; and, where the toolkit is, as PTX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "tests/support/kernel_runner.h"

#include <cmocka.h>

struct text_case {
  const char *text;
  int64_t sizes[6][3];
};
#define ONCE    \
  {             \
    {0}, { -1 } \
  }
#define SIZES                           \
  {                                     \
    {0}, {1}, {7}, {64}, {1009}, { -1 } \
  }
#define PAIRS                                          \
  {                                                    \
    {0, 5}, {3, 0}, {1, 1}, {5, 17}, {37, 129}, { -1 } \
  }

static const struct text_case texts[] = {
#include "tests/targets/cpu_cases.h"
#include "tests/support/temp_path.h"
};
#define TEXT_COUNT (sizeof texts / sizeof *texts)

struct fault {
  int code, check;
  long long shown[3];
};

static void *build(const char *source) {
  char folder[TEMP_PATH_SIZE], path[80], library[80], command[600];
  assert_true(temp_folder(folder));
  snprintf(path, sizeof path, "%s/k.c", folder);
  snprintf(library, sizeof library, "%s/k.so", folder);
  FILE *file = fopen(path, "w");
  fputs(source, file);
  fclose(file);
  snprintf(command, sizeof command,
           "cc -std=gnu17 -O1 -ffp-contract=off -fPIC -shared -w -include %s/tests/support/cuda_shim.h -o %s %s -lm", SOURCE_DIR, library,
           path);
  assert_int_equal(system(command), 0);
  void *handle = dlopen(library, RTLD_NOW);
  assert_non_null(handle);
  unlink(path);
  unlink(library);
  rmdir(folder);
  return handle;
}

/* Pointers and 64-bit sizes are passed alike, so one type of function calls them all. */
typedef void function(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);
static int run_phases(void *handle, const struct kernel *k, void *const *buffers, const int64_t *sizes) {
  struct fault fault = {0};
  void *args[12] = {0};
  uint32_t n = 0;
  for (uint32_t i = 0; i < k->buffers.count; i++)
    args[n++] = k->buffers.items[i].mode == BUFFER_SCRATCH ? aligned_block(8 * (size_t)buffer_count(k, i, sizes)) : buffers[i];
  for (uint32_t i = 0; i < k->size_count; i++)
    args[n++] = (void *)(intptr_t)sizes[i];
  args[n] = &fault;
  for (int phase = 0;; phase++) {
    char name[128];
    snprintf(name, sizeof name, "%s_%d", k->name, phase);
    function *f = (function *)dlsym(handle, name);
    if (!f || fault.code)
      break;
    f(args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8], args[9], args[10], args[11]);
  }
  for (uint32_t i = 0; i < k->buffers.count; i++)
    if (k->buffers.items[i].mode == BUFFER_SCRATCH)
      free(args[i]);
  return fault.code;
}

static void check_one(void *handle, const struct kernel *k, const int64_t *sizes) {
  void *ours[RUNNER_BUFFERS] = {0}, *theirs[RUNNER_BUFFERS] = {0};
  struct sequence s = {(uint64_t)sizes[0] + 7};
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    size_t bytes = (size_t)buffer_count(k, i, sizes) * dtype_size(k->buffers.items[i].dtype);
    if (k->buffers.items[i].mode == BUFFER_SCRATCH)
      continue;
    ours[i] = aligned_block(bytes);
    theirs[i] = aligned_block(bytes);
    fill_random(k->buffers.items[i].dtype, ours[i], buffer_count(k, i, sizes), &s);
    memcpy(theirs[i], ours[i], bytes);
  }
  assert_int_equal(kernel_eval(k, theirs, sizes), run_phases(handle, k, ours, sizes));
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    enum dtype dtype = k->buffers.items[i].dtype;
    if (ours[i] && first_difference(dtype, ours[i], theirs[i], buffer_count(k, i, sizes), 2e-5, 4e-5) >= 0)
      fail_msg("%s, sizes %d %d %d: buffer %u differs", k->name, (int)sizes[0], (int)sizes[1], (int)sizes[2], i);
    free(ours[i]);
    free(theirs[i]);
  }
}

static bool has_strings(const struct kernel *k) {
  for (uint32_t i = 0; i < k->buffers.count; i++)
    if (k->buffers.items[i].dtype == DTYPE_STRING)
      return true;
  return false;
}

static void printed_kernels_agree_with_the_evaluator(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *kernels[TEXT_COUNT];
  uint32_t count = 0;
  const struct text_case *cases[TEXT_COUNT];
  for (size_t i = 0; i < TEXT_COUNT; i++) {
    assert_int_equal(kernel_parse(texts[i].text, &arena, &kernels[count]), OK);
    kernels[count]->name = arena_printf(&arena, "k%zu", i);
    cases[count] = &texts[i];
    count += !has_strings(kernels[count]);
  }
  struct target_unit unit = {.kernels = kernels, .count = count};
  struct target_options options = {0};
  char *source;
  assert_int_equal(target_find("cuda")->emit(&options, &unit, "cuda", &arena, &source), OK);
  void *handle = build(source);
  for (uint32_t i = 0; i < count; i++)
    for (int n = 0; n < 6 && cases[i]->sizes[n][0] >= 0; n++)
      check_one(handle, kernels[i], cases[i]->sizes[n]);
  dlclose(handle);
  arena_deinit(&arena);
}

/* ---- every operation and dtype compiles, and agrees on a few values ---- */

static const enum dtype tested[] = {DTYPE_FLOAT,  DTYPE_DOUBLE, DTYPE_HALF,   DTYPE_BFLOAT16, DTYPE_INT8,   DTYPE_UINT8, DTYPE_INT16,
                                    DTYPE_UINT16, DTYPE_INT32,  DTYPE_UINT32, DTYPE_INT64,    DTYPE_UINT64, DTYPE_BOOL};
#define TESTED ((int)(sizeof tested / sizeof *tested))
#define ELEMENTS 64

static bool op_takes(enum scalar_op op, enum dtype dtype) {
  bool logical = op == SCALAR_AND || op == SCALAR_OR || op == SCALAR_XOR || op == SCALAR_NOT;
  if (op == SCALAR_BITCAST)
    return false;
  if (op == SCALAR_CAST || op == SCALAR_SELECT || (op >= SCALAR_EQ && op <= SCALAR_LE))
    return true;
  if (dtype_is_float(dtype))
    return !logical && op != SCALAR_SHL && op != SCALAR_SHR && op != SCALAR_MULHI && op != SCALAR_POPCOUNT;
  if (dtype == DTYPE_BOOL)
    return logical;
  if (op == SCALAR_MULHI)
    return dtype == DTYPE_UINT32 || dtype == DTYPE_UINT64;
  return op < SCALAR_SQRT || op == SCALAR_POW;
}

static struct kernel *op_kernel(struct arena *arena, enum scalar_op op, enum dtype in, enum dtype own, int number) {
  struct kernel *k = kernel_create(arena, arena_printf(arena, "op%d", number));
  kernel_dim dim = ELEMENTS;
  expr_id v[3];
  uint32_t buffers[3];
  int operands = scalar_operands(op);
  for (int i = 0; i < operands; i++)
    buffers[i] = kernel_add_buffer(k, op == SCALAR_SELECT && i == 0 ? DTYPE_BOOL : in, BUFFER_IN, 1, &dim);
  struct stmt *loop = stmt_for(k, &k->body, LOOP_PAR, expr_int(k, DTYPE_INT64, ELEMENTS));
  expr_id at = expr_local(k, loop->local);
  for (int i = 0; i < operands; i++)
    v[i] = expr_load(k, buffers[i], 0, &at, 1);
  expr_id e = expr_make(k, op, own, v, operands);
  uint32_t out = kernel_add_buffer(k, expr_get(k, e)->dtype, BUFFER_OUT, 1, &dim);
  stmt_store(k, &loop->body, out, 0, &at, 1, e);
  return k;
}

static void every_operation_agrees(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  static struct kernel *kernels[2000];
  uint32_t count = 0;
  for (int op = SCALAR_LOAD + 1; op < SCALAR_OP_COUNT; op++)
    for (int t = 0; t < TESTED; t++)
      for (int to = 0; op_takes(op, tested[t]) && to < (op == SCALAR_CAST ? TESTED : 1); to++) {
        enum dtype own = op == SCALAR_CAST ? tested[to] : op == SCALAR_POPCOUNT ? DTYPE_UINT8 : tested[t];
        if (op == SCALAR_CAST && own == tested[t])
          continue;
        kernels[count] = op_kernel(&arena, op, tested[t], own, (int)count);
        count++;
      }
  struct target_unit unit = {.kernels = kernels, .count = count};
  struct target_options options = {0};
  char *source;
  assert_int_equal(target_find("cuda")->emit(&options, &unit, "cuda", &arena, &source), OK);
  void *handle = build(source);
  for (uint32_t i = 0; i < count; i++)
    check_one(handle, kernels[i], (int64_t[]){0, 0, 0});
  dlclose(handle);
  arena_deinit(&arena);
}

static void strings_are_refused(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k;
  assert_int_equal(kernel_parse("kernel s(in a: str[], out b: str[]) { b[] = a[] }", &arena, &k), OK);
  struct target_unit unit = {.kernels = &k, .count = 1};
  struct target_options options = {0};
  char *source;
  assert_int_equal(target_find("cuda")->emit(&options, &unit, "cuda", &arena, &source), UNIMPLEMENTED);
  arena_deinit(&arena);
}

static void ptx_is_made_or_the_toolkit_is_missed(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k;
  assert_int_equal(kernel_parse(texts[0].text, &arena, &k), OK);
  struct target_unit unit = {.kernels = &k, .count = 1};
  struct target_options options = {.gpu = "sm_90"};
  char *ptx;
  status result = target_find("cuda")->emit(&options, &unit, "ptx", &arena, &ptx);
  if (result == OK)
    assert_non_null(strstr(ptx, ".visible .entry map_0"));
  else if (result != FAILED_PRECONDITION || !strstr(status_text(), "libnvrtc"))
    fail_msg("%s", status_text());
  arena_deinit(&arena);
}

int main(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(printed_kernels_agree_with_the_evaluator),
    cmocka_unit_test(every_operation_agrees),
    cmocka_unit_test(strings_are_refused),
    cmocka_unit_test(ptx_is_made_or_the_toolkit_is_missed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
