/* cuda_cases.h: kernels that are printed as CUDA C, and the runs of each beside the reference evaluator: by code that was compiled for the
 * CPU under a shim (test_cuda_text.c), and on a device (test_cuda_device.c). */
#ifndef TFC_TESTS_CUDA_CASES_H
#define TFC_TESTS_CUDA_CASES_H

#include "tests/support/kernel_runner.h"
#include "tests/targets/cpu_cases.h"
#include "tests/targets/scheduled_cases.h"

/* ---- lists ---- */

#define CUDA_KERNELS 2000
#define CUDA_RUNS 4000
struct cuda_list {
  struct arena arena;
  struct kernel *kernels[CUDA_KERNELS];
  uint32_t count, run_count;
  struct cuda_run {
    const struct kernel *k;
    int64_t sizes[3];
    bool has_bits; /* the evaluator's, else results are close to its */
  } runs[CUDA_RUNS];
};
/* As CUDA C has it. */
struct fault {
  int code, check;
  long long shown[3];
};
/* Runs k with the sizes on the buffers: the status of its checks. */
typedef int cuda_runner(void *context, const struct kernel *k, void *const *buffers, const int64_t *sizes);

static void cuda_list_begin(struct cuda_list *list) {
  memset(list, 0, sizeof *list);
  arena_init(&list->arena);
}
static void cuda_list_end(struct cuda_list *list) { arena_deinit(&list->arena); }

static bool has_strings(const struct kernel *k) {
  for (uint32_t i = 0; i < k->buffers.count; i++)
    if (k->buffers.items[i].dtype == DTYPE_STRING)
      return true;
  return false;
}
static bool splits_sums(const struct stmt *s) {
  for (; s; s = s->next)
    if ((s->kind == STMT_FOR && s->loop == LOOP_RED && s->run == RUN_VECTORS) || splits_sums(s->body) || splits_sums(s->otherwise))
      return true;
  return false;
}
static void cuda_list_add(struct cuda_list *list, struct kernel *k, const int64_t (*sizes)[3], int most, bool has_bits) {
  assert_true(list->count < CUDA_KERNELS);
  list->kernels[list->count++] = k;
  for (int i = 0; i < most && sizes[i][0] >= 0; i++) {
    assert_true(list->run_count < CUDA_RUNS);
    struct cuda_run *run = &list->runs[list->run_count++];
    run->k = k;
    run->has_bits = has_bits;
    memcpy(run->sizes, sizes[i], sizeof run->sizes);
  }
}
static void cuda_list_parse(struct cuda_list *list, const char *text, const char *name, const int64_t (*sizes)[3], int most,
                            bool has_bits) {
  struct kernel *k;
  assert_int_equal(kernel_parse(text, &list->arena, &k), OK);
  k->name = arena_printf(&list->arena, "%s%u", name, list->count);
  if (!has_strings(k) && !splits_sums(k->body)) /* both are refused: test_cuda_text.c */
    cuda_list_add(list, k, sizes, most, has_bits);
}
static void cuda_list_texts(struct cuda_list *list) {
  for (size_t i = 0; i < TEXT_COUNT; i++)
    cuda_list_parse(list, texts[i].text, "k", texts[i].sizes, 6, false);
}
/* With buffers of blocks, of tasks and of the call. */
static void cuda_list_scheduled(struct cuda_list *list) {
  for (size_t i = 0; i < SCHEDULED_COUNT; i++)
    cuda_list_parse(list, scheduled[i].text, "s", scheduled[i].sizes, 10, !scheduled[i].calls);
}

/* ---- every operation and dtype ---- */

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
static void cuda_list_operations(struct cuda_list *list) {
  static const int64_t once[][3] = {{0}};
  for (int op = SCALAR_LOAD + 1; op < SCALAR_OP_COUNT; op++)
    for (int t = 0; t < TESTED; t++)
      for (int to = 0; op_takes(op, tested[t]) && to < (op == SCALAR_CAST ? TESTED : 1); to++) {
        enum dtype own = op == SCALAR_CAST ? tested[to] : op == SCALAR_POPCOUNT ? DTYPE_UINT8 : tested[t];
        if (op != SCALAR_CAST || own != tested[t])
          cuda_list_add(list, op_kernel(&list->arena, op, tested[t], own, (int)list->count), once, 1, false);
      }
}

/* ---- runs ---- */

static bool is_cuda_result(const struct kernel_buffer *b) { return b->mode < BUFFER_SCRATCH; }

/* What is written beyond a result counts, too: as random_inputs left it. */
static void cuda_check_end(const struct cuda_run *run, uint32_t buffer, const void *ours) {
  const struct kernel_buffer *b = &run->k->buffers.items[buffer];
  const unsigned char *behind = (const unsigned char *)ours + (size_t)buffer_count(run->k, buffer, run->sizes) * dtype_size(b->dtype);
  for (int j = 0; j < 64; j++)
    if (behind[j] != 0xcd)
      fail_msg("%s: wrote behind buffer %s", run->k->name, b->name);
}
static void cuda_check(const struct cuda_run *run, cuda_runner *runner, void *context) {
  const struct kernel *k = run->k;
  struct evaluated expected;
  void *ours[RUNNER_BUFFERS] = {0};
  char what[200];
  evaluate(k, run->sizes, &expected);
  random_inputs(k, run->sizes, ours);
  int code = runner(context, k, ours, run->sizes);
  if (!are_expected(&expected, k, ours, code, run->sizes, run->has_bits ? 0 : 2e-5, run->has_bits ? 0 : 4e-5, what, sizeof what))
    fail_msg("sizes %d %d %d: %s", (int)run->sizes[0], (int)run->sizes[1], (int)run->sizes[2], what);
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    if (is_cuda_result(&k->buffers.items[i]))
      cuda_check_end(run, i, ours[i]);
    free(ours[i]);
  }
  evaluated_free(&expected);
}
/* All runs of a list. */
typedef void cuda_fill(struct cuda_list *list);
static void cuda_check_runs(const struct cuda_list *list, cuda_runner *runner, void *context) {
  assert_true(list->run_count > 0);
  for (uint32_t i = 0; i < list->run_count; i++)
    cuda_check(&list->runs[i], runner, context);
}

#endif
