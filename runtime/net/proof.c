/* proof.c: HMAC-SHA256 of what a side says. */
#include "runtime/net/proof.h"

#include <string.h>
#include "base/sha256.h"

#define BLOCK_BYTES 64 /* of SHA-256 */

static void hmac(const uint8_t key[PROOF_KEY_BYTES], const void *text, size_t size, uint8_t out[PROOF_BYTES]) {
  uint8_t inner[BLOCK_BYTES + 1 + sizeof(struct proof_nonces) + PROOF_TEXT_BYTES], outer[BLOCK_BYTES + PROOF_BYTES];
  memset(inner, 0x36, BLOCK_BYTES);
  memset(outer, 0x5c, BLOCK_BYTES);
  for (size_t i = 0; i < PROOF_KEY_BYTES; i++) {
    inner[i] ^= key[i];
    outer[i] ^= key[i];
  }
  memcpy(inner + BLOCK_BYTES, text, size);
  sha256(inner, BLOCK_BYTES + size, outer + BLOCK_BYTES);
  sha256(outer, sizeof outer, out);
}

void proof_key(uint64_t build_id, const uint8_t *secret, uint8_t out[PROOF_KEY_BYTES]) {
  uint8_t key[PROOF_KEY_BYTES] = {0};
  char text[32] = "tfc build";
  if (secret)
    memcpy(key, secret, sizeof key);
  memcpy(text + 16, &build_id, sizeof build_id);
  hmac(key, text, sizeof text, out);
}

void proof_make(const uint8_t key[PROOF_KEY_BYTES], enum proof_side side, const struct proof_nonces *nonces, const void *text, size_t size,
                uint8_t out[PROOF_BYTES]) {
  uint8_t said[1 + sizeof *nonces + PROOF_TEXT_BYTES];
  if (size > PROOF_TEXT_BYTES)
    size = PROOF_TEXT_BYTES;
  said[0] = (uint8_t)side;
  memcpy(said + 1, nonces, sizeof *nonces);
  memcpy(said + 1 + sizeof *nonces, text, size);
  hmac(key, said, 1 + sizeof *nonces + size, out);
}

bool proof_equal(const uint8_t a[PROOF_BYTES], const uint8_t b[PROOF_BYTES]) {
  uint8_t difference = 0;
  for (size_t i = 0; i < PROOF_BYTES; i++)
    difference |= (uint8_t)(a[i] ^ b[i]);
  return difference == 0;
}
