/* host_decode.c: bytes into tensors: DecodeRaw, DecodePaddedRaw, DecodeCSV, base64 and back. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/number_parse.h"
#include "runtime/text/string_output.h"

static const struct string_view *strings_of(const struct host_call *call, uint32_t i) { return call->inputs[i].data; }

/* ---- raw ---- */

static void swap_elements(char *data, size_t bytes, enum dtype dtype) {
  size_t width = dtype_size(dtype_real(dtype));
  for (size_t at = 0; at + width <= bytes; at += width)
    for (size_t i = 0; i < width / 2; i++) {
      char byte = data[at + i];
      data[at + i] = data[at + width - 1 - i];
      data[at + width - 1 - i] = byte;
    }
}

static status put_raw(struct host_call *call, enum dtype dtype, size_t row) {
  const struct tensor *in = &call->inputs[0];
  struct shape shape = in->shape;
  if (shape.rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", LIMIT_RANK + 1);
  shape.dims[shape.rank++] = (int64_t)(row / dtype_size(dtype));
  TRY(host_make_output(call, 0, dtype, &shape));
  char *to = call->outputs[0]->data;
  for (int64_t i = 0; i < in->count && row; i++, to += row) {
    struct string_view view = strings_of(call, 0)[i];
    size_t size = view.size < row ? view.size : row;
    memset(to + size, 0, row - size);
    if (size)
      memcpy(to, view.data, size);
    if (!host_attr_int(call, "little_endian", 1))
      swap_elements(to, row, dtype);
  }
  return OK;
}

status host_decode_raw(struct host_call *call) {
  enum dtype dtype = (enum dtype)host_attr_int(call, "out_type", DTYPE_UINT8);
  const struct tensor *in = &call->inputs[0];
  size_t row = in->count ? strings_of(call, 0)[0].size : 0;
  for (int64_t i = 1; i < in->count; i++)
    if (strings_of(call, 0)[i].size != row)
      return fail(INVALID_ARGUMENT, "DecodeRaw requires input strings to all be the same size, but element %lld has size %zu != %zu",
                  (long long)i, row, (size_t)strings_of(call, 0)[i].size);
  if (row % dtype_size(dtype))
    return fail(INVALID_ARGUMENT, "Input to DecodeRaw has length %zu that is not a multiple of %zu, the size of %s", row, dtype_size(dtype),
                dtype_name(dtype));
  return put_raw(call, dtype, row);
}

status host_decode_padded_raw(struct host_call *call) {
  enum dtype dtype = (enum dtype)host_attr_int(call, "out_type", DTYPE_UINT8);
  int64_t row = host_scalar_int(&call->inputs[1]);
  if (row <= 0)
    return fail(INVALID_ARGUMENT, "`fixed_length` must be greater than 0, got: %lld", (long long)row);
  if (row % (int64_t)dtype_size(dtype))
    return fail(INVALID_ARGUMENT, "`fixed_length` (%lld) must be a multiple of the size of `out_type` (%zu)", (long long)row,
                dtype_size(dtype));
  return put_raw(call, dtype, (size_t)row);
}

/* ---- base64, of the form that goes into addresses ---- */

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void put_base64(struct string_output *out, struct string_view in, bool pad) {
  const unsigned char *p = (const unsigned char *)in.data;
  for (size_t i = 0; i < in.size; i += 3) {
    size_t have = in.size - i < 3 ? in.size - i : 3;
    uint32_t bits = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (have > 2 ? p[i + 2] : 0);
    char text[4] = {digits64[bits >> 18], digits64[bits >> 12 & 63], have > 1 ? digits64[bits >> 6 & 63] : '=',
                    have > 2 ? digits64[bits & 63] : '='};
    string_output_add(out, text, pad ? 4 : have + 1);
  }
  string_output_next(out);
}

status host_encode_base64(struct host_call *call) {
  struct string_output out;
  TRY(string_output_begin(&out, &call->inputs[0].shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++)
    put_base64(&out, strings_of(call, 0)[i], host_attr_int(call, "pad", 0) != 0);
  return string_output_end(&out);
}

static bool take_base64(struct string_output *out, struct string_view in) {
  for (int padding = in.size % 4 == 0 ? 2 : 0; padding > 0 && in.size && in.data[in.size - 1] == '='; padding--)
    in.size--;
  if (in.size % 4 == 1)
    return false;
  uint32_t bits = 0;
  for (size_t i = 0; i < in.size; i++) {
    const char *digit = in.data[i] ? strchr(digits64, in.data[i]) : NULL;
    if (!digit)
      return false;
    bits = bits << 6 | (uint32_t)(digit - digits64);
    size_t left = i % 4;
    char byte = (char)(left == 1 ? bits >> 4 : left == 2 ? bits >> 2 : bits);
    if (left)
      string_output_add(out, &byte, 1);
  }
  string_output_next(out);
  return true;
}

status host_decode_base64(struct host_call *call) {
  struct string_output out;
  TRY(string_output_begin(&out, &call->inputs[0].shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++)
    if (!take_base64(&out, strings_of(call, 0)[i]))
      return fail(INVALID_ARGUMENT, "Invalid character found in base64.");
  return string_output_end(&out);
}

/* ---- CSV (RFC 4180) ---- */

struct csv {
  struct host_call *call;
  struct string_view na;
  char delimiter;
  bool quotes;
  const struct program_attr *selected;
  struct string_output *strings; /* per output */
  char *field;                   /* the one being read */
  size_t field_size;
  uint32_t column, taken; /* fields read, fields given out */
  int64_t record;
};

static bool csv_wants(const struct csv *csv) {
  if (csv->selected->list.count == 0)
    return true;
  return csv->taken < csv->selected->list.count &&
         program_attr(csv->call->program, csv->selected->list.first + csv->taken)->i == (int64_t)csv->column;
}

/* The field, or the default of its column when it is missing. */
static status csv_take(struct csv *csv) {
  uint32_t i = csv->taken++;
  struct host_call *call = csv->call;
  if (i >= call->output_count)
    return OK; /* counted, and reported at the end of the record */
  const struct tensor *otherwise = &call->inputs[i + 1];
  enum dtype dtype = otherwise->dtype;
  struct string_view view = {csv->field, csv->field_size};
  bool missing = view.size == 0 || (csv->na.size == view.size && memcmp(csv->na.data, view.data, view.size) == 0);
  if (missing && otherwise->count != 1)
    return fail(INVALID_ARGUMENT, "Field %u is required but missing in record %lld!", i, (long long)csv->record);
  if (dtype == DTYPE_STRING) {
    view = missing ? *(const struct string_view *)otherwise->data : view;
    string_output_put(&csv->strings[i], view.data, view.size);
    return OK;
  }
  size_t size = dtype_size(dtype);
  if (missing)
    memcpy((char *)call->outputs[i]->data + (size_t)csv->record * size, otherwise->data, size);
  else if (!number_parse(view, dtype, call->outputs[i]->data, csv->record))
    return fail(INVALID_ARGUMENT, "Field %u in record %lld is not a valid %s: %.*s", i, (long long)csv->record, dtype_name(dtype),
                (int)(view.size < 500 ? view.size : 500), view.data);
  return OK;
}

static status csv_plain_field(struct csv *csv, struct string_view in, size_t *at) {
  for (; *at < in.size && in.data[*at] != csv->delimiter; ++*at) {
    char c = in.data[*at];
    if ((csv->quotes && c == '"') || c == '\n' || c == '\r')
      return fail(INVALID_ARGUMENT, "Unquoted fields cannot have quotes/CRLFs inside");
    csv->field[csv->field_size++] = c;
  }
  ++*at;
  return OK;
}

static status csv_quoted_field(struct csv *csv, struct string_view in, size_t *at) {
  for (++*at; *at + 1 < in.size && (in.data[*at] != '"' || in.data[*at + 1] != csv->delimiter);) {
    if (in.data[*at] == '"' && in.data[*at + 1] != '"')
      return fail(INVALID_ARGUMENT, "Quote inside a string has to be escaped by another quote");
    csv->field[csv->field_size++] = in.data[*at];
    *at += in.data[*at] == '"' ? 2 : 1;
  }
  if (*at >= in.size || in.data[*at] != '"')
    return fail(INVALID_ARGUMENT, "Quoted field has to end with quote followed by delim or end");
  *at += 2;
  return OK;
}

static status csv_record(struct csv *csv, struct string_view in) {
  csv->column = csv->taken = 0;
  uint32_t all = csv->selected->list.count;
  for (size_t at = 0; at < in.size;) {
    if (in.data[at] == '\n' || in.data[at] == '\r') {
      at++;
      continue;
    }
    csv->field_size = 0;
    TRY(csv->quotes && in.data[at] == '"' ? csv_quoted_field(csv, in, &at) : csv_plain_field(csv, in, &at));
    if (csv_wants(csv))
      TRY(csv_take(csv));
    csv->column++;
    if (all && csv->taken == all)
      break;
  }
  csv->field_size = 0;
  if (in.size && in.data[in.size - 1] == csv->delimiter && csv_wants(csv) && (!all || csv->taken < all))
    TRY(csv_take(csv));
  if (csv->taken != csv->call->output_count)
    return fail(INVALID_ARGUMENT, "Expect %u fields but have %u in record %lld", csv->call->output_count, csv->taken,
                (long long)csv->record);
  return OK;
}

static status csv_records(struct csv *csv) {
  struct host_call *call = csv->call;
  for (uint32_t i = 0; i < call->output_count; i++) {
    if (call->inputs[i + 1].count > 1)
      return fail(INVALID_ARGUMENT, "There should only be 1 default per field but field %u has %lld", i,
                  (long long)call->inputs[i + 1].count);
    TRY(call->inputs[i + 1].dtype == DTYPE_STRING ? string_output_begin(&csv->strings[i], &call->inputs[0].shape, &call->outputs[i])
                                                  : host_make_output(call, i, call->inputs[i + 1].dtype, &call->inputs[0].shape));
  }
  for (csv->record = 0; csv->record < call->inputs[0].count; csv->record++) {
    struct string_view in = strings_of(call, 0)[csv->record];
    char *grown = realloc(csv->field, in.size + 1);
    if (!grown)
      return fail(RESOURCE_EXHAUSTED, "no memory for a record of %zu bytes", (size_t)in.size);
    csv->field = grown;
    TRY(csv_record(csv, in));
  }
  for (uint32_t i = 0; i < call->output_count; i++)
    if (csv->strings[i].tensor)
      TRY(string_output_end(&csv->strings[i]));
  return OK;
}

status host_decode_csv(struct host_call *call) {
  struct string_view delimiter = host_attr_string(call, "field_delim", ",");
  static const struct program_attr none;
  if (delimiter.size != 1)
    return fail(INVALID_ARGUMENT, "field_delim should be only 1 char");
  struct csv csv = {.call = call,
                    .na = host_attr_string(call, "na_value", ""),
                    .delimiter = delimiter.data[0],
                    .quotes = host_attr_int(call, "use_quote_delim", 1) != 0,
                    .selected = host_attr(call, "select_cols")};
  if (!csv.selected)
    csv.selected = &none;
  csv.strings = calloc((size_t)call->output_count + 1, sizeof *csv.strings);
  status result = csv.strings ? csv_records(&csv) : fail(RESOURCE_EXHAUSTED, "no memory");
  free(csv.strings);
  free(csv.field);
  return result;
}
