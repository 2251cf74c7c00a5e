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
#include "tests/simulator/memory.h"
#include "tests/simulator/net.h"
#include "tests/simulator/process.h"

int planted_fault; /* runtime/program/fault.h */

static struct run_report *report; /* shared with children */

static void *shared(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    abort();
  return memory;
}

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
  static const uint32_t switches[] = {0, 64, 16, 4, 2};
  static const uint64_t latencies[] = {20, 100, 100, 1000, 20000};
  static const uint32_t rooms[] = {65536, 65536, 4096, 512};
  *world_manner() = (struct world_manner){.switch_in = switches[random_below(random, 5)],
                                          .latency_ns = latencies[random_below(random, 5)] * WORLD_US,
                                          .bytes_per_s = random_below(random, 4) ? 100000000 : 1000000,
                                          .socket_room = rooms[random_below(random, 4)]};
}

/* Some are far from each other: what one has long had another still waits for. */
static void choose_distances(struct random *random, const struct scenario *scenario) {
  static const uint64_t times[] = {0, 0, 0, 3, 30};
  uint32_t machines = scenario->job->task_count;
  for (uint32_t a = 0; a < machines; a++)
    for (uint32_t b = 0; b < a; b++)
      net_set_distance(a, b,
                       scenario->distance_ms                   ? scenario->distance_ms * WORLD_MS
                       : world_manner()->latency_ns > WORLD_MS ? 0
                                                               : world_manner()->latency_ns * times[random_below(random, 5)]);
}

/* A .npy file whose rows are 0, 1, 2 ... for what counts, and 1, 2 ... or something like data for what is real. */
static void put_feed(struct disk *disk, const struct job_feed *feed, uint32_t rows, uint32_t from) {
  enum { HEADER = 128 };
  uint32_t columns = feed->columns ? feed->columns : 1, count = rows * columns;
  char path[64], shape[32] = "", *bytes = malloc(HEADER + 4 * (size_t)count);
  if (!bytes)
    abort();
  if (feed->columns)
    snprintf(shape, sizeof shape, " %u", feed->columns);
  memset(bytes, ' ', HEADER);
  memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
  int size = sprintf(bytes + 10, "{'descr': '<%s', 'fortran_order': False, 'shape': (%u,%s), }", feed->is_float ? "f4" : "i4", rows, shape);
  bytes[10 + size] = ' ';
  bytes[HEADER - 1] = '\n';
  for (uint32_t i = 0; i < count; i++) {
    int32_t number = (int32_t)(feed->is_float || !strcmp(feed->name, "k") ? from + i : i * 7 % 4);
    float real = feed->columns ? (float)(i * 2654435761u >> 16 & 1023) / 1024 - 0.5f : (float)(from + i + 1);
    memcpy(bytes + HEADER + 4 * i, feed->is_float ? (const void *)&real : (const void *)&number, 4);
  }
  snprintf(path, sizeof path, "/%s.npy", feed->name);
  disk_put(disk, path, bytes, HEADER + 4 * count);
  free(bytes);
}

bool run_has_fewer(const struct scenario *scenario, const struct job_task *task, uint64_t seed) {
  const struct job *job = scenario->job;
  return scenario->fewer && task == &job->tasks[job->ps_count + seed % job->worker_count];
}

static char **arguments_of(const struct scenario *scenario, const struct job_task *task, const char *more, uint64_t seed) {
  char *text = NULL, **argv = calloc(48, sizeof *argv), *rest;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  int argc = 0;
  const struct job *job = scenario->job;
  fprintf(out, "%s --threads 1 --timeout %u%s", task->name, scenario->timeout_s, more);
  if (scenario->with_checkpoints && task->is_ps)
    fprintf(out, " --checkpoint-dir /saved %s", scenario->saves ? scenario->saves : "--save-steps 2");
  if (scenario->more)
    fprintf(out, " %s", scenario->more);
  if (!task->is_ps) {
    uint32_t fewer = run_has_fewer(scenario, task, seed) ? scenario->fewer : 0;
    fprintf(out, " --entry train --batch %u --steps %u", job->batch, scenario->steps - fewer);
    for (int i = 0; i < 2; i++)
      fprintf(out, " --feed %s=/%s.npy", job->feeds[i].name, job->feeds[i].name);
    if (job->fetch)
      fprintf(out, " --fetch %s=/%s.npy", job->fetch, job->fetch);
  }
  fclose(out);
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    argv[argc++] = word;
  return argv;
}

/* Files that are fed; replicas take turns in their rows. */
static void put_feeds(const struct scenario *scenario, uint32_t machine, uint32_t from) {
  uint32_t rows = scenario->steps * scenario->job->worker_count * scenario->job->batch;
  for (int i = 0; i < 2; i++)
    put_feed(machine_get(machine)->disk, &scenario->job->feeds[i], rows, from);
}

void run_redraw(const struct scenario *scenario, const struct run_task *task) {
  if (scenario->redraws && !task->built->is_ps)
    put_feeds(scenario, task->machine, JOB_REDRAWN);
}

static void prepare(struct run *run) {
  const struct scenario *scenario = run->scenario;
  uint64_t seed = run->options.seed;
  for (uint32_t i = 0; i < scenario->job->task_count; i++) {
    const struct job_task *built = &scenario->job->tasks[i];
    char address[64];
    snprintf(address, sizeof address, " --address m%u:%u", RUN_TWIN_MACHINE + i, 2000 + i);
    run->tasks[i] = (struct run_task){.built = built, .number = i, .machine = i, .argv = arguments_of(scenario, built, "", seed)};
    run->twins[i] =
      (struct run_task){.built = built, .number = i, .machine = RUN_TWIN_MACHINE + i, .argv = arguments_of(scenario, built, address, seed)};
    if (built->is_ps)
      continue;
    put_feeds(scenario, i, 0);
    put_feeds(scenario, RUN_TWIN_MACHINE + i, 0);
  }
}

static uint32_t draw(struct random *random, const struct scenario *scenario, struct mishap *out) {
  const struct job *job = scenario->job;
  uint32_t count = mishaps_draw(random, scenario->mishaps, job->ps_count, job->task_count, scenario->typical_turns, out);
  mishaps_aim(random, scenario->moments, out, count);
  return count;
}

static void run_in_child(struct scenario *scenario, const struct run_options *options) {
  struct run run = {.scenario = scenario, .options = *options, .report = report};
  struct random random = {.state = options->seed ^ UINT64_C(0x5deece66d)}, places = {.state = options->seed * 31 + 7};
  world_begin(options->seed, report->story, sizeof report->story);
  planted_fault = options->fault;
  choose_manner(&random);
  if (options->seed == RUN_CALM_SEED)
    *world_manner() = (struct world_manner){.switch_in = 16, .latency_ns = 100 * WORLD_US, .bytes_per_s = 100000000, .socket_room = 65536};
  if (options->seed != RUN_CALM_SEED)
    choose_distances(&places, scenario);
  world_manner()->stall_in = options->seed == RUN_CALM_SEED ? 0 : scenario->stall_in;
  run.mishap_count = draw(&random, scenario, run.mishaps);
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

/* A run without mishaps, in a calm manner: how long it is, and what comes out of it. */
static void measure(struct scenario *scenario) {
  struct scenario calm = *scenario;
  calm.mishaps = 0;
  calm.typical_turns = 1;
  calm.reference = scenario->reference = shared(sizeof *scenario->reference);
  calm.spread_ns = 5 * WORLD_MS;
  run_once(&calm, &(struct run_options){.seed = RUN_CALM_SEED});
  scenario->typical_turns = report->turns;
}

const struct run_report *run_once(struct scenario *scenario, const struct run_options *options) {
  if (!report) {
    report = shared(sizeof *report);
    memory_prepare();
  }
  if (!scenario->typical_turns)
    measure(scenario);
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

uint64_t run_many(struct scenario *scenario, uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; seed++)
    if (run_once(scenario, &(struct run_options){.seed = seed})->has_failed)
      return seed;
  return UINT64_MAX;
}

uint64_t run_until_noticed(struct scenario *scenario, uint64_t first, uint64_t count, int fault) {
  for (uint64_t seed = first; seed < first + count; seed++)
    if (run_once(scenario, &(struct run_options){.seed = seed, .fault = fault})->has_failed &&
        !run_once(scenario, &(struct run_options){.seed = seed})->has_failed)
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
  struct random random = {.state = options->seed ^ UINT64_C(0x5deece66d)};
  struct mishap mishaps[MISHAPS_MAX];
  choose_manner(&random);
  uint32_t count = draw(&random, scenario, mishaps);
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
