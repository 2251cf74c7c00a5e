/* import_meta.c: what a MetaGraphDef says beside its graph: signatures, collections, how it is saved. */
#include <string.h>

#include "compiler/read/import.h"

static void import_signatures(const Tensorflow__MetaGraphDef *meta, struct arena *arena, struct model *out) {
  for (size_t i = 0; i < meta->n_signature_def; i++) {
    const Tensorflow__SignatureDef *def = meta->signature_def[i]->value;
    struct signature s = {.name = arena_strdup(arena, meta->signature_def[i]->key)};
    if (!def || strncmp(s.name, "__saved_model", 13) == 0)
      continue;
    for (size_t j = 0; j < def->n_inputs + def->n_outputs; j++) {
      const Tensorflow__TensorInfoEntry *e = j < def->n_inputs ? def->inputs[j] : def->outputs[j - def->n_inputs];
      if (!e->value || e->value->encoding_case != TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
        continue;
      struct signature_tensor t = {arena_strdup(arena, e->key), arena_strdup(arena, e->value->name)};
      if (j < def->n_inputs)
        vec_push(&s.inputs, t);
      else
        vec_push(&s.outputs, t);
    }
    vec_push(&out->signatures, s);
  }
}

static void import_collections(const Tensorflow__MetaGraphDef *meta, struct arena *arena, struct model *out) {
  for (size_t i = 0; i < meta->n_collection_def; i++) {
    const Tensorflow__CollectionDef *def = meta->collection_def[i]->value;
    if (!def)
      continue;
    size_t count = def->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST    ? def->node_list->n_value
                   : def->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST ? def->bytes_list->n_value
                                                                                   : 0;
    struct attr_value *items = ARENA_ARRAY(arena, struct attr_value, count + 1);
    for (size_t j = 0; j < count; j++) {
      bool nodes = def->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST;
      const void *data = nodes ? (const void *)def->node_list->value[j] : def->bytes_list->value[j].data;
      size_t size = nodes ? strlen(def->node_list->value[j]) : def->bytes_list->value[j].len;
      items[j].kind = ATTR_STRING;
      items[j].s.data = arena_strndup(arena, data ? data : "", size);
      items[j].s.size = size;
    }
    struct attr a = {.name = arena_strdup(arena, meta->collection_def[i]->key), .value = {.kind = ATTR_LIST}};
    a.value.list.items = items;
    a.value.list.count = (uint32_t)count;
    vec_push(&out->collections, a);
  }
}

status import_meta(const Tensorflow__MetaGraphDef *meta, struct arena *arena, struct model *out) {
  if (!meta->graph_def)
    return fail(INVALID_ARGUMENT, "the MetaGraphDef has no graph");
  TRY(import_graph(meta->graph_def, arena, &out->graph));
  import_signatures(meta, arena, out);
  import_collections(meta, arena, out);
  if (meta->saver_def) {
    out->restore_op = arena_strdup(arena, meta->saver_def->restore_op_name);
    out->restore_feed = arena_strdup(arena, meta->saver_def->filename_tensor_name);
  }
  return OK;
}
