/* seam_process.c: clocks, random numbers, signals and names of simulated processes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulator/fiber.h"
#include "tests/simulator/process.h"
#include "tests/simulator/seam.h"
#include "tests/simulator/world.h"

int simulated_clock_gettime(clockid_t clock, struct timespec *out) {
  uint64_t now = world_now();
  if (clock == CLOCK_REALTIME)
    now += (uint64_t)process_self()->machine->wall_offset_ns;
  *out = (struct timespec){(time_t)(now / WORLD_S), (long)(now % WORLD_S)};
  return 0;
}

static void sleep_for(uint64_t time_ns) {
  uint64_t until = world_now() + time_ns;
  while (world_now() < until)
    fiber_wait(&until, until, "sleep");
}

int simulated_nanosleep(const struct timespec *time, struct timespec *rest) {
  (void)rest;
  sleep_for((uint64_t)time->tv_sec * WORLD_S + (uint64_t)time->tv_nsec);
  return 0;
}
int simulated_usleep(useconds_t time) {
  sleep_for(time * WORLD_US);
  return 0;
}

ssize_t simulated_getrandom(void *out, size_t size, unsigned flags) {
  (void)flags;
  for (size_t i = 0; i < size; i++)
    ((unsigned char *)out)[i] = (unsigned char)random_next(world_random());
  return (ssize_t)size;
}

pid_t simulated_getpid(void) { return (pid_t)process_self()->id; }
pid_t simulated_gettid(void) { return (pid_t)fiber_id(fiber_self()) + 1000; }
uid_t simulated_geteuid(void) { return 1000; }

/* Asked only whether somebody lives: nobody but the caller does. */
int simulated_kill(pid_t pid, int number) {
  (void)number;
  if (pid == simulated_getpid())
    return 0;
  errno = ESRCH;
  return -1;
}

int simulated_sigwait(const sigset_t *set, int *number) {
  struct process *process = process_self();
  (void)set;
  while (!process->signal_waiting)
    fiber_wait(&process->signal_waiting, UINT64_MAX, "sigwait");
  *number = process->signal_waiting;
  process->signal_waiting = 0;
  return 0;
}

void (*simulated_signal(int number, void (*handler)(int)))(int) {
  (void)number;
  return handler;
}

char *simulated_getenv(const char *name) {
  (void)name;
  return NULL;
}

int simulated_gethostname(char *out, size_t size) {
  snprintf(out, size, "m%u", process_self()->machine->number);
  return 0;
}

void simulated_exit(int code) { process_exit(code); }
void simulated__exit(int code) { process_exit(code); }
