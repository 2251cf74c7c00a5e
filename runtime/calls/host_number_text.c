/* host_number_text.c: AsString and StringToNumber. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/number_parse.h"
#include "runtime/text/string_output.h"

/* ---- AsString ---- */

#define NUMBER_WIDTH_MAX 1024

struct number_format {
  char flag[2];         /* "0", " " or "" */
  int width, precision; /* -1: none */
  char letter;          /* f, e or g */
};

static status read_format(const struct host_call *call, struct number_format *out) {
  enum dtype dtype = call->inputs[0].dtype;
  struct string_view fill = host_attr_string(call, "fill", "");
  bool scientific = host_attr_int(call, "scientific", 0) != 0, shortest = host_attr_int(call, "shortest", 0) != 0;
  bool real = dtype_is_float(dtype) || dtype_is_complex(dtype), has_precision = real || dtype == DTYPE_STRING; /* which strings ignore */
  int64_t width = host_attr_int(call, "width", -1), precision = host_attr_int(call, "precision", -1);
  if (fill.size > 1 || (fill.size == 1 && !strchr(" +-0#", fill.data[0])))
    return fail(INVALID_ARGUMENT, "Fill argument not supported: \"%.*s\"", (int)fill.size, fill.data);
  if (scientific && shortest)
    return fail(INVALID_ARGUMENT, "Cannot select both scientific and shortest notation");
  if ((scientific || shortest || precision > -1) && !has_precision)
    return fail(INVALID_ARGUMENT, "scientific, shortest and precision are for floating point, not %s", dtype_name(dtype));
  if (width > NUMBER_WIDTH_MAX || precision > NUMBER_WIDTH_MAX)
    return fail(UNIMPLEMENTED, "a width or precision above %d", NUMBER_WIDTH_MAX);
  *out = (struct number_format){{fill.size ? fill.data[0] : 0, 0}, (int)width, (int)precision, shortest ? 'g' : scientific ? 'e' : 'f'};
  return OK;
}

static int put_real(char *text, size_t size, const struct number_format *f, double value) {
  char width[16] = "", precision[16] = "", format[48];
  if (f->width > -1)
    snprintf(width, sizeof width, "%d", f->width);
  if (f->precision > -1)
    snprintf(precision, sizeof precision, ".%d", f->precision);
  snprintf(format, sizeof format, "%%%s%s%s%c", f->flag, width, precision, f->letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  return snprintf(text, size, format, value);
#pragma GCC diagnostic pop
}

static int put_integer(char *text, size_t size, const struct number_format *f, bool is_signed, uint64_t bits) {
  char width[16] = "", format[48];
  if (f->width > -1)
    snprintf(width, sizeof width, "%d", f->width);
  snprintf(format, sizeof format, "%%%s%s%s", f->flag, width, is_signed ? PRId64 : PRIu64);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  return snprintf(text, size, format, bits);
#pragma GCC diagnostic pop
}

static int put_signed(char *text, size_t size, const struct number_format *f, int64_t value) {
  return put_integer(text, size, f, true, (uint64_t)value);
}

static int put_complex(char *text, size_t size, const struct number_format *f, double re, double im) {
  int at = snprintf(text, size, "(");
  at += put_real(text + at, size - (size_t)at, f, re);
  at += snprintf(text + at, size - (size_t)at, ",");
  at += put_real(text + at, size - (size_t)at, f, im);
  return at + snprintf(text + at, size - (size_t)at, ")");
}

static int put_number(char *text, size_t size, const struct number_format *f, enum dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
  case DTYPE_FLOAT: return put_real(text, size, f, ((const float *)data)[i]);
  case DTYPE_DOUBLE: return put_real(text, size, f, ((const double *)data)[i]);
  case DTYPE_HALF: return put_real(text, size, f, half_to_float(((const uint16_t *)data)[i]));
  case DTYPE_BFLOAT16: return put_real(text, size, f, bfloat16_to_float(((const uint16_t *)data)[i]));
  case DTYPE_COMPLEX64: return put_complex(text, size, f, ((const float *)data)[2 * i], ((const float *)data)[2 * i + 1]);
  case DTYPE_COMPLEX128: return put_complex(text, size, f, ((const double *)data)[2 * i], ((const double *)data)[2 * i + 1]);
  case DTYPE_BOOL: return snprintf(text, size, "%s", ((const bool *)data)[i] ? "true" : "false");
  case DTYPE_INT8: return put_signed(text, size, f, ((const int8_t *)data)[i]);
  case DTYPE_INT16: return put_signed(text, size, f, ((const int16_t *)data)[i]);
  case DTYPE_INT32: return put_signed(text, size, f, ((const int32_t *)data)[i]);
  case DTYPE_INT64: return put_signed(text, size, f, ((const int64_t *)data)[i]);
  case DTYPE_UINT8: return put_integer(text, size, f, false, ((const uint8_t *)data)[i]);
  case DTYPE_UINT16: return put_integer(text, size, f, false, ((const uint16_t *)data)[i]);
  case DTYPE_UINT32: return put_integer(text, size, f, false, ((const uint32_t *)data)[i]);
  case DTYPE_UINT64: return put_integer(text, size, f, false, ((const uint64_t *)data)[i]);
  default: return -1;
  }
}

status host_as_string(struct host_call *call) {
  const struct tensor *in = &call->inputs[0];
  struct number_format format;
  struct string_output out;
  TRY(read_format(call, &format));
  TRY(string_output_begin(&out, &in->shape, &call->outputs[0]));
  char text[4 * NUMBER_WIDTH_MAX];
  for (int64_t i = 0; i < in->count; i++) {
    if (in->dtype == DTYPE_STRING) {
      struct string_view view = ((const struct string_view *)in->data)[i];
      bool left = format.flag[0] == '-';
      for (int64_t pad = format.width - (int64_t)view.size; pad > 0 && !left; pad--)
        string_output_add(&out, " ", 1);
      string_output_add(&out, view.data, view.size);
      for (int64_t pad = format.width - (int64_t)view.size; pad > 0 && left; pad--)
        string_output_add(&out, " ", 1);
      string_output_next(&out);
      continue;
    }
    int size = put_number(text, sizeof text, &format, in->dtype, in->data, i);
    if (size < 0 || (size_t)size >= sizeof text)
      return fail(UNIMPLEMENTED, "an element of %s as text", dtype_name(in->dtype));
    string_output_put(&out, text, (size_t)size);
  }
  return string_output_end(&out);
}

/* ---- StringToNumber ---- */

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The text without white space around, NUL-terminated; false when it is too long for a number. */
static bool trimmed(struct string_view view, char *text, size_t size) {
  while (view.size && is_space(view.data[0]))
    view.data++, view.size--;
  while (view.size && is_space(view.data[view.size - 1]))
    view.size--;
  if (view.size == 0 || view.size >= size || memchr(view.data, 0, view.size))
    return false;
  memcpy(text, view.data, view.size);
  text[view.size] = 0;
  return true;
}

/* Digits, a point, an exponent; inf, infinity, nan; hexadecimal too. */
static bool parse_real(const char *text, bool single, double *out) {
  char *end;
  *out = single ? (double)strtof(text, &end) : strtod(text, &end);
  return end != text && !*end && !strchr(text, '(');
}

static bool parse_integer(const char *text, int64_t low, uint64_t high, int64_t *out) {
  char *end;
  const char *digits = *text == '-' ? text + 1 : text;
  if (*digits < '0' || *digits > '9')
    return false;
  errno = 0;
  if (*text == '-') {
    *out = strtoll(text, &end, 10);
    return !errno && !*end && *out >= low;
  }
  uint64_t value = strtoull(text, &end, 10);
  *out = (int64_t)value;
  return !errno && !*end && value <= high;
}

bool number_parse(struct string_view view, enum dtype dtype, void *data, int64_t i) {
  char text[512];
  double real = 0;
  int64_t integer = 0;
  if (!trimmed(view, text, sizeof text))
    return false;
  switch (dtype) {
  case DTYPE_FLOAT: return parse_real(text, true, &real) && (((float *)data)[i] = (float)real, true);
  case DTYPE_DOUBLE: return parse_real(text, false, &real) && (((double *)data)[i] = real, true);
  case DTYPE_INT32: return parse_integer(text, INT32_MIN, INT32_MAX, &integer) && (((int32_t *)data)[i] = (int32_t)integer, true);
  case DTYPE_INT64: return parse_integer(text, INT64_MIN, INT64_MAX, &integer) && (((int64_t *)data)[i] = integer, true);
  case DTYPE_UINT32: return parse_integer(text, 0, UINT32_MAX, &integer) && (((uint32_t *)data)[i] = (uint32_t)integer, true);
  case DTYPE_UINT64: return parse_integer(text, 0, UINT64_MAX, &integer) && (((int64_t *)data)[i] = integer, true);
  default: return false;
  }
}

status host_string_to_number(struct host_call *call) {
  const struct tensor *in = &call->inputs[0];
  enum dtype dtype = (enum dtype)host_attr_int(call, "out_type", DTYPE_FLOAT);
  TRY(host_make_output(call, 0, dtype, &in->shape));
  for (int64_t i = 0; i < in->count; i++) {
    struct string_view view = ((const struct string_view *)in->data)[i];
    if (!number_parse(view, dtype, call->outputs[0]->data, i))
      return fail(INVALID_ARGUMENT, "StringToNumberOp could not correctly convert string: %.*s", (int)(view.size < 500 ? view.size : 500),
                  view.data);
  }
  return OK;
}
