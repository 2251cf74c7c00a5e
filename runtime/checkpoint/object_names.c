/* object_names.c: a TrackableObjectGraph: nodes = 1 { attributes = 2 { name = 1, full_name = 2, checkpoint_key = 3 } }.
 */
#include "runtime/checkpoint/object_names.h"

#include <string.h>

#include "base/wire.h"

#define GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

static void read_attribute(struct wire wire, struct arena *arena, struct object_name *out) {
  struct wire_field field;
  *out = (struct object_name){0};
  while (wire_next(&wire, &field)) {
    if (field.number == 2 && field.type == WIRE_BYTES)
      out->name = arena_strndup(arena, (const char *)field.data, field.size);
    if (field.number == 3 && field.type == WIRE_BYTES)
      out->key = arena_strndup(arena, (const char *)field.data, field.size);
  }
}

/* Counts them, or, where there is room for all, reads them. */
static bool walk(struct wire graph, struct arena *arena, struct object_names *out) {
  struct wire_field node, attribute;
  out->count = 0;
  while (wire_next(&graph, &node))
    for (struct wire inside = wire_inside(&node); node.number == 1 && wire_next(&inside, &attribute);) {
      if (attribute.number != 2)
        continue;
      if (out->items)
        read_attribute(wire_inside(&attribute), arena, &out->items[out->count]);
      out->count++;
    }
  return !graph.is_bad;
}

status object_names_read(const struct checkpoint *checkpoint, struct arena *arena, struct object_names *out) {
  struct checkpoint_value value;
  *out = (struct object_names){0};
  status found = checkpoint_read(checkpoint, GRAPH_KEY, &value);
  if (found == NOT_FOUND)
    return OK;
  TRY(found);
  if (value.dtype != DTYPE_STRING || value.count != 1)
    return fail(DATA_LOSS, GRAPH_KEY " is no string");
  const struct string_view *text = value.data;
  struct wire graph = wire_over((const uint8_t *)text->data, text->size);
  if (!walk(graph, arena, out))
    return fail(DATA_LOSS, GRAPH_KEY " cannot be read");
  out->items = ARENA_ARRAY(arena, struct object_name, out->count + 1);
  walk(graph, arena, out);
  return OK;
}

const char *object_names_key(const struct object_names *names, const char *name) {
  for (uint32_t i = 0; i < names->count; i++)
    if (names->items[i].name && names->items[i].key && strcmp(names->items[i].name, name) == 0)
      return names->items[i].key;
  return NULL;
}
