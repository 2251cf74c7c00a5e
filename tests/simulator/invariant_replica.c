/* invariant_replica.c: replicas are equal after each round, and no round that a living one has is undone. */
#include "runtime/cluster/view.h"
#include "runtime/memory/variable.h"
#include "runtime/program/program.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/task_state.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/invariant.h"
#include "tests/simulator/moment.h"
#include "tests/simulator/process.h"

static bool is_replicated(void) { return invariants_run()->scenario->job->ps_count == 0; }

static struct ledger_row row_of(uint32_t number) {
  const struct task *task = invariants_task(number);
  const struct ledger_row *row = task ? invariants_row(&task->commit.ledger, number, 0) : NULL;
  return row ? *row : (struct ledger_row){0};
}

static uint64_t last_of(uint32_t number) { return row_of(number).last; }

/* ---- I12: what all had done ---- */

static struct {
  uint64_t reached[JOB_TASKS_MAX]; /* by each, as far as somebody who lives has it */
  uint64_t living;                 /* by one who lives */
} replicas;

static void look_at_reached(void) {
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

/* ---- I12: what one has who lives ----
 *
 * A view begins when its registrar has the state that it gives to whoever is let in: at that moment no replica that lives may have done a
 * round which that state lacks. Where it may, it is not always seen in what comes later: they all copy the older state, and make the rounds
 * again. Nor does who lives ever lose a round. */

static void look_at_beginning(uint32_t registrar) {
  uint64_t from = last_of(registrar);
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count; i++)
    if (last_of(i) > from)
      run_fault(invariants_run(), "I12: a view begins after round %llu, and %s, which lives, has done round %llu", (unsigned long long)from,
                invariants_name(i), (unsigned long long)last_of(i));
}

void __wrap_view_settle(struct view *v);
void __wrap_view_settle(struct view *v) {
  view_settle(v);
  if (v->phase == VIEW_SERVES)
    look_at_beginning(process_number(process_self()));
}

void __wrap_view_fetched(struct view *v, bool is_here, uint64_t number);
void __wrap_view_fetched(struct view *v, bool is_here, uint64_t number) {
  view_fetched(v, is_here, number);
  if (v->phase == VIEW_SERVES)
    look_at_beginning(process_number(process_self()));
}

uint64_t __wrap_view_begin(struct view *v);
uint64_t __wrap_view_begin(struct view *v) {
  look_at_beginning(process_number(process_self()));
  return view_begin(v);
}

static struct {
  uint32_t process; /* its id: of one life */
  uint32_t command; /* the next one counts anew */
  uint64_t last;
} lives[JOB_TASKS_MAX];

static void look_at_life(uint32_t number) {
  if (!invariants_task(number))
    return;
  uint32_t process = invariants_run()->tasks[number].process->id;
  struct ledger_row now = row_of(number);
  if (process == lives[number].process && now.command == lives[number].command && now.last < lives[number].last)
    run_fault(invariants_run(), "I12: %s goes back from round %llu to %llu", invariants_name(number),
              (unsigned long long)lives[number].last, (unsigned long long)now.last);
  lives[number].process = process;
  lives[number].command = now.command;
  lives[number].last = now.last;
}

/* ---- I9: equal values ---- */

static struct {
  uint64_t hash;
  bool is_known;
} values_after[1024]; /* a round */

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

void invariants_replica_saves(const struct task *task) {
  uint64_t last = last_of(task->program->task);
  if (is_replicated() && last && last < 1024 && values_after[last].is_known && values_after[last].hash != hash_of(task))
    run_fault(invariants_run(), "I5: %s saves other values as those of round %llu", invariants_name(task->program->task),
              (unsigned long long)last);
}

/* ---- looking ---- */

void invariants_look_at_replicas(void) {
  look_at_reached();
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count && is_replicated(); i++)
    look_at_life(i);
}

/* ---- moments ---- */

void __wrap_hall_admit(struct hall *hall, uint32_t task);
void __wrap_hall_admit(struct hall *hall, uint32_t task) {
  hall_admit(hall, task);
  moment_came(MOMENT_ADMIT, task);
}
