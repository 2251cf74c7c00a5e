/* file_kind.c: text has no control characters, wire bytes always do (tags). GraphDef, MetaGraphDef and SavedModel use the
 * same low field numbers for different things: the first top-level field that only one of them can have decides. */
#include "compiler/read/file_kind.h"

#include <stdint.h>
#include <string.h>

#define TEXT_LOOK 4096 /* bytes looked at */

struct span {
  const uint8_t *at, *end;
};

static bool looks_like_text(const uint8_t *p, size_t size) {
  for (size_t i = 0; i < size && i < TEXT_LOOK; i++)
    if ((p[i] < ' ' && !(p[i] >= '\t' && p[i] <= '\r')) || p[i] == 127)
      return false;
  return true;
}

/* ---- text: the first field's name ---- */

static bool word_is(const uint8_t *p, const uint8_t *end, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(end - p) < length || memcmp(p, word, length))
    return false;
  return p + length == end || strchr(" \t\r\n:{<", p[length]);
}

static enum file_message text_kind(const uint8_t *p, const uint8_t *end) {
  static const char *const meta[] = {"meta_info_def", "graph_def",      "saver_def",       "collection_def",
                                     "signature_def", "asset_file_def", "object_graph_def"};
  static const char *const saved[] = {"saved_model_schema_version", "meta_graphs"};
  while (p < end && (*p <= ' ' || *p == '#'))
    if (*p++ == '#')
      while (p < end && *p != '\n')
        p++;
  for (size_t i = 0; i < sizeof meta / sizeof *meta; i++)
    if (word_is(p, end, meta[i]))
      return FILE_META_GRAPH;
  for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
    if (word_is(p, end, saved[i]))
      return FILE_SAVED_MODEL;
  return FILE_GRAPH;
}

/* ---- wire ---- */

static bool take_varint(struct span *s, uint64_t *out) {
  *out = 0;
  for (int shift = 0; shift < 64 && s->at < s->end; shift += 7) {
    uint8_t byte = *s->at++;
    *out |= (uint64_t)(byte & 127) << shift;
    if (!(byte & 128))
      return true;
  }
  return false;
}

static bool take_field(struct span *s, uint64_t *tag, struct span *payload) {
  uint64_t value;
  *payload = (struct span){0};
  if (!take_varint(s, tag))
    return false;
  size_t left = (size_t)(s->end - s->at);
  switch (*tag & 7) {
  case 0: return take_varint(s, &value);
  case 1: s->at += left < 8 ? left : 8; return left >= 8;
  case 5: s->at += left < 4 ? left : 4; return left >= 4;
  case 2:
    if (!take_varint(s, &value) || value > (uint64_t)(s->end - s->at))
      return false;
    *payload = (struct span){s->at, s->at + value};
    s->at += value;
    return true;
  default: return false;
  }
}

static bool is_op_name(struct span s) {
  if (s.at == s.end)
    return false;
  for (; s.at < s.end; s.at++)
    if (!(*s.at == '_' || *s.at == '.' || *s.at == '>' || *s.at == '/' || *s.at == '-' || (*s.at >= '0' && *s.at <= '9') ||
          (*s.at >= 'A' && *s.at <= 'Z') || (*s.at >= 'a' && *s.at <= 'z')))
      return false;
  return true;
}

/* A NodeDef: its op (field 2) is a name, where MetaInfoDef has a message. */
static bool looks_like_node(struct span s) {
  uint64_t tag;
  struct span payload;
  while (s.at < s.end && take_field(&s, &tag, &payload))
    if (tag == (2 << 3 | 2))
      return is_op_name(payload);
  return false;
}

/* A GraphDef in field 2 holds nodes or versions (field 4); a function library holds functions. */
static bool looks_like_graph(struct span s) {
  uint64_t tag;
  struct span payload;
  while (s.at < s.end && take_field(&s, &tag, &payload)) {
    if (tag == (4 << 3 | 2))
      return true;
    if (tag == (1 << 3 | 2))
      return looks_like_node(payload);
  }
  return false;
}

static enum file_message wire_kind(struct span s) {
  uint64_t tag;
  struct span payload;
  while (s.at < s.end && take_field(&s, &tag, &payload)) {
    uint8_t first = payload.at < payload.end ? *payload.at : 0;
    switch (tag) {
    case 1 << 3 | 0: return FILE_SAVED_MODEL;
    case 1 << 3 | 2: return looks_like_node(payload) ? FILE_GRAPH : FILE_META_GRAPH;
    case 2 << 3 | 2: return looks_like_graph(payload) ? FILE_META_GRAPH : FILE_GRAPH;
    case 3 << 3 | 0: return FILE_GRAPH;                                   /* version */
    case 3 << 3 | 2: return FILE_META_GRAPH;                              /* saver_def */
    case 4 << 3 | 2: return first == 0x0a ? FILE_META_GRAPH : FILE_GRAPH; /* a collection has a key, versions a number */
    case 6 << 3 | 2:
    case 7 << 3 | 2: return FILE_META_GRAPH;
    default: break;
    }
  }
  return FILE_GRAPH;
}

struct file_kind file_kind_of(const void *data, size_t size) {
  const uint8_t *p = data, *end = p + size;
  if (looks_like_text(p, size))
    return (struct file_kind){text_kind(p, end), true};
  return (struct file_kind){wire_kind((struct span){p, end}), false};
}

/* ---- others' files ---- */

static bool has(const void *data, size_t size, size_t at, const char *bytes, size_t count) {
  return size >= at + count && memcmp((const char *)data + at, bytes, count) == 0;
}

const char *file_kind_foreign(const void *data, size_t size) {
  static const struct {
    const char *bytes;
    size_t count, at;
    const char *what;
  } kinds[] = {
    {"PK\3\4", 4, 0, "a zip archive, such as a .keras file: load it in Keras, model.export('DIR'), and build DIR"},
    {"\x89HDF\r\n", 6, 0, "an HDF5 file, such as Keras's weights: load them in Keras, model.export('DIR'), and build DIR"},
    {"TFL3", 4, 4, "a TensorFlow Lite model: build the SavedModel that it was converted from"},
    {"\x93NUMPY", 6, 0, "a numpy array: name the graph here, and arrays when you run it (--feed NAME=FILE.npy)"},
    {"\x7f"
     "ELF",
     4, 0, "an executable, maybe a task that is built already: tfc inspect FILE"},
  };
  static const char table_end[] = "\x57\xfb\x80\x8b\x24\x75\x47\xdb"; /* of LevelDB's tables */
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (has(data, size, kinds[i].at, kinds[i].bytes, kinds[i].count))
      return kinds[i].what;
  if (size > 8 && has(data, size, size - 8, table_end, 8))
    return "the index of a checkpoint, which holds values and no graph: build the .meta file beside it, or a SavedModel";
  return NULL;
}
