/* philox_stream.h: the counter-based generator of TensorFlow's random ops (Philox 4x32-10: Salmon and others, 2011), one 32-bit
 * number at a time, for host functions. */
#ifndef TFC_RUNTIME_RESOURCE_PHILOX_STREAM_H
#define TFC_RUNTIME_RESOURCE_PHILOX_STREAM_H

#include <stdint.h>

struct philox {
  uint32_t counter[4], key[2], block[4];
  int used; /* of block */
};
/* Two seeds of 0: a seed of the system's. */
void philox_seed(struct philox *p, uint64_t seed, uint64_t seed2);
uint32_t philox_next(struct philox *p);
/* As if `count` numbers were drawn, in constant time. */
void philox_skip(struct philox *p, uint64_t count);

#endif
