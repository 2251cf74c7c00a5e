/* The kernels of test_cuda_text.c on a CUDA device, where there is one: what their threads share, and the device's own functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "targets/cuda/cuda.h"
#include "tests/support/cuda_device.h"
#include "tests/support/kernel_runner.h"

#include <cmocka.h>

#include "tests/targets/cuda_cases.h"

static struct cuda_device device;
static const char *missing;

static size_t bytes_of(const struct kernel *k, uint32_t buffer, const int64_t *sizes) {
  return (size_t)buffer_count(k, buffer, sizes) * dtype_size(k->buffers.items[buffer].dtype);
}

/* Phase by phase, as many threads for each. */
static int run_phases(void *module, const struct kernel *k, void *const *buffers, const int64_t *sizes) {
  struct fault fault = {0};
  uint64_t memory[RUNNER_BUFFERS + 1] = {0}, shown;
  void *args[RUNNER_BUFFERS + 4];
  int64_t values[3];
  uint32_t n = 0, count = k->buffers.count;
  assert_true(k->size_count <= 3);
  for (uint32_t i = 0; i < count; i++)
    if (buffer_is_given(&k->buffers.items[i])) {
      memory[i] = device_block(&device, bytes_of(k, i, sizes));
      if (is_cuda_result(&k->buffers.items[i]))
        device_must(device.to_device(memory[i], buffers[i], bytes_of(k, i, sizes) + 64), "to the device");
      args[n++] = &memory[i];
    }
  for (uint32_t i = 0; i < k->size_count; i++) {
    values[i] = sizes[i];
    args[n++] = &values[i];
  }
  shown = device_block(&device, sizeof fault);
  device_must(device.to_device(shown, &fault, sizeof fault), "to the device");
  args[n] = &shown;
  for (int phase = 0; !fault.code; phase++) {
    char name[128];
    void *function;
    snprintf(name, sizeof name, "%s_%d", k->name, phase);
    if (device.find(&function, module, name) != 0)
      break;
    device_must(device.launch(function, DEVICE_BLOCKS, 1, 1, DEVICE_THREADS, 1, 1, 0, NULL, args, NULL), name);
    device_must(device.synchronize(), name);
    device_must(device.from_device(&fault, shown, sizeof fault), name);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (memory[i] && is_cuda_result(&k->buffers.items[i]))
      device_must(device.from_device(buffers[i], memory[i], bytes_of(k, i, sizes) + 64), "from the device");
    device.release(memory[i]);
  }
  device.release(shown);
  return fault.code;
}

static char *cuda_source(struct cuda_list *list) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  fputs("#define extern_c extern \"C\"\n", out);
  cuda_print_prelude(out);
  for (uint32_t i = 0; i < list->count; i++)
    assert_int_equal(cuda_print_kernel(list->kernels[i], out), OK);
  fclose(out);
  return text;
}
static void check(cuda_fill *fill) {
  static struct cuda_list list;
  char *source, *ptx;
  void *module;
  if (missing)
    skip();
  cuda_list_begin(&list);
  fill(&list);
  source = cuda_source(&list);
  if (nvrtc_compile(source, device.gpu, &list.arena, &ptx) != OK)
    fail_msg("%s", status_text());
  device_must(device.load(&module, ptx), "the module");
  cuda_check_runs(&list, run_phases, module);
  device.unload(module);
  free(source);
  cuda_list_end(&list);
}
static void printed_kernels_agree_on_a_device(void **state) {
  (void)state;
  check(cuda_list_texts);
}
static void scheduled_kernels_have_their_bits_on_a_device(void **state) {
  (void)state;
  check(cuda_list_scheduled);
}
static void every_operation_agrees_on_a_device(void **state) {
  (void)state;
  check(cuda_list_operations);
}

int main(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  missing = cuda_device_open(&device);
  if (missing)
    printf("skipped: %s\n", missing);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(printed_kernels_agree_on_a_device),
    cmocka_unit_test(scheduled_kernels_have_their_bits_on_a_device),
    cmocka_unit_test(every_operation_agrees_on_a_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
