/* sha256.h: SHA-256 (FIPS 180-4), for build identities. */
#ifndef TFC_BASE_SHA256_H
#define TFC_BASE_SHA256_H

#include <stdint.h>
#include "base/arena.h"

void sha256(const void *data, size_t size, uint8_t out[32]);
/* 64 hexadecimal digits in the arena. */
char *sha256_hex(struct arena *arena, const void *data, size_t size);

#endif
