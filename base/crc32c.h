/* crc32c.h: CRC-32C (Castagnoli, RFC 3720), as checkpoints, records and event files carry it: masked, because a checksum
 * of bytes that hold a checksum is weak. */
#ifndef TFC_BASE_CRC32C_H
#define TFC_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to begin) over `size` bytes. */
uint32_t crc32c_extend(uint32_t crc, const void *data, size_t size);
static inline uint32_t crc32c(const void *data, size_t size) { return crc32c_extend(0, data, size); }
static inline uint32_t crc32c_mask(uint32_t crc) { return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8); }

#endif
