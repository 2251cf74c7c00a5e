/* invariant_round.c: rounds have the same members everywhere, are read whole, and leave replicas equal. */
#include <stddef.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/memory/variable.h"
#include "runtime/program/program.h"
#include "runtime/resource/meeting_state.h"
#include "runtime/step/task_state.h"
#include "tests/simulator/invariant.h"
#include "tests/simulator/moment.h"
#include "tests/simulator/process.h"

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

/* ---- I9, I12: replicas ---- */

static struct {
  uint64_t hash;
  bool is_known;
} values_after[1024]; /* a round */

static bool is_replicated(void) { return invariants_run()->scenario->job->ps_count == 0; }

static uint64_t hash_of(const struct task *task) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (uint32_t i = 0; i < task->variable_count; i++) {
    const struct variable *v = &task->variables[i];
    if (!v->value || v->dtype != DTYPE_FLOAT || !atomic_load(&v->initialized))
      continue;
    const unsigned char *bytes = (const unsigned char *)v->value->data;
    for (size_t at = 0; at < (size_t)v->value->count * sizeof(float); at++)
      hash = (hash ^ bytes[at]) * UINT64_C(0x100000001b3);
  }
  return hash;
}

static uint64_t last_of(uint32_t number) {
  const struct task *task = invariants_task(number);
  const struct ledger_row *row = task ? invariants_row(&task->commit.ledger, number, 0) : NULL;
  return row ? row->last : 0;
}

static struct {
  uint64_t reached[JOB_TASKS_MAX]; /* by each, as far as somebody who lives has it */
  uint64_t living;                 /* by one who lives */
} replicas;

static void look_at_replicas(void) {
  uint32_t count = is_replicated() ? invariants_run()->scenario->job->task_count : 0;
  replicas.living = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t last = last_of(i);
    replicas.reached[i] = last > replicas.reached[i] ? last : replicas.reached[i];
    replicas.living = last > replicas.living ? last : replicas.living;
  }
  for (uint32_t i = 0; i < count; i++) /* what nobody has who lives is undone */
    replicas.reached[i] = replicas.reached[i] < replicas.living ? replicas.reached[i] : replicas.living;
}

/* A round that all had done, and that somebody who lives still has. */
static uint64_t done_by_all(void) {
  uint64_t all = replicas.living;
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count; i++)
    all = replicas.reached[i] < all ? replicas.reached[i] : all;
  return all;
}

void invariants_replica_commits(const struct task *task, const struct step *step) {
  uint64_t count = serial_count(step->serial), done = is_replicated() ? done_by_all() : 0;
  if (count <= done)
    run_fault(invariants_run(), "I12: %s makes round %llu again, which all had done", invariants_name(task->program->task),
              (unsigned long long)count);
}

/* Where nobody who lives has a round it is undone, and made again in another view. */
static bool another_has(const struct task *task, uint64_t count) {
  bool has = false;
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count; i++)
    has = has || (i != task->program->task && last_of(i) >= count);
  return has;
}

void invariants_replica_committed(const struct task *task, const struct step *step) {
  uint64_t count = serial_count(step->serial);
  if (!is_replicated() || serial_lane(step->serial) || count >= 1024)
    return;
  uint64_t hash = hash_of(task);
  values_after[count].is_known = values_after[count].is_known && another_has(task, count);
  if (values_after[count].is_known && values_after[count].hash != hash)
    run_fault(invariants_run(), "I9: %s has other values after round %llu than the others", invariants_name(task->program->task),
              (unsigned long long)count);
  values_after[count].hash = hash;
  values_after[count].is_known = true;
}

/* ---- looking ---- */

void invariants_look_at_rounds(void) {
  const struct run *run = invariants_run();
  look_at_replicas();
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

void __wrap_hall_admit(struct hall *hall, uint32_t task);
void __wrap_hall_admit(struct hall *hall, uint32_t task) {
  hall_admit(hall, task);
  moment_came(MOMENT_ADMIT, task);
}
