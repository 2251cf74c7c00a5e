/* tensor_bundle.c: a checkpoint's tensors as constants of the compilation. */
#include <string.h>

#include "base/checkpoint.h"
#include "compiler/read/read.h"

status bundle_open(const char *prefix, struct arena *arena, struct bundle **out) {
  struct checkpoint *checkpoint;
  TRY(checkpoint_open(prefix, arena, &checkpoint));
  *out = (struct bundle *)checkpoint;
  return OK;
}

status bundle_read(struct bundle *bundle, const char *key, struct constant *out) {
  struct checkpoint_value value;
  TRY(checkpoint_read((struct checkpoint *)bundle, key, &value));
  *out = (struct constant){.dtype = value.dtype, .rank = value.shape.rank, .count = value.count, .data = value.data};
  memcpy(out->dims, value.shape.dims, sizeof out->dims);
  return OK;
}
