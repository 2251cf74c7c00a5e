/* pool.c: a few jobs at a time, announced by a word of bits that idle workers watch.
 *
 * A job is one phase of a kernel, or of several that run side by side. Its `state` holds the job's number, whether it may still be joined,
 * and how many workers are in it. A worker that wakes too late finds it closed and goes back to sleep, so the caller
 * never waits for a thread that has not come.
 */
#include "runtime/step/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "runtime/step/shared_line.h"
#include "runtime/step/trace.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SPIN_NS 120000 /* longer than most gaps between kernels of a step */
#define SPIN_LEAST_NS 2000
#define SPIN_PAUSES 32     /* between looks at the clock */
#define CALLER_ROUNDS 2000 /* tens of microseconds */
#define THREADS_MAX 256
#define STATE_OPEN (UINT64_C(1) << 16)
#define STATE_JOB (UINT64_C(1) << 17)
#define STATE_ACTIVE (STATE_OPEN - 1)
#define RANGES_MAX 16 /* of a piece; more threads share them */
#define JOBS_MAX 8    /* kernels of other steps beyond that run on their callers alone */

/* The tiles of one kernel's phase, in equal ranges. A thread begins with its own, which is the same part of every kernel, so that what it
 * made lies in its caches, and then takes of the others'. It takes half of what a range has left: long runs first, single tiles in the
 * end, when others wait. */
struct piece {
  _Alignas(64) _Atomic int64_t next[RANGES_MAX]; /* per range: the first tile nobody has taken */
  const struct kernel_code *code;
  const struct kernel_call *call;
  int64_t tiles;
  uint32_t ranges, share; /* share: threads of a range */
};
struct job {
  _Alignas(64) _Atomic uint64_t state;
  atomic_bool is_taken; /* by a caller; the rest is written while no worker is active */
  int64_t phase;
  uint32_t piece_count;
  struct piece pieces[PROGRAM_GROUP_MAX];
};

struct pool;
struct worker {
  struct pool *pool;
  uint32_t thread; /* from 1 */
  pthread_t id;
};
struct pool {
  int worker_count;
  struct worker workers[THREADS_MAX];
  atomic_bool stopping;
  _Alignas(64) _Atomic uint32_t open; /* bit i: jobs[i] may be joined */
  _Alignas(64) _Atomic uint32_t bell; /* futex: counts jobs */
  _Atomic int sleepers;
  struct job jobs[JOBS_MAX];
  pthread_mutex_t measuring;
  int64_t shared_line_ns; /* under measuring */
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

static int64_t range_begin(const struct piece *piece, uint32_t range) { return piece->tiles * range / piece->ranges; }

static void take_range(struct piece *piece, uint32_t range, int64_t phase) {
  int64_t last = range_begin(piece, range + 1), left;
  while ((left = last - atomic_load_explicit(&piece->next[range], memory_order_relaxed)) > 0) {
    int64_t chunk = left / (2 * piece->share) + 1; /* of an older state, maybe */
    int64_t begin = atomic_fetch_add_explicit(&piece->next[range], chunk, memory_order_relaxed);
    if (begin < last)
      piece->code->run(piece->call, phase, begin, begin + chunk < last ? begin + chunk : last);
  }
}
/* thread: 0 is the caller, workers count from 1. */
static void take_tiles(struct job *job, uint32_t thread) {
  for (uint32_t i = 0; i < job->piece_count; i++) {
    struct piece *piece = &job->pieces[i];
    for (uint32_t k = 0; k < piece->ranges; k++)
      take_range(piece, (thread / piece->share + k) % piece->ranges, job->phase);
  }
}

/* Joins the job if it is open and not the one joined last. */
static bool job_join(struct job *job, uint64_t *last) {
  uint64_t state = atomic_load_explicit(&job->state, memory_order_acquire);
  while ((state & STATE_OPEN) && state / STATE_JOB != *last)
    if (atomic_compare_exchange_weak_explicit(&job->state, &state, state + 1, memory_order_acq_rel, memory_order_acquire)) {
      *last = state / STATE_JOB;
      return true;
    }
  return false;
}

/* An open job that this worker has not been in; NULL: there is none. last: per job, its number when it was joined last. */
static struct job *worker_join(struct pool *pool, uint64_t *last) {
  uint32_t open = atomic_load_explicit(&pool->open, memory_order_relaxed);
  for (uint32_t i = 0; open; i++, open >>= 1)
    if ((open & 1) && job_join(&pool->jobs[i], &last[i]))
      return &pool->jobs[i];
  return NULL;
}

static void worker_sleep(struct pool *pool, uint32_t bell) {
  atomic_fetch_add(&pool->sleepers, 1);
  if (atomic_load(&pool->bell) == bell && !atomic_load(&pool->stopping))
    syscall(SYS_futex, &pool->bell, FUTEX_WAIT_PRIVATE, bell, NULL, NULL, 0);
  atomic_fetch_sub(&pool->sleepers, 1);
}

/* A job that comes before the clock is at `end`; NULL: none did. */
static struct job *worker_spin(struct pool *pool, uint64_t *last, uint64_t end) {
  do
    for (int i = 0; i < SPIN_PAUSES; i++) {
      struct job *job = worker_join(pool, last);
      if (job)
        return job;
      spin_pause();
    }
  while (trace_now() < end);
  return NULL;
}
/* How long a worker spins next when no job came; when one comes in SPIN_NS, it is so long again. Where jobs are far apart, or others
 * have the cores, spinning takes time from who could use it. */
static uint64_t less_spin(uint64_t spin) { return spin / 2 < SPIN_LEAST_NS ? SPIN_LEAST_NS : spin / 2; }

static void *worker_main(void *argument) {
  const struct worker *worker = argument;
  struct pool *pool = worker->pool;
  float_mode_set();
  uint64_t last[JOBS_MAX] = {0}, spin = SPIN_NS, idle = trace_now();
  while (!atomic_load_explicit(&pool->stopping, memory_order_relaxed)) {
    uint32_t bell = atomic_load(&pool->bell);
    struct job *job = worker_spin(pool, last, trace_now() + spin);
    if (!job) {
      spin = less_spin(spin);
      worker_sleep(pool, bell);
      continue;
    }
    if (trace_now() - idle < SPIN_NS)
      spin = SPIN_NS;
    take_tiles(job, worker->thread);
    atomic_fetch_sub_explicit(&job->state, 1, memory_order_release);
    idle = trace_now();
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

/* The core that is `steps` behind the caller's among those it may use. */
static cpu_set_t core_behind(const cpu_set_t *usable, int steps) {
  int core = sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  if (core < 0 || CPU_COUNT(usable) == 0)
    return one;
  for (steps %= CPU_COUNT(usable); steps > 0; steps -= CPU_ISSET(core, usable) != 0)
    core = (core + 1) % CPU_SETSIZE;
  CPU_SET(core, &one);
  return one;
}
/* A thread that comes to be where another one runs may stay there for long: on a machine that is all but idle the system moves a thread
 * away only when it wakes, and workers of a busy step never sleep. So each begins on a core of its own and may then go where it likes. */
static bool worker_start(struct worker *worker) {
  cpu_set_t usable, core;
  pthread_attr_t attributes;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0 && pthread_attr_init(&attributes) == 0) {
    core = core_behind(&usable, (int)worker->thread);
    bool made = pthread_attr_setaffinity_np(&attributes, sizeof core, &core) == 0 &&
                pthread_create(&worker->id, &attributes, worker_main, worker) == 0;
    pthread_attr_destroy(&attributes);
    if (made) {
      pthread_setaffinity_np(worker->id, sizeof usable, &usable);
      return true;
    }
  }
  return pthread_create(&worker->id, NULL, worker_main, worker) == 0;
}

status pool_create(int threads, struct pool **out) {
  struct pool *pool = aligned_alloc(64, (sizeof(struct pool) + 63) / 64 * 64);
  if (!pool)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  memset(pool, 0, sizeof *pool);
  pthread_mutex_init(&pool->measuring, NULL);
  pool->shared_line_ns = SHARED_LINE_UNKNOWN;
  int wanted = (threads <= 0 ? cores_available() : threads > THREADS_MAX ? THREADS_MAX : threads) - 1;
  for (bool made = true; made && pool->worker_count < wanted; pool->worker_count += made) {
    struct worker *worker = &pool->workers[pool->worker_count];
    worker->pool = pool;
    worker->thread = (uint32_t)pool->worker_count + 1;
    made = worker_start(worker);
  }
  *out = pool;
  return OK;
}

void pool_destroy(struct pool *pool) {
  if (!pool)
    return;
  atomic_store(&pool->stopping, true);
  ring_bell(pool);
  for (int i = 0; i < pool->worker_count; i++)
    pthread_join(pool->workers[i].id, NULL);
  pthread_mutex_destroy(&pool->measuring);
  free(pool);
}

int pool_threads(const struct pool *pool) { return pool->worker_count + 1; }

bool pool_shared_line(struct pool *pool, int64_t *ns) {
  pthread_mutex_lock(&pool->measuring);
  if (pool->shared_line_ns == SHARED_LINE_UNKNOWN)
    pool->shared_line_ns = shared_line_measure(pool);
  bool is_known = pool->shared_line_ns != SHARED_LINE_UNKNOWN;
  *ns = is_known ? pool->shared_line_ns : SHARED_LINE_USUAL_NS;
  pthread_mutex_unlock(&pool->measuring);
  return is_known;
}

static void run_alone(const struct pool_kernel *kernels, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    for (int64_t phase = 0; phase < kernels[i].phases; phase++)
      kernels[i].code->run(&kernels[i].call, phase, 0, kernels[i].code->query(kernels[i].call.sizes, phase));
}

static struct job *job_take(struct pool *pool) {
  for (int i = 0; pool->worker_count && i < JOBS_MAX; i++)
    if (!atomic_load_explicit(&pool->jobs[i].is_taken, memory_order_relaxed) &&
        !atomic_exchange_explicit(&pool->jobs[i].is_taken, true, memory_order_acquire))
      return &pool->jobs[i];
  return NULL;
}

/* Lets the workers in, those who sleep only if it wakes them, works, and waits for those who came. */
static void job_run(struct pool *pool, struct job *job, bool wakes) {
  uint32_t bit = UINT32_C(1) << (job - pool->jobs);
  uint64_t number = (atomic_load_explicit(&job->state, memory_order_relaxed) / STATE_JOB + 1) * STATE_JOB;
  atomic_store_explicit(&job->state, number | STATE_OPEN, memory_order_release);
  atomic_fetch_or_explicit(&pool->open, bit, memory_order_release);
  if (wakes)
    ring_bell(pool);
  take_tiles(job, 0);
  atomic_fetch_and_explicit(&pool->open, ~bit, memory_order_relaxed);
  atomic_fetch_and_explicit(&job->state, ~STATE_OPEN, memory_order_acq_rel);
  for (int round = 0; atomic_load_explicit(&job->state, memory_order_acquire) & STATE_ACTIVE; round++)
    if (round < CALLER_ROUNDS)
      spin_pause();
    else
      sched_yield(); /* fewer cores than threads: let the worker finish */
}

static void piece_fill(const struct pool *pool, struct piece *piece, const struct pool_kernel *kernel, int64_t phase) {
  int64_t threads = pool_threads(pool);
  piece->code = kernel->code;
  piece->call = &kernel->call;
  piece->tiles = kernel->code->query(kernel->call.sizes, phase);
  piece->share = (uint32_t)((threads + RANGES_MAX - 1) / RANGES_MAX);
  int64_t ranges = (threads + piece->share - 1) / piece->share;
  piece->ranges = (uint32_t)(piece->tiles < 1 ? 1 : piece->tiles < ranges ? piece->tiles : ranges);
  for (uint32_t i = 0; i < piece->ranges; i++)
    atomic_store_explicit(&piece->next[i], range_begin(piece, i), memory_order_relaxed);
}
/* The phase's tiles of the kernels that have it; the number of them all. */
static int64_t job_fill(const struct pool *pool, struct job *job, const struct pool_kernel *kernels, uint32_t count, int64_t phase) {
  int64_t total = 0;
  job->phase = phase;
  job->piece_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (phase >= kernels[i].phases)
      continue;
    struct piece *piece = &job->pieces[job->piece_count++];
    piece_fill(pool, piece, &kernels[i], phase);
    total += piece->tiles;
  }
  return total;
}

void pool_run(struct pool *pool, const struct pool_kernel *kernels, uint32_t count, bool wakes) {
  struct job *job = job_take(pool);
  if (!job) {
    run_alone(kernels, count);
    return;
  }
  int64_t phases = 0;
  for (uint32_t i = 0; i < count; i++)
    phases = kernels[i].phases > phases ? kernels[i].phases : phases;
  for (int64_t phase = 0; phase < phases; phase++)
    if (job_fill(pool, job, kernels, count, phase) > 1)
      job_run(pool, job, wakes);
    else
      take_tiles(job, 0);
  atomic_store_explicit(&job->is_taken, false, memory_order_release);
}
