/* pool.c: one job at a time, announced by a counter that idle workers watch.
 *
 * `state` holds the number of the job, whether it may still be joined, and how many workers are in it. A worker that
 * wakes too late finds it closed and goes back to sleep, so the caller never waits for a thread that has not come.
 */
#include "runtime/step/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SPIN_ROUNDS 2000 /* about 20 microseconds: longer than the gap between kernels of a step */
#define THREADS_MAX 256
#define STATE_OPEN (UINT64_C(1) << 16)
#define STATE_JOB (UINT64_C(1) << 17)
#define STATE_ACTIVE (STATE_OPEN - 1)
#define CHUNKS_PER_THREAD 4 /* small enough for little idling at the end, large enough for few atomics */

struct pool {
  int worker_count;
  pthread_t workers[THREADS_MAX];
  atomic_bool busy; /* somebody's kernel has the workers */
  atomic_bool stopping;
  const struct kernel_code *code; /* the job; written while no worker is active */
  const struct kernel_call *call;
  int64_t phase, tiles, chunk;
  _Alignas(64) _Atomic uint64_t state;
  _Alignas(64) _Atomic int64_t next;  /* the first tile nobody has taken */
  _Alignas(64) _Atomic uint32_t bell; /* futex: counts jobs */
  _Atomic int sleepers;
};

void float_mode_set(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | (UINT64_C(1) << 24)));
#endif
}

static inline void spin_pause(void) {
#if defined(__x86_64__)
  _mm_pause();
#else
  __asm__ volatile("" ::: "memory");
#endif
}

static void take_tiles(struct pool *pool) {
  for (;;) {
    int64_t begin = atomic_fetch_add_explicit(&pool->next, pool->chunk, memory_order_relaxed);
    if (begin >= pool->tiles)
      return;
    int64_t end = begin + pool->chunk < pool->tiles ? begin + pool->chunk : pool->tiles;
    pool->code->run(pool->call, pool->phase, begin, end);
  }
}

/* Joins the job if it is open and not the one joined last. */
static bool worker_join(struct pool *pool, uint64_t *last) {
  uint64_t state = atomic_load_explicit(&pool->state, memory_order_acquire);
  while ((state & STATE_OPEN) && state / STATE_JOB != *last)
    if (atomic_compare_exchange_weak_explicit(&pool->state, &state, state + 1, memory_order_acq_rel, memory_order_acquire)) {
      *last = state / STATE_JOB;
      return true;
    }
  return false;
}

static void worker_sleep(struct pool *pool, uint32_t bell) {
  atomic_fetch_add(&pool->sleepers, 1);
  if (atomic_load(&pool->bell) == bell && !atomic_load(&pool->stopping))
    syscall(SYS_futex, &pool->bell, FUTEX_WAIT_PRIVATE, bell, NULL, NULL, 0);
  atomic_fetch_sub(&pool->sleepers, 1);
}

static void *worker_main(void *argument) {
  struct pool *pool = argument;
  float_mode_set();
  uint64_t last = 0;
  while (!atomic_load_explicit(&pool->stopping, memory_order_relaxed)) {
    uint32_t bell = atomic_load(&pool->bell);
    bool joined = false;
    for (int i = 0; i < SPIN_ROUNDS && !joined; i++) {
      joined = worker_join(pool, &last);
      spin_pause();
    }
    if (joined) {
      take_tiles(pool);
      atomic_fetch_sub_explicit(&pool->state, 1, memory_order_release);
    } else {
      worker_sleep(pool, bell);
    }
  }
  return NULL;
}

static void ring_bell(struct pool *pool) {
  atomic_fetch_add(&pool->bell, 1);
  if (atomic_load(&pool->sleepers) > 0)
    syscall(SYS_futex, &pool->bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int cores_available(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  int count = CPU_COUNT(&set);
  return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : count;
}

status pool_create(int threads, struct pool **out) {
  struct pool *pool = aligned_alloc(64, (sizeof(struct pool) + 63) / 64 * 64);
  if (!pool)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  *pool = (struct pool){.worker_count = 0};
  int wanted = (threads <= 0 ? cores_available() : threads > THREADS_MAX ? THREADS_MAX : threads) - 1;
  while (pool->worker_count < wanted && pthread_create(&pool->workers[pool->worker_count], NULL, worker_main, pool) == 0)
    pool->worker_count++;
  *out = pool;
  return OK;
}

void pool_destroy(struct pool *pool) {
  if (!pool)
    return;
  atomic_store(&pool->stopping, true);
  ring_bell(pool);
  for (int i = 0; i < pool->worker_count; i++)
    pthread_join(pool->workers[i], NULL);
  free(pool);
}

int pool_threads(const struct pool *pool) { return pool->worker_count + 1; }

static void run_alone(const struct kernel_code *code, const struct kernel_call *call, int64_t phases) {
  for (int64_t phase = 0; phase < phases; phase++)
    code->run(call, phase, 0, code->query(call->sizes, phase));
}

static void run_shared(struct pool *pool, const struct kernel_code *code, const struct kernel_call *call, int64_t phase, int64_t tiles) {
  pool->code = code;
  pool->call = call;
  pool->phase = phase;
  pool->tiles = tiles;
  int64_t chunk = tiles / ((int64_t)pool_threads(pool) * CHUNKS_PER_THREAD);
  pool->chunk = chunk < 1 ? 1 : chunk;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  uint64_t job = (atomic_load_explicit(&pool->state, memory_order_relaxed) / STATE_JOB + 1) * STATE_JOB;
  atomic_store_explicit(&pool->state, job | STATE_OPEN, memory_order_release);
  ring_bell(pool);
  take_tiles(pool);
  atomic_fetch_and_explicit(&pool->state, ~STATE_OPEN, memory_order_acq_rel);
  for (int round = 0; atomic_load_explicit(&pool->state, memory_order_acquire) & STATE_ACTIVE; round++)
    if (round < SPIN_ROUNDS)
      spin_pause();
    else
      sched_yield(); /* fewer cores than threads: let the worker finish */
}

void pool_run(struct pool *pool, const struct kernel_code *code, const struct kernel_call *call, int64_t phases) {
  if (pool->worker_count == 0 || atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
    run_alone(code, call, phases);
    return;
  }
  for (int64_t phase = 0; phase < phases; phase++) {
    int64_t tiles = code->query(call->sizes, phase);
    if (tiles > 1)
      run_shared(pool, code, call, phase, tiles);
    else
      code->run(call, phase, 0, tiles);
  }
  atomic_store_explicit(&pool->busy, false, memory_order_release);
}
