/* checkpoint_v1.h: checkpoints of the first form (saved_tensor_slice.proto): one file, or one for each shard, each a
 * table like a bundle's index. Under the empty key it says which tensors and slices it has; each slice's values are a
 * TensorProto under the slice's key, the same as in a bundle (checkpoint_slice_key). Saver(write_version=V1), and
 * TensorFlow before 0.12. Files are untrusted. */
#ifndef TFC_BASE_CHECKPOINT_V1_H
#define TFC_BASE_CHECKPOINT_V1_H

#include "base/checkpoint.h"
#include "base/wire.h"

/* What the empty key of a file says. */
struct checkpoint_v1_meta {
  const uint8_t *data;
  size_t size;
};
struct checkpoint_v1 {
  struct bundle_table table; /* of all files together */
  struct checkpoint_v1_meta *metas;
  uint32_t meta_count;
};

/* `path`: a file, or a pattern with ? and * for those of several shards. NOT_FOUND when there is none. */
status checkpoint_v1_open(const char *path, struct arena *arena, struct checkpoint_v1 *out);
/* A tensor: its dtype, shape and slices. NOT_FOUND. */
status checkpoint_v1_find(const struct checkpoint_v1 *v1, const char *name, struct arena *arena, struct checkpoint_entry *out);
/* The values of one of its slices. */
status checkpoint_v1_read(const struct checkpoint_v1 *v1, const char *name, const struct checkpoint_entry *entry,
                          const struct checkpoint_slice *slice, struct arena *arena, struct checkpoint_value *out);

/* A tensor, or a part of one of shape `whole`, for a new file. */
struct checkpoint_v1_tensor {
  const char *name;
  struct shape whole;
  struct checkpoint_slice slice;
  const struct tensor *tensor;
};
status checkpoint_v1_write(const char *path, const struct checkpoint_v1_tensor *tensors, uint32_t count);

/* Messages that bundles have as well (checkpoint.c, checkpoint_write.c). */
status checkpoint_shape_message(struct wire wire, struct shape *out);
status checkpoint_slice_message(struct wire wire, struct checkpoint_slice *out);
void checkpoint_put_shape(struct wire_buffer *out, const struct shape *shape);
void checkpoint_put_slice(struct wire_buffer *out, uint32_t number, const struct checkpoint_slice *slice);

#endif
