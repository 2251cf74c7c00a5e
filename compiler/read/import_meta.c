/* import_meta.c: what a MetaGraphDef says beside its graph: signatures, collections, how it is saved. */
#include <string.h>

#include "compiler/read/import.h"

/* What TensorFlow's loader runs: named by a signature, in older models by a collection. */
static void import_main_op(const Tensorflow__MetaGraphDef *meta, struct arena *arena, struct model *out) {
  static const char *const collections[] = {"saved_model_main_op", "legacy_init_op"};
  for (size_t i = 0; i < meta->n_signature_def; i++) {
    const Tensorflow__SignatureDef *def = meta->signature_def[i]->value;
    if (def && strcmp(meta->signature_def[i]->key, "__saved_model_init_op") == 0 && def->n_outputs == 1 && def->outputs[0]->value &&
        def->outputs[0]->value->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
      out->main_op = arena_strdup(arena, def->outputs[0]->value->name);
  }
  for (size_t c = 0; c < sizeof collections / sizeof *collections && !out->main_op; c++)
    for (uint32_t i = 0; i < out->collections.count; i++) {
      const struct attr *a = &out->collections.items[i];
      if (strcmp(a->name, collections[c]) == 0 && a->value.list.count == 1)
        out->main_op = a->value.list.items[0].s.data;
    }
}

static void import_asset(const Tensorflow__AssetFileDef *def, struct arena *arena, struct model *out) {
  if (def->tensor_info && def->tensor_info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
    vec_push(&out->assets, (struct asset){arena_strdup(arena, def->tensor_info->name), arena_strdup(arena, def->filename)});
}
/* TensorFlow 1's builder says them in a collection. */
static status import_collected_assets(const Tensorflow__CollectionDef *def, struct arena *arena, struct model *out) {
  for (size_t i = 0; i < def->any_list->n_value; i++) {
    const ProtobufCBinaryData *data = &def->any_list->value[i]->value;
    Tensorflow__AssetFileDef *asset = tensorflow__asset_file_def__unpack(NULL, data->len, data->data);
    if (!asset)
      return fail(DATA_LOSS, "asset %zu of the collection saved_model_assets cannot be read", i);
    import_asset(asset, arena, out);
    tensorflow__asset_file_def__free_unpacked(asset, NULL);
  }
  return OK;
}
static status import_assets(const Tensorflow__MetaGraphDef *meta, struct arena *arena, struct model *out) {
  for (size_t i = 0; i < meta->n_asset_file_def; i++)
    import_asset(meta->asset_file_def[i], arena, out);
  for (size_t i = 0; i < meta->n_collection_def && !meta->n_asset_file_def; i++) {
    const Tensorflow__CollectionDef *def = meta->collection_def[i]->value;
    if (def && def->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_ANY_LIST &&
        strcmp(meta->collection_def[i]->key, "saved_model_assets") == 0)
      TRY(import_collected_assets(def, arena, out));
  }
  return OK;
}

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
    size_t count = def->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST  ? def->node_list->n_value
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
  TRY(import_runners(arena, out));
  import_main_op(meta, arena, out);
  TRY(import_assets(meta, arena, out));
  if (meta->object_graph_def)
    import_objects(meta->object_graph_def, arena, out);
  if (meta->saver_def) {
    out->restore_op = arena_strdup(arena, meta->saver_def->restore_op_name);
    out->restore_feed = arena_strdup(arena, meta->saver_def->filename_tensor_name);
  }
  return OK;
}
