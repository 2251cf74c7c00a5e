/* read.h: readers of what TensorFlow writes. All input is untrusted: sizes, nesting, counts and products of dimensions
 * are checked before memory is taken (base/limits.h); errors are INVALID_ARGUMENT with the place, NOT_FOUND for files. */
#ifndef TFC_COMPILER_READ_H
#define TFC_COMPILER_READ_H

#include "ir/graph/graph.h"

/* Reads a GraphDef (binary or text), MetaGraphDef or SavedModel folder; told apart by content. `out` is empty but for its `tags`. */
status model_read(const char *path, struct arena *arena, struct model *out);
/* The same from bytes (no SavedModel). */
status model_parse(const void *data, size_t size, struct arena *arena, struct model *out);

/* TensorBundle, for a SavedModel's variables: the tensor under a key. NOT_FOUND `Key K not found in checkpoint`. */
struct bundle;
status bundle_open(const char *prefix, struct arena *arena, struct bundle **out);
status bundle_read(struct bundle *bundle, const char *key, struct constant *out);

/* object_graph.c: the keys under which the bundle has the values of the model's objects, one for each of model->objects, in
 * the arena; NULL where it has none. The bundle has a graph of objects of its own, which may number them in another way:
 * objects are the same when they are reached by the same names. All NULL when the bundle has no such graph. */
status object_keys_read(struct bundle *bundle, const struct model *model, struct arena *arena, const char ***out);

#endif
