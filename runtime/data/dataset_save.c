/* dataset_save.c: elements as files under a path, all at once or while they are given, as TensorFlow loads them:
 *   PATH/snapshot.metadata                        a SnapshotMetadataRecord: the run, the types, how many elements, that all are there
 *   PATH/RUN/SHARD.shard/00000000.snapshot        TFRecords, a TensorProto for each component, element by element */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/folders.h"
#include "base/vec.h"
#include "runtime/data/dataset.h"
#include "runtime/data/inflate.h"
#include "runtime/data/record_file.h"
#include "runtime/value/tensor_proto.h"

#define FILE_FORMAT 2 /* TFRecords */

struct shard {
  int64_t number;
  FILE *file;
};
struct save {
  const struct host_call *words; /* attributes, and the node's name */
  const struct dataset *dataset;
  struct tensor *captured[DATASET_COMPONENTS_MAX]; /* by the function that says where an element goes */
  uint32_t captures;
  struct string_view compression;
  char path[HOST_PATH_MAX], run[32];
  VEC(struct shard) shards;
  VEC(enum dtype) dtypes;
  int64_t count;
};

/* ---- metadata ---- */

static void put_metadata(const struct save *s, bool is_complete, struct wire_buffer *out) {
  struct wire_buffer dtypes = {0};
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  wire_put_text(out, 2, s->run);
  wire_put_varint(out, 3, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
  wire_put_varint(out, 4, FILE_FORMAT);
  for (uint32_t i = 0; i < s->dtypes.count; i++)
    wire_put_number(&dtypes, (uint64_t)s->dtypes.items[i]);
  wire_put_message(out, 5, &dtypes);
  wire_put_varint(out, 6, (uint64_t)s->count);
  wire_put_varint(out, 1000, is_complete);
}

/* The file is there as a whole, or not. */
static status write_metadata(const struct save *s, bool is_complete) {
  char path[HOST_PATH_MAX + 128], whole[HOST_PATH_MAX + 64];
  struct wire_buffer bytes = {0};
  snprintf(whole, sizeof whole, "%s/snapshot.metadata", s->path);
  snprintf(path, sizeof path, "%s.%s", whole, s->run);
  folders_make_above(path);
  put_metadata(s, is_complete, &bytes);
  FILE *file = bytes.is_bad ? NULL : fopen(path, "wbe");
  status result = bytes.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for metadata") : file ? OK : host_file_error(path);
  if (file && fwrite(bytes.data, 1, bytes.size, file) != bytes.size)
    result = host_file_error(path);
  if (file && fclose(file) != 0 && result == OK)
    result = host_file_error(path);
  wire_buffer_free(&bytes);
  if (result == OK && rename(path, whole) != 0)
    result = host_file_error(whole);
  return result;
}

/* ---- elements ---- */

static status open_shard(struct save *s, int64_t number, FILE **out) {
  char path[HOST_PATH_MAX + 96];
  for (uint32_t i = 0; i < s->shards.count; i++)
    if (s->shards.items[i].number == number) {
      *out = s->shards.items[i].file;
      return OK;
    }
  snprintf(path, sizeof path, "%s/%s/%08llu.shard/00000000.snapshot", s->path, s->run, (unsigned long long)number);
  folders_make_above(path);
  FILE *file = fopen(path, "wbe");
  if (!file)
    return host_file_error(path);
  *out = s->compression.size ? deflated_file(file, s->compression.data[0] == 'G') : file;
  if (!*out) {
    fclose(file);
    return fail(RESOURCE_EXHAUSTED, "no memory to compress");
  }
  vec_push(&s->shards, ((struct shard){number, *out}));
  return OK;
}

static status close_shards(struct save *s) {
  status result = OK;
  for (uint32_t i = 0; i < s->shards.count; i++)
    if (fclose(s->shards.items[i].file) != 0)
      result = host_file_error(s->path);
  vec_free(&s->shards);
  return result;
}

/* Which shard the function says; without one all go to one. */
static status find_shard(struct save *s, const struct dataset_run *run, struct tensor *const *element, int64_t *out) {
  struct tensor *in[2 * DATASET_COMPONENTS_MAX], *made;
  uint32_t count = s->dataset->component_count;
  char name[1024];
  *out = 0;
  if (!host_attr_int(s->words, "use_shard_func", 1))
    return OK;
  memcpy(in, element, count * sizeof *in);
  memcpy(in + count, s->captured, s->captures * sizeof *in);
  snprintf(name, sizeof name, "%s:shard_func", host_node_name(s->words));
  TRY(dataset_call_named(name, run, in, count + s->captures, &made, 1));
  bool good = made->dtype == DTYPE_INT64 && made->count == 1;
  *out = good ? *(const int64_t *)made->data : 0;
  tensor_release(made);
  return good ? OK : fail(INVALID_ARGUMENT, "`shard_func` must return a scalar int64.");
}

static status write_element(struct save *s, const struct dataset_run *run, struct tensor *const *element) {
  int64_t number;
  FILE *file;
  TRY(find_shard(s, run, element, &number));
  TRY(open_shard(s, number, &file));
  for (uint32_t i = 0; i < s->dataset->component_count; i++) {
    struct wire_buffer bytes = {0};
    if (element[i]->dtype == DTYPE_VARIANT || element[i]->dtype == DTYPE_RESOURCE)
      return fail(UNIMPLEMENTED, "a %s in a file: save the tensors that it is made of", dtype_name(element[i]->dtype));
    if (s->count == 0)
      vec_push(&s->dtypes, element[i]->dtype);
    tensor_proto_put(&bytes, element[i]);
    bool written = !bytes.is_bad && record_file_put(file, bytes.data, bytes.size);
    wire_buffer_free(&bytes);
    if (!written)
      return host_file_error(s->path);
  }
  s->count++;
  return OK;
}

static status save_begin(struct save *s) {
  struct timespec now;
  s->compression = host_attr_string(s->words, "compression", "");
  if (!record_file_knows(s->compression))
    return fail(UNIMPLEMENTED, "compression '%.*s': there are '', GZIP and ZLIB", (int)s->compression.size, s->compression.data);
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(s->run, sizeof s->run, "%llu", (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
  return write_metadata(s, false);
}

static status save_end(struct save *s) {
  TRY(close_shards(s));
  return write_metadata(s, true);
}

static void save_free(struct save *s) {
  close_shards(s);
  element_release(s->captured, s->captures);
  s->captures = 0;
  vec_free(&s->dtypes);
}

static status too_many_captures(void) { return fail(UNIMPLEMENTED, "`shard_func` captures more than %d values", DATASET_COMPONENTS_MAX); }

/* ---- all at once ---- */

static status write_elements(struct save *s, struct cursor *cursor, const struct dataset_run *run) {
  for (;;) {
    struct tensor *element[DATASET_COMPONENTS_MAX];
    bool end;
    TRY(cursor_next(cursor, run, element, &end));
    if (end)
      return save_end(s);
    status result = write_element(s, run, element);
    element_release(element, s->dataset->component_count);
    TRY(result);
  }
}

static status take_arguments(struct save *s, struct host_call *call) {
  TRY(host_scalar_path(call, 1, "path", s->path, sizeof s->path));
  for (uint32_t i = 2; i < call->input_count; i++) {
    if (s->captures == DATASET_COMPONENTS_MAX)
      return too_many_captures();
    TRY(host_keep_input(call, i, &s->captured[s->captures]));
    s->captures++;
  }
  return save_begin(s);
}

/* inputs: a dataset, the path, what shard_func captured */
status host_dataset_save(struct host_call *call) {
  struct dataset *dataset = call->input_count > 1 ? dataset_of(call->held[0]) : NULL;
  struct save *s = dataset ? calloc(1, sizeof *s) : NULL;
  struct cursor *cursor = NULL;
  if (!s)
    return dataset ? fail(RESOURCE_EXHAUSTED, "no memory to save a dataset") : fail(INVALID_ARGUMENT, "input 0 is no dataset");
  s->words = call;
  s->dataset = dataset;
  status result = take_arguments(s, call);
  if (result == OK)
    result = cursor_create(dataset, &cursor);
  if (result == OK)
    result = write_elements(s, cursor, &(struct dataset_run){call});
  cursor_destroy(cursor);
  save_free(s);
  free(s);
  return result;
}

/* ---- while they are given: inputs are the path, what shard_func captured ---- */

static void saved_stop(struct cursor *c) { save_free(c->state); }

static status saved_check(const struct dataset *d) {
  return d->input_count && d->inputs[0]->dtype == DTYPE_STRING && d->inputs[0]->count == 1
         ? OK
         : fail(INVALID_ARGUMENT, "path must be a string");
}

static status saved_start(struct cursor *c) {
  struct save *s = c->state;
  const struct dataset *d = c->dataset;
  TRY(host_path(host_scalar_string(d->inputs[0]), s->path, sizeof s->path));
  if (d->input_count - 1 > DATASET_COMPONENTS_MAX)
    return too_many_captures();
  for (uint32_t i = 1; i < d->input_count; i++)
    s->captured[s->captures++] = tensor_retain(d->inputs[i]);
  s->words = &d->words;
  s->dataset = d->sources[0];
  return save_begin(s);
}

static status saved_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct save *s = c->state;
  if (!s->words)
    TRY(saved_start(c));
  TRY(cursor_source_next(c, 0, run, out, end));
  if (*end)
    return save_end(s);
  status result = write_element(s, run, out);
  if (result != OK)
    element_release(out, c->dataset->component_count);
  return result;
}

const struct dataset_kind dataset_saves[] = {
  {"SaveDatasetV2", sizeof(struct save), saved_next, saved_stop, saved_check, .size = dataset_size_of_source,
   .batch = dataset_batch_of_source},
  {0},
};
