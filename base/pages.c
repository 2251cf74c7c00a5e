/* pages.c: a wish to the kernel, for blocks of which a page of 2 MiB is no more than half. */
#include "base/pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define SMALL_PAGE ((size_t)4096)
#define ALIGNMENT 64

void *pages_create(size_t size) {
  bool is_large = size >= 2 * HUGE_PAGE;
  size_t alignment = is_large ? HUGE_PAGE : ALIGNMENT;
  void *data = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (data && is_large)
    madvise(data, size / SMALL_PAGE * SMALL_PAGE, MADV_HUGEPAGE);
  return data;
}
