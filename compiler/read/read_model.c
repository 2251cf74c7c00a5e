/* read_model.c: files: what kind each is, and reading it: checked, unpacked, imported. The file's bytes and
 * the messages live in an arena of their own: importing copies what it keeps. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "compiler/read/file_kind.h"
#include "compiler/read/import.h"
#include "compiler/read/read.h"
#include "compiler/read/text_format.h"

/* ---- files ---- */

static status fd_read(int fd, const char *path, struct arena *scratch, void **data, size_t *size) {
  struct stat st;
  if (fstat(fd, &st))
    return fail(INVALID_ARGUMENT, "'%s': %s", path, strerror(errno));
  if (!S_ISREG(st.st_mode) || st.st_size >= LIMIT_GRAPH_BYTES)
    return fail(INVALID_ARGUMENT, "'%s' is no file of less than 2 GiB", path);
  *size = (size_t)st.st_size;
  *data = arena_alloc(scratch, *size + 1);
  for (size_t done = 0; done < *size;) {
    ssize_t got = read(fd, (char *)*data + done, *size - done);
    if (got <= 0)
      return fail(DATA_LOSS, "'%s' cannot be read: %s", path, got ? strerror(errno) : "it became shorter");
    done += (size_t)got;
  }
  return OK;
}

static status file_read(const char *path, struct arena *scratch, void **data, size_t *size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait before it is refused */
  if (fd < 0)
    return fail(NOT_FOUND, "'%s': %s", path, strerror(errno));
  status result = fd_read(fd, path, scratch, data, size);
  close(fd);
  return result;
}

/* ---- messages ---- */

static void *proto_alloc(void *arena, size_t size) { return arena_alloc(arena, size); }

static void proto_free(void *arena, void *p) { (void)arena, (void)p; }

/* ---- the graph of a SavedModel: each has a set of tags ---- */

static bool has_tag(const Tensorflow__MetaGraphDef *meta, const char *tag, size_t length) {
  const Tensorflow__MetaInfoDef *info = meta->meta_info_def;
  for (size_t i = 0; info && i < info->n_tags; i++)
    if (strlen(info->tags[i]) == length && memcmp(info->tags[i], tag, length) == 0)
      return true;
  return false;
}

/* As TensorFlow's loader asks for it: these tags, separated by commas, and no others. */
static bool has_tags(const Tensorflow__MetaGraphDef *meta, const char *tags) {
  size_t count = 0;
  for (const char *tag = tags; *tag; count++) {
    size_t length = strcspn(tag, ",");
    if (!has_tag(meta, tag, length))
      return false;
    tag += length + (tag[length] == ',');
  }
  return count == (meta->meta_info_def ? meta->meta_info_def->n_tags : 0);
}

static const char *tag_sets_text(const Tensorflow__SavedModel *saved, struct arena *arena) {
  const char *text = "";
  for (size_t i = 0; i < saved->n_meta_graphs; i++) {
    const Tensorflow__MetaInfoDef *info = saved->meta_graphs[i]->meta_info_def;
    text = arena_printf(arena, "%s%s'", text, i ? ", " : "");
    for (size_t j = 0; info && j < info->n_tags; j++)
      text = arena_printf(arena, "%s%s%s", text, j ? "," : "", info->tags[j]);
    text = arena_printf(arena, "%s'", text);
  }
  return text;
}

static status choose_meta(const Tensorflow__SavedModel *saved, struct arena *arena, struct model *out,
                          const Tensorflow__MetaGraphDef **meta) {
  *meta = NULL;
  for (size_t i = 0; i < saved->n_meta_graphs && !*meta; i++)
    if (out->tags ? has_tags(saved->meta_graphs[i], out->tags) : has_tag(saved->meta_graphs[i], "serve", 5))
      *meta = saved->meta_graphs[i];
  if (!saved->n_meta_graphs)
    return fail(INVALID_ARGUMENT, "the SavedModel holds no MetaGraphDef");
  const char *sets = tag_sets_text(saved, arena);
  if (!*meta && out->tags)
    return fail(NOT_FOUND, "no graph of the SavedModel has the tags '%s', there are: %s", out->tags, sets);
  *meta = *meta ? *meta : saved->meta_graphs[0];
  out->tag_sets = saved->n_meta_graphs > 1 ? sets : NULL;
  return OK;
}

static status message_import(enum file_message kind, const void *message, struct arena *arena, struct model *out) {
  const Tensorflow__MetaGraphDef *meta = message;
  import_tensor_begin();
  if (out->tags && kind != FILE_SAVED_MODEL)
    return fail(INVALID_ARGUMENT, "is no SavedModel: --tags has nothing to choose from");
  if (kind == FILE_GRAPH)
    return import_graph(message, arena, &out->graph);
  if (kind == FILE_SAVED_MODEL)
    TRY(choose_meta(message, arena, out, &meta));
  return import_meta(meta, arena, out);
}

static status wire_unpack(const ProtobufCMessageDescriptor *descriptor, const void *data, size_t size, struct arena *scratch,
                          ProtobufCMessage **out) {
  TRY(wire_check(descriptor, data, size));
  ProtobufCAllocator allocator = {proto_alloc, proto_free, scratch};
  *out = protobuf_c_message_unpack(descriptor, &allocator, size, data);
  return *out ? OK : fail(INVALID_ARGUMENT, "cannot be unpacked");
}

static status bytes_import(const void *data, size_t size, struct arena *scratch, struct arena *arena, struct model *out) {
  static const ProtobufCMessageDescriptor *const descriptors[] = {
    [FILE_GRAPH] = &tensorflow__graph_def__descriptor,
    [FILE_META_GRAPH] = &tensorflow__meta_graph_def__descriptor,
    [FILE_SAVED_MODEL] = &tensorflow__saved_model__descriptor,
  };
  if (!size)
    return fail(INVALID_ARGUMENT, "is empty");
  out->sha256 = sha256_hex(arena, data, size);
  struct file_kind kind = file_kind_of(data, size);
  const ProtobufCMessageDescriptor *descriptor = descriptors[kind.message];
  ProtobufCMessage *message = NULL;
  status result =
    kind.is_text ? text_parse(data, size, descriptor, scratch, &message) : wire_unpack(descriptor, data, size, scratch, &message);
  if (result != OK)
    return status_prefix(result, "as a %s%s: ", descriptor->short_name, kind.is_text ? " in text form" : "");
  TRY(message_import(kind.message, message, arena, out));
  if (!out->graph->nodes.count && !out->graph->functions.count)
    return fail(INVALID_ARGUMENT, "holds no node"); /* as any file of fields that we do not know would */
  return OK;
}

status model_parse(const void *data, size_t size, struct arena *arena, struct model *out) {
  struct arena scratch;
  arena_init(&scratch);
  status result = bytes_import(data, size, &scratch, arena, out);
  arena_deinit(&scratch);
  return result;
}

static status file_import(const char *path, struct arena *arena, struct model *out) {
  struct arena scratch;
  arena_init(&scratch);
  void *data = NULL;
  size_t size = 0;
  status result = file_read(path, &scratch, &data, &size);
  if (result == OK) {
    const char *foreign = file_kind_foreign(data, size);
    result = foreign ? fail(INVALID_ARGUMENT, "is %s", foreign) : model_parse(data, size, arena, out);
    if (result != OK)
      status_prefix(result, "'%s': ", path);
  }
  arena_deinit(&scratch);
  return result;
}

/* ---- SavedModel ---- */

static bool file_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

/* Beside the model, when it was saved so. */
static status places_read(const char *path, struct graph *graph) {
  struct arena scratch;
  arena_init(&scratch);
  void *data = NULL;
  size_t size = 0;
  ProtobufCMessage *message = NULL;
  status result = file_read(path, &scratch, &data, &size);
  if (result == OK)
    result = wire_unpack(&tensorflow__graph_debug_info__descriptor, data, size, &scratch, &message);
  if (result == OK)
    import_places((const Tensorflow__GraphDebugInfo *)(const void *)message, graph);
  arena_deinit(&scratch);
  return result == OK ? OK : status_prefix(result, "'%s': ", path);
}

/* The loader feeds an asset's tensor with the path of its file; here the tensor becomes that constant. */
static status asset_bind(const char *folder, const struct asset *asset, struct arena *arena, struct graph *graph) {
  struct edge e;
  TRY(graph_find_output(graph, asset->tensor, &e));
  char *whole = realpath(folder, NULL); /* the executable may run in another folder */
  const char *path = arena_printf(arena, "%s/assets/%s", whole ? whole : folder, asset->file);
  free(whole);
  struct string_view *text = ARENA_NEW(arena, struct string_view);
  *text = (struct string_view){path, strlen(path)};
  struct constant *value = ARENA_NEW(arena, struct constant);
  *value = (struct constant){.dtype = DTYPE_STRING, .count = 1, .data = text};
  struct attr *attrs = ARENA_ARRAY(arena, struct attr, 2);
  attrs[0] = attr_of_type("dtype", DTYPE_STRING);
  attrs[1] = (struct attr){.name = "value", .value = {.kind = ATTR_TENSOR, .tensor = value}};
  struct node *n = &graph->nodes.items[e.node];
  *n = (struct node){.name = n->name, .op = "Const", .device = n->device, .attrs = attrs, .attr_count = 2};
  return OK;
}

static status saved_model_read(const char *folder, struct arena *arena, struct model *out) {
  const char *path = arena_printf(arena, "%s/saved_model.pb", folder);
  const char *text_path = arena_printf(arena, "%s/saved_model.pbtxt", folder);
  if (!file_exists(path) && file_exists(text_path))
    path = text_path;
  TRY(file_import(path, arena, out));
  const char *prefix = arena_printf(arena, "%s/variables/variables", folder);
  if (file_exists(arena_printf(arena, "%s.index", prefix)))
    out->variables_prefix = prefix;
  const char *debug = arena_printf(arena, "%s/debug/saved_model_debug_info.pb", folder);
  if (file_exists(debug))
    TRY(places_read(debug, out->graph));
  for (uint32_t i = 0; i < out->assets.count; i++)
    TRY(asset_bind(folder, &out->assets.items[i], arena, out->graph));
  return OK;
}

/* A folder without a SavedModel: a MetaGraphDef in it may be what was meant. */
static status not_saved_model(const char *folder) {
  DIR *items = opendir(folder);
  char meta[300] = "";
  for (struct dirent *item; items && (item = readdir(items));) {
    size_t length = strlen(item->d_name);
    if (length > 5 && strcmp(item->d_name + length - 5, ".meta") == 0 && strcmp(item->d_name, meta) > 0)
      snprintf(meta, sizeof meta, "%s", item->d_name);
  }
  if (items)
    closedir(items);
  return fail(NOT_FOUND, "'%s' holds no saved_model.pb%s%s%s", folder, *meta ? ", but '" : "", meta, *meta ? "', which can be built" : "");
}

/* The folder of "DIR/saved_model.pb": without it the model has no values. NULL: another file. */
static const char *folder_of_model(const char *path, struct arena *arena) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *folder = slash ? arena_strndup(arena, path, (size_t)(slash - path) + (slash == path)) : ".";
  bool is_model = strcmp(name, "saved_model.pb") == 0 || strcmp(name, "saved_model.pbtxt") == 0;
  return is_model && file_exists(arena_printf(arena, "%s/variables/variables.index", folder)) ? folder : NULL;
}

status model_read(const char *path, struct arena *arena, struct model *out) {
  struct stat st;
  if (stat(path, &st) != 0)
    return fail(NOT_FOUND, "'%s': %s", path, strerror(errno));
  const char *folder = S_ISDIR(st.st_mode) ? path : folder_of_model(path, arena);
  if (!folder)
    return file_import(path, arena, out);
  bool has_model =
    file_exists(arena_printf(arena, "%s/saved_model.pb", folder)) || file_exists(arena_printf(arena, "%s/saved_model.pbtxt", folder));
  return has_model ? saved_model_read(folder, arena, out) : not_saved_model(folder);
}
