/* bundle_table.c: a table file is data blocks, an index block that points at them, and a footer that points at that. In a
 * block each key is stored as what differs from the one before, so keys can be much larger than the file: their total is
 * bounded. */
#include "base/bundle_table.h"

#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"

#define FOOTER_BYTES 48
#define TRAILER_BYTES 5 /* of a block: type, checksum */
#define MAGIC UINT64_C(0xdb4775248b80fb57)
#define KEY_BYTES_MAX (64 << 10)

struct block {
  const uint8_t *at, *end; /* entries, without the restart points */
};
struct table_reader {
  const uint8_t *data;
  size_t size;
  struct arena *arena;
  size_t keys_left; /* bytes of keys that may still be made */
  VEC(struct bundle_item) items;
};

static uint64_t little_endian(const uint8_t *p, int bytes) {
  uint64_t v = 0;
  for (int i = bytes - 1; i >= 0; i--)
    v = v << 8 | p[i];
  return v;
}

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t max, uint64_t *out) {
  uint64_t v = 0;
  for (int shift = 0; shift < 64 && *at < end; shift += 7) {
    uint8_t byte = *(*at)++;
    v |= (uint64_t)(byte & 127) << shift;
    if (!(byte & 128)) {
      *out = v;
      return v <= max;
    }
  }
  return false;
}

/* The block that a handle (offset, size) points at. */
static status block_open(const struct table_reader *r, const uint8_t **at, const uint8_t *end, struct block *out) {
  uint64_t offset, size, room = r->size - FOOTER_BYTES;
  if (!take_varint(at, end, room, &offset) || !take_varint(at, end, room, &size) || size + TRAILER_BYTES > room - offset || size < 4)
    return fail(DATA_LOSS, "a block lies outside of the index");
  const uint8_t *data = r->data + offset;
  if (crc32c_mask(crc32c(data, size + 1)) != (uint32_t)little_endian(data + size + 1, 4))
    return fail(DATA_LOSS, "the checksum of a block does not match");
  if (data[size])
    return fail(UNIMPLEMENTED, "a compressed block (type %d)", data[size]);
  uint64_t restarts = little_endian(data + size - 4, 4);
  if (restarts > (size - 4) / 4)
    return fail(DATA_LOSS, "a block has %llu restart points", (unsigned long long)restarts);
  *out = (struct block){data, data + size - 4 - restarts * 4};
  return OK;
}

/* Takes one entry; `key` is the entry's before and becomes this one's. False at the end; DATA_LOSS in *result. */
static bool block_next(struct table_reader *r, struct block *b, struct bundle_item *item, status *result) {
  uint64_t shared, own, value;
  *result = OK;
  if (b->at >= b->end)
    return false;
  if (!take_varint(&b->at, b->end, item->key_size, &shared) || !take_varint(&b->at, b->end, KEY_BYTES_MAX - shared, &own) ||
      !take_varint(&b->at, b->end, UINT32_MAX, &value) || own + value > (uint64_t)(b->end - b->at)) {
    *result = fail(DATA_LOSS, "an entry of the index is cut off");
    return false;
  }
  size_t key_size = (size_t)(shared + own);
  if (key_size > r->keys_left) {
    *result = fail(RESOURCE_EXHAUSTED, "the keys of the index are out of proportion to its size");
    return false;
  }
  r->keys_left -= key_size;
  char *key = arena_alloc_aligned(r->arena, key_size + 1, 1);
  if (shared)
    memcpy(key, item->key, (size_t)shared);
  memcpy(key + shared, b->at, (size_t)own);
  *item = (struct bundle_item){key, (uint32_t)key_size, (uint32_t)value, b->at + own};
  b->at += own + value;
  return true;
}

int bundle_key_order(const void *a, size_t a_size, const void *b, size_t b_size) {
  int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
  return order ? order : (a_size > b_size) - (a_size < b_size);
}

static status data_block_read(struct table_reader *r, struct block block) {
  struct bundle_item item = {.key = ""};
  status result;
  while (block_next(r, &block, &item, &result)) {
    if (r->items.count) {
      const struct bundle_item *before = &vec_last(&r->items);
      if (bundle_key_order(before->key, before->key_size, item.key, item.key_size) >= 0)
        return fail(DATA_LOSS, "the keys of the index are not in order");
    }
    vec_push(&r->items, item);
  }
  return result;
}

static status table_read(struct table_reader *r) {
  if (r->size < FOOTER_BYTES || little_endian(r->data + r->size - 8, 8) != MAGIC)
    return fail(DATA_LOSS, "is no index of a checkpoint");
  const uint8_t *footer = r->data + r->size - FOOTER_BYTES, *end = footer + FOOTER_BYTES - 8;
  uint64_t ignored;
  if (!take_varint(&footer, end, UINT64_MAX, &ignored) || !take_varint(&footer, end, UINT64_MAX, &ignored))
    return fail(DATA_LOSS, "the footer of the index is damaged");
  struct block index, block;
  TRY(block_open(r, &footer, end, &index));
  struct bundle_item item = {.key = ""};
  status result;
  while (block_next(r, &index, &item, &result)) {
    const uint8_t *handle = item.value;
    TRY(block_open(r, &handle, item.value + item.value_size, &block));
    TRY(data_block_read(r, block));
  }
  return result;
}

status bundle_table_parse(const void *data, size_t size, struct arena *arena, struct bundle_table *out) {
  struct table_reader r = {.data = data, .size = size, .arena = arena, .keys_left = size * 64 + (1 << 20)};
  status result = table_read(&r);
  if (result == OK) {
    out->items = arena_copy(arena, r.items.items, r.items.count * sizeof *r.items.items);
    out->count = r.items.count;
  }
  vec_free(&r.items);
  return result;
}

const struct bundle_item *bundle_table_find(const struct bundle_table *table, const void *key, size_t key_size) {
  uint32_t low = 0, high = table->count;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    const struct bundle_item *item = &table->items[mid];
    int order = bundle_key_order(item->key, item->key_size, key, key_size);
    if (!order)
      return item;
    if (order < 0)
      low = mid + 1;
    else
      high = mid;
  }
  return NULL;
}
