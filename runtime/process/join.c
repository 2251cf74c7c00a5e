/* join.c: how a task comes to its cluster: addresses and certificates of the command line, and what needs the other tasks. */
#include "runtime/process/host_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/process/rounds.h"
#include "runtime/process/tls_option.h"

static uint32_t task_number(const struct program *program, const char *job, uint32_t index) {
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++) {
    const struct program_task *task = program_task(program, i);
    if (task->index == index && strcmp(program_text(program, task->job), job) == 0)
      return i;
  }
  return PROGRAM_NONE;
}

/* The tasks with the addresses of the command line over those of the build. */
static status read_tasks(const struct host *host, struct cluster_task *tasks) {
  uint32_t count = (uint32_t)host->program->tables[PROGRAM_TASKS].count;
  for (uint32_t i = 0; i < count; i++) {
    const struct program_task *task = program_task(host->program, i);
    tasks[i] = (struct cluster_task){program_text(host->program, task->job), task->index, program_text(host->program, task->address)};
  }
  for (uint32_t i = 0; i < host->options.peer_count; i++) {
    const struct peer_address *peer = &host->options.peers[i];
    uint32_t number = task_number(host->program, peer->job, peer->index);
    if (number == PROGRAM_NONE)
      return fail(INVALID_ARGUMENT, "--peer: the cluster has no task %s:%u", peer->job, peer->index);
    tasks[number].address = peer->address;
  }
  if (host->options.address)
    tasks[host->program->task].address = host->options.address;
  return *tasks[host->program->task].address
         ? OK
         : fail(INVALID_ARGUMENT, "this task has no address to serve at: give --address, or phases with --entry");
}

/* Who decides which incarnation of a task counts, when a checkpoint of the job is cut, and who takes part in a round. */
static uint32_t coordinator(const struct program *program) {
  uint32_t ps = task_number(program, "ps", 0);
  return ps != PROGRAM_NONE ? ps : program->chief;
}

static status wait_peers(void *cluster, const uint32_t *tasks, uint32_t count) { return cluster_wait_peers(cluster, tasks, count); }

bool host_is_alone(const struct host *host) { return host->program->tables[PROGRAM_TASKS].count == 1; }

static status start_doctor(struct host *host) {
  struct doctor *doctor = NULL;
  status result = doctor_create(host->task, host->cluster, &host->progress, &doctor);
  pthread_mutex_lock(&host->report_lock);
  host->doctor = doctor;
  pthread_mutex_unlock(&host->report_lock);
  return result;
}

/* What was given to this task of --checkpoint-dir and what goes with it. */
struct saver_config host_checkpoints(const struct host *host) {
  const struct task_options *o = &host->options;
  return (struct saver_config){.folder = o->checkpoint_dir,
                               .save_steps = o->save_steps,
                               .save_seconds = o->save_seconds,
                               .keep = o->keep ? o->keep : SAVER_KEEP,
                               .restore = o->restore};
}

static void note_checkpoint(void *self, const char *name) {
  struct host *host = self;
  char text[256];
  snprintf(text, sizeof text, "%.160s is complete", name);
  doctor_note_checkpoint(host->doctor, text);
}

/* Only a ps leaves by itself: others without phases serve until they are stopped. */
static void end_waiting(void *self) {
  struct host *host = self;
  if (strcmp(program_text(host->program, program_task(host->program, host->program->task)->job), "ps") == 0)
    cluster_stop(host->cluster);
}

/* Several tasks: checkpoints concern all. */
static status open_job(struct host *host) {
  struct job_config config = {.given = host_checkpoints(host),
                              .has_phases = host->options.phase_count > 0,
                              .timeout_s = host->options.timeout_s,
                              .on_failed = host_stop,
                              .on_complete = note_checkpoint,
                              .on_over = end_waiting,
                              .self = host};
  return host_is_alone(host) ? OK : job_create(host->task, host->cluster, &config, &host->job);
}

status host_join(struct host *host) {
  uint32_t count = (uint32_t)host->program->tables[PROGRAM_TASKS].count;
  if (count == 1 && host->options.phase_count > 0)
    return start_doctor(host); /* nobody to talk to */
  struct cluster_task *tasks = calloc(count, sizeof *tasks);
  if (!tasks)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  struct cluster_config config = {
    .task = host->program->task,
    .task_count = count,
    .tasks = tasks,
    .build_id = host->program->build_id,
    .build_key = host->program->build_key,
    .timeout_s = host->options.timeout_s,
    .has_phases = host->options.phase_count > 0,
    .allow_clients = host->options.allow_clients,
    .clients_bytes = host->options.client_memory_mib << 20,
    .sink = task_sink(host->task),
    .coordinator = coordinator(host->program),
  };
  const struct program_task *self = program_task(host->program, host->program->task);
  status result = read_tasks(host, tasks);
  if (result == OK)
    result = tls_option_files(&host->options.tls, program_text(host->program, self->job), self->index, &config.tls);
  struct cluster *cluster = NULL;
  if (result == OK)
    result = cluster_create(&config, &cluster);
  pthread_mutex_lock(&host->report_lock);
  host->cluster = cluster;
  pthread_mutex_unlock(&host->report_lock);
  free(tasks);
  if (result != OK)
    return result;
  TRY(course_attach(host->course, host->cluster));
  task_set_exchange(host->task, cluster_exchange(host->cluster));
  task_set_peer_wait(host->task, wait_peers, host->cluster);
  rounds_join(host->task, host->cluster, host->options.timeout_s, host->options.elastic);
  TRY(replicas_create(host->task, host->cluster, &host->options, &host->replicas));
  TRY(client_service_create(host->task, host->cluster, &host->clients));
  TRY(start_doctor(host));
  TRY(open_job(host));
  TRY(cluster_start(host->cluster));
  return host->job ? job_start(host->job) : OK;
}

status host_wait_peers(const struct host *host, uint32_t number) {
  if (!host->cluster)
    return OK;
  const struct program_entry *entry = program_entry(host->program, number);
  const uint32_t *tasks = program_operands(host->program, entry->tasks.first);
  doctor_enter(host->doctor, STAGE_MEETS, tasks, entry->tasks.count);
  return cluster_wait_peers(host->cluster, tasks, entry->tasks.count);
}
