/* string_hash.h: the hashes that TensorFlow's ops are defined by: a graph's buckets must be the same here. */
#ifndef TFC_RUNTIME_TEXT_STRING_HASH_H
#define TFC_RUNTIME_TEXT_STRING_HASH_H

#include <stddef.h>
#include <stdint.h>

/* MurmurHash64A with TensorFlow's seed: StringToHashBucket. */
uint64_t hash_murmur(const void *data, size_t size);
/* FarmHash's Fingerprint64: StringToHashBucketFast, Fingerprint. */
uint64_t hash_farm(const void *data, size_t size);
/* FarmHash's Fingerprint128, which is CityHash128: SdcaFprint. The lower half first. */
void hash_farm_128(const void *data, size_t size, uint64_t out[2]);
/* SipHash-2-4: StringToHashBucketStrong. */
uint64_t hash_sip(uint64_t key0, uint64_t key1, const void *data, size_t size);
/* Two hashes as one: crossed features. */
uint64_t hash_join(uint64_t first, uint64_t second);

#endif
