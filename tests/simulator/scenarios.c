/* scenarios.c: the table of what is simulated. */
#include "tests/simulator/scenarios.h"

#include <string.h>

#include "tests/simulator/check.h"

enum shape { ONE_ONE, ONE_TWO, TWO_ONE, TWO_TWO, UNHELD, SYNC, ALLREDUCE, TOKENS, SHAPES };
static const struct {
  const char *name, *model, *strategy; /* model NULL: counts */
  uint32_t ps, workers;
} shapes[SHAPES] = {
  {"counting, 1 ps, 1 worker", NULL, NULL, 1, 1},
  {"counting, 1 ps, 2 workers", NULL, NULL, 1, 2},
  {"counting, 2 ps, 1 worker", NULL, NULL, 2, 1},
  {"counting, 2 ps, 2 workers", NULL, NULL, 2, 2},
  {"counting as values come, 2 ps, 2 workers", NULL, NULL, 2, 2},
  {"rounds, 2 ps, 2 workers", "strategy_ps_sync", "ps-sync", 2, 2},
  {"all-reduce, 3 workers", "strategy_allreduce", "allreduce", 0, 3},
  {"tokens, 1 ps, 2 workers", "sync_exported", NULL, 1, 2},
};

#define WEATHER (MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_CLOCK))
#define NET (WEATHER | MISHAP(MISHAP_CUT) | MISHAP(MISHAP_BLOCK) | MISHAP(MISHAP_REFUSE) | MISHAP(MISHAP_PAUSE))
#define KILLS (NET | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_POWER))
#define KILLS_PS (KILLS | MISHAP(MISHAP_KILL_PS) | MISHAP(MISHAP_POWER_PS))
#define COUNTS .steps = 6, .timeout_s = 120, .check = check_counts, .watch = watch_counts
#define VALUES .steps = 4, .timeout_s = 120, .check = check_values
#define VALUES_KILLED .steps = 4, .timeout_s = 120, .check = check_values_done, .is_done = is_finished
#define TOGETHER .spread_ns = 5 * WORLD_MS
#define APART .spread_ns = 300 * WORLD_MS
#define SAVED .with_checkpoints = true
#define OPEN .is_open = true
#define STEPS (MOMENT(MOMENT_LINK) | MOMENT(MOMENT_CHANGE) | MOMENT(MOMENT_COMMIT))
#define SAVES                                                                                                             \
  (MOMENT(MOMENT_FREEZE) | MOMENT(MOMENT_TAKE) | MOMENT(MOMENT_RENAME) | MOMENT(MOMENT_WRITE) | MOMENT(MOMENT_COMPLETE) | \
   MOMENT(MOMENT_RESTORE))

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
   {.name = "cuts", .title = "steps_are_counted_once_when_connections_break", COUNTS, TOGETHER, .mishaps = WEATHER | MISHAP(MISHAP_CUT)}},
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
    TOGETHER,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL)}},
  {ONE_TWO, {.name = "kills-1ps", .title = "steps_are_counted_once_by_one_ps_when_workers_are_killed", COUNTS, TOGETHER, .mishaps = KILLS}},
  {TWO_TWO, {.name = "twins", .title = "of_two_with_one_name_one_goes_on", COUNTS, APART, .mishaps = NET | MISHAP(MISHAP_TWIN)}},
  {TWO_TWO,
   {.name = "lost",
    .title = "others_go_on_without_a_worker",
    .steps = 6,
    .timeout_s = 120,
    .check = check_counts_lost,
    APART,
    .mishaps = NET | MISHAP(MISHAP_LOSE)}},
  {TWO_TWO,
   {.name = "given-up",
    .title = "nobody_waits_when_state_is_gone",
    .steps = 6,
    .timeout_s = 120,
    .check = check_given_up,
    APART,
    .mishaps = WEATHER | MISHAP(MISHAP_KILL_PS) | MISHAP(MISHAP_KILL)}},
  {TWO_TWO, {.name = "saved", .title = "saving_changes_nothing", COUNTS, TOGETHER, SAVED, .mishaps = MISHAP(MISHAP_CLOCK)}},
  {ONE_ONE, {.name = "ps-1", .title = "a_ps_that_is_killed_goes_on_from_its_checkpoint", COUNTS, APART, SAVED, .mishaps = KILLS_PS}},
  {TWO_TWO, {.name = "ps", .title = "all_ps_go_back_to_one_checkpoint", COUNTS, APART, SAVED, .mishaps = KILLS_PS}},
  {TWO_ONE,
   {.name = "full",
    .title = "training_goes_on_when_disks_are_full",
    .steps = 6,
    .timeout_s = 120,
    .check = check_counts_full,
    TOGETHER,
    SAVED,
    .mishaps = WEATHER | MISHAP(MISHAP_FULL)}},
  {SYNC, {.name = "rounds", .title = "rounds_give_what_they_give_when_nothing_goes_wrong", VALUES, TOGETHER, .mishaps = WEATHER}},
  {SYNC, {.name = "rounds-net", .title = "rounds_wait_for_members_out_of_reach", VALUES, TOGETHER, .mishaps = NET}},
  {SYNC, {.name = "rounds-kills", .title = "rounds_wait_for_members_that_are_killed", VALUES_KILLED, TOGETHER, .mishaps = KILLS}},
  {ALLREDUCE, {.name = "replicas", .title = "replicas_are_equal_when_nothing_goes_wrong", VALUES, TOGETHER, .mishaps = WEATHER}},
  {ALLREDUCE, {.name = "replicas-net", .title = "replicas_are_equal_when_some_were_out_of_reach", VALUES, TOGETHER, .mishaps = NET}},
  {ALLREDUCE,
   {.name = "replicas-kills", .title = "replicas_are_equal_when_some_were_killed", VALUES_KILLED, TOGETHER, .mishaps = KILLS, OPEN}},
  {TOKENS, {.name = "tokens", .title = "each_worker_gets_its_token_of_a_round", VALUES, TOGETHER, .mishaps = WEATHER}},
  {TWO_TWO,
   {.name = "moments",
    .title = "steps_are_counted_once_when_workers_are_killed_amid_them",
    COUNTS,
    TOGETHER,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_TEAR),
    .moments = STEPS}},
  {UNHELD,
   {.name = "moments-half",
    .title = "steps_that_wait_amid_their_changes_are_counted_once",
    COUNTS,
    TOGETHER,
    .redraws = true,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_TEAR),
    .moments = STEPS}},
  {TWO_TWO,
   {.name = "moments-net",
    .title = "steps_are_counted_once_when_links_are_silent_amid_them",
    COUNTS,
    TOGETHER,
    .mishaps = MISHAP(MISHAP_BLOCK) | MISHAP(MISHAP_PAUSE) | MISHAP(MISHAP_CUT),
    .moments = STEPS}},
  {TWO_TWO,
   {.name = "saved-often",
    .title = "saving_where_nothing_is_new_changes_nothing",
    COUNTS,
    TOGETHER,
    SAVED,
    .saves = "--save-seconds 0.01",
    .mishaps = MISHAP(MISHAP_SLOW)}},
  {TWO_TWO,
   {.name = "stops",
    .title = "tasks_that_are_told_to_stop_go_on_when_they_are_back",
    COUNTS,
    TOGETHER,
    SAVED,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_TERM)}},
  {TWO_TWO,
   {.name = "wiped",
    .title = "a_ps_without_its_disk_lets_the_job_begin_again",
    .steps = 6,
    .timeout_s = 120,
    .check = check_counts_wiped,
    TOGETHER,
    SAVED,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_WIPE)}},
  {ALLREDUCE,
   {.name = "elastic-replicas",
    .title = "replicas_that_come_back_have_the_state_of_the_others",
    .steps = 8,
    .timeout_s = 120,
    .check = check_replicas,
    .is_done = is_finished,
    TOGETHER,
    .more = "--elastic",
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_TEAR) | MISHAP(MISHAP_CUT),
    .moments = STEPS | MOMENT(MOMENT_ROUND) | MOMENT(MOMENT_ADMIT),
    OPEN}},
  {SYNC,
   {.name = "elastic",
    .title = "rounds_without_a_lost_member_have_equal_members",
    .steps = 8,
    .timeout_s = 120,
    .check = check_exit_codes,
    .is_done = is_finished,
    TOGETHER,
    .more = "--elastic",
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_TEAR) | MISHAP(MISHAP_CUT),
    .moments = STEPS | MOMENT(MOMENT_ROUND)}},
  {SYNC,
   {.name = "fewer",
    .title = "one_with_fewer_steps_ends_the_others_in_words",
    .steps = 8,
    .fewer = 4,
    .timeout_s = 120,
    .check = check_fewer,
    TOGETHER,
    .mishaps = WEATHER}},
  {ALLREDUCE,
   {.name = "fewer-replicas",
    .title = "a_replica_with_fewer_steps_ends_the_others_in_words",
    .steps = 8,
    .fewer = 4,
    .timeout_s = 120,
    .check = check_fewer,
    TOGETHER,
    .mishaps = WEATHER}},
  {SYNC,
   {.name = "elastic-fewer",
    .title = "rounds_go_on_without_one_that_has_fewer_steps",
    .steps = 8,
    .fewer = 4,
    .timeout_s = 120,
    .check = check_exit_codes,
    .is_done = is_finished,
    TOGETHER,
    .more = "--elastic",
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_TEAR) | MISHAP(MISHAP_CUT),
    .moments = STEPS | MOMENT(MOMENT_ROUND)}},
  {ALLREDUCE,
   {.name = "elastic-replicas-fewer",
    .title = "replicas_go_on_without_one_that_has_fewer_steps",
    .steps = 8,
    .fewer = 4,
    .timeout_s = 120,
    .check = check_replicas,
    .is_done = is_finished,
    TOGETHER,
    .more = "--elastic",
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_TEAR) | MISHAP(MISHAP_CUT),
    .moments = STEPS | MOMENT(MOMENT_ROUND) | MOMENT(MOMENT_ADMIT),
    OPEN}},
  {TOKENS,
   {.name = "tokens-late",
    .title = "a_worker_that_is_late_finds_its_tokens",
    VALUES,
    APART,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_PAUSE)}},
  {TWO_TWO,
   {.name = "moments-cut",
    .title = "steps_are_counted_once_when_connections_break_amid_them",
    COUNTS,
    TOGETHER,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_CUT),
    .moments = STEPS}},
  {TWO_TWO,
   {.name = "moments-saved",
    .title = "all_ps_go_back_to_one_checkpoint_when_killed_while_they_save",
    COUNTS,
    TOGETHER,
    SAVED,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL_PS) | MISHAP(MISHAP_POWER_PS) | MISHAP(MISHAP_KILL),
    .moments = SAVES | STEPS}},
  {ONE_ONE,
   {.name = "moments-1ps",
    .title = "a_ps_goes_back_to_its_checkpoint_when_killed_while_it_saves",
    COUNTS,
    TOGETHER,
    SAVED,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL_PS) | MISHAP(MISHAP_POWER_PS) | MISHAP(MISHAP_KILL),
    .moments = SAVES | STEPS}},
  {SYNC,
   {.name = "moments-rounds",
    .title = "rounds_wait_for_members_that_are_killed_amid_them",
    VALUES_KILLED,
    TOGETHER,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL),
    .moments = STEPS | MOMENT(MOMENT_ROUND)}},
  {ALLREDUCE,
   {.name = "moments-replicas",
    .title = "replicas_are_equal_when_some_were_killed_amid_a_round",
    VALUES_KILLED,
    TOGETHER,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL) | MISHAP(MISHAP_CUT),
    .moments = STEPS | MOMENT(MOMENT_ROUND) | MOMENT(MOMENT_ADMIT),
    OPEN}},
  {TOKENS,
   {.name = "moments-tokens",
    .title = "rounds_with_tokens_lose_nothing_when_workers_are_killed_amid_them",
    .steps = 16,
    .timeout_s = 120,
    .check = check_values_killed,
    TOGETHER,
    .mishaps = MISHAP(MISHAP_SLOW) | MISHAP(MISHAP_KILL),
    .moments = STEPS}},
  {TOKENS,
   {.name = "tokens-kills",
    .title = "rounds_with_tokens_lose_nothing_when_workers_are_killed",
    .steps = 16,
    .timeout_s = 120,
    .check = check_values_killed,
    TOGETHER,
    .mishaps = KILLS,
    OPEN}},
};
/* A row for each mechanism that has a FAULT beside it: numbers as in runtime/program/fault.h's users. */
static const struct planted planted_faults[] = {
  {1, "moments", "a step that a ps has is not applied again"},
  {2, "moments", "a worker goes on behind what all ps have"},
  {3, "moments-1ps", "a worker asks again after a restore"},
  {8, "moments", "what is initialised is not initialised again"},
  {9, "moments-saved", "commits wait while a checkpoint is cut"},
  {10, "moments-saved", "all ps go back to the same checkpoint"},
  {11, "moments-saved", "an id of a checkpoint is never used again"},
  {12, "moments-1ps", "a part is done when it is synced"},
  {13, "moments-1ps", "what a ps finds is safe before it counts"},
  {14, "moments-1ps", "who leaves is in a complete checkpoint"},
  {15, "saved", "an older checkpoint stays until the newer is complete"},
  {16, "twins", "a newcomer does not displace who lives"},
  {17, "moments-1ps", "the last steps are in the checkpoint"},
  {18, "moments-saved", "a restored job is another history"},
  {19, "kills", "only the coordinator refuses for good"},
  {20, "calm", "a step is reported when it is applied"},
  {21, "moments-cut", "a link that is dialled again goes on where it was"},
  {22, "saved-often", "an attempt that is given up lets commits go on"},
  {23, "moments-rounds", "one ps decides for all when a round is complete"},
  {24, "moments-rounds", "who has given waits for that decision"},
  {25, "elastic", "a decision names its members"},
  {26, "rounds", "who reads waits for the round's version"},
  {28, "moments-replicas", "a replica that is started again copies the state"},
  {29, "elastic-replicas", "who was not let in takes no part"},
  {30, "elastic-replicas", "survivors are made even"},
  {33, "elastic-replicas", "one that returns copies the state, too"},
  {34, "elastic-replicas", "a registrar that is started again hears all first"},
  {35, "moments-tokens", "what a half-done step has given is kept for its next try"},
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
  if (!jobs[shape] && shape == UNHELD)
    jobs[shape] = job_unheld(shapes[shape].name, shapes[shape].ps, shapes[shape].workers);
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
