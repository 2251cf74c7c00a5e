/* checkpoint_write.c: data goes to its file as it comes; the index is kept and written at the end, sorted. */
#include "base/checkpoint_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bundle_table_write.h"
#include "base/checkpoint_v1.h"
#include "base/crc32c.h"
#include "base/folders.h"
#include "base/map.h"
#include "base/synced_file.h"
#include "base/vec.h"
#include "base/wire.h"

#define PART_BYTES ((size_t)64 << 10)

/* ---- the index: a table of sorted keys ---- */

struct index_item {
  const char *key;
  size_t key_size;
  struct checkpoint_entry entry;
};
struct index {
  struct arena arena;
  const void *note;
  size_t note_size;
  VEC(struct index_item) items;
};

static int item_order(const void *a, const void *b) {
  const struct index_item *x = a, *y = b;
  return bundle_key_order(x->key, x->key_size, y->key, y->key_size);
}

void checkpoint_put_shape(struct wire_buffer *out, const struct shape *shape) {
  struct wire_buffer all = {0};
  for (int i = 0; i < shape->rank; i++) {
    struct wire_buffer dim = {0};
    if (shape->dims[i])
      wire_put_varint(&dim, 1, (uint64_t)shape->dims[i]);
    wire_put_message(&all, 2, &dim);
  }
  wire_put_message(out, 2, &all);
}

void checkpoint_put_slice(struct wire_buffer *out, uint32_t number, const struct checkpoint_slice *slice) {
  struct wire_buffer all = {0};
  for (int i = 0; i < slice->rank; i++) {
    struct wire_buffer extent = {0};
    if (slice->length[i] >= 0 && slice->start[i])
      wire_put_varint(&extent, 1, (uint64_t)slice->start[i]);
    if (slice->length[i] >= 0)
      wire_put_varint(&extent, 2, (uint64_t)slice->length[i]);
    wire_put_message(&all, 1, &extent);
  }
  wire_put_message(out, number, &all);
}

static void put_entry(struct wire_buffer *out, const struct checkpoint_entry *e) {
  wire_put_varint(out, 1, e->dtype);
  checkpoint_put_shape(out, &e->shape);
  if (e->slice_count == 0) {
    if (e->shard)
      wire_put_varint(out, 3, (uint64_t)e->shard);
    if (e->offset)
      wire_put_varint(out, 4, (uint64_t)e->offset);
    if (e->size)
      wire_put_varint(out, 5, (uint64_t)e->size);
    uint8_t tag = 6 << 3 | WIRE_FIXED32;
    wire_put_raw(out, &tag, 1);
    wire_put_raw(out, &e->crc, 4);
  }
  for (uint32_t i = 0; i < e->slice_count; i++)
    checkpoint_put_slice(out, 7, &e->slices[i]);
}

static void put_header(struct wire_buffer *out, const struct index *index, int32_t shards) {
  struct wire_buffer version = {0};
  wire_put_varint(out, 1, (uint64_t)shards);
  wire_put_varint(&version, 1, 1);
  wire_put_message(out, 3, &version);
  if (index->note_size)
    wire_put_bytes(out, CHECKPOINT_NOTE_FIELD, index->note, index->note_size);
}

static void index_bytes(struct index *index, int32_t shards, struct wire_buffer *file) {
  struct table_writer table;
  struct wire_buffer value = {0};
  table_begin(&table, file);
  put_header(&value, index, shards);
  table_put(&table, "", 0, value.data, value.size);
  wire_buffer_free(&value);
  if (index->items.count)
    qsort(index->items.items, index->items.count, sizeof *index->items.items, item_order);
  for (uint32_t i = 0; i < index->items.count; i++) {
    put_entry(&value, &index->items.items[i].entry);
    table_put(&table, index->items.items[i].key, index->items.items[i].key_size, value.data, value.size);
    file->is_bad = file->is_bad || value.is_bad;
    wire_buffer_free(&value);
  }
  table_end(&table);
}

static status index_write(struct index *index, int32_t shards, const char *prefix) {
  struct wire_buffer file = {0};
  index_bytes(index, shards, &file);
  status result = table_write(&file, arena_printf(&index->arena, "%s.index", prefix), &index->arena);
  wire_buffer_free(&file);
  return result;
}

static void index_init(struct index *index) {
  memset(index, 0, sizeof *index);
  arena_init(&index->arena);
}
static void index_deinit(struct index *index) {
  arena_deinit(&index->arena);
  vec_free(&index->items);
}

/* ---- the writer ---- */

struct checkpoint_writer {
  struct index index;
  struct map names; /* key -> item */
  const char *prefix, *path, *temporary;
  struct synced_file *file;
  int64_t size;
};

status checkpoint_writer_create(const char *prefix, struct checkpoint_writer **out) {
  struct checkpoint_writer *w = calloc(1, sizeof *w);
  if (!w)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  index_init(&w->index);
  w->prefix = arena_strdup(&w->index.arena, prefix);
  w->path = arena_printf(&w->index.arena, "%s.data-00000-of-00001", prefix);
  w->temporary = arena_printf(&w->index.arena, "%s.tempstate%d", w->path, (int)getpid());
  status result = folder_make_above(prefix);
  if (result == OK)
    result = synced_file_create(w->temporary, &w->file);
  if (result == OK)
    *out = w;
  else
    checkpoint_writer_destroy(w);
  return result;
}

void checkpoint_writer_destroy(struct checkpoint_writer *w) {
  if (!w)
    return;
  synced_file_destroy(w->file);
  map_deinit(&w->names);
  index_deinit(&w->index);
  free(w);
}

static status put_bytes(struct checkpoint_writer *w, const void *data, size_t size) {
  w->size += (int64_t)size;
  return synced_file_put(w->file, data, size);
}

/* With their checksum, by parts that stay in the cache between the two. */
static status put_summed(struct checkpoint_writer *w, const void *data, size_t size, uint32_t *crc) {
  const char *at = data;
  for (size_t part; size > 0; at += part, size -= part) {
    part = size < PART_BYTES ? size : PART_BYTES;
    *crc = crc32c_extend(*crc, at, part);
    TRY(put_bytes(w, at, part));
  }
  return OK;
}

/* Lengths, their checksum, bytes: checkpoint.c reads them. */
static status put_strings(struct checkpoint_writer *w, const struct tensor *tensor, uint32_t *crc) {
  const struct string_view *views = tensor->data;
  struct wire_buffer lengths = {0};
  for (int64_t i = 0; i < tensor->count; i++) {
    wire_put_number(&lengths, views[i].size);
    *crc = crc32c_extend(*crc, &views[i].size, views[i].size > UINT32_MAX ? 8 : 4);
  }
  uint32_t masked = crc32c_mask(*crc);
  wire_put_raw(&lengths, &masked, 4);
  *crc = crc32c_extend(*crc, &masked, 4);
  status result = lengths.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory") : put_bytes(w, lengths.data, lengths.size);
  wire_buffer_free(&lengths);
  for (int64_t i = 0; i < tensor->count && result == OK; i++) {
    *crc = crc32c_extend(*crc, views[i].data, (size_t)views[i].size);
    result = put_bytes(w, views[i].data, (size_t)views[i].size);
  }
  return result;
}

static status put_tensor(struct checkpoint_writer *w, const struct tensor *tensor, struct checkpoint_entry *out) {
  uint32_t crc = 0;
  *out = (struct checkpoint_entry){.dtype = tensor->dtype, .shape = tensor->shape, .offset = w->size};
  if (tensor->dtype == DTYPE_RESOURCE || tensor->dtype == DTYPE_VARIANT)
    return fail(UNIMPLEMENTED, "a %s in a checkpoint", dtype_name(tensor->dtype));
  if (tensor->dtype == DTYPE_STRING) {
    TRY(put_strings(w, tensor, &crc));
  } else {
    TRY(put_summed(w, tensor->data, (size_t)tensor_byte_size(tensor), &crc));
  }
  out->size = w->size - out->offset;
  out->crc = crc32c_mask(crc);
  return OK;
}

static void add_item(struct index *index, const char *key, size_t size, const struct checkpoint_entry *entry) {
  vec_push(&index->items, (struct index_item){arena_strndup(&index->arena, key, size), size, *entry});
}

status checkpoint_writer_add(struct checkpoint_writer *w, const char *key, const struct tensor *tensor) {
  struct checkpoint_entry entry;
  const char *kept = arena_strdup(&w->index.arena, key);
  if (!*key || !map_insert(&w->names, kept, w->index.items.count))
    return fail(INVALID_ARGUMENT, "Adding duplicate key: %s", key);
  TRY(put_tensor(w, tensor, &entry));
  add_item(&w->index, kept, strlen(kept), &entry);
  return OK;
}

/* Appends a slice to an entry's list. */
static void entry_add_slices(struct index *index, struct checkpoint_entry *entry, const struct checkpoint_slice *slices, uint32_t count) {
  struct checkpoint_slice *all = ARENA_ARRAY(&index->arena, struct checkpoint_slice, entry->slice_count + count);
  if (entry->slice_count)
    memcpy(all, entry->slices, entry->slice_count * sizeof *all);
  memcpy(all + entry->slice_count, slices, count * sizeof *all);
  entry->slices = all;
  entry->slice_count += count;
}

status checkpoint_writer_add_slice(struct checkpoint_writer *w, const char *key, const struct shape *whole,
                                   const struct checkpoint_slice *slice, const struct tensor *tensor) {
  struct checkpoint_entry entry = {.dtype = tensor->dtype, .shape = *whole};
  const char *kept = arena_strdup(&w->index.arena, key);
  uint32_t at = w->index.items.count;
  if (map_insert(&w->names, kept, at))
    add_item(&w->index, kept, strlen(kept), &entry);
  else
    map_find(&w->names, kept, &at);
  entry_add_slices(&w->index, &w->index.items.items[at].entry, slice, 1);
  TRY(put_tensor(w, tensor, &entry));
  size_t size;
  const char *slice_key = checkpoint_slice_key(key, slice, &w->index.arena, &size);
  add_item(&w->index, slice_key, size, &entry);
  return OK;
}

status checkpoint_writer_set_note(struct checkpoint_writer *w, const void *data, size_t size) {
  if (size > CHECKPOINT_NOTE_BYTES_MAX)
    return fail(RESOURCE_EXHAUSTED, "a note of %zu bytes in a checkpoint", size);
  w->index.note = arena_strndup(&w->index.arena, data, size);
  w->index.note_size = size;
  return OK;
}

status checkpoint_writer_close(struct checkpoint_writer *w) {
  status result = synced_file_close(w->file);
  w->file = NULL;
  if (result == OK && rename(w->temporary, w->path) != 0) {
    result = fail(DATA_LOSS, "'%s' cannot be made: %s", w->path, strerror(errno));
    unlink(w->temporary);
  }
  if (result == OK)
    result = index_write(&w->index, 1, w->prefix);
  if (result == OK)
    result = synced_folder_of(w->path);
  checkpoint_writer_destroy(w);
  return result;
}

/* ---- merging ---- */

struct merge {
  struct index index;
  struct map names;
  int32_t shards; /* of those before */
};

static status merge_items(struct merge *m, const struct checkpoint *part) {
  const struct bundle_table *table = checkpoint_table(part);
  for (uint32_t i = 0; i < table->count; i++) {
    const struct bundle_item *item = &table->items[i];
    struct checkpoint_entry entry;
    if (item->key_size == 0)
      continue; /* the header */
    TRY(checkpoint_entry_parse(item->value, item->value_size, &m->index.arena, &entry));
    entry.shard += m->shards;
    bool is_name = item->key[0] != 0; /* keys of slices begin with a zero */
    const char *key = arena_strndup(&m->index.arena, item->key, item->key_size);
    uint32_t at = m->index.items.count;
    if (is_name && !map_insert(&m->names, key, at)) {
      map_find(&m->names, key, &at);
      struct checkpoint_entry *first = &m->index.items.items[at].entry;
      if (!entry.slice_count || !first->slice_count)
        return fail(INVALID_ARGUMENT, "Duplicate tensor keyed by %s encountered, when merging", key);
      entry_add_slices(&m->index, first, entry.slices, entry.slice_count);
      continue;
    }
    add_item(&m->index, key, item->key_size, &entry);
  }
  return OK;
}

static status move_shards(struct arena *arena, const char *from, int32_t count, const char *to, int32_t first, int32_t total) {
  for (int32_t i = 0; i < count; i++) {
    const char *old = arena_printf(arena, "%s.data-%05d-of-%05d", from, i, count);
    const char *new = arena_printf(arena, "%s.data-%05d-of-%05d", to, first + i, total);
    if (rename(old, new) != 0)
      return fail(NOT_FOUND, "'%s' cannot become '%s': %s", old, new, strerror(errno));
  }
  return OK;
}

static status merge_all(struct merge *m, const char *const *prefixes, uint32_t count, const char *prefix, bool missing_is_fine) {
  struct arena *arena = &m->index.arena;
  int32_t *shards = ARENA_ARRAY(arena, int32_t, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    struct checkpoint *part;
    status s = checkpoint_open(prefixes[i], arena, &part);
    if (s == NOT_FOUND && missing_is_fine)
      continue;
    TRY(s);
    TRY(merge_items(m, part));
    shards[i] = checkpoint_shards(part);
    m->shards += shards[i];
  }
  TRY(folder_make_above(prefix));
  for (uint32_t i = 0, first = 0; i < count; first += (uint32_t)shards[i++])
    TRY(move_shards(arena, prefixes[i], shards[i], prefix, (int32_t)first, m->shards));
  TRY(index_write(&m->index, m->shards ? m->shards : 1, prefix));
  for (uint32_t i = 0; i < count; i++)
    unlink(arena_printf(arena, "%s.index", prefixes[i]));
  return OK;
}

status checkpoint_merge(const char *const *prefixes, uint32_t count, const char *prefix, bool missing_is_fine) {
  struct merge m = {0};
  index_init(&m.index);
  status result = merge_all(&m, prefixes, count, prefix, missing_is_fine);
  map_deinit(&m.names);
  index_deinit(&m.index);
  return result;
}

/* ---- another note ---- */

static status replace_note(struct merge *m, const char *prefix, const void *note, size_t size) {
  struct checkpoint *whole;
  TRY(checkpoint_open(prefix, &m->index.arena, &whole));
  TRY(merge_items(m, whole));
  m->index.note = note;
  m->index.note_size = size;
  TRY(index_write(&m->index, checkpoint_shards(whole), prefix));
  return synced_folder_of(prefix);
}

status checkpoint_replace_note(const char *prefix, const void *note, size_t size) {
  struct merge m = {0};
  index_init(&m.index);
  status result = replace_note(&m, prefix, note, size);
  map_deinit(&m.names);
  index_deinit(&m.index);
  return result;
}
