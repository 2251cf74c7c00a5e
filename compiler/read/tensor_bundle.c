/* tensor_bundle.c: tensors out of a TensorBundle: `prefix.index` says where in `prefix.data-0000i-of-0000n` a key's bytes are.
 * A partitioned variable's entry has slices only, each stored under a key of its own (in ordered code). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "compiler/read/bundle_table.h"
#include "compiler/read/import.h"
#include "compiler/read/read.h"

#define ENTRY_BYTES_MAX (1 << 20) /* of an index value: a thousand slices */

struct bundle {
  const char *prefix;
  struct arena *arena;
  struct bundle_table table;
  int32_t shards;
};

static void *proto_alloc(void *arena, size_t size) { return arena_alloc(arena, size); }
static void proto_free(void *arena, void *p) { (void)arena, (void)p; }

/* ---- opening ---- */

static status file_read(const char *path, struct arena *arena, void **data, size_t *size) {
  FILE *file = fopen(path, "rbe");
  struct stat st;
  if (!file)
    return fail(NOT_FOUND, "'%s': %s", path, strerror(errno));
  if (fstat(fileno(file), &st) || !S_ISREG(st.st_mode) || st.st_size > LIMIT_GRAPH_BYTES) {
    fclose(file);
    return fail(INVALID_ARGUMENT, "'%s' is no file of at most 2 GiB", path);
  }
  *size = (size_t)st.st_size;
  *data = arena_alloc(arena, *size + 1);
  size_t got = fread(*data, 1, *size, file);
  fclose(file);
  return got == *size ? OK : fail(DATA_LOSS, "'%s' cannot be read", path);
}

static status header_check(struct bundle *b) {
  const struct bundle_item *item = bundle_table_find(&b->table, "", 0);
  if (!item || item->value_size > ENTRY_BYTES_MAX)
    return fail(DATA_LOSS, "has no header");
  TRY(wire_check(&tensorflow__bundle_header_proto__descriptor, item->value, item->value_size));
  ProtobufCAllocator alloc = {proto_alloc, proto_free, b->arena};
  Tensorflow__BundleHeaderProto *header = tensorflow__bundle_header_proto__unpack(&alloc, item->value_size, item->value);
  if (!header)
    return fail(DATA_LOSS, "has a header that cannot be read");
  if (header->endianness)
    return fail(UNIMPLEMENTED, "is big-endian");
  if (header->version && header->version->min_consumer > 1)
    return fail(UNIMPLEMENTED, "needs a reader of version %d", header->version->min_consumer);
  if (header->num_shards < 1 || header->num_shards > 99999)
    return fail(DATA_LOSS, "has %d shards", header->num_shards);
  b->shards = header->num_shards;
  return OK;
}

status bundle_open(const char *prefix, struct arena *arena, struct bundle **out) {
  struct bundle *b = ARENA_NEW(arena, struct bundle);
  b->prefix = arena_strdup(arena, prefix);
  b->arena = arena;
  void *data = NULL;
  size_t size = 0;
  TRY(file_read(arena_printf(arena, "%s.index", prefix), arena, &data, &size));
  status result = bundle_table_parse(data, size, arena, &b->table);
  if (result == OK)
    result = header_check(b);
  if (result != OK)
    return status_prefix(result, "TensorBundle at %s: ", prefix);
  *out = b;
  return OK;
}

/* ---- entries ---- */

static status entry_find(const struct bundle *b, const void *key, size_t key_size, const char *shown,
                         Tensorflow__BundleEntryProto **out) {
  const struct bundle_item *item = bundle_table_find(&b->table, key, key_size);
  if (!item)
    return fail(NOT_FOUND, "Key %s not found in checkpoint", shown);
  if (item->value_size > ENTRY_BYTES_MAX)
    return fail(DATA_LOSS, "TensorBundle at %s: the entry of '%s' is too large", b->prefix, shown);
  TRY(wire_check(&tensorflow__bundle_entry_proto__descriptor, item->value, item->value_size));
  ProtobufCAllocator alloc = {proto_alloc, proto_free, b->arena};
  *out = tensorflow__bundle_entry_proto__unpack(&alloc, item->value_size, item->value);
  return *out ? OK : fail(DATA_LOSS, "TensorBundle at %s: the entry of '%s' cannot be read", b->prefix, shown);
}

static status shape_read(const Tensorflow__TensorShapeProto *shape, struct constant *out) {
  out->rank = shape ? (int)shape->n_dim : 0;
  if (shape && shape->n_dim > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a tensor of rank %zu", shape->n_dim);
  out->count = 1;
  for (int i = 0; i < out->rank; i++) {
    int64_t dim = shape->dim[i]->size;
    if (dim < 0 || __builtin_mul_overflow(out->count, dim, &out->count) || out->count > LIMIT_ELEMENTS)
      return fail(DATA_LOSS, "its dimension %d is %lld", i, (long long)dim);
    out->dims[i] = dim;
  }
  return OK;
}

/* The entry's bytes, in memory taken only after the file is known to have them. */
static status bytes_read(const struct bundle *b, const Tensorflow__BundleEntryProto *e, uint8_t **out) {
  if (e->shard_id < 0 || e->shard_id >= b->shards)
    return fail(DATA_LOSS, "it is in shard %d of %d", e->shard_id, b->shards);
  char *path = arena_printf(b->arena, "%s.data-%05d-of-%05d", b->prefix, e->shard_id, b->shards);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0)
    return fail(NOT_FOUND, "'%s': %s", path, strerror(errno));
  status result = OK;
  if (fstat(fd, &st) || e->offset < 0 || e->size < 0 || e->offset > st.st_size || e->size > st.st_size - e->offset) {
    result = fail(DATA_LOSS, "its bytes are outside of '%s'", path);
  } else {
    *out = arena_alloc_aligned(b->arena, (size_t)e->size + 1, 64);
    for (int64_t done = 0; done < e->size && result == OK;) {
      ssize_t got = pread(fd, *out + done, (size_t)(e->size - done), e->offset + done);
      if (got <= 0)
        result = fail(DATA_LOSS, "'%s' cannot be read: %s", path, got ? strerror(errno) : "it is shorter than it was");
      done += got;
    }
  }
  close(fd);
  return result;
}

static status checksum_check(const Tensorflow__BundleEntryProto *e, uint32_t crc) {
  return crc32c_mask(crc) == e->crc32c ? OK : fail(DATA_LOSS, "Checksum does not match: stored %u vs. calculated %u",
                                                   e->crc32c, crc32c_mask(crc));
}

/* Lengths as varints, their masked checksum, then all bytes; the checksums run over lengths of fixed width. */
static status strings_read(const struct bundle *b, const Tensorflow__BundleEntryProto *e, const uint8_t *data,
                           struct constant *out) {
  const uint8_t *at = data, *end = data + e->size;
  if (out->count > e->size)
    return fail(DATA_LOSS, "it has fewer bytes than strings");
  struct string_view *views = ARENA_ARRAY(b->arena, struct string_view, out->count + 1);
  uint32_t crc = 0;
  for (int64_t i = 0; i < out->count; i++) {
    int shift = 0;
    do {
      if (at == end || shift > 63)
        return fail(DATA_LOSS, "the lengths of its strings are damaged");
      views[i].size |= (uint64_t)(*at & 127) << shift;
      shift += 7;
    } while (*at++ & 128);
    crc = crc32c_extend(crc, &views[i].size, views[i].size > UINT32_MAX ? 8 : 4);
  }
  if (end - at < 4)
    return fail(DATA_LOSS, "the checksum of its lengths is missing");
  uint32_t stored, masked = crc32c_mask(crc);
  memcpy(&stored, at, 4);
  if (stored != masked)
    return fail(DATA_LOSS, "the checksum of its lengths does not match");
  at += 4;
  crc = crc32c_extend(crc, &stored, 4);
  TRY(checksum_check(e, crc32c_extend(crc, at, (size_t)(end - at))));
  for (int64_t i = 0; i < out->count; i++) {
    if (views[i].size > (uint64_t)(end - at))
      return fail(DATA_LOSS, "string %lld is cut off", (long long)i);
    views[i].data = (const char *)at;
    at += views[i].size;
  }
  out->data = views;
  return OK;
}

static status entry_read(const struct bundle *b, const Tensorflow__BundleEntryProto *e, struct constant *out) {
  if (!dtype_is_valid(e->dtype) || e->dtype == DTYPE_RESOURCE || e->dtype == DTYPE_VARIANT)
    return fail(UNIMPLEMENTED, "its dtype is %d (%s)", e->dtype, dtype_name((enum dtype)e->dtype));
  out->dtype = (enum dtype)e->dtype;
  TRY(shape_read(e->shape, out));
  if (out->dtype != DTYPE_STRING && e->size != out->count * (int64_t)dtype_size(out->dtype))
    return fail(DATA_LOSS, "it has %lld bytes for %lld elements of %s", (long long)e->size, (long long)out->count,
                dtype_name(out->dtype));
  uint8_t *data;
  TRY(bytes_read(b, e, &data));
  if (out->dtype == DTYPE_STRING)
    return strings_read(b, e, data, out);
  out->data = data;
  return checksum_check(e, crc32c(data, (size_t)e->size));
}

/* ---- slices ---- */

struct key_text {
  VEC(char) bytes;
};

static void key_add_byte(struct key_text *key, unsigned byte) {
  vec_push(&key->bytes, (char)byte);
}

/* A length byte, then that many bytes, the high ones first. */
static void key_add_number(struct key_text *key, uint64_t value) {
  int bytes = 0;
  while (bytes < 8 && value >> (8 * bytes))
    bytes++;
  key_add_byte(key, (unsigned)bytes);
  for (int i = bytes - 1; i >= 0; i--)
    key_add_byte(key, (unsigned)(value >> (8 * i)) & 255);
}

static void key_add_string(struct key_text *key, const char *text) {
  for (; *text; text++) {
    key_add_byte(key, (unsigned char)*text);
    if ((unsigned char)*text == 255)
      key_add_byte(key, 0);
  }
  key_add_byte(key, 0);
  key_add_byte(key, 1);
}

/* n bytes, high ones first, hold 7n-1 bits and the sign; n ones from the top are flipped in, so that bytes sort as numbers. */
static void key_add_signed(struct key_text *key, int64_t value) {
  uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
  int n = 1;
  while (n < 10 && magnitude >> (7 * n - 1 > 63 ? 63 : 7 * n - 1))
    n++;
  for (int i = 0; i < n; i++) {
    int shift = 8 * (n - 1 - i), ones = n - 8 * i > 8 ? 8 : n - 8 * i;
    unsigned byte = shift > 63 ? (value < 0 ? 255u : 0u) : (unsigned)(value >> shift) & 255;
    key_add_byte(key, ones > 0 ? byte ^ (0xff00u >> ones & 255) : byte);
  }
}

static void slice_key(struct key_text *key, const char *name, const Tensorflow__TensorSliceProto *slice) {
  key->bytes.count = 0;
  key_add_number(key, 0);
  key_add_string(key, name);
  key_add_number(key, slice->n_extent);
  for (size_t i = 0; i < slice->n_extent; i++) {
    bool whole = slice->extent[i]->has_length_case != TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
    key_add_signed(key, whole ? 0 : slice->extent[i]->start);
    key_add_signed(key, whole ? -1 : slice->extent[i]->length);
  }
}

/* Copies a part into its place: rows of the last dimension at a time. */
static status part_place(const struct constant *part, const Tensorflow__TensorSliceProto *slice, struct constant *whole) {
  int64_t start[LIMIT_RANK], index[LIMIT_RANK] = {0};
  if ((int)slice->n_extent != whole->rank || part->rank != whole->rank || part->dtype != whole->dtype)
    return fail(DATA_LOSS, "a slice has another rank or dtype");
  for (int i = 0; i < whole->rank; i++) {
    bool full = slice->extent[i]->has_length_case != TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
    start[i] = full ? 0 : slice->extent[i]->start;
    int64_t length = full ? whole->dims[i] : slice->extent[i]->length;
    if (start[i] < 0 || start[i] > whole->dims[i] || length != part->dims[i] || length > whole->dims[i] - start[i])
      return fail(DATA_LOSS, "a slice does not fit into dimension %d", i);
  }
  size_t size = dtype_size(whole->dtype);
  int last = whole->rank - 1;
  int64_t row = whole->rank ? part->dims[last] : 1, rows = part->count && row ? part->count / row : 0;
  for (int64_t r = 0; r < rows; r++) {
    int64_t at = 0;
    for (int i = 0; i < whole->rank; i++)
      at = at * whole->dims[i] + start[i] + (i < last ? index[i] : 0);
    memcpy((char *)(uintptr_t)whole->data + (size_t)at * size, (const char *)part->data + (size_t)(r * row) * size,
           (size_t)row * size);
    for (int i = last - 1; i >= 0 && ++index[i] == part->dims[i]; i--)
      index[i] = 0;
  }
  return OK;
}

static status part_read(const struct bundle *b, const char *name, const Tensorflow__TensorSliceProto *slice,
                        struct constant *out) {
  struct key_text key = {0};
  slice_key(&key, name, slice);
  Tensorflow__BundleEntryProto *entry = NULL;
  status result = entry_find(b, key.bytes.items, key.bytes.count, "of a slice", &entry);
  vec_free(&key.bytes);
  if (result != OK)
    return result;
  if (entry->n_slices)
    return fail(DATA_LOSS, "a slice has slices");
  return entry_read(b, entry, out);
}

/* The parts must be there before memory is taken for the whole: their elements together are at least as many. */
static status slices_read(const struct bundle *b, const char *name, const Tensorflow__BundleEntryProto *e,
                          struct constant *out) {
  if (!dtype_is_valid(e->dtype))
    return fail(DATA_LOSS, "its dtype is %d", e->dtype);
  out->dtype = (enum dtype)e->dtype;
  TRY(shape_read(e->shape, out));
  struct constant *parts = ARENA_ARRAY(b->arena, struct constant, e->n_slices);
  int64_t total = 0;
  for (size_t i = 0; i < e->n_slices; i++) {
    TRY(part_read(b, name, e->slices[i], &parts[i]));
    total += parts[i].count;
  }
  if (total < out->count)
    return fail(DATA_LOSS, "its slices have %lld of %lld elements", (long long)total, (long long)out->count);
  out->data = arena_alloc_aligned(b->arena, (size_t)out->count * dtype_size(out->dtype) + 1, 64);
  for (size_t i = 0; i < e->n_slices; i++)
    TRY(part_place(&parts[i], e->slices[i], out));
  return OK;
}

status bundle_read(struct bundle *bundle, const char *key, struct constant *out) {
  Tensorflow__BundleEntryProto *entry;
  TRY(entry_find(bundle, key, strlen(key), key, &entry));
  struct constant result = {0};
  status s = entry->n_slices ? slices_read(bundle, key, entry, &result) : entry_read(bundle, entry, &result);
  if (s != OK)
    return status_prefix(s, "TensorBundle at %s, key '%s': ", bundle->prefix, key);
  *out = result;
  return OK;
}
