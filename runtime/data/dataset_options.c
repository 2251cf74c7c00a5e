/* dataset_options.c: what is known of a dataset besides its elements: its options (dataset_options.proto), and how large its batches
 * are. */
#include <stdlib.h>

#include "base/vec.h"
#include "base/wire.h"
#include "runtime/data/dataset.h"

#define FIELDS_MAX 64 /* of options: the message has a dozen */
#define DEPTH_MAX 4

/* ---- options: fields that are there replace those before them; messages are merged field by field ---- */

static bool merge(struct wire_buffer *into, const uint8_t *data, size_t size, int depth);

/* The field of each number, the last value, or all messages one behind the other. */
struct field {
  bool is_there, is_message;
  uint64_t value;
  struct wire_buffer bytes;
};

static bool collect(struct field *fields, struct wire wire) {
  struct wire_field f;
  while (wire_next(&wire, &f)) {
    if (f.number >= FIELDS_MAX || (f.type != WIRE_VARINT && f.type != WIRE_BYTES))
      return false;
    struct field *to = &fields[f.number];
    to->is_there = true;
    to->is_message = f.type == WIRE_BYTES;
    to->value = f.value;
    if (to->is_message)
      wire_put_raw(&to->bytes, f.data, f.size);
  }
  return !wire.is_bad;
}

/* Writes the message anew, fields in the order of their numbers, each once. */
static bool merge(struct wire_buffer *into, const uint8_t *data, size_t size, int depth) {
  struct field fields[FIELDS_MAX] = {0};
  bool good = depth < DEPTH_MAX && collect(fields, wire_over(data, size));
  for (uint32_t i = 0; i < FIELDS_MAX; i++) {
    struct wire_buffer inner = {0};
    if (good && fields[i].is_there && !fields[i].is_message)
      wire_put_varint(into, i, fields[i].value);
    if (good && fields[i].is_there && fields[i].is_message) {
      bool is_message = merge(&inner, fields[i].bytes.data, fields[i].bytes.size, depth + 1);
      wire_put_bytes(into, i, is_message ? inner.data : fields[i].bytes.data, is_message ? inner.size : fields[i].bytes.size);
    }
    wire_buffer_free(&inner);
    wire_buffer_free(&fields[i].bytes);
  }
  return good;
}

/* Those of the sources come first: the dataset's own go before them. */
static void put_options(const struct dataset *d, struct wire_buffer *out) {
  for (uint32_t i = 0; i < d->source_count; i++)
    put_options(d->sources[i], out);
  struct string_view own = host_attr_string(&d->words, "serialized_options", "");
  wire_put_raw(out, own.data, own.size);
}

/* All of them as one message; false when they are none that is known. */
static bool read_options(const struct dataset *d, struct wire_buffer *out) {
  struct wire_buffer all = {0};
  put_options(d, &all);
  bool good = merge(out, all.data, all.size, 0) && !all.is_bad && !out->is_bad;
  wire_buffer_free(&all);
  return good;
}

status host_dataset_options(struct host_call *call) {
  struct dataset *dataset = dataset_of(call->held[0]);
  struct wire_buffer options = {0};
  if (!dataset)
    return fail(INVALID_ARGUMENT, "input 0 is no dataset");
  status result =
    read_options(dataset, &options)
      ? tensor_copy_in(DTYPE_STRING, &(struct shape){0}, &(struct string_view){(const char *)options.data, options.size}, &call->outputs[0])
      : fail(INVALID_ARGUMENT, "the dataset's options are no message that is known");
  wire_buffer_free(&options);
  return result;
}

/* ---- batches ---- */

enum { OPTION_DETERMINISTIC = 1, OPTION_OPTIMIZATION = 3, OPTION_SLACK = 4, OPTION_THREADING = 5 };
enum { OPTIMIZATION_DEFAULTS = 1 };

/* Whether TensorFlow makes another dataset of one with these options: one with its own threads, or, where it may, a rewritten one. */
static bool options_replace(struct wire options, bool may_rewrite) {
  struct wire_field f, inner;
  bool has_threads = false, rewrites = false, defaults = true;
  while (wire_next(&options, &f)) {
    rewrites = rewrites || (f.number == OPTION_DETERMINISTIC && !f.value) || (f.number == OPTION_SLACK && f.value);
    for (struct wire fields = wire_inside(&f); wire_next(&fields, &inner);) {
      has_threads = has_threads || f.number == OPTION_THREADING;
      if (f.number == OPTION_OPTIMIZATION && inner.type == WIRE_VARINT && inner.number == OPTIMIZATION_DEFAULTS)
        defaults = inner.value != 0;
      else if (f.number == OPTION_OPTIMIZATION && inner.type == WIRE_VARINT)
        rewrites = rewrites || inner.value != 0;
    }
  }
  return has_threads || (may_rewrite && (rewrites || defaults));
}

int64_t dataset_batch_finalized(const struct dataset *d) {
  struct wire_buffer options = {0};
  bool may_rewrite = !host_attr_int(&d->words, "has_captured_ref", 0);
  bool is_replaced = !read_options(d, &options) || options_replace(wire_over(options.data, options.size), may_rewrite);
  wire_buffer_free(&options);
  return is_replaced ? DATASET_BATCH_UNKNOWN : dataset_batch_of_source(d);
}

status host_dataset_batch_size(struct host_call *call) {
  struct dataset *dataset = dataset_of(call->held[0]);
  if (!dataset)
    return fail(INVALID_ARGUMENT, "input 0 is no dataset");
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){0}));
  *(int64_t *)call->outputs[0]->data = dataset_batch(dataset);
  return OK;
}
