/* object_names.h: checkpoints of TensorFlow 2's objects call a variable by the way to it from their root
 * (`layer/kernel/.ATTRIBUTES/VARIABLE_VALUE`), and hold a graph of the objects that says which name it has besides. */
#ifndef TFC_RUNTIME_CHECKPOINT_OBJECT_NAMES_H
#define TFC_RUNTIME_CHECKPOINT_OBJECT_NAMES_H

#include "base/checkpoint.h"
#include "base/map.h"

struct object_names {
  struct object_name {
    const char *name, *key;
  } * items; /* in the arena */
  uint32_t count;
};

/* Empty for a checkpoint without such a graph. DATA_LOSS: it cannot be read. */
status object_names_read(const struct checkpoint *checkpoint, struct arena *arena, struct object_names *out);
/* The key of the variable of this name; NULL: it has none. */
const char *object_names_key(const struct object_names *names, const char *name);

#endif
