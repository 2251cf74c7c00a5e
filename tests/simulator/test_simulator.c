/* test_simulator.c: whole jobs in one process, by seed. Without arguments the tests; `--help` says what else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulator/scenarios.h"
#include "tests/support/test.h"

#define SEEDS 10000 /* of a scenario, as many as its share of SECONDS lets it run; TFC_SIMULATOR_SEEDS: so many, however long they take */
#define SEEDS_OF_FAULT 200
#define TESTS_MAX 128
#ifdef __SANITIZE_ADDRESS__
#define SECONDS \
  30.0 /* of processor time, for the seeds of all scenarios together; the sanitizers look at each code path, not at each seed */
#define SEEDS_LEAST 5 /* of each scenario */
#define IS_SANITIZED true
#else
#define SECONDS 48.0
#define SEEDS_LEAST 20
#define IS_SANITIZED false
#endif

/* ---- the seam ---- */

/* Whether the word stands in system.txt, but for its comments. */
static bool is_listed(const char *word) {
  static char *words[1024];
  static size_t count;
  char line[4096], *rest;
  FILE *file = count ? NULL : fopen(SOURCE_DIR "/tests/simulator/system.txt", "r");
  while (file && fgets(line, sizeof line, file))
    for (char *at = line[0] == '#' ? NULL : strtok_r(line, " \n", &rest); at && count < 1024; at = strtok_r(NULL, " \n", &rest))
      words[count++] = strdup(at);
  if (file)
    fclose(file);
  for (size_t i = 0; i < count; i++)
    if (strcmp(words[i], word) == 0)
      return true;
  return false;
}

/* Names that no library beside libc has, and the executable itself has not. */
#define ASKED_OF_LIBC                                                                                        \
  "cd " BINARY_DIR " && nm -u libtfcrt.a 2>/dev/null | awk '/ U /{print $2}' | sort -u >simulated.asked && " \
  "nm --defined-only libtfcrt.a 2>/dev/null | awk 'NF==3{print $3}' | sort -u >simulated.own && "            \
  "comm -23 simulated.asked simulated.own | grep -v -E "                                                     \
  "'^(png_|jpeg_|nghttp2_|__asan_|__ubsan_|inflate|deflate|[A-Z0-9]+_[A-Za-z0-9_]+$|tfc_program$|tfc_kernels$)'"

static void what_the_runtime_asks_of_libc_is_simulated_or_needs_not_be(void **state) {
  char name[256];
  int unknown = 0, known = 0;
  (void)state;
  FILE *names = popen(ASKED_OF_LIBC, "r");
  while (names && fgets(name, sizeof name, names)) {
    name[strcspn(name, "\n")] = 0;
    known++;
    if (!is_listed(name)) {
      unknown++;
      print_message("'%s' is not in tests/simulator/system.txt: does it touch clock, chance, threads, sockets or files?\n", name);
    }
  }
  if (names)
    pclose(names);
  assert_int_equal(unknown, 0);
  assert_true(known > 100);
}

/* ---- scenarios ---- */

static double seconds_used(void) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double seconds_of_one(void) {
  uint32_t count = 0;
  for (const struct scenario *scenario = scenarios(); scenario->name; scenario++)
    count += !scenario->is_open;
  return SECONDS / count;
}

/* The first seed that fails, or UINT64_MAX. */
static uint64_t find_failure(struct scenario *scenario) {
  const char *wanted = getenv("TFC_SIMULATOR_SEEDS");
  uint64_t count = wanted ? strtoull(wanted, NULL, 0) : SEEDS, failed = UINT64_MAX, seed = 0;
  double until = seconds_used() + seconds_of_one();
  for (; seed < count && failed == UINT64_MAX && (wanted || seed < SEEDS_LEAST || seconds_used() < until); seed += SEEDS_LEAST)
    failed = run_many(scenario, seed, SEEDS_LEAST);
  print_message("%s: %llu seeds\n", scenario->name, (unsigned long long)seed);
  return failed;
}

static void show(struct scenario *scenario, uint64_t seed, int fault) {
  struct run_options options = {.seed = seed, .fault = fault};
  run_shrink(scenario, &options);
  run_tell(scenario, &options, true);
}

static void all_seeds_are_well(void **state) {
  struct scenario *scenario = *state;
  scenario_build(scenario);
  uint64_t failed = find_failure(scenario);
  if (failed == UINT64_MAX)
    return;
  show(scenario, failed, 0);
  fail_msg("%s: seed %llu", scenario->name, (unsigned long long)failed);
}

static void a_run_repeats_exactly(void **state) {
  static struct run_report first;
  (void)state;
  for (struct scenario *scenario = scenarios(); scenario->name; scenario++) {
    scenario_build(scenario);
    for (uint64_t seed = 0; seed < 3; seed++) {
      first = *run_once(scenario, &(struct run_options){.seed = seed});
      const struct run_report *second = run_once(scenario, &(struct run_options){.seed = seed});
      assert_string_equal(first.story, second->story);
      assert_int_equal(first.turns, second->turns);
    }
  }
}

/* ---- it bites ---- */

static void what_is_left_out_is_noticed_within_200_seeds(void **state) {
  int missed = 0;
  (void)state;
  if (IS_SANITIZED) {
    print_message("skipped: which seeds notice a fault does not depend on the sanitizers; the plain build shows it\n");
    skip();
  }
  for (const struct planted *plant = planted(); plant->scenario; plant++) {
    struct scenario *scenario = scenario_find(plant->scenario);
    assert_non_null(scenario);
    scenario_build(scenario);
    uint64_t found = run_until_noticed(scenario, 0, SEEDS_OF_FAULT, plant->fault);
    if (found != UINT64_MAX)
      continue;
    print_message("fault %d (%s) is not noticed by %u seeds of '%s'\n", plant->fault, plant->what, SEEDS_OF_FAULT, plant->scenario);
    missed++;
  }
  assert_int_equal(missed, 0);
}

/* ---- by hand ---- */

static const char usage[] =
  "usage: test_simulator [--scenario NAME] [--seed S] [--seeds N] [--without MASK] [--fault F] [--first 0|1] [--story 0|1]\n"
  "  --seed S        begins with this seed (0)\n"
  "  --seeds N       so many seeds; each that fails is shrunk and told (1)\n"
  "  --without MASK  without some mishaps of the seed, as the failing run says\n"
  "  --fault F       with a mechanism left out (runtime/program/fault.h)\n"
  "  --first 1       ends with the first that fails, as it is; with a fault: and is well without it\n"
  "  --story 1       the whole story of each that fails; of one seed: whatever comes\n"
  "scenarios:\n";

static int help(void) {
  fputs(usage, stdout);
  for (struct scenario *scenario = scenarios(); scenario->name; scenario++)
    printf("  %-12s %s\n", scenario->name, scenario->title);
  return 0;
}

static int run_seeds(struct scenario *scenario, struct run_options *options, uint64_t seeds, bool only_first, bool whole_story) {
  struct timespec begin, end;
  uint64_t failures = 0, first = options->seed;
  scenario_build(scenario);
  if (only_first && options->fault) {
    options->seed = run_until_noticed(scenario, first, seeds, options->fault);
    if (options->seed == UINT64_MAX)
      return 0;
    run_once(scenario, options);
    run_tell(scenario, options, whole_story);
    return 1;
  }
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (options->seed = first; options->seed < first + seeds && !(only_first && failures); options->seed++) {
    uint32_t without = options->without;
    bool failed = run_once(scenario, options)->has_failed;
    failures += failed;
    if (failed && seeds > 1 && !only_first)
      run_shrink(scenario, options);
    if (failed || seeds == 1)
      run_tell(scenario, options, whole_story);
    options->without = without;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%s: %llu seeds, %llu fail, %.2f s\n", scenario->name, (unsigned long long)seeds, (unsigned long long)failures,
         (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
  return failures > 0;
}

static int command(int argc, char **argv) {
  struct run_options options = {0};
  struct scenario *scenario = scenarios();
  uint64_t seeds = 1;
  int story = -1, only_first = 0;
  for (int i = 1; i < argc; i += 2) {
    uint64_t number = i + 1 < argc ? strtoull(argv[i + 1], NULL, 0) : 0;
    if (i + 1 == argc)
      return help();
    else if (!strcmp(argv[i], "--seed"))
      options.seed = number;
    else if (!strcmp(argv[i], "--seeds"))
      seeds = number;
    else if (!strcmp(argv[i], "--without"))
      options.without = (uint32_t)number;
    else if (!strcmp(argv[i], "--fault"))
      options.fault = (int)number;
    else if (!strcmp(argv[i], "--first"))
      only_first = number != 0;
    else if (!strcmp(argv[i], "--story"))
      story = (int)number;
    else if (strcmp(argv[i], "--scenario") || !(scenario = scenario_find(argv[i + 1])))
      return help();
  }
  return run_seeds(scenario, &options, seeds, only_first, story < 0 ? seeds == 1 : story);
}

/* Addresses decide about the order of some things: they are to be the same each time. */
static void fix_addresses(char **argv) {
  int now = personality(0xffffffff);
  if (now >= 0 && !(now & ADDR_NO_RANDOMIZE) && personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[TESTS_MAX] = {cmocka_unit_test(what_the_runtime_asks_of_libc_is_simulated_or_needs_not_be),
                                        cmocka_unit_test(a_run_repeats_exactly),
                                        cmocka_unit_test(what_is_left_out_is_noticed_within_200_seeds)};
  size_t count = 3;
  fix_addresses(argv);
  if (argc > 1)
    return command(argc, argv);
  for (struct scenario *scenario = scenarios(); scenario->name && count < TESTS_MAX; scenario++)
    if (!scenario->is_open)
      tests[count++] = (struct CMUnitTest){.name = scenario->title, .test_func = all_seeds_are_well, .initial_state = scenario};
  return _cmocka_run_group_tests("simulator", tests, count, NULL, NULL);
}
