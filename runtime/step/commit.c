/* commit.c: see commit.h. A count of those inside and a flag; the lock is taken only while somebody freezes. */
#include "runtime/step/commit.h"

#include <stdlib.h>

#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"
#include "runtime/step/record.h"
#include "runtime/step/task_state.h"

void commit_init(struct commit *commit) {
  *commit = (struct commit){0};
  pthread_mutex_init(&commit->lock, NULL);
  monotonic_cond_init(&commit->changed);
}

void commit_deinit(struct commit *commit) {
  while (commit->records) {
    struct record *record = commit->records;
    commit->records = record->next;
    record_destroy(record);
  }
  free(commit->asked);
  ledger_deinit(&commit->ledger);
  driver_states_clear(&commit->states);
  pthread_cond_destroy(&commit->changed);
  pthread_mutex_destroy(&commit->lock);
}

/* ---- steps ---- */

static void wake(struct commit *commit) {
  pthread_mutex_lock(&commit->lock);
  pthread_cond_broadcast(&commit->changed);
  pthread_mutex_unlock(&commit->lock);
}

void commit_leave(struct commit *commit) {
  if (atomic_fetch_sub(&commit->inside, 1) == 1 && atomic_load(&commit->is_closed))
    wake(commit);
}

/* Under the lock. */
static status record_get(struct commit *commit, uint32_t driver, uint32_t lane, struct record **out) {
  for (*out = commit->records; *out; *out = (*out)->next)
    if ((*out)->driver == driver && (*out)->lane == lane)
      return OK;
  TRY(record_create(driver, lane, out));
  (*out)->next = commit->records;
  commit->records = *out;
  return OK;
}

/* Under the lock. Before the first restore nobody need ask: there is nothing to ask for, or it was asked by its
 * successor. */
static bool has_asked(const struct commit *commit, uint32_t driver, uint32_t lane) {
  uint32_t era = atomic_load(&commit->era);
  for (uint32_t i = 0; i < commit->asked_count; i++)
    if (commit->asked[i].driver == driver && commit->asked[i].lane == lane)
      return commit->asked[i].era == era;
  return era == 0;
}

static status note_asked(struct commit *commit, uint32_t driver, uint32_t lane) {
  uint32_t i = 0;
  while (i < commit->asked_count && (commit->asked[i].driver != driver || commit->asked[i].lane != lane))
    i++;
  if (i == commit->asked_count) {
    struct asked *grown = realloc(commit->asked, (i + 1) * sizeof *grown);
    if (!grown)
      return fail(RESOURCE_EXHAUSTED, "no memory");
    commit->asked = grown;
    commit->asked_count++;
  }
  commit->asked[i] = (struct asked){driver, lane, atomic_load(&commit->era)};
  return OK;
}

static bool is_holder(const struct task *task) { return program_task(task->program, task->program->task)->flags & PROGRAM_TASK_HOLDS; }

/* Under the lock. Whether the step is to change something here. */
static status judge(const struct commit *commit, struct step *step) {
  if (commit->is_silent) /* what it would change is about to be put back */
    return fail(ABORTED, "%s goes back to a checkpoint", step->task->name);
  if (step->is_once) {
    step->is_dry = commit->ledger.initialised && !FAULT(8);
    return OK;
  }
  if (!has_asked(commit, step->driver, serial_lane(step->serial)))
    return fail(ABORTED, "variables were restored: the driver is to ask which steps they have");
  enum ledger_verdict verdict = ledger_judge(&commit->ledger, step->driver, step->command, step->serial);
  step->is_dry = verdict == LEDGER_DRY;
  if (verdict == LEDGER_STALE)
    return fail(ABORTED, "step %llu is of command %u of its driver, which is over", (unsigned long long)serial_count(step->serial),
                step->command);
  if (verdict == LEDGER_GAP && is_holder(step->task)) /* others are not asked what they have: they come and go */
    return fail(INTERNAL, "step %llu of command %u of its driver came, and steps before it are missing here",
                (unsigned long long)serial_count(step->serial), step->command);
  return OK;
}

/* Steps of `init` are one stream, whoever drives them. */
#define ONCE_DRIVER UINT32_MAX

status commit_judge(struct commit *commit, struct step *step) {
  step->era = atomic_load(&commit->era);
  if (step->serial == 0 && !step->is_once)
    return OK;
  pthread_mutex_lock(&commit->lock);
  step->era = atomic_load(&commit->era);
  status result = judge(commit, step);
  if (result == OK)
    result = record_get(commit, step->is_once ? ONCE_DRIVER : step->driver, serial_lane(step->serial), &step->record);
  /* a driver that prepares itself once more does an old step again: what is kept of a newer one stays */
  bool is_old = result == OK && step->is_dry && !step->is_once && step->command == step->record->command &&
                serial_count(step->serial) < serial_count(step->record->serial);
  if (is_old)
    step->record = NULL;
  else if (result == OK)
    record_begin(step->record, step->command, step->serial);
  pthread_mutex_unlock(&commit->lock);
  return result;
}

void commit_note_open(struct commit *commit, const struct step *step) {
  if (step->serial == 0 || step->is_dry)
    return;
  pthread_mutex_lock(&commit->lock);
  bool is_noted = ledger_open(&commit->ledger, step->driver, step->command, step->serial) == OK;
  pthread_mutex_unlock(&commit->lock);
  (void)is_noted; /* without memory a cut comes between its changes: as it would without this note */
}

status commit_step(struct commit *commit, const struct step *step) {
  status result = OK;
  pthread_mutex_lock(&commit->lock);
  if (step->is_once)
    commit->ledger.initialised = commit->has_run_init = true;
  else if (step->serial > 0 && !step->is_dry)
    result = ledger_commit(&commit->ledger, step->driver, step->command, step->serial);
  pthread_mutex_unlock(&commit->lock);
  return result;
}

static void wait_for_thaw(struct commit *commit, uint32_t driver, uint32_t command, uint64_t serial) {
  pthread_mutex_lock(&commit->lock);
  while (commit->is_frozen && !commit->is_stopped && !(commit->passes && commit->passes(commit->passes_self, driver, command, serial)))
    pthread_cond_wait(&commit->changed, &commit->lock);
  atomic_fetch_add(&commit->inside, 1);
  pthread_mutex_unlock(&commit->lock);
}

status commit_enter(struct commit *commit, uint32_t driver, uint32_t command, uint64_t serial, uint32_t era) {
  atomic_fetch_add(&commit->inside, 1);
  if (__builtin_expect(atomic_load(&commit->is_closed), 0)) {
    commit_leave(commit);
    wait_for_thaw(commit, driver, command, serial);
    pthread_mutex_lock(&commit->lock);
    bool is_late = commit->is_frozen && commit->is_stopped;
    pthread_mutex_unlock(&commit->lock);
    if (is_late) {
      commit_leave(commit);
      return fail(ABORTED, "the task is stopping");
    }
  }
  if (atomic_load_explicit(&commit->era, memory_order_relaxed) == era)
    return OK;
  commit_leave(commit);
  return fail(ABORTED, "variables were restored while the step was under way");
}

void commit_stop(struct commit *commit) {
  pthread_mutex_lock(&commit->lock);
  commit->is_stopped = true;
  pthread_cond_broadcast(&commit->changed);
  pthread_mutex_unlock(&commit->lock);
}

/* ---- who freezes ---- */

/* Under the lock. */
static bool wait_quiet(struct commit *commit, uint32_t wait_ms) {
  uint64_t until_ms = monotonic_ms() + wait_ms;
  while (atomic_load(&commit->inside) > 0)
    if (!monotonic_wait(&commit->changed, &commit->lock, until_ms))
      return atomic_load(&commit->inside) == 0;
  return true;
}

/* Under the lock. */
static void thaw(struct commit *commit) {
  commit->is_frozen = false;
  commit->passes = NULL;
  atomic_store(&commit->is_closed, false);
  pthread_cond_broadcast(&commit->changed);
}

bool commit_freeze(struct task *task, uint32_t wait_ms) {
  struct commit *commit = &task->commit;
  pthread_mutex_lock(&commit->lock);
  bool is_ours = !commit->is_frozen, is_quiet = false;
  if (is_ours) {
    commit->is_frozen = true;
    atomic_store(&commit->is_closed, true);
    is_quiet = wait_quiet(commit, wait_ms);
    if (!is_quiet)
      thaw(commit);
  }
  pthread_mutex_unlock(&commit->lock);
  return is_quiet;
}

void commit_let_pass(struct task *task, commit_passes *passes, void *self) {
  struct commit *commit = &task->commit;
  pthread_mutex_lock(&commit->lock);
  commit->passes = passes;
  commit->passes_self = self;
  pthread_cond_broadcast(&commit->changed);
  pthread_mutex_unlock(&commit->lock);
}

bool commit_quiet(struct task *task, uint32_t wait_ms) {
  pthread_mutex_lock(&task->commit.lock);
  bool is_quiet = wait_quiet(&task->commit, wait_ms);
  pthread_mutex_unlock(&task->commit.lock);
  return is_quiet;
}

void commit_thaw(struct task *task) {
  pthread_mutex_lock(&task->commit.lock);
  thaw(&task->commit);
  pthread_mutex_unlock(&task->commit.lock);
}

status commit_ledger(struct task *task, struct ledger *out) {
  pthread_mutex_lock(&task->commit.lock);
  status result = ledger_copy(&task->commit.ledger, out);
  pthread_mutex_unlock(&task->commit.lock);
  return result;
}

status commit_restore(struct task *task, const struct ledger *ledger) {
  pthread_mutex_lock(&task->commit.lock);
  status result = ledger_copy(ledger, &task->commit.ledger);
  if (result == OK)
    atomic_fetch_add(&task->commit.era, 1);
  for (struct record *record = task->commit.records; record && result == OK; record = record->next)
    record_clear(record);
  if (result == OK)
    driver_states_clear(&task->commit.states);
  pthread_mutex_unlock(&task->commit.lock);
  return result;
}

status commit_keep_state(struct task *task, const struct driver_state *state) {
  pthread_mutex_lock(&task->commit.lock);
  status result = driver_states_put(&task->commit.states, state);
  pthread_mutex_unlock(&task->commit.lock);
  return result;
}

void commit_put_back(struct task *task, bool puts_back) { task->commit.puts_back = puts_back; }

void commit_each_state(struct task *task, void (*found)(void *self, const struct driver_state *state), void *self) {
  pthread_mutex_lock(&task->commit.lock);
  for (uint32_t i = 0; i < task->commit.states.items.count; i++)
    found(self, &task->commit.states.items.items[i]);
  pthread_mutex_unlock(&task->commit.lock);
}

status commit_other(struct task *task, uint32_t driver, uint32_t command, uint64_t serial) {
  pthread_mutex_lock(&task->commit.lock);
  status result = serial > 0 ? ledger_commit(&task->commit.ledger, driver, command, serial) : OK;
  pthread_mutex_unlock(&task->commit.lock);
  return result;
}

status commit_place(struct task *task, uint32_t driver, uint32_t command, uint64_t last) {
  pthread_mutex_lock(&task->commit.lock);
  status result = ledger_rewind(&task->commit.ledger, driver, command, last);
  if (result == OK)
    result = note_asked(&task->commit, driver, serial_lane(last));
  pthread_mutex_unlock(&task->commit.lock);
  return result;
}

bool commit_has(struct task *task, uint32_t driver, uint32_t command, uint64_t serial) {
  pthread_mutex_lock(&task->commit.lock);
  enum ledger_verdict verdict = serial > 0 ? ledger_judge(&task->commit.ledger, driver, command, serial) : LEDGER_RUN;
  pthread_mutex_unlock(&task->commit.lock);
  return verdict == LEDGER_DRY;
}

void commit_finish(struct task *task, uint32_t driver, bool finished) {
  pthread_mutex_lock(&task->commit.lock);
  ledger_finish(&task->commit.ledger, driver, finished);
  pthread_mutex_unlock(&task->commit.lock);
}

/* Under the lock. */
static status rows_of(const struct ledger *ledger, uint32_t driver, struct ledger *out) {
  TRY(ledger_copy(ledger, out));
  out->count = 0;
  for (uint32_t i = 0; i < ledger->count; i++)
    if (ledger->rows[i].driver == driver)
      out->rows[out->count++] = ledger->rows[i];
  return OK;
}

status commit_ask(struct task *task, uint32_t driver, uint32_t lane, struct ledger *out, uint64_t *history, bool *is_serving) {
  struct commit *commit = &task->commit;
  status result = OK;
  pthread_mutex_lock(&commit->lock);
  *is_serving = !commit->is_silent;
  *history = commit->history;
  if (*is_serving)
    result = note_asked(commit, driver, lane);
  if (*is_serving && result == OK)
    result = rows_of(&commit->ledger, driver, out);
  pthread_mutex_unlock(&commit->lock);
  return result;
}

bool commit_was_asked(struct task *task, uint32_t driver, uint32_t lane) {
  struct commit *commit = &task->commit;
  bool was = false;
  pthread_mutex_lock(&commit->lock);
  for (uint32_t i = 0; i < commit->asked_count; i++)
    was = was || (commit->asked[i].driver == driver && commit->asked[i].lane == lane);
  pthread_mutex_unlock(&commit->lock);
  return was;
}

void commit_hush(struct task *task) {
  pthread_mutex_lock(&task->commit.lock);
  task->commit.is_silent = true;
  pthread_mutex_unlock(&task->commit.lock);
}

void commit_serve(struct task *task, uint64_t history) {
  struct commit *commit = &task->commit;
  pthread_mutex_lock(&commit->lock);
  bool is_news = commit->is_silent;
  commit->is_silent = false;
  commit->history = history;
  pthread_mutex_unlock(&commit->lock);
  if (is_news && commit->on_serve)
    commit->on_serve(commit->on_serve_self);
}

void commit_on_serve(struct task *task, void (*on_serve)(void *self), void *self) {
  task->commit.on_serve = on_serve;
  task->commit.on_serve_self = self;
}

/* is_new: whatever was done here was done by a process that is gone. */
static status follow(struct task *task, uint32_t command, uint64_t last, bool is_new) {
  struct commit *commit = &task->commit;
  uint32_t self = task->program->task;
  pthread_mutex_lock(&commit->lock);
  const struct ledger_row *row = ledger_find(&commit->ledger, self, serial_lane(last));
  /* a step behind it that is done here and not everywhere comes again: its record answers */
  bool is_there = !is_new && row && row->command == command && (row->last == serial_count(last) || row->last == serial_count(last) + 1);
  status result = note_asked(commit, self, serial_lane(last));
  if (result == OK && !is_there)
    result = ledger_rewind(&commit->ledger, self, command, last);
  for (struct record *record = commit->records; record && !is_there; record = record->next)
    if (record->driver == self && record->lane == serial_lane(last))
      record_clear(record);
  pthread_mutex_unlock(&commit->lock);
  return result;
}

status commit_follow(struct task *task, uint32_t command, uint64_t last) { return follow(task, command, last, false); }
status commit_prepare(struct task *task, uint32_t command, uint64_t last) { return follow(task, command, last, true); }

void commit_watch(struct task *task, void (*on_commit)(void *self), void *self) {
  task->commit.on_commit = on_commit;
  task->commit.on_commit_self = self;
}
