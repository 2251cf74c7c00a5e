/* invariant_saved.c: checkpoints of the job are of one moment, hold what those who left have done, and stay until newer ones are
 * complete. */
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/checkpoint/job.h"
#include "runtime/checkpoint/keeper.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/cluster/cut.h"
#include "runtime/cluster/history.h"
#include "runtime/step/task_state.h"
#include "tests/simulator/disk.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/invariant.h"
#include "tests/simulator/moment.h"
#include "tests/simulator/process.h"
#include "tests/simulator/world.h"

#define CLOSE_NS (500 * WORLD_MS) /* more than a slow thread needs to hear that it is to end */

/* A task's part of a checkpoint. */
struct part_saved {
  uint64_t id;
  uint32_t task;
  uint32_t row_count;
  struct ledger_row rows[32];
  char prefix[256]; /* "": it is not written yet */
  bool is_written;  /* and synced */
};
static VEC(struct part_saved) parts;
static uint64_t newest; /* the last complete one that the coordinator knows of, or that all have gone back to */
static uint64_t whole;  /* a newer one, of which all parts were written and synced before anybody gave it up; 0: there is none */

static struct part_saved *part_of(uint64_t id, uint32_t task) {
  for (uint32_t i = parts.count; i-- > 0;)
    if (parts.items[i].id == id && parts.items[i].task == task)
      return &parts.items[i];
  return NULL;
}

static const struct ledger_row *row_of(const struct part_saved *part, uint32_t driver, uint32_t lane) {
  struct ledger ledger = {.count = part->row_count, .rows = (struct ledger_row *)part->rows};
  return invariants_row(&ledger, driver, lane);
}

/* ---- I11: an id is of one attempt ----
 *
 * What comes late of one that was given up would be taken for the next one's; only seldom does anything come of it. */

static VEC(uint64_t) attempts;
static uint64_t under_way;          /* id of the present one; 0: none */
static const struct process *maker; /* the coordinator's, which may not live any more */

enum cut_message __wrap_cut_begin(struct cut *cut, uint64_t id, uint64_t now_ms);
enum cut_message __wrap_cut_begin(struct cut *cut, uint64_t id, uint64_t now_ms) {
  enum cut_message message = cut_begin(cut, id, now_ms);
  for (uint32_t i = 0; i < attempts.count && message == CUT_FREEZE; i++)
    if (attempts.items[i] == id)
      run_fault(invariants_run(), "I11: an attempt at a checkpoint has the id %llx of an earlier one", (unsigned long long)id);
  if (message == CUT_FREEZE) {
    vec_push(&attempts, id);
    under_way = id;
    maker = process_self();
  }
  return message;
}

/* Holders are told, and drop what they have written. */
static enum cut_message note_given_up(enum cut_message message) {
  if (message == CUT_ABORT) {
    whole = whole == under_way ? 0 : whole;
    under_way = 0;
  }
  return message;
}

enum cut_message __wrap_cut_refused(struct cut *cut, uint32_t holder, uint64_t id);
enum cut_message __wrap_cut_refused(struct cut *cut, uint32_t holder, uint64_t id) { return note_given_up(cut_refused(cut, holder, id)); }
enum cut_message __wrap_cut_tick(struct cut *cut, uint64_t now_ms);
enum cut_message __wrap_cut_tick(struct cut *cut, uint64_t now_ms) { return note_given_up(cut_tick(cut, now_ms)); }

/* A holder was lost: what all had written before is on their disks. */
enum cut_message __wrap_cut_lost(struct cut *cut);
enum cut_message __wrap_cut_lost(struct cut *cut) {
  under_way = 0;
  return cut_lost(cut);
}

/* ---- I5: one step of all replicas ----
 *
 * The chief saves for all: where each of them goes on is what its row says, and the values that it goes on with are the chief's. */

static void check_replicas(const struct part_saved *part) {
  const struct run *run = invariants_run();
  const struct ledger_row nothing = {0}, *own = row_of(part, part->task, 0);
  own = own ? own : &nothing;
  for (uint32_t i = 0; i < run->scenario->job->task_count && run->scenario->job->ps_count == 0; i++) {
    const struct ledger_row *row = row_of(part, i, 0);
    row = row ? row : &nothing;
    if (row->last != own->last || (row->last > 0 && row->command != own->command))
      run_fault(invariants_run(), "I5: checkpoint %llx has values of step %llu, and step %llu of %s", (unsigned long long)part->id,
                (unsigned long long)own->last, (unsigned long long)row->last, invariants_name(i));
  }
}

/* ---- what is saved ---- */

void __wrap_snapshot_take(struct task *task, const struct note_head *head, struct wire_buffer *note);
void __wrap_snapshot_take(struct task *task, const struct note_head *head, struct wire_buffer *note) {
  const struct ledger *ledger = &task->commit.ledger;
  struct part_saved part = {.id = head->id, .task = task->program->task, .row_count = ledger->count < 32 ? ledger->count : 32};
  if (part.row_count)
    memcpy(part.rows, ledger->rows, part.row_count * sizeof *ledger->rows);
  vec_push(&parts, part);
  check_replicas(&part);
  invariants_replica_saves(task);
  snapshot_take(task, head, note);
  moment_came(MOMENT_TAKE, part.task);
}

static bool all_have_written(uint64_t id) {
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count; i++) {
    const struct part_saved *part = invariants_holds(i) ? part_of(id, i) : NULL;
    if (invariants_holds(i) && !(part && part->is_written))
      return false;
  }
  return true;
}

/* From here on the checkpoint counts, if this part is the last one: no word of the coordinator's decides that. One whose coordinator is
 * gone before may be chosen, or not, as those who are asked have written theirs by then, or not. */
static void note_written(uint64_t id, uint32_t task) {
  part_of(id, task)->is_written = true;
  const struct run_task *coordinator = maker ? &invariants_run()->tasks[process_number(maker)] : NULL;
  if (id == under_way && coordinator->process == maker && !maker->has_ended && all_have_written(id))
    whole = id;
}

status __wrap_snapshot_write(struct task *task, const char *prefix, const struct wire_buffer *note);
status __wrap_snapshot_write(struct task *task, const char *prefix, const struct wire_buffer *note) {
  uint32_t number = task->program->task;
  uint64_t id = 0;
  for (uint32_t i = parts.count; i-- > 0 && !id;)
    if (parts.items[i].task == number) { /* one at a time */
      snprintf(parts.items[i].prefix, sizeof parts.items[i].prefix, "%s", prefix);
      id = parts.items[i].id;
    }
  status result = snapshot_write(task, prefix, note);
  if (result == OK && id)
    note_written(id, number);
  moment_came(MOMENT_WRITE, number);
  return result;
}

/* ---- I5: one moment ---- */

/* A driver that was away may have been given up: its last step is on some only. */
static bool may_be_uneven(uint32_t driver) {
  const struct run *run = invariants_run();
  return run->tasks[driver].was_killed || run->tasks[driver].is_lost || run_had(run, MISHAP_CUT) || run_had(run, MISHAP_BLOCK) ||
         run_had(run, MISHAP_PAUSE) || run_had(run, MISHAP_REFUSE);
}

static void compare_parts(const struct part_saved *a, const struct part_saved *b) {
  for (uint32_t i = 0; i < a->row_count; i++) {
    const struct ledger_row nothing = {.command = 1}, *row = &a->rows[i], *other = row_of(b, row->driver, row->lane);
    other = other ? other : &nothing; /* steps of each driver come to all ps */
    if (may_be_uneven(row->driver) || (row->command == other->command && row->last == other->last))
      continue;
    run_fault(invariants_run(), "I5: checkpoint %llx has step %llu of %s on %s, and step %llu on %s", (unsigned long long)a->id,
              (unsigned long long)row->last, invariants_name(row->driver), invariants_name(a->task), (unsigned long long)other->last,
              invariants_name(b->task));
  }
}

static void complete(uint64_t id) {
  const struct part_saved *first = NULL;
  newest = id > newest ? id : newest;
  whole = 0;
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count; i++) {
    const struct part_saved *part = invariants_holds(i) ? part_of(id, i) : NULL;
    if (first && part)
      compare_parts(first, part);
    first = first ? first : part;
  }
}

enum cut_message __wrap_cut_done(struct cut *cut, uint32_t holder, uint64_t id);
enum cut_message __wrap_cut_done(struct cut *cut, uint32_t holder, uint64_t id) {
  enum cut_message message = cut_done(cut, holder, id);
  if (message == CUT_COMMIT) {
    complete(id);
    under_way = 0;
    moment_came(MOMENT_WHOLE, process_number(process_self()));
  }
  return message;
}

/* ---- I11: the newest complete one is there ---- */

static bool exists(const struct disk *disk, const char *path) { return disk_find(disk, path) != NULL; }

/* is: what is asked of its files. */
static bool is_on_disk(const struct part_saved *part, bool (*is)(const struct disk *disk, const char *path)) {
  static const char *const endings[] = {".index", ".data-00000-of-00001"};
  char path[300];
  bool all = part->prefix[0] != 0;
  for (int i = 0; i < 2 && all; i++) {
    snprintf(path, sizeof path, "%s%s", part->prefix, endings[i]);
    all = is(machine_get(invariants_run()->tasks[part->task].machine)->disk, path);
  }
  return all;
}

bool invariants_have_ended(void) {
  bool have = false;
  for (uint32_t i = 0; i < parts.count && !have; i++) {
    const struct ledger_row *own = row_of(&parts.items[i], parts.items[i].task, 0);
    have = own && own->finished && is_on_disk(&parts.items[i], exists);
  }
  return have;
}

static void check_is_there(uint64_t id) {
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count && id; i++) {
    const struct part_saved *part = invariants_holds(i) && !invariants_run()->tasks[i].was_wiped ? part_of(id, i) : NULL;
    if (part && !is_on_disk(part, disk_is_safe))
      run_fault(invariants_run(), "I11: checkpoint %llx is complete, and its part of %s would not outlive a loss of power",
                (unsigned long long)id, invariants_name(i));
  }
}

static bool some_was_wiped(void) {
  for (uint32_t i = 0; i < invariants_run()->scenario->job->task_count; i++)
    if (invariants_run()->tasks[i].was_wiped)
      return true;
  return false;
}

struct history_decision __wrap_history_decide(const struct history_view *view);
struct history_decision __wrap_history_decide(const struct history_view *view) {
  struct history_decision decision = history_decide(view);
  bool goes_back = decision.verdict == HISTORY_RESTORE || decision.verdict == HISTORY_AGAIN || decision.verdict == HISTORY_LOST;
  uint64_t id = decision.verdict == HISTORY_RESTORE ? decision.id : 0;
  uint64_t wanted = whole > newest ? whole : newest;
  if (goes_back && id < wanted && !some_was_wiped())
    run_fault(invariants_run(), "I11: the job goes back to checkpoint %llx, and %llx is complete", (unsigned long long)id,
              (unsigned long long)wanted);
  if (goes_back) {
    newest = id; /* from here on it is the one that others rely on */
    whole = 0;
  }
  return decision;
}

/* ---- I5: all go back to the one that was decided ---- */

static void check_gone_back(uint32_t number, const struct ledger *ledger) {
  const struct part_saved *part = newest && !some_was_wiped() ? part_of(newest, number) : NULL;
  for (uint32_t i = 0; part && i < part->row_count; i++) {
    const struct ledger_row *saved = &part->rows[i], *row = invariants_row(ledger, saved->driver, saved->lane);
    if (!row || row->command != saved->command || row->last != saved->last)
      run_fault(invariants_run(), "I5: %s goes back to step %llu of %s, and checkpoint %llx has step %llu", invariants_name(number),
                (unsigned long long)(row ? row->last : 0), invariants_name(saved->driver), (unsigned long long)newest,
                (unsigned long long)saved->last);
  }
}

/* ---- moments ---- */

bool __wrap_commit_freeze(struct task *task, uint32_t wait_ms);
bool __wrap_commit_freeze(struct task *task, uint32_t wait_ms) {
  uint32_t number = task->program->task;
  bool is_frozen = commit_freeze(task, wait_ms);
  moment_came(MOMENT_FREEZE, number);
  return is_frozen;
}

status __wrap_commit_restore(struct task *task, const struct ledger *ledger);
status __wrap_commit_restore(struct task *task, const struct ledger *ledger) {
  uint32_t number = task->program->task;
  check_gone_back(number, ledger);
  status result = commit_restore(task, ledger);
  moment_came(MOMENT_RESTORE, number);
  return result;
}

status __wrap_keeper_complete(struct keeper *keeper, const char *name);
status __wrap_keeper_complete(struct keeper *keeper, const char *name) {
  status result = keeper_complete(keeper, name);
  moment_came(MOMENT_COMPLETE, process_number(process_self()));
  return result;
}

/* ---- who leaves ---- */

struct job_message;
void gone_take(struct job *job, uint32_t from, const struct job_message *message);
void __wrap_gone_take(struct job *job, uint32_t from, const struct job_message *message);
void __wrap_gone_take(struct job *job, uint32_t from, const struct job_message *message) {
  moment_came(MOMENT_GONE, from);
  gone_take(job, from, message);
}

/* Disks take no time here, so there is nothing to stay for: not for steps that a checkpoint lacks, however long others would wait. */
void __wrap_job_close(struct job *job);
void __wrap_job_close(struct job *job) {
  uint64_t began_ns = world_now();
  job_close(job);
  if (world_now() - began_ns > CLOSE_NS)
    run_fault(invariants_run(), "%s leaves, and stays %.3f s for a checkpoint that is not made any more", process_name(process_self()),
              (double)(world_now() - began_ns) / 1e9);
}

/* ---- I6: who has left ---- */

static void check_left(const struct run_task *worker) {
  for (uint32_t i = 0; i < invariants_run()->scenario->job->ps_count; i++) {
    const struct part_saved *part = part_of(newest, i);
    const struct ledger_row *row = part ? row_of(part, worker->number, 0) : NULL;
    if (!row || row->last < invariants_run()->scenario->steps)
      run_fault(invariants_run(), "I6: %s has left, and checkpoint %llx of %s has step %llu of it", worker->built->name,
                (unsigned long long)newest, invariants_name(i), (unsigned long long)(row ? row->last : 0));
  }
}

void invariants_look_at_saved(void) {
  const struct run *run = invariants_run();
  if (!run->scenario->with_checkpoints || some_was_wiped())
    return;
  check_is_there(newest);
  check_is_there(whole);
  for (uint32_t i = run->scenario->job->ps_count; i < run->scenario->job->task_count; i++) {
    const struct run_task *worker = &run->tasks[i];
    if (worker->has_left && worker->exit_code == 0 && !run->twins[i].starts && !run_had(run, MISHAP_FULL))
      check_left(worker);
  }
}
