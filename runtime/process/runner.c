/* runner.c: one thread for each loop; what they share is under one lock. */
#include "runtime/process/runner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/process/course.h"

struct loop_thread {
  struct runners *runners;
  const struct program_runner *code; /* NULL: of the command line */
  uint32_t entry;
  struct course *course; /* its lane; NULL: what it changes goes with this process */
  uint32_t *left;        /* loops of its runner that still run; under the lock */
  struct tensor **fetches;
  pthread_t thread;
};
struct runners {
  struct runner_config config;
  const struct program *program;
  atomic_bool ending; /* the loops' steps are given up */
  atomic_bool expects_end;
  pthread_mutex_t lock;
  status code; /* the first failure */
  char text[3072];
  uint32_t *left; /* for each runner of the program */
  struct loop_thread *threads;
  uint32_t count, started;
};

static const struct program_entry *entry_of(const struct runners *r, uint32_t entry) { return program_entry(r->program, entry); }
static const char *entry_name(const struct runners *r, uint32_t entry) { return program_text(r->program, entry_of(r, entry)->name); }

static bool is_ours(const struct runners *r, const struct program_runner *runner) {
  return runner->is_chiefs ? r->config.is_chief : r->config.is_replica || r->config.is_chief;
}

/* ---- a loop ---- */

static void note_failure(struct loop_thread *loop, status code) {
  struct runners *r = loop->runners;
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  pthread_mutex_lock(&r->lock);
  bool first = r->code == OK && !atomic_load(&r->ending);
  if (first) {
    r->code = code;
    snprintf(r->text, sizeof r->text, "runner '%.400s': entry '%.400s': %s",
             loop->code ? program_text(r->program, loop->code->name) : entry_name(r, loop->entry), entry_name(r, loop->entry), text);
  }
  pthread_mutex_unlock(&r->lock);
  if (first)
    r->config.on_failed(r->config.self);
}

static status run_once(struct loop_thread *loop, uint32_t entry, struct run_request request, struct tensor **fetches) {
  request.gone = &loop->runners->ending;
  const struct program_entry *code = entry_of(loop->runners, entry);
  TRY(task_run(loop->runners->config.task, entry, NULL, fetches, &request));
  for (uint32_t i = 0; i < code->fetches.count; i++)
    tensor_release(fetches[i]);
  return OK;
}

/* What comes before the first step, and again after a peer was lost: it may have come back empty. */
static status begin(struct loop_thread *loop) {
  struct runners *r = loop->runners;
  TRY(r->config.wait_peers(r->config.self, loop->entry));
  if (loop->course)
    TRY(course_join(loop->course));
  return loop->code && loop->code->begin != PROGRAM_NONE ? run_once(loop, loop->code->begin, (struct run_request){0}, NULL) : OK;
}

/* A peer was lost, or restored: waits for it, and begins again. */
static status begin_again(struct loop_thread *loop, status failure) {
  while (failure == UNAVAILABLE || failure == ABORTED) {
    if (loop->course)
      TRY(course_recover(loop->course, course_place(loop->course), failure));
    else if (failure == ABORTED)
      return failure;
    failure = begin(loop);
  }
  return failure;
}

static status run_step(struct loop_thread *loop) {
  if (!loop->course)
    return run_once(loop, loop->entry, (struct run_request){0}, loop->fetches);
  struct course_place place = course_place(loop->course);
  TRY(run_once(loop, loop->entry, course_request(loop->course, place), loop->fetches));
  course_next(loop->course);
  return OK;
}

/* The last loop of a runner that has come to its end closes the queue; somebody else may have closed it already. */
static void end(struct loop_thread *loop) {
  struct runners *r = loop->runners;
  pthread_mutex_lock(&r->lock);
  bool is_last = loop->left && --*loop->left == 0;
  pthread_mutex_unlock(&r->lock);
  if (is_last && loop->code->close != PROGRAM_NONE)
    (void)run_once(loop, loop->code->close, (struct run_request){0}, NULL);
}

static bool is_end(const struct loop_thread *loop, status code) {
  uint64_t codes = loop->code ? loop->code->end_codes : UINT64_C(1) << OUT_OF_RANGE;
  return codes >> code & 1;
}

/* The phases are done, and a task without which the loop cannot go on has left: so are the others'. */
static bool is_over(void *self) {
  const struct loop_thread *loop = self;
  struct runners *r = loop->runners;
  return atomic_load(&r->expects_end) && r->config.has_left(r->config.self, loop->entry);
}

static void *loop_main(void *self) {
  struct loop_thread *loop = self;
  struct runners *r = loop->runners;
  status result = begin_again(loop, begin(loop));
  while (!atomic_load(&r->ending)) {
    if (result == OK)
      result = run_step(loop);
    if (result == OK)
      continue;
    if (is_end(loop, result)) {
      end(loop);
      return NULL;
    }
    result = begin_again(loop, result);
    if (result != OK && is_over(loop)) {
      r->config.on_ended(r->config.self);
      return NULL;
    }
    if (result != OK) {
      note_failure(loop, result);
      return NULL;
    }
  }
  return NULL;
}

/* ---- all of them ---- */

status runners_check(const struct task *task, const char *const *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t entry = task_find_entry(task, entries[i]);
    if (entry == PROGRAM_NONE)
      return fail(NOT_FOUND, "--runner %s: there is no such entry (--help lists them)", entries[i]);
    if (program_entry(task_program(task), entry)->feeds.count)
      return fail(INVALID_ARGUMENT, "--runner %s: the entry needs feeds, and a runner has none: run it as a phase", entries[i]);
  }
  return OK;
}

/* What it changes is on other tasks, which may outlive this process. */
static bool is_counted(const struct runners *r, uint32_t number) {
  const struct program_entry *entry = entry_of(r, number);
  const uint32_t *tasks = program_operands(r->program, entry->tasks.first);
  for (uint32_t i = 0; i < entry->tasks.count && entry->changes_state; i++)
    if (tasks[i] != r->program->task)
      return true;
  return false;
}

static status loop_add(struct runners *r, const struct program_runner *code, uint32_t *left, uint32_t entry) {
  struct loop_thread *loop = &r->threads[r->count];
  *loop = (struct loop_thread){.runners = r, .code = code, .entry = entry, .left = left};
  uint32_t fetches = entry_of(r, entry)->fetches.count;
  loop->fetches = calloc((size_t)fetches + 1, sizeof *loop->fetches);
  if (!loop->fetches)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  r->count++;
  if (!is_counted(r, entry))
    return OK;
  TRY(course_create_lane(r->config.course, entry, r->count, &loop->course));
  course_expect_end(loop->course, is_over, loop);
  return OK;
}

static status loops_add(struct runners *r) {
  uint32_t count = (uint32_t)r->program->tables[PROGRAM_RUNNERS].count, loops = r->config.entry_count;
  for (uint32_t i = 0; i < count; i++)
    loops += program_runner(r->program, i)->entries.count;
  r->threads = calloc((size_t)loops + 1, sizeof *r->threads);
  r->left = calloc((size_t)count + 1, sizeof *r->left);
  if (!r->threads || !r->left)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < count; i++) {
    const struct program_runner *code = program_runner(r->program, i);
    r->left[i] = code->entries.count;
    for (uint32_t k = 0; k < code->entries.count && is_ours(r, code); k++)
      TRY(loop_add(r, code, &r->left[i], program_operands(r->program, code->entries.first)[k]));
  }
  for (uint32_t i = 0; i < r->config.entry_count; i++)
    TRY(loop_add(r, NULL, NULL, task_find_entry(r->config.task, r->config.entries[i])));
  return OK;
}

status runners_start(const struct runner_config *config, struct runners **out) {
  struct runners *r = calloc(1, sizeof *r);
  if (!r)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  r->config = *config;
  r->program = task_program(config->task);
  pthread_mutex_init(&r->lock, NULL);
  *out = r;
  TRY(loops_add(r));
  for (; r->started < r->count; r->started++)
    if (pthread_create(&r->threads[r->started].thread, NULL, loop_main, &r->threads[r->started]) != 0)
      return fail(RESOURCE_EXHAUSTED, "no thread for a queue runner");
  return OK;
}

bool runners_serve_others(const struct runners *r) {
  for (uint32_t i = 0; i < r->count; i++) {
    const struct program_runner *code = r->threads[i].code;
    if (code && code->is_chiefs && entry_of(r, r->threads[i].entry)->tasks.count > 0)
      return true;
  }
  return false;
}

void runners_expect_end(struct runners *r) { atomic_store(&r->expects_end, true); }

status runners_finish(struct runners *r) {
  pthread_mutex_lock(&r->lock);
  atomic_store(&r->ending, true);
  pthread_mutex_unlock(&r->lock);
  for (uint32_t i = 0; i < r->count; i++)
    if (r->threads[i].course)
      course_stop(r->threads[i].course);
  task_poll_clients(r->config.task);
  for (; r->started > 0; r->started--)
    pthread_join(r->threads[r->started - 1].thread, NULL);
  return r->code == OK ? OK : fail(r->code, "%s", r->text);
}

void runners_destroy(struct runners *r) {
  if (!r)
    return;
  for (uint32_t i = 0; i < r->count; i++)
    free(r->threads[i].fetches);
  free(r->threads);
  free(r->left);
  pthread_mutex_destroy(&r->lock);
  free(r);
}
