/* philox_stream.c: ten rounds of two multiplications. */
#include "runtime/resource/philox_stream.h"

#include <sys/random.h>

void philox_seed(struct philox *p, uint64_t seed, uint64_t seed2) {
  uint64_t seeds[2] = {seed, seed2};
  if (seed == 0 && seed2 == 0 && getrandom(seeds, sizeof seeds, 0) != (long)sizeof seeds)
    seeds[0] = 87654321;
  *p = (struct philox){
    .key = {(uint32_t)seeds[0], (uint32_t)(seeds[0] >> 32)}, .counter = {0, 0, (uint32_t)seeds[1], (uint32_t)(seeds[1] >> 32)}, .used = 4};
}

static void advance(struct philox *p, uint64_t blocks) {
  for (int i = 0; i < 4; i++, blocks >>= 32) {
    blocks += p->counter[i]; /* the carry and what is left of the number: both fit, for it was below 2^62 */
    p->counter[i] = (uint32_t)blocks;
  }
}

static void philox_block(struct philox *p) {
  uint32_t x[4] = {p->counter[0], p->counter[1], p->counter[2], p->counter[3]}, key[2] = {p->key[0], p->key[1]};
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)x[0] * 0xD2511F53u, b = (uint64_t)x[2] * 0xCD9E8D57u;
    uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
    for (int i = 0; i < 4; i++)
      x[i] = y[i];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (int i = 0; i < 4; i++)
    p->block[i] = x[i];
  advance(p, 1);
  p->used = 0;
}

void philox_skip(struct philox *p, uint64_t count) {
  uint64_t there = (uint64_t)(4 - p->used);
  if (count <= there) {
    p->used += (int)count;
    return;
  }
  count -= there;
  advance(p, count / 4);
  p->used = 4;
  if (count % 4)
    philox_block(p);
  p->used = count % 4 ? (int)(count % 4) : 4;
}

uint32_t philox_next(struct philox *p) {
  if (p->used == 4)
    philox_block(p);
  return p->block[p->used++];
}
