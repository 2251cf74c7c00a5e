/* check.c: what must be true when a run has ended. */
#include "tests/simulator/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulator/disk.h"
#include "tests/simulator/observe.h"
#include "tests/simulator/process.h"
#include "tests/simulator/run.h"

#define GRACE_NS (10 * WORLD_S) /* 5 s after a time-out, and the end itself */

/* ---- exit codes ---- */

/* Who has said that it leaves for good when it is killed has finished: what is started again under its name is the next command, which
 * counts anew, and may find nobody any more. */
static bool begins_anew(const struct run_task *worker) { return !worker->built->is_ps && worker->was_leaving; }

/* Of two with one name, the one that gets there when the other has left well: another command, too, which may find nobody. */
static bool came_after(const struct run_task *first, const struct run_task *second) {
  return second->starts && second->exit_code == 69 && first->exit_code == 0;
}

static bool somebody_begins_anew(const struct run *run) {
  bool any = false;
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++)
    any = any || begins_anew(&run->tasks[i]) || came_after(&run->tasks[i], &run->twins[i]);
  return any;
}

/* A ps that is killed when all is done, and comes back, may find that all others have left well: its checkpoint is complete (check_ps says
 * so, and I6), 69 is told by the ps. */
static bool came_back_to_nobody(const struct run *run, const struct run_task *ps) {
  const struct job *job = run->scenario->job;
  bool all_left_well = ps->built->is_ps && run->scenario->with_checkpoints && ps->was_killed;
  for (uint32_t i = job->ps_count; i < job->task_count; i++)
    all_left_well = all_left_well && run->tasks[i].exit_code == 0;
  return all_left_well;
}

static void check_exit_code(struct run *run, const struct run_task *task, const struct run_task *twin) {
  bool twin_is_told = task->exit_code == 0 && (twin->exit_code == 65 || came_after(task, twin));
  bool task_is_told = twin->exit_code == 0 && (task->exit_code == 65 || came_after(twin, task));
  bool one_is_told = twin->starts && (twin_is_told || task_is_told);
  if (twin->starts && task->exit_code + twin->exit_code != 0 && !one_is_told)
    run_fault(run, "%s was started twice, and they end with %d and %d", task->built->name, task->exit_code, twin->exit_code);
  bool is_of_it = task->built->is_ps || begins_anew(task) || came_after(task, twin);
  bool may_be_69 = (somebody_begins_anew(run) && is_of_it) || came_back_to_nobody(run, task), may_be_65 = begins_anew(task);
  bool is_good = !task->exit_code || (task->exit_code == 69 && may_be_69) || (task->exit_code == 65 && may_be_65);
  if (!twin->starts && !task->is_lost && !is_good)
    run_fault(run, "%s ends with %d", task->built->name, task->exit_code);
}

void check_exit_codes(struct run *run) {
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++)
    check_exit_code(run, &run->tasks[i], &run->twins[i]);
}

/* ---- counts ---- */

/* How often a step may have come: another command does it once more, on top. */
static bool count_is_good(const struct run *run, uint32_t worker, float count) {
  const struct run_task *task = &run->tasks[run->scenario->job->ps_count + worker];
  const struct run_task *twin = &run->twins[task->number];
  bool both_worked = twin->starts && task->exit_code == 0 && twin->exit_code == 0;
  if (begins_anew(task) || both_worked || came_after(task, twin) || came_after(twin, task))
    return count >= 1 && count <= 1 + (float)(begins_anew(task) ? task->anew : 1);
  return count == 1 || (task->is_lost && count == 0);
}

/* How often a step has come, whichever try of it. */
static float times(const struct run *run, const float *hits, uint32_t row) {
  return hits[row] + (run->scenario->redraws ? hits[row + JOB_REDRAWN] : 0);
}

/* What steps take from a queue (job_asking): each step that has come has had one, in order, and none is lost. */
static void check_taken(struct run *run, const struct run_task *ps, const float *hits) {
  int64_t count;
  float steps = 0;
  char name[32];
  snprintf(name, sizeof name, "taken_%u", ps->number);
  const float *taken = run_value(ps, name, &count);
  for (uint32_t i = 0; taken && i < JOB_HITS; i++)
    steps += hits[i];
  for (int64_t i = 0; taken && i < count; i++)
    if (taken[i] != ((float)i < steps ? 1 : 0))
      run_fault(run, "%s has taken number %d %g times in %g steps", ps->built->name, (int)i, (double)taken[i], (double)steps);
}

static void check_ps(struct run *run, const struct run_task *ps) {
  uint32_t workers = run->scenario->job->worker_count;
  int64_t count;
  float expected = 0;
  char name[32];
  snprintf(name, sizeof name, "hits_%u", ps->number);
  const float *hits = run_value(ps, name, &count);
  for (uint32_t i = 0; hits && i < workers * run->scenario->steps; i++) {
    float is = times(run, hits, i);
    expected += hits[i] * (float)(i + 1) + (is - hits[i]) * (float)(i + JOB_REDRAWN + 1);
    if (!count_is_good(run, i % workers, is)) {
      run_fault(run, "step %u of worker_%u has changed %s %g times", i / workers + 1, i % workers, ps->built->name, (double)is);
      return;
    }
  }
  if (!hits && !came_back_to_nobody(run, ps) && !(ps->was_killed && somebody_begins_anew(run)))
    run_fault(run, "%s has no value of %s at its end", ps->built->name, name);
  snprintf(name, sizeof name, "sum_%u", ps->number);
  const float *sum = run_value(ps, name, &count);
  if (hits && (!sum || *sum != expected))
    run_fault(run, "%s on %s is %g, not %g", name, ps->built->name, sum ? (double)*sum : NAN, (double)expected);
  if (hits)
    check_taken(run, ps, hits);
}

/* Steps of a worker on a ps, as they come: 1 .. 1 0 .. 0. */
static void watch_worker(struct run *run, const struct run_task *ps, uint32_t worker, const float *hits) {
  const struct run_task *task = &run->tasks[run->scenario->job->ps_count + worker];
  uint32_t workers = run->scenario->job->worker_count;
  if (run->twins[task->number].starts || begins_anew(task))
    return; /* it may do all once more */
  for (uint32_t step = 0; step < run->scenario->steps; step++) {
    float is = times(run, hits, step * workers + worker);
    if (is != 0 && is != 1)
      run_fault(run, "I1: step %u of %s has changed %s %g times", step + 1, task->built->name, ps->built->name, (double)is);
    if (step && is > times(run, hits, (step - 1) * workers + worker))
      run_fault(run, "I2: %s has changed %s in step %u, before step %u", task->built->name, ps->built->name, step + 1, step);
    if (is == 0 && task->has_left && task->exit_code == 0 && !ps->was_killed)
      run_fault(run, "%s has ended well, and %s has not had its step %u", task->built->name, ps->built->name, step + 1);
  }
}

void watch_counts(struct run *run) {
  const struct job *job = run->scenario->job;
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct run_task *ps = &run->tasks[i];
    char name[32];
    int64_t count;
    if (!ps->built->is_ps || !ps->process || ps->process->has_ended || !ps->process->task)
      continue;
    snprintf(name, sizeof name, "hits_%u", i);
    const float *hits = run_value(ps, name, &count);
    for (uint32_t worker = 0; hits && worker < job->worker_count; worker++)
      watch_worker(run, ps, worker, hits);
  }
}

static void check_all_ps(struct run *run) {
  for (uint32_t i = 0; i < run->scenario->job->task_count && !run->report->has_failed; i++)
    if (run->tasks[i].built->is_ps)
      check_ps(run, &run->tasks[i]);
}

/* A worker that was never started again has fetched each step's value. */
static void check_fetched(struct run *run, uint32_t worker) {
  const struct run_task *task = &run->tasks[run->scenario->job->ps_count + worker];
  uint32_t steps = run->scenario->steps;
  const struct content *file = disk_find(machine_get(task->machine)->disk, "/y.npy");
  if (task->starts != 1 || task->exit_code)
    return;
  if (!file || file->bytes.count < steps * sizeof(float)) {
    run_fault(run, "what %s has fetched is not there", task->built->name);
    return;
  }
  const char *values = file->bytes.items + file->bytes.count - steps * sizeof(float);
  for (uint32_t step = 0; step < steps; step++) {
    float value, expected = 2 * (float)(step * run->scenario->job->worker_count + worker + 1);
    memcpy(&value, values + step * sizeof value, sizeof value);
    if (value != expected)
      run_fault(run, "%s has fetched %g in step %u, not %g", task->built->name, (double)value, step + 1, (double)expected);
  }
}

void check_counts(struct run *run) {
  check_exit_codes(run);
  check_all_ps(run);
  for (uint32_t i = 0; i < run->scenario->job->worker_count && !run->report->has_failed; i++)
    check_fetched(run, i);
}

void check_counts_full(struct run *run) {
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++) {
    struct run_task *task = &run->tasks[i];
    if (task->built->is_ps && task->exit_code == 74)
      task->exit_code = 0;
  }
  check_counts(run);
}

static bool all_are_initialised(const struct run *run) {
  bool all = true;
  for (uint32_t i = 0; i < run->scenario->job->ps_count; i++) {
    char name[32];
    snprintf(name, sizeof name, "sum_%u", i);
    all = all && run_value(&run->tasks[i], name, &(int64_t){0});
  }
  return all;
}

void check_counts_lost(struct run *run) {
  bool has_lost = run_had(run, MISHAP_LOSE);
  const struct run_task *chief = &run->tasks[run->scenario->job->ps_count];
  if (chief->is_lost && !all_are_initialised(run)) {
    check_given_up(run);
    return;
  }
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++) {
    struct run_task *task = &run->tasks[i];
    if (has_lost && task->built->is_ps && task->exit_code == 69)
      task->exit_code = 0; /* it says whose last step is missing */
  }
  check_exit_codes(run);
  check_all_ps(run);
}

/* A checkpoint that is nowhere any more: the job begins again, or ends where somebody has left. */
void check_counts_wiped(struct run *run) {
  bool all_well = true;
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++)
    all_well = all_well && run->tasks[i].exit_code == 0;
  if (all_well)
    check_counts(run);
  else
    check_given_up(run);
}

void check_given_up(struct run *run) {
  uint64_t latest = run->last_mishap_ns + run->scenario->timeout_s * WORLD_S + GRACE_NS;
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++) {
    const struct run_task *task = &run->tasks[i];
    if (task->exit_code != 0 && task->exit_code != 69)
      run_fault(run, "%s ends with %d", task->built->name, task->exit_code);
    if (task->process->ended_ns > latest)
      run_fault(run, "%s ends %.3f s after the last time-out", task->built->name, (double)(task->process->ended_ns - latest) / 1e9);
    int64_t count;
    char name[32];
    snprintf(name, sizeof name, "hits_%u", i);
    const float *hits = task->built->is_ps ? run_value(task, name, &count) : NULL;
    for (int64_t step = 0; hits && step < count; step++)
      if (hits[step] != 0 && !count_is_good(run, (uint32_t)step % run->scenario->job->worker_count, hits[step]))
        run_fault(run, "step %d has changed %s %g times", (int)step + 1, task->built->name, (double)hits[step]);
  }
}

/* ---- values ---- */

struct comparison {
  struct run *run;
  const struct run_task *task;
};

static void record(struct run *run, const struct run_task *task, const struct observed *observed) {
  struct run_reference *reference = run->scenario->reference;
  if (reference->count == 32 || observed->count > 2048)
    return;
  snprintf(reference->items[reference->count].task, 32, "%s", task->built->name);
  snprintf(reference->items[reference->count].variable, 64, "%s", observed->name);
  reference->items[reference->count].count = observed->count;
  memcpy(reference->items[reference->count].values, observed->values, (size_t)observed->count * sizeof(float));
  reference->count++;
}

static void compare(struct run *run, const struct run_task *task, const struct observed *observed) {
  const struct run_reference *reference = run->scenario->reference;
  for (uint32_t i = 0; i < reference->count; i++) {
    if (strcmp(reference->items[i].task, task->built->name) != 0 || strcmp(reference->items[i].variable, observed->name) != 0)
      continue;
    for (int64_t j = 0; j < observed->count && j < reference->items[i].count; j++) {
      float is = observed->values[j], expected = reference->items[i].values[j];
      if (!(fabsf(is - expected) <= 1e-5f + 1e-4f * fabsf(expected))) {
        run_fault(run, "%s of %s has %g at %d, not %g", observed->name, task->built->name, (double)is, (int)j, (double)expected);
        return;
      }
    }
  }
}

static bool has_fewer(const struct run *run, const struct run_task *task) {
  return run_has_fewer(run->scenario, task->built, run->options.seed);
}

static void see_equal(void *self, const struct observed *observed) {
  const struct comparison *c = self;
  const struct run_task *other = &c->run->tasks[has_fewer(c->run, &c->run->tasks[0])];
  if (c->run->scenario->job->ps_count || c->task->number == other->number || other->exit_code || has_fewer(c->run, c->task))
    return;
  const struct observed *first = observe(other->process, observed->name);
  if (first && memcmp(first->values, observed->values, (size_t)observed->count * sizeof(float)) != 0)
    run_fault(c->run, "%s of %s differs from that of %s", observed->name, c->task->built->name, other->built->name);
}

static void see_value(void *self, const struct observed *observed) {
  const struct comparison *c = self;
  if (somebody_begins_anew(c->run)) /* and adds to the values */
    return;
  if (c->run->options.seed == RUN_CALM_SEED)
    record(c->run, c->task, observed);
  else if (!c->run->begins_anew)
    compare(c->run, c->task, observed);
  see_equal(self, observed);
}

bool is_finished(struct run *run, const struct run_task *task) {
  (void)run; /* or when it was killed before that: it was to find out */
  return !task->built->is_ps && (task->was_done || observe_finished(task->process));
}

/* Who was killed when it had done all its steps and said so, and comes back, may find nobody any more, and says so with 69: it has no state
 * then. The others end well, with their values, all the same. */
static void check_done(struct run *run, void (*see)(void *comparison, const struct observed *observed)) {
  uint32_t count = run->scenario->job->task_count;
  bool found_nobody[JOB_TASKS_MAX];
  int codes[JOB_TASKS_MAX];
  for (uint32_t i = 0; i < count; i++) {
    struct run_task *task = &run->tasks[i];
    found_nobody[i] = task->was_done && task->exit_code == 69;
    codes[i] = task->exit_code;
    task->exit_code = found_nobody[i] ? 0 : task->exit_code;
    task->was_done = false;
  }
  check_exit_codes(run);
  for (uint32_t i = 0; i < count; i++)
    run->tasks[i].exit_code = codes[i];
  for (uint32_t i = 0; i < count && !run->report->has_failed; i++)
    if (!found_nobody[i])
      observe_all(run->tasks[i].process, see, &(struct comparison){run, &run->tasks[i]});
}

void check_values_done(struct run *run) { check_done(run, see_value); }
void check_replicas(struct run *run) { check_done(run, see_equal); }

void check_values(struct run *run) {
  check_exit_codes(run);
  for (uint32_t i = 0; i < run->scenario->job->task_count && !run->report->has_failed; i++)
    observe_all(run->tasks[i].process, see_value, &(struct comparison){run, &run->tasks[i]});
}

void check_fewer(struct run *run) {
  for (uint32_t i = run->scenario->job->ps_count; i < run->scenario->job->task_count; i++) {
    const struct run_task *task = &run->tasks[i];
    bool is_registrar = task->number == 0; /* its work is not done when it has finished: others have not */
    int expected = !has_fewer(run, task) ? 65 : is_registrar && task->exit_code ? 69 : 0;
    if (task->exit_code != expected)
      run_fault(run, "%s ends with %d, not %d", task->built->name, task->exit_code, expected);
  }
}
