/* invariant_round.c: rounds have the same members everywhere, and are read whole. */
#include <stddef.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/resource/meeting_state.h"
#include "runtime/step/task_state.h"
#include "tests/simulator/invariant.h"
#include "tests/simulator/moment.h"

/* ---- I10: what counts has read one version ----
 *
 * A step of one that was lost and is back may read on one ps what a round made that another has not applied yet: nothing may come of it. */

struct reading {
  uint64_t key, step, version, other; /* other: read elsewhere; equal: none */
};
static VEC(struct reading) readings;

static void note_reading(const struct meeting *m, uint64_t step, uint64_t version) {
  for (uint32_t i = readings.count; i-- > 0;)
    if (readings.items[i].key == m->key && readings.items[i].step == step) {
      if (readings.items[i].version != version)
        readings.items[i].other = version;
      return;
    }
  vec_push(&readings, (struct reading){m->key, step, version, version});
}

static void look_at_taken(const struct meeting *m, uint64_t step) {
  for (uint32_t i = 0; i < readings.count && step; i++) {
    const struct reading *r = &readings.items[i];
    if (r->key == m->key && r->step == step && r->version != r->other)
      run_fault(invariants_run(), "I10: round %llu has taken a step that reads what %llu rounds made, and what %llu made",
                (unsigned long long)m->round.number, (unsigned long long)r->other, (unsigned long long)r->version);
  }
}

/* ---- I8: equal rounds have equal members ---- */

#define SEATS_MAX 8

struct decided {
  uint64_t key, number, taken[SEATS_MAX];
  uint32_t task;
};
static VEC(struct decided) rounds;

static void note_round(uint32_t number, const struct meeting *m) {
  struct decided now = {.key = m->key, .number = m->round.number, .task = number};
  uint32_t seats = m->round.options.seats < SEATS_MAX ? m->round.options.seats : SEATS_MAX;
  for (uint32_t i = 0; i < seats; i++) {
    now.taken[i] = m->round.seats[i].taken;
    look_at_taken(m, now.taken[i]);
  }
  for (uint32_t i = rounds.count; i-- > 0;) {
    const struct decided *then = &rounds.items[i];
    if (then->key != now.key || then->number != now.number)
      continue;
    if (memcmp(then->taken, now.taken, sizeof now.taken) != 0)
      run_fault(invariants_run(), "I8: round %llu has other members on %s than on %s", (unsigned long long)now.number,
                invariants_name(number), invariants_name(then->task));
    return;
  }
  vec_push(&rounds, now);
}

/* Rounds are counted anew by who is started again. */
static bool is_first_life(void) {
  const struct run *run = invariants_run();
  bool is = true;
  for (uint32_t i = 0; i < run->scenario->job->ps_count; i++)
    is = is && run->tasks[i].starts <= 1;
  return is;
}

/* ---- I10: nobody reads while a round is applied ---- */

enum round_answer __wrap_round_enter(struct round *r, uint32_t seat, uint64_t step, bool is_committed);
enum round_answer __wrap_round_enter(struct round *r, uint32_t seat, uint64_t step, bool is_committed) {
  const struct meeting *m = (const struct meeting *)((const char *)r - offsetof(struct meeting, round));
  enum round_phase phase = r->phase;
  bool is_of_round = r->seats[seat].taken != 0;
  enum round_answer answer = round_enter(r, seat, step, is_committed);
  if (answer != ROUND_GO || is_committed || r->seats[seat].echo == step || !is_first_life())
    return answer;
  if (phase == ROUND_LED || (phase == ROUND_DECIDED && !is_of_round))
    run_fault(invariants_run(), "I10: a step reads while round %llu is applied", (unsigned long long)r->number);
  else
    note_reading(m, step, r->number - (phase == ROUND_DECIDED));
  return answer;
}

/* ---- looking ---- */

void invariants_look_at_rounds(void) {
  const struct run *run = invariants_run();
  for (uint32_t i = 0; i < run->scenario->job->ps_count && is_first_life(); i++) {
    const struct task *task = invariants_task(i);
    for (const struct meeting *m = task && task->hall ? task->hall->meetings : NULL; m; m = m->next)
      if (m->round.number && m->round.options.holders > 1)
        note_round(i, m);
  }
}

/* ---- moments ---- */

enum round_answer __wrap_round_give(struct round *r, uint32_t seat, uint64_t step);
enum round_answer __wrap_round_give(struct round *r, uint32_t seat, uint64_t step) {
  const struct meeting *m = (const struct meeting *)((const char *)r - offsetof(struct meeting, round));
  uint32_t task = m->seats[seat];
  enum round_answer answer = round_give(r, seat, step);
  moment_came(MOMENT_ROUND, task);
  return answer;
}
