/* host_record_input.c: RecordInput: records out of files, over and over, in an order of chance: files are shuffled for each pass, and each
 * record is drawn from a window. Which order TensorFlow has depends on its threads; ours follows from the seed. */
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/record_file.h"
#include "runtime/memory/container.h"
#include "runtime/resource/philox_stream.h"
#include "runtime/text/string_output.h"

struct record {
  char *data;
  size_t size;
};
struct record_input {
  struct resource resource;
  pthread_mutex_t lock;
  glob_t names;
  bool is_listed, had_record;
  VEC(uint32_t) order; /* of the names, in this pass */
  uint32_t at;
  struct record_file file;
  VEC(struct record) window;
  struct philox random;
};

static status input_init(struct resource *resource, void *argument) {
  struct record_input *in = (struct record_input *)resource;
  philox_seed(&in->random, *(const uint64_t *)argument, 0);
  pthread_mutex_init(&in->lock, NULL);
  return OK;
}

static void input_destroy(struct resource *resource) {
  struct record_input *in = (struct record_input *)resource;
  for (uint32_t i = 0; i < in->window.count; i++)
    free(in->window.items[i].data);
  vec_free(&in->window);
  vec_free(&in->order);
  record_file_free(&in->file);
  if (in->is_listed)
    globfree(&in->names);
  pthread_mutex_destroy(&in->lock);
}

static const struct resource_maker input_maker = {"record input", sizeof(struct record_input), input_init, input_destroy};

/* The names in a new order, turned round by a part of them. */
static status begin_pass(const struct host_call *call, struct record_input *in) {
  uint32_t count = (uint32_t)in->names.gl_pathc;
  double ratio = host_attr_float(call, "file_shuffle_shift_ratio", 0);
  uint32_t shift = ratio >= 0 && ratio < 1 ? (uint32_t)(ratio * count) : 0;
  if (in->order.count && !in->had_record)
    return fail(OUT_OF_RANGE, "the files hold no record");
  in->order.count = in->at = 0;
  in->had_record = false;
  for (uint32_t i = 0; i < count; i++)
    vec_push(&in->order, (i + shift) % count);
  for (uint32_t i = count; i > 1; i--) {
    uint32_t k = philox_next(&in->random) % i, other = in->order.items[i - 1];
    in->order.items[i - 1] = in->order.items[k];
    in->order.items[k] = other;
  }
  return OK;
}

static status list_names(const struct host_call *call, struct record_input *in) {
  char path[HOST_PATH_MAX];
  struct string_view pattern = host_attr_string(call, "file_pattern", "");
  TRY(host_path(pattern, path, sizeof path));
  in->is_listed = glob(path, 0, NULL, &in->names) == 0;
  return in->is_listed ? begin_pass(call, in) : fail(NOT_FOUND, "Found no files at %s", path);
}

/* One more record for the window. *over: the pass has none; the next one begins when the window is empty. */
static status read_one(const struct host_call *call, struct record_input *in, bool *over) {
  struct string_view text;
  for (;;) {
    bool end;
    *over = !in->file.file && in->at == in->order.count && in->window.count > 0;
    if (*over)
      return OK;
    if (!in->file.file && in->at == in->order.count)
      TRY(begin_pass(call, in));
    if (!in->file.file) {
      const char *name = in->names.gl_pathv[in->order.items[in->at++]];
      TRY(record_file_open(&in->file, (struct string_view){name, strlen(name)}, host_attr_string(call, "compression_type", "")));
    }
    TRY(record_file_record(&in->file, &text, &end));
    if (!end)
      break;
    record_file_close(&in->file);
  }
  struct record record = {malloc(text.size + 1), text.size};
  if (!record.data)
    return fail(RESOURCE_EXHAUSTED, "no memory for a record");
  if (text.size)
    memcpy(record.data, text.data, text.size);
  in->had_record = true;
  vec_push(&in->window, record);
  return OK;
}

static status give_records(struct host_call *call, struct record_input *in, int64_t count) {
  struct string_output out;
  int64_t size = host_attr_int(call, "file_buffer_size", 10000);
  if (!in->is_listed)
    TRY(list_names(call, in));
  TRY(string_output_begin(&out, &(struct shape){1, {count}}, &call->outputs[0]));
  for (int64_t i = 0; i < count; i++) {
    for (bool over = false; !over && (in->window.count < size || in->window.count == 0);)
      TRY(read_one(call, in, &over));
    struct record *drawn = &in->window.items[philox_next(&in->random) % in->window.count];
    string_output_put(&out, drawn->data, drawn->size);
    free(drawn->data);
    *drawn = in->window.items[--in->window.count];
  }
  return string_output_end(&out);
}

status host_record_input(struct host_call *call) {
  uint64_t seed = (uint64_t)host_attr_int(call, "file_random_seed", 301) + 1; /* a seed of 0 would be the system's */
  struct resource *resource;
  bool is_new;
  if (!record_file_knows(host_attr_string(call, "compression_type", "")))
    return fail(INVALID_ARGUMENT, "Unsupported compression_type");
  TRY(host_get_resource(call, &input_maker, &seed, &is_new, &resource));
  struct record_input *in = (struct record_input *)resource;
  pthread_mutex_lock(&in->lock);
  status result = give_records(call, in, host_attr_int(call, "batch_size", 32));
  pthread_mutex_unlock(&in->lock);
  return result;
}
