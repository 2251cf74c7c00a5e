/* drive.c: the life of a step.
 *
 * A step that concerns this task alone runs on its caller's thread, known to nobody. Any other is in the task's list from
 * its start until all who have a part in it have reported; its first failure is its result, and makes everybody else stop.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/program/size.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/crew.h"
#include "runtime/step/memory_report.h"
#include "runtime/step/rehearsal.h"
#include "runtime/step/step_stats.h"
#include "runtime/step/task_state.h"

/* ---- steps ---- */

/* The caller holds the task's lock. */
static uint64_t step_next_id(struct task *task) {
  return ((uint64_t)task->program->task << 48) | (++task->next_step & ((UINT64_C(1) << 48) - 1));
}

/* The caller holds the task's lock. */
struct step *step_find(struct task *task, uint64_t id) {
  for (struct step *step = task->steps; step; step = step->next)
    if (step->id == id)
      return step;
  return NULL;
}

void step_enter(struct task *task, struct step *step) {
  rendezvous_begin(task->rendezvous, step->id);
  pthread_mutex_lock(&task->lock);
  step->next = task->steps;
  task->steps = step;
  pthread_mutex_unlock(&task->lock);
}

void step_leave(struct task *task, struct step *step) {
  pthread_mutex_lock(&task->lock);
  for (struct step **at = &task->steps; *at; at = &(*at)->next)
    if (*at == step) {
      *at = step->next;
      break;
    }
  bool is_awaited = task->turns_awaited > 0;
  pthread_mutex_unlock(&task->lock);
  if (is_awaited)
    pthread_cond_broadcast(&task->changed);
  if (!step->is_background && step->code != OK)
    hall_step_over(task->hall, step->driver, step->id, atomic_load(&step->sealed));
}

/* The caller holds the task's lock. True when this is the first failure. */
static bool step_fail_locked(struct step *step, status code, const char *text) {
  bool first = step->code == OK;
  if (first) {
    step->code = code;
    snprintf(step->text, sizeof step->text, "%s", text);
  }
  atomic_store(&step->cancelled, true);
  for (struct inbox *inbox = step->inboxes; inbox; inbox = inbox->next_of_step)
    inbox_poke(inbox);
  if (step->task->turns_awaited > 0)
    pthread_cond_broadcast(&step->task->changed);
  return first;
}

static void cancel_guests(struct task *task, uint64_t id, uint32_t entry) {
  struct program_range tasks = program_entry(task->program, entry)->tasks;
  const uint32_t *list = program_operands(task->program, tasks.first);
  for (uint32_t i = 0; i < tasks.count; i++)
    if (list[i] != task->program->task)
      task->exchange->cancel(task->exchange->self, list[i], id);
}

/* What is to be told of a step that was given up, when the lock is free. */
struct bad_news {
  uint64_t id;
  uint32_t entry;
  bool is_first, is_for_guests;
};

/* The caller holds the task's lock. While its driver is still telling the others to begin (start_guests), that is left to it: who hears of
 * the end of a step before its beginning knows of no such step, begins it then, and waits for ever for values that do not come. */
static struct bad_news step_give_up(struct step *step, status code, const char *text) {
  bool is_first = step_fail_locked(step, code, text) && !step->is_background;
  return (struct bad_news){step->id, step->entry, is_first, is_first && step->is_launched};
}

/* Tells everybody that has a part in a failed step. */
static void step_spread_failure(struct task *task, const struct bad_news *news, status code, const char *text) {
  if (news->is_first)
    rendezvous_abort(task->rendezvous, news->id, code, text);
  if (news->is_for_guests)
    cancel_guests(task, news->id, news->entry);
}

void step_fail(struct step *step, status code, const char *text) {
  struct task *task = step->task;
  pthread_mutex_lock(&task->lock);
  struct bad_news news = step_give_up(step, code, text);
  pthread_mutex_unlock(&task->lock);
  step_spread_failure(task, &news, code, text);
}

/* The same when only its number is known; false when it is not here (any more). */
bool step_fail_by_id(struct task *task, uint64_t id, status code, const char *text) {
  struct bad_news news = {0};
  pthread_mutex_lock(&task->lock);
  struct step *step = step_find(task, id);
  if (step)
    news = step_give_up(step, code, text);
  pthread_mutex_unlock(&task->lock);
  step_spread_failure(task, &news, code, text);
  return step != NULL;
}

void step_add_inbox(struct step *step, struct inbox *inbox) {
  pthread_mutex_lock(&step->task->lock);
  inbox->next_of_step = step->inboxes;
  step->inboxes = inbox;
  if (atomic_load(&step->cancelled))
    inbox_poke(inbox);
  pthread_mutex_unlock(&step->task->lock);
}

void step_remove_inbox(struct step *step, struct inbox *inbox) {
  pthread_mutex_lock(&step->task->lock);
  for (struct inbox **at = &step->inboxes; *at; at = &(*at)->next_of_step)
    if (*at == inbox) {
      *at = inbox->next_of_step;
      break;
    }
  pthread_mutex_unlock(&step->task->lock);
}

void step_begin_background(struct step *step, struct task *task, uint32_t entry) {
  *step = (struct step){.task = task, .entry = entry, .driver = task->program->task, .is_background = true};
  pthread_mutex_lock(&task->lock);
  step->id = step_next_id(task);
  step->next = task->steps;
  task->steps = step;
  if (atomic_load(&task->stopping)) /* task_stop may have looked before */
    step_fail_locked(step, CANCELLED, "the task is stopping");
  pthread_mutex_unlock(&task->lock);
}

void step_end_background(struct step *step) { step_leave(step->task, step); }

/* One's own part: what was changed on copies is there when the last receive has come, then what is behind it runs. */
static status run_in_two(struct frame *frame) {
  TRY(frame_run(frame));
  TRY(frame_take_over(frame));
  return frame_run(frame);
}

static status run_frame(struct part *part, struct step *step, const int64_t *symbols, struct rehearsal *rehearsal) {
  struct frame *frame;
  status placed = frame_acquire(part, step, symbols, &frame);
  if (placed != OK)
    return placed == RESOURCE_EXHAUSTED && step->reports_memory ? part_report_memory(part, symbols, placed) : placed;
  frame->is_part = true;
  frame->rehearsal = rehearsal;
  bool is_own = rehearsal_is_own(rehearsal), is_for_good = is_own || !rehearsal_is_on(frame);
  atomic_fetch_add_explicit(&part->task->at_work, 1, memory_order_relaxed);
  status result = is_own ? run_in_two(frame) : frame_run(frame);
  if (result == OK && is_for_good)
    result = frame_commit(frame);
  else
    frame_pause(frame);
  atomic_fetch_sub_explicit(&part->task->at_work, 1, memory_order_relaxed);
  frame_release(frame);
  if (result != OK && !part->code->dataflow) /* a dataflow part says so itself: it tells the step before it cleans up */
    status_suffix(result, " (on %s)", part->task->name);
  return result;
}

/* In an all-reduce: the steps of all replicas meet in its entry. */
static bool meets_replicas(const struct task *task, const struct step *step) {
  return (task->program->init_flags & INIT_EVERYWHERE) && program_entry(task->program, step->entry)->tasks.count > 0;
}

static bool is_rehearsed(const struct part *part, const struct step *step, bool is_own) {
  bool waits_for_others = !is_own || (meets_replicas(part->task, step) && !FAULT(55));
  return part->rehearsed && waits_for_others && !step->is_dry && !FAULT(6) && !FAULT(7);
}

static status part_run(struct part *part, struct step *step, const int64_t *symbols) {
  struct rehearsal *rehearsal = NULL;
  bool is_own = step->driver == part->task->program->task;
  if (!is_rehearsed(part, step, is_own))
    return run_frame(part, step, symbols, NULL);
  TRY(rehearsal_create(part->task, part, is_own, &rehearsal));
  status result = run_frame(part, step, symbols, rehearsal);
  if (result == OK && !is_own) {
    rehearsal_end(rehearsal);
    result = run_frame(part, step, symbols, rehearsal);
  }
  rehearsal_destroy(rehearsal);
  return result;
}

/* A step that changed the state of this task has ended well; initialising is no progress. */
void step_notify(const struct step *step) {
  const struct task *task = step->task;
  if (task->on_step && step->entry != task->init_entry && program_entry(task->program, step->entry)->changes_state)
    task->on_step(task->on_step_self);
}

/* Runs a part and tells the step when it fails. */
void part_run_reporting(struct part *part, struct step *step, const int64_t *symbols) {
  status result = part_run(part, step, symbols);
  if (result == OK)
    return;
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  step_fail(step, result, text);
}

/* The nodes that need the sizes of a feed to agree with others. */
static void say_reasons(const struct task *task, const struct program_port *port, status code) {
  const uint32_t *reasons = program_operands(task->program, port->reasons);
  for (int d = 0; d < port->rank; d++)
    if (*program_text(task->program, reasons[d]))
      status_suffix(code, "; %s needs dimension %d so", program_text(task->program, reasons[d]), d);
}

/* Gives the symbols in the shapes of the feeds values: the plain ones first, then the rest must agree. *fit: how many feeds do, before the
 * first that does not. */
static status bind_sizes(const struct task *task, uint32_t number, struct tensor *const *feeds, int64_t *symbols, uint32_t *fit) {
  const struct program_entry *entry = program_entry(task->program, number);
  *fit = 0;
  for (uint32_t i = 0; i < entry->feeds.count; i++) {
    const struct program_port *port = program_port(task->program, entry->feeds.first + i);
    for (int d = 0; d < port->rank; d++) {
      uint32_t symbol = size_symbol(program_words(task->program, program_operands(task->program, port->dims)[d]));
      if (symbol != PROGRAM_NONE && symbols[symbol] == SYMBOL_UNBOUND)
        symbols[symbol] = feeds[i]->shape.dims[d];
    }
  }
  for (uint32_t i = 0; i < entry->feeds.count; i++, ++*fit) {
    const struct program_port *port = program_port(task->program, entry->feeds.first + i);
    if (port->every_rank)
      continue;
    status result = shape_bind(task->program, program_operands(task->program, port->dims), port->rank, &feeds[i]->shape, symbols);
    if (result != OK) {
      TRY(task_check_feed_shape(task, port, &feeds[i]->shape)); /* alone, it says the shape that was declared */
      say_reasons(task, port, result);
      return status_prefix(result, "feed '%s': ", program_text(task->program, port->name));
    }
  }
  return OK;
}

static status check_feeds(const struct task *task, uint32_t number, struct tensor *const *feeds) {
  for (uint32_t i = 0; i < program_entry(task->program, number)->feeds.count; i++)
    TRY(task_check_feed(task, number, i, feeds[i]));
  return OK;
}

/* ---- driving ---- */

/* A part that runs beside its caller. */
struct errand {
  struct part *part;
  struct step *step;
  const int64_t *symbols;
};

static void errand_run(void *argument) {
  struct errand errand = *(struct errand *)argument;
  free(argument);
  struct task *task = errand.part->task;
  part_run_reporting(errand.part, errand.step, errand.symbols);
  pthread_mutex_lock(&task->lock);
  errand.step->waiting--;
  pthread_cond_broadcast(&task->changed);
  pthread_mutex_unlock(&task->lock);
}

static status errand_start(struct part *part, struct step *step, const int64_t *symbols) {
  struct errand *errand = malloc(sizeof *errand);
  if (!errand)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  *errand = (struct errand){part, step, symbols};
  status result = crew_run(part->task->crew, errand_run, errand);
  if (result != OK)
    free(errand);
  return result;
}

static uint32_t start_flags(const struct step *step) {
  return (step->stats ? START_TRACED : 0) | (step->reports_memory ? START_REPORTS_MEMORY : 0) | (step->partial ? START_PARTIAL : 0) |
         (step->is_once ? START_ONCE : 0);
}

static void start_guest(struct step *step, uint32_t guest) {
  struct task *task = step->task;
  pthread_mutex_lock(&task->lock);
  step->waiting++;
  pthread_mutex_unlock(&task->lock);
  task->exchange->start(task->exchange->self, guest, step->id, step->entry | start_flags(step), step->command, step->serial);
}

/* The first of them may have failed before the last has been told: then the step has been given up, and all hear of that from here, behind
 * its beginning. */
static void start_guests(struct step *step) {
  struct task *task = step->task;
  const struct program_range range = program_entry(task->program, step->entry)->tasks;
  const uint32_t *tasks = program_operands(task->program, range.first);
  for (uint32_t i = 0; i < range.count; i++)
    if (tasks[i] != task->program->task)
      start_guest(step, tasks[i]);
  for (uint32_t i = 0; i < step->also_count; i++)
    start_guest(step, step->also[i]);
  pthread_mutex_lock(&task->lock);
  step->is_launched = true;
  bool is_given_up = step->code != OK;
  pthread_mutex_unlock(&task->lock);
  if (is_given_up && !FAULT(46))
    cancel_guests(task, step->id, step->entry);
}

/* Tells the other tasks, and starts all parts of ours but the first, which is returned. */
static status step_launch(struct step *step, const int64_t *symbols, struct part **first) {
  struct task *task = step->task;
  const struct program_entry *entry = program_entry(task->program, step->entry);
  *first = NULL;
  start_guests(step);
  for (uint32_t i = 0; i < entry->parts.count; i++) {
    struct part *part = &task->parts[(step->partial ? entry->partial - 1 : entry->parts.first) + i];
    if (!*first) {
      *first = part;
      continue;
    }
    pthread_mutex_lock(&task->lock);
    step->waiting++;
    pthread_mutex_unlock(&task->lock);
    status result = errand_start(part, step, symbols);
    if (result != OK) {
      pthread_mutex_lock(&task->lock);
      step->waiting--;
      pthread_mutex_unlock(&task->lock);
      return result;
    }
  }
  return OK;
}

static status step_result(struct step *step) {
  struct task *task = step->task;
  pthread_mutex_lock(&task->lock);
  while (step->waiting > 0)
    pthread_cond_wait(&task->changed, &task->lock);
  status result = step->code == OK ? OK : fail(step->code, "%s", step->text);
  pthread_mutex_unlock(&task->lock);
  return result;
}

/* What the others have recorded came before they reported. */
static void collect_stats(struct step *step) {
  struct task *task = step->task;
  const struct program_entry *entry = program_entry(task->program, step->entry);
  for (uint32_t i = 0; i < entry->tasks.count; i++) {
    uint32_t from = program_operands(task->program, entry->tasks.first)[i];
    struct tensor *tensor = from == task->program->task ? NULL : rendezvous_poll(task->rendezvous, step->id, TRANSFER_STATS + from);
    step_stats_join(step->stats, tensor);
    tensor_release(tensor);
  }
}

static status step_drive(struct step *step, const int64_t *symbols) {
  struct task *task = step->task;
  step_enter(task, step);
  bool begins = !atomic_load(&task->stopping) && !atomic_load(&task->winds_up);
  if (!begins) { /* entered before: who stops it has seen it, or we see that it stops */
    step_leave(task, step);
    return fail(CANCELLED, "the task is stopping");
  }
  struct part *first;
  status result = step_launch(step, symbols, &first);
  if (result != OK) {
    char text[2048];
    snprintf(text, sizeof text, "%s", status_text());
    step_fail(step, result, text);
  } else if (first) {
    part_run_reporting(first, step, symbols);
  }
  result = step_result(step);
  if (result == OK && step->stats)
    collect_stats(step);
  step_leave(task, step);
  rendezvous_end(task->rendezvous, step->id);
  return result;
}

/* Nobody else has a part in it, and nothing in it waits. */
static bool entry_is_alone(const struct task *task, const struct program_entry *entry) {
  if (entry->parts.count != 1 || program_part(task->program, entry->parts.first)->dataflow)
    return false;
  const uint32_t *tasks = program_operands(task->program, entry->tasks.first);
  return entry->tasks.count == 0 || (entry->tasks.count == 1 && tasks[0] == task->program->task);
}

/* Whether this task may start the entry: it has a part for its driver, or needs none. */
static status entry_check_driver(const struct task *task, const struct program_entry *entry) {
  if (!entry->replicated)
    return OK;
  for (uint32_t i = 0; i < entry->parts.count; i++)
    if (program_part(task->program, entry->parts.first + i)->task == PROGRAM_TASK_SELF)
      return OK;
  return fail(FAILED_PRECONDITION, "the entry is run by the tasks of job '%s', this is %s",
              program_text(task->program, task->program->replicated_job), task->name);
}

#define SYMBOLS_INLINE 64

static void step_init(struct step *step, struct task *task, uint32_t entry, struct tensor *const *feeds, struct tensor **fetches) {
  memset(step, 0, offsetof(struct step, text)); /* the text is large, and seldom used */
  step->text[0] = 0;
  step->task = task;
  step->entry = entry;
  step->driver = task->program->task;
  step->feeds = feeds;
  step->fetches = fetches;
  atomic_init(&step->parts_left, program_entry(task->program, entry)->parts.count);
}

static status run_step(struct step *step, const struct program_entry *entry, int64_t *symbols) {
  struct task *task = step->task;
  uint32_t fit;
  if (!step->partial) {
    TRY(check_feeds(task, step->entry, step->feeds));
    TRY(bind_sizes(task, step->entry, step->feeds, symbols, &fit));
  }
  TRY(commit_judge(&task->commit, step));
  if (entry_is_alone(task, entry) && !step->gone && !step->partial && !step->also_count) {
    step->record = step->is_once ? step->record : NULL; /* nobody can be lost in it */
    if (atomic_load_explicit(&task->stopping, memory_order_relaxed))
      return fail(CANCELLED, "the task is stopping");
    return part_run(&task->parts[entry->parts.first], step, symbols);
  }
  pthread_mutex_lock(&task->lock);
  step->id = step_next_id(task);
  pthread_mutex_unlock(&task->lock);
  return step_drive(step, symbols);
}

static bool ranks_fit(const struct task *task, const struct program_entry *entry, struct tensor *const *feeds) {
  for (uint32_t i = 0; i < entry->feeds.count; i++) {
    const struct program_port *port = program_port(task->program, entry->feeds.first + i);
    if (port->any_rank && !port->every_rank && feeds[i] && feeds[i]->shape.rank != port->rank)
      return false;
  }
  return true;
}

/* Whether the sizes that are 1 are those that the variant was made for. */
static bool decisions_hold(const struct task *task, const struct program_entry *entry, const int64_t *symbols) {
  const uint32_t *pairs = program_operands(task->program, entry->decisions.first);
  for (uint32_t i = 0; i < entry->decisions.count; i += 2) {
    int64_t size;
    if (!size_eval(program_words(task->program, pairs[i]), symbols, &size) || (size == 1) != pairs[i + 1])
      return false;
  }
  return true;
}

/* How many of the feeds, which have the right ranks, fit a variant; -1: it was not made for them. */
static int64_t variant_fit(const struct task *task, uint32_t number, struct tensor *const *feeds) {
  const struct program_entry *entry = program_entry(task->program, number);
  uint32_t count = entry->symbols.count;
  int64_t few[SYMBOLS_INLINE], *symbols = count <= SYMBOLS_INLINE ? few : malloc(count * sizeof *symbols);
  if (!symbols)
    return -1;
  for (uint32_t i = 0; i < count; i++)
    symbols[i] = SYMBOL_UNBOUND;
  uint32_t fit;
  (void)bind_sizes(task, number, feeds, symbols, &fit);
  bool decided = decisions_hold(task, entry, symbols);
  if (symbols != few)
    free(symbols);
  return decided ? (int64_t)fit : -1;
}

static status not_compiled(const struct task *task, const struct program_entry *entry, struct tensor *const *feeds, const char *what) {
  status result = fail(UNIMPLEMENTED, "the entry is not compiled for feeds of these %s: give the placeholders shapes (", what);
  for (uint32_t i = 0; i < entry->feeds.count; i++)
    status_suffix(result, "%s%s %s", i ? ", " : "", program_text(task->program, program_port(task->program, entry->feeds.first + i)->name),
                  feeds[i] ? shape_text(&feeds[i]->shape) : "?");
  return status_suffix(result, ")");
}

/* The variant of an entry that takes feeds of these ranks and sizes; where none takes the sizes, the one that most feeds fit, which
 * says what is wrong with the next. */
static status choose_variant(const struct task *task, struct tensor *const *feeds, uint32_t *number) {
  uint32_t first = *number, variants = program_entry(task->program, first)->variants, best = PROGRAM_NONE;
  const char *what = "ranks";
  int64_t fit = -1, all = program_entry(task->program, first)->feeds.count;
  TRY(check_feeds(task, first, feeds));
  for (uint32_t v = first; v <= first + variants && fit != all; v++) {
    if (!ranks_fit(task, program_entry(task->program, v), feeds))
      continue;
    int64_t here = variant_fit(task, v, feeds);
    what = "sizes";
    if (here > fit) {
      best = v;
      fit = here;
    }
  }
  if (best == PROGRAM_NONE)
    return not_compiled(task, program_entry(task->program, first), feeds, what);
  const struct program_entry *entry = program_entry(task->program, best);
  *number = best;
  return entry->failed ? fail((status)entry->failed, "%s", program_text(task->program, entry->failed_text)) : OK;
}

/* The entry that runs, and where its partial run begins. */
static status choose_entry(const struct task *task, struct tensor *const *feeds, const struct run_request *request, uint32_t *number) {
  if (request && request->partial)
    return program_entry(task->program, *number)->partial ? OK : fail(UNIMPLEMENTED, "the entry cannot be run in parts");
  return program_entry(task->program, *number)->variants ? choose_variant(task, feeds, number) : OK;
}

status task_run(struct task *task, uint32_t number, struct tensor *const *feeds, struct tensor **fetches,
                const struct run_request *request) {
  TRY(choose_entry(task, feeds, request, &number));
  const struct program_entry *entry = program_entry(task->program, number);
  TRY(entry_check_driver(task, entry));
  int64_t few[SYMBOLS_INLINE];
  int64_t *symbols = entry->symbols.count <= SYMBOLS_INLINE ? few : malloc(entry->symbols.count * sizeof *symbols);
  if (!symbols)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < entry->symbols.count; i++)
    symbols[i] = SYMBOL_UNBOUND;
  for (uint32_t i = 0; fetches && i < entry->fetches.count; i++)
    fetches[i] = NULL;
  struct step step;
  step_init(&step, task, number, feeds, fetches);
  if (request) {
    step.gone = request->gone;
    step.partial = request->partial;
    step.stats = request->stats;
    step.reports_memory = request->reports_memory;
    step.command = request->command;
    step.serial = request->serial;
    step.is_once = request->is_once;
    step.also = request->also;
    step.also_count = request->also_count;
  }
  status result = run_step(&step, entry, symbols);
  if (result == OK)
    step_notify(&step);
  if (symbols != few)
    free(symbols);
  for (uint32_t i = 0; fetches && result != OK && i < entry->fetches.count; i++) {
    tensor_release(fetches[i]);
    fetches[i] = NULL;
  }
  return result;
}

/* ---- stopping ---- */

/* A step that has to end: its id, or 0. */
static uint64_t find_step_to_end(struct task *task, bool all) {
  pthread_mutex_lock(&task->lock);
  struct step *step = task->steps;
  while (step && (atomic_load(&step->cancelled) || !(all || (step->gone && atomic_load(step->gone)))))
    step = step->next;
  uint64_t id = step ? step->id : 0;
  pthread_mutex_unlock(&task->lock);
  return id;
}

void task_give_up(struct task *task, const char *why) {
  snprintf(task->given_up, sizeof task->given_up, "%s", why);
  atomic_store(&task->has_given_up, true);
}

void task_stopping_text(struct task *task, char *out, size_t size) {
  bool says_why = atomic_load(&task->has_given_up);
  snprintf(out, size, "%s is stopping%s%s", task->name, says_why ? ": " : "", says_why ? task->given_up : "");
}

static bool has_own_step(struct task *task) {
  pthread_mutex_lock(&task->lock);
  struct step *step = task->steps;
  while (step && (step->driver != task->program->task || step->is_background))
    step = step->next;
  pthread_mutex_unlock(&task->lock);
  return step != NULL;
}

void task_wind_up(struct task *task, uint32_t wait_ms) {
  uint64_t until_ms = monotonic_ms() + wait_ms;
  atomic_store(&task->winds_up, true);
  while (has_own_step(task) && monotonic_ms() < until_ms)
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void task_stop(struct task *task) {
  atomic_store(&task->stopping, true);
  commit_stop(&task->commit);
  char text[TASK_REASON_BYTES + 300];
  task_stopping_text(task, text, sizeof text);
  for (uint64_t id; (id = find_step_to_end(task, true));)
    step_fail_by_id(task, id, CANCELLED, text);
}

void task_close(struct task *task) {
  task_stop(task);
  crew_close(task->crew);
}

void task_poll_clients(struct task *task) {
  for (uint64_t id; (id = find_step_to_end(task, false));)
    step_fail_by_id(task, id, CANCELLED, "the client has gone");
}
