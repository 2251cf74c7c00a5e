/* object_graph.c: TensorFlow 2 saves objects, not names: which object is under which key of a checkpoint is in a graph of
 * objects, a string that the checkpoint itself holds. */
#include <stdlib.h>
#include <string.h>

#include "compiler/read/import.h"
#include "compiler/read/read.h"

#define AGGREGATION_SUM 1 /* VariableAggregation of TensorFlow's variable.proto */

void import_objects(const Tensorflow__SavedObjectGraph *def, struct arena *arena, struct model *out) {
  for (size_t i = 0; i < def->n_nodes; i++) {
    const Tensorflow__SavedObject *from = def->nodes[i];
    struct object_child *children = ARENA_ARRAY(arena, struct object_child, from->n_children + 1);
    for (size_t k = 0; k < from->n_children; k++)
      children[k] = (struct object_child){arena_strdup(arena, from->children[k]->local_name), (uint32_t)from->children[k]->node_id};
    struct object object = {.children = children, .child_count = (uint32_t)from->n_children};
    if (from->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CONSTANT)
      object.constant = arena_strdup(arena, from->constant->operation);
    if (from->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_ASSET && from->asset->asset_file_def_index >= 0)
      object.asset = (uint32_t)from->asset->asset_file_def_index + 1;
    object.is_sum = from->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE && from->variable->aggregation == AGGREGATION_SUM;
    vec_push(&out->objects, object);
  }
  for (size_t i = 0; i < def->n_concrete_functions; i++) {
    const Tensorflow__SavedConcreteFunction *from = def->concrete_functions[i]->value;
    if (!from)
      continue;
    uint32_t *objects = ARENA_ARRAY(arena, uint32_t, from->n_bound_inputs + 1);
    for (size_t k = 0; k < from->n_bound_inputs; k++)
      objects[k] = (uint32_t)from->bound_inputs[k];
    struct captures captures = {
      .function = arena_strdup(arena, def->concrete_functions[i]->key), .objects = objects, .count = (uint32_t)from->n_bound_inputs};
    import_structure(from, arena, &captures);
    vec_push(&out->captures, captures);
  }
  import_methods(def, arena, out);
}

/* ---- the checkpoint's graph ---- */

typedef Tensorflow__TrackableObjectGraph__TrackableObject trackable;

/* Of what is no variable the first, such as what the keys of a table begin with. */
static const char *key_of(const trackable *object, struct arena *arena) {
  for (size_t i = 0; i < object->n_attributes; i++)
    if (strcmp(object->attributes[i]->name, "VARIABLE_VALUE") == 0)
      return arena_strdup(arena, object->attributes[i]->checkpoint_key);
  return object->n_attributes ? arena_strdup(arena, object->attributes[0]->checkpoint_key) : NULL;
}

/* Walks both graphs from their roots along the names that they share. */
static void match_objects(const struct model *model, const Tensorflow__TrackableObjectGraph *saved, struct arena *arena,
                          const char **keys) {
  uint32_t *partner = ARENA_ARRAY(arena, uint32_t, model->objects.count + 1); /* number + 1 */
  VEC(uint32_t) open = {0};
  if (model->objects.count && saved->n_nodes) {
    partner[0] = 1;
    vec_push(&open, 0);
  }
  while (open.count) {
    uint32_t at = open.items[--open.count];
    const struct object *object = &model->objects.items[at];
    const trackable *other = saved->nodes[partner[at] - 1];
    keys[at] = key_of(other, arena);
    for (uint32_t i = 0; i < object->child_count; i++) {
      uint32_t child = object->children[i].object;
      for (size_t k = 0; k < other->n_children && child < model->objects.count && !partner[child]; k++)
        if (strcmp(other->children[k]->local_name, object->children[i].name) == 0 && (size_t)other->children[k]->node_id < saved->n_nodes) {
          partner[child] = (uint32_t)other->children[k]->node_id + 1;
          vec_push(&open, child);
        }
    }
  }
  vec_free(&open);
}

static void *proto_alloc(void *arena, size_t size) { return arena_alloc(arena, size); }
static void proto_free(void *arena, void *p) { (void)arena, (void)p; }

status object_keys_read(struct bundle *bundle, const struct model *model, struct arena *arena, const char ***out) {
  *out = ARENA_ARRAY(arena, const char *, model->objects.count + 1);
  struct constant text;
  status s = model->objects.count ? bundle_read(bundle, "_CHECKPOINTABLE_OBJECT_GRAPH", &text) : NOT_FOUND;
  if (s != OK)
    return s == NOT_FOUND ? OK : s;
  if (text.dtype != DTYPE_STRING || text.count != 1)
    return fail(DATA_LOSS, "the checkpoint's graph of objects is no string");
  const struct string_view *bytes = text.data;
  const ProtobufCMessageDescriptor *descriptor = &tensorflow__trackable_object_graph__descriptor;
  TRY(wire_check(descriptor, bytes->data, bytes->size));
  ProtobufCAllocator allocator = {proto_alloc, proto_free, arena};
  ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, bytes->size, (const uint8_t *)bytes->data);
  if (!message)
    return fail(DATA_LOSS, "the checkpoint's graph of objects cannot be unpacked");
  match_objects(model, (const Tensorflow__TrackableObjectGraph *)(const void *)message, arena, *out);
  return OK;
}
