/* Which of the CPUs that an executable was built for is taken, and what is said where none will do. */
#include <string.h>

#include "runtime/program/cpu.h"
#include "tests/support/test.h"

#define TEXTS "\0a\0b\0c"

/* A program with nothing but texts and three CPUs. */
static struct {
  struct program program;
  char texts[sizeof TEXTS];
} whole = {.texts = TEXTS};

static const struct program *program_for(uint32_t a, uint32_t b, uint32_t c) {
  whole.program.tables[PROGRAM_TEXTS] = (struct program_table){offsetof(__typeof__(whole), texts), sizeof TEXTS};
  whole.program.cpu_count = 3;
  const uint32_t levels[] = {a, b, c};
  for (uint32_t i = 0; i < 3; i++)
    whole.program.cpus[i] = (struct program_cpu){1 + 2 * i, levels[i]};
  return &whole.program;
}

static void the_highest_level_that_runs_is_taken(void **state) {
  (void)state;
  static const struct {
    uint32_t levels[3], machine, taken;
  } cases[] = {{{1, 3, 4}, 4, 2}, {{1, 3, 4}, 3, 1}, {{1, 3, 4}, 2, 0}, {{4, 3, 1}, 3, 1}, {{3, 3, 4}, 3, 0}, {{4, 1, 1}, 2, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t taken = 99;
    assert_int_equal(cpu_choose(program_for(cases[i].levels[0], cases[i].levels[1], cases[i].levels[2]), cases[i].machine, &taken), OK);
    assert_int_equal(taken, cases[i].taken);
  }
}

static void an_older_cpu_is_refused_in_words(void **state) {
  (void)state;
  uint32_t taken;
  assert_int_equal(cpu_choose(program_for(4, 3, 4), 2, &taken), FAILED_PRECONDITION);
  assert_non_null(strstr(status_text(), "built for --cpu b, which needs an x86-64-v3 machine; this one is x86-64-v2"));
  assert_non_null(strstr(status_text(), "--cpu x86-64-v2"));
}

static void this_machine_has_a_level(void **state) {
  (void)state;
  assert_in_range(cpu_level(), 1, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_highest_level_that_runs_is_taken),
    cmocka_unit_test(an_older_cpu_is_refused_in_words),
    cmocka_unit_test(this_machine_has_a_level),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
