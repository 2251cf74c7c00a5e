/* checkpoint.h: TensorBundle, the files that TensorFlow keeps variables in: `prefix.index` says where in
 * `prefix.data-0000i-of-0000n` the bytes of a key are (tensor_bundle.proto). A partitioned variable's entry has slices only,
 * each stored under a key of its own.
 *
 * Files are untrusted: memory is taken only for bytes that are there, checksums are verified. Everything read is in the arena.
 * One thread.
 */
#ifndef TFC_BASE_CHECKPOINT_H
#define TFC_BASE_CHECKPOINT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/bundle_table.h"
#include "base/tensor.h"

/* A part of a tensor: per dimension where it begins and how long it is; -1: all of it. */
struct checkpoint_slice {
  int rank;
  int64_t start[LIMIT_RANK], length[LIMIT_RANK];
};
struct checkpoint_entry {
  enum dtype dtype;
  struct shape shape;
  int32_t shard;
  int64_t offset, size;
  uint32_t crc;                          /* masked */
  const struct checkpoint_slice *slices; /* then the fields from shard on say nothing */
  uint32_t slice_count;
};
struct checkpoint_value {
  enum dtype dtype;
  struct shape shape;
  int64_t count;
  void *data; /* strings: struct string_view */
};

struct checkpoint;

/* A checkpoint of the first form (checkpoint_v1.h) is read as well: the prefix is then the file. NOT_FOUND without either; DATA_LOSS,
 * UNIMPLEMENTED: an index that cannot be read. */
status checkpoint_open(const char *prefix, struct arena *arena, struct checkpoint **out);
/* What checkpoint_writer_set_note wrote: a field of the header that TensorFlow's readers do not know. *size is 0 without one. */
#define CHECKPOINT_NOTE_FIELD 1000
#define CHECKPOINT_NOTE_BYTES_MAX ((size_t)1 << 19)
const void *checkpoint_note(const struct checkpoint *checkpoint, size_t *size);
/* All keys: for merging. */
const struct bundle_table *checkpoint_table(const struct checkpoint *checkpoint);
int32_t checkpoint_shards(const struct checkpoint *checkpoint);
/* What the index says of a tensor. NOT_FOUND `Key K not found in checkpoint`. */
status checkpoint_find(const struct checkpoint *checkpoint, const char *key, struct checkpoint_entry *out);
/* The value of an entry; slices are put together. */
status checkpoint_read(const struct checkpoint *checkpoint, const char *key, struct checkpoint_value *out);

/* ---- slices ---- */

/* The text "10 4 0,5:-": the whole tensor's sizes, then for each dimension the start and length, or - for all of it.
 * INVALID_ARGUMENT: another form, or a slice outside of its tensor. */
status checkpoint_slice_parse(const char *text, struct shape *whole, struct checkpoint_slice *slice);
struct shape checkpoint_slice_shape(const struct shape *whole, const struct checkpoint_slice *slice);

/* ---- the parts that files are made of ---- */

status checkpoint_entry_parse(const void *data, size_t size, struct arena *arena, struct checkpoint_entry *out);
/* The key under which a slice is stored (ordered code), in the arena. */
const char *checkpoint_slice_key(const char *name, const struct checkpoint_slice *slice, struct arena *arena, size_t *size);
/* Copies `part`, which is the slice of `whole`, into its place or out of it. DATA_LOSS when it does not fit. */
status checkpoint_slice_copy(const struct checkpoint_slice *slice, const struct shape *whole, size_t element_size, void *whole_data,
                             void *part_data, bool out_of_whole);

#endif
