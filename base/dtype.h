/* dtype.h: element types, with TensorFlow's numbers (types.proto), so that graphs, files and wire need no translation.
 * A reference type in a graph is its base type + 100 (DTYPE_REF). */
#ifndef TFC_BASE_DTYPE_H
#define TFC_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*    name        number bytes  TensorFlow's name   short (IR text)  numpy (.npy descr; "" = none) */
#define DTYPES(X)                                     \
  X(FLOAT, 1, 4, "float", "f32", "<f4")               \
  X(DOUBLE, 2, 8, "double", "f64", "<f8")             \
  X(INT32, 3, 4, "int32", "i32", "<i4")               \
  X(UINT8, 4, 1, "uint8", "u8", "|u1")                \
  X(INT16, 5, 2, "int16", "i16", "<i2")               \
  X(INT8, 6, 1, "int8", "i8", "|i1")                  \
  X(STRING, 7, 16, "string", "str", "|S")             \
  X(COMPLEX64, 8, 8, "complex64", "c64", "<c8")       \
  X(INT64, 9, 8, "int64", "i64", "<i8")               \
  X(BOOL, 10, 1, "bool", "bool", "|b1")               \
  X(QINT8, 11, 1, "qint8", "q8", "|i1")               \
  X(QUINT8, 12, 1, "quint8", "qu8", "|u1")            \
  X(QINT32, 13, 4, "qint32", "q32", "<i4")            \
  X(BFLOAT16, 14, 2, "bfloat16", "bf16", "")          \
  X(QINT16, 15, 2, "qint16", "q16", "<i2")            \
  X(QUINT16, 16, 2, "quint16", "qu16", "<u2")         \
  X(UINT16, 17, 2, "uint16", "u16", "<u2")            \
  X(COMPLEX128, 18, 16, "complex128", "c128", "<c16") \
  X(HALF, 19, 2, "half", "f16", "<f2")                \
  X(RESOURCE, 20, 8, "resource", "res", "")           \
  X(VARIANT, 21, 8, "variant", "var", "")             \
  X(UINT32, 22, 4, "uint32", "u32", "<u4")            \
  X(UINT64, 23, 8, "uint64", "u64", "<u8")

enum dtype {
  DTYPE_INVALID = 0,
#define X(name, number, bytes, tf, text, npy) DTYPE_##name = number,
  DTYPES(X)
#undef X
    DTYPE_REF = 100,
};
#define DTYPE_COUNT 24

/* One element of a string tensor: a view. In a step the bytes live in the step's string arena, in a constant in the
 * program, in a variable or queue in memory of its own. Copying elements copies views. */
struct string_view {
  const char *data;
  uint64_t size;
};
bool string_equal(struct string_view a, struct string_view b);
bool string_is(struct string_view view, const char *text);

static inline enum dtype dtype_base(int dtype) { return (enum dtype)(dtype > DTYPE_REF ? dtype - DTYPE_REF : dtype); }
bool dtype_is_valid(int dtype);
size_t dtype_size(enum dtype dtype);                     /* bytes of an element */
const char *dtype_name(enum dtype dtype);                /* "float": TensorFlow's */
const char *dtype_short(enum dtype dtype);               /* "f32": in IR text */
const char *dtype_npy(enum dtype dtype);                 /* "<f4"; "" where numpy has none */
bool dtype_from_name(const char *name, enum dtype *out); /* takes both names, and "DT_FLOAT" */
bool dtype_is_float(enum dtype dtype);                   /* half, bfloat16, float, double */
bool dtype_is_complex(enum dtype dtype);
bool dtype_is_signed(enum dtype dtype);   /* signed integers */
bool dtype_is_unsigned(enum dtype dtype); /* unsigned integers, not bool */
bool dtype_is_integer(enum dtype dtype);
bool dtype_is_word(enum dtype dtype); /* integers and floats of 4 or 8 bytes */
/* float of complex64, double of complex128, else the type itself */
enum dtype dtype_real(enum dtype dtype);

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value); /* round to nearest even */
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value); /* round to nearest even; NaN stays NaN */

#endif
