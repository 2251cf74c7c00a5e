/* host_string.c: ops on strings that need no state: joining, cutting, case, lengths. Texts of errors are TensorFlow's. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/element_number.h"
#include "runtime/text/string_output.h"
#include "runtime/text/unicode_case.h"
#include "runtime/text/utf8.h"

static const struct string_view *strings_of(const struct host_call *call, uint32_t i) { return call->inputs[i].data; }

/* ---- StringJoin: element by element; scalars go with every element ---- */

/* Where element i of the output is in an input of the same rank whose dimensions of 1 are repeated. */
static int64_t broadcast_index(const struct shape *out, const struct shape *in, int64_t i) {
  int64_t at = 0, stride = 1;
  for (int d = out->rank - 1, e = in->rank - 1; d >= 0; d--, e--) {
    int64_t index = i % out->dims[d];
    i /= out->dims[d];
    if (e < 0)
      continue;
    at += in->dims[e] == 1 ? 0 : index * stride;
    stride *= in->dims[e];
  }
  return at;
}

static struct shape join_shape(const struct host_call *call) {
  struct shape shape = {0};
  for (uint32_t i = 0; i < call->input_count; i++) {
    const struct shape *in = &call->inputs[i].shape;
    if (in->rank > shape.rank)
      shape = *in;
    for (int d = 1; d <= in->rank; d++)
      if (shape.dims[shape.rank - d] == 1)
        shape.dims[shape.rank - d] = in->dims[in->rank - d];
  }
  return shape;
}

status host_string_join(struct host_call *call) {
  struct shape shape = join_shape(call);
  struct string_view separator = host_attr_string(call, "separator", "");
  struct string_output out;
  TRY(string_output_begin(&out, &shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    for (uint32_t k = 0; k < call->input_count; k++) {
      struct string_view part = strings_of(call, k)[broadcast_index(&shape, &call->inputs[k].shape, i)];
      if (k)
        string_output_add(&out, separator.data, separator.size);
      string_output_add(&out, part.data, part.size);
    }
    string_output_next(&out);
  }
  return string_output_end(&out);
}

/* ---- ReduceJoin ---- */

struct join_axes {
  int rank;
  int order[LIMIT_RANK]; /* the reduced axes, as listed */
  int count;
  bool reduced[LIMIT_RANK];
};

static status read_axes(const struct tensor *input, const struct tensor *axes, struct join_axes *out) {
  *out = (struct join_axes){.rank = input->shape.rank};
  for (int64_t i = 0; i < axes->count; i++) {
    int axis = ((const int32_t *)axes->data)[i];
    int wanted = axis < 0 ? axis + out->rank : axis;
    if (wanted < 0 || wanted >= out->rank)
      return fail(OUT_OF_RANGE, "Invalid reduction dimension %d for input with %d dimension(s)", axis, out->rank);
    if (out->reduced[wanted])
      return fail(INVALID_ARGUMENT, "Duplicate reduction dimension %d", wanted);
    out->reduced[wanted] = true;
    out->order[out->count++] = wanted;
  }
  return OK;
}

static void join_element(struct string_output *out, const struct tensor *input, const struct join_axes *axes, const int64_t *strides,
                         int64_t base, struct string_view separator) {
  int64_t total = 1, index[LIMIT_RANK] = {0};
  for (int i = 0; i < axes->count; i++)
    total *= input->shape.dims[axes->order[i]];
  for (int64_t k = 0; k < total; k++) {
    int64_t at = base;
    for (int i = 0; i < axes->count; i++)
      at += index[i] * strides[axes->order[i]];
    struct string_view part = ((const struct string_view *)input->data)[at];
    if (k)
      string_output_add(out, separator.data, separator.size);
    string_output_add(out, part.data, part.size);
    for (int i = 0; i < axes->count && ++index[i] == input->shape.dims[axes->order[i]]; i++)
      index[i] = 0;
  }
  string_output_next(out);
}

/* The first listed axis runs fastest. */
status host_reduce_join(struct host_call *call) {
  const struct tensor *input = &call->inputs[0];
  struct string_view separator = host_attr_string(call, "separator", "");
  bool keep = host_attr_int(call, "keep_dims", 0) != 0;
  struct join_axes axes;
  TRY(read_axes(input, &call->inputs[1], &axes));
  struct shape shape = {0}, kept = {0};
  int64_t strides[LIMIT_RANK], kept_strides[LIMIT_RANK], stride = 1;
  for (int d = axes.rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= input->shape.dims[d];
  }
  for (int d = 0; d < axes.rank; d++) {
    if (!axes.reduced[d]) {
      kept_strides[kept.rank] = strides[d];
      kept.dims[kept.rank++] = input->shape.dims[d];
    }
    if (!axes.reduced[d] || keep)
      shape.dims[shape.rank++] = axes.reduced[d] ? 1 : input->shape.dims[d];
  }
  struct string_output out;
  TRY(string_output_begin(&out, &shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    int64_t base = 0, rest = i;
    for (int d = kept.rank - 1; d >= 0; d--) {
      base += rest % kept.dims[d] * kept_strides[d];
      rest /= kept.dims[d];
    }
    join_element(&out, input, &axes, strides, base, separator);
  }
  return string_output_end(&out);
}

/* ---- UnsortedSegmentJoin ---- */

status host_unsorted_segment_join(struct host_call *call) {
  const struct tensor *input = &call->inputs[0], *ids = &call->inputs[1];
  struct string_view separator = host_attr_string(call, "separator", "");
  int64_t segments = host_scalar_int(&call->inputs[2]), inner = ids->count ? input->count / ids->count : 1;
  if (segments < 0)
    return fail(INVALID_ARGUMENT, "Number of segments must be non-negative but got %lld", (long long)segments);
  struct shape shape = {.rank = input->shape.rank - ids->shape.rank + 1, .dims = {segments}};
  for (int d = 1; d < shape.rank; d++)
    shape.dims[d] = input->shape.dims[ids->shape.rank + d - 1];
  for (int64_t i = 0; i < ids->count; i++) {
    int64_t id = element_int(ids, i);
    if (id < 0 || id >= segments)
      return fail(INVALID_ARGUMENT, "segment_ids[%lld] = %lld is out of range [0, %lld)", (long long)i, (long long)id, (long long)segments);
  }
  int64_t *next = calloc((size_t)ids->count + 1, sizeof *next), *first = malloc(((size_t)segments + 1) * sizeof *first),
          *last = malloc(((size_t)segments + 1) * sizeof *last);
  struct string_output out;
  status result = next && first && last ? string_output_begin(&out, &shape, &call->outputs[0])
                                        : fail(RESOURCE_EXHAUSTED, "no memory for %lld segments", (long long)segments);
  for (int64_t i = 0; result == OK && i < segments; i++)
    first[i] = -1;
  for (int64_t i = 0; result == OK && i < ids->count; i++) {
    int64_t id = element_int(ids, i);
    next[i] = -1;
    if (first[id] < 0)
      first[id] = i;
    else
      next[last[id]] = i;
    last[id] = i;
  }
  for (int64_t i = 0; result == OK && i < out.tensor->count; i++) {
    bool is_empty = true; /* so far: empty parts at the front are not separated from what follows */
    for (int64_t k = first[i / (inner ? inner : 1)]; k >= 0; k = next[k]) {
      struct string_view part = ((const struct string_view *)input->data)[k * inner + i % inner];
      if (!is_empty)
        string_output_add(&out, separator.data, separator.size);
      string_output_add(&out, part.data, part.size);
      is_empty = is_empty && !part.size;
    }
    string_output_next(&out);
  }
  if (result == OK)
    result = string_output_end(&out);
  free(next);
  free(first);
  free(last);
  return result;
}

/* ---- one string to one string ---- */

typedef void (*string_change)(struct string_output *out, struct string_view in, const struct host_call *call);

static status change_each(struct host_call *call, string_change change) {
  struct string_output out;
  TRY(string_output_begin(&out, &call->inputs[0].shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    change(&out, strings_of(call, 0)[i], call);
    string_output_next(&out);
  }
  return string_output_end(&out);
}

static void put_ascii_case(struct string_output *out, struct string_view in, bool upper) {
  for (size_t i = 0; i < in.size; i++) {
    char c = in.data[i];
    c = upper ? (char)(c >= 'a' && c <= 'z' ? c - 32 : c) : (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    string_output_add(out, &c, 1);
  }
}

static void put_utf8_case(struct string_output *out, struct string_view in, bool upper) {
  size_t size = strnlen(in.data, in.size); /* TensorFlow takes a 0 for the end */
  for (size_t i = 0, used; i < size; i += used) {
    char bytes[UNICODE_CASE_BYTES];
    int32_t code = utf8_decode(in.data + i, size - i, &used);
    if (code == UTF8_BAD)
      string_output_add(out, "\xef\xbf\xbd", 3);
    else if (upper)
      string_output_add(out, bytes, unicode_upper(code, bytes));
    else if (code == CAPITAL_SIGMA)
      string_output_add(out, bytes, unicode_lower_sigma(in.data, size, i, bytes));
    else
      string_output_add(out, bytes, unicode_lower(code, bytes));
  }
}
static bool is_utf8(const struct host_call *call) { return host_attr_string(call, "encoding", "").size > 0; }
static void put_upper(struct string_output *out, struct string_view in, const struct host_call *call) {
  (is_utf8(call) ? put_utf8_case : put_ascii_case)(out, in, true);
}
static void put_lower(struct string_output *out, struct string_view in, const struct host_call *call) {
  (is_utf8(call) ? put_utf8_case : put_ascii_case)(out, in, false);
}
static status check_encoding(const struct host_call *call) {
  struct string_view encoding = host_attr_string(call, "encoding", "");
  return encoding.size == 0 || string_is(encoding, "utf-8")
         ? OK
         : fail(INVALID_ARGUMENT, "only utf-8 or '' (no encoding) is supported, received %.*s", (int)encoding.size, encoding.data);
}
status host_string_upper(struct host_call *call) {
  TRY(check_encoding(call));
  return change_each(call, put_upper);
}
status host_string_lower(struct host_call *call) {
  TRY(check_encoding(call));
  return change_each(call, put_lower);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static void put_stripped(struct string_output *out, struct string_view in, const struct host_call *call) {
  (void)call;
  while (in.size && is_space(in.data[0]))
    in.data++, in.size--;
  while (in.size && is_space(in.data[in.size - 1]))
    in.size--;
  string_output_add(out, in.data, in.size);
}
status host_string_strip(struct host_call *call) { return change_each(call, put_stripped); }

/* ---- lengths and parts ---- */

static int64_t count_characters(struct string_view view) {
  int64_t count = 0;
  for (size_t i = 0; i < view.size; i++)
    count += utf8_is_first(view.data[i]);
  return count;
}

status host_string_length(struct host_call *call) {
  bool characters = string_is(host_attr_string(call, "unit", "BYTE"), "UTF8_CHAR");
  TRY(host_make_output(call, 0, DTYPE_INT32, &call->inputs[0].shape));
  for (int64_t i = 0; i < call->inputs[0].count; i++) {
    struct string_view view = strings_of(call, 0)[i];
    ((int32_t *)call->outputs[0]->data)[i] = (int32_t)(characters ? count_characters(view) : (int64_t)view.size);
  }
  return OK;
}

/* The bytes from character pos on, `length` characters long at most. False when pos lies outside. */
static bool cut_characters(struct string_view in, int64_t pos, int64_t length, struct string_view *out) {
  int64_t count = count_characters(in);
  int64_t first = pos < 0 ? pos + count : pos;
  if (first < 0 || first > count)
    return false;
  size_t at = 0;
  for (int64_t k = -1; at < in.size; at++)
    if (utf8_is_first(in.data[at]) && ++k == first)
      break;
  size_t end = at;
  for (int64_t k = -1; end < in.size; end++)
    if (utf8_is_first(in.data[end]) && ++k >= length)
      break;
  *out = (struct string_view){in.data + at, end - at};
  return true;
}

static bool cut_bytes(struct string_view in, int64_t pos, int64_t length, struct string_view *out) {
  int64_t size = (int64_t)in.size, first = pos < 0 ? pos + size : pos;
  if (first < 0 || first > size)
    return false;
  int64_t rest = size - first;
  length = length < 0 ? rest : length; /* all that is left, as TensorFlow's unsigned sizes have it */
  *out = (struct string_view){in.data + first, (uint64_t)(length < rest ? length : rest)};
  return true;
}

status host_substr(struct host_call *call) {
  const struct tensor *in = &call->inputs[0], *pos = &call->inputs[1], *length = &call->inputs[2];
  bool characters = string_is(host_attr_string(call, "unit", "BYTE"), "UTF8_CHAR");
  struct shape shape = in->shape.rank >= pos->shape.rank ? in->shape : pos->shape;
  for (int d = 1; d <= in->shape.rank && d <= pos->shape.rank; d++) {
    int64_t a = in->shape.dims[in->shape.rank - d], b = pos->shape.dims[pos->shape.rank - d];
    shape.dims[shape.rank - d] = a == 1 ? b : a;
  }
  if (length->count != pos->count)
    return fail(INVALID_ARGUMENT, "pos and len should have the same shape, got: %s vs. %s", shape_text(&pos->shape),
                shape_text(&length->shape));
  struct string_output out;
  TRY(string_output_begin(&out, &shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    struct string_view view = strings_of(call, 0)[broadcast_index(&shape, &in->shape, i)], part;
    int64_t k = broadcast_index(&shape, &pos->shape, i), at = element_int(pos, k);
    if (!(characters ? cut_characters : cut_bytes)(view, at, element_int(length, k), &part))
      return fail(INVALID_ARGUMENT, "pos %lld out of range for string at index %lld", (long long)at, (long long)i);
    string_output_put(&out, part.data, part.size);
  }
  return string_output_end(&out);
}
