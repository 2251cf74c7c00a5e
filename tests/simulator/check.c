/* check.c: what must be true when a run has ended. */
#include "tests/simulator/check.h"

#include <stdio.h>

#include "tests/simulator/run.h"

static void check_exit_codes(struct run *run) {
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++) {
    const struct run_task *task = &run->tasks[i];
    if (task->exit_code)
      run_fault(run, "%s ends with %d", task->built->name, task->exit_code);
  }
}

static void check_ps(struct run *run, const struct run_task *ps) {
  char name[32];
  int64_t count;
  float sum = 0, expected = 0;
  uint32_t workers = run->scenario->job->worker_count;
  snprintf(name, sizeof name, "hits_%u", ps->number);
  const float *hits = run_value(ps, name, &count);
  for (uint32_t i = 0; i < workers * run->scenario->steps; i++) {
    expected += (float)(i + 1);
    if (hits && hits[i] != 1) {
      run_fault(run, "step %u of worker_%u has changed %s %g times", i / workers + 1, i % workers, ps->built->name, (double)hits[i]);
      return;
    }
  }
  if (!hits)
    run_fault(run, "%s has no value of %s at its end", ps->built->name, name);
  snprintf(name, sizeof name, "sum_%u", ps->number);
  const float *total = run_value(ps, name, &count);
  sum = total ? *total : 0;
  if (sum != expected)
    run_fault(run, "%s on %s is %g, not %g", name, ps->built->name, (double)sum, (double)expected);
}

void check_counts(struct run *run) {
  check_exit_codes(run);
  for (uint32_t i = 0; i < run->scenario->job->task_count && !run->report->has_failed; i++)
    if (run->tasks[i].built->is_ps)
      check_ps(run, &run->tasks[i]);
}
