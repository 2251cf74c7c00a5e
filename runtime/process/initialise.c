/* initialise.c: what is done before the first step: `init` by the chief or by each replica, and what the others wait for. */
#include "runtime/process/host_state.h"

#include <stdlib.h>
#include <string.h>

bool host_is_chief(const struct host *host) { return host->program->chief == host->program->task; }

bool host_is_replica(const struct host *host) {
  const char *job = program_text(host->program, program_task(host->program, host->program->task)->job);
  return strcmp(job, program_text(host->program, host->program->replicated_job)) == 0;
}

/* The chief's first phase may be `init` itself; then nothing is run before it. */
static bool first_phase_is_init(const struct host *host) {
  return host->options.phase_count > 0 && strcmp(host->options.phases[0].entry, "init") == 0;
}

/* Whether this task runs `init`: the chief for all, or each replica for its own variables. */
static bool initialises(const struct host *host) {
  return host_is_chief(host) || ((host->program->init_flags & INIT_EVERYWHERE) && host_is_replica(host));
}

/* is_once: who has been initialised, by the chief or before a checkpoint that is restored, is not again. */
static status run_init(struct host *host, const char *name, uint32_t init, bool is_once) {
  const struct program_entry *entry = program_entry(host->program, init);
  if (entry->feeds.count > 0)
    return fail(FAILED_PRECONDITION, "the entry '%s' needs feeds: run it as a phase, after --no-init", name);
  TRY(host_wait_peers(host, init));
  const struct run_request request = {.is_once = is_once};
  TRY(course_draw_again(host->course, strcmp(name, "init") == 0));
  struct tensor **fetches = calloc((size_t)entry->fetches.count + 1, sizeof *fetches);
  if (!fetches)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  doctor_enter(host->doctor, STAGE_INITIALISES, NULL, 0);
  status result = task_run(host->task, init, NULL, fetches, &request);
  for (uint32_t i = 0; i < entry->fetches.count; i++)
    tensor_release(fetches[i]);
  free(fetches);
  return result == OK ? OK : status_prefix(result, "entry '%s': ", name);
}

/* The variables may be gone again: somebody was lost since the chief had initialised them, and there is no checkpoint yet. */
static status await_init(struct host *host) {
  status result;
  while ((result = course_await_init(host->course)) != OK) {
    TRY(course_recover(host->course, (struct course_place){0, 0}, result));
    TRY(host_initialise(host, true));
  }
  return OK;
}

/* Again when somebody was lost meanwhile: it is done once by each task, or, once variables have their values, whenever they have. */
static status run_init_again(struct host *host, const char *name, bool is_late) {
  uint32_t init = task_find_entry(host->task, name);
  if (init == PROGRAM_NONE)
    return OK;
  TRY(course_initialises(host->course));
  for (;;) {
    if (is_late)
      TRY(await_init(host));
    status result = run_init(host, name, init, !is_late);
    if (result == OK)
      return OK;
    TRY(course_recover(host->course, (struct course_place){0, 0}, result));
  }
}

static bool runs_init(const struct host *host) {
  return initialises(host) && !host->options.no_init && host->options.phase_count > 0 &&
         task_find_entry(host->task, "init") != PROGRAM_NONE;
}

status host_initialise(struct host *host, bool is_again) {
  bool is_due = !first_phase_is_init(host) || (is_again && host->cluster && cluster_is_initialised(host->cluster));
  return runs_init(host) && is_due ? run_init_again(host, "init", false) : OK;
}

/* What each replica has of its own: tables, iterators, local variables. The chief's `init` has done it for the chief. */
static status initialise_replica(struct host *host) {
  return host_is_replica(host) && !host->options.no_init ? run_init_again(host, "local_init", false) : OK;
}

/* Whether the chief says `ready` only after its first phase. */
bool host_is_ready_after_first_phase(const struct host *host) { return host_is_chief(host) && first_phase_is_init(host); }

/* What can only be done once variables have their values: of each replica, else the chief's. */
status host_initialise_late(struct host *host) {
  bool is_due = (host_is_chief(host) || host_is_replica(host)) && host->options.phase_count > 0 && !host->options.no_init;
  return is_due ? run_init_again(host, "late_init", true) : OK;
}

status host_become_ready(struct host *host) {
  TRY(host_initialise(host, false));
  if (!host->cluster)
    return OK;
  if (host_is_chief(host)) {
    if (!host_is_ready_after_first_phase(host))
      cluster_announce_ready(host->cluster, runs_init(host));
    return OK;
  }
  if (host->options.phase_count == 0 || initialises(host))
    return OK;
  doctor_enter(host->doctor, STAGE_AWAITS_CHIEF, &host->program->chief, 1);
  TRY(cluster_wait_ready(host->cluster, host->program->chief));
  return initialise_replica(host);
}
