/* string_hash.c: MurmurHash64A (Appleby), Fingerprint64 (FarmHash, Pike; the mixing of CityHash), SipHash-2-4 (Aumasson and
 * Bernstein). Words are read little-endian. */
#include "runtime/text/string_hash.h"

#include <string.h>

static uint64_t word64(const unsigned char *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}
static uint64_t word32(const unsigned char *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}
static uint64_t rotate_left(uint64_t v, int by) { return v << by | v >> (64 - by); }
static uint64_t rotate_right(uint64_t v, int by) { return v >> by | v << (64 - by); }

/* ---- murmur ---- */

uint64_t hash_murmur(const void *data, size_t size) {
  const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
  const unsigned char *p = data;
  uint64_t h = UINT64_C(0xdecafcaffe) ^ (size * m);
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t k = word64(p) * m;
    h = (h ^ (k ^ k >> 47) * m) * m;
  }
  if (size) {
    uint64_t tail = 0;
    memcpy(&tail, p, size);
    h = (h ^ tail) * m;
  }
  h = (h ^ h >> 47) * m;
  return h ^ h >> 47;
}

/* ---- farm ---- */

#define FARM0 UINT64_C(0xc3a5c85c97cb3127)
#define FARM1 UINT64_C(0xb492b66fbe98f273)
#define FARM2 UINT64_C(0x9ae16a3b2f90404f)

struct pair {
  uint64_t a, b;
};

static uint64_t shift_mix(uint64_t v) { return v ^ v >> 47; }

static uint64_t farm_join(uint64_t u, uint64_t v, uint64_t factor) {
  uint64_t a = shift_mix((u ^ v) * factor);
  return shift_mix((v ^ a) * factor) * factor;
}

static uint64_t farm_to_16(const unsigned char *s, size_t size) {
  uint64_t factor = FARM2 + size * 2;
  if (size >= 8) {
    uint64_t a = word64(s) + FARM2, b = word64(s + size - 8);
    return farm_join(rotate_right(b, 37) * factor + a, (rotate_right(a, 25) + b) * factor, factor);
  }
  if (size >= 4)
    return farm_join(size + (word32(s) << 3), word32(s + size - 4), factor);
  if (size == 0)
    return FARM2;
  uint32_t y = s[0] + ((uint32_t)s[size >> 1] << 8), z = (uint32_t)size + ((uint32_t)s[size - 1] << 2);
  return shift_mix(y * FARM2 ^ z * FARM0) * FARM2;
}

static uint64_t farm_to_32(const unsigned char *s, size_t size) {
  uint64_t factor = FARM2 + size * 2, a = word64(s) * FARM1, b = word64(s + 8);
  uint64_t c = word64(s + size - 8) * factor, d = word64(s + size - 16) * FARM2;
  return farm_join(rotate_right(a + b, 43) + rotate_right(c, 30) + d, a + rotate_right(b + FARM2, 18) + c, factor);
}

static uint64_t farm_to_64(const unsigned char *s, size_t size) {
  uint64_t factor = FARM2 + size * 2, a = word64(s) * FARM2, b = word64(s + 8);
  uint64_t c = word64(s + size - 8) * factor, d = word64(s + size - 16) * FARM2;
  uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
  uint64_t z = farm_join(y, a + rotate_right(b + FARM2, 18) + c, factor);
  uint64_t e = word64(s + 16) * factor, f = word64(s + 24);
  uint64_t g = (y + word64(s + size - 32)) * factor, h = (z + word64(s + size - 24)) * factor;
  return farm_join(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g, factor);
}

/* 32 bytes and two seeds. */
static struct pair farm_weak(const unsigned char *s, uint64_t a, uint64_t b) {
  uint64_t z = word64(s + 24);
  a += word64(s);
  b = rotate_right(b + a + z, 21);
  uint64_t first = a;
  a += word64(s + 8) + word64(s + 16);
  b += rotate_right(a, 44);
  return (struct pair){a + z, b + first};
}

struct farm {
  uint64_t x, y, z;
  struct pair v, w;
};

static void farm_round(struct farm *f, const unsigned char *s, uint64_t factor, uint64_t weight) {
  uint64_t x = rotate_right(f->x + f->y + f->v.a + word64(s + 8), 37) * factor;
  uint64_t y = rotate_right(f->y + f->v.b + word64(s + 48), 42) * factor;
  x ^= f->w.b * weight;
  y += f->v.a * weight + word64(s + 40);
  uint64_t z = rotate_right(f->z + f->w.a, 33) * factor;
  f->v = farm_weak(s, f->v.b * factor, x + f->w.a);
  f->w = farm_weak(s + 32, z + f->w.b, y + word64(s + 16));
  f->x = z;
  f->y = y;
  f->z = x;
}

uint64_t hash_farm(const void *data, size_t size) {
  const unsigned char *s = data;
  if (size <= 64)
    return size <= 16 ? farm_to_16(s, size) : size <= 32 ? farm_to_32(s, size) : farm_to_64(s, size);
  const uint64_t seed = 81;
  struct farm f = {.x = seed * FARM2 + word64(s), .y = seed * FARM1 + 113};
  f.z = shift_mix(f.y * FARM2 + 113) * FARM2;
  const unsigned char *end = s + (size - 1) / 64 * 64, *last = s + size - 64;
  for (; s != end; s += 64)
    farm_round(&f, s, FARM1, 1);
  uint64_t factor = FARM1 + ((f.z & 0xff) << 1);
  f.w.a += (size - 1) & 63;
  f.v.a += f.w.a;
  f.w.a += f.v.a;
  farm_round(&f, last, factor, 9);
  return farm_join(farm_join(f.v.a, f.w.a, factor) + shift_mix(f.y) * FARM0 + f.z, farm_join(f.v.b, f.w.b, factor) + f.x, factor);
}

/* ---- farm, 128 bits ---- */

static uint64_t city_join(uint64_t u, uint64_t v) { return farm_join(u, v, UINT64_C(0x9ddfea08eb382d69)); }
static uint64_t city_mix(uint64_t v) { return shift_mix(v * FARM1) * FARM1; }

static void city_short(const unsigned char *s, size_t size, uint64_t a, uint64_t b, uint64_t out[2]) {
  uint64_t c, d;
  if (size <= 16) {
    a = city_mix(a);
    c = b * FARM1 + farm_to_16(s, size);
    d = shift_mix(a + (size >= 8 ? word64(s) : c));
  } else {
    c = city_join(word64(s + size - 8) + FARM1, a);
    d = city_join(b + size, c + word64(s + size - 16));
    a += d;
    for (const unsigned char *end = s + size - 16; s < end; s += 16) {
      a = (a ^ city_mix(word64(s))) * FARM1;
      b ^= a;
      c = (c ^ city_mix(word64(s + 8))) * FARM1;
      d ^= c;
    }
  }
  a = city_join(a, c);
  b = city_join(d, b);
  out[0] = a ^ b;
  out[1] = city_join(b, a);
}

/* The last bytes, fewer than 128, in steps of 32 from the end; they may reach back into what has been read. */
static void city_tail(struct farm *f, const unsigned char *s, size_t size) {
  for (size_t done = 32; done < size + 32; done += 32) {
    const unsigned char *at = s + size - done;
    f->y = rotate_right(f->x + f->y, 42) * FARM0 + f->v.b;
    f->w.a += word64(at + 16);
    f->x = f->x * FARM0 + f->w.a;
    f->z += f->w.b + word64(at);
    f->w.b += f->v.a;
    f->v = farm_weak(at, f->v.a + f->z, f->v.b);
    f->v.a *= FARM0;
  }
}

static void city_long(const unsigned char *s, size_t size, uint64_t a, uint64_t b, uint64_t out[2]) {
  struct farm f = {.x = a, .y = b, .z = size * FARM1};
  f.v.a = rotate_right(f.y ^ FARM1, 49) * FARM1 + word64(s);
  f.v.b = rotate_right(f.v.a, 42) * FARM1 + word64(s + 8);
  f.w.a = rotate_right(f.y + f.z, 35) * FARM1 + f.x;
  f.w.b = rotate_right(f.x + word64(s + 88), 53) * FARM1;
  for (; size >= 128; s += 128, size -= 128) {
    farm_round(&f, s, FARM1, 1);
    farm_round(&f, s + 64, FARM1, 1);
  }
  f.x += rotate_right(f.v.a + f.z, 49) * FARM0;
  f.y = f.y * FARM0 + rotate_right(f.w.b, 37);
  f.z = f.z * FARM0 + rotate_right(f.w.a, 27);
  f.w.a *= 9;
  f.v.a *= FARM0;
  city_tail(&f, s, size);
  uint64_t x = city_join(f.x, f.v.a), y = city_join(f.y + f.z, f.w.a);
  out[0] = city_join(x + f.v.b, f.w.b) + y;
  out[1] = city_join(x + f.w.b, y + f.v.b);
}

void hash_farm_128(const void *data, size_t size, uint64_t out[2]) {
  const unsigned char *s = data;
  uint64_t a = FARM0, b = FARM1;
  if (size >= 16) {
    a = word64(s);
    b = word64(s + 8) + FARM0;
    s += 16;
    size -= 16;
  }
  if (size < 128)
    city_short(s, size, a, b, out);
  else
    city_long(s, size, a, b, out);
}

/* ---- sip ---- */

static void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = rotate_left(v[1], 13) ^ v[0];
  v[3] = rotate_left(v[3], 16) ^ v[2];
  v[0] = rotate_left(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = rotate_left(v[1], 17) ^ v[2];
  v[3] = rotate_left(v[3], 21) ^ v[0];
  v[2] = rotate_left(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word) {
  v[3] ^= word;
  sip_round(v);
  sip_round(v);
  v[0] ^= word;
}

uint64_t hash_sip(uint64_t key0, uint64_t key1, const void *data, size_t size) {
  uint64_t v[4] = {key0 ^ UINT64_C(0x736f6d6570736575), key1 ^ UINT64_C(0x646f72616e646f6d), key0 ^ UINT64_C(0x6c7967656e657261),
                   key1 ^ UINT64_C(0x7465646279746573)};
  const unsigned char *p = data;
  uint64_t tail = (uint64_t)size << 56;
  for (; size >= 8; p += 8, size -= 8)
    sip_word(v, word64(p));
  for (size_t i = 0; i < size; i++)
    tail |= (uint64_t)p[i] << (8 * i);
  sip_word(v, tail);
  v[2] ^= 0xff;
  for (int i = 0; i < 4; i++)
    sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- joining ---- */

static uint64_t fold(uint64_t x) { return x ^ (x >> 47); }

uint64_t hash_join(uint64_t first, uint64_t second) {
  const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
  uint64_t hash = ((first ^ factor) ^ fold(second * factor) * factor) * factor;
  return fold(fold(hash) * factor);
}
