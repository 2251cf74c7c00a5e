/* seam_thread.c: pthread, over fibers. A lock is a word in the memory that the runtime gave it: whose it is. */
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "tests/simulator/fiber.h"
#include "tests/simulator/process.h"
#include "tests/simulator/seam.h"
#include "tests/simulator/world.h"

/* ---- threads ---- */

int simulated_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *argument) {
  int state = PTHREAD_CREATE_JOINABLE;
  if (attr)
    memcpy(&state, attr, sizeof state);
  struct fiber *fiber = fiber_start(process_self(), run, argument);
  *out = fiber_id(fiber);
  if (state == PTHREAD_CREATE_DETACHED)
    fiber_detach(fiber);
  fiber_maybe_give_way();
  return 0;
}

int simulated_pthread_join(pthread_t thread, void **result) {
  struct fiber *fiber = fiber_find(process_self(), (uint32_t)thread);
  if (!fiber)
    return ESRCH;
  void *given = fiber_join(fiber);
  if (result)
    *result = given;
  return 0;
}

int simulated_pthread_detach(pthread_t thread) {
  struct fiber *fiber = fiber_find(process_self(), (uint32_t)thread);
  if (!fiber)
    return ESRCH;
  fiber_detach(fiber);
  return 0;
}

pthread_t simulated_pthread_self(void) { return fiber_id(fiber_self()); }

int simulated_pthread_attr_init(pthread_attr_t *attr) {
  memset(attr, 0, sizeof *attr);
  return 0;
}
int simulated_pthread_attr_destroy(pthread_attr_t *attr) {
  (void)attr;
  return 0;
}
int simulated_pthread_attr_setdetachstate(pthread_attr_t *attr, int state) {
  memcpy(attr, &state, sizeof state);
  return 0;
}
int simulated_pthread_attr_setaffinity_np(pthread_attr_t *attr, size_t size, const cpu_set_t *set) {
  (void)attr, (void)size, (void)set;
  return 0;
}
int simulated_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set) {
  (void)thread, (void)size, (void)set;
  return 0;
}

/* ---- locks ---- */

static uint32_t *word(void *memory) { return memory; }

int simulated_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr) {
  (void)attr;
  memset(mutex, 0, sizeof *mutex);
  return 0;
}

int simulated_pthread_mutex_destroy(pthread_mutex_t *mutex) {
  if (*word(mutex)) {
    world_say(process_self()->name, "a lock is destroyed that thread %u holds", *word(mutex));
    abort();
  }
  return 0;
}

static void take(pthread_mutex_t *mutex) {
  uint32_t self = fiber_id(fiber_self());
  if (*word(mutex) == self) {
    world_say(process_self()->name, "thread %u takes a lock that it holds", self);
    abort();
  }
  while (*word(mutex))
    fiber_wait(mutex, UINT64_MAX, "pthread_mutex_lock");
  *word(mutex) = self;
}

static void give(pthread_mutex_t *mutex) {
  if (*word(mutex) != fiber_id(fiber_self())) {
    world_say(process_self()->name, "thread %u gives a lock back that %u holds", fiber_id(fiber_self()), *word(mutex));
    abort();
  }
  *word(mutex) = 0;
  fiber_wake(process_self(), mutex, false);
}

int simulated_pthread_mutex_lock(pthread_mutex_t *mutex) {
  fiber_maybe_give_way();
  take(mutex);
  return 0;
}

int simulated_pthread_mutex_trylock(pthread_mutex_t *mutex) {
  if (*word(mutex))
    return EBUSY;
  take(mutex);
  return 0;
}

int simulated_pthread_mutex_unlock(pthread_mutex_t *mutex) {
  give(mutex);
  fiber_maybe_give_way();
  return 0;
}

/* The word of an rwlock: how many read, or WRITTEN. */
#define WRITTEN UINT32_MAX

int simulated_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr) {
  (void)attr;
  memset(lock, 0, sizeof *lock);
  return 0;
}
int simulated_pthread_rwlock_destroy(pthread_rwlock_t *lock) {
  (void)lock;
  return 0;
}
int simulated_pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
  fiber_maybe_give_way();
  while (*word(lock) == WRITTEN)
    fiber_wait(lock, UINT64_MAX, "pthread_rwlock_rdlock");
  ++*word(lock);
  return 0;
}
int simulated_pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
  fiber_maybe_give_way();
  while (*word(lock))
    fiber_wait(lock, UINT64_MAX, "pthread_rwlock_wrlock");
  *word(lock) = WRITTEN;
  return 0;
}
int simulated_pthread_rwlock_unlock(pthread_rwlock_t *lock) {
  *word(lock) = *word(lock) == WRITTEN ? 0 : *word(lock) - 1;
  fiber_wake(process_self(), lock, true);
  fiber_maybe_give_way();
  return 0;
}

/* ---- conditions: the word is the clock ---- */

int simulated_pthread_condattr_init(pthread_condattr_t *attr) {
  memset(attr, 0, sizeof *attr);
  return 0;
}
int simulated_pthread_condattr_destroy(pthread_condattr_t *attr) {
  (void)attr;
  return 0;
}
int simulated_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock) {
  memcpy(attr, &clock, sizeof clock);
  return 0;
}
int simulated_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr) {
  memset(cond, 0, sizeof *cond);
  if (attr)
    memcpy(cond, attr, sizeof *attr);
  return 0;
}
int simulated_pthread_cond_destroy(pthread_cond_t *cond) {
  (void)cond;
  return 0;
}

static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns) {
  give(mutex);
  bool in_time = fiber_wait(cond, until_ns, until_ns == UINT64_MAX ? "pthread_cond_wait" : "pthread_cond_timedwait");
  take(mutex);
  return in_time ? 0 : ETIMEDOUT;
}

int simulated_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) { return wait_until(cond, mutex, UINT64_MAX); }

int simulated_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
  int64_t at = (int64_t)until->tv_sec * (int64_t)WORLD_S + until->tv_nsec;
  if (clock == CLOCK_REALTIME)
    at -= process_self()->machine->wall_offset_ns;
  return wait_until(cond, mutex, at < 0 ? 0 : (uint64_t)at);
}

int simulated_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until) {
  return simulated_pthread_cond_clockwait(cond, mutex, (clockid_t)*word(cond), until);
}

int simulated_pthread_cond_signal(pthread_cond_t *cond) {
  fiber_wake(process_self(), cond, false);
  fiber_maybe_give_way();
  return 0;
}
int simulated_pthread_cond_broadcast(pthread_cond_t *cond) {
  fiber_wake(process_self(), cond, true);
  fiber_maybe_give_way();
  return 0;
}

int simulated_pthread_once(pthread_once_t *once, void (*run)(void)) {
  if (*once == 0) {
    *once = 1;
    run();
  }
  return 0;
}

int simulated_pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
  (void)how, (void)set, (void)old;
  return 0;
}

/* Futexes are all that the runtime calls the system for by number. */
long simulated_syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  uint32_t *at = va_arg(arguments, uint32_t *);
  int what = va_arg(arguments, int);
  uint32_t value = va_arg(arguments, uint32_t);
  va_end(arguments);
  if (number != SYS_futex)
    abort();
  if (what == FUTEX_WAKE_PRIVATE)
    fiber_wake(process_self(), at, true);
  else if (__atomic_load_n(at, __ATOMIC_SEQ_CST) == value)
    fiber_wait(at, UINT64_MAX, "futex");
  return 0;
}

int simulated_sched_yield(void) {
  fiber_give_way();
  return 0;
}

/* All fibers are on the one core. */
int simulated_sched_getcpu(void) { return 0; }
int simulated_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
  (void)pid;
  memset(set, 0, size);
  CPU_SET(0, set);
  return 0;
}
