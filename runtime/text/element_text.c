/* element_text.c: numbers are printed with as few digits as give them back. */
#include "runtime/text/element_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void float_text(double value, bool is_float, char *text, size_t size) {
  if (!isfinite(value)) {
    snprintf(text, size, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  for (int digits = 6; digits <= 17; digits++) { /* 6: 100 is not 1e+02 */
    snprintf(text, size, "%.*g", digits, value);
    if (is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
      return;
  }
}

static void complex_text(double re, double im, bool is_float, char *text, size_t size) {
  char a[32], b[32];
  float_text(re, is_float, a, sizeof a);
  float_text(im, is_float, b, sizeof b);
  snprintf(text, size, "(%s,%s)", a, b);
}

void element_text(enum dtype dtype, const void *data, int64_t i, char *text, size_t size) {
  switch (dtype) {
  case DTYPE_FLOAT: float_text(((const float *)data)[i], true, text, size); return;
  case DTYPE_DOUBLE: float_text(((const double *)data)[i], false, text, size); return;
  case DTYPE_HALF: float_text(half_to_float(((const uint16_t *)data)[i]), true, text, size); return;
  case DTYPE_BFLOAT16: float_text(bfloat16_to_float(((const uint16_t *)data)[i]), true, text, size); return;
  case DTYPE_COMPLEX64: complex_text(((const float *)data)[2 * i], ((const float *)data)[2 * i + 1], true, text, size); return;
  case DTYPE_COMPLEX128: complex_text(((const double *)data)[2 * i], ((const double *)data)[2 * i + 1], false, text, size); return;
  case DTYPE_BOOL: snprintf(text, size, "%d", ((const bool *)data)[i]); return;
  case DTYPE_INT8:
  case DTYPE_QINT8: snprintf(text, size, "%d", ((const int8_t *)data)[i]); return;
  case DTYPE_UINT8:
  case DTYPE_QUINT8: snprintf(text, size, "%d", ((const uint8_t *)data)[i]); return;
  case DTYPE_INT16:
  case DTYPE_QINT16: snprintf(text, size, "%d", ((const int16_t *)data)[i]); return;
  case DTYPE_UINT16:
  case DTYPE_QUINT16: snprintf(text, size, "%d", ((const uint16_t *)data)[i]); return;
  case DTYPE_INT32:
  case DTYPE_QINT32: snprintf(text, size, "%" PRId32, ((const int32_t *)data)[i]); return;
  case DTYPE_UINT32: snprintf(text, size, "%" PRIu32, ((const uint32_t *)data)[i]); return;
  case DTYPE_INT64: snprintf(text, size, "%" PRId64, ((const int64_t *)data)[i]); return;
  case DTYPE_UINT64: snprintf(text, size, "%" PRIu64, ((const uint64_t *)data)[i]); return;
  case DTYPE_STRING: {
    struct string_view view = ((const struct string_view *)data)[i];
    snprintf(text, size, "%.*s", (int)(view.size < size ? view.size : size - 1), view.size ? view.data : "");
    return;
  }
  case DTYPE_RESOURCE:
  case DTYPE_VARIANT: snprintf(text, size, "<%s>", dtype_name(dtype)); return;
  case DTYPE_INVALID:
  case DTYPE_REF: break;
  }
  snprintf(text, size, "?");
}

static void print_dims(FILE *out, const struct tensor *tensor, int axis, int64_t *at, int64_t most) {
  if (axis == tensor->shape.rank) {
    char text[256];
    element_text(tensor->dtype, tensor->data, (*at)++, text, sizeof text);
    fputs(text, out);
    return;
  }
  int64_t count = tensor->shape.dims[axis], inner = 1;
  for (int i = axis + 1; i < tensor->shape.rank; i++)
    inner *= tensor->shape.dims[i];
  fputc('[', out);
  for (int64_t i = 0; i < count; i++) {
    if (i)
      fputc(' ', out);
    if (count > 2 * most && i == most) {
      fputs("... ", out);
      *at += (count - 2 * most) * inner;
      i = count - most;
    }
    print_dims(out, tensor, axis + 1, at, most);
  }
  fputc(']', out);
}

void tensor_print(FILE *out, const struct tensor *tensor, int64_t most) {
  int64_t at = 0;
  print_dims(out, tensor, 0, &at, most);
}
