/* tensor_summary.c: two forms, an older flat one that stops after so many elements and a nested one that leaves the middle out. */
#include "runtime/value/tensor_summary.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/text/element_text.h"

/* Escapes as in C, but leaves UTF-8 alone. */
static void put_escaped(FILE *out, struct string_view view) {
  for (size_t i = 0; i < view.size; i++) {
    unsigned char c = (unsigned char)view.data[i];
    switch (c) {
    case '\n': fputs("\\n", out); break;
    case '\r': fputs("\\r", out); break;
    case '\t': fputs("\\t", out); break;
    case '"': fputs("\\\"", out); break;
    case '\'': fputs("\\'", out); break;
    case '\\': fputs("\\\\", out); break;
    default:
      if (c < 32 || c == 127)
        fprintf(out, "\\%03o", c);
      else
        fputc(c, out);
    }
  }
}

/* TensorFlow's digits: six, or nine where those do not give the number back (fifteen, seventeen). */
static void put_real(FILE *out, double value, bool is_double) {
  char text[64];
  if (isnan(value) || isinf(value)) {
    fputs(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf", out);
    return;
  }
  snprintf(text, sizeof text, "%.*g", is_double ? 15 : 6, value);
  bool same = is_double ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value;
  fprintf(out, "%.*g", same ? (is_double ? 15 : 6) : is_double ? 17 : 9, value);
}

static void put_element(FILE *out, const struct tensor *tensor, int64_t i, bool quoted) {
  if (tensor->dtype == DTYPE_STRING) {
    if (quoted)
      fputc('"', out);
    put_escaped(out, ((const struct string_view *)tensor->data)[i]);
    if (quoted)
      fputc('"', out);
    return;
  }
  if (dtype_is_float(tensor->dtype)) {
    const void *data = tensor->data;
    put_real(out,
             tensor->dtype == DTYPE_DOUBLE  ? ((const double *)data)[i]
             : tensor->dtype == DTYPE_FLOAT ? ((const float *)data)[i]
             : tensor->dtype == DTYPE_HALF  ? half_to_float(((const uint16_t *)data)[i])
                                            : bfloat16_to_float(((const uint16_t *)data)[i]),
             tensor->dtype == DTYPE_DOUBLE);
    return;
  }
  char text[128];
  element_text(tensor->dtype, tensor->data, i, text, sizeof text);
  fputs(text, out);
}

/* ---- complex numbers, for which TensorFlow has no text ---- */

static void put_unsaid(FILE *out, int64_t count, int64_t most) {
  for (int64_t i = 0; i < most; i++)
    fputs(i ? " ?" : "?", out);
  if (count > most)
    fputs("...", out);
}

static int64_t entries(const struct tensor *tensor, int64_t most) { return most < 0 || most > tensor->count ? tensor->count : most; }

/* Nothing is said of booleans of which none is wanted. */
static bool is_silent(const struct tensor *tensor, int64_t most) { return tensor->dtype == DTYPE_BOOL && entries(tensor, most) == 0; }

/* ---- flat ---- */

struct flat {
  FILE *out;
  const struct tensor *tensor;
  int64_t at, most;
};

static void put_flat(struct flat *f, int axis) {
  if (f->at >= f->most)
    return;
  int64_t count = f->tensor->shape.dims[axis];
  bool last = axis == f->tensor->shape.rank - 1;
  for (int64_t i = 0; i < count; i++) {
    if (f->at >= f->most) {
      if (last && axis > 0)
        fputs("...", f->out);
      return;
    }
    if (!last) {
      fputc('[', f->out);
      put_flat(f, axis + 1);
      fputc(']', f->out);
      continue;
    }
    if (i)
      fputc(' ', f->out);
    put_element(f->out, f->tensor, f->at++, false);
  }
}

void tensor_summary(FILE *out, const struct tensor *tensor, int64_t most) {
  struct flat f = {out, tensor, 0, entries(tensor, most)};
  if (is_silent(tensor, most))
    return;
  if (dtype_is_complex(tensor->dtype)) {
    put_unsaid(out, tensor->count, f.most);
    return;
  }
  if (tensor->shape.rank == 0) {
    if (f.most > 0)
      put_element(out, tensor, 0, false);
  } else {
    put_flat(&f, 0);
  }
  if (tensor->count > f.most)
    fputs("...", out);
}

/* ---- nested ---- */

static void put_spacing(FILE *out, int axis, int rank) {
  if (axis == rank - 1) {
    fputc(' ', out);
    return;
  }
  for (int i = 0; i < rank - axis - 1; i++)
    fputc('\n', out);
  for (int i = 0; i <= axis; i++)
    fputc(' ', out);
}

static void put_nested(FILE *out, const struct tensor *tensor, int axis, int64_t at, int64_t most) {
  int rank = tensor->shape.rank;
  if (axis == rank) {
    put_element(out, tensor, at, true);
    return;
  }
  int64_t count = tensor->shape.dims[axis], inner = 1;
  for (int d = axis + 1; d < rank; d++)
    inner *= tensor->shape.dims[d];
  fputc('[', out);
  for (int64_t i = 0; i < count; i++) {
    bool leaves_out = i == most && count - most > most;
    if (i || leaves_out)
      put_spacing(out, axis, rank);
    if (leaves_out) {
      fputs("...", out);
      i = count - most - 1;
      continue;
    }
    put_nested(out, tensor, axis + 1, at + i * inner, most);
  }
  fputc(']', out);
}

void tensor_summary_nested(FILE *out, const struct tensor *tensor, int64_t most) {
  int64_t wanted = entries(tensor, most);
  bool is_list = tensor->shape.rank > 0;
  if (is_silent(tensor, most))
    return;
  if (is_list && !dtype_is_complex(tensor->dtype)) {
    put_nested(out, tensor, 0, 0, wanted);
    return;
  }
  fputs(is_list ? "[" : "", out);
  if (dtype_is_complex(tensor->dtype) || wanted == 0)
    put_unsaid(out, tensor->count, wanted);
  else
    put_element(out, tensor, 0, true);
  fputs(is_list ? "]" : "", out);
}
