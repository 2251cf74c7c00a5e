/* shared_line.c: two threads of the pool pass some lines back and forth, and look at the clock.
 *
 * They are the two tiles of one kernel. In each turn the writer writes all lines, each of which is taken from the reader's cache, and
 * the reader reads them, from the writer's. The shortest of each counts, as whatever else the cores do only adds to it. A thread waits for
 * the other one no longer than until the measurement is over, so one that comes late, or runs both tiles, ends it.
 */
#include "runtime/step/shared_line.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/step/trace.h"

#define LINES 128 /* 8 KB: in the smallest first-level cache */
#define TURNS 8
#define PATIENCE_NS 2000000
#define NOBODY (-1)

struct line {
  _Alignas(64) _Atomic int64_t value;
};
struct lines {
  struct line items[LINES];
  _Alignas(64) _Atomic int64_t read_turns; /* by the reader */
  int reader_cpu;                          /* of its last turn; NOBODY: it has not come */
  _Alignas(64) _Atomic int64_t written_turns;
  atomic_bool is_over;
  uint64_t end;                   /* on the clock */
  uint64_t best_write, best_read; /* nanoseconds of all lines; UINT64_MAX: no turn counted */
};

/* False: the measurement is over. */
static bool wait_for(struct lines *lines, const _Atomic int64_t *turns, int64_t wanted) {
  while (atomic_load_explicit(turns, memory_order_acquire) < wanted)
    if (atomic_load_explicit(&lines->is_over, memory_order_relaxed) || trace_now() > lines->end)
      return false;
  return true;
}

static uint64_t read_all(struct lines *lines) {
  uint64_t begin = trace_now();
  for (int i = 0; i < LINES; i++)
    (void)atomic_load_explicit(&lines->items[i].value, memory_order_relaxed);
  atomic_thread_fence(memory_order_seq_cst);
  return trace_now() - begin;
}
static uint64_t write_all(struct lines *lines, int64_t turn) {
  uint64_t begin = trace_now();
  for (int i = 0; i < LINES; i++)
    atomic_store_explicit(&lines->items[i].value, turn, memory_order_relaxed);
  atomic_thread_fence(memory_order_seq_cst); /* what was stored has left the store buffer */
  return trace_now() - begin;
}

static void write_in_turns(struct lines *lines) {
  for (int64_t turn = 1; turn <= TURNS && wait_for(lines, &lines->read_turns, turn); turn++) {
    int cpu = sched_getcpu();
    uint64_t took = write_all(lines, turn);
    if (cpu == sched_getcpu() && cpu != lines->reader_cpu && took < lines->best_write)
      lines->best_write = took;
    atomic_store_explicit(&lines->written_turns, turn, memory_order_release);
  }
  atomic_store_explicit(&lines->is_over, true, memory_order_relaxed);
}
static void read_in_turns(struct lines *lines) {
  for (int64_t turn = 1; turn <= TURNS && wait_for(lines, &lines->written_turns, turn - 1); turn++) {
    uint64_t took = read_all(lines);
    lines->reader_cpu = sched_getcpu();
    if (turn > 1 && took < lines->best_read) /* nobody had written them before */
      lines->best_read = took;
    atomic_store_explicit(&lines->read_turns, turn, memory_order_release);
  }
}

static int64_t two_tiles(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what == 0 ? 2 : what == KERNEL_PHASES ? 1 : 0;
}
static void run_tiles(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase;
  for (int64_t tile = begin; tile < end; tile++)
    (tile == 0 ? write_in_turns : read_in_turns)(call->buffers[0]);
}
static const struct kernel_code measuring = {run_tiles, two_tiles};

int64_t shared_line_measure(struct pool *pool) {
  if (pool_threads(pool) < 2)
    return SHARED_LINE_USUAL_NS;
  struct lines lines = {.reader_cpu = NOBODY, .end = trace_now() + PATIENCE_NS, .best_write = UINT64_MAX, .best_read = UINT64_MAX};
  void *buffers[] = {&lines};
  pool_run(pool, &(struct pool_kernel){&measuring, {buffers, NULL, NULL, NULL}, 1}, 1, true);
  bool is_measured = lines.best_write != UINT64_MAX && lines.best_read != UINT64_MAX;
  return is_measured ? (int64_t)((lines.best_write + lines.best_read) / LINES) : SHARED_LINE_UNKNOWN;
}
