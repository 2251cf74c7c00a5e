/* utf8.h: code points from and to UTF-8, for text that may be damaged. */
#ifndef TFC_RUNTIME_TEXT_UTF8_H
#define TFC_RUNTIME_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_BAD (-1)

/* The code point at data[0..size); *used: its bytes, at least 1. UTF8_BAD when the bytes there are none. */
static inline int32_t utf8_decode(const char *data, size_t size, size_t *used) {
  const unsigned char *p = (const unsigned char *)data;
  static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  *used = 1;
  if (p[0] < 0x80)
    return p[0];
  int length = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : 0;
  if (!length)
    return UTF8_BAD;
  int32_t code = p[0] & (0xff >> (length + 1));
  for (int i = 1; i < length; i++) {
    if ((size_t)i >= size || (p[i] & 0xc0) != 0x80)
      return UTF8_BAD;
    code = code << 6 | (p[i] & 0x3f);
    if (i == 1 && length > 2 && (code << (6 * (length - 2))) < least[length])
      return UTF8_BAD;
    *used = (size_t)i + 1;
  }
  if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    *used = 1;
    return UTF8_BAD;
  }
  return code;
}

/* The bytes of a code point, 1 to 4, into out. */
static inline size_t utf8_encode(int32_t code, char *out) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length; i-- > 1; code >>= 6)
    out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)((0xf00 >> length & 0xff) | code);
  return length;
}

/* TensorFlow counts and cuts characters by their first bytes. */
static inline int utf8_is_first(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

#endif
