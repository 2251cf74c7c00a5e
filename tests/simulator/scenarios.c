/* scenarios.c: the table of what is simulated. */
#include "tests/simulator/scenarios.h"

#include <string.h>

#include "tests/simulator/check.h"

enum shape { ONE_ONE, TWO_TWO, SHAPES };
static const struct {
  const char *name;
  uint32_t ps, workers;
} shapes[SHAPES] = { { "counting, 1 ps, 1 worker", 1, 1 }, { "counting, 2 ps, 2 workers", 2, 2 } };

#define WEATHER (MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_CLOCK))
#define COUNTS .steps = 6, .timeout_s = 30, .check = check_counts
#define TOGETHER .spread_ns = 5 * WORLD_MS

static struct {
  enum shape shape;
  struct scenario scenario;
} table[] = {
  { TWO_TWO, { .name = "calm", .title = "steps_are_counted_once_when_nothing_goes_wrong", COUNTS, TOGETHER } },
  { ONE_ONE,
    { .name = "weather",
      .title = "steps_are_counted_once_over_slow_links_and_under_clocks_that_jump",
      COUNTS,
      TOGETHER,
      .mishaps = WEATHER } },
  { TWO_TWO,
    { .name = "cuts",
      .title = "steps_are_counted_once_when_connections_break",
      COUNTS,
      TOGETHER,
      .mishaps = WEATHER | MISHAP(MISHAP_CUT),
      .is_open = true } },
  { TWO_TWO,
    { .name = "late", .title = "a_worker_may_come_when_the_chief_has_left", COUNTS, .spread_ns = 300 * WORLD_MS, .is_open = true } },
};
#define COUNT (sizeof table / sizeof *table)

struct scenario *scenarios(void) {
  static struct scenario list[COUNT + 1];
  static struct job *jobs[SHAPES];
  for (size_t i = 0; i < COUNT && !list[i].name; i++) {
    enum shape shape = table[i].shape;
    if (!jobs[shape])
      jobs[shape] = job_counting(shapes[shape].name, shapes[shape].ps, shapes[shape].workers);
    list[i] = table[i].scenario;
    list[i].job = jobs[shape];
  }
  return list;
}

struct scenario *scenario_find(const char *name) {
  for (struct scenario *scenario = scenarios(); scenario->name; scenario++)
    if (strcmp(scenario->name, name) == 0)
      return scenario;
  return NULL;
}
