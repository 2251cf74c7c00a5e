/* cores.h: which cores the threads of a test's process run on. */
#ifndef TFC_TESTS_SUPPORT_CORES_H
#define TFC_TESTS_SUPPORT_CORES_H

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>

#include "tests/support/test.h"

/* All threads that there are now. */
static inline void use_cores(const cpu_set_t *cores) {
  DIR *threads = opendir("/proc/self/task");
  assert_non_null(threads);
  for (struct dirent *entry; (entry = readdir(threads));)
    if (entry->d_name[0] != '.')
      assert_int_equal(sched_setaffinity((pid_t)atoi(entry->d_name), sizeof *cores, cores), 0);
  closedir(threads);
}
/* Leaves them one; `all`: those they had. */
static inline void use_one_core(cpu_set_t *all) {
  cpu_set_t one;
  assert_int_equal(sched_getaffinity(0, sizeof *all, all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  use_cores(&one);
}

#endif
