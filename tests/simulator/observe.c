/* observe.c: the linker leads what begins and ends a task of the simulated library here. */
#include "tests/simulator/observe.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory/variable.h"
#include "runtime/step/task_state.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/moment.h"
#include "tests/simulator/process.h"
#include "tests/simulator/world.h"

struct job;
struct peer;

status __wrap_task_create(const struct program *program, const struct kernel_code *kernels, int threads, struct task **out);
void __wrap_task_destroy(struct task *task);

status __wrap_task_create(const struct program *program, const struct kernel_code *kernels, int threads, struct task **out) {
  status result = task_create(program, kernels, threads, out);
  if (result == OK)
    process_self()->task = *out;
  return result;
}

void job_say_gone(struct job *job, uint32_t command);
void __wrap_job_say_gone(struct job *job, uint32_t command);
void __wrap_job_say_gone(struct job *job, uint32_t command) {
  process_self()->is_leaving = true;
  job_say_gone(job, command);
}

status __wrap_variable_copy(struct variable *variable, struct tensor **out);
status __wrap_variable_copy(struct variable *variable, struct tensor **out) {
  *out = NULL;
  return world_now() < process_self()->machine->copies_ns ? RESOURCE_EXHAUSTED : variable_copy(variable, out);
}

void peer_say_bye(struct peer *peer);
void __wrap_peer_say_bye(struct peer *peer);
void __wrap_peer_say_bye(struct peer *peer) {
  process_self()->is_leaving = true;
  moment_came(MOMENT_BYE, process_number(process_self()));
  peer_say_bye(peer);
}

static void keep(struct process *process, const struct variable *variable) {
  if (!variable->value || variable->dtype != DTYPE_FLOAT || !atomic_load(&variable->initialized))
    return;
  size_t size = (size_t)variable->value->count * sizeof(float);
  struct observed *observed = calloc(1, sizeof *observed);
  if (!observed || !(observed->values = malloc(size + 1)))
    abort();
  observed->name = strdup(variable->name);
  observed->count = variable->value->count;
  memcpy(observed->values, variable->value->data, size);
  vec_push(&process->kept, observed);
}

void __wrap_task_destroy(struct task *task) {
  struct process *process = process_self();
  for (uint32_t i = 0; task && i < task->variable_count; i++)
    keep(process, &task->variables[i]);
  process->task = NULL;
  task_destroy(task);
}

const struct observed *observe(const struct process *process, const char *variable) {
  static struct observed now;
  const struct task *task = process->task;
  for (uint32_t i = 0; task && i < task->variable_count; i++) {
    const struct variable *v = &task->variables[i];
    if (strcmp(v->name, variable) != 0 || !v->value || !atomic_load(&v->initialized))
      continue;
    now = (struct observed){v->name, v->value->count, (float *)v->value->data};
    return &now;
  }
  for (uint32_t i = 0; !task && i < process->kept.count; i++)
    if (strcmp(process->kept.items[i]->name, variable) == 0)
      return process->kept.items[i];
  return NULL;
}

void observe_all(const struct process *process, void (*see)(void *self, const struct observed *observed), void *self) {
  for (uint32_t i = 0; i < process->kept.count; i++)
    see(self, process->kept.items[i]);
}

bool observe_finished(const struct process *process) {
  const struct task *task = process->task;
  const struct ledger *ledger = task ? &task->commit.ledger : NULL;
  for (uint32_t i = 0; ledger && i < ledger->count; i++)
    if (ledger->rows[i].driver == task->program->task && ledger->rows[i].lane == 0)
      return ledger->rows[i].finished;
  return false;
}
