/* CUDA C, compiled for the CPU under a shim, against the reference evaluator; and, where the toolkit is, as PTX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "tests/support/kernel_runner.h"

#include <cmocka.h>

#include "tests/targets/cuda_cases.h"

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
  void *args[12] = {0}, *own[12];
  uint32_t n = 0, own_count = 0;
  assert_true(k->buffers.count + k->size_count < 12);
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    const struct kernel_buffer *b = &k->buffers.items[i];
    if (buffer_is_given(b))
      args[n++] = is_cuda_result(b) ? buffers[i] : (own[own_count++] = aligned_block(16 * (size_t)buffer_count(k, i, sizes)));
  }
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
  while (own_count)
    free(own[--own_count]);
  return fault.code;
}

static void check(cuda_fill *fill) {
  static struct cuda_list list;
  cuda_list_begin(&list);
  fill(&list);
  struct target_unit unit = {.kernels = list.kernels, .count = list.count};
  struct target_options options = {0};
  char *source;
  assert_int_equal(target_find("cuda")->emit(&options, &unit, "cuda", &list.arena, &source), OK);
  void *handle = build(source);
  cuda_check_runs(&list, run_phases, handle);
  dlclose(handle);
  cuda_list_end(&list);
}
static void printed_kernels_agree_with_the_evaluator(void **state) {
  (void)state;
  check(cuda_list_texts);
}
static void scheduled_kernels_have_the_evaluators_bits(void **state) {
  (void)state;
  check(cuda_list_scheduled);
}
static void every_operation_agrees(void **state) {
  (void)state;
  check(cuda_list_operations);
}

static void must_be_refused(const char *text) {
  struct arena arena;
  arena_init(&arena);
  struct kernel *k;
  assert_int_equal(kernel_parse(text, &arena, &k), OK);
  struct target_unit unit = {.kernels = &k, .count = 1};
  struct target_options options = {0};
  char *source;
  assert_int_equal(target_find("cuda")->emit(&options, &unit, "cuda", &arena, &source), UNIMPLEMENTED);
  arena_deinit(&arena);
}
static void strings_and_sums_over_lanes_are_refused(void **state) {
  (void)state;
  must_be_refused("kernel s(in a: str[], out b: str[]) { b[] = a[] }");
  must_be_refused("kernel s(in a: f32[9], out b: f32[1]) { par i0 < 1 { var v0: f32 = 0:f32 red i1 < 9 vectors 4 { v0 = add(v0, a[i1]) } "
                  "b[i0] = v0 } }");
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
    cmocka_unit_test(scheduled_kernels_have_the_evaluators_bits),
    cmocka_unit_test(every_operation_agrees),
    cmocka_unit_test(strings_and_sums_over_lanes_are_refused),
    cmocka_unit_test(ptx_is_made_or_the_toolkit_is_missed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
