/* phase.c: files are read once; each step's batch is copied from them, or fed whole when no batch is asked for. */
#include "runtime/process/phase.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/nearest.h"
#include "base/npy.h"
#include "runtime/data/events.h"
#include "runtime/process/progress.h"
#include "runtime/text/element_text.h"

#define PRINT_ENDS 3 /* elements of each end of a dimension, when a fetch is printed */

struct phase {
  struct task *task;
  const struct phase_options *options;
  const struct program *program;
  const struct program_entry *code;
  uint32_t entry;
  struct tensor **files;   /* per feed: the whole file */
  struct tensor **feeds;   /* per feed: what the step is fed */
  struct tensor **fetches; /* per fetch: of the last step */
  struct phase_watch watch;
  uint32_t watched;            /* the fetch that says how well it goes: a loss; PROGRAM_NONE: none */
  struct npy_writer **writers; /* per fetch; NULL: printed */
  FILE *print_to;              /* standard output, unless an array goes there */
  int64_t rows;                /* the longest leading dimension */
  int64_t first;               /* the step whose values came first into the files */
  int64_t replica, replicas;   /* this task among those that share the batches */
};

/* ---- names ---- */

/* "x" is "x:0" */
static bool names_equal(const char *a, const char *b) {
  size_t m = strlen(a), n = strlen(b);
  if (m > 2 && strcmp(a + m - 2, ":0") == 0)
    m -= 2;
  if (n > 2 && strcmp(b + n - 2, ":0") == 0)
    n -= 2;
  return m == n && memcmp(a, b, n) == 0;
}

static uint32_t find_port(const struct phase *phase, struct program_range ports, const char *name) {
  for (uint32_t i = 0; i < ports.count; i++)
    if (names_equal(program_text(phase->program, program_port(phase->program, ports.first + i)->name), name))
      return i;
  for (uint32_t i = 0; i < ports.count; i++)
    if (names_equal(program_text(phase->program, program_port(phase->program, ports.first + i)->tensor), name))
      return i;
  return PROGRAM_NONE;
}

static const char *port_name(const struct phase *phase, struct program_range ports, uint32_t i) {
  return program_text(phase->program, program_port(phase->program, ports.first + i)->name);
}

static status no_such_port(const struct phase *phase, struct program_range ports, const char *what, const char *name) {
  struct nearest nearest;
  char text[1024];
  nearest_begin(&nearest, name);
  for (uint32_t i = 0; i < ports.count; i++)
    nearest_add(&nearest, port_name(phase, ports, i));
  return fail(NOT_FOUND, "the entry has no %s '%s'%s", what, name, nearest_text(&nearest, ", it has: ", text, sizeof text));
}

static status no_such_entry(const struct program *program, const char *name) {
  struct nearest nearest;
  char text[1024];
  nearest_begin(&nearest, name);
  for (uint32_t i = 0; i < program->tables[PROGRAM_ENTRIES].count; i++)
    if (!program_entry(program, i)->is_variant)
      nearest_add(&nearest, program_text(program, program_entry(program, i)->name));
  return fail(NOT_FOUND, "there is no such entry%s", nearest_text(&nearest, ", there are: ", text, sizeof text));
}

/* ---- feeds ---- */

/* numpy has one type where TensorFlow has several: the entry's is meant. */
static void adopt_dtype(struct tensor *tensor, enum dtype wanted) {
  if (tensor->dtype != wanted && dtype_size(tensor->dtype) == dtype_size(wanted) && *dtype_npy(wanted) &&
      strcmp(dtype_npy(tensor->dtype), dtype_npy(wanted)) == 0)
    tensor->dtype = wanted;
}

static bool is_batched(const struct phase *phase, uint32_t feed) {
  const struct tensor *file = phase->files[feed];
  return phase->options->batch > 0 && file->shape.rank > 0 && file->shape.dims[0] == phase->rows && phase->rows > 0;
}

/* What a step is fed: the file, or a tensor for its batches. */
static status prepare_feed(struct phase *phase, uint32_t feed) {
  struct tensor *file = phase->files[feed];
  if (!is_batched(phase, feed)) {
    phase->feeds[feed] = tensor_retain(file);
  } else {
    struct shape shape = file->shape;
    shape.dims[0] = phase->options->batch;
    if (shape_count(&shape) < 0 || phase->options->batch > LIMIT_ELEMENTS)
      return fail(INVALID_ARGUMENT, "--batch %" PRId64 " is too large", phase->options->batch);
    TRY(tensor_create(file->dtype, &shape, &phase->feeds[feed]));
  }
  return task_check_feed(phase->task, phase->entry, feed, phase->feeds[feed]);
}

/* "zeros(2,784)": no file, for a first try; the entry says the type. False for any other text. */
static bool sample_parse(const char *text, struct shape *shape) {
  if (strncmp(text, "zeros(", 6) != 0)
    return false;
  *shape = (struct shape){0};
  for (text += 6; *text != ')'; text += *text == ',') {
    char *end;
    long long size = strtoll(text, &end, 10);
    if (end == text || size < 0 || shape->rank == LIMIT_RANK || (*end != ',' && *end != ')'))
      return false;
    shape->dims[shape->rank++] = size;
    text = end;
  }
  return !text[1];
}

static status read_feed(struct phase *phase, uint32_t feed, const char *path) {
  struct shape shape;
  enum dtype dtype = (enum dtype)program_port(phase->program, phase->code->feeds.first + feed)->dtype;
  if (!sample_parse(path, &shape))
    return npy_read(path, &phase->files[feed]);
  if (shape_count(&shape) < 0)
    return fail(INVALID_ARGUMENT, "%s: no tensor can have this shape", path);
  TRY(tensor_create(dtype, &shape, &phase->files[feed]));
  if (phase->files[feed]->count)
    memset(phase->files[feed]->data, 0, (size_t)tensor_byte_size(phase->files[feed]));
  return OK;
}

static status read_feeds(struct phase *phase) {
  const struct phase_options *options = phase->options;
  for (uint32_t i = 0; i < options->feed_count; i++) {
    uint32_t feed = find_port(phase, phase->code->feeds, options->feeds[i].name);
    if (feed == PROGRAM_NONE)
      return no_such_port(phase, phase->code->feeds, "feed", options->feeds[i].name);
    if (phase->files[feed])
      return fail(INVALID_ARGUMENT, "feed '%s' is given twice", options->feeds[i].name);
    status result = read_feed(phase, feed, options->feeds[i].path);
    if (result != OK)
      return status_prefix(result, "feed '%s': ", options->feeds[i].name);
    adopt_dtype(phase->files[feed], (enum dtype)program_port(phase->program, phase->code->feeds.first + feed)->dtype);
    const struct shape *shape = &phase->files[feed]->shape;
    if (shape->rank > 0 && shape->dims[0] > phase->rows)
      phase->rows = shape->dims[0];
  }
  for (uint32_t i = 0; i < phase->code->feeds.count; i++) {
    if (!phase->files[i])
      return fail(INVALID_ARGUMENT, "feed '%s' is missing", port_name(phase, phase->code->feeds, i));
    TRY(prepare_feed(phase, i));
  }
  return OK;
}

/* What may be behind a step that refuses its feeds: a file that is fed whole beside batches of others. */
static status explain_batch(const struct phase *phase, status result) {
  for (uint32_t i = 0; i < phase->code->feeds.count && result == INVALID_ARGUMENT && phase->options->batch > 0; i++) {
    const struct shape *shape = &phase->files[i]->shape;
    if (shape->rank > 0 && shape->dims[0] > 1 && !is_batched(phase, i))
      return status_suffix(
        result, "; --batch takes rows of the longest files only: feed '%s' has %" PRId64 " rows, not %" PRId64 ", and is fed whole",
        port_name(phase, phase->code->feeds, i), shape->dims[0], phase->rows);
  }
  return result;
}

/* The rows that a step is fed: count rows from `first` on, round and round over `total` of them. Copies them to `to`. */
static void batch_copy(const char *rows, int64_t row_bytes, int64_t total, int64_t first, int64_t count, char *to) {
  int64_t at = first % total;
  while (count > 0) {
    int64_t run = total - at < count ? total - at : count;
    memcpy(to, rows + at * row_bytes, (size_t)(run * row_bytes));
    to += run * row_bytes;
    count -= run;
    at = 0;
  }
}

/* A batch tensor that somebody still holds (a send under way) is left to him. */
static status fill_batch(struct phase *phase, uint32_t feed, int64_t step) {
  struct tensor *file = phase->files[feed];
  if (atomic_load_explicit(&phase->feeds[feed]->references, memory_order_acquire) > 1) {
    struct shape shape = phase->feeds[feed]->shape;
    tensor_release(phase->feeds[feed]);
    phase->feeds[feed] = NULL;
    TRY(tensor_create(file->dtype, &shape, &phase->feeds[feed]));
  }
  int64_t row_bytes = tensor_byte_size(file) / phase->rows;
  int64_t batch = step * phase->replicas + phase->replica;
  int64_t first = (int64_t)((__int128)batch * phase->options->batch % phase->rows);
  if (row_bytes > 0)
    batch_copy(file->data, row_bytes, phase->rows, first, phase->options->batch, phase->feeds[feed]->data);
  return OK;
}

/* ---- fetches ---- */

static status open_writers(struct phase *phase) {
  for (uint32_t i = 0; i < phase->options->fetch_count; i++) {
    const struct named_file *file = &phase->options->fetches[i];
    uint32_t fetch = find_port(phase, phase->code->fetches, file->name);
    if (fetch == PROGRAM_NONE)
      return no_such_port(phase, phase->code->fetches, "fetch", file->name);
    if (phase->writers[fetch])
      return fail(INVALID_ARGUMENT, "fetch '%s' is given twice", file->name);
    TRY(npy_writer_create(file->path, &phase->writers[fetch]));
    if (strcmp(file->path, "-") == 0 || strcmp(file->path, "/dev/stdout") == 0)
      phase->print_to = stderr; /* what reads the array there does not want our words */
  }
  return OK;
}

static bool is_printed(const struct phase *phase, int64_t step) {
  int64_t every = phase->watch.log_every;
  return step + 1 == phase->options->steps || (every > 0 && (step + 1) % every == 0);
}

/* Where not every step is printed the line says of which it is. */
static void print_fetch(const struct phase *phase, uint32_t fetch, int64_t step) {
  if (phase->watch.log_every > 1)
    fprintf(phase->print_to, "step %" PRId64 ": ", step + 1);
  fprintf(phase->print_to, "%s = ", port_name(phase, phase->code->fetches, fetch));
  tensor_print(phase->print_to, phase->fetches[fetch], PRINT_ENDS);
  putc('\n', phase->print_to);
}

static status store_fetches(struct phase *phase, int64_t step) {
  for (uint32_t i = 0; i < phase->code->fetches.count; i++) {
    status result = OK;
    if (phase->writers[i])
      result = npy_writer_add(phase->writers[i], phase->fetches[i]);
    else if (is_printed(phase, step))
      print_fetch(phase, i, step);
    tensor_release(phase->fetches[i]);
    phase->fetches[i] = NULL;
    if (result != OK)
      return status_prefix(result, "fetch '%s': ", port_name(phase, phase->code->fetches, i));
  }
  return OK;
}

/* Called "loss" or nearly so, else the first number. */
static uint32_t find_watched(const struct phase *phase) {
  uint32_t found = PROGRAM_NONE;
  for (uint32_t i = 0; i < phase->code->fetches.count; i++) {
    const struct program_port *port = program_port(phase->program, phase->code->fetches.first + i);
    if (port->rank != 0 || port->any_rank || (port->dtype != DTYPE_FLOAT && port->dtype != DTYPE_DOUBLE))
      continue;
    if (strcasestr(program_text(phase->program, port->name), "loss"))
      return i;
    found = found == PROGRAM_NONE ? i : found;
  }
  return found;
}

static void say_progress(const struct phase *phase, int64_t step) {
  const struct tensor *value = phase->watched == PROGRAM_NONE ? NULL : phase->fetches[phase->watched];
  if (value && value->count != 1)
    value = NULL; /* this variant of the entry gives no number */
  const char *name = value ? port_name(phase, phase->code->fetches, phase->watched) : NULL;
  double number = !value ? 0 : value->dtype == DTYPE_DOUBLE ? *(const double *)value->data : (double)*(const float *)value->data;
  if (phase->watch.progress)
    progress_step(phase->watch.progress, step + 1, phase->options->steps, name, number);
}

/* The number of the step in the event file: what the graph says, else how many there have been. */
static int64_t event_step(const struct phase *phase, int64_t step) {
  uint32_t fetch = find_port(phase, phase->code->fetches, "global_step");
  const struct tensor *value = fetch == PROGRAM_NONE ? NULL : phase->fetches[fetch];
  if (value && value->count == 1 && value->dtype == DTYPE_INT64)
    return *(const int64_t *)value->data;
  return value && value->count == 1 && value->dtype == DTYPE_INT32 ? *(const int32_t *)value->data : step;
}

static status log_fetches(struct phase *phase, int64_t step) {
  if (!phase->watch.events)
    return OK;
  events_begin(phase->watch.events, event_step(phase, step));
  for (uint32_t i = 0; i < phase->code->fetches.count; i++)
    events_add(phase->watch.events, port_name(phase, phase->code->fetches, i), phase->fetches[i]);
  return events_end(phase->watch.events);
}

static status close_writers(struct phase *phase) {
  for (uint32_t i = 0; i < phase->code->fetches.count; i++) {
    struct npy_writer *writer = phase->writers[i];
    phase->writers[i] = NULL;
    if (writer)
      TRY(npy_writer_close(writer, phase->options->steps > 1));
  }
  return OK;
}

/* ---- the phase ---- */

/* In a replicated job the batches are dealt out. */
static void count_replicas(struct phase *phase) {
  phase->replicas = 1;
  const char *job = program_text(phase->program, phase->program->replicated_job);
  const struct program_task *self = program_task(phase->program, phase->program->task);
  if (!*job || strcmp(job, program_text(phase->program, self->job)) != 0)
    return;
  phase->replicas = 0;
  for (uint32_t i = 0; i < phase->program->tables[PROGRAM_TASKS].count; i++) {
    const struct program_task *task = program_task(phase->program, i);
    if (strcmp(job, program_text(phase->program, task->job)) != 0)
      continue;
    if (i == phase->program->task)
      phase->replica = phase->replicas;
    phase->replicas++;
  }
}

static status phase_prepare(struct phase *phase) {
  uint32_t feeds = phase->code->feeds.count, fetches = phase->code->fetches.count;
  phase->files = calloc((size_t)feeds + 1, sizeof *phase->files);
  phase->feeds = calloc((size_t)feeds + 1, sizeof *phase->feeds);
  phase->fetches = calloc((size_t)fetches + 1, sizeof *phase->fetches);
  phase->writers = calloc((size_t)fetches + 1, sizeof *phase->writers);
  if (!phase->files || !phase->feeds || !phase->fetches || !phase->writers)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  count_replicas(phase);
  phase->watched = find_watched(phase);
  TRY(read_feeds(phase));
  return open_writers(phase);
}

/* That a feed of the command line is one of the entry's, and its file is there. */
static status check_feed(const struct phase *phase, const struct named_file *file, bool is_there) {
  struct shape shape;
  if (find_port(phase, phase->code->feeds, file->name) == PROGRAM_NONE)
    return no_such_port(phase, phase->code->feeds, "feed", file->name);
  if (is_there && !sample_parse(file->path, &shape) && access(file->path, R_OK) != 0)
    return fail(NOT_FOUND, "feed '%s': '%s': %s", file->name, file->path, strerror(errno));
  return OK;
}

static bool is_fed(const struct phase *phase, uint32_t feed) {
  for (uint32_t i = 0; i < phase->options->feed_count; i++)
    if (find_port(phase, phase->code->feeds, phase->options->feeds[i].name) == feed)
      return true;
  return false;
}

status phase_check(const struct task *task, const struct phase_options *options, bool is_first) {
  uint32_t entry = task_find_entry(task, options->entry);
  if (entry == PROGRAM_NONE)
    return no_such_entry(task_program(task), options->entry);
  const struct phase phase = {.options = options, .program = task_program(task), .code = program_entry(task_program(task), entry)};
  for (uint32_t i = 0; i < options->feed_count; i++)
    TRY(check_feed(&phase, &options->feeds[i], is_first));
  for (uint32_t i = 0; i < phase.code->feeds.count; i++)
    if (!is_fed(&phase, i))
      TRY(task_check_feed(task, entry, i, NULL));
  for (uint32_t i = 0; i < options->fetch_count; i++)
    if (find_port(&phase, phase.code->fetches, options->fetches[i].name) == PROGRAM_NONE)
      return no_such_port(&phase, phase.code->fetches, "fetch", options->fetches[i].name);
  return OK;
}

status phase_create(struct task *task, const struct phase_options *options, const struct phase_watch *watch, struct phase **out) {
  uint32_t entry = task_find_entry(task, options->entry);
  if (entry == PROGRAM_NONE)
    return no_such_entry(task_program(task), options->entry);
  struct phase *phase = calloc(1, sizeof *phase);
  if (!phase)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  phase->task = task;
  phase->print_to = stdout;
  phase->options = options;
  phase->watch = *watch;
  phase->entry = entry;
  phase->program = task_program(task);
  phase->code = program_entry(phase->program, entry);
  status result = phase_prepare(phase);
  if (result == OK)
    *out = phase;
  else
    phase_destroy(phase);
  return result;
}

/* The files hold the last doing of each step that was done here. */
static status rewind_writers(struct phase *phase, int64_t step) {
  if (step < phase->first)
    phase->first = step;
  for (uint32_t i = 0; i < phase->code->fetches.count; i++)
    if (phase->writers[i])
      TRY(npy_writer_rewind(phase->writers[i], step - phase->first));
  return OK;
}

void phase_begin(struct phase *phase, int64_t step) { phase->first = step; }

status phase_go_to(struct phase *phase, int64_t step) { return rewind_writers(phase, step); }

static status run_step(struct phase *phase, int64_t step, const struct run_request *request) {
  for (uint32_t i = 0; i < phase->code->feeds.count; i++)
    if (is_batched(phase, i))
      TRY(fill_batch(phase, i, step));
  return explain_batch(phase, task_run(phase->task, phase->entry, phase->feeds, phase->fetches, request));
}

status phase_repeat(struct phase *phase, int64_t step, const struct run_request *request) {
  TRY(run_step(phase, step, request));
  for (uint32_t i = 0; i < phase->code->fetches.count; i++) {
    tensor_release(phase->fetches[i]);
    phase->fetches[i] = NULL;
  }
  return OK;
}

status phase_step(struct phase *phase, int64_t step, const struct run_request *request) {
  TRY(run_step(phase, step, request));
  TRY(log_fetches(phase, step));
  say_progress(phase, step);
  return store_fetches(phase, step);
}

status phase_end(struct phase *phase) { return close_writers(phase); }

uint32_t phase_entry(const struct phase *phase) { return phase->entry; }

void phase_destroy(struct phase *phase) {
  if (!phase)
    return;
  for (uint32_t i = 0; i < phase->code->feeds.count; i++) {
    tensor_release(phase->files ? phase->files[i] : NULL);
    tensor_release(phase->feeds ? phase->feeds[i] : NULL);
  }
  for (uint32_t i = 0; i < phase->code->fetches.count; i++) {
    tensor_release(phase->fetches ? phase->fetches[i] : NULL);
    npy_writer_destroy(phase->writers ? phase->writers[i] : NULL);
  }
  free(phase->files);
  free(phase->feeds);
  free(phase->fetches);
  free(phase->writers);
  free(phase);
}
