/* host_sequence.c: ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample: tf.train.SequenceExample (example.proto) into
 * dense, sparse and ragged tensors. The three ops differ in where the keys come from; here they become one list of wanted features.
 *
 * SequenceExample { 1 context: Features, 2 feature_lists: FeatureLists { 1 map entry { 1 key, 2 FeatureList { 1 Feature } } } }
 * A feature of the context is read as a list of one row. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/example_values.h"
#include "runtime/host/host.h"
#include "runtime/text/element_number.h"

enum feature_kind { FEATURE_SPARSE, FEATURE_DENSE, FEATURE_RAGGED };

struct row {
  struct wire list;
  int64_t count;
};
struct feature {
  enum feature_kind kind;
  bool is_list, may_miss;
  struct string_view key;
  enum dtype dtype, splits;
  const struct tensor *otherwise; /* DENSE in the context: the default; without elements: required */
  struct shape shape;             /* DENSE: of a row */
  VEC(struct row) rows;           /* of all examples */
  uint32_t *ends;                 /* per example: where its rows end */
  bool *is_there;                 /* per example */
};
struct parse {
  struct host_call *call;
  int64_t examples;
  bool single; /* no dimension of examples */
  VEC(struct feature) features;
  struct example_keys keys[2]; /* of features: those of the context, lists */
  uint32_t output;             /* the next one */
};

/* ---- reading ---- */

static status bad_input(void) { return fail(INVALID_ARGUMENT, "Invalid protocol message input"); }

static status add_row(struct feature *f, struct wire feature) {
  struct wire_field field;
  struct row row = {.list = wire_over(NULL, 0)};
  while (wire_next(&feature, &field)) {
    if (field.type != WIRE_BYTES || field.number < 1 || field.number > 3)
      continue;
    if (field.number != example_list_number(f->dtype))
      return fail(INVALID_ARGUMENT, "Name: <unknown>, %s: %.*s.  Data types don't match. Expected type: %s",
                  f->is_list ? "Feature list" : "Context feature", (int)f->key.size, f->key.data, dtype_name(f->dtype));
    row.list = wire_inside(&field);
    row.count = example_list_count(row.list, f->dtype);
    if (row.count < 0)
      return bad_input();
  }
  vec_push(&f->rows, row);
  return feature.is_bad ? bad_input() : OK;
}

static uint32_t first_row(const struct feature *f, int64_t example) { return example ? f->ends[example - 1] : 0; }

/* The last of several entries with one key counts. */
static status read_value(struct feature *f, int64_t example, struct wire value) {
  struct wire_field field;
  f->rows.count = first_row(f, example);
  f->is_there[example] = true;
  if (!f->is_list)
    return add_row(f, value);
  while (wire_next(&value, &field))
    if (field.number == 1 && field.type == WIRE_BYTES)
      TRY(add_row(f, wire_inside(&field)));
  return value.is_bad ? bad_input() : OK;
}

static status read_entry(struct parse *p, int64_t example, bool is_list, struct wire entry) {
  struct string_view key;
  struct wire value;
  uint32_t count;
  bool good = example_entry(entry, &key, &value);
  const struct example_key *wanted = example_keys_find(&p->keys[is_list], key, &count);
  for (uint32_t i = 0; i < count; i++)
    TRY(read_value(&p->features.items[wanted[i].feature], example, value));
  return good ? OK : bad_input();
}

static status read_example(struct parse *p, int64_t example) {
  struct string_view in = ((const struct string_view *)p->call->inputs[0].data)[example];
  struct wire wire = wire_over((const uint8_t *)in.data, in.size);
  struct wire_field field, entry;
  while (wire_next(&wire, &field)) {
    if ((field.number != 1 && field.number != 2) || field.type != WIRE_BYTES)
      continue;
    struct wire features = wire_inside(&field);
    while (wire_next(&features, &entry))
      if (entry.number == 1 && entry.type == WIRE_BYTES)
        TRY(read_entry(p, example, field.number == 2, wire_inside(&entry)));
    if (features.is_bad)
      return bad_input();
  }
  for (uint32_t i = 0; i < p->features.count; i++)
    p->features.items[i].ends[example] = p->features.items[i].rows.count;
  return wire.is_bad ? bad_input() : OK;
}

/* ---- sizes ---- */

struct sizes {
  int64_t values, rows, columns; /* all values; the most rows of an example, the most values of a row */
};

static struct sizes sizes_of(const struct parse *p, const struct feature *f) {
  struct sizes s = {0};
  for (int64_t e = 0; e < p->examples; e++) {
    int64_t rows = f->ends[e] - first_row(f, e);
    s.rows = rows > s.rows ? rows : s.rows;
  }
  for (uint32_t i = 0; i < f->rows.count; i++) {
    s.values += f->rows.items[i].count;
    s.columns = f->rows.items[i].count > s.columns ? f->rows.items[i].count : s.columns;
  }
  return s;
}

static void put_rows(const struct feature *f, struct example_sink *sink) {
  for (uint32_t i = 0; i < f->rows.count; i++)
    example_sink_put_list(sink, f->rows.items[i].list);
}

/* ---- sparse: example, row (of lists), place ---- */

static status put_sparse(struct parse *p, struct feature *f, uint32_t indices_at, uint32_t values_at, uint32_t shape_at) {
  struct sizes sizes = sizes_of(p, f);
  int64_t rank = 1 + f->is_list + !p->single, at = 0;
  struct example_sink sink;
  TRY(host_make_output(p->call, indices_at, DTYPE_INT64, &(struct shape){2, {sizes.values, rank}}));
  TRY(example_sink_begin(&sink, f->dtype, &(struct shape){1, {sizes.values}}, &p->call->outputs[values_at]));
  TRY(host_make_output(p->call, shape_at, DTYPE_INT64, &(struct shape){1, {rank}}));
  int64_t *indices = p->call->outputs[indices_at]->data, *shape = p->call->outputs[shape_at]->data;
  for (int64_t e = 0; e < p->examples; e++)
    for (uint32_t r = first_row(f, e); r < f->ends[e]; r++)
      for (int64_t k = 0; k < f->rows.items[r].count; k++) {
        if (!p->single)
          indices[at++] = e;
        if (f->is_list)
          indices[at++] = r - first_row(f, e);
        indices[at++] = k;
      }
  put_rows(f, &sink);
  at = 0;
  if (!p->single)
    shape[at++] = p->examples;
  if (f->is_list)
    shape[at++] = sizes.rows;
  shape[at] = sizes.columns;
  return example_sink_end(&sink);
}

/* ---- dense ---- */

static status check_dense(const struct feature *f, int64_t example, int64_t each) {
  if (!f->is_there[example] && f->is_list && !f->may_miss)
    return fail(
      INVALID_ARGUMENT,
      "Name: <unknown>, Feature list '%.*s' is required but could not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
      (int)f->key.size, f->key.data);
  if (!f->is_there[example] && !f->is_list && f->otherwise->count == 0)
    return fail(INVALID_ARGUMENT, "Name: <unknown>, Context feature '%.*s' is required but could not be found.", (int)f->key.size,
                f->key.data);
  for (uint32_t r = first_row(f, example); r < f->ends[example]; r++)
    if (f->rows.items[r].count != each)
      return fail(INVALID_ARGUMENT,
                  "Name: <unknown>, Key: %.*s, Index: %u.  Number of values != expected.  values size: %lld but output shape: %s",
                  (int)f->key.size, f->key.data, r - first_row(f, example), (long long)f->rows.items[r].count, shape_text(&f->shape));
  return OK;
}

/* Rows that an example does not have are zeros. */
static void put_example(const struct feature *f, int64_t example, int64_t end, struct example_sink *sink) {
  for (uint32_t r = first_row(f, example); r < f->ends[example]; r++)
    example_sink_put_list(sink, f->rows.items[r].list);
  if (!f->is_list && !f->is_there[example])
    for (int64_t i = 0; i < f->otherwise->count; i++)
      example_sink_put(sink, (const char *)f->otherwise->data + (size_t)i * dtype_size(f->dtype));
  while (sink->at < end)
    example_sink_put(sink, NULL);
}

static status put_dense(struct parse *p, struct feature *f) {
  struct sizes sizes = sizes_of(p, f);
  struct shape shape = {0};
  struct example_sink sink;
  int64_t each = shape_count(&f->shape), block = f->is_list ? sizes.rows * each : each;
  if (!p->single)
    shape.dims[shape.rank++] = p->examples;
  if (f->is_list)
    shape.dims[shape.rank++] = sizes.rows;
  for (int d = 0; d < f->shape.rank && shape.rank < LIMIT_RANK; d++)
    shape.dims[shape.rank++] = f->shape.dims[d];
  if (p->examples == 0 && !f->is_list && each && f->otherwise->count == 0)
    return fail(INVALID_ARGUMENT, "Inconsistent max number of elements for feature %.*s: expected %lld, but found 0", (int)f->key.size,
                f->key.data, (long long)each);
  for (int64_t e = 0; e < p->examples; e++)
    TRY(check_dense(f, e, each));
  TRY(example_sink_begin(&sink, f->dtype, &shape, &p->call->outputs[p->output++]));
  for (int64_t e = 0; e < p->examples; e++)
    put_example(f, e, (e + 1) * block, &sink);
  return example_sink_end(&sink);
}

static status put_lengths(struct parse *p, const struct feature *f) {
  struct shape shape = {.rank = !p->single, .dims = {p->examples}};
  TRY(host_make_output(p->call, p->output, DTYPE_INT64, &shape));
  for (int64_t e = 0; e < p->examples; e++)
    ((int64_t *)p->call->outputs[p->output]->data)[e] = f->ends[e] - first_row(f, e);
  p->output++;
  return OK;
}

/* ---- ragged ---- */

/* Where each example begins: among the values, or the rows of a list. One example alone has none: a zero. */
static status put_outer_splits(struct parse *p, const struct feature *f, uint32_t at) {
  struct shape shape = {.rank = !p->single, .dims = {p->examples + 1}};
  int64_t values = 0;
  uint32_t r = 0;
  TRY(host_make_output(p->call, at, f->splits, &shape));
  element_put_int(p->call->outputs[at], 0, 0);
  for (int64_t e = 0; e < p->examples && !p->single; e++) {
    for (; r < f->ends[e]; r++)
      values += f->rows.items[r].count;
    element_put_int(p->call->outputs[at], e + 1, f->is_list ? f->ends[e] : values);
  }
  return OK;
}

static status put_inner_splits(struct parse *p, const struct feature *f, uint32_t at) {
  int64_t values = 0;
  TRY(host_make_output(p->call, at, f->splits, &(struct shape){1, {f->rows.count + 1}}));
  element_put_int(p->call->outputs[at], 0, 0);
  for (uint32_t r = 0; r < f->rows.count; r++) {
    values += f->rows.items[r].count;
    element_put_int(p->call->outputs[at], r + 1, values);
  }
  return OK;
}

static status put_ragged_values(struct parse *p, const struct feature *f, uint32_t at) {
  struct example_sink sink;
  TRY(example_sink_begin(&sink, f->dtype, &(struct shape){1, {sizes_of(p, f).values}}, &p->call->outputs[at]));
  put_rows(f, &sink);
  return example_sink_end(&sink);
}

/* ---- all of them: those of the context, then the lists; sparse, dense, ragged ---- */

static uint32_t count_of(const struct parse *p, bool is_list, enum feature_kind kind) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->features.count; i++)
    count += p->features.items[i].is_list == is_list && p->features.items[i].kind == kind;
  return count;
}

static status put_group(struct parse *p, bool is_list, enum feature_kind kind, bool has_lengths) {
  uint32_t count = count_of(p, is_list, kind), first = p->output, k = 0;
  for (uint32_t i = 0; i < p->features.count; i++) {
    struct feature *f = &p->features.items[i];
    if (f->is_list != is_list || f->kind != kind)
      continue;
    if (kind == FEATURE_DENSE) {
      TRY(put_dense(p, f));
      continue;
    }
    if (kind == FEATURE_SPARSE) {
      TRY(put_sparse(p, f, first + k, first + count + k, first + 2 * count + k));
    } else {
      TRY(put_ragged_values(p, f, first + k));
      TRY(put_outer_splits(p, f, first + count + k));
      if (is_list)
        TRY(put_inner_splits(p, f, first + 2 * count + k));
    }
    k++;
  }
  if (kind != FEATURE_DENSE)
    p->output = first + k * (kind == FEATURE_RAGGED && !is_list ? 2 : 3);
  for (uint32_t i = 0; kind == FEATURE_DENSE && is_list && has_lengths && i < p->features.count; i++)
    if (p->features.items[i].is_list && p->features.items[i].kind == FEATURE_DENSE)
      TRY(put_lengths(p, &p->features.items[i]));
  return OK;
}

static status parse_run(struct parse *p, bool has_lengths) {
  for (uint32_t i = 0; i < p->features.count; i++) {
    struct feature *f = &p->features.items[i];
    f->ends = calloc((size_t)p->examples + 1, sizeof *f->ends);
    f->is_there = calloc((size_t)p->examples + 1, sizeof *f->is_there);
    if (!f->ends || !f->is_there)
      return fail(RESOURCE_EXHAUSTED, "no memory for %lld examples", (long long)p->examples);
    example_keys_add(&p->keys[f->is_list], f->key, i);
  }
  example_keys_sort(&p->keys[0]);
  example_keys_sort(&p->keys[1]);
  for (int64_t e = 0; e < p->examples; e++)
    TRY(read_example(p, e));
  for (int is_list = 0; is_list < 2; is_list++)
    for (int kind = FEATURE_SPARSE; kind <= FEATURE_RAGGED; kind++)
      TRY(put_group(p, is_list, (enum feature_kind)kind, has_lengths));
  return p->output == p->call->output_count ? OK : fail(INVALID_ARGUMENT, "%u outputs, wanted are %u", p->call->output_count, p->output);
}

static status parse_end(struct parse *p, bool has_lengths, status result) {
  if (result == OK)
    result = parse_run(p, has_lengths);
  for (uint32_t i = 0; i < p->features.count; i++) {
    free(p->features.items[i].ends);
    free(p->features.items[i].is_there);
    vec_free(&p->features.items[i].rows);
  }
  vec_free(&p->features);
  vec_free(&p->keys[0].list);
  vec_free(&p->keys[1].list);
  return result;
}

/* ---- what is wanted ---- */

static const struct program_attr *listed(const struct host_call *call, const char *name, uint32_t i) {
  const struct program_attr *list = host_attr(call, name);
  return list && i < list->list.count ? program_attr(call->program, list->list.first + i) : NULL;
}

static enum dtype listed_type(const struct host_call *call, const char *name, uint32_t i) {
  const struct program_attr *type = listed(call, name, i);
  return type ? (enum dtype)type->i : DTYPE_FLOAT;
}

static struct string_view attr_text(const struct host_call *call, const struct program_attr *attr) {
  return (struct string_view){(const char *)program_table(call->program, PROGRAM_DATA) + attr->offset, attr->size};
}

static void want_plain(struct parse *p, bool is_list, enum feature_kind kind, uint32_t i, struct string_view key) {
  static const char *const types[2][3] = {{"context_sparse_types", "Tcontext_dense", "context_ragged_value_types"},
                                          {"feature_list_sparse_types", "feature_list_dense_types", "feature_list_ragged_value_types"}};
  struct feature f = {.kind = kind, .is_list = is_list, .key = key, .dtype = listed_type(p->call, types[is_list][kind], i)};
  f.splits = listed_type(p->call, is_list ? "feature_list_ragged_split_types" : "context_ragged_split_types", i);
  vec_push(&p->features, f);
}

static status want_dense(struct parse *p, bool is_list, uint32_t i, struct string_view key, const struct tensor *otherwise, bool may_miss) {
  want_plain(p, is_list, FEATURE_DENSE, i, key);
  struct feature *f = &p->features.items[p->features.count - 1];
  const struct program_attr *shape = listed(p->call, is_list ? "feature_list_dense_shapes" : "context_dense_shapes", i);
  TRY(host_read_shape(p->call, shape, &f->shape));
  if (f->shape.rank < 0 || f->shape.rank + 2 > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "dense feature %u has no shape of known rank", i);
  f->otherwise = otherwise;
  f->may_miss = may_miss;
  if (otherwise && otherwise->count && !shape_equal(&otherwise->shape, &f->shape))
    return fail(INVALID_ARGUMENT, "default_value[%u].shape() == %s != context_dense_shapes[%u] == %s", i, shape_text(&otherwise->shape), i,
                shape_text(&f->shape));
  return shape_count(&f->shape) < 0 ? fail(UNIMPLEMENTED, "a dense feature of unknown size") : OK;
}

/* Keys in attributes; inputs are serialized, names, defaults. */
static status want_v1(struct parse *p) {
  struct host_call *call = p->call;
  const struct program_attr *key, *missing;
  for (uint32_t i = 0; (key = listed(call, "context_sparse_keys", i)); i++)
    want_plain(p, false, FEATURE_SPARSE, i, attr_text(call, key));
  for (uint32_t i = 0; (key = listed(call, "context_dense_keys", i)); i++) {
    if (i + 2 >= call->input_count)
      return fail(INVALID_ARGUMENT, "context feature %u has no default", i);
    TRY(want_dense(p, false, i, attr_text(call, key), &call->inputs[2 + i], false));
  }
  for (uint32_t i = 0; (key = listed(call, "feature_list_sparse_keys", i)); i++)
    want_plain(p, true, FEATURE_SPARSE, i, attr_text(call, key));
  for (uint32_t i = 0; (key = listed(call, "feature_list_dense_keys", i)); i++) {
    bool may_miss = false;
    for (uint32_t k = 0; (missing = listed(call, "feature_list_dense_missing_assumed_empty", k)); k++)
      may_miss = may_miss || string_equal(attr_text(call, missing), attr_text(call, key));
    TRY(want_dense(p, true, i, attr_text(call, key), NULL, may_miss));
  }
  return OK;
}

static struct string_view text_at(const struct tensor *t, int64_t i) { return ((const struct string_view *)t->data)[i]; }

/* serialized, names, vectors of keys (sparse, dense, ragged of the context, then of lists), which may be missing, defaults */
static status want_v2(struct parse *p) {
  const struct tensor *in = p->call->inputs;
  if (in[8].count != in[6].count)
    return fail(INVALID_ARGUMENT, "Expected len(feature_list_dense_missing_assumed_empty to match Nfeature_list_dense");
  if (p->call->input_count != 9 + (uint64_t)in[3].count)
    return fail(INVALID_ARGUMENT, "Expected len(context_dense_defaults) == len(context_dense_keys) but got: %u vs. %lld",
                p->call->input_count - 9, (long long)in[3].count);
  for (int64_t i = 0; i < in[2].count; i++)
    want_plain(p, false, FEATURE_SPARSE, (uint32_t)i, text_at(&in[2], i));
  for (int64_t i = 0; i < in[3].count; i++)
    TRY(want_dense(p, false, (uint32_t)i, text_at(&in[3], i), &in[9 + i], false));
  for (int64_t i = 0; i < in[4].count; i++)
    want_plain(p, false, FEATURE_RAGGED, (uint32_t)i, text_at(&in[4], i));
  for (int64_t i = 0; i < in[5].count; i++)
    want_plain(p, true, FEATURE_SPARSE, (uint32_t)i, text_at(&in[5], i));
  for (int64_t i = 0; i < in[6].count; i++)
    TRY(want_dense(p, true, (uint32_t)i, text_at(&in[6], i), NULL, ((const bool *)in[8].data)[i]));
  for (int64_t i = 0; i < in[7].count; i++)
    want_plain(p, true, FEATURE_RAGGED, (uint32_t)i, text_at(&in[7], i));
  return OK;
}

/* serialized, names of lists that may be missing, a scalar for each key, defaults, the example's name */
static status want_single(struct parse *p) {
  const struct tensor *in = p->call->inputs;
  uint32_t at = 2, counts[4];
  static const char *const names[] = {"Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense"};
  for (int k = 0; k < 4; k++)
    counts[k] = (uint32_t)host_attr_int(p->call, names[k], 0);
  uint32_t defaults = 2 + counts[0] + counts[1] + counts[2] + counts[3];
  if (p->call->input_count != defaults + counts[1] + 1)
    return fail(INVALID_ARGUMENT, "%u inputs", p->call->input_count);
  for (uint32_t i = 2; i < defaults; i++)
    if (in[i].shape.rank != 0)
      return fail(INVALID_ARGUMENT, "Expected keys to be scalars, got shape: %s", shape_text(&in[i].shape));
  for (uint32_t i = 0; i < counts[0]; i++)
    want_plain(p, false, FEATURE_SPARSE, i, text_at(&in[at++], 0));
  for (uint32_t i = 0; i < counts[1]; i++)
    TRY(want_dense(p, false, i, text_at(&in[at++], 0), &in[defaults + i], false));
  for (uint32_t i = 0; i < counts[2]; i++)
    want_plain(p, true, FEATURE_SPARSE, i, text_at(&in[at++], 0));
  for (uint32_t i = 0; i < counts[3]; i++, at++) {
    bool may_miss = false;
    for (int64_t k = 0; k < in[1].count; k++)
      may_miss = may_miss || string_equal(text_at(&in[1], k), text_at(&in[at], 0));
    TRY(want_dense(p, true, i, text_at(&in[at], 0), NULL, may_miss));
  }
  return OK;
}

static struct parse parse_begin(struct host_call *call) {
  return (struct parse){.call = call, .examples = call->inputs[0].count, .single = call->inputs[0].shape.rank == 0};
}

status host_parse_sequence(struct host_call *call) {
  struct parse p = parse_begin(call);
  return parse_end(&p, true, want_v1(&p));
}
status host_parse_sequence_v2(struct host_call *call) {
  struct parse p = parse_begin(call);
  return parse_end(&p, true, want_v2(&p));
}
status host_parse_single_sequence(struct host_call *call) {
  struct parse p = parse_begin(call);
  return parse_end(&p, false, want_single(&p));
}
