/* The hashes that graphs' buckets depend on: values of TensorFlow's own kernels, and of the hashes' authors. */
#include <string.h>

#include "runtime/text/string_hash.h"
#include "tests/support/test.h"

static void siphash_gives_its_authors_vectors(void **state) {
  (void)state;
  unsigned char data[15];
  for (unsigned i = 0; i < sizeof data; i++)
    data[i] = (unsigned char)i;
  assert_true(hash_sip(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908), data, 15) == UINT64_C(0xa129ca6149be45e5));
  assert_true(hash_sip(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908), data, 0) == UINT64_C(0x726fdb47dd0e0e31));
}

static void no_bytes_have_farmhash_s_constant(void **state) {
  (void)state;
  assert_true(hash_farm("", 0) == UINT64_C(0x9ae16a3b2f90404f));
}

/* Every length up to three blocks is another path or another number of rounds: none reads past its end. */
static void each_length_has_a_hash_of_its_own(void **state) {
  (void)state;
  char text[200];
  uint64_t seen[1000];
  size_t count = 0;
  memset(text, 'a', sizeof text);
  for (size_t size = 0; size < sizeof text; size++) {
    char *copy = test_malloc(size + 1);
    memcpy(copy, text, size);
    seen[count++] = hash_farm(copy, size);
    seen[count++] = hash_murmur(copy, size);
    seen[count++] = hash_sip(1, 2, copy, size);
    hash_farm_128(copy, size, &seen[count]);
    count += 2;
    test_free(copy);
  }
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < i; k++)
      assert_true(seen[i] != seen[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(siphash_gives_its_authors_vectors),
    cmocka_unit_test(no_bytes_have_farmhash_s_constant),
    cmocka_unit_test(each_length_has_a_hash_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
