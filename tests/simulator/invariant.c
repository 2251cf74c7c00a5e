/* invariant.c: the run that is looked at. */
#include "tests/simulator/invariant.h"

#include <stddef.h>

#include "runtime/program/program.h"
#include "runtime/step/task_state.h"
#include "tests/simulator/process.h"

static struct run *run_now;

void invariants_begin(struct run *run) { run_now = run; }

void invariants_look(void) {
  invariants_look_at_steps();
  invariants_look_at_saved();
  invariants_look_at_rounds();
  invariants_look_at_replicas();
}

struct run *invariants_run(void) {
  return run_now;
}

struct task *invariants_task(uint32_t number) {
  const struct process *process = run_now->tasks[number].process;
  return process && !process->has_ended ? process->task : NULL;
}

const char *invariants_name(uint32_t number) {
  return number < run_now->scenario->job->task_count ? run_now->tasks[number].built->name : "nobody";
}

bool invariants_holds(uint32_t number) {
  const struct program *program = run_now->tasks[number].built->program;
  return program_task(program, number)->flags & PROGRAM_TASK_HOLDS;
}

const struct ledger_row *invariants_row(const struct ledger *ledger, uint32_t driver, uint32_t lane) {
  for (uint32_t i = 0; i < ledger->count; i++)
    if (ledger->rows[i].driver == driver && ledger->rows[i].lane == lane)
      return &ledger->rows[i];
  return NULL;
}
