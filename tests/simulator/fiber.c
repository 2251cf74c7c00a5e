/* fiber.c: switching by the compiler's own setjmp, which no sanitizer takes for a jump back; each fiber has its stack and its copy of the
 * runtime's thread-local variables. */
#include "tests/simulator/fiber.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/vec.h"
#include "tests/simulator/process.h"
#include "tests/simulator/sanitizer.h"
#include "tests/simulator/world.h"

#ifdef __SANITIZE_ADDRESS__
#define STACK_BYTES (2048 * 1024) /* frames are larger */
#else
#define STACK_BYTES (256 * 1024)
#endif
#define GUARD_BYTES 4096            /* below, nothing may be written */
#define STALL_NS_MAX (5 * WORLD_MS) /* and short times are as likely as long ones */

enum fiber_state { FIBER_READY, FIBER_WAITS, FIBER_ENDED };

struct fiber {
  struct process *process;
  uint32_t id;
  enum fiber_state state;
  bool is_started, is_detached;
  void *(*run)(void *);
  void *argument, *result;
  const void *waits_for;
  const char *why;
  uint64_t wait_number; /* counts waits: an alarm of an earlier one is stale */
  bool is_late;
  int error;
  char *stack;
  void *context[5];
  struct track track;
  ucontext_t start;
  unsigned char *thread_data;
};

/* The runtime's thread-local variables: in the library that is simulated they are plain ones in a section of their own. */
extern unsigned char __start_thread_data[], __stop_thread_data[];

static VEC(struct fiber *) fibers;
static VEC(char *) stacks; /* free ones */
static struct fiber *current, *loaded;
static void *outside[5];
static struct track track_outside;
static uint32_t next_id = 1;

static size_t thread_data_size(void) { return (size_t)(__stop_thread_data - __start_thread_data); }

struct fiber *fiber_self(void) {
  return current;
}
struct process *fiber_process(const struct fiber *fiber) {
  return fiber->process;
}
struct process *process_self(void) {
  return current ? current->process : NULL;
}
uint32_t fiber_id(const struct fiber *fiber) { return fiber->id; }

static char *take_stack(void) {
  if (stacks.count)
    return stacks.items[--stacks.count];
  char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED)
    abort();
  mprotect(stack, GUARD_BYTES, PROT_NONE);
  return stack;
}

static void begin(void) {
  track_arrive(&current->track, &track_outside);
  fiber_exit(current->run(current->argument));
}

struct fiber *fiber_start(struct process *process, void *(*run)(void *), void *argument) {
  struct fiber *fiber = calloc(1, sizeof *fiber);
  if (!fiber)
    abort();
  *fiber = (struct fiber){.process = process, .id = next_id++, .run = run, .argument = argument, .stack = take_stack()};
  fiber->thread_data = calloc(1, thread_data_size() + 1);
  getcontext(&fiber->start);
  fiber->start.uc_stack.ss_sp = fiber->stack;
  fiber->start.uc_stack.ss_size = STACK_BYTES;
  fiber->start.uc_link = NULL;
  makecontext(&fiber->start, begin, 0);
  fiber->track = (struct track){.bottom = fiber->stack, .size = STACK_BYTES};
  vec_push(&fibers, fiber);
  return fiber;
}

struct fiber *fiber_find(const struct process *process, uint32_t id) {
  for (uint32_t i = 0; i < fibers.count; i++)
    if (fibers.items[i]->id == id && fibers.items[i]->process == process)
      return fibers.items[i];
  return NULL;
}

/* ---- switching ---- */

static void load(struct fiber *fiber) {
  process_load(fiber->process);
  if (loaded == fiber)
    return;
  if (loaded)
    memcpy(loaded->thread_data, __start_thread_data, thread_data_size());
  memcpy(__start_thread_data, fiber->thread_data, thread_data_size());
  loaded = fiber;
}

/* To the outside; not back when the current one has ended. */
__attribute__((noreturn, noinline)) static void jump_out(bool has_ended) {
  track_leave(has_ended ? NULL : &current->track, &track_outside);
  __builtin_longjmp(outside, 1);
}

__attribute__((noinline)) static void leave(void) {
  current->error = errno;
  if (__builtin_setjmp(current->context) == 0)
    jump_out(false);
  track_arrive(&current->track, &track_outside);
  errno = current->error;
}

__attribute__((noinline)) static void jump_in(struct fiber *fiber) {
  track_leave(&track_outside, &fiber->track);
  if (fiber->is_started)
    __builtin_longjmp(fiber->context, 1);
  fiber->is_started = true;
  setcontext(&fiber->start);
}

static void release(struct fiber *fiber) {
  for (uint32_t i = 0; i < fibers.count; i++)
    if (fibers.items[i] == fiber) {
      fibers.items[i] = fibers.items[--fibers.count];
      break;
    }
  if (loaded == fiber)
    loaded = NULL;
  vec_push(&stacks, fiber->stack);
  free(fiber->thread_data);
  free(fiber);
}

static bool can_run(const struct fiber *fiber) { return fiber->state == FIBER_READY && !process_is_paused(fiber->process); }

__attribute__((noinline)) static void run(struct fiber *fiber) {
  if (__builtin_setjmp(outside) == 0)
    jump_in(fiber);
  track_arrive(&track_outside, NULL);
}

bool fiber_run_one(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < fibers.count; i++)
    count += can_run(fibers.items[i]);
  uint64_t chosen = random_below(world_random(), count);
  struct fiber *fiber = NULL;
  for (uint32_t i = 0; i < fibers.count && !fiber; i++)
    if (can_run(fibers.items[i]) && chosen-- == 0)
      fiber = fibers.items[i];
  if (!fiber)
    return false;
  world_count_turn();
  load(fiber);
  current = fiber;
  run(fiber);
  struct fiber *last = current;
  current = NULL;
  if (last && last->state == FIBER_ENDED && last->is_detached)
    release(last);
  return true;
}

void fiber_give_way(void) {
  if (current)
    leave();
}

/* Of a machine that has more to do than cores. */
static void stall(void) {
  static const char core;
  uint64_t time = STALL_NS_MAX >> random_below(world_random(), 10);
  uint64_t until_ns = world_now() + time / 2 + random_below(world_random(), time / 2);
  while (fiber_wait(&core, until_ns, "no core"))
    continue;
}

void fiber_maybe_give_way(void) {
  const struct world_manner *manner = world_manner();
  if (current && manner->stall_in && random_below(world_random(), manner->stall_in) == 0)
    stall();
  else if (current && manner->switch_in && random_below(world_random(), manner->switch_in) == 0)
    leave();
}

/* ---- waiting ---- */

static void on_alarm(void *process, uint64_t number) {
  uint32_t id = (uint32_t)(number >> 32);
  struct fiber *fiber = fiber_find(process, id);
  if (!fiber || fiber->state != FIBER_WAITS || (uint32_t)fiber->wait_number != (uint32_t)number)
    return;
  fiber->state = FIBER_READY;
  fiber->is_late = true;
}

bool fiber_wait(const void *what, uint64_t until_ns, const char *why) {
  struct fiber *fiber = current;
  fiber->state = FIBER_WAITS;
  fiber->waits_for = what;
  fiber->why = why;
  fiber->is_late = false;
  fiber->wait_number++;
  if (until_ns != UINT64_MAX)
    world_after(until_ns > world_now() ? until_ns - world_now() : 0, on_alarm, fiber->process,
                (uint64_t)fiber->id << 32 | (uint32_t)fiber->wait_number);
  leave();
  fiber->waits_for = NULL;
  return !fiber->is_late;
}

void fiber_wake(const struct process *process, const void *what, bool all) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < fibers.count; i++) {
    struct fiber *fiber = fibers.items[i];
    count += fiber->state == FIBER_WAITS && fiber->process == process && fiber->waits_for == what;
  }
  uint64_t chosen = all || count < 2 ? 0 : random_below(world_random(), count);
  for (uint32_t i = 0; i < fibers.count && count; i++) {
    struct fiber *fiber = fibers.items[i];
    if (fiber->state != FIBER_WAITS || fiber->process != process || fiber->waits_for != what)
      continue;
    count--;
    if (!all && chosen-- != 0)
      continue;
    fiber->state = FIBER_READY;
    if (!all)
      return;
  }
}

/* ---- ends ---- */

void fiber_exit(void *result) {
  current->result = result;
  current->state = FIBER_ENDED;
  fiber_wake(current->process, current, true);
  jump_out(true);
}

void *fiber_join(struct fiber *fiber) {
  while (fiber->state != FIBER_ENDED)
    fiber_wait(fiber, UINT64_MAX, "pthread_join");
  void *result = fiber->result;
  release(fiber);
  return result;
}

void fiber_detach(struct fiber *fiber) {
  fiber->is_detached = true;
  if (fiber->state == FIBER_ENDED && fiber != current)
    release(fiber);
}

void fiber_end_all(struct process *process) {
  bool is_own = current && current->process == process;
  for (uint32_t i = fibers.count; i-- > 0;)
    if (fibers.items[i]->process == process && fibers.items[i] != current)
      release(fibers.items[i]);
  if (!is_own)
    return;
  current->state = FIBER_ENDED;
  current->is_detached = true;
  jump_out(true);
}

void fiber_explain(const struct process *process) {
  for (uint32_t i = 0; i < fibers.count; i++)
    if (fibers.items[i]->process == process && fibers.items[i]->state != FIBER_ENDED)
      world_say(process_name(process), "thread %u %s %s", fibers.items[i]->id,
                fibers.items[i]->state == FIBER_WAITS ? "waits in" : "could run",
                fibers.items[i]->state == FIBER_WAITS ? fibers.items[i]->why : "");
}

void fiber_each_stack(const struct process *process, void (*see)(void *self, const void *stack, size_t size), void *self) {
  for (uint32_t i = 0; i < fibers.count; i++)
    if (fibers.items[i]->process == process && fibers.items[i] != current) {
      see(self, fibers.items[i]->stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
      see(self, &fibers.items[i]->argument, sizeof fibers.items[i]->argument); /* of one that has not begun yet */
    }
}
