/* import.h: from protobuf messages to the graph of ir/graph/graph.h; shared by the readers and by function bodies. */
#ifndef TFC_COMPILER_READ_IMPORT_H
#define TFC_COMPILER_READ_IMPORT_H

#include "ir/graph/graph.h"
#include "tensorflow.pb-c.h"

/* Copies everything: the message may be freed afterwards. Errors name the node and the attribute. */
status import_graph(const Tensorflow__GraphDef *def, struct arena *arena, struct graph **out);
status import_attrs(const Tensorflow__AttrEntry *const *entries, size_t count, struct arena *arena, const struct attr **out);
/* Adds a function to the graph's library; its body stays text until it is instantiated (ir/graph/function.h). */
status import_function(struct graph *graph, const Tensorflow__FunctionDef *def);
/* One tensor with all elements laid out; sizes are checked against the shape before memory is taken. Before the first of
 * a file: import_tensor_begin, which sets what repeated values may fill in all. */
void import_tensor_begin(void);
status import_tensor(const Tensorflow__TensorProto *proto, struct arena *arena, const struct constant **out);

void import_shape(const Tensorflow__TensorShapeProto *shape, struct arena *arena, struct attr_value *out);

/* MetaGraphDef: the graph, and its signatures, collections and saver. */
status import_meta(const Tensorflow__MetaGraphDef *meta, struct arena *arena, struct model *out);
/* import_runners.c: the queue runners and savers among its collections. INVALID_ARGUMENT: one of them is damaged. */
status import_runners(struct arena *arena, struct model *out);
/* object_graph.c: the objects of a SavedModel of TensorFlow 2. */
void import_objects(const Tensorflow__SavedObjectGraph *def, struct arena *arena, struct model *out);
/* import_methods.c: what a concrete function takes and gives; the functions of the root object, after its objects. */
void import_structure(const Tensorflow__SavedConcreteFunction *def, struct arena *arena, struct captures *out);
void import_methods(const Tensorflow__SavedObjectGraph *def, struct arena *arena, struct model *out);
/* import_places.c: where nodes come from, into the graph. */
void import_places(const Tensorflow__GraphDebugInfo *def, struct graph *graph);
/* wire_check.c: whether bytes may be unpacked as that message. INVALID_ARGUMENT: damaged, too deep; RESOURCE_EXHAUSTED:
 * what it would take in memory is out of proportion. */
status wire_check(const ProtobufCMessageDescriptor *message, const void *data, size_t size);

#endif
