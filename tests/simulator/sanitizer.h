/* sanitizer.h: what AddressSanitizer has to know of fibers, whose stack runs, and of memory that it does not give. Nothing without it. */
#ifndef TFC_TESTS_SIMULATOR_SANITIZER_H
#define TFC_TESTS_SIMULATOR_SANITIZER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* A stack, as the sanitizer sees it: a fiber's, or the one outside, whose bounds are told by the first that comes from there. */
struct track {
  void *fake;
  const void *bottom;
  size_t size;
};

/* Right before the jump. from NULL: it will not run again. */
static inline void track_leave(struct track *from, const struct track *to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(from ? &from->fake : NULL, to->bottom, to->size);
#endif
  (void)from, (void)to;
}

/* Right behind it. other: where it came from, to be told its bounds; or NULL. */
static inline void track_arrive(const struct track *self, struct track *other) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(self->fake, other ? &other->bottom : NULL, other ? &other->size : NULL);
#endif
  (void)self, (void)other;
}

/* These bytes must not be touched; or may be again. */
static inline void track_bound(void *at, size_t size, bool is_closed) {
#ifdef __SANITIZE_ADDRESS__
  if (is_closed)
    __asan_poison_memory_region(at, size);
  else
    __asan_unpoison_memory_region(at, size);
#endif
  (void)at, (void)size, (void)is_closed;
}

#endif
