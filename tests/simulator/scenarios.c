/* scenarios.c: the table of what is simulated. */
#include "tests/simulator/scenarios.h"

#include <string.h>

#include "tests/simulator/check.h"

enum shape { ONE_ONE, ONE_TWO, TWO_ONE, TWO_TWO, SYNC, ALLREDUCE, TOKENS, SHAPES };
static const struct {
  const char *name, *model, *strategy; /* model NULL: counts */
  uint32_t ps, workers;
} shapes[SHAPES] = {
  {"counting, 1 ps, 1 worker", NULL, NULL, 1, 1},
  {"counting, 1 ps, 2 workers", NULL, NULL, 1, 2},
  {"counting, 2 ps, 1 worker", NULL, NULL, 2, 1},
  {"counting, 2 ps, 2 workers", NULL, NULL, 2, 2},
  {"rounds, 2 ps, 2 workers", "strategy_ps_sync", "ps-sync", 2, 2},
  {"all-reduce, 3 workers", "strategy_allreduce", "allreduce", 0, 3},
  {"tokens, 1 ps, 2 workers", "sync_exported", NULL, 1, 2},
};

#define WEATHER (MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_CLOCK))
#define NET (WEATHER | MISHAP(MISHAP_CUT) | MISHAP(MISHAP_BLOCK) | MISHAP(MISHAP_REFUSE) | MISHAP(MISHAP_PAUSE))
#define KILLS (NET | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_POWER))
#define KILLS_PS (KILLS | MISHAP(MISHAP_KILL_PS) | MISHAP(MISHAP_POWER_PS))
#define COUNTS .steps = 6, .timeout_s = 120, .check = check_counts, .watch = watch_counts, .is_done = is_counted
#define VALUES .steps = 4, .timeout_s = 120, .check = check_values
#define VALUES_KILLED .steps = 4, .timeout_s = 120, .check = check_values_done, .is_done = is_finished
#define TOGETHER .spread_ns = 5 * WORLD_MS
#define APART .spread_ns = 300 * WORLD_MS
#define SAVED .with_checkpoints = true
#define OPEN .is_open = true

static struct {
  enum shape shape;
  struct scenario scenario;
} table[] = {
  {TWO_TWO, {.name = "calm", .title = "steps_are_counted_once_when_nothing_goes_wrong", COUNTS, TOGETHER}},
  {ONE_ONE, {.name = "weather", .title = "steps_are_counted_once_over_slow_links", COUNTS, TOGETHER, .mishaps = WEATHER}},
  {TWO_TWO,
   {.name = "far", .title = "tasks_half_a_world_from_each_other_come_together", COUNTS, TOGETHER, .distance_ms = 600, .mishaps = WEATHER}},
  {TWO_TWO, {.name = "late", .title = "a_worker_may_come_when_the_chief_has_left", COUNTS, APART}},
  {TWO_TWO,
   {.name = "cuts",
    .title = "steps_are_counted_once_when_connections_break",
    COUNTS,
    TOGETHER,
    .mishaps = WEATHER | MISHAP(MISHAP_CUT),
    OPEN}},
  {TWO_TWO,
   {.name = "far-net",
    .title = "steps_are_counted_once_when_tasks_far_away_are_out_of_reach",
    COUNTS,
    TOGETHER,
    .distance_ms = 300,
    .mishaps = NET}},
  {TWO_TWO, {.name = "net", .title = "steps_are_counted_once_when_tasks_are_out_of_reach_and_stopped", COUNTS, TOGETHER, .mishaps = NET}},
  {TWO_TWO, {.name = "kills", .title = "steps_are_counted_once_when_workers_are_killed", COUNTS, TOGETHER, .mishaps = KILLS}},
  {TWO_TWO,
   {.name = "crashes",
    .title = "steps_are_counted_once_when_one_ps_is_behind_and_workers_are_killed",
    .steps = 24,
    .timeout_s = 120,
    .check = check_counts,
    .watch = watch_counts,
    .is_done = is_counted,
    TOGETHER,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL)}},
  {ONE_TWO, {.name = "kills-1ps", .title = "steps_are_counted_once_by_one_ps_when_workers_are_killed", COUNTS, TOGETHER, .mishaps = KILLS}},
  {TWO_TWO, {.name = "twins", .title = "of_two_with_one_name_one_goes_on", COUNTS, APART, .mishaps = NET | MISHAP(MISHAP_TWIN), OPEN}},
  {TWO_TWO,
   {.name = "lost",
    .title = "others_go_on_without_a_worker",
    .steps = 6,
    .timeout_s = 120,
    .check = check_counts_lost,
    APART,
    .mishaps = NET | MISHAP(MISHAP_LOSE),
    OPEN}},
  {TWO_TWO,
   {.name = "given-up",
    .title = "nobody_waits_when_state_is_gone",
    .steps = 6,
    .timeout_s = 120,
    .check = check_given_up,
    .is_done = is_counted,
    APART,
    .mishaps = WEATHER | MISHAP(MISHAP_KILL_PS) | MISHAP(MISHAP_KILL),
    OPEN}},
  {TWO_TWO, {.name = "saved", .title = "saving_changes_nothing", COUNTS, TOGETHER, SAVED, .mishaps = MISHAP(MISHAP_CLOCK)}},
  {ONE_ONE, {.name = "ps-1", .title = "a_ps_that_is_killed_goes_on_from_its_checkpoint", COUNTS, APART, SAVED, .mishaps = KILLS_PS, OPEN}},
  {TWO_TWO, {.name = "ps", .title = "all_ps_go_back_to_one_checkpoint", COUNTS, APART, SAVED, .mishaps = KILLS_PS, OPEN}},
  {TWO_ONE,
   {.name = "full",
    .title = "training_goes_on_when_disks_are_full",
    .steps = 6,
    .timeout_s = 120,
    .check = check_counts_full,
    TOGETHER,
    SAVED,
    .mishaps = WEATHER | MISHAP(MISHAP_FULL),
    OPEN}},
  {SYNC, {.name = "rounds", .title = "rounds_give_what_they_give_when_nothing_goes_wrong", VALUES, TOGETHER, .mishaps = WEATHER}},
  {SYNC, {.name = "rounds-net", .title = "rounds_wait_for_members_out_of_reach", VALUES, TOGETHER, .mishaps = NET}},
  {SYNC, {.name = "rounds-kills", .title = "rounds_wait_for_members_that_are_killed", VALUES_KILLED, TOGETHER, .mishaps = KILLS, OPEN}},
  {ALLREDUCE, {.name = "replicas", .title = "replicas_are_equal_when_nothing_goes_wrong", VALUES, TOGETHER, .mishaps = WEATHER}},
  {ALLREDUCE, {.name = "replicas-net", .title = "replicas_are_equal_when_some_were_out_of_reach", VALUES, TOGETHER, .mishaps = NET}},
  {ALLREDUCE,
   {.name = "replicas-kills", .title = "replicas_are_equal_when_some_were_killed", VALUES_KILLED, TOGETHER, .mishaps = KILLS, OPEN}},
  {TOKENS, {.name = "tokens", .title = "each_worker_gets_its_token_of_a_round", VALUES, TOGETHER, .mishaps = WEATHER}},
  {TOKENS,
   {.name = "tokens-kills",
    .title = "rounds_with_tokens_lose_nothing_when_workers_are_killed",
    .steps = 16,
    .timeout_s = 120,
    .check = check_values_killed,
    TOGETHER,
    .mishaps = KILLS}},
};
/* A row for each mechanism that has a FAULT beside it: numbers as in runtime/program/fault.h's users. */
static const struct planted planted_faults[] = {
  {23, "rounds-kills", "one ps decides for all when a round is complete"},
  {1, "kills", "a step that a ps has is not applied again"},
  {2, "kills", "a worker goes on behind what all ps have"},
  {8, "kills", "what is initialised is not initialised again"},
  {19, "kills", "only the coordinator refuses for good"},
  {21, "kills", "a link that is dialled again goes on where it was"},
  {26, "rounds", "who reads waits for the round's version"},
  {28, "replicas-kills", "a replica that is started again copies the state"},
  {35, "tokens-kills", "what a half-done step has given is kept for its next try"},
  {0, NULL, NULL},
};
const struct planted *planted(void) { return planted_faults; }

#define COUNT (sizeof table / sizeof *table)

struct scenario *scenarios(void) {
  static struct scenario list[COUNT + 1];
  for (size_t i = 0; i < COUNT && !list[i].name; i++)
    list[i] = table[i].scenario;
  return list;
}

void scenario_build(struct scenario *scenario) {
  static struct job *jobs[SHAPES];
  enum shape shape = table[scenario - scenarios()].shape;
  if (!jobs[shape] && shapes[shape].model && !shapes[shape].strategy)
    jobs[shape] = job_of_tokens(shapes[shape].name, shapes[shape].model, shapes[shape].ps, shapes[shape].workers);
  if (!jobs[shape])
    jobs[shape] = shapes[shape].model
                  ? job_of_model(shapes[shape].name, shapes[shape].model, shapes[shape].strategy, shapes[shape].ps, shapes[shape].workers)
                  : job_counting(shapes[shape].name, shapes[shape].ps, shapes[shape].workers);
  scenario->job = jobs[shape];
}

struct scenario *scenario_find(const char *name) {
  for (struct scenario *scenario = scenarios(); scenario->name; scenario++)
    if (strcmp(scenario->name, name) == 0)
      return scenario;
  return NULL;
}
