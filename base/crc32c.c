/* crc32c.c: the CPU's instruction where it has one, else a table of 16 entries for half bytes. */
#include "base/crc32c.h"

#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* bits reversed */

static uint32_t extend_by_table(uint32_t crc, const unsigned char *p, size_t size) {
  uint32_t table[16];
  for (uint32_t i = 0; i < 16; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 4; bit++)
      c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
    table[i] = c;
  }
  for (; size; size--) {
    crc ^= *p++;
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t extend_by_instruction(uint32_t crc, const unsigned char *p, size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = (uint32_t)wide;
  for (; size; size--)
    crc = __builtin_ia32_crc32qi(crc, *p++);
  return crc;
}
#endif

uint32_t crc32c_extend(uint32_t crc, const void *data, size_t size) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2"))
    return ~extend_by_instruction(~crc, data, size);
#endif
  return ~extend_by_table(~crc, data, size);
}
