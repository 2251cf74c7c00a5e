/* invariant_step.c: steps count once, in order, whole, of one incarnation, and are reported when they are applied. */
#include <string.h>

#include "base/vec.h"
#include "runtime/cluster/cluster_state.h"
#include "runtime/program/program.h"
#include "runtime/step/task_state.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/invariant.h"
#include "tests/simulator/moment.h"
#include "tests/simulator/process.h"

/* ---- I1, I2, I4: what is committed ---- */

static uint32_t own_number(const struct task *task) { return task->program->task; }

/* A round's updates are made by one step, which commits those of the other members with its own: theirs have nothing left to change. */
struct together {
  uint32_t task, driver, command;
  uint64_t serial;
};
static VEC(struct together) together;

status __wrap_commit_other(struct task *task, uint32_t driver, uint32_t command, uint64_t serial);
status __wrap_commit_other(struct task *task, uint32_t driver, uint32_t command, uint64_t serial) {
  vec_push(&together, (struct together){own_number(task), driver, command, serial});
  return commit_other(task, driver, command, serial);
}

static bool is_of_round(const struct task *task, const struct step *step) {
  for (uint32_t i = together.count; i-- > 0;) {
    const struct together *t = &together.items[i];
    if (t->task == own_number(task) && t->driver == step->driver && t->command == step->command && t->serial == step->serial)
      return true;
  }
  return false;
}

static void judge_step(const struct task *task, const struct step *step) {
  struct run *run = invariants_run();
  const char *here = invariants_name(own_number(task)), *driver = invariants_name(step->driver);
  const struct ledger_row *row = invariants_row(&task->commit.ledger, step->driver, serial_lane(step->serial));
  unsigned long long count = serial_count(step->serial), last = row && row->command == step->command ? row->last : 0;
  if (row && step->command < row->command)
    run_fault(run, "I2: %s commits step %llu of command %u of %s, whose command %u has begun", here, count, step->command, driver,
              row->command);
  else if (count <= last && !(count == last && is_of_round(task, step)))
    run_fault(run, "I1: %s commits step %llu of %s again", here, count, driver);
  else if (count > last + 1 && invariants_holds(own_number(task)))
    run_fault(run, "I2: %s commits step %llu of %s behind step %llu", here, count, driver, last);
  if (!task->commit.ledger.initialised && task->init_entry != PROGRAM_NONE && invariants_holds(own_number(task)))
    run_fault(run, "I4: %s commits step %llu of %s and was not initialised", here, count, driver);
}

/* ---- I3: one incarnation ---- */

/* What a process has taken of another: the incarnations of before, and steps of theirs that had changed nothing when the next one came. */
struct heard {
  const struct process *process;
  uint32_t task;
  uint64_t incarnation;
  const struct channel *channel;
  VEC(uint64_t) over;
  VEC(uint64_t) fenced;
};
static VEC(struct heard) heard_of;

static struct heard *heard_by(const struct process *process, uint32_t task) {
  for (uint32_t i = 0; i < heard_of.count; i++)
    if (heard_of.items[i].process == process && heard_of.items[i].task == task)
      return &heard_of.items[i];
  vec_push(&heard_of, (struct heard){.process = process, .task = task});
  return &heard_of.items[heard_of.count - 1];
}

static bool is_among(const uint64_t *list, uint32_t count, uint64_t number) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == number)
      return true;
  return false;
}

static void fence_steps(struct heard *heard) {
  const struct task *task = heard->process->task;
  for (const struct step *step = task ? task->steps : NULL; step; step = step->next)
    if (step->driver == heard->task && !atomic_load(&step->sealed))
      vec_push(&heard->fenced, step->id);
}

void __wrap_peer_set_up(struct peer *peer, struct channel *channel);
void __wrap_peer_set_up(struct peer *peer, struct channel *channel) {
  struct heard *heard = heard_by(process_self(), peer->task);
  if (heard->incarnation && heard->incarnation != channel->greeting.key.incarnation) {
    vec_push(&heard->over, heard->incarnation);
    fence_steps(heard);
  }
  heard->incarnation = channel->greeting.key.incarnation;
  heard->channel = channel;
  uint32_t task = peer->task;
  peer_set_up(peer, channel);
  moment_came(MOMENT_LINK, task);
}

bool __wrap_peer_take(struct peer *peer, struct channel *channel, uint64_t bytes);
bool __wrap_peer_take(struct peer *peer, struct channel *channel, uint64_t bytes) {
  uint64_t incarnation = channel->greeting.key.incarnation;
  const struct process *process = process_self();
  bool is_taken = peer_take(peer, channel, bytes);
  const struct heard *heard = heard_by(process, peer->task);
  const char *here = process->name, *there = invariants_name(peer->task);
  if (is_taken && is_among(heard->over.items, heard->over.count, incarnation))
    run_fault(invariants_run(), "I3: %s takes a message of an incarnation of %s that another one has replaced", here, there);
  else if (is_taken && heard->channel != channel)
    run_fault(invariants_run(), "I3: %s takes a message of a connection of %s that another one has replaced", here, there);
  return is_taken;
}

static void check_fence(const struct task *task, const struct step *step) {
  const struct heard *heard = heard_by(process_self(), step->driver);
  if (is_among(heard->fenced.items, heard->fenced.count, step->id))
    run_fault(invariants_run(), "I3: %s commits step %llu of an incarnation of %s that another one has replaced", process_self()->name,
              (unsigned long long)serial_count(step->serial), invariants_name(step->driver));
  (void)task;
}

/* ---- I7: what is reported ---- */

/* The last step of a driver that a task has ever had. */
struct reached {
  uint32_t task, driver, lane, command;
  uint64_t last;
};
static VEC(struct reached) reached;

static struct reached *reached_by(uint32_t task, uint32_t driver, uint32_t lane) {
  for (uint32_t i = 0; i < reached.count; i++)
    if (reached.items[i].task == task && reached.items[i].driver == driver && reached.items[i].lane == lane)
      return &reached.items[i];
  vec_push(&reached, (struct reached){task, driver, lane, 0, 0});
  return &reached.items[reached.count - 1];
}

static void note_rows(uint32_t number, const struct ledger *ledger) {
  for (uint32_t i = 0; i < ledger->count; i++) {
    const struct ledger_row *row = &ledger->rows[i];
    struct reached *r = reached_by(number, row->driver, row->lane);
    if (row->command < r->command || (row->command == r->command && row->last <= r->last))
      continue;
    r->command = row->command;
    r->last = row->last;
  }
}

static void check_reported(uint32_t number, uint32_t driver, const struct run_request *request) {
  if (!invariants_holds(number) || number == driver)
    return;
  const struct reached *r = reached_by(number, driver, serial_lane(request->serial));
  uint64_t count = serial_count(request->serial);
  if (r->command < request->command || (r->command == request->command && r->last < count))
    run_fault(invariants_run(), "I7: step %llu of %s is reported as done, and %s has not committed it", (unsigned long long)count,
              invariants_name(driver), invariants_name(number));
}

status __wrap_task_run(struct task *task, uint32_t number, struct tensor *const *feeds, struct tensor **fetches,
                       const struct run_request *request);
status __wrap_task_run(struct task *task, uint32_t number, struct tensor *const *feeds, struct tensor **fetches,
                       const struct run_request *request) {
  status result = task_run(task, number, feeds, fetches, request);
  if (result != OK || !request || !request->serial)
    return result;
  struct program_range tasks = program_entry(task->program, number)->tasks;
  for (uint32_t i = 0; i < tasks.count; i++)
    check_reported(program_operands(task->program, tasks.first)[i], own_number(task), request);
  for (uint32_t i = 0; i < request->also_count; i++)
    check_reported(request->also[i], own_number(task), request);
  return result;
}

/* ---- the gate ---- */

status __wrap_commit_step(struct commit *commit, const struct step *step);
status __wrap_commit_step(struct commit *commit, const struct step *step) {
  const struct task *task = step->task;
  bool counts = !step->is_once && step->serial > 0 && !step->is_dry, is_own = step->driver == own_number(task);
  if (step->is_once && !step->is_dry && commit->ledger.initialised)
    run_fault(invariants_run(), "I4: %s is initialised again", invariants_name(own_number(task)));
  if (counts)
    judge_step(task, step);
  if (!is_own)
    check_fence(task, step);
  if (counts && is_own)
    invariants_replica_commits(task, step);
  status result = commit_step(commit, step);
  if (counts && is_own && result == OK)
    invariants_replica_committed(task, step);
  moment_came(MOMENT_COMMIT, step->driver);
  return result;
}

status __wrap_commit_enter(struct commit *commit, uint32_t driver, uint32_t command, uint64_t serial, uint32_t era);
status __wrap_commit_enter(struct commit *commit, uint32_t driver, uint32_t command, uint64_t serial, uint32_t era) {
  status result = commit_enter(commit, driver, command, serial, era);
  moment_came(MOMENT_CHANGE, driver);
  return result;
}

/* ---- looking ---- */

void invariants_look_at_steps(void) {
  const struct run *run = invariants_run();
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++) {
    const struct task *task = invariants_task(i);
    if (task)
      note_rows(i, &task->commit.ledger);
  }
}
