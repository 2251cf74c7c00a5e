/* monotonic.c: CLOCK_MONOTONIC in milliseconds. */
#include "runtime/program/monotonic.h"

#include <time.h>

uint64_t monotonic_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void monotonic_cond_init(pthread_cond_t *changed) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool monotonic_wait(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t until_ms) {
  struct timespec until = {.tv_sec = (time_t)(until_ms / 1000), .tv_nsec = (long)(until_ms % 1000) * 1000000};
  return pthread_cond_timedwait(changed, lock, &until) == 0;
}
