/* tokens.c: looks at accumulators and queues of tokens through the task's container; how long a task is missing, the
 * hall's peers know. */
#include "runtime/step/tokens.h"

#include <stdio.h>
#include <string.h>

#include "runtime/memory/container.h"
#include "runtime/resource/accumulator.h"
#include "runtime/resource/meeting.h"
#include "runtime/resource/queue.h"
#include "runtime/step/task_state.h"

struct absence {
  uint32_t replica;
  bool may_leave, is_needed, stops;
  const char *text; /* NULL: it is not late yet */
};

static void miss(void *self, struct resource *resource) {
  struct absence *absence = self;
  if (!accumulator_miss((struct accumulator *)resource, absence->replica, absence->may_leave, absence->is_needed, absence->text))
    absence->stops = absence->text != NULL;
}

static void fail_tokens(void *self, struct resource *resource) {
  queue_fail_tokens((struct queue *)resource, DEADLINE_EXCEEDED, ((const struct absence *)self)->text);
}

static bool is_replica(const struct program *program, uint32_t task) {
  return strcmp(program_text(program, program_task(program, task)->job), program_text(program, program->replicated_job)) == 0;
}

static void look(struct task *task, const struct hall_peers *peers, uint32_t replica) {
  bool was_up, is_chief = replica == task->program->chief;
  uint64_t missing_ms = peers->missing_ms(peers->self, replica, &was_up);
  bool is_late = missing_ms >= peers->timeout_ms, may_leave = peers->is_elastic && was_up && !is_chief;
  char who[200], text[250];
  if (missing_ms == 0 || (!is_late && !may_leave))
    return;
  peers->describe(peers->self, replica, who, sizeof who);
  snprintf(text, sizeof text, "the round waits for %.180s, which was not there for %.3g s", who, (double)peers->timeout_ms / 1000);
  struct absence absence = {.replica = replica, .may_leave = may_leave, .is_needed = is_chief, .text = is_late ? text : NULL};
  container_each(task->container, "accumulator", miss, &absence);
  if (absence.stops || (is_chief && is_late)) /* nobody else takes gradients and gives tokens */
    container_each(task->container, "queue", fail_tokens, &absence);
}

void tokens_tick(struct task *task) {
  const struct hall_peers *peers = hall_get_peers(task->hall);
  if (!peers || !*program_text(task->program, task->program->replicated_job))
    return;
  for (uint32_t i = 0; i < task->program->tables[PROGRAM_TASKS].count; i++)
    if (i != task->program->task && is_replica(task->program, i))
      look(task, peers, i);
}

static void leave(void *replica, struct resource *resource) {
  accumulator_leave((struct accumulator *)resource, *(const uint32_t *)replica);
}

void tokens_leave(struct task *task, uint32_t replica) {
  if (is_replica(task->program, replica))
    container_each(task->container, "accumulator", leave, &replica);
}

static void reset_accumulator(void *self, struct resource *resource) {
  (void)self;
  accumulator_reset((struct accumulator *)resource);
}

static void reset_queue(void *self, struct resource *resource) {
  (void)self;
  queue_reset_tokens((struct queue *)resource);
}

void tokens_reset(struct task *task) {
  container_each(task->container, "accumulator", reset_accumulator, NULL);
  container_each(task->container, "queue", reset_queue, NULL);
}
