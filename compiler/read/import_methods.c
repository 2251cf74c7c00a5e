/* import_methods.c: TensorFlow 2 saves with a function how Python called its arguments and results: tuples, lists and maps with
 * tensors at the leaves, in the order of tf.nest.flatten. A feed has the argument's name, a fetch the key of its map, else `output_0`
 * and so on, as in signatures. */
#include <stdlib.h>
#include <string.h>

#include "compiler/read/import.h"

typedef Tensorflow__StructuredValue structured;

struct walk {
  struct arena *arena;
  VEC(struct structured_port) ports;
  bool opaque, flagged, of_results;
};

static void walk_value(struct walk *w, const structured *value, const char *key, int depth);

static void add_spec(struct walk *w, const Tensorflow__TensorSpecProto *spec, const char *key) {
  struct attr_value shape = {0};
  bool named = !w->of_results && spec->name && *spec->name;
  if (spec->shape)
    import_shape(spec->shape, w->arena, &shape);
  shape.shape.unknown_rank = shape.shape.unknown_rank || !spec->shape;
  vec_push(&w->ports, (struct structured_port){named ? arena_strdup(w->arena, spec->name) : w->of_results ? key : "", shape.shape});
}

static const char *key_within(struct walk *w, const char *key, const char *inner) {
  return *key ? arena_printf(w->arena, "%s_%s", key, inner) : arena_strdup(w->arena, inner);
}

static void walk_list(struct walk *w, const Tensorflow__StructuredList *list, const char *key, int depth) {
  for (size_t i = 0; i < list->n_values; i++)
    walk_value(w, list->values[i], key_within(w, *key ? key : "output", arena_printf(w->arena, "%zu", i)), depth + 1);
}

static int entry_compare(const void *a, const void *b) {
  return strcmp((*(const Tensorflow__StructuredEntry *const *)a)->key, (*(const Tensorflow__StructuredEntry *const *)b)->key);
}

static void walk_dict(struct walk *w, const Tensorflow__StructuredDict *dict, const char *key, int depth) {
  VEC(const Tensorflow__StructuredEntry *) sorted = {0};
  for (size_t i = 0; i < dict->n_fields; i++)
    vec_push(&sorted, dict->fields[i]);
  if (sorted.count)
    qsort(sorted.items, sorted.count, sizeof *sorted.items, entry_compare);
  for (uint32_t i = 0; i < sorted.count; i++)
    walk_value(w, sorted.items[i]->value, key_within(w, key, sorted.items[i]->key), depth + 1);
  vec_free(&sorted);
}

/* A tensor of a composite one, `part` its place there: arguments have the function's own names for them. */
static void add_part(struct walk *w, const char *key, const char *part, struct attr_shape shape) {
  const char *name = arena_printf(w->arena, "%s_%s", *key ? key : "output_0", part);
  vec_push(&w->ports, (struct structured_port){w->of_results ? name : "", shape});
}

static struct attr_shape shape_of(struct walk *w, int rank, int64_t outer, int64_t inner) {
  int64_t *dims = ARENA_ARRAY(w->arena, int64_t, 2);
  dims[0] = outer;
  dims[1] = inner;
  return (struct attr_shape){.rank = rank, .dims = dims};
}

static void add_sparse(struct walk *w, struct attr_shape dense, const char *key) {
  int64_t rank = dense.unknown_rank ? -1 : dense.rank;
  add_part(w, key, "indices", shape_of(w, 2, -1, rank));
  add_part(w, key, "values", shape_of(w, 1, -1, -1));
  add_part(w, key, "dense_shape", shape_of(w, 1, rank, -1));
}

/* Its values are behind the ragged dimensions; then come the splits of these, the outermost first. */
static void add_ragged(struct walk *w, struct attr_shape shape, int64_t ragged_rank, const char *key) {
  struct attr_shape values = shape;
  if (!shape.unknown_rank && ragged_rank > 0) {
    int64_t *dims = arena_copy(w->arena, shape.dims + ragged_rank, (size_t)(shape.rank - ragged_rank) * sizeof *dims);
    dims[0] = -1;
    values = (struct attr_shape){.rank = shape.rank - (int)ragged_rank, .dims = dims};
  }
  add_part(w, key, "values", values);
  for (int64_t i = 0; i < ragged_rank; i++) {
    bool is_counted = i == 0 && !shape.unknown_rank && shape.dims[0] >= 0;
    add_part(w, key, arena_printf(w->arena, "row_splits_%lld", (long long)i), shape_of(w, 1, is_counted ? shape.dims[0] + 1 : -1, -1));
  }
}

/* Sparse tensors: shape and dtype; ragged ones: shape, dtype, ragged rank and the dtype of splits. */
enum { SPARSE_TENSOR_SPEC = 1, RAGGED_TENSOR_SPEC = 3 };

static bool walk_composite(struct walk *w, const Tensorflow__TypeSpecProto *spec, const char *key) {
  const structured *state = spec->type_state;
  bool is_tuple = state && state->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE;
  const Tensorflow__StructuredList *fields = is_tuple ? state->tuple_value : NULL;
  struct attr_value shape = {0};
  if (!fields || !fields->n_values || fields->values[0]->kind_case != TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SHAPE_VALUE)
    return false;
  import_shape(fields->values[0]->tensor_shape_value, w->arena, &shape);
  if (spec->type_spec_class == SPARSE_TENSOR_SPEC) {
    add_sparse(w, shape.shape, key);
    return true;
  }
  bool has_rank = fields->n_values == 4 && fields->values[2]->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE;
  int64_t rank = has_rank ? fields->values[2]->int64_value : -1, most = shape.shape.unknown_rank ? LIMIT_RANK : shape.shape.rank - 1;
  if (spec->type_spec_class != RAGGED_TENSOR_SPEC || rank < 0 || rank > most)
    return false;
  add_ragged(w, shape.shape, rank, key);
  return true;
}

static void walk_value(struct walk *w, const structured *value, const char *key, int depth) {
  if (!value || depth > LIMIT_NESTING)
    return;
  switch (value->kind_case) {
  case TENSORFLOW__STRUCTURED_VALUE__KIND_BOOL_VALUE: w->flagged = w->flagged || value->bool_value; break;
  case TENSORFLOW__STRUCTURED_VALUE__KIND_TYPE_SPEC_VALUE: w->opaque = !walk_composite(w, value->type_spec_value, key) || w->opaque; break;
  case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE: add_spec(w, value->tensor_spec_value, *key ? key : "output_0"); break;
  case TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE:
    add_spec(w, value->bounded_tensor_spec_value, *key ? key : "output_0");
    break;
  case TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE: walk_list(w, value->list_value, key, depth); break;
  case TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE: walk_list(w, value->tuple_value, key, depth); break;
  case TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE: walk_dict(w, value->dict_value, key, depth); break;
  case TENSORFLOW__STRUCTURED_VALUE__KIND_NAMED_TUPLE_VALUE:
    for (size_t i = 0; i < value->named_tuple_value->n_values; i++)
      walk_value(w, value->named_tuple_value->values[i]->value, key_within(w, key, value->named_tuple_value->values[i]->key), depth + 1);
    break;
  default: break;
  }
}

static void take_ports(struct walk *w, const struct structured_port **out, uint32_t *count) {
  *out = arena_copy(w->arena, w->ports.items ? (const void *)w->ports.items : "", w->ports.count * sizeof *w->ports.items);
  *count = w->ports.count;
  vec_free(&w->ports);
}

void import_structure(const Tensorflow__SavedConcreteFunction *def, struct arena *arena, struct captures *out) {
  struct walk inputs = {.arena = arena}, outputs = {.arena = arena, .of_results = true};
  walk_value(&inputs, def->canonicalized_input_signature, "", 0);
  walk_value(&outputs, def->output_signature, "", 0);
  out->is_opaque = inputs.opaque || outputs.opaque;
  out->is_flagged = inputs.flagged;
  take_ports(&inputs, &out->inputs, &out->input_count);
  take_ports(&outputs, &out->outputs, &out->output_count);
}

/* ---- the root's functions ---- */

static void add_method(const char *name, const char *function, bool flagged, struct arena *arena, struct model *out) {
  for (uint32_t i = 0; i < out->captures.count; i++)
    if (strcmp(out->captures.items[i].function, function) == 0 && out->captures.items[i].is_flagged == flagged)
      vec_push(&out->methods, (struct method){.name = arena_strdup(arena, name), .function = i});
}

static bool is_keras(const Tensorflow__SavedObject *root) {
  for (size_t i = 0; i < root->n_children; i++)
    if (strcmp(root->children[i]->local_name, "keras_api") == 0)
      return true;
  return false;
}

/* Python's own names, and Keras's copies of a call, are nobody's to run; calling the object itself is, but of Keras's: those have a
 * signature for it. */
static const char *public_name(const char *name, bool is_keras) {
  if (strcmp(name, "__call__") == 0)
    return is_keras ? NULL : "call";
  return *name == '_' || strncmp(name, "call_and_return_", 16) == 0 ? NULL : name;
}

void import_methods(const Tensorflow__SavedObjectGraph *def, struct arena *arena, struct model *out) {
  const Tensorflow__SavedObject *root = def->n_nodes ? def->nodes[0] : NULL;
  for (size_t i = 0; root && i < root->n_children; i++) {
    const Tensorflow__ObjectReference *child = root->children[i];
    const char *name = public_name(child->local_name, is_keras(root));
    if (!name || child->node_id < 0 || (size_t)child->node_id >= def->n_nodes)
      continue;
    const Tensorflow__SavedObject *object = def->nodes[child->node_id];
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION)
      for (int flagged = 0; flagged < 2; flagged++)
        add_method(name, object->bare_concrete_function->concrete_function_name, flagged, arena, out);
    for (int flagged = 0; flagged < 2 && object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION; flagged++)
      for (size_t k = 0; k < object->function->n_concrete_functions; k++)
        add_method(name, object->function->concrete_functions[k], flagged, arena, out);
  }
}
