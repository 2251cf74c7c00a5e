/* test_proof.c: what a task proves, and what is no proof. */
#include <stdio.h>
#include <string.h>
#include "runtime/net/proof.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct proof_nonces nonces = {{1, 2, 3}, {4, 5, 6}};

static void the_proof_is_hmac_sha256_of_side_nonces_and_text(void **state) {
  (void)state;
  uint8_t key[PROOF_KEY_BYTES], proof[PROOF_BYTES];
  char hex[2 * PROOF_BYTES + 1];
  for (size_t i = 0; i < sizeof key; i++)
    key[i] = (uint8_t)i;
  proof_make(key, PROOF_DIALLER, &nonces, "hello", 5, proof);
  for (size_t i = 0; i < sizeof proof; i++)
    snprintf(hex + 2 * i, 3, "%02x", proof[i]);
  /* python3: hmac.new(bytes(range(32)), b"\1" + bytes([1,2,3]).ljust(16, b"\0") + bytes([4,5,6]).ljust(16, b"\0") + b"hello", "sha256") */
  assert_string_equal(hex, "bf286c1de23ab696a344e871287b7d6ad74ce1ae8f41703461a41e772eec7faf");
}

static void nothing_of_it_can_be_changed(void **state) {
  (void)state;
  uint8_t key[PROOF_KEY_BYTES], other_key[PROOF_KEY_BYTES], secret[PROOF_KEY_BYTES] = {9}, proof[PROOF_BYTES], other[PROOF_BYTES];
  struct proof_nonces changed = nonces, swapped;
  proof_key(77, NULL, key);
  proof_make(key, PROOF_DIALLER, &nonces, "hello", 5, proof);
  proof_make(key, PROOF_DIALLER, &nonces, "hello", 5, other);
  assert_true(proof_equal(proof, other));
  proof_make(key, PROOF_LISTENER, &nonces, "hello", 5, other);
  assert_false(proof_equal(proof, other));
  proof_make(key, PROOF_DIALLER, &nonces, "hallo", 5, other);
  assert_false(proof_equal(proof, other));
  proof_make(key, PROOF_DIALLER, &nonces, "hello", 4, other);
  assert_false(proof_equal(proof, other));
  changed.listener[15] = 1;
  proof_make(key, PROOF_DIALLER, &changed, "hello", 5, other);
  assert_false(proof_equal(proof, other));
  memcpy(swapped.listener, nonces.dialler, sizeof swapped.listener);
  memcpy(swapped.dialler, nonces.listener, sizeof swapped.dialler);
  proof_make(key, PROOF_DIALLER, &swapped, "hello", 5, other);
  assert_false(proof_equal(proof, other));
  proof_key(78, NULL, other_key);
  proof_make(other_key, PROOF_DIALLER, &nonces, "hello", 5, other);
  assert_false(proof_equal(proof, other));
  proof_key(77, secret, other_key);
  proof_make(other_key, PROOF_DIALLER, &nonces, "hello", 5, other);
  assert_false(proof_equal(proof, other));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_proof_is_hmac_sha256_of_side_nonces_and_text),
    cmocka_unit_test(nothing_of_it_can_be_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
