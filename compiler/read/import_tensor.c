/* import_tensor.c: TensorProto to elements in memory. A tensor comes as raw bytes (tensor_content), or as a list of values of
 * which the last is repeated to fill the shape. */
#include <string.h>

#include "base/map.h"
#include "compiler/read/import.h"

/* ---- strings ---- */

static struct string_view string_copy(struct arena *arena, const void *data, size_t size) {
  return (struct string_view){arena_strndup(arena, data ? data : "", size), size};
}

static bool read_varint(const uint8_t **p, const uint8_t *end, uint64_t *out) {
  uint64_t v = 0;
  for (int shift = 0; shift < 64 && *p < end; shift += 7) {
    uint8_t b = *(*p)++;
    v |= (uint64_t)(b & 127) << shift;
    if (!(b & 128)) {
      *out = v;
      return true;
    }
  }
  return false;
}

/* tensor_content of strings: all lengths as varints, then all bytes. */
static status content_strings(const ProtobufCBinaryData *content, int64_t count, struct arena *arena, struct string_view *out) {
  const uint8_t *p = content->data, *end = p + content->len;
  if ((uint64_t)count > content->len)
    return fail(INVALID_ARGUMENT, "tensor_content is too short for %lld strings", (long long)count);
  for (int64_t i = 0; i < count; i++)
    if (!read_varint(&p, end, &out[i].size))
      return fail(INVALID_ARGUMENT, "tensor_content ends inside of its lengths");
  for (int64_t i = 0; i < count; i++) {
    if (out[i].size > (uint64_t)(end - p))
      return fail(INVALID_ARGUMENT, "tensor_content ends inside of string %lld", (long long)i);
    out[i] = string_copy(arena, p, out[i].size);
    p += out[i].size;
  }
  return p == end ? OK : fail(INVALID_ARGUMENT, "tensor_content has bytes left over");
}

static status import_strings(const Tensorflow__TensorProto *t, int64_t count, struct arena *arena, struct string_view *out) {
  if (t->tensor_content.len)
    return content_strings(&t->tensor_content, count, arena, out);
  size_t n = t->n_string_val;
  for (int64_t i = 0; i < count; i++)
    out[i] = (size_t)i < n ? string_copy(arena, t->string_val[i].data, t->string_val[i].len) : n ? out[n - 1] : (struct string_view){"", 0};
  return OK;
}

/* ---- numbers ---- */

struct values { /* the list that holds a dtype's values */
  const void *items;
  size_t count, item_size; /* item_size: of the proto's element */
};

static struct values values_of(const Tensorflow__TensorProto *t, enum dtype dtype) {
  switch (dtype) {
  case DTYPE_FLOAT: return (struct values){t->float_val, t->n_float_val, 4};
  case DTYPE_DOUBLE: return (struct values){t->double_val, t->n_double_val, 8};
  case DTYPE_INT64: return (struct values){t->int64_val, t->n_int64_val, 8};
  case DTYPE_UINT64: return (struct values){t->uint64_val, t->n_uint64_val, 8};
  case DTYPE_UINT32: return (struct values){t->uint32_val, t->n_uint32_val, 4};
  case DTYPE_BOOL: return (struct values){t->bool_val, t->n_bool_val, sizeof(protobuf_c_boolean)};
  case DTYPE_HALF:
  case DTYPE_BFLOAT16: return (struct values){t->half_val, t->n_half_val, 4};
  case DTYPE_COMPLEX64: return (struct values){t->scomplex_val, t->n_scomplex_val / 2, 8};
  case DTYPE_COMPLEX128: return (struct values){t->dcomplex_val, t->n_dcomplex_val / 2, 16};
  case DTYPE_RESOURCE: return (struct values){0};
  default: return (struct values){t->int_val, t->n_int_val, 4};
  }
}

/* Little-endian: the low bytes of a wider integer come first, so narrowing is copying. */
static void import_numbers(const Tensorflow__TensorProto *t, enum dtype dtype, int64_t count, char *out) {
  struct values v = values_of(t, dtype);
  size_t size = dtype_size(dtype);
  for (int64_t i = 0; i < count && v.count; i++) {
    size_t from = (size_t)i < v.count ? (size_t)i : v.count - 1;
    memcpy(out + (size_t)i * size, (const char *)v.items + from * v.item_size, size);
  }
}

static status import_dims(const Tensorflow__TensorProto *t, struct constant *out) {
  const Tensorflow__TensorShapeProto *s = t->tensor_shape;
  out->rank = s ? (int)s->n_dim : 0;
  out->count = 1;
  if (s && s->unknown_rank)
    return fail(INVALID_ARGUMENT, "a constant of unknown rank");
  if (s && s->n_dim > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a constant of rank %zu", s->n_dim);
  for (int i = 0; i < out->rank; i++) {
    out->dims[i] = s->dim[i]->size;
    if (out->dims[i] < 0 || out->dims[i] > LIMIT_ELEMENTS || out->count > LIMIT_ELEMENTS / (out->dims[i] ? out->dims[i] : 1))
      return fail(INVALID_ARGUMENT, "a constant whose dimension %d is %lld", i, (long long)out->dims[i]);
    out->count *= out->dims[i];
  }
  return OK;
}

/* A repeated value fills a large shape from few bytes: so much in all, above what the values' own bytes pay for. */
#define FILL_MAX (INT64_C(512) << 20)
static _Thread_local int64_t fill_left;

void import_tensor_begin(void) { fill_left = FILL_MAX; }

static status fill_pay(const Tensorflow__TensorProto *t, const struct constant *k, int64_t bytes) {
  int64_t own = k->dtype == DTYPE_STRING ? (int64_t)(t->n_string_val + t->tensor_content.len) * 16
                                         : (int64_t)values_of(t, k->dtype).count * (int64_t)dtype_size(k->dtype);
  int64_t extra = bytes - own;
  if (extra <= 0)
    return OK;
  if (extra > fill_left)
    return fail(RESOURCE_EXHAUSTED, "a constant of %lld bytes from a short list", (long long)bytes);
  fill_left -= extra;
  return OK;
}

/* What a dataset of TensorFlow's makes for itself where it finds none of that name: in any process but the one that wrote the graph. */
static bool is_made_anew(const Tensorflow__ResourceHandleProto *h) {
  return strstr(h->maybe_type_name, "SeedGenerator") || strstr(h->maybe_type_name, "MemoryCache");
}

/* A handle in a constant names what the writing process held. Here it is a number made of the name, below those of all that tasks have
 * (runtime/calls/host_iterator.c): datasets that say the same name share what it stands for. */
static int64_t handle_of_name(const char *name) { return INT64_MIN + (int64_t)(hash_bytes(name, strlen(name), 0) >> 2); }

static void import_handles(const Tensorflow__TensorProto *t, int64_t count, int64_t *out) {
  for (int64_t i = 0; i < count; i++)
    out[i] = handle_of_name(t->resource_handle_val[(size_t)i < t->n_resource_handle_val ? (size_t)i : t->n_resource_handle_val - 1]->name);
}

static status check_handles(const Tensorflow__TensorProto *t) {
  bool is_known = t->dtype != DTYPE_VARIANT && (t->dtype != DTYPE_RESOURCE || (t->n_resource_handle_val && !t->tensor_content.len));
  for (size_t i = 0; is_known && t->dtype == DTYPE_RESOURCE && i < t->n_resource_handle_val; i++)
    is_known = is_made_anew(t->resource_handle_val[i]);
  return is_known ? OK : fail(UNIMPLEMENTED, "a constant of dtype %s", dtype_name((enum dtype)t->dtype));
}

status import_tensor(const Tensorflow__TensorProto *t, struct arena *arena, const struct constant **out) {
  struct constant *k = ARENA_NEW(arena, struct constant);
  if (!dtype_is_valid(t->dtype))
    return fail(INVALID_ARGUMENT, "a constant of dtype number %d", t->dtype);
  k->dtype = (enum dtype)t->dtype;
  TRY(check_handles(t));
  TRY(import_dims(t, k));
  int64_t bytes = k->count * (int64_t)dtype_size(k->dtype);
  bool raw = t->tensor_content.len > 0 && k->dtype != DTYPE_STRING;
  if (raw && (int64_t)t->tensor_content.len != bytes)
    return fail(INVALID_ARGUMENT, "tensor_content has %zu bytes, the shape needs %lld", t->tensor_content.len, (long long)bytes);
  if (!raw)
    TRY(fill_pay(t, k, bytes));
  char *data = arena_alloc_aligned(arena, (size_t)bytes + 16, 64);
  if (k->dtype == DTYPE_STRING)
    TRY(import_strings(t, k->count, arena, (struct string_view *)(void *)data));
  else if (raw)
    memcpy(data, t->tensor_content.data, (size_t)bytes);
  else if (k->dtype == DTYPE_RESOURCE)
    import_handles(t, k->count, (int64_t *)(void *)data);
  else
    import_numbers(t, k->dtype, k->count, data);
  k->data = data;
  *out = k;
  return OK;
}
