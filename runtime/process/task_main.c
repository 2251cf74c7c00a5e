/* task_main.c: a task's program: command line, runners, phases, end.
 *
 * The only file of the runtime that prints errors and says how the process ends. What a task does, in this order: listen and find the
 * peers it needs, initialise (the chief) or wait until the chief has, run the phases, tell the others, serve until nobody needs it, leave.
 */
#include "runtime/process/task_main.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "runtime/cluster/look.h"
#include "runtime/process/host_state.h"
#include "runtime/process/signals.h"
#include "runtime/program/entry_print.h"
#include "runtime/step/commit.h"
#include "runtime/step/pool.h"

#define LAST_STEP_MS 1000 /* for the step that runs, when the task is told to stop: others make it, too, and are up */

static const char usage[] =
  "usage: %s [global options] [--entry NAME [phase options]]...\n"
  "Runs the phases from left to right, then leaves. Without --entry it serves the other tasks and TensorFlow clients.\n\n"
  "phase options:\n"
  "  --feed NAME=FILE.npy    a fed tensor; NAME=zeros(2,3) stands in for a file, to try an entry\n"
  "  --batch B               feeds B rows of the longest files in each step, round and round\n"
  "  --steps N               runs the entry N times (1)\n"
  "  --fetch NAME=FILE.npy   writes a fetched value; with several steps stacked on a new axis 0; - is standard output\n\n"
  "global options:\n"
  "  --runner NAME           runs the entry again and again beside the phases, until they end\n"
  "  --no-init               does not run the entry 'init' first\n"
  "  --elastic               synchronous training goes on without workers that are lost, until they come back\n"
  "  --timeout S             gives a missing peer S seconds (30)\n"
  "  --checkpoint-dir D      keeps the variables there: restored at start, saved at the end\n"
  "  --save-steps N          and every N steps\n"
  "  --save-seconds S        and every S seconds\n"
  "  --keep N                so many checkpoints stay (5)\n"
  "  --restore PATH          starts from a checkpoint of TensorFlow's, where --checkpoint-dir has none yet\n"
  "  --log-dir D             writes scalar fetches and summaries of each step as TensorBoard events, in a folder of its own in D\n"
  "  --log-every N           prints fetches that go to no file every N steps and at the last (1), with the step from 2 on; 0: at the last\n"
  "  --trace FILE            writes when which instruction ran, for chrome://tracing\n"
  "  --threads N             for kernels (one for each core)\n"
  "  --address host:port     listens there instead of the address of the cluster file\n"
  "  --peer JOB:INDEX=ADDRESS  where another task is\n"
  "  --tls-cert, --tls-key, --tls-ca FILE  every connection is TLS 1.3, both ways by certificates of that CA; `{task}` is this task's name;\n"
  "                          SIGHUP reads them again (executables of `tfc build --tls`)\n"
  "  --allow-clients         TensorFlow clients may run entries here also while tasks run phases\n"
  "  --client-memory MIB     what requests and answers of clients may hold together (256)\n"
  "  --version, --help\n\n"
  "entries:\n";

static void print_usage(const struct program *program, const char *name) {
  printf(usage, name);
  for (uint32_t i = 0; i < program->tables[PROGRAM_ENTRIES].count; i++)
    if (!program_entry(program, i)->is_variant)
      entry_print(stdout, program, program_entry(program, i));
}

/* ---- runners ---- */

static status wait_for_runner(void *self, uint32_t entry) { return host_wait_peers(self, entry); }

static bool has_left(void *self, uint32_t number) {
  const struct host *host = self;
  const struct program_entry *entry = program_entry(host->program, number);
  return host->cluster && cluster_has_left(host->cluster, program_operands(host->program, entry->tasks.first), entry->tasks.count);
}

static void need_not_wait(void *self) {
  const struct host *host = self;
  if (host->cluster)
    cluster_need_not_wait(host->cluster);
}

static status start_runners(struct host *host) {
  const struct runner_config config = {
    .task = host->task,
    .entries = host->options.runners,
    .entry_count = host->options.runner_count,
    .is_chief = host_is_chief(host),
    .is_replica = host_is_replica(host),
    .course = host->course,
    .self = host,
    .wait_peers = wait_for_runner,
    .has_left = has_left,
    .on_ended = need_not_wait,
    .on_failed = host_stop,
  };
  return host->options.phase_count > 0 ? runners_start(&config, &host->runners) : OK;
}

/* The error of a runner is the reason for all that came after it. */
static status finish_runners(struct host *host, status code) {
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  status failed = host->runners ? runners_finish(host->runners) : OK;
  runners_destroy(host->runners);
  host->runners = NULL;
  return failed != OK ? failed : code == OK ? OK : fail(code, "%s", text);
}

/* ---- phases ---- */

/* Before the others are waited for. */
static status check_phases(const struct host *host) {
  for (uint32_t i = 0; i < host->options.phase_count; i++) {
    status result = phase_check(host->task, &host->options.phases[i], i == 0);
    if (result != OK)
      return status_prefix(result, "entry '%s': ", host->options.phases[i].entry);
  }
  return OK;
}

/* The first phase was `init`. */
static status become_ready_late(struct host *host) {
  if (host->cluster)
    cluster_announce_ready(host->cluster, true);
  TRY(host_initialise_late(host));
  return start_runners(host);
}

static bool is_last(const struct host *host, uint32_t phase) { return phase + 1 == host->options.phase_count; }

static status open_phase(struct host *host, struct course_place place, struct phase **out) {
  struct phase_watch watch = {host->events, &host->progress, host->options.log_every};
  const struct phase_options *phase = &host->options.phases[place.phase];
  progress_begin(&host->progress, place.phase + 1, host->options.phase_count, phase->entry, phase->steps);
  if (host->last_phase && is_last(host, place.phase)) { /* what it has fetched of the steps before stays */
    *out = host->last_phase;
    host->last_phase = NULL;
    TRY(phase_go_to(*out, place.step));
  } else {
    TRY(phase_create(host->task, phase, &watch, out));
    phase_begin(*out, place.step);
  }
  TRY(host_wait_peers(host, phase_entry(*out)));
  doctor_enter(host->doctor, STAGE_RUNS, NULL, 0);
  return OK;
}

/* A step that all have, after a restore: what its calls took is nowhere any more, so it cannot be done again for what it gives. */
static bool has_lost_results(const struct host *host, struct course_place place, status result) {
  bool has = result == INTERNAL && course_is_repeated(host->course, place);
  if (has)
    fprintf(stderr, "%s: step %lld of '%s' is done, and what it gave is lost: %s\n", task_name(host->task), (long long)place.step + 1,
            host->options.phases[place.phase].entry, status_text());
  return has;
}

/* From the place on to the phase's end, or to the step that failed. */
static status run_steps(struct host *host, struct phase *phase, struct course_place *place) {
  for (; place->step < host->options.phases[place->phase].steps; place->step++) {
    struct run_request request = course_request(host->course, *place);
    status result = phase_step(phase, place->step, &request);
    if (result != OK && !has_lost_results(host, *place, result))
      return result;
  }
  return OK;
}

/* A replica first comes to the state of the others. */
static status join_course(struct host *host) {
  host->history = job_history(host->job); /* before the others are asked: steps may be undone when it is another in the end */
  doctor_enter(host->doctor, STAGE_COPIES, NULL, 0);
  TRY(replicas_join(host->replicas, course_steps(host->course)));
  doctor_enter(host->doctor, STAGE_ASKS_COURSE, NULL, 0);
  return course_join(host->course);
}

/* A step that all others have, once more: without its fetches, which were stored. */
static status repeat_step(struct host *host, struct course_place place, const struct run_request *request) {
  struct phase_options options = host->options.phases[place.phase];
  struct phase *phase;
  options.fetch_count = 0;
  TRY(phase_create(host->task, &options, &(struct phase_watch){0}, &phase));
  status result = host_wait_peers(host, phase_entry(phase));
  if (result == OK)
    result = phase_repeat(phase, place.step, request);
  phase_destroy(phase);
  return result == OK ? OK : status_prefix(result, "entry '%s': ", options.entry);
}

/* Its random numbers and iterators go on where they were before the step that comes next. */
static status resume_own(struct host *host) {
  struct course_place place;
  struct run_request request;
  bool is_early;
  TRY(course_resume(host->course, &is_early, &place, &request));
  status result = is_early ? repeat_step(host, place, &request) : OK;
  if (result != INTERNAL) /* calls of others that nobody has kept */
    return result;
  fprintf(stderr, "%s: its random numbers and iterators may go on a step early: %s\n", task_name(host->task), status_text());
  return OK;
}

/* Somebody was lost in a step, and is back: where it goes on. */
static status recover(struct host *host, struct course_place *place, status failure) {
  for (;;) {
    doctor_enter(host->doctor, STAGE_ASKS_COURSE, NULL, 0);
    TRY(course_recover(host->course, *place, failure));
    failure = host_initialise(host, true);
    if (failure == OK)
      failure = join_course(host);
    if (failure == OK)
      failure = resume_own(host);
    if (failure == OK)
      break;
  }
  *place = course_place(host->course);
  doctor_enter(host->doctor, STAGE_RUNS, NULL, 0);
  return OK;
}

/* The place is that of the step that comes next; in another phase after a restore. */
static status run_phase(struct host *host, struct course_place *place) {
  struct phase *phase = NULL;
  uint32_t number = place->phase;
  status result = open_phase(host, *place, &phase);
  while (result == OK) {
    result = run_steps(host, phase, place);
    if (result == OK)
      break;
    result = recover(host, place, result);
    if (result != OK || place->phase != number)
      break;
    result = phase_go_to(phase, place->step);
  }
  if (result == OK && place->phase == number) {
    *place = (struct course_place){number + 1, 0};
    if (host->job && is_last(host, number)) {
      host->last_phase = phase;
      return OK;
    }
    result = phase_end(phase);
  }
  phase_destroy(phase);
  return result == OK ? OK : status_prefix(result, "entry '%s': ", host->options.phases[number].entry);
}

/* Its files get their names: nothing undoes its steps any more. */
static status close_last_phase(struct host *host) {
  struct phase *phase = host->last_phase;
  host->last_phase = NULL;
  status result = phase ? phase_end(phase) : OK;
  phase_destroy(phase);
  return result == OK ? OK : status_prefix(result, "entry '%s': ", host->options.phases[host->options.phase_count - 1].entry);
}

/* A part of the entry that runs here whoever drives it, or as its driver, and changes something. */
static bool changes_own(const struct host *host, const struct program_entry *entry) {
  for (uint32_t i = 0; i < entry->parts.count; i++) {
    const struct program_part *part = program_part(host->program, entry->parts.first + i);
    uint32_t first = program_block(host->program, part->block)->instrs.first;
    for (uint32_t k = 0; k < part->instr_count; k++)
      if (program_instr(host->program, first + k)->flags & INSTR_CHANGES)
        return true;
  }
  return false;
}

/* A process that goes on where another has ended has nothing of what that had of its own. Phases of one step prepare it, as `init` does:
 * they are run once more, and others, who have them already, change nothing. */
static status repeat_preparations(struct host *host, struct course_place *place) {
  for (uint32_t i = 0; i < place->phase; i++) {
    const struct phase_options *phase = &host->options.phases[i];
    uint32_t entry = task_find_entry(host->task, phase->entry);
    struct course_place again = {i, 0};
    if (phase->steps > 1 || entry == PROGRAM_NONE || !changes_own(host, program_entry(host->program, entry)))
      continue;
    TRY(course_follow(host->course, again));
    TRY(run_phase(host, &again));
    if (again.phase != i + 1) { /* somebody was lost, and the job goes on elsewhere */
      *place = again;
      return OK;
    }
    if (place->phase < host->options.phase_count)
      TRY(course_follow(host->course, *place));
  }
  return OK;
}

static status run_phases(struct host *host) {
  struct course_place place = {0, 0};
  TRY(course_begin(host->course));
  status joined = join_course(host);
  if (joined != OK) /* somebody was lost since all was initialised */
    TRY(recover(host, &place, joined));
  place = course_place(host->course);
  TRY(repeat_preparations(host, &place));
  status resumed = resume_own(host);
  if (resumed != OK)
    TRY(recover(host, &place, resumed));
  bool is_late = host_is_ready_after_first_phase(host);
  if (is_late && place.phase > 0) {
    TRY(become_ready_late(host));
    is_late = false;
  }
  while (place.phase < host->options.phase_count) {
    TRY(run_phase(host, &place));
    if (is_late)
      TRY(become_ready_late(host));
    is_late = false;
  }
  return OK;
}

/* Its last step is in a checkpoint when it leaves; what a restore has undone meanwhile is done again. */
static status leave_job(struct host *host) {
  status result;
  course_end(host->course);
  while ((result = job_leave(host->job, host->history)) == ABORTED) {
    uint32_t last = host->options.phase_count - 1;
    struct course_place place = {last, host->options.phases[last].steps - 1};
    TRY(recover(host, &place, result));
    while (place.phase < host->options.phase_count)
      TRY(run_phase(host, &place));
    course_end(host->course);
  }
  return result;
}

/* Between being let go and being heard the job may have gone back: to a checkpoint that has its last step, or, where disks were lost, to
 * nothing. Who has said that it had finished does not begin again. */
static status check_kept(struct host *host) {
  if (cluster_identity(host->cluster).history == host->history)
    return OK;
  status joined = course_join(host->course);
  if (joined != OK && joined != ABORTED) /* ABORTED: variables are to be initialised again, by the chief */
    return joined;
  return joined == OK && course_is_done(host->course)
         ? OK
         : fail(UNAVAILABLE, "the job has begun again since this task had finished, and its steps are in no checkpoint any more");
}

/* What it was told to do is done and kept: whoever is started under its name from here on is its next command. That is so when all say so:
 * the coordinator is told last, when nothing is left but to end. first: others still need this task. */
static status end_command(struct host *host, bool first) {
  if (!job_keeps(host->job))
    return OK;
  TRY(check_kept(host));
  cluster_wait_answers(host->cluster);
  if (!first)
    cluster_leave_others(host->cluster);
  job_say_gone(host->job, course_command(host->course));
  return OK;
}

/* Some entry has a part that runs here, whoever drives it. */
static bool has_parts_for_others(const struct host *host) {
  for (uint32_t i = 0; i < host->program->tables[PROGRAM_ENTRIES].count; i++) {
    const struct program_range tasks = program_entry(host->program, i)->tasks;
    for (uint32_t j = 0; j < tasks.count; j++)
      if (program_operands(host->program, tasks.first)[j] == host->program->task)
        return true;
  }
  return false;
}

/* Which wait for all to finish. */
static bool chief_has_runners(const struct host *host) {
  bool has = false;
  for (uint32_t i = 0; i < host->program->tables[PROGRAM_RUNNERS].count; i++)
    has = has || program_runner(host->program, i)->is_chiefs;
  return has;
}

/* Elastic rounds need nobody who is lost: it is enough that some have done all their steps. */
static status wait_all_finished(struct host *host) {
  status result = cluster_wait_all_finished(host->cluster);
  return result == UNAVAILABLE && host->options.elastic && task_somebody_finished(host->task) ? OK : result;
}

static bool is_of_ps(const struct host *host) {
  return strcmp(program_text(host->program, program_task(host->program, host->program->task)->job), "ps") == 0;
}

/* A task with phases leaves, but not while others that still work may need its parts. When there are none, or on a ps: a ps leaves when
 * the work is done, others serve until they are stopped. */
static status wait_for_others(struct host *host) {
  bool is_ps = is_of_ps(host);
  if (host->runners && runners_serve_others(host->runners))
    return wait_all_finished(host);
  if (replicas_serve_others(host->replicas)) /* also those that are lost amid their last steps, and come back without a state */
    return wait_all_finished(host);
  if (host->options.phase_count > 0 && !is_ps)
    return has_parts_for_others(host) ? cluster_wait_dependents(host->cluster) : OK;
  status ended = is_ps ? wait_all_finished(host) : cluster_wait_stopped(host->cluster);
  return ended == CANCELLED && is_ps && job_is_over(host->job) ? OK : ended;
}

/* It has done its phases, and tells those who wait for that. */
static status say_finished(struct host *host) {
  commit_finish(host->task, host->program->task, true);
  if (!host->cluster)
    return OK;
  doctor_enter(host->doctor, STAGE_HAS_FINISHED, NULL, 0);
  cluster_announce_finished(host->cluster);
  task_note_finished(host->task, host->program->task);
  return cluster_wait_heard(host->cluster, chief_has_runners(host) ? host->program->chief : PROGRAM_NONE);
}

/* A coordinator with phases has finished when it has heard that of all others' commands. */
static bool coordinator_waits(const struct host *host) {
  struct peer_look look;
  cluster_look(host->cluster, cluster_identity(host->cluster).coordinator, &look);
  return !look.is_self && look.has_phases;
}

/* After the phases. The command ends when nothing is left but to leave, where that can wait: who is killed before goes on with it. */
static status serve(struct host *host) {
  bool has_phases = host->options.phase_count > 0;
  if (has_phases && host->job)
    TRY(leave_job(host)); /* before it says that it has finished: what is undone is done again */
  TRY(close_last_phase(host));
  if (host->cluster && host->runners && runners_serve_others(host->runners))
    runners_expect_end(host->runners); /* others may leave as soon as they hear that all have finished */
  if (has_phases)
    TRY(say_finished(host));
  if (!host->cluster)
    return OK;
  if (!has_phases)
    doctor_enter(host->doctor, STAGE_SERVES, NULL, 0);
  bool ends_first = has_phases && coordinator_waits(host);
  if (ends_first)
    TRY(end_command(host, true));
  TRY(wait_for_others(host));
  return has_phases && !ends_first ? end_command(host, false) : OK;
}

static status open_records(struct host *host) {
  const struct program_task *self = program_task(host->program, host->program->task);
  progress_open(&host->progress);
  if (host->options.log_dir) {
    char name[256], folder[4096];
    snprintf(name, sizeof name, "%s_%u", program_text(host->program, self->job), self->index);
    snprintf(folder, sizeof folder, "%s/%s", host->options.log_dir, name); /* TensorBoard takes each folder for a run */
    TRY(events_create(folder, name, &host->events));
  }
  if (host->options.trace) {
    TRY(trace_create(host->options.trace, host->program->task, task_name(host->task), &host->trace));
    task_set_trace(host->task, host->trace);
  }
  return OK;
}

static status open_saver(struct host *host) {
  const struct saver_config config = host_checkpoints(host);
  return host_is_alone(host) && (config.folder || config.restore) ? saver_create(host->task, &config, &host->saver) : OK;
}

/* The registrar of replicas is needed by their rounds: it stays until the others have been told, too, that the group is not whole. */
static status end_rounds(struct host *host, status result) {
  char text[2048];
  if (result != FAILED_PRECONDITION || host->options.elastic || !replicas_decide_rounds(host->replicas))
    return result;
  snprintf(text, sizeof text, "%s", status_text());
  task_note_finished(host->task, host->program->task);
  (void)cluster_wait_dependents(host->cluster);
  return fail(result, "%s", text);
}

/* To somebody at a terminal, who sees nothing else of a task that only serves. */
static void say_address(const struct host *host) {
  if (host->cluster && host->options.phase_count == 0 && isatty(STDERR_FILENO))
    fprintf(stderr, "%s: listens at %s\n", task_name(host->task), cluster_task_address(host->cluster, host->program->task));
}

static status run_host(struct host *host) {
  TRY(open_records(host));
  TRY(open_saver(host));
  TRY(check_phases(host));
  TRY(course_create(host->task, &host->options, &host->course));
  TRY(runners_check(host->task, host->options.runners, host->options.runner_count));
  TRY(host_join(host));
  pthread_mutex_lock(&host->report_lock);
  host->has_joined = true;
  pthread_mutex_unlock(&host->report_lock);
  say_address(host);
  if (atomic_load(&host->is_stopped)) /* before that was there which is to be told */
    host_stop(host);
  doctor_enter(host->doctor, STAGE_ASKS_HISTORY, NULL, 0);
  if (host->job && host->options.phase_count > 0)
    TRY(job_wait(host->job));
  TRY(host_become_ready(host));
  if (!host_is_ready_after_first_phase(host)) {
    TRY(host_initialise_late(host));
    TRY(start_runners(host));
  }
  status result = end_rounds(host, run_phases(host));
  if (result != OK || !host->runners || !runners_serve_others(host->runners))
    result = finish_runners(host, result);
  result = result == OK ? finish_runners(host, serve(host)) : result;
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  status closed = close_last_phase(host); /* also when it could not leave as it should */
  return result == OK ? closed : fail(result, "%s", text);
}

/* On SIGHUP: new certificates, for connections that begin from now on. */
static void reload_host(void *self) {
  struct host *host = self;
  pthread_mutex_lock(&host->report_lock);
  if (!host->is_leaving && host->cluster) {
    status code = cluster_reload_tls(host->cluster);
    fprintf(stderr, "%s: %s%s\n", task_name(host->task),
            code == OK ? "the certificate was read again" : "the certificate stays as it was: ", code == OK ? "" : status_text());
  }
  pthread_mutex_unlock(&host->report_lock);
}

/* step_ms: for so long the step that runs may come to its end, where the last checkpoint needs that. */
static void stop(struct host *host, uint32_t step_ms) {
  atomic_store(&host->is_stopped, true);
  pthread_mutex_lock(&host->report_lock);
  bool has_joined = host->has_joined && !host->is_leaving;
  if (has_joined)
    job_stop(host->job);
  if (has_joined && step_ms && job_keeps_own(host->job))
    task_wind_up(host->task, step_ms);
  if (!host->is_leaving)
    task_stop(host->task);
  if (has_joined)
    replicas_stop(host->replicas);
  if (has_joined && host->cluster)
    cluster_stop(host->cluster);
  if (has_joined)
    course_stop(host->course);
  pthread_mutex_unlock(&host->report_lock);
}
void host_stop(void *self) { stop(self, 0); }
/* On SIGTERM, from the thread that waits for it. */
static void host_end(void *self) { stop(self, LAST_STEP_MS); }

/* On SIGUSR1, from the thread that waits for it. A task that is being torn down says nothing more. */
static void report_host(void *self) {
  struct host *host = self;
  pthread_mutex_lock(&host->report_lock);
  if (!host->is_leaving && host->doctor)
    doctor_report(host->doctor);
  else if (host->task)
    fprintf(stderr, "%s: %s\n", task_name(host->task), host->is_leaving ? "leaves" : "starts");
  pthread_mutex_unlock(&host->report_lock);
}

/* What was learnt is saved also when the others have gone, or when results could not be written. */
static status save_at_end(struct host *host, status code) {
  if (code != OK && code != CANCELLED && code != UNAVAILABLE && code != DATA_LOSS)
    return code;
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  status saved = host->job ? job_finish(host->job, code == OK) : saver_finish(host->saver);
  return saved != OK && code == OK ? saved : code == OK ? OK : fail(code, "%s", text);
}

/* Whom SIGUSR1 asks, until it is gone. */
static void destroy_task(struct host *host) {
  struct task *task = host->task;
  pthread_mutex_lock(&host->report_lock);
  host->task = NULL;
  pthread_mutex_unlock(&host->report_lock);
  task_destroy(task);
}

/* Cleans up, then says how it ended: the last line is the error. */
static int leave(struct host *host, status code) {
  char text[2048];
  doctor_enter(host->doctor, STAGE_LEAVES, NULL, 0);
  if (host->cluster && cluster_refusal(host->cluster) != OK)
    code = FAILED_PRECONDITION; /* whatever else it brought about */
  status job = job_failure(host->job);
  code = job != OK ? job : code;
  if (host->saver || host->job)
    code = save_at_end(host, code);
  snprintf(text, sizeof text, "%s", status_text());
  bool gives_up = code == UNAVAILABLE || code == DEADLINE_EXCEEDED;
  if (host->task && gives_up && !signals_caught())
    task_give_up(host->task, text);
  if (host->task)
    task_close(host->task);
  status closed = events_close(host->events), traced = trace_close(host->trace);
  if (code == OK && (closed != OK || traced != OK)) {
    code = closed != OK ? closed : traced;
    snprintf(text, sizeof text, "%s", status_text());
  }
  pthread_mutex_lock(&host->report_lock);
  host->is_leaving = true;
  pthread_mutex_unlock(&host->report_lock);
  int caught = code != OK ? signals_caught() : 0;
  if (host->cluster && (caught || gives_up))
    cluster_give_up(host->cluster, caught ? CANCELLED : UNAVAILABLE, caught ? "it was stopped" : text);
  doctor_stop(host->doctor);
  client_service_destroy(host->clients);
  job_close(host->job);
  cluster_destroy(host->cluster);
  replicas_destroy(host->replicas);
  job_destroy(host->job);
  doctor_destroy(host->doctor);
  saver_destroy(host->saver);
  destroy_task(host);
  options_deinit(&host->options);
  status written = output_flush();
  if (code == OK && written != OK) {
    code = written;
    snprintf(text, sizeof text, "%s", status_text());
  }
  if (caught)
    return 128 + caught;
  if (code != OK)
    fprintf(stderr, "error: %s: %s\n", status_name(code), text);
  return status_exit_code(code);
}

int task_main(const struct program *program, const struct kernel_code *kernels, int argc, char **argv) {
  /* outlives this function: the thread that waits for signals refers to it */
  static struct host host = {.report_lock = PTHREAD_MUTEX_INITIALIZER};
  signals_block();
  float_mode_set();
  host.program = program;
  status result = options_parse(argc, argv, &host.options);
  if (result != OK) {
    leave(&host, result);
    return 64;
  }
  if (host.options.help || host.options.version) {
    if (host.options.help)
      print_usage(host.program, argv[0]);
    else
      puts("tfc " TFC_VERSION);
    return leave(&host, OK);
  }
  result = task_create(program, kernels, host.options.threads, &host.task);
  if (result != OK)
    return leave(&host, result);
  if (host.options.tls.cert)
    signals_reload_by(reload_host);
  signals_watch(host_end, report_host, &host);
  result = run_host(&host);
  return leave(&host, result);
}
