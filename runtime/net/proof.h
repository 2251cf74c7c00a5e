/* proof.h: how two tasks show each other that they are of one build, without sending what would show it.
 *
 * Both ends of a connection draw a nonce; each HELLO ends with HMAC-SHA256 (RFC 2104) over its side, both nonces and all that it says,
 * keyed by the build. Who listens on the line learns nothing that it could say itself: bytes that are sent again meet another nonce, and
 * what one side has proved is no proof of the other's.
 *
 * Threads: any. Pure: no state, no clock.
 */
#ifndef TFC_RUNTIME_NET_PROOF_H
#define TFC_RUNTIME_NET_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROOF_KEY_BYTES 32
#define PROOF_NONCE_BYTES 16
#define PROOF_BYTES 32
#define PROOF_TEXT_BYTES 512 /* what is proved is cut there; a HELLO is shorter */

enum proof_side { PROOF_DIALLER = 1, PROOF_LISTENER = 2 };

struct proof_nonces {
  uint8_t listener[PROOF_NONCE_BYTES], dialler[PROOF_NONCE_BYTES];
};

/* The key of a build: of its identity, and of the 32 bytes that only its executables hold (NULL: none). */
void proof_key(uint64_t build_id, const uint8_t *secret, uint8_t out[PROOF_KEY_BYTES]);

/* text: what the side says, at most PROOF_TEXT_BYTES. */
void proof_make(const uint8_t key[PROOF_KEY_BYTES], enum proof_side side, const struct proof_nonces *nonces, const void *text, size_t size,
                uint8_t out[PROOF_BYTES]);

/* Takes as long wherever they differ. */
bool proof_equal(const uint8_t a[PROOF_BYTES], const uint8_t b[PROOF_BYTES]);

#endif
