/* kernel_runner.h: for tests: kernels compiled into a shared object and run beside the reference evaluator. */
#ifndef TFC_TESTS_KERNEL_RUNNER_H
#define TFC_TESTS_KERNEL_RUNNER_H

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/schedule/choose.h"
#include "ir/kernel/kernel.h"
#include "runtime/program/program.h"
#include "targets/target.h"
#include "tests/support/temp_path.h"

struct compiled {
  void *handle;
  const struct kernel_code *code;
};

/* As the build has it: what steps left plain becomes vectors where that is worth it. */
static inline struct kernel *marked_kernel(const struct kernel *k, const struct target_options *options, struct arena *arena) {
  const struct machine *machine = machine_find(options->cpu);
  struct machine strict = machine_strict(machine);
  return vectors_choose(k, options->math == MATH_STRICT ? &strict : machine, arena);
}
/* Exits with a word on stderr where it cannot: nothing can be tested then. */
static inline struct compiled compile_kernels_with(struct kernel *const *kernels, uint32_t count, const struct target_options *options) {
  char folder[TEMP_PATH_SIZE], object[80], library[80], command[300];
  struct compiled out = {0};
  struct arena arena;
  arena_init(&arena);
  struct kernel **marked = ARENA_ARRAY(&arena, struct kernel *, count + 1);
  for (uint32_t i = 0; i < count; i++)
    marked[i] = marked_kernel(kernels[i], options, &arena);
  struct target_unit unit = {.kernels = marked, .count = count};
  if (!temp_folder(folder))
    exit(2);
  snprintf(object, sizeof object, "%s/k.o", folder);
  snprintf(library, sizeof library, "%s/k.so", folder);
  snprintf(command, sizeof command, "cc -shared -o %s -Wl,--whole-archive %s -Wl,--no-whole-archive -lm", library, object);
  if (target_find("cpu")->compile(options, &unit, object) != OK) {
    fprintf(stderr, "cannot compile: %s\n", status_text());
    exit(2);
  }
  for (uint32_t i = 0; i < count; i++)
    kernel_free(marked[i]);
  arena_deinit(&arena);
  if (system(command) != 0 || !(out.handle = dlopen(library, RTLD_NOW))) {
    fprintf(stderr, "cannot link: %s\n", dlerror());
    exit(2);
  }
  out.code = dlsym(out.handle, "tfc_kernels");
  unlink(object);
  unlink(library);
  rmdir(folder);
  return out;
}
static inline struct compiled compile_kernels(struct kernel *const *kernels, uint32_t count, const char *cpu) {
  const struct target_options options = {.cpu = cpu};
  return compile_kernels_with(kernels, count, &options);
}

static inline int64_t buffer_count(const struct kernel *k, uint32_t buffer, const int64_t *sizes) {
  const struct kernel_buffer *b = &k->buffers.items[buffer];
  int64_t n = 1;
  for (int d = 0; d < b->rank; d++)
    n *= DIM_IS_SIZE(b->dims[d]) ? sizes[SIZE_OF_DIM(b->dims[d])] : b->dims[d];
  return n;
}

static inline void *aligned_block(size_t size) {
  void *p = aligned_alloc(64, (size + 127) / 64 * 64);
  memset(p, 0xcd, (size + 127) / 64 * 64);
  return p;
}

/* Tile by tile, phase by phase, last tile first: they must not depend on their order. */
static inline struct kernel_fault run_compiled(const struct kernel_code *code, void *const *buffers, const int64_t *sizes) {
  struct kernel_fault fault = {0};
  size_t bytes = (size_t)code->query(sizes, KERNEL_SCRATCH);
  struct kernel_call call = {buffers, sizes, aligned_block(bytes), &fault};
  int64_t phases = code->query(sizes, KERNEL_PHASES);
  for (int64_t phase = 0; phase < phases; phase++)
    for (int64_t tile = code->query(sizes, phase); tile-- > 0 && !fault.code;)
      code->run(&call, phase, tile, tile + 1);
  free(call.scratch);
  return fault;
}

struct sequence {
  uint64_t state;
};
static inline uint64_t next_random(struct sequence *s) {
  s->state = s->state * 6364136223846793005u + 1442695040888963407u;
  return s->state >> 33;
}
static inline void fill_random(enum dtype dtype, void *data, int64_t count, struct sequence *s) {
  for (int64_t i = 0; i < count * (dtype_is_complex(dtype) ? 2 : 1); i++) {
    double v = (double)(next_random(s) % 20001) / 10000 - 1;
    int64_t n = (int64_t)(next_random(s) % 21) - 10;
    switch (dtype_real(dtype)) {
    case DTYPE_FLOAT: ((float *)data)[i] = (float)v; break;
    case DTYPE_DOUBLE: ((double *)data)[i] = v; break;
    case DTYPE_HALF: ((uint16_t *)data)[i] = float_to_half((float)v); break;
    case DTYPE_BFLOAT16: ((uint16_t *)data)[i] = float_to_bfloat16((float)v); break;
    case DTYPE_BOOL: ((uint8_t *)data)[i] = n & 1; break;
    case DTYPE_STRING: {
      static const char *const words[] = {"", "a", "ab", "abc", "abd", "b"};
      const char *text = words[next_random(s) % 6];
      ((struct string_view *)data)[i] = (struct string_view){text, strlen(text)};
      break;
    }
    default:
      switch (dtype_size(dtype)) {
      case 1: ((uint8_t *)data)[i] = (uint8_t)n; break;
      case 2: ((uint16_t *)data)[i] = (uint16_t)n; break;
      case 4: ((uint32_t *)data)[i] = (uint32_t)n; break;
      default: ((uint64_t *)data)[i] = (uint64_t)n; break;
      }
    }
  }
}

static inline double element_value(enum dtype dtype, const void *data, int64_t i) {
  switch (dtype_real(dtype)) {
  case DTYPE_FLOAT: return (double)((const float *)data)[i];
  case DTYPE_DOUBLE: return ((const double *)data)[i];
  case DTYPE_HALF: return (double)half_to_float(((const uint16_t *)data)[i]);
  default: return (double)bfloat16_to_float(((const uint16_t *)data)[i]);
  }
}
/* Strings are equal when their bytes are, wherever those lie. */
static inline bool element_equal(enum dtype dtype, const void *a, const void *b, int64_t i) {
  size_t size = dtype_size(dtype);
  if (dtype != DTYPE_STRING)
    return memcmp((const char *)a + size * i, (const char *)b + size * i, size) == 0;
  const struct string_view *x = (const struct string_view *)a + i, *y = (const struct string_view *)b + i;
  return x->size == y->size && (!x->size || memcmp(x->data, y->data, x->size) == 0);
}

/* The first element that differs: floats by more than rtol and atol, NaN being like NaN, the rest in any bit; -1: none. */
static inline int64_t first_difference(enum dtype dtype, const void *a, const void *b, int64_t count, double rtol, double atol) {
  if (!dtype_is_float(dtype_real(dtype))) {
    for (int64_t i = 0; i < count; i++)
      if (!element_equal(dtype, a, b, i))
        return i;
    return -1;
  }
  for (int64_t i = 0; i < count * (dtype_is_complex(dtype) ? 2 : 1); i++) {
    double x = element_value(dtype, a, i), y = element_value(dtype, b, i);
    bool same = isnan(x) || isnan(y) ? isnan(x) && isnan(y) : isinf(x) || isinf(y) ? x == y : fabs(x - y) <= atol + rtol * fabs(y);
    if (!same)
      return i;
  }
  return -1;
}

#define RUNNER_BUFFERS 16
/* The evaluator's, of random inputs that hang on the sizes alone: what any code is held against. */
struct evaluated {
  void *buffers[RUNNER_BUFFERS];
  status code;
  bool is_there;
};

static inline void random_inputs(const struct kernel *k, const int64_t *sizes, void **buffers) {
  struct sequence s = {(uint64_t)(sizes ? sizes[0] : 0) + 7};
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    const struct kernel_buffer *b = &k->buffers.items[i];
    if (b->mode == BUFFER_SCRATCH)
      continue;
    buffers[i] = aligned_block((size_t)buffer_count(k, i, sizes) * dtype_size(b->dtype));
    fill_random(b->dtype, buffers[i], buffer_count(k, i, sizes), &s);
  }
}
static inline void evaluate(const struct kernel *k, const int64_t *sizes, struct evaluated *out) {
  *out = (struct evaluated){.is_there = true};
  random_inputs(k, sizes, out->buffers);
  out->code = kernel_eval(k, out->buffers, sizes);
}
static inline void evaluated_free(struct evaluated *e) {
  for (uint32_t i = 0; i < RUNNER_BUFFERS; i++)
    free(e->buffers[i]);
  *e = (struct evaluated){0};
}

/* Whether what was made of the same inputs, with that status, is what is expected; else there is a word in `what`. */
static inline bool are_expected(const struct evaluated *expected, const struct kernel *k, void *const *ours, int code, const int64_t *sizes,
                                double rtol, double atol, char *what, size_t what_size) {
  void *const *theirs = expected->buffers;
  bool good = (int)expected->code == code;
  snprintf(what, what_size, "%s: evaluator %s, compiled %s", k->name, status_name(expected->code), status_name((status)code));
  for (uint32_t i = 0; i < k->buffers.count && good && expected->code == OK; i++) {
    const struct kernel_buffer *b = &k->buffers.items[i];
    int64_t at = b->mode >= BUFFER_SCRATCH ? -1 : first_difference(b->dtype, ours[i], theirs[i], buffer_count(k, i, sizes), rtol, atol);
    if (at >= 0) {
      good = false;
      bool is_float = dtype_is_float(dtype_real(b->dtype));
      snprintf(what, what_size, "%s: buffer %u element %lld: %g, expected %g", k->name, i, (long long)at,
               is_float ? element_value(b->dtype, ours[i], at) : 0, is_float ? element_value(b->dtype, theirs[i], at) : 0);
    }
  }
  return good;
}

/* Runs the code on the same inputs. Returns false, with a word in `what`, where it differs. */
static inline bool agrees_with(const struct evaluated *expected, const struct kernel *k, const struct kernel_code *code,
                               const int64_t *sizes, double rtol, double atol, char *what, size_t what_size) {
  void *ours[RUNNER_BUFFERS] = {0};
  random_inputs(k, sizes, ours);
  struct kernel_fault fault = run_compiled(code, ours, sizes);
  bool good = are_expected(expected, k, ours, fault.code, sizes, rtol, atol, what, what_size);
  for (uint32_t i = 0; i < k->buffers.count; i++)
    free(ours[i]);
  return good;
}

/* Both, for one code. */
static inline bool agree(const struct kernel *k, const struct kernel_code *code, const int64_t *sizes, double rtol, double atol, char *what,
                         size_t what_size) {
  struct evaluated expected;
  evaluate(k, sizes, &expected);
  bool good = agrees_with(&expected, k, code, sizes, rtol, atol, what, what_size);
  evaluated_free(&expected);
  return good;
}

#endif
