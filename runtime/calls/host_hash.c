/* host_hash.c: strings to buckets and fingerprints. */
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/string_hash.h"

static status put_buckets(struct host_call *call, uint64_t (*hash)(const struct host_call *, struct string_view)) {
  int64_t buckets = host_attr_int(call, "num_buckets", 1);
  TRY(host_make_output(call, 0, DTYPE_INT64, &call->inputs[0].shape));
  for (int64_t i = 0; i < call->inputs[0].count; i++)
    ((int64_t *)call->outputs[0]->data)[i] =
      (int64_t)(hash(call, ((const struct string_view *)call->inputs[0].data)[i]) % (uint64_t)(buckets < 1 ? 1 : buckets));
  return OK;
}

static uint64_t by_murmur(const struct host_call *call, struct string_view view) {
  (void)call;
  return hash_murmur(view.data, view.size);
}
static uint64_t by_farm(const struct host_call *call, struct string_view view) {
  (void)call;
  return hash_farm(view.data, view.size);
}
static uint64_t by_sip(const struct host_call *call, struct string_view view) {
  const struct program_attr *key = host_attr(call, "key");
  return hash_sip((uint64_t)program_attr(call->program, key->list.first)->i, (uint64_t)program_attr(call->program, key->list.first + 1)->i,
                  view.data, view.size);
}

status host_hash_bucket(struct host_call *call) { return put_buckets(call, by_murmur); }
status host_hash_bucket_fast(struct host_call *call) { return put_buckets(call, by_farm); }
status host_hash_bucket_strong(struct host_call *call) {
  const struct program_attr *key = host_attr(call, "key");
  if (!key || key->list.count != 2)
    return fail(INVALID_ARGUMENT, "Key must have 2 elements");
  return put_buckets(call, by_sip);
}

/* A row of strings: the fingerprint of the fingerprints; of numbers: of their bytes. */
status host_fingerprint(struct host_call *call) {
  const struct tensor *data = &call->inputs[0];
  struct string_view method = host_scalar_string(&call->inputs[1]);
  if (method.size != 10 || memcmp(method.data, "farmhash64", 10) != 0)
    return fail(INVALID_ARGUMENT, "Unsupported method: %.*s", (int)method.size, method.data);
  if (data->shape.rank < 1)
    return fail(INVALID_ARGUMENT, "`data` should have at least one dimension");
  int64_t rows = data->shape.dims[0], width = rows ? data->count / rows : 0;
  TRY(host_make_output(call, 0, DTYPE_UINT8, &(struct shape){2, {rows, 8}}));
  for (int64_t r = 0; r < rows; r++) {
    uint64_t print;
    const char *row = (const char *)data->data + (size_t)(r * width) * dtype_size(data->dtype);
    if (data->dtype != DTYPE_STRING) {
      print = hash_farm(row, (size_t)width * dtype_size(data->dtype));
    } else if (width == 1) {
      struct string_view view = *(const struct string_view *)(const void *)row;
      print = hash_farm(view.data, view.size);
    } else {
      uint64_t prints[512];
      if (width > 512)
        return fail(UNIMPLEMENTED, "a row of %lld strings", (long long)width);
      for (int64_t i = 0; i < width; i++) {
        struct string_view view = ((const struct string_view *)(const void *)row)[i];
        prints[i] = hash_farm(view.data, view.size);
      }
      print = hash_farm(prints, (size_t)width * 8);
    }
    memcpy((char *)call->outputs[0]->data + r * 8, &print, 8);
  }
  return OK;
}

/* Two halves for each string. */
status host_fingerprint_128(struct host_call *call) {
  const struct tensor *in = &call->inputs[0];
  if (in->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "input must be a vector, not of rank %d", in->shape.rank);
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){2, {in->count, 2}}));
  for (int64_t i = 0; i < in->count; i++) {
    struct string_view view = ((const struct string_view *)in->data)[i];
    uint64_t print[2];
    hash_farm_128(view.data, view.size, print);
    memcpy((char *)call->outputs[0]->data + 16 * i, print, 16);
  }
  return OK;
}
