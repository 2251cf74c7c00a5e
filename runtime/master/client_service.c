/* client_service.c: the program's tables in the master service's words. */
#include "runtime/master/client_service.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "runtime/master/master.h"
#include "runtime/net/net_limits.h"
#include "runtime/program/device_name.h"
#include "runtime/step/partial.h"
#include "runtime/step/step_stats.h"

struct client_service {
  struct task *task;
  struct cluster *cluster;
  struct master *master;
  struct master_entry *entries;
  struct master_port *ports; /* of all entries */
  const char **targets;      /* of all entries */
  struct master_node *nodes;
  char (*device_texts)[320];
  const char **devices, **addresses;
  pthread_t poller;
  bool has_poller;
  atomic_bool closing;
  atomic_int traced_count; /* runs that are being recorded */
};

static status run_recorded(struct client_service *service, const struct master_run *run, struct run_request *request) {
  status code = OK;
  if (atomic_fetch_add(&service->traced_count, 1) >= LIMIT_MASTER_TRACED)
    code = fail(RESOURCE_EXHAUSTED, "%d runs are being recorded: run without trace_level, or later", LIMIT_MASTER_TRACED);
  if (code == OK)
    code = step_stats_create(service->task, &request->stats);
  if (code == OK)
    code = task_run(service->task, run->entry, run->feeds, run->fetches, request);
  if (code == OK)
    step_stats_write(request->stats, run->metadata);
  step_stats_destroy(request->stats);
  atomic_fetch_sub(&service->traced_count, 1);
  return code;
}

/* A partial run of an entry that is not compiled for it: the step begins when all feeds have come. */
static status run_when_fed(struct client_service *service, const struct master_run *run, const struct program_entry *code) {
  struct tensor **feeds = calloc((size_t)code->feeds.count + 1, sizeof *feeds);
  struct tensor **fetches = calloc((size_t)code->fetches.count + 1, sizeof *fetches);
  struct run_request request = {.gone = run->cancelled};
  status result = feeds && fetches ? partial_await_feeds(run->partial, run->cancelled, feeds) : fail(RESOURCE_EXHAUSTED, "no memory");
  if (result == OK)
    result = task_run(service->task, run->entry, feeds, fetches, &request);
  for (uint32_t i = 0; result == OK && i < code->fetches.count; i++)
    partial_give(run->partial, i, fetches[i]);
  for (uint32_t i = 0; feeds && i < code->feeds.count; i++)
    tensor_release(feeds[i]);
  free(feeds);
  free(fetches);
  return result;
}

/* A task that was started anew has not what the session put there: its client has to begin again. */
static status check_incarnations(struct client_service *service, const struct program_entry *code, atomic_uint_fast64_t *seen) {
  const uint32_t *tasks = program_operands(task_program(service->task), code->tasks.first);
  for (uint32_t i = 0; i < code->tasks.count && seen; i++) {
    uint64_t is = cluster_task_incarnation(service->cluster, tasks[i]);
    uint_fast64_t was = 0;
    if (!atomic_compare_exchange_strong(&seen[tasks[i]], &was, is) && was != is)
      return fail(ABORTED, "%s was started anew, without what this session has done there: begin a new session",
                  cluster_task_name(service->cluster, tasks[i]));
  }
  return OK;
}

static status run_entry(void *self, const struct master_run *run) {
  struct client_service *service = self;
  const struct program *program = task_program(service->task);
  const struct program_entry *code = program_entry(program, run->entry);
  struct run_request request = {.gone = run->cancelled, .partial = run->partial, .reports_memory = run->reports_memory};
  TRY(cluster_wait_peers(service->cluster, program_operands(program, code->tasks.first), code->tasks.count));
  TRY(check_incarnations(service, code, run->seen));
  if (run->partial && !code->partial)
    return run_when_fed(service, run, code);
  TRY(run->traces ? run_recorded(service, run, &request) : task_run(service->task, run->entry, run->feeds, run->fetches, &request));
  if (run->wants_graphs)
    entry_graphs_write(service->task, run->entry, run->metadata);
  return OK;
}

static void explain(void *self, const atomic_bool *cancelled, char *out, size_t size) {
  task_explain(((struct client_service *)self)->task, cancelled, out, size);
}

/* ---- partial runs ---- */

static status check_feed(void *self, uint32_t entry, uint32_t feed, const struct tensor *tensor) {
  return task_check_feed(((struct client_service *)self)->task, entry, feed, tensor);
}

/* What the driver's part waits for before a fetch is there: its values, and the order in which it touches state. */
static void mark_feeds_before(const struct program *program, const struct program_part *part, uint32_t fetch, uint8_t *out) {
  const struct program_block *block = program_block(program, part->block);
  bool *marked = calloc((size_t)block->instrs.count + 1, sizeof *marked);
  for (uint32_t i = block->instrs.count; marked && i-- > 0;) { /* successors come later in the block */
    const struct program_instr *instr = program_instr(program, block->instrs.first + i);
    const uint32_t *successors = program_operands(program, instr->successors.first);
    marked[i] = instr->op == INSTR_FETCH && instr->number == fetch;
    for (uint32_t j = 0; j < instr->successors.count; j++)
      marked[i] |= marked[successors[j]];
    if (marked[i] && instr->op == INSTR_FEED)
      out[instr->number] = 1;
  }
  free(marked);
}

static status needs(void *self, uint32_t number, uint32_t fetch, uint8_t *out) {
  const struct program *program = task_program(((struct client_service *)self)->task);
  const struct program_entry *entry = program_entry(program, number);
  if (!entry->partial) {
    memset(out, 1, entry->feeds.count);
    return OK;
  }
  const uint32_t *words = program_operands(program, entry->partial_needs.first) + (size_t)fetch * entry->feeds.count;
  for (uint32_t i = 0; i < entry->feeds.count; i++)
    out[i] = words[i] != 0;
  mark_feeds_before(program, program_part(program, entry->partial - 1), fetch, out);
  return OK;
}

/* The default container where none is named, as TensorFlow has it. */
static status reset(void *self, const char *const *containers, uint32_t count) {
  struct client_service *service = self;
  char names[NET_TEXT_BYTES - 1];
  size_t used = (size_t)snprintf(names, sizeof names, "%s", count ? "" : "localhost");
  for (uint32_t i = 0; i < count; i++) {
    if (strchr(containers[i], '\n') || used + strlen(containers[i]) + 2 > sizeof names)
      return fail(RESOURCE_EXHAUSTED, "the containers to reset have names of more than %zu bytes", sizeof names);
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? "\n" : "", containers[i]);
  }
  if (cluster_is_at_work(service->cluster))
    return fail(FAILED_PRECONDITION, "tasks of this cluster run phases: what they work on is not forgotten for a client");
  task_reset_all(service->task, names);
  return OK;
}

static void ended(void *self) {
  const struct client_service *service = self;
  if (!cluster_is_at_work(service->cluster))
    task_forget_closed_queues(service->task);
}

/* ---- tables ---- */

static struct master_port *fill_ports(const struct program *program, struct program_range range, struct master_port *out) {
  for (uint32_t i = 0; i < range.count; i++) {
    const struct program_port *port = program_port(program, range.first + i);
    out[i] = (struct master_port){program_text(program, port->tensor), port->is_optional != 0};
  }
  return out + range.count;
}

static status fill_entries(struct client_service *service) {
  const struct program *program = task_program(service->task);
  uint32_t count = (uint32_t)program->tables[PROGRAM_ENTRIES].count;
  uint64_t target_count = 0, port_count = 0; /* entries of several names share ports in the program, not here */
  for (uint32_t i = 0; i < count; i++) {
    const struct program_entry *entry = program_entry(program, i);
    target_count += entry->targets.count;
    port_count += (uint64_t)entry->feeds.count + entry->fetches.count;
  }
  service->entries = calloc((size_t)count + 1, sizeof *service->entries);
  service->ports = calloc(port_count + 1, sizeof *service->ports);
  service->targets = calloc(target_count + 1, sizeof *service->targets);
  if (!service->entries || !service->ports || !service->targets)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  struct master_port *ports = service->ports;
  const char **targets = service->targets;
  for (uint32_t i = 0; i < count; i++) {
    const struct program_entry *code = program_entry(program, i);
    struct master_entry *entry = &service->entries[i];
    *entry = (struct master_entry){.name = program_text(program, code->name),
                                   .feeds = ports,
                                   .targets = targets,
                                   .feed_count = code->feeds.count,
                                   .fetch_count = code->fetches.count,
                                   .target_count = code->targets.count,
                                   .changes_state = code->changes_state,
                                   .tasks = program_operands(program, code->tasks.first),
                                   .task_count = code->tasks.count};
    ports = fill_ports(program, code->feeds, ports);
    entry->fetches = ports;
    ports = fill_ports(program, code->fetches, ports);
    for (uint32_t j = 0; j < code->targets.count; j++)
      *targets++ = program_text(program, program_operands(program, code->targets.first)[j]);
  }
  return OK;
}

static status fill_nodes(struct client_service *service) {
  const struct program *program = task_program(service->task);
  uint32_t count = (uint32_t)program->tables[PROGRAM_NODES].count;
  service->nodes = calloc((size_t)count + 1, sizeof *service->nodes);
  if (!service->nodes)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < count; i++) {
    const struct program_node *node = program_node(program, i);
    service->nodes[i] = (struct master_node){program_text(program, node->name), program_text(program, node->op), node->input_hash,
                                             program_operands(program, node->attrs.first), node->attrs.count / 2};
  }
  return OK;
}

static status fill_devices(struct client_service *service) {
  const struct program *program = task_program(service->task);
  uint32_t count = (uint32_t)program->tables[PROGRAM_TASKS].count;
  service->devices = calloc((size_t)count + 1, sizeof *service->devices);
  service->device_texts = calloc((size_t)count + 1, sizeof *service->device_texts);
  service->addresses = calloc((size_t)count + 1, sizeof *service->addresses);
  if (!service->addresses || !service->devices || !service->device_texts)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < count; i++) {
    device_name(program, i, service->device_texts[i], sizeof service->device_texts[i]);
    service->devices[i] = service->device_texts[i];
    service->addresses[i] = cluster_task_address(service->cluster, i);
  }
  return OK;
}

/* Steps of clients that have gone need not go on. */
static void *poll_clients(void *argument) {
  struct client_service *service = argument;
  while (!atomic_load(&service->closing)) {
    struct timespec pause = {.tv_nsec = 50000000};
    nanosleep(&pause, NULL);
    task_poll_clients(service->task);
  }
  return NULL;
}

static status service_start(struct client_service *service) {
  const struct program *program = task_program(service->task);
  TRY(fill_entries(service));
  TRY(fill_nodes(service));
  TRY(fill_devices(service));
  const struct master_config config = {
    .entries = service->entries,
    .entry_count = (uint32_t)program->tables[PROGRAM_ENTRIES].count,
    .nodes = service->nodes,
    .node_count = (uint32_t)program->tables[PROGRAM_NODES].count,
    .devices = service->devices,
    .device_count = (uint32_t)program->tables[PROGRAM_TASKS].count,
    .addresses = service->addresses,
    .own_device = program->task,
    .self = service,
    .run = run_entry,
    .explain = explain,
    .check_feed = check_feed,
    .needs = needs,
    .reset = reset,
    .ended = ended,
  };
  TRY(master_create(&config, service->cluster, &service->master));
  service->has_poller = pthread_create(&service->poller, NULL, poll_clients, service) == 0;
  return service->has_poller ? OK : fail(RESOURCE_EXHAUSTED, "no thread to watch clients");
}

status client_service_create(struct task *task, struct cluster *cluster, struct client_service **out) {
  struct client_service *service = calloc(1, sizeof *service);
  if (!service)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  service->task = task;
  service->cluster = cluster;
  status result = service_start(service);
  if (result == OK)
    *out = service;
  else
    client_service_destroy(service);
  return result;
}

void client_service_destroy(struct client_service *service) {
  if (!service)
    return;
  master_destroy(service->master);
  atomic_store(&service->closing, true);
  if (service->has_poller)
    pthread_join(service->poller, NULL);
  free(service->entries);
  free(service->ports);
  free(service->targets);
  free(service->nodes);
  free(service->devices);
  free(service->addresses);
  free(service->device_texts);
  free(service);
}
