/* xla_numbers.c: see xla.h. The messages (XLA's DotDimensionNumbers and its like) hold integers only, single or packed,
 * so a field is found by walking over the bytes. */
#include "ir/ops/xla/xla.h"

struct bytes {
  const uint8_t *at, *end;
};

static bool take_number(struct bytes *b, uint64_t *out) {
  *out = 0;
  for (int shift = 0; b->at < b->end && shift < 64; shift += 7) {
    uint8_t byte = *b->at++;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

/* Gives each integer of the field to the list; false: these bytes are no such message. */
static bool take_field(struct bytes b, uint32_t field, struct axis_list *out) {
  while (b.at < b.end) {
    uint64_t key, value;
    if (!take_number(&b, &key) || !take_number(&b, &value) || (key % 8 != 0 && key % 8 != 2))
      return false;
    struct bytes packed = {b.at, b.at};
    if (key % 8 == 2) {
      if (value > (uint64_t)(b.end - b.at))
        return false;
      packed.end = b.at += value;
    }
    for (bool more = key % 8 == 0 || packed.at < packed.end; more; more = packed.at < packed.end) {
      if (key % 8 == 2 && !take_number(&packed, &value))
        return false;
      if (key / 8 == field && out->count == XLA_AXES)
        return false;
      if (key / 8 == field)
        out->items[out->count++] = (int64_t)value;
    }
  }
  return true;
}

static status read_field(struct op_call *c, uint32_t field, struct axis_list *out) {
  const struct attr_value *v = node_attr(c->node, "dimension_numbers");
  const char *data = v && v->kind == ATTR_STRING ? v->s.data : "";
  out->count = 0;
  if (!take_field((struct bytes){(const uint8_t *)data, (const uint8_t *)data + (v ? v->s.size : 0)}, field, out))
    return fail(INVALID_ARGUMENT, "dimension_numbers is not a message of dimension numbers");
  return OK;
}

status xla_axes(struct op_call *c, uint32_t field, int rank, struct axis_list *out) {
  TRY(read_field(c, field, out));
  for (int i = 0; i < out->count; i++)
    if (out->items[i] < 0 || out->items[i] >= rank)
      return fail(INVALID_ARGUMENT, "dimension_numbers has the axis %lld of a tensor of %d", (long long)out->items[i], rank);
  for (int i = 0; i < out->count; i++)
    for (int k = 0; k < i; k++)
      if (out->items[i] == out->items[k])
        return fail(INVALID_ARGUMENT, "dimension_numbers has the axis %lld twice", (long long)out->items[i]);
  return OK;
}

status xla_axis(struct op_call *c, uint32_t field, int64_t most, int *out) {
  struct axis_list list;
  TRY(read_field(c, field, &list));
  int64_t last = list.count ? list.items[list.count - 1] : 0;
  if (last < 0 || last > most)
    return fail(INVALID_ARGUMENT, "dimension_numbers has the axis %lld, above %lld", (long long)last, (long long)most);
  *out = (int)last;
  return OK;
}

void xla_other_axes(int rank, const struct axis_list *a, const struct axis_list *b, struct axis_list *out) {
  out->count = 0;
  for (int i = 0; i < rank; i++)
    if (!axis_in(a, i) && !(b && axis_in(b, i)))
      out->items[out->count++] = i;
}

status xla_numbers(struct op_call *c, uint32_t input, const char *what, int count, int64_t *out) {
  value_id v;
  int64_t *items;
  int have;
  TRY(op_input(c, input, &v));
  TRY(op_const_ints(c, v, what, &items, &have));
  if (have != count)
    return fail(INVALID_ARGUMENT, "%s has %d elements, not %d", what, have, count);
  for (int i = 0; i < count; i++)
    if (items[i] < -INT32_MAX || items[i] > INT32_MAX)
      return fail(UNIMPLEMENTED, "%s has the number %lld", what, (long long)items[i]);
  memcpy(out, items, sizeof *out * (size_t)count);
  return OK;
}
