/* test_simulator.c: whole jobs in one process, by seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulator/check.h"
#include "tests/simulator/run.h"
#include "tests/support/test.h"

static struct scenario scenarios[] = {
  { .name = "calm", .steps = 6, .timeout_s = 30, .check = check_counts },
  { .name = "cuts", .steps = 6, .timeout_s = 30, .check = check_counts, .mishaps = MISHAP(MISHAP_CUT) | MISHAP(MISHAP_CLOCK) },
};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)

/* Addresses decide about the order of some things: they are to be the same each time. */
static void fix_addresses(char **argv) {
  int now = personality(0xffffffff);
  if (now >= 0 && !(now & ADDR_NO_RANDOMIZE) && personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
  fix_addresses(argv);
  struct run_options options = { 0 };
  struct scenario *scenario = &scenarios[0];
  uint64_t seeds = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    uint64_t number = strtoull(argv[i + 1], NULL, 0);
    if (!strcmp(argv[i], "--seed"))
      options.seed = number;
    else if (!strcmp(argv[i], "--seeds"))
      seeds = number;
    else if (!strcmp(argv[i], "--without"))
      options.without = (uint32_t)number;
    else if (!strcmp(argv[i], "--fault"))
      options.fault = (int)number;
    for (size_t s = 0; s < SCENARIOS; s++)
      if (!strcmp(argv[i], "--scenario") && !strcmp(argv[i + 1], scenarios[s].name))
        scenario = &scenarios[s];
  }
  struct job *job = job_counting("counting", 2, 2);
  for (size_t s = 0; s < SCENARIOS; s++)
    scenarios[s].job = job;
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  uint64_t first = options.seed, failures = 0;
  for (uint64_t seed = first; seed < first + seeds; seed++) {
    options.seed = seed;
    if (run_once(scenario, &options)->has_failed) {
      failures++;
      if (seeds > 1) run_shrink(scenario, &options);
      run_tell(scenario, &options, seeds == 1);
      options.without = 0;
    } else if (seeds == 1)
      run_tell(scenario, &options, true);
  }
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("%llu seeds, %llu fail, %.2f s\n", (unsigned long long)seeds, (unsigned long long)failures, (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
  return 0;
}
