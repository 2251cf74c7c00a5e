/* measure.c: forms of a kernel timed on the machine at hand; see measure.h. */
#include "compiler/schedule/measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compiler/schedule/kernel_library.h"

#define ROUNDS_LEAST 2
#define TURN_SECONDS 0.001 /* of one form in a round */
#define ARGUMENTS_MAX 64

static double own_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- arguments ---- */

static int64_t bytes_of(const struct kernel_buffer *b) {
  int64_t count = 1;
  for (int d = 0; d < b->rank; d++)
    count *= b->dims[d];
  return count * (int64_t)dtype_size(b->dtype);
}
/* Aligned, with room behind it for a vector that is read too far. */
static void *bytes_make(int64_t bytes) {
  size_t size = ((size_t)bytes + 127) / 64 * 64;
  void *data = aligned_alloc(64, size);
  if (data)
    memset(data, 0, size);
  return data;
}
static void fill_floats(float *data, int64_t count) {
  uint32_t random = 1;
  for (int64_t i = 0; i < count; i++) {
    random = random * 1664525u + 1013904223u;
    data[i] = (float)(random >> 8) * 0x1p-23f - 1;
  }
}

struct arguments {
  void *buffers[ARGUMENTS_MAX];
  void *scratch;
};
static void arguments_free(struct arguments *a) {
  for (int i = 0; i < ARGUMENTS_MAX; i++)
    free(a->buffers[i]);
  free(a->scratch);
}
static status arguments_make(const struct kernel *k, const struct kernel_code *code, uint32_t count, struct arguments *out) {
  int64_t scratch = 64;
  for (uint32_t i = 0; i < count; i++) {
    int64_t bytes = code[i].query(NULL, KERNEL_SCRATCH);
    scratch = bytes > scratch ? bytes : scratch;
  }
  bool made = (out->scratch = bytes_make(scratch)) != NULL;
  for (uint32_t i = 0; i < k->buffers.count && made; i++) {
    const struct kernel_buffer *b = &k->buffers.items[i];
    if (b->mode >= BUFFER_SCRATCH)
      continue;
    made = (out->buffers[i] = bytes_make(bytes_of(b))) != NULL;
    if (made && b->dtype == DTYPE_FLOAT)
      fill_floats(out->buffers[i], bytes_of(b) / 4);
  }
  return made ? OK : fail(RESOURCE_EXHAUSTED, "no memory for timing kernel %s", k->name);
}
static status check_arguments(const struct kernel *k) {
  bool is_known = k->size_count == 0 && k->buffers.count <= ARGUMENTS_MAX;
  for (uint32_t i = 0; i < k->buffers.count; i++)
    is_known = is_known && k->buffers.items[i].dtype != DTYPE_STRING;
  return is_known ? OK : fail(UNIMPLEMENTED, "timing kernel %s, some of whose sizes the feeds decide", k->name);
}

/* ---- time ---- */

static void run_once(const struct kernel_code *code, struct kernel_call *call) {
  int64_t phases = code->query(NULL, KERNEL_PHASES);
  for (int64_t phase = 0; phase < phases; phase++)
    code->run(call, phase, 0, code->query(NULL, phase));
}
static void time_turn(const struct kernel_code *code, struct arguments *a, double *best) {
  struct kernel_fault fault = {0};
  struct kernel_call call = {a->buffers, NULL, a->scratch, &fault};
  double begin = own_seconds();
  run_once(code, &call); /* with what it needs in the caches */
  do {
    double start = own_seconds();
    run_once(code, &call);
    double taken = own_seconds() - start;
    *best = *best == 0 || taken < *best ? taken : *best;
  } while (own_seconds() - begin < TURN_SECONDS);
}

status measure_forms(struct kernel *const *forms, uint32_t count, const char *cpu, double budget, double *seconds) {
  struct arguments arguments = {0};
  struct kernel_library library;
  TRY(check_arguments(forms[0]));
  TRY(kernel_library_open(forms, count, cpu, &library));
  status result = arguments_make(forms[0], library.code, count, &arguments);
  memset(seconds, 0, count * sizeof *seconds);
  double begin = own_seconds();
  for (int round = 0; result == OK && (round < ROUNDS_LEAST || own_seconds() - begin < budget); round++)
    for (uint32_t i = 0; i < count; i++)
      time_turn(&library.code[i], &arguments, &seconds[i]);
  arguments_free(&arguments);
  kernel_library_close(&library);
  return result;
}
