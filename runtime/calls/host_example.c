/* host_example.c: ParseExample, ParseExampleV2 and ParseSingleExample: tf.train.Example (example.proto) into dense, sparse and
 * ragged tensors. The three ops differ in where the keys come from; here they become one list of wanted features.
 *
 * Example { 1 features: Features { 1 map entry { 1 key, 2 Feature { 1 bytes_list, 2 float_list, 3 int64_list } } } } */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/wire.h"
#include "runtime/data/example_values.h"
#include "runtime/host/host.h"
#include "runtime/text/element_number.h"

enum feature_kind { FEATURE_SPARSE, FEATURE_DENSE, FEATURE_RAGGED };

/* The values of one feature of one example. */
struct found {
  struct wire list; /* BytesList, FloatList or Int64List */
  int64_t count;
  bool is_there;
};
struct feature {
  enum feature_kind kind;
  struct string_view key;
  enum dtype dtype, splits;
  const struct tensor *otherwise; /* DENSE: the default; without elements: required */
  struct shape shape;             /* DENSE: of each example; dims[0] -1: as long as it is */
  bool varies;
  uint32_t output;     /* the first of its own */
  struct found *found; /* per example */
};
struct parse {
  struct host_call *call;
  const struct tensor *serialized;
  VEC(struct feature) features;
  struct example_keys keys; /* of features */
  int64_t examples;
  bool single; /* no dimension of examples */
};

/* ---- reading ---- */

static status note_feature(struct feature *f, int64_t example, struct wire feature) {
  struct wire_field field;
  while (wire_next(&feature, &field)) {
    if (field.type != WIRE_BYTES || field.number < 1 || field.number > 3)
      continue;
    if (field.number != example_list_number(f->dtype))
      return fail(INVALID_ARGUMENT, "Key: %.*s.  Data types don't match. Expected type: %s", (int)f->key.size, f->key.data,
                  dtype_name(f->dtype));
    struct found *found = &f->found[example];
    found->list = wire_inside(&field);
    found->count = example_list_count(found->list, f->dtype);
    found->is_there = true;
    if (found->count < 0)
      return fail(INVALID_ARGUMENT, "Could not parse example input");
  }
  return feature.is_bad ? fail(INVALID_ARGUMENT, "Could not parse example input") : OK;
}

static status read_entry(struct parse *p, int64_t example, struct wire entry) {
  struct string_view key;
  struct wire value;
  uint32_t count;
  bool good = example_entry(entry, &key, &value);
  const struct example_key *wanted = example_keys_find(&p->keys, key, &count);
  for (uint32_t i = 0; i < count; i++)
    TRY(note_feature(&p->features.items[wanted[i].feature], example, value));
  return good ? OK : fail(INVALID_ARGUMENT, "Could not parse example input");
}

static status read_example(struct parse *p, int64_t example) {
  struct string_view in = ((const struct string_view *)p->serialized->data)[example];
  struct wire wire = wire_over((const uint8_t *)in.data, in.size);
  struct wire_field field, entry;
  while (wire_next(&wire, &field)) {
    if (field.number != 1 || field.type != WIRE_BYTES)
      continue;
    struct wire features = wire_inside(&field);
    while (wire_next(&features, &entry))
      if (entry.number == 1 && entry.type == WIRE_BYTES)
        TRY(read_entry(p, example, wire_inside(&entry)));
    if (features.is_bad)
      return fail(INVALID_ARGUMENT, "Could not parse example input");
  }
  return wire.is_bad ? fail(INVALID_ARGUMENT, "Could not parse example input") : OK;
}

/* ---- writing ---- */

static int64_t inner_count(const struct feature *f) {
  int64_t count = 1;
  for (int d = f->varies ? 1 : 0; d < f->shape.rank; d++)
    count *= f->shape.dims[d];
  return count;
}

static status check_dense(const struct feature *f, int64_t example, int64_t wanted) {
  const struct found *found = &f->found[example];
  int64_t inner = inner_count(f);
  if (!found->is_there && !f->varies && f->otherwise->count == 0)
    return fail(INVALID_ARGUMENT, "Name: <unknown>, Feature: %.*s (data type: %s) is required but could not be found.", (int)f->key.size,
                f->key.data, dtype_name(f->dtype));
  bool fits = !found->is_there || (f->varies ? inner > 0 && found->count % inner == 0 : found->count == wanted);
  if (!fits)
    return fail(INVALID_ARGUMENT,
                "Name: <unknown>, Key: %.*s, Index: %lld.  Number of %s values != expected.  Values size: %lld but output shape: %s",
                (int)f->key.size, f->key.data, (long long)example, dtype_name(f->dtype), (long long)found->count, shape_text(&f->shape));
  return OK;
}

static status put_dense(struct parse *p, struct feature *f) {
  struct shape shape = {0};
  struct example_sink sink;
  int64_t inner = inner_count(f), rows = 0;
  for (int64_t e = 0; f->varies && e < p->examples; e++) {
    int64_t here = inner ? f->found[e].count / inner : 0;
    rows = here > rows ? here : rows;
  }
  if (!p->single)
    shape.dims[shape.rank++] = p->examples;
  for (int d = 0; d < f->shape.rank && shape.rank < LIMIT_RANK; d++)
    shape.dims[shape.rank++] = f->varies && d == 0 ? rows : f->shape.dims[d];
  int64_t each = f->varies ? rows * inner : inner;
  TRY(example_sink_begin(&sink, f->dtype, &shape, &p->call->outputs[f->output]));
  for (int64_t e = 0; e < p->examples; e++) {
    TRY(check_dense(f, e, each));
    if (f->found[e].is_there)
      example_sink_put_list(&sink, f->found[e].list);
    int64_t left = (e + 1) * each - sink.at;
    if (f->otherwise->count)
      example_sink_put_elements(&sink, f->otherwise, left);
    for (; f->otherwise->count == 0 && left > 0; left--)
      example_sink_put(&sink, NULL);
  }
  return example_sink_end(&sink);
}

/* Indices, values, shape: outputs `output`, `output + step`, `output + 2 step`. */
static status put_sparse(struct parse *p, struct feature *f, uint32_t values_at, uint32_t shape_at) {
  int64_t total = 0, longest = 0, rank = p->single ? 1 : 2, row = 0;
  for (int64_t e = 0; e < p->examples; e++) {
    total += f->found[e].count;
    longest = f->found[e].count > longest ? f->found[e].count : longest;
  }
  struct example_sink sink;
  TRY(host_make_output(p->call, f->output, DTYPE_INT64, &(struct shape){2, {total, rank}}));
  TRY(example_sink_begin(&sink, f->dtype, &(struct shape){1, {total}}, &p->call->outputs[values_at]));
  TRY(host_make_output(p->call, shape_at, DTYPE_INT64, &(struct shape){1, {rank}}));
  int64_t *indices = p->call->outputs[f->output]->data, *shape = p->call->outputs[shape_at]->data;
  for (int64_t e = 0; e < p->examples; e++) {
    for (int64_t k = 0; k < f->found[e].count; k++, row++) {
      if (!p->single)
        indices[row * rank] = e;
      indices[row * rank + rank - 1] = k;
    }
    if (f->found[e].is_there)
      example_sink_put_list(&sink, f->found[e].list);
  }
  if (!p->single)
    shape[0] = p->examples;
  shape[rank - 1] = longest;
  return example_sink_end(&sink);
}

static status put_ragged(struct parse *p, struct feature *f, uint32_t splits_at) {
  int64_t total = 0;
  for (int64_t e = 0; e < p->examples; e++)
    total += f->found[e].count;
  struct example_sink sink;
  TRY(example_sink_begin(&sink, f->dtype, &(struct shape){1, {total}}, &p->call->outputs[f->output]));
  TRY(host_make_output(p->call, splits_at, f->splits, &(struct shape){1, {p->examples + 1}}));
  struct tensor *splits = p->call->outputs[splits_at];
  total = 0;
  for (int64_t e = 0; e <= p->examples; e++) {
    element_put_int(splits, e, total);
    if (e < p->examples) {
      total += f->found[e].count;
      if (f->found[e].is_there)
        example_sink_put_list(&sink, f->found[e].list);
    }
  }
  return example_sink_end(&sink);
}

/* ---- what is wanted ---- */

static enum dtype listed_type(const struct host_call *call, const char *name, uint32_t i) {
  const struct program_attr *list = host_attr(call, name);
  return list && i < list->list.count ? (enum dtype)program_attr(call->program, list->list.first + i)->i : DTYPE_FLOAT;
}

static status dense_feature(struct parse *p, uint32_t i, struct string_view key, const struct tensor *otherwise) {
  struct feature f = {.kind = FEATURE_DENSE, .key = key, .dtype = listed_type(p->call, "Tdense", i), .otherwise = otherwise};
  const struct program_attr *shapes = host_attr(p->call, "dense_shapes");
  if (!shapes || i >= shapes->list.count)
    return fail(INVALID_ARGUMENT, "dense feature %u has no shape", i);
  TRY(host_read_shape(p->call, program_attr(p->call->program, shapes->list.first + i), &f.shape));
  if (f.shape.rank < 0 || f.shape.rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a dense feature of rank %d", f.shape.rank);
  f.varies = f.shape.rank > 0 && f.shape.dims[0] < 0;
  if (f.varies && otherwise->count > 1)
    return fail(INVALID_ARGUMENT, "dense_shape[%u] is a variable length shape, its default must have one element", i);
  int64_t wanted = inner_count(&f);
  if (!f.varies && otherwise->count > 1 && otherwise->count != wanted)
    return fail(INVALID_ARGUMENT, "def_value[%u].shape() == %s is not compatible with dense_shapes_[%u] == %s", i,
                shape_text(&otherwise->shape), i, shape_text(&f.shape));
  vec_push(&p->features, f);
  return OK;
}

static void other_feature(struct parse *p, enum feature_kind kind, uint32_t i, struct string_view key) {
  struct feature f = {.kind = kind, .key = key};
  f.dtype = listed_type(p->call, kind == FEATURE_SPARSE ? "sparse_types" : "ragged_value_types", i);
  f.splits = listed_type(p->call, "ragged_split_types", i);
  vec_push(&p->features, f);
}

/* ---- all of it ---- */

static status parse_run(struct parse *p) {
  struct host_call *call = p->call;
  uint32_t counts[3] = {0}, seen[3] = {0};
  for (uint32_t i = 0; i < p->features.count; i++) {
    struct feature *f = &p->features.items[i];
    counts[f->kind]++;
    example_keys_add(&p->keys, f->key, i);
    f->found = calloc((size_t)p->examples + 1, sizeof *f->found);
    if (!f->found)
      return fail(RESOURCE_EXHAUSTED, "no memory for %lld examples", (long long)p->examples);
  }
  example_keys_sort(&p->keys);
  for (int64_t e = 0; e < p->examples; e++)
    TRY(read_example(p, e));
  uint32_t sparse = counts[FEATURE_SPARSE], dense = counts[FEATURE_DENSE], ragged = counts[FEATURE_RAGGED];
  if (call->output_count != 3 * sparse + dense + 2 * ragged)
    return fail(INVALID_ARGUMENT, "%u outputs for %u sparse, %u dense and %u ragged features", call->output_count, sparse, dense, ragged);
  for (uint32_t i = 0; i < p->features.count; i++) {
    struct feature *f = &p->features.items[i];
    uint32_t k = seen[f->kind]++;
    f->output = f->kind == FEATURE_SPARSE ? k : f->kind == FEATURE_DENSE ? 3 * sparse + k : 3 * sparse + dense + k;
    TRY(f->kind == FEATURE_SPARSE  ? put_sparse(p, f, sparse + k, 2 * sparse + k)
        : f->kind == FEATURE_DENSE ? put_dense(p, f)
                                   : put_ragged(p, f, f->output + ragged));
  }
  return OK;
}

static status parse_end(struct parse *p, status result) {
  if (result == OK)
    result = parse_run(p);
  for (uint32_t i = 0; i < p->features.count; i++)
    free(p->features.items[i].found);
  vec_free(&p->features);
  vec_free(&p->keys.list);
  return result;
}

/* serialized, names, a scalar for each sparse and dense key, defaults */
static status want_v1(struct parse *p) {
  struct host_call *call = p->call;
  uint32_t sparse = (uint32_t)host_attr_int(call, "Nsparse", 0), dense = (uint32_t)host_attr_int(call, "Ndense", 0);
  if (call->input_count != 2 + sparse + 2 * dense)
    return fail(INVALID_ARGUMENT, "%u inputs for %u sparse and %u dense features", call->input_count, sparse, dense);
  for (uint32_t i = 0; i < sparse; i++)
    other_feature(p, FEATURE_SPARSE, i, host_scalar_string(&call->inputs[2 + i]));
  for (uint32_t i = 0; i < dense; i++)
    TRY(dense_feature(p, i, host_scalar_string(&call->inputs[2 + sparse + i]), &call->inputs[2 + sparse + dense + i]));
  return OK;
}

/* serialized, names, vectors of sparse, dense and ragged keys, defaults */
static status want_v2(struct parse *p) {
  struct host_call *call = p->call;
  const struct tensor *sparse = &call->inputs[2], *dense = &call->inputs[3], *ragged = &call->inputs[4];
  if (call->input_count != 5 + (uint64_t)dense->count)
    return fail(INVALID_ARGUMENT, "%u inputs for %lld dense features", call->input_count, (long long)dense->count);
  for (int64_t i = 0; i < sparse->count; i++)
    other_feature(p, FEATURE_SPARSE, (uint32_t)i, ((const struct string_view *)sparse->data)[i]);
  for (int64_t i = 0; i < dense->count; i++)
    TRY(dense_feature(p, (uint32_t)i, ((const struct string_view *)dense->data)[i], &call->inputs[5 + i]));
  for (int64_t i = 0; i < ragged->count; i++)
    other_feature(p, FEATURE_RAGGED, (uint32_t)i, ((const struct string_view *)ragged->data)[i]);
  return OK;
}

static struct string_view listed_key(const struct host_call *call, const struct program_attr *list, uint32_t i) {
  const struct program_attr *key = program_attr(call->program, list->list.first + i);
  return (struct string_view){(const char *)program_table(call->program, PROGRAM_DATA) + key->offset, key->size};
}

/* serialized, defaults; keys are attributes */
static status want_single(struct parse *p) {
  struct host_call *call = p->call;
  const struct program_attr *sparse = host_attr(call, "sparse_keys"), *dense = host_attr(call, "dense_keys");
  for (uint32_t i = 0; sparse && i < sparse->list.count; i++)
    other_feature(p, FEATURE_SPARSE, i, listed_key(call, sparse, i));
  for (uint32_t i = 0; dense && i < dense->list.count; i++) {
    if (i + 1 >= call->input_count)
      return fail(INVALID_ARGUMENT, "dense feature %u has no default", i);
    TRY(dense_feature(p, i, listed_key(call, dense, i), &call->inputs[i + 1]));
  }
  return OK;
}

static struct parse parse_begin(struct host_call *call, bool single) {
  return (struct parse){
    .call = call, .serialized = &call->inputs[0], .examples = call->inputs[0].count, .single = single || call->inputs[0].shape.rank == 0};
}

status host_parse_example(struct host_call *call) {
  struct parse p = parse_begin(call, false);
  return parse_end(&p, want_v1(&p));
}
status host_parse_example_v2(struct host_call *call) {
  struct parse p = parse_begin(call, false);
  return parse_end(&p, want_v2(&p));
}
status host_parse_single_example(struct host_call *call) {
  struct parse p = parse_begin(call, true);
  return parse_end(&p, want_single(&p));
}
