/* dtype.c: the table of element types, and the 16-bit floats. */
#include "base/dtype.h"

#include <string.h>

static const struct {
  size_t size;
  const char *name, *text, *npy, *constant;
} table[DTYPE_COUNT] = {
#define X(name, number, bytes, tf, text, npy) [number] = {bytes, tf, text, npy, "DT_" #name},
    DTYPES(X)
#undef X
};

bool dtype_is_valid(int dtype) { return dtype > 0 && dtype < DTYPE_COUNT; }
size_t dtype_size(enum dtype dtype) { return dtype_is_valid(dtype) ? table[dtype].size : 0; }
const char *dtype_name(enum dtype dtype) { return dtype_is_valid(dtype) ? table[dtype].name : "invalid"; }
const char *dtype_short(enum dtype dtype) { return dtype_is_valid(dtype) ? table[dtype].text : "invalid"; }
const char *dtype_npy(enum dtype dtype) { return dtype_is_valid(dtype) ? table[dtype].npy : ""; }

bool dtype_from_name(const char *name, enum dtype *out) {
  for (int i = 1; i < DTYPE_COUNT; i++)
    if (strcmp(name, table[i].name) == 0 || strcmp(name, table[i].text) == 0 || strcmp(name, table[i].constant) == 0) {
      *out = (enum dtype)i;
      return true;
    }
  return false;
}

bool dtype_is_float(enum dtype d) {
  return d == DTYPE_FLOAT || d == DTYPE_DOUBLE || d == DTYPE_HALF || d == DTYPE_BFLOAT16;
}
bool dtype_is_complex(enum dtype d) { return d == DTYPE_COMPLEX64 || d == DTYPE_COMPLEX128; }
bool dtype_is_signed(enum dtype d) {
  return d == DTYPE_INT8 || d == DTYPE_INT16 || d == DTYPE_INT32 || d == DTYPE_INT64 || d == DTYPE_QINT8 ||
         d == DTYPE_QINT16 || d == DTYPE_QINT32;
}
bool dtype_is_unsigned(enum dtype d) {
  return d == DTYPE_UINT8 || d == DTYPE_UINT16 || d == DTYPE_UINT32 || d == DTYPE_UINT64 || d == DTYPE_QUINT8 ||
         d == DTYPE_QUINT16;
}
bool dtype_is_integer(enum dtype d) { return dtype_is_signed(d) || dtype_is_unsigned(d); }
enum dtype dtype_real(enum dtype d) {
  return d == DTYPE_COMPLEX64 ? DTYPE_FLOAT : d == DTYPE_COMPLEX128 ? DTYPE_DOUBLE : d;
}

static float float_from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
static uint32_t bits_from_float(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}

float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  if (exponent == 31)
    return float_from_bits(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) { /* zero or denormal: mantissa * 2^-24, exact in float */
    float f = (float)mantissa * 0x1p-24f;
    return float_from_bits(sign | bits_from_float(f));
  }
  return float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t float_to_half(float value) {
  uint32_t bits = bits_from_float(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x477ff000) /* rounds to 65536 or more */
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) { /* denormal: adding 0.5 puts the bits at the end of the mantissa, rounded */
    float f = float_from_bits(magnitude) + 0.5f;
    return (uint16_t)(sign | (bits_from_float(f) - 0x3f000000));
  }
  uint32_t odd = (magnitude >> 13) & 1;
  return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}

float bfloat16_to_float(uint16_t bits) { return float_from_bits((uint32_t)bits << 16); }
uint16_t float_to_bfloat16(float value) {
  uint32_t bits = bits_from_float(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t)((bits >> 16) | 0x40);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
