/* host_reader.c: readers: records out of the files that a queue names, one after the other, shared by steps.
 *
 * A read that needs the next name takes it from the queue by a call within the call, which may wait. Reads stand in a line; the first
 * one is served. The reader's lock is held while its queue is asked and while files are read. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/wire.h"
#include "runtime/data/record_file.h"
#include "runtime/resource/queue.h"
#include "runtime/text/string_output.h"

enum reader_kind { READER_IDENTITY, READER_WHOLE, READER_LINES, READER_RECORDS, READER_FIXED };

struct read {
  struct read *next;
  struct reader *reader;
  struct host_call *call;
  struct queue *queue;
  int64_t wanted;           /* records; -1: one, as a scalar */
  struct wire_buffer bytes; /* keys and values, one behind the other */
  VEC(uint64_t) ends;       /* of each of them */
  struct host_call ask;     /* of the queue */
  struct tensor *name;      /* its output */
};
struct reader {
  struct resource resource;
  pthread_mutex_t lock;
  enum reader_kind kind;
  int64_t skip, header, record, footer, hop;
  char encoding[8];
  char *work; /* the name; its bytes may hold zeros */
  size_t work_size;
  int64_t started, finished, produced;
  struct record_file file;
  int64_t number;           /* LINES: of the last line; FIXED: of the next record */
  struct wire_buffer ahead; /* FIXED: a record and what may be the footer */
  struct read *first, **last;
};

/* ---- making ---- */

static status reader_init(struct resource *resource, void *argument) {
  struct reader *r = (struct reader *)resource, *wanted = argument;
  r->kind = wanted->kind;
  r->skip = wanted->skip;
  r->header = wanted->header;
  r->record = wanted->record;
  r->footer = wanted->footer;
  r->hop = wanted->hop;
  memcpy(r->encoding, wanted->encoding, sizeof r->encoding);
  r->last = &r->first;
  pthread_mutex_init(&r->lock, NULL);
  return OK;
}

static void reader_destroy(struct resource *resource) {
  struct reader *r = (struct reader *)resource;
  record_file_free(&r->file);
  wire_buffer_free(&r->ahead);
  free(r->work);
  pthread_mutex_destroy(&r->lock);
}

static const struct resource_maker reader_maker = {"reader", sizeof(struct reader), reader_init, reader_destroy};

static status make_reader(struct host_call *call, enum reader_kind kind) {
  struct reader wanted = {
    .kind = kind,
    .skip = host_attr_int(call, "skip_header_lines", 0),
    .header = host_attr_int(call, "header_bytes", 0),
    .record = host_attr_int(call, "record_bytes", 0),
    .footer = host_attr_int(call, "footer_bytes", 0),
    .hop = host_attr_int(call, "hop_bytes", 0),
  };
  struct string_view encoding = host_attr_string(call, kind == READER_FIXED ? "encoding" : "compression_type", "");
  wanted.hop = wanted.hop ? wanted.hop : wanted.record;
  if (record_file_knows(encoding)) /* another word means none, as in TensorFlow */
    snprintf(wanted.encoding, sizeof wanted.encoding, "%.*s", (int)encoding.size, encoding.data);
  return host_give_resource(call, &reader_maker, &wanted);
}

status host_identity_reader(struct host_call *call) { return make_reader(call, READER_IDENTITY); }
status host_whole_reader(struct host_call *call) { return make_reader(call, READER_WHOLE); }
status host_line_reader(struct host_call *call) { return make_reader(call, READER_LINES); }
status host_record_reader(struct host_call *call) { return make_reader(call, READER_RECORDS); }
status host_fixed_reader(struct host_call *call) { return make_reader(call, READER_FIXED); }

static status find_reader(const struct host_call *call, struct reader **out) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, "reader", &resource));
  *out = (struct reader *)resource;
  return OK;
}

/* ---- files ---- */

static status start_work(struct reader *r, struct string_view name) {
  char *copy = malloc(name.size + 1);
  if (!copy)
    return fail(RESOURCE_EXHAUSTED, "no memory for a file's name");
  memcpy(copy, name.data, name.size);
  free(r->work);
  r->work = copy;
  r->work_size = name.size;
  r->number = 0;
  r->ahead.size = 0;
  if (r->kind >= READER_LINES)
    TRY(record_file_open(&r->file, name, (struct string_view){r->encoding, strlen(r->encoding)}));
  bool end = false;
  struct string_view skipped;
  for (; r->kind == READER_LINES && r->number < r->skip && !end; r->number++)
    TRY(record_file_line(&r->file, &skipped, &end));
  if (r->kind == READER_FIXED) {
    TRY(record_file_bytes(&r->file, (size_t)r->header, &skipped));
    if ((int64_t)skipped.size < r->header)
      return fail(OUT_OF_RANGE, "reached end of file");
  }
  r->started++;
  return OK;
}

static void add_part(struct read *read, const void *data, size_t size) {
  wire_put_raw(&read->bytes, data, size);
  vec_push(&read->ends, read->bytes.size);
}

/* "name:number" */
static void add_key(struct read *read, int64_t number) {
  const struct reader *r = read->reader;
  char text[32];
  int size = snprintf(text, sizeof text, ":%lld", (long long)number);
  wire_put_raw(&read->bytes, r->work, r->work_size);
  add_part(read, text, (size_t)size);
}

static void drop_ahead(struct reader *r, size_t count) {
  memmove(r->ahead.data, r->ahead.data + count, r->ahead.size - count);
  r->ahead.size -= count;
}

/* From record to record it hops; what is behind the last record, the footer, is seen before that is given. */
static status read_fixed(struct read *read, bool *end) {
  struct reader *r = read->reader;
  struct string_view bytes;
  if (r->number > 0) {
    size_t kept = (size_t)r->hop < r->ahead.size ? (size_t)r->hop : r->ahead.size, rest = (size_t)r->hop - kept;
    drop_ahead(r, kept);
    TRY(record_file_bytes(&r->file, rest, &bytes));
    *end = bytes.size < rest;
    if (*end)
      return OK;
  }
  size_t missing = (size_t)r->record + (size_t)r->footer - r->ahead.size;
  TRY(record_file_bytes(&r->file, missing, &bytes));
  *end = bytes.size < missing;
  if (*end)
    return OK;
  wire_put_raw(&r->ahead, bytes.data, bytes.size);
  add_key(read, r->number++);
  add_part(read, r->ahead.data, (size_t)r->record);
  return r->ahead.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for a record") : OK;
}

static status read_whole(struct read *read) {
  char path[HOST_PATH_MAX], *data;
  size_t size;
  struct reader *r = read->reader;
  TRY(host_path((struct string_view){r->work, r->work_size}, path, sizeof path));
  TRY(host_read_file(path, &data, &size));
  add_part(read, r->work, r->work_size);
  add_part(read, data, size);
  free(data);
  return OK;
}

/* One record, or *end: there was none; both for a file that is one record. */
static status read_one(struct read *read, bool *end) {
  struct reader *r = read->reader;
  struct string_view value;
  int64_t offset = r->file.offset;
  *end = false;
  switch (r->kind) {
  case READER_IDENTITY:
    add_part(read, r->work, r->work_size);
    add_part(read, r->work, r->work_size);
    *end = true;
    return OK;
  case READER_WHOLE: *end = true; return read_whole(read);
  case READER_FIXED: return read_fixed(read, end);
  case READER_LINES:
    TRY(record_file_line(&r->file, &value, end));
    r->number++;
    offset = r->number;
    break;
  case READER_RECORDS: TRY(record_file_record(&r->file, &value, end)); break;
  }
  if (!*end) {
    add_key(read, offset);
    add_part(read, value.data, value.size);
  }
  return OK;
}

/* ---- one read ---- */

static void read_free(struct read *read) {
  wire_buffer_free(&read->bytes);
  vec_free(&read->ends);
  free(read);
}

static status give_outputs(struct read *read) {
  int64_t count = read->ends.count / 2;
  struct shape shape = {.rank = read->wanted < 0 ? 0 : 1, .dims = {count}};
  for (uint32_t part = 0; part < 2; part++) {
    struct string_output out;
    TRY(string_output_begin(&out, &shape, &read->call->outputs[part]));
    for (int64_t i = 0; i < count; i++) {
      uint64_t at = 2 * (uint64_t)i + part, from = at ? read->ends.items[at - 1] : 0;
      string_output_put(&out, read->bytes.data + from, read->ends.items[at] - from);
    }
    TRY(string_output_end(&out));
  }
  return read->bytes.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for records") : OK;
}

static status check_queue(const struct queue *queue) {
  const struct queue_spec *spec = queue_get_spec(queue);
  if (spec->component_count != 1)
    return fail(INVALID_ARGUMENT, "Expected single component queue");
  return spec->components[0].dtype == DTYPE_STRING ? OK : fail(INVALID_ARGUMENT, "Expected queue with single string component");
}

static void on_name(struct host_call *ask);

/* Asks the queue for a name. *waits: on_name goes on with it. */
static status ask_queue(struct read *read, bool *waits) {
  read->ask = (struct host_call){.task = read->call->task,
                                 .program = read->call->program,
                                 .instr = read->call->instr,
                                 .outputs = &read->name,
                                 .output_count = 1,
                                 .driver = read->call->driver,
                                 .finished = on_name};
  read->name = NULL;
  TRY(check_queue(read->queue));
  TRY(queue_dequeue(read->queue, &read->ask));
  *waits = read->ask.pending;
  return OK;
}

static status take_name(struct read *read) {
  struct tensor *name = read->name;
  status result = name->count == 1 ? start_work(read->reader, host_scalar_string(name))
                                   : fail(INVALID_ARGUMENT, "Expected to dequeue a one-element string tensor");
  tensor_release(name);
  read->name = NULL;
  return result;
}

/* Reads until it has what it wants; what is read up to a number ends with its file, too. */
static status proceed(struct read *read, bool *waits) {
  struct reader *r = read->reader;
  int64_t wanted = read->wanted < 0 ? 1 : read->wanted;
  while (read->ends.count / 2 < wanted) {
    if (r->started <= r->finished) {
      if (!read->name)
        TRY(ask_queue(read, waits));
      if (*waits)
        return OK;
      TRY(take_name(read));
    }
    uint32_t before = read->ends.count;
    bool end;
    TRY(read_one(read, &end));
    r->produced += read->ends.count > before;
    if (!end)
      continue;
    record_file_close(&r->file);
    r->finished = r->started;
    if (read->ends.count)
      break;
  }
  return give_outputs(read);
}

/* Serves the line until one waits, or nobody is left. The result is that of `own`, when it is over; the others are told. */
static status serve(struct reader *r, struct host_call *own, bool *own_is_over) {
  status own_result = OK;
  char own_text[512] = "";
  while (r->first) {
    struct read *read = r->first;
    bool waits = false;
    status result = proceed(read, &waits);
    if (result == OK && waits)
      break;
    r->first = read->next;
    if (!r->first)
      r->last = &r->first;
    if (read->call == own) {
      *own_is_over = true;
      own_result = result;
      snprintf(own_text, sizeof own_text, "%s", result == OK ? "" : status_text());
    } else {
      host_finish(read->call, result, result == OK ? "" : status_text());
    }
    read_free(read);
  }
  return own_result == OK ? OK : fail(own_result, "%s", own_text);
}

/* The queue has a name for the first read, or is closed. */
static void on_name(struct host_call *ask) {
  struct read *read = (struct read *)((char *)ask - offsetof(struct read, ask));
  struct reader *r = read->reader;
  bool is_over;
  pthread_mutex_lock(&r->lock);
  if (ask->code != OK) {
    r->first = read->next;
    if (!r->first)
      r->last = &r->first;
    host_finish(read->call, ask->code, ask->text);
    read_free(read);
  }
  (void)serve(r, NULL, &is_over);
  pthread_mutex_unlock(&r->lock);
}

/* The call knows the reader, not its read: another thread may be ending that, and freeing it. */
static bool withdraw_read(struct host_call *call) {
  struct reader *r = call->wait;
  bool is_over;
  pthread_mutex_lock(&r->lock);
  struct read **at = &r->first;
  while (*at && (*at)->call != call)
    at = &(*at)->next;
  struct read *read = *at;
  bool removed = read && (read != r->first || read->ask.withdraw(&read->ask));
  if (removed) {
    *at = read->next;
    if (r->last == &read->next)
      r->last = at;
    read_free(read);
    (void)serve(r, NULL, &is_over);
  }
  pthread_mutex_unlock(&r->lock);
  return removed;
}

static status start_read(struct host_call *call, int64_t wanted) {
  struct reader *r;
  struct resource *queue;
  TRY(find_reader(call, &r));
  TRY(host_find_resource(call, 1, "queue", &queue));
  struct read *read = calloc(1, sizeof *read);
  if (!read)
    return fail(RESOURCE_EXHAUSTED, "no memory to read");
  *read = (struct read){.reader = r, .call = call, .queue = (struct queue *)queue, .wanted = wanted};
  call->wait = r;
  call->withdraw = withdraw_read;
  call->pending = true;
  bool is_first, is_over = false;
  pthread_mutex_lock(&r->lock);
  is_first = r->first == NULL;
  *r->last = read;
  r->last = &read->next;
  status result = is_first ? serve(r, call, &is_over) : OK;
  if (is_over)
    call->pending = false;
  pthread_mutex_unlock(&r->lock);
  return result;
}

status host_reader_read(struct host_call *call) { return start_read(call, -1); }

status host_reader_read_up_to(struct host_call *call) {
  int64_t wanted = host_scalar_int(&call->inputs[2]);
  return wanted >= 0 ? start_read(call, wanted) : fail(INVALID_ARGUMENT, "num_records must be at least 0, not %lld", (long long)wanted);
}

/* ---- questions, and the state as bytes (reader_base.proto) ---- */

static status give_count(struct host_call *call, size_t field) {
  struct reader *r;
  TRY(find_reader(call, &r));
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){0}));
  pthread_mutex_lock(&r->lock);
  *(int64_t *)call->outputs[0]->data = *(const int64_t *)((const char *)r + field);
  pthread_mutex_unlock(&r->lock);
  return OK;
}
status host_reader_produced(struct host_call *call) { return give_count(call, offsetof(struct reader, produced)); }
status host_reader_finished(struct host_call *call) { return give_count(call, offsetof(struct reader, finished)); }

static void put_count(struct wire_buffer *out, uint32_t number, int64_t count) {
  if (count)
    wire_put_varint(out, number, (uint64_t)count);
}

status host_reader_state(struct host_call *call) {
  struct reader *r;
  struct wire_buffer state = {0};
  TRY(find_reader(call, &r));
  if (r->kind > READER_WHOLE)
    return fail(UNIMPLEMENTED, "Reader SerializeState");
  pthread_mutex_lock(&r->lock);
  put_count(&state, 1, r->started);
  put_count(&state, 2, r->finished);
  put_count(&state, 3, r->produced);
  if (r->work_size)
    wire_put_bytes(&state, 4, r->work, r->work_size);
  pthread_mutex_unlock(&r->lock);
  status result = state.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for a reader's state")
                               : tensor_copy_in(DTYPE_STRING, &(struct shape){0},
                                                &(struct string_view){(const char *)state.data, state.size}, &call->outputs[0]);
  wire_buffer_free(&state);
  return result;
}

/* To the beginning; closes the file. */
static void reset(struct reader *r) {
  record_file_close(&r->file);
  free(r->work);
  r->work = NULL;
  r->work_size = 0;
  r->started = r->finished = r->produced = r->number = 0;
  r->ahead.size = 0;
}

status host_reader_reset(struct host_call *call) {
  struct reader *r;
  TRY(find_reader(call, &r));
  pthread_mutex_lock(&r->lock);
  reset(r);
  pthread_mutex_unlock(&r->lock);
  return OK;
}

static status read_state(struct string_view bytes, int64_t counts[3], struct string_view *work) {
  struct wire wire = wire_over((const uint8_t *)bytes.data, bytes.size);
  struct wire_field field;
  while (wire_next(&wire, &field)) {
    if (field.number >= 1 && field.number <= 3 && field.type == WIRE_VARINT)
      counts[field.number - 1] = (int64_t)field.value;
    if (field.number == 4 && field.type == WIRE_BYTES)
      *work = (struct string_view){(const char *)field.data, field.size};
    wire.is_bad = wire.is_bad || field.number == 0;
  }
  if (wire.is_bad)
    return fail(INVALID_ARGUMENT, "Could not parse state");
  if (counts[0] < 0 || counts[1] < 0 || counts[2] < 0)
    return fail(INVALID_ARGUMENT, "Unexpected negative value when restoring a reader");
  return counts[0] <= counts[1] ? OK : fail(INVALID_ARGUMENT, "Inconsistent work started vs. finished when restoring a reader");
}

status host_reader_restore(struct host_call *call) {
  struct reader *r;
  int64_t counts[3] = {0};
  struct string_view work = {0};
  TRY(find_reader(call, &r));
  if (call->inputs[1].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Reader state must be scalar, but had shape: %s", shape_text(&call->inputs[1].shape));
  if (r->kind > READER_WHOLE)
    return fail(UNIMPLEMENTED, "Reader RestoreState");
  TRY(read_state(host_scalar_string(&call->inputs[1]), counts, &work));
  char *copy = malloc(work.size + 1);
  if (!copy)
    return fail(RESOURCE_EXHAUSTED, "no memory for a reader's state");
  if (work.size)
    memcpy(copy, work.data, work.size);
  pthread_mutex_lock(&r->lock);
  reset(r);
  r->work = copy;
  r->work_size = work.size;
  r->started = counts[0];
  r->finished = counts[1];
  r->produced = counts[2];
  pthread_mutex_unlock(&r->lock);
  return OK;
}
