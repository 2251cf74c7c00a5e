/* task.c: loading a program: variables with their initial values, host functions, parts, threads. */
#include "runtime/step/task.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "runtime/memory/buffer.h"
#include "runtime/memory/container.h"
#include "runtime/memory/variable.h"
#include "runtime/program/program_check.h"
#include "runtime/program/size.h"
#include "runtime/resource/meeting.h"
#include "runtime/resource/queue.h"
#include "runtime/step/crew.h"
#include "runtime/step/exchange_local.h"
#include "runtime/step/pool.h"
#include "runtime/step/task_state.h"
#include "runtime/step/transfer.h"

/* ---- loading ---- */

static status task_load_variables(struct task *task) {
  uint32_t count = (uint32_t)task->program->tables[PROGRAM_VARIABLES].count;
  task->variables = calloc((size_t)count + 1, sizeof *task->variables);
  if (!task->variables)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < count; i++, task->variable_count++)
    TRY(variable_init(&task->variables[i], task->program, i));
  return OK;
}

static status task_load_hosts(struct task *task) {
  uint32_t count = (uint32_t)task->program->tables[PROGRAM_INSTRS].count;
  task->hosts = calloc((size_t)count + 1, sizeof *task->hosts);
  if (!task->hosts)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < count; i++) {
    const struct program_instr *instr = program_instr(task->program, i);
    if (instr->op != INSTR_HOST)
      continue;
    task->hosts[i] = host_find(program_text(task->program, instr->number));
    if (!task->hosts[i])
      return fail(UNIMPLEMENTED, "%s '%s': the runtime has no function %s", program_text(task->program, instr->tf_op),
                  program_text(task->program, instr->node), program_text(task->program, instr->number));
  }
  return OK;
}

static status task_load_parts(struct task *task) {
  uint32_t count = (uint32_t)task->program->tables[PROGRAM_PARTS].count;
  task->parts = calloc((size_t)count + 1, sizeof *task->parts);
  if (!task->parts)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t e = 0; e < task->program->tables[PROGRAM_ENTRIES].count; e++) {
    const struct program_entry *entry = program_entry(task->program, e);
    const struct program_range lists[] = {entry->parts, entry->functions};
    for (int list = 0; list < 2; list++)
      for (uint32_t i = lists[list].first; i < lists[list].first + lists[list].count; i++) {
        if (task->parts[i].task)
          continue; /* of an entry that has two names */
        TRY(part_init(&task->parts[i], task, program_part(task->program, i), entry->symbols.count));
        task->part_count++;
      }
  }
  return OK;
}

/* Where a task's step numbers begin: behind those of its earlier life, which its peers remember. 38 bits of milliseconds and
 * room for 1024 steps in each; the upper 16 bits are the task's number. */
static uint64_t first_step(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
  return (ms & ((UINT64_C(1) << 38) - 1)) << 10;
}

static status task_load(struct task *task, int threads) {
  task->next_step = first_step();
  TRY(program_check(task->program));
  const struct program_task *self = program_task(task->program, task->program->task);
  snprintf(task->name, sizeof task->name, "/job:%s/task:%u", program_text(task->program, self->job), self->index);
  TRY(buffer_cache_create(&task->buffers));
  TRY(rendezvous_create(&task->rendezvous));
  TRY(container_create(&task->container));
  TRY(hall_create(&task->hall));
  TRY(crew_create(&task->crew));
  TRY(task_load_variables(task));
  TRY(task_load_hosts(task));
  TRY(task_load_parts(task));
  TRY(transfer_table_create(task->program, &task->transfers));
  task->init_entry = task_find_entry(task, "init");
  task->finishing = calloc(task->program->tables[PROGRAM_TASKS].count + 1, sizeof *task->finishing);
  if (!task->finishing)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  return pool_create(threads, &task->pool);
}

status task_create(const struct program *program, const struct kernel_code *kernels, int threads, struct task **out) {
  struct task *task = calloc(1, sizeof *task);
  if (!task)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  task->program = program;
  task->kernels = kernels;
  task->exchange = &exchange_local;
  pthread_mutex_init(&task->lock, NULL);
  pthread_cond_init(&task->changed, NULL);
  commit_init(&task->commit);
  status result = task_load(task, threads);
  if (result == OK)
    *out = task;
  else
    task_destroy(task);
  return result;
}

void task_destroy(struct task *task) {
  if (!task)
    return;
  task_stop(task); /* iterators may still read ahead, with what is freed below */
  crew_destroy(task->crew);
  for (uint32_t i = 0; task->parts && i < task->part_count; i++)
    part_deinit(&task->parts[i]);
  for (uint32_t i = 0; i < task->variable_count; i++)
    variable_deinit(&task->variables[i]);
  container_destroy(task->container);
  hall_destroy(task->hall);
  rendezvous_destroy(task->rendezvous);
  transfer_table_destroy(task->transfers);
  pool_destroy(task->pool);
  buffer_cache_close(task->buffers);
  pthread_mutex_destroy(&task->lock);
  pthread_cond_destroy(&task->changed);
  commit_deinit(&task->commit);
  free(task->variables);
  free(task->finishing);
  free(task->hosts);
  free(task->parts);
  free(task);
}

void task_set_peer_wait(struct task *task, status (*wait)(void *self, const uint32_t *tasks, uint32_t count), void *self) {
  task->wait_peers = wait;
  task->wait_peers_self = self;
}

void task_set_trace(struct task *task, struct trace *trace) { task->trace = trace; }

void task_watch_steps(struct task *task, void (*on_step)(void *self), void *self) {
  task->on_step = on_step;
  task->on_step_self = self;
}

void task_watch_peers(struct task *task, void (*on_peers)(void *self), void *self) {
  task->on_peers = on_peers;
  task->on_peers_self = self;
}

void task_set_exchange(struct task *task, const struct exchange *exchange) { task->exchange = exchange; }
const struct program *task_program(const struct task *task) { return task->program; }
const char *task_name(const struct task *task) { return task->name; }
uint32_t task_find_entry(const struct task *task, const char *name) {
  for (uint32_t i = 0; i < task->program->tables[PROGRAM_ENTRIES].count; i++)
    if (strcmp(program_text(task->program, program_entry(task->program, i)->name), name) == 0)
      return i;
  return PROGRAM_NONE;
}

/* ---- feeds ---- */

status task_check_feed(const struct task *task, uint32_t entry, uint32_t feed, const struct tensor *tensor) {
  const struct program_port *port = program_port(task->program, program_entry(task->program, entry)->feeds.first + feed);
  const char *name = program_text(task->program, port->name);
  const uint32_t *dims = program_operands(task->program, port->dims);
  char wanted[256];
  if (!tensor)
    return fail(INVALID_ARGUMENT, "feed '%s' is missing, %s%s", name, dtype_name((enum dtype)port->dtype),
                port->any_rank ? "[...]" : size_shape_text(task->program, dims, port->rank, NULL, wanted, sizeof wanted));
  if (tensor->dtype != port->dtype)
    return fail(INVALID_ARGUMENT, "feed '%s' is %s, must be %s", name, dtype_name(tensor->dtype), dtype_name((enum dtype)port->dtype));
  if (program_entry(task->program, entry)->variants)
    return OK; /* which shapes fit is said when one of them is chosen */
  return task_check_feed_shape(task, port, &tensor->shape);
}

status task_check_feed_shape(const struct task *task, const struct program_port *port, const struct shape *shape) {
  const char *name = program_text(task->program, port->name);
  const uint32_t *dims = program_operands(task->program, port->dims), *reasons = program_operands(task->program, port->reasons);
  char wanted[256];
  if (port->every_rank)
    return OK;
  if (shape->rank != port->rank)
    return fail(INVALID_ARGUMENT, "feed '%s' has shape %s, must be %s", name, shape_text(shape),
                size_shape_text(task->program, dims, port->rank, NULL, wanted, sizeof wanted));
  for (int i = 0; i < port->rank; i++) {
    const int64_t *code = program_words(task->program, dims[i]);
    if (code[0] == PROGRAM_DIM_CONST && code[2] == PROGRAM_DIM_END && code[1] != shape->dims[i])
      return fail(INVALID_ARGUMENT, "feed '%s' has shape %s, must be %s: dimension %d must be %lld%s%s", name, shape_text(shape),
                  size_shape_text(task->program, dims, port->rank, NULL, wanted, sizeof wanted), i, (long long)code[1],
                  *program_text(task->program, reasons[i]) ? " for " : "", program_text(task->program, reasons[i]));
  }
  return OK;
}

/* ---- forgetting ---- */

static bool list_has(const char *lines, const char *name) {
  size_t size = strlen(name);
  for (const char *at = lines; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
    if (strncmp(at, name, size) == 0 && (at[size] == 0 || at[size] == '\n'))
      return true;
  return false;
}

/* A container without a name is the default one. */
static bool is_named(const char *lines, const char *container) {
  return list_has(lines, *container ? container : "localhost") || (strcmp(container, "localhost") == 0 && list_has(lines, ""));
}

void task_reset(struct task *task, const char *containers) {
  for (uint32_t i = 0; i < task->variable_count; i++)
    if (is_named(containers, task->variables[i].container))
      variable_reload(&task->variables[i], task->program, i);
  char name[256];
  for (const char *at = containers; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\n"), at);
    container_forget(task->container, name);
    if (!*name || strcmp(name, "localhost") == 0)
      container_forget(task->container, *name ? "" : "localhost");
  }
}

static void forget_closed_queue(void *self, struct resource *resource) {
  (void)self;
  bool is_private = strncmp(resource->name, RESOURCE_PRIVATE, strlen(RESOURCE_PRIVATE)) == 0;
  if (is_private && queue_is_closed((struct queue *)resource))
    resource->is_destroyed = true;
}

void task_forget_closed_queues(struct task *task) { container_each(task->container, "queue", forget_closed_queue, NULL); }

void task_reset_all(struct task *task, const char *containers) {
  for (uint32_t i = 0; task->exchange->reset && i < task->program->tables[PROGRAM_TASKS].count; i++)
    if (i != task->program->task)
      task->exchange->reset(task->exchange->self, i, containers);
  task_reset(task, containers);
}
