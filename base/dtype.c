/* dtype.c: the table of dtype.h, asked in several ways, and the 16-bit floats. */
#include "base/dtype.h"

#include <string.h>

struct dtype_row {
  const char *tf, *text, *npy, *upper;
  uint8_t bytes;
};
static const struct dtype_row rows[DTYPE_COUNT] = {
#define X(name, number, size, tf_name, short_name, npy_descr) \
  [number] = {.tf = tf_name, .text = short_name, .npy = npy_descr, .upper = #name, .bytes = size},
  DTYPES(X)
#undef X
};

static const struct dtype_row *row(int dtype) {
  static const struct dtype_row none = {"invalid", "?", "", "INVALID", 0};
  return dtype_is_valid(dtype) ? &rows[dtype] : &none;
}

bool dtype_is_valid(int dtype) { return dtype > 0 && dtype < DTYPE_COUNT; }

size_t dtype_size(enum dtype dtype) { return row((int)dtype)->bytes; }

const char *dtype_name(enum dtype dtype) { return row((int)dtype)->tf; }

const char *dtype_short(enum dtype dtype) { return row((int)dtype)->text; }

const char *dtype_npy(enum dtype dtype) { return row((int)dtype)->npy; }

bool dtype_from_name(const char *name, enum dtype *out) {
  bool upper = !strncmp(name, "DT_", 3);
  for (int i = 1; i < DTYPE_COUNT; i++) {
    bool same = upper ? !strcmp(name + 3, rows[i].upper) : !strcmp(name, rows[i].tf) || !strcmp(name, rows[i].text);
    if (same) {
      *out = (enum dtype)i;
      return true;
    }
  }
  return false;
}

bool dtype_is_float(enum dtype dtype) {
  return dtype == DTYPE_HALF || dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT || dtype == DTYPE_DOUBLE;
}

bool dtype_is_complex(enum dtype dtype) { return dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128; }

bool dtype_is_signed(enum dtype dtype) {
  return dtype == DTYPE_INT8 || dtype == DTYPE_INT16 || dtype == DTYPE_INT32 || dtype == DTYPE_INT64 || dtype == DTYPE_QINT8 ||
         dtype == DTYPE_QINT16 || dtype == DTYPE_QINT32;
}

bool dtype_is_unsigned(enum dtype dtype) {
  return dtype == DTYPE_UINT8 || dtype == DTYPE_UINT16 || dtype == DTYPE_UINT32 || dtype == DTYPE_UINT64 || dtype == DTYPE_QUINT8 ||
         dtype == DTYPE_QUINT16;
}

bool dtype_is_integer(enum dtype dtype) { return dtype_is_signed(dtype) || dtype_is_unsigned(dtype); }
bool dtype_is_word(enum dtype dtype) {
  return (dtype_is_integer(dtype) || dtype_is_float(dtype)) && (dtype_size(dtype) == 4 || dtype_size(dtype) == 8);
}

enum dtype dtype_real(enum dtype dtype) {
  if (dtype == DTYPE_COMPLEX64)
    return DTYPE_FLOAT;
  return dtype == DTYPE_COMPLEX128 ? DTYPE_DOUBLE : dtype;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 31, mantissa = half & 0x3ff;
  if (exponent == 31)
    return float_of(sign | 0x7f800000 | mantissa << 13);
  if (exponent)
    return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  float tiny = (float)mantissa * 0x1p-24f; /* a subnormal half is a normal float */
  return sign ? -tiny : tiny;
}

uint16_t float_to_half(float value) {
  uint32_t bits = bits_of(value);
  uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000)
    return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
  if (rest >= 0x477ff000) /* rounds to 65536 or more */
    return (uint16_t)(sign | 0x7c00);
  if (rest >= 0x38800000) { /* normal */
    uint32_t rounded = rest + 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
  }
  /* subnormal: adding 0.5 leaves the mantissa in units of 2^-24, rounded to even by the float addition */
  uint32_t aligned = bits_of(float_of(rest) + 0.5f) - bits_of(0.5f);
  return (uint16_t)(sign | aligned);
}

float bfloat16_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t float_to_bfloat16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

bool string_equal(struct string_view a, struct string_view b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool string_is(struct string_view view, const char *text) { return string_equal(view, (struct string_view){text, strlen(text)}); }
