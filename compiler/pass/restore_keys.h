/* restore_keys.h: under which key of a SavedModel's checkpoint each variable's value is, as its restore operation says. */
#ifndef TFC_COMPILER_PASS_RESTORE_KEYS_H
#define TFC_COMPILER_PASS_RESTORE_KEYS_H

#include "ir/graph/graph.h"

struct restore_key {
  const char *name, *container; /* of the variable, as in struct flow_var */
  const char *key;              /* in the checkpoint */
  bool is_sum;                  /* the model says so (struct object) */
  const char *slice;            /* "10 4 0,5:-": the part of the tensor under the key; "": all of it */
};
struct restore_keys {
  struct restore_key *items; /* a VEC */
  uint32_t count, capacity;
};

/* A table whose contents the restore operation imports. */
struct restore_table {
  struct edge handle;        /* in the model's graph */
  const char *keys, *values; /* keys in the checkpoint */
};
struct restore_tables {
  struct restore_table *items; /* a VEC */
  uint32_t count, capacity;
};

/* Appends one for each assignment of a restored value; none when the model has no restore operation. Texts in the arena. */
status restore_keys_find(const struct model *model, struct arena *arena, struct restore_keys *out);
/* The same for tables. */
status restore_tables_find(const struct model *model, struct arena *arena, struct restore_tables *out);

/* The same for variables that functions have captured: object_keys has the key of each of model->objects, or NULL. */
void restore_keys_of_objects(const struct model *model, const char *const *object_keys, struct arena *arena, struct restore_keys *out);

#endif
