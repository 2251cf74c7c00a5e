/* kernel_timer.c: kernels compiled for this machine and timed, beside the peak of its cores. */
#include "bench/kernel_timer.h"

#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pages.h"
#include "compiler/schedule/kernel_library.h"

static double clock_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
double seconds_now(void) { return clock_seconds(CLOCK_MONOTONIC); }
static double own_seconds(void) { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

#define ROUNDS 12 /* of each code */

/* ---- the peak ---- */

#define PEAK_ROUNDS 400000
#define ACCUMULATORS 12

/* Floating-point operations of independent sums in registers of `bits`. */
#define FLOPS(bits, isa)                                                                                             \
  __attribute__((target(isa))) static double flops_##bits(void) {                                                    \
    __m##bits sums[ACCUMULATORS], x = _mm##bits##_set1_ps(0.5f);                                                     \
    for (int i = 0; i < ACCUMULATORS; i++)                                                                           \
      sums[i] = _mm##bits##_set1_ps((float)i);                                                                       \
    for (int round = 0; round < PEAK_ROUNDS; round++) {                                                              \
      _Pragma("GCC unroll 12") for (int i = 0; i < ACCUMULATORS; i++) sums[i] = _mm##bits##_fmadd_ps(sums[i], x, x); \
      __asm__ volatile("" : : "v"(sums[0]));                                                                         \
    }                                                                                                                \
    volatile float sink = 0;                                                                                         \
    for (int i = 0; i < ACCUMULATORS; i++)                                                                           \
      sink = sink + _mm##bits##_cvtss_f32(sums[i]);                                                                  \
    return 2.0 * (bits) / 32 * ACCUMULATORS * PEAK_ROUNDS;                                                           \
  }
FLOPS(512, "avx512f")
FLOPS(256, "avx2,fma")

double measure_peak(void) {
  double best = 0;
  for (int i = 0; i < 20; i++) {
    double start = own_seconds(), flops = __builtin_cpu_supports("avx512f") ? flops_512() : flops_256();
    double rate = flops / (own_seconds() - start);
    best = rate > best ? rate : best;
  }
  return best * 1e-9;
}

/* ---- compiling ---- */

const struct kernel_code *compile_kernels(struct kernel *const *kernels, uint32_t count) {
  struct kernel_library library;
  if (kernel_library_open(kernels, count, "native", &library) != OK)
    fprintf(stderr, "%s\n", status_text());
  return library.code;
}

/* ---- timing ---- */

int64_t buffer_elements(const struct kernel *k, uint32_t buffer, const int64_t *sizes) {
  const struct kernel_buffer *b = &k->buffers.items[buffer];
  int64_t count = 1;
  for (int d = 0; d < b->rank; d++)
    count *= DIM_IS_SIZE(b->dims[d]) ? sizes[SIZE_OF_DIM(b->dims[d])] : b->dims[d];
  return count;
}
static float *random_floats(int64_t bytes) {
  int64_t count = bytes / 4 + 32;
  float *data = pages_create((size_t)count * 4); /* as the runtime allocates */
  for (int64_t i = 0; data && i < count; i++)
    data[i] = (float)(rand() % 2001 - 1000) * 1e-3f;
  return data;
}

/* One call, its tiles taken by threads from each other. */
struct run {
  const struct kernel_code *code;
  struct kernel_call call;
  const int64_t *sizes;
  int threads;
  pthread_barrier_t barrier;
  atomic_llong next[64]; /* by phase: the first tile that nobody has taken */
  bool ends;
};
static void run_tiles(struct run *r) {
  _mm_setcsr(_mm_getcsr() | 0x8040); /* denormals are zero, as in the runtime's threads */
  int64_t phases = r->code->query(r->sizes, KERNEL_PHASES);
  for (int64_t phase = 0; phase < phases; phase++) {
    int64_t tiles = r->code->query(r->sizes, phase);
    if (r->threads == 1) {
      r->code->run(&r->call, phase, 0, tiles);
      continue;
    }
    for (int64_t at; (at = atomic_fetch_add(&r->next[phase], 1)) < tiles;)
      r->code->run(&r->call, phase, at, at + 1);
    pthread_barrier_wait(&r->barrier);
  }
}
static void *run_beside(void *argument) {
  struct run *r = argument;
  for (;;) {
    pthread_barrier_wait(&r->barrier);
    if (r->ends)
      return NULL;
    run_tiles(r);
  }
}
static double timed_run(struct run *r) {
  for (int i = 0; i < 64; i++)
    r->next[i] = 0;
  double start = seconds_now(), own = own_seconds();
  if (r->threads > 1)
    pthread_barrier_wait(&r->barrier);
  run_tiles(r);
  double taken = seconds_now() - start;
  own = own_seconds() - own; /* what others do on this core in the meantime is not counted; a short call is shorter than the question */
  return r->threads == 1 && own > 0 && own < taken ? own : taken;
}

/* What the code needs is brought into the caches first. */
static double timed_round(struct run *r, double budget) {
  timed_run(r);
  double best = 1e9, begin = seconds_now();
  do {
    double taken = timed_run(r);
    best = taken < best ? taken : best;
  } while (seconds_now() - begin < budget);
  return best;
}
static void time_codes(struct run *r, const struct kernel_code *codes, uint32_t count, double budget, double *seconds) {
  for (int round = 0; round < ROUNDS; round++)
    for (uint32_t i = 0; i < count; i++) {
      r->code = &codes[i];
      double taken = timed_round(r, budget / ROUNDS);
      seconds[i] = round == 0 || taken < seconds[i] ? taken : seconds[i];
    }
}
static int64_t most_scratch(const struct kernel_code *codes, uint32_t count, const int64_t *sizes) {
  int64_t most = 0;
  for (uint32_t i = 0; i < count; i++)
    most = codes[i].query(sizes, KERNEL_SCRATCH) > most ? codes[i].query(sizes, KERNEL_SCRATCH) : most;
  return most;
}

void best_seconds(const struct kernel *k, const struct kernel_code *codes, uint32_t count, const int64_t *sizes, int threads, double budget,
                  double *seconds) {
  void *buffers[KERNEL_BUFFERS] = {0};
  for (uint32_t i = 0; i < k->buffers.count && i < KERNEL_BUFFERS; i++)
    if (k->buffers.items[i].mode < BUFFER_SCRATCH)
      buffers[i] = random_floats(buffer_elements(k, i, sizes) * (int64_t)dtype_size(k->buffers.items[i].dtype));
  struct kernel_fault fault = {0};
  struct run r = {NULL, {buffers, sizes, random_floats(most_scratch(codes, count, sizes)), &fault}, sizes, threads, .ends = false};
  pthread_t others[THREADS_MAX];
  pthread_barrier_init(&r.barrier, NULL, (unsigned)threads);
  for (int i = 1; i < threads; i++)
    pthread_create(&others[i], NULL, run_beside, &r);
  time_codes(&r, codes, count, budget, seconds);
  r.ends = true;
  if (threads > 1)
    pthread_barrier_wait(&r.barrier);
  for (int i = 1; i < threads; i++)
    pthread_join(others[i], NULL);
  pthread_barrier_destroy(&r.barrier);
  for (uint32_t i = 0; i < KERNEL_BUFFERS; i++)
    free(buffers[i]);
  free(r.call.scratch);
}
