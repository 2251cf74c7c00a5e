/* checkpoint_v1.c: reading checkpoints of the first form. */
#include "base/checkpoint_v1.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"

/* ---- opening ---- */

struct opening {
  struct arena *arena;
  VEC(struct bundle_item) items;
  VEC(struct checkpoint_v1_meta) metas;
};

/* The one field (number) of a message that is a message itself. */
static struct wire field_of(const uint8_t *data, size_t size, uint32_t number) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  while (wire_next(&wire, &field))
    if (field.number == number && field.type == WIRE_BYTES)
      return wire_inside(&field);
  return wire_over(NULL, 0);
}

static status open_file(struct opening *o, const char *path) {
  void *data = NULL;
  size_t size = 0;
  struct bundle_table table;
  TRY(file_read(path, o->arena, &data, &size));
  status s = bundle_table_parse(data, size, o->arena, &table);
  if (s == OK && (!table.count || table.items[0].key_size))
    s = fail(DATA_LOSS, "it does not say which tensors it has");
  if (s != OK)
    return status_prefix(s, "checkpoint '%s': ", path);
  struct wire meta = field_of(table.items[0].value, table.items[0].value_size, 1);
  vec_push(&o->metas, ((struct checkpoint_v1_meta){meta.at, (size_t)(meta.end - meta.at)}));
  for (uint32_t i = 1; i < table.count; i++)
    vec_push(&o->items, table.items[i]);
  return OK;
}

static int item_order(const void *a, const void *b) {
  const struct bundle_item *x = a, *y = b;
  return bundle_key_order(x->key, x->key_size, y->key, y->key_size);
}

status checkpoint_v1_open(const char *path, struct arena *arena, struct checkpoint_v1 *out) {
  glob_t found = {0};
  struct opening o = {.arena = arena};
  bool matches = glob(path, 0, NULL, &found) == 0 && found.gl_pathc;
  status s = matches ? OK : fail(NOT_FOUND, "no file matches '%s'", path);
  for (size_t i = 0; s == OK && i < found.gl_pathc; i++)
    s = open_file(&o, found.gl_pathv[i]);
  if (s == OK) {
    if (o.items.count)
      qsort(o.items.items, o.items.count, sizeof *o.items.items, item_order);
    out->table.items = arena_copy(arena, o.items.items, o.items.count * sizeof *o.items.items);
    out->table.count = o.items.count;
    out->metas = arena_copy(arena, o.metas.items, o.metas.count * sizeof *o.metas.items);
    out->meta_count = o.metas.count;
  }
  globfree(&found);
  vec_free(&o.items);
  vec_free(&o.metas);
  return s;
}

/* ---- what there is ---- */

typedef VEC(struct checkpoint_slice) slice_list;

static bool is_named(struct wire tensor, const char *name) {
  struct wire_field field;
  while (wire_next(&tensor, &field))
    if (field.number == 1)
      return field.type == WIRE_BYTES && field.size == strlen(name) && memcmp(field.data, name, field.size) == 0;
  return *name == 0;
}

/* What one file says of the tensor: name, shape, type, slices. */
static status read_tensor(struct wire tensor, struct checkpoint_entry *out, slice_list *slices) {
  struct wire_field field;
  int dtype = 0;
  struct shape shape = {0};
  while (wire_next(&tensor, &field)) {
    struct checkpoint_slice slice = {0};
    if (field.number == 2)
      TRY(checkpoint_shape_message(wire_inside(&field), &shape));
    if (field.number == 3)
      dtype = (int)field.value;
    if (field.number == 4) {
      TRY(checkpoint_slice_message(wire_inside(&field), &slice));
      vec_push(slices, slice);
    }
  }
  if (tensor.is_bad || shape_count(&shape) < 0)
    return fail(DATA_LOSS, "what it says of a tensor cannot be read");
  if (!dtype_is_valid(dtype) || dtype == DTYPE_RESOURCE || dtype == DTYPE_VARIANT)
    return fail(UNIMPLEMENTED, "its dtype is %d", dtype);
  out->dtype = (enum dtype)dtype;
  out->shape = shape;
  return OK;
}

status checkpoint_v1_find(const struct checkpoint_v1 *v1, const char *name, struct arena *arena, struct checkpoint_entry *out) {
  slice_list slices = {0};
  status s = OK;
  *out = (struct checkpoint_entry){0};
  for (uint32_t i = 0; i < v1->meta_count; i++) {
    struct wire meta = wire_over(v1->metas[i].data, v1->metas[i].size);
    struct wire_field field;
    while (s == OK && wire_next(&meta, &field))
      if (field.number == 1 && is_named(wire_inside(&field), name))
        s = read_tensor(wire_inside(&field), out, &slices);
  }
  if (s == OK && !slices.count)
    s = fail(NOT_FOUND, "Tensor name \"%s\" not found in checkpoint files", name);
  out->slices = arena_copy(arena, slices.items, slices.count * sizeof *slices.items);
  out->slice_count = slices.count;
  vec_free(&slices);
  return s;
}

/* ---- values: a TensorProto ---- */

/* Where values of a dtype are, and how: varints, 4 or 8 bytes each. */
struct value_form {
  uint32_t field, bytes; /* bytes: 0 of varints */
};
static struct value_form value_form(enum dtype dtype) {
  switch (dtype) {
  case DTYPE_FLOAT: return (struct value_form){5, 4};
  case DTYPE_COMPLEX64: return (struct value_form){9, 4};
  case DTYPE_DOUBLE: return (struct value_form){6, 8};
  case DTYPE_COMPLEX128: return (struct value_form){12, 8};
  case DTYPE_INT64: return (struct value_form){10, 0};
  case DTYPE_BOOL: return (struct value_form){11, 0};
  case DTYPE_HALF:
  case DTYPE_BFLOAT16: return (struct value_form){13, 0};
  case DTYPE_UINT32: return (struct value_form){16, 0};
  case DTYPE_UINT64: return (struct value_form){17, 0};
  default: return (struct value_form){7, 0};
  }
}

/* The values one behind the other, of `width` bytes each; at most `room`. False: there are more, or the bytes are bad.
 */
static bool take_values(struct wire tensor, struct value_form form, size_t width, uint8_t *out, int64_t room, int64_t *count) {
  struct wire_field field;
  *count = 0;
  while (wire_next(&tensor, &field)) {
    if (field.number != form.field)
      continue;
    struct wire packed = wire_inside(&field);
    uint64_t value = field.value;
    bool one = field.type != WIRE_BYTES;
    while (one || packed.at < packed.end) {
      if (!one && !(form.bytes ? wire_fixed(&packed, form.bytes, &value) : wire_varint(&packed, &value)))
        return false;
      if (*count == room)
        return false;
      memcpy(out + (size_t)(*count)++ * width, &value, width);
      one = false;
    }
  }
  return !tensor.is_bad;
}

static bool take_strings(struct wire tensor, struct string_view *out, int64_t room, int64_t *count) {
  struct wire_field field;
  *count = 0;
  while (wire_next(&tensor, &field)) {
    if (field.number != 8 || field.type != WIRE_BYTES)
      continue;
    if (*count == room)
      return false;
    out[(*count)++] = (struct string_view){(const char *)field.data, field.size};
  }
  return !tensor.is_bad;
}

static status read_values(struct wire tensor, struct arena *arena, struct checkpoint_value *out) {
  bool pairs = dtype_is_complex(out->dtype), strings = out->dtype == DTYPE_STRING;
  int64_t values = out->count * (pairs ? 2 : 1), count = 0;
  struct wire_field field;
  for (struct wire fields = tensor; wire_next(&fields, &field);)
    if (field.number == 4 && field.size && field.size == (size_t)out->count * dtype_size(out->dtype) && !strings) {
      out->data = arena_alloc_aligned(arena, field.size, 64);
      memcpy(out->data, field.data, field.size);
      return OK;
    }
  if (values > tensor.end - tensor.at) /* each takes a byte at least */
    return fail(DATA_LOSS, "it has fewer bytes than elements");
  size_t width = dtype_size(out->dtype) / (pairs ? 2 : 1);
  out->data = arena_alloc_aligned(arena, (size_t)values * width + 1, 64);
  bool good = strings ? take_strings(tensor, out->data, values, &count)
                      : take_values(tensor, value_form(out->dtype), width, out->data, values, &count);
  return good && count == values ? OK : fail(DATA_LOSS, "a slice has %lld values, not %lld", (long long)count, (long long)values);
}

status checkpoint_v1_read(const struct checkpoint_v1 *v1, const char *name, const struct checkpoint_entry *entry,
                          const struct checkpoint_slice *slice, struct arena *arena, struct checkpoint_value *out) {
  size_t key_size;
  const char *key = checkpoint_slice_key(name, slice, arena, &key_size);
  const struct bundle_item *item = bundle_table_find(&v1->table, key, key_size);
  if (slice->rank != entry->shape.rank)
    return fail(DATA_LOSS, "a slice has another rank");
  if (!item)
    return fail(DATA_LOSS, "the values of a slice are missing");
  *out = (struct checkpoint_value){.dtype = entry->dtype, .shape = checkpoint_slice_shape(&entry->shape, slice)};
  out->count = shape_count(&out->shape);
  if (out->count < 0)
    return fail(DATA_LOSS, "a slice has the shape %s", shape_text(&out->shape));
  struct wire saved = field_of(item->value, item->value_size, 2);
  return read_values(field_of(saved.at, (size_t)(saved.end - saved.at), 3), arena, out);
}
