/* read_model.c: what kind of file it is, and reading it: GraphDef, MetaGraphDef, SavedModel folder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "compiler/read/import.h"
#include "compiler/read/read.h"

/* ---- files ---- */

static status read_file(const char *path, struct arena *arena, void **data, size_t *size) {
  FILE *f = fopen(path, "rb");
  struct stat st;
  if (!f || fstat(fileno(f), &st) != 0) {
    status s = fail(NOT_FOUND, "%s: %s", path, strerror(errno));
    if (f)
      fclose(f);
    return s;
  }
  if (!S_ISREG(st.st_mode) || st.st_size > LIMIT_GRAPH_BYTES) {
    fclose(f);
    return fail(INVALID_ARGUMENT, "%s: is no file of at most 2 GiB", path);
  }
  *size = (size_t)st.st_size;
  *data = arena_alloc(arena, *size + 1);
  size_t n = fread(*data, 1, *size, f);
  fclose(f);
  return n == *size ? OK : fail(DATA_LOSS, "%s: could not be read whole", path);
}

/* ---- protobuf into the arena ---- */

static void *proto_alloc(void *arena, size_t size) { return arena_alloc(arena, size); }
static void proto_free(void *arena, void *p) { (void)arena, (void)p; }

/* ---- MetaGraphDef ---- */

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

static status import_meta(const Tensorflow__MetaGraphDef *meta, struct arena *arena, struct model *out) {
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

/* A GraphDef has its nodes in field 1; a MetaGraphDef has one field 1 (its info) and its graph in field 2. */
static bool is_meta(const Tensorflow__MetaGraphDef *meta) {
  const Tensorflow__GraphDef *g = meta ? meta->graph_def : NULL;
  if (!g || (g->n_node == 0 && !meta->n_signature_def && !meta->n_collection_def))
    return false;
  for (size_t i = 0; i < g->n_node && i < 4; i++)
    if (!*g->node[i]->name || !*g->node[i]->op || strpbrk(g->node[i]->op, "\n\t\r "))
      return false;
  return true;
}

status model_parse(const void *data, size_t size, struct arena *arena, struct model *out) {
  ProtobufCAllocator alloc = {proto_alloc, proto_free, arena};
  TRY(wire_check(data, size));
  out->sha256 = sha256_hex(arena, data, size);
  Tensorflow__GraphDef *graph = tensorflow__graph_def__unpack(&alloc, size, data);
  if (graph && graph->n_node && *graph->node[0]->op && (graph->n_node > 1 || !graph->library || graph->library->n_function == 0 ||
                                                        graph->library->function[0]->signature))
    return import_graph(graph, arena, &out->graph);
  Tensorflow__MetaGraphDef *meta = tensorflow__meta_graph_def__unpack(&alloc, size, data);
  if (is_meta(meta))
    return import_meta(meta, arena, out);
  if (graph)
    return import_graph(graph, arena, &out->graph);
  return fail(INVALID_ARGUMENT, "is neither a GraphDef nor a MetaGraphDef");
}

/* ---- SavedModel ---- */

static const Tensorflow__MetaGraphDef *choose_meta(const Tensorflow__SavedModel *saved) {
  for (size_t i = 0; i < saved->n_meta_graphs; i++) {
    const Tensorflow__MetaInfoDef *info = saved->meta_graphs[i]->meta_info_def;
    for (size_t j = 0; info && j < info->n_tags; j++)
      if (strcmp(info->tags[j], "serve") == 0)
        return saved->meta_graphs[i];
  }
  return saved->n_meta_graphs ? saved->meta_graphs[0] : NULL;
}

static status read_saved_model(const char *folder, struct arena *arena, struct model *out) {
  ProtobufCAllocator alloc = {proto_alloc, proto_free, arena};
  void *data;
  size_t size;
  TRY(read_file(arena_printf(arena, "%s/saved_model.pb", folder), arena, &data, &size));
  TRY(wire_check(data, size));
  out->sha256 = sha256_hex(arena, data, size);
  Tensorflow__SavedModel *saved = tensorflow__saved_model__unpack(&alloc, size, data);
  const Tensorflow__MetaGraphDef *meta = saved ? choose_meta(saved) : NULL;
  if (!meta)
    return fail(INVALID_ARGUMENT, "%s/saved_model.pb: holds no MetaGraphDef", folder);
  TRY(import_meta(meta, arena, out));
  const char *prefix = arena_printf(arena, "%s/variables/variables", folder);
  struct stat st;
  if (stat(arena_printf(arena, "%s.index", prefix), &st) == 0)
    out->variables_prefix = prefix;
  return OK;
}

status model_read(const char *path, struct arena *arena, struct model *out) {
  struct stat st;
  if (stat(path, &st) != 0)
    return fail(NOT_FOUND, "%s: %s", path, strerror(errno));
  if (S_ISDIR(st.st_mode))
    return read_saved_model(path, arena, out);
  void *data;
  size_t size;
  TRY(read_file(path, arena, &data, &size));
  status s = model_parse(data, size, arena, out);
  return s == OK ? OK : status_prefix(s, "%s: ", path);
}
