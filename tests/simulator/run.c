/* run.c: a run in a child process; many of them; the smallest one that still fails. */
#include "tests/simulator/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulator/disk.h"
#include "tests/simulator/process.h"

int planted_fault; /* runtime/program/fault.h */

static struct run_report *report; /* shared with children */

void run_fault(struct run *run, const char *format, ...) {
  va_list arguments;
  if (run->report->has_failed)
    return;
  run->report->has_failed = true;
  va_start(arguments, format);
  vsnprintf(run->report->what, sizeof run->report->what, format, arguments);
  va_end(arguments);
  world_say("--", "FAULT: %s", run->report->what);
}

bool run_had(const struct run *run, enum mishap_kind kind) {
  for (uint32_t i = 0; i < run->mishap_count; i++)
    if (run->mishaps[i].has_happened && run->mishaps[i].kind == kind)
      return true;
  return false;
}

/* ---- what a run begins with ---- */

static void choose_manner(struct random *random) {
  static const uint32_t switches[] = { 0, 64, 16, 4, 2 };
  static const uint64_t latencies[] = { 20, 100, 100, 1000, 20000 };
  static const uint32_t rooms[] = { 65536, 65536, 4096, 512 };
  *world_manner() = (struct world_manner){ .switch_in = switches[random_below(random, 5)],
                                           .latency_ns = latencies[random_below(random, 5)] * WORLD_US,
                                           .bytes_per_s = random_below(random, 4) ? 100000000 : 1000000,
                                           .socket_room = rooms[random_below(random, 4)] };
}

/* A .npy file of one column: numbers from `first` on. */
static void put_column(struct disk *disk, const char *path, const char *type, uint32_t rows, int first) {
  char bytes[2048], header[128];
  int size = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%u,), }", type, rows);
  memset(header + size, ' ', sizeof header - (size_t)size);
  header[117] = '\n';
  memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
  memcpy(bytes + 10, header, 118);
  for (uint32_t i = 0; i < rows; i++) {
    int32_t number = first + (int)i;
    float real = (float)number;
    memcpy(bytes + 128 + 4 * i, type[1] == 'f' ? (const void *)&real : (const void *)&number, 4);
  }
  disk_put(disk, path, bytes, 128 + 4 * rows);
}

static char **arguments_of(const struct scenario *scenario, const struct job_task *task) {
  static char texts[JOB_TASKS_MAX][512];
  static int count;
  char *text = texts[count++], **argv = calloc(32, sizeof *argv), *rest;
  int argc = 0, size = snprintf(text, sizeof texts[0], "%s --threads 1 --timeout %u", task->name, scenario->timeout_s);
  if (scenario->with_checkpoints && task->is_ps)
    size += snprintf(text + size, sizeof texts[0] - (size_t)size, " --checkpoint-dir /saved --save-steps 2");
  if (!task->is_ps)
    snprintf(text + size, sizeof texts[0] - (size_t)size,
             " --entry train --feed k=/k.npy --feed x=/x.npy --batch 1 --steps %u --fetch y=/y.npy", scenario->steps);
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    argv[argc++] = word;
  return argv;
}

static void prepare(struct run *run) {
  const struct scenario *scenario = run->scenario;
  for (uint32_t i = 0; i < scenario->job->task_count; i++) {
    struct run_task *task = &run->tasks[i];
    *task = (struct run_task){ .built = &scenario->job->tasks[i], .number = i, .argv = arguments_of(scenario, &scenario->job->tasks[i]) };
    if (task->built->is_ps)
      continue;
    put_column(machine_get(i)->disk, "/k.npy", "<i4", scenario->steps * scenario->job->worker_count, 0); /* replicas take turns */
    put_column(machine_get(i)->disk, "/x.npy", "<f4", scenario->steps * scenario->job->worker_count, 1);
  }
}

static void run_in_child(struct scenario *scenario, const struct run_options *options) {
  struct run run = { .scenario = scenario, .options = *options, .report = report };
  struct random random = { .state = options->seed ^ UINT64_C(0x5deece66d) };
  world_begin(options->seed, report->story, sizeof report->story);
  planted_fault = options->fault;
  choose_manner(&random);
  run.mishap_count =
      mishaps_draw(&random, scenario->mishaps, scenario->job->ps_count, scenario->job->task_count, scenario->typical_turns, run.mishaps);
  report->mishap_count = run.mishap_count;
  prepare(&run);
  uint64_t began = world_now();
  bool ended = run_play(&run);
  report->turns = world_turns() - run.first_turn;
  report->virtual_ns = world_now() - began;
  if (!ended)
    run_fault(&run, "somebody waits for ever");
  else
    scenario->check(&run);
}

/* ---- runs ---- */

const struct run_report *run_once(struct scenario *scenario, const struct run_options *options) {
  if (!report)
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (report == MAP_FAILED)
    abort();
  if (scenario->mishaps && !scenario->typical_turns) {
    struct scenario calm = *scenario;
    calm.mishaps = 0;
    run_once(&calm, &(struct run_options){ .seed = 1 });
    scenario->typical_turns = report->turns;
  }
  report->has_failed = false;
  report->what[0] = 0;
  report->story[0] = 0;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    run_in_child(scenario, options);
    _exit(0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  if (!WIFEXITED(state) || WEXITSTATUS(state)) {
    report->has_failed = true;
    snprintf(report->what, sizeof report->what, "it crashed: signal %d", WIFSIGNALED(state) ? WTERMSIG(state) : 0);
  }
  return report;
}

uint64_t run_many(struct scenario *scenario, uint64_t first, uint64_t count, int fault) {
  for (uint64_t seed = first; seed < first + count; seed++)
    if (run_once(scenario, &(struct run_options){ .seed = seed, .fault = fault })->has_failed)
      return seed;
  return UINT64_MAX;
}

uint32_t run_shrink(struct scenario *scenario, struct run_options *options) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < MISHAPS_MAX; i++) {
    struct run_options fewer = *options;
    fewer.without |= 1u << i;
    if (run_once(scenario, &fewer)->has_failed)
      *options = fewer;
  }
  run_once(scenario, options);
  for (uint32_t i = 0; i < report->mishap_count; i++)
    left += !(options->without & 1u << i);
  return left;
}

void run_tell(struct scenario *scenario, const struct run_options *options, bool whole_story) {
  struct random random = { .state = options->seed ^ UINT64_C(0x5deece66d) };
  struct mishap mishaps[MISHAPS_MAX];
  choose_manner(&random);
  uint32_t count =
      mishaps_draw(&random, scenario->mishaps, scenario->job->ps_count, scenario->job->task_count, scenario->typical_turns, mishaps);
  const struct world_manner *manner = world_manner();
  printf("%s, seed %llu: %s\n", scenario->name, (unsigned long long)options->seed, report->has_failed ? report->what : "well");
  printf("  links of %llu us, %u bytes of room; a thread gives way at one call in %u; %llu turns in %.3f s\n",
         (unsigned long long)(manner->latency_ns / WORLD_US), manner->socket_room, manner->switch_in, (unsigned long long)report->turns,
         (double)report->virtual_ns / 1e9);
  for (uint32_t i = 0; i < count; i++) {
    char text[256];
    mishap_text(&mishaps[i], text, sizeof text);
    if (!(options->without & 1u << i))
      printf("  %s\n", text);
  }
  printf("  again: build/test_simulator --scenario %s --seed %llu --without %u --fault %d\n", scenario->name,
         (unsigned long long)options->seed, options->without, options->fault);
  if (whole_story)
    fputs(report->story, stdout);
}
