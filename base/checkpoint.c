/* checkpoint.c: reading a TensorBundle. */
#include "base/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checkpoint_v1.h"
#include "base/crc32c.h"
#include "base/file_read.h"
#include "base/vec.h"
#include "base/wire.h"

#define ENTRY_BYTES_MAX (1 << 20) /* of an index value: a thousand slices */
#define SHARDS_MAX 99999

struct checkpoint {
  const char *prefix;
  struct arena *arena;
  struct bundle_table table;
  int32_t shards;
  const void *note;
  size_t note_size;
  const struct checkpoint_v1 *v1; /* of the first form: then the table says nothing */
};

/* ---- opening ---- */

static status header_check(struct checkpoint *b) {
  const struct bundle_item *item = bundle_table_find(&b->table, "", 0);
  if (!item || item->value_size > ENTRY_BYTES_MAX)
    return fail(DATA_LOSS, "has no header");
  struct wire wire = wire_over(item->value, item->value_size);
  struct wire_field field, inner;
  int64_t shards = 0, consumer = 0;
  bool big_endian = false;
  while (wire_next(&wire, &field)) {
    if (field.number == 1)
      shards = (int64_t)field.value;
    if (field.number == 2)
      big_endian = field.value != 0;
    if (field.number == CHECKPOINT_NOTE_FIELD && field.type == WIRE_BYTES) {
      b->note = field.data;
      b->note_size = field.size;
    }
    for (struct wire version = wire_inside(&field); field.number == 3 && wire_next(&version, &inner);)
      if (inner.number == 2)
        consumer = (int64_t)inner.value;
  }
  if (wire.is_bad)
    return fail(DATA_LOSS, "has a header that cannot be read");
  if (big_endian)
    return fail(UNIMPLEMENTED, "is big-endian");
  if (consumer > 1)
    return fail(UNIMPLEMENTED, "needs a reader of version %lld", (long long)consumer);
  if (shards < 1 || shards > SHARDS_MAX)
    return fail(DATA_LOSS, "has %lld shards", (long long)shards);
  b->shards = (int32_t)shards;
  return OK;
}

/* Without an index file: the prefix is the file, or a pattern for those of its shards. */
static status open_first_form(struct checkpoint *b, const char *prefix, struct checkpoint **out) {
  struct checkpoint_v1 *v1 = ARENA_NEW(b->arena, struct checkpoint_v1);
  status s = checkpoint_v1_open(prefix, b->arena, v1);
  if (s == NOT_FOUND)
    return fail(NOT_FOUND, "'%s.index': %s", prefix, strerror(ENOENT));
  b->v1 = v1;
  *out = s == OK ? b : NULL;
  return s;
}

status checkpoint_open(const char *prefix, struct arena *arena, struct checkpoint **out) {
  struct checkpoint *b = ARENA_NEW(arena, struct checkpoint);
  b->prefix = arena_strdup(arena, prefix);
  b->arena = arena;
  void *data = NULL;
  size_t size = 0;
  status found = file_read(arena_printf(arena, "%s.index", prefix), arena, &data, &size);
  if (found == NOT_FOUND)
    return open_first_form(b, prefix, out);
  TRY(found);
  status result = bundle_table_parse(data, size, arena, &b->table);
  if (result == OK)
    result = header_check(b);
  if (result != OK)
    return status_prefix(result, "TensorBundle at %s: ", prefix);
  *out = b;
  return OK;
}

const void *checkpoint_note(const struct checkpoint *checkpoint, size_t *size) {
  *size = checkpoint->note_size;
  return checkpoint->note;
}

const struct bundle_table *checkpoint_table(const struct checkpoint *checkpoint) { return &checkpoint->table; }
int32_t checkpoint_shards(const struct checkpoint *checkpoint) { return checkpoint->shards; }

/* ---- entries ---- */

status checkpoint_shape_message(struct wire wire, struct shape *out) {
  struct wire_field field, inner;
  while (wire_next(&wire, &field)) {
    if (field.number != 2)
      continue;
    if (out->rank == LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a tensor of rank above %d", LIMIT_RANK);
    int64_t size = 0;
    for (struct wire dim = wire_inside(&field); wire_next(&dim, &inner);)
      if (inner.number == 1)
        size = (int64_t)inner.value;
    out->dims[out->rank++] = size;
  }
  return OK;
}

status checkpoint_slice_message(struct wire wire, struct checkpoint_slice *out) {
  struct wire_field field, inner;
  while (wire_next(&wire, &field)) {
    if (field.number != 1)
      continue;
    if (out->rank == LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a slice of rank above %d", LIMIT_RANK);
    int64_t start = 0, length = -1;
    for (struct wire extent = wire_inside(&field); wire_next(&extent, &inner);) {
      start = inner.number == 1 ? (int64_t)inner.value : start;
      length = inner.number == 2 ? (int64_t)inner.value : length;
    }
    out->start[out->rank] = length < 0 ? 0 : start;
    out->length[out->rank++] = length;
  }
  return wire.is_bad ? fail(DATA_LOSS, "a slice cannot be read") : OK;
}

static status slices_parse(struct wire wire, struct arena *arena, struct checkpoint_entry *out) {
  struct wire count = wire;
  struct wire_field field;
  uint32_t total = 0;
  while (wire_next(&count, &field))
    total += field.number == 7 && field.type == WIRE_BYTES;
  struct checkpoint_slice *slices = ARENA_ARRAY(arena, struct checkpoint_slice, total + 1);
  while (wire_next(&wire, &field))
    if (field.number == 7 && field.type == WIRE_BYTES)
      TRY(checkpoint_slice_message(wire_inside(&field), &slices[out->slice_count++]));
  out->slices = slices;
  return OK;
}

status checkpoint_entry_parse(const void *data, size_t size, struct arena *arena, struct checkpoint_entry *out) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  *out = (struct checkpoint_entry){0};
  int dtype = 0;
  while (wire_next(&wire, &field)) {
    switch (field.number) {
    case 1: dtype = (int)field.value; break;
    case 2: TRY(checkpoint_shape_message(wire_inside(&field), &out->shape)); break;
    case 3: out->shard = (int32_t)field.value; break;
    case 4: out->offset = (int64_t)field.value; break;
    case 5: out->size = (int64_t)field.value; break;
    case 6: out->crc = (uint32_t)field.value; break;
    default: break;
    }
  }
  if (wire.is_bad)
    return fail(DATA_LOSS, "it cannot be read");
  if (!dtype_is_valid(dtype) || dtype == DTYPE_RESOURCE || dtype == DTYPE_VARIANT)
    return fail(UNIMPLEMENTED, "its dtype is %d (%s)", dtype, dtype_is_valid(dtype) ? dtype_name((enum dtype)dtype) : "none");
  out->dtype = (enum dtype)dtype;
  if (shape_count(&out->shape) < 0)
    return fail(DATA_LOSS, "its shape is %s", shape_text(&out->shape));
  return slices_parse(wire_over(data, size), arena, out);
}

static status entry_find(const struct checkpoint *b, const void *key, size_t key_size, const char *shown, struct checkpoint_entry *out) {
  const struct bundle_item *item = bundle_table_find(&b->table, key, key_size);
  if (!item || key_size == 0)
    return fail(NOT_FOUND, "Key %s not found in checkpoint", shown);
  if (item->value_size > ENTRY_BYTES_MAX)
    return fail(DATA_LOSS, "the entry of '%s' is too large", shown);
  return checkpoint_entry_parse(item->value, item->value_size, b->arena, out);
}

status checkpoint_find(const struct checkpoint *checkpoint, const char *key, struct checkpoint_entry *out) {
  status s =
    checkpoint->v1 ? checkpoint_v1_find(checkpoint->v1, key, checkpoint->arena, out) : entry_find(checkpoint, key, strlen(key), key, out);
  return s == OK || s == NOT_FOUND ? s : status_prefix(s, "TensorBundle at %s, key '%s': ", checkpoint->prefix, key);
}

/* ---- bytes ---- */

/* The entry's bytes, in memory taken only after the file is known to have them. */
static status bytes_read(const struct checkpoint *b, const struct checkpoint_entry *e, uint8_t **out) {
  if (e->shard < 0 || e->shard >= b->shards)
    return fail(DATA_LOSS, "it is in shard %d of %d", e->shard, b->shards);
  char *path = arena_printf(b->arena, "%s.data-%05d-of-%05d", b->prefix, e->shard, b->shards);
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

static status checksum_check(const struct checkpoint_entry *e, uint32_t crc) {
  return crc32c_mask(crc) == e->crc ? OK
                                    : fail(DATA_LOSS, "Checksum does not match: stored %u vs. calculated %u", e->crc, crc32c_mask(crc));
}

/* Lengths as varints, their masked checksum, then all bytes; the checksums run over lengths of fixed width. */
static status strings_read(const struct checkpoint *b, const struct checkpoint_entry *e, const uint8_t *data,
                           struct checkpoint_value *out) {
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

static status entry_read(const struct checkpoint *b, const struct checkpoint_entry *e, struct checkpoint_value *out) {
  *out = (struct checkpoint_value){e->dtype, e->shape, shape_count(&e->shape), NULL};
  if (out->dtype != DTYPE_STRING && e->size != out->count * (int64_t)dtype_size(out->dtype))
    return fail(DATA_LOSS, "it has %lld bytes for %lld elements of %s", (long long)e->size, (long long)out->count, dtype_name(out->dtype));
  uint8_t *data = NULL;
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

static void key_add_byte(struct key_text *key, unsigned byte) { vec_push(&key->bytes, (char)byte); }

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

/* n bytes, high ones first, hold 7n-1 bits and the sign; n ones from the top are flipped in, so that bytes sort as
 * numbers. */
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

const char *checkpoint_slice_key(const char *name, const struct checkpoint_slice *slice, struct arena *arena, size_t *size) {
  struct key_text key = {0};
  key_add_number(&key, 0);
  key_add_string(&key, name);
  key_add_number(&key, (uint64_t)slice->rank);
  for (int i = 0; i < slice->rank; i++) {
    key_add_signed(&key, slice->length[i] < 0 ? 0 : slice->start[i]);
    key_add_signed(&key, slice->length[i] < 0 ? -1 : slice->length[i]);
  }
  *size = key.bytes.count;
  const char *copy = arena_strndup(arena, key.bytes.items, key.bytes.count);
  vec_free(&key.bytes);
  return copy;
}

static void row_copy(char *whole, char *part, size_t size, bool out_of_whole) {
  memcpy(out_of_whole ? part : whole, out_of_whole ? whole : part, size);
}

/* Rows of the last dimension at a time. */
status checkpoint_slice_copy(const struct checkpoint_slice *slice, const struct shape *whole, size_t element_size, void *whole_data,
                             void *part_data, bool out_of_whole) {
  struct shape part = {.rank = whole->rank};
  int64_t start[LIMIT_RANK], index[LIMIT_RANK] = {0};
  if (slice->rank != whole->rank)
    return fail(DATA_LOSS, "a slice has another rank");
  for (int i = 0; i < whole->rank; i++) {
    start[i] = slice->length[i] < 0 ? 0 : slice->start[i];
    part.dims[i] = slice->length[i] < 0 ? whole->dims[i] : slice->length[i];
    if (start[i] < 0 || start[i] > whole->dims[i] || part.dims[i] > whole->dims[i] - start[i])
      return fail(DATA_LOSS, "a slice does not fit into dimension %d", i);
  }
  int last = whole->rank - 1;
  int64_t row = whole->rank ? part.dims[last] : 1, count = shape_count(&part), rows = count && row ? count / row : 0;
  for (int64_t r = 0; r < rows; r++) {
    int64_t at = 0;
    for (int i = 0; i < whole->rank; i++)
      at = at * whole->dims[i] + start[i] + (i < last ? index[i] : 0);
    row_copy((char *)whole_data + (size_t)at * element_size, (char *)part_data + (size_t)(r * row) * element_size,
             (size_t)row * element_size, out_of_whole);
    for (int i = last - 1; i >= 0 && ++index[i] == part.dims[i]; i--)
      index[i] = 0;
  }
  return OK;
}

static status part_read(const struct checkpoint *b, const char *name, const struct checkpoint_entry *whole,
                        const struct checkpoint_slice *slice, struct checkpoint_value *out) {
  struct checkpoint_entry entry;
  size_t size = 0;
  if (b->v1)
    return checkpoint_v1_read(b->v1, name, whole, slice, b->arena, out);
  const char *key = checkpoint_slice_key(name, slice, b->arena, &size);
  TRY(entry_find(b, key, size, "of a slice", &entry));
  return entry.slice_count ? fail(DATA_LOSS, "a slice has slices") : entry_read(b, &entry, out);
}

static status part_fits(const struct checkpoint_value *part, const struct checkpoint_slice *slice, const struct checkpoint_entry *e) {
  bool fits = part->shape.rank == e->shape.rank && part->dtype == e->dtype && slice->rank == e->shape.rank;
  for (int i = 0; fits && i < slice->rank; i++)
    fits = part->shape.dims[i] == (slice->length[i] < 0 ? e->shape.dims[i] : slice->length[i]);
  return fits ? OK : fail(DATA_LOSS, "a slice has another shape or dtype than its entry");
}

/* The parts must be there before memory is taken for the whole: their elements together are at least as many. */
static status slices_read(const struct checkpoint *b, const char *name, const struct checkpoint_entry *e, struct checkpoint_value *out) {
  struct checkpoint_value *parts = ARENA_ARRAY(b->arena, struct checkpoint_value, e->slice_count);
  *out = (struct checkpoint_value){e->dtype, e->shape, shape_count(&e->shape), NULL};
  int64_t total = 0;
  for (uint32_t i = 0; i < e->slice_count; i++) {
    TRY(part_read(b, name, e, &e->slices[i], &parts[i]));
    TRY(part_fits(&parts[i], &e->slices[i], e));
    total += parts[i].count;
  }
  if (total < out->count)
    return fail(DATA_LOSS, "its slices have %lld of %lld elements", (long long)total, (long long)out->count);
  size_t size = dtype_size(out->dtype);
  out->data = arena_alloc_aligned(b->arena, (size_t)out->count * size + 1, 64);
  for (uint32_t i = 0; i < e->slice_count; i++)
    TRY(checkpoint_slice_copy(&e->slices[i], &out->shape, size, out->data, parts[i].data, false));
  return OK;
}

status checkpoint_read(const struct checkpoint *checkpoint, const char *key, struct checkpoint_value *out) {
  struct checkpoint_entry entry;
  TRY(checkpoint_find(checkpoint, key, &entry));
  status s = entry.slice_count ? slices_read(checkpoint, key, &entry, out) : entry_read(checkpoint, &entry, out);
  return s == OK ? OK : status_prefix(s, "TensorBundle at %s, key '%s': ", checkpoint->prefix, key);
}
