/* bundle_table_write.c: see bundle_table_write.h. */
#include "base/bundle_table_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/synced_file.h"

#define BLOCK_BYTES 262144
#define RESTART_EVERY 16
#define MAGIC UINT64_C(0xdb4775248b80fb57)

static void block_add(struct table_block *b, const char *key, size_t key_size, const void *value, size_t value_size) {
  size_t shared = 0;
  if (b->count % b->every == 0)
    vec_push(&b->restarts, (uint32_t)b->bytes.size);
  else
    while (shared < key_size && shared < b->last_size && key[shared] == b->last[shared])
      shared++;
  wire_put_number(&b->bytes, shared);
  wire_put_number(&b->bytes, key_size - shared);
  wire_put_number(&b->bytes, value_size);
  wire_put_raw(&b->bytes, key + shared, key_size - shared);
  wire_put_raw(&b->bytes, value, value_size);
  b->last = key;
  b->last_size = key_size;
  b->count++;
}

/* Writes the block behind what is there, and its place and size into `handle`. */
static void block_flush(struct table_block *b, struct wire_buffer *file, struct wire_buffer *handle) {
  if (b->restarts.count == 0)
    vec_push(&b->restarts, 0);
  for (uint32_t i = 0; i < b->restarts.count; i++)
    wire_put_raw(&b->bytes, &b->restarts.items[i], 4);
  wire_put_raw(&b->bytes, &b->restarts.count, 4);
  wire_put_number(handle, file->size);
  wire_put_number(handle, b->bytes.size);
  uint8_t type = 0;
  wire_put_raw(&b->bytes, &type, 1);
  uint32_t crc = crc32c_mask(crc32c(b->bytes.data, b->bytes.size));
  wire_put_raw(file, b->bytes.data, b->bytes.size);
  wire_put_raw(file, &crc, 4);
  file->is_bad = file->is_bad || b->bytes.is_bad;
  wire_buffer_free(&b->bytes);
  b->restarts.count = 0;
  b->count = 0;
  b->last_size = 0;
}

static void data_flush(struct table_writer *t) {
  struct wire_buffer handle = {0};
  const char *key = t->data.last;
  size_t key_size = t->data.last_size;
  block_flush(&t->data, t->file, &handle);
  block_add(&t->places, key, key_size, handle.data, handle.size);
  wire_buffer_free(&handle);
}

void table_begin(struct table_writer *t, struct wire_buffer *file) {
  *t = (struct table_writer){.file = file, .data = {.every = RESTART_EVERY}, .places = {.every = 1}};
}

void table_put(struct table_writer *t, const char *key, size_t key_size, const void *value, size_t value_size) {
  block_add(&t->data, key, key_size, value, value_size);
  if (t->data.bytes.size >= BLOCK_BYTES)
    data_flush(t);
}

void table_end(struct table_writer *t) {
  struct table_block meta = {.every = RESTART_EVERY};
  struct wire_buffer footer = {0};
  if (t->data.count)
    data_flush(t);
  block_flush(&meta, t->file, &footer);
  block_flush(&t->places, t->file, &footer);
  static const uint8_t zeros[40];
  uint64_t magic = MAGIC;
  wire_put_raw(&footer, zeros, 40 - footer.size);
  wire_put_raw(&footer, &magic, 8);
  wire_put_raw(t->file, footer.data, footer.size);
  wire_buffer_free(&footer);
  vec_free(&t->data.restarts);
  vec_free(&t->places.restarts);
  vec_free(&meta.restarts);
}

static status file_write(const char *path, const void *data, size_t size) {
  struct synced_file *file;
  TRY(synced_file_create(path, &file));
  status result = synced_file_put(file, data, size);
  if (result == OK)
    return synced_file_close(file);
  synced_file_destroy(file);
  return result;
}

status table_write(const struct wire_buffer *file, const char *path, struct arena *arena) {
  const char *temporary = arena_printf(arena, "%s.tempstate%d", path, (int)getpid());
  status result = file->is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for '%s'", path) : file_write(temporary, file->data, file->size);
  if (result == OK && rename(temporary, path) != 0)
    result = fail(DATA_LOSS, "'%s' cannot be made: %s", path, strerror(errno));
  if (result != OK)
    unlink(temporary);
  return result;
}
