/* stacks.c: see stacks.h. */
#include "runtime/process/stacks.h"

#include <pthread.h>
#include <sys/resource.h>

#include "base/limits.h"

/* The first thread's grows to the limit, whenever that was raised. */
static void raise_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= LIMIT_STACK_BYTES)
    return;
  limit.rlim_cur = limit.rlim_max < LIMIT_STACK_BYTES ? limit.rlim_max : LIMIT_STACK_BYTES;
  setrlimit(RLIMIT_STACK, &limit);
}
static void raise_default(void) {
  pthread_attr_t attributes;
  size_t bytes;
  if (pthread_getattr_default_np(&attributes) != 0)
    return;
  if (pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < LIMIT_STACK_BYTES &&
      pthread_attr_setstacksize(&attributes, LIMIT_STACK_BYTES) == 0)
    pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}
void stacks_make_room(void) {
  raise_limit();
  raise_default();
}
