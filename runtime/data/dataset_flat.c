/* dataset_flat.c: datasets that say for each place which element stands there: a part of what a function makes of a source's element, or
 * the next of the source that the place falls to. */
#include <stdlib.h>

#include "runtime/data/dataset.h"
#include "runtime/value/tensor_list.h"

/* ---- rows by place: index_map_func says of which element, and which row ---- */

struct index_state {
  struct tensor *mapped[DATASET_COMPONENTS_MAX]; /* what map_func made of the element that is read */
  bool is_mapped;
  int64_t at, element;
};

static uint32_t mapped_count(const struct dataset *d) { return (uint32_t)host_attr_int(&d->words, "mapped", 0); }

static void index_stop(struct cursor *c) {
  struct index_state *s = c->state;
  if (s->is_mapped)
    element_release(s->mapped, mapped_count(c->dataset));
}

static int64_t index_size(const struct dataset *d) { return host_scalar_int(d->inputs[d->input_count - 1]); }

static status index_check(const struct dataset *d) {
  int64_t size;
  if (mapped_count(d) < 1 || mapped_count(d) > DATASET_COMPONENTS_MAX || d->component_count != 1)
    return fail(UNIMPLEMENTED, "`map_func` gives %u values for elements of %u components", mapped_count(d), d->component_count);
  return d->input_count ? dataset_int(d, d->input_count - 1, "output_cardinality", &size)
                        : fail(INVALID_ARGUMENT, "output_cardinality is missing");
}

static bool is_number(const struct tensor *t) { return (t->dtype == DTYPE_INT64 || t->dtype == DTYPE_INT32) && t->count == 1; }

/* Which element, and which row of what is made of it, stands at the place. */
static status find_row(struct cursor *c, const struct dataset_run *run, int64_t place, int64_t *element, int64_t *row) {
  struct tensor *in, *made[2];
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){0}, &place, &in));
  status result = dataset_call_part(c->dataset, run, "index_map_func", &in, 1, made, 2);
  tensor_release(in);
  TRY(result);
  bool good = is_number(made[0]) && is_number(made[1]);
  *element = good ? host_scalar_int(made[0]) : 0;
  *row = good ? host_scalar_int(made[1]) : 0;
  element_release(made, 2);
  return good ? OK : fail(INVALID_ARGUMENT, "`index_map_func` must return two scalars of int32 or int64.");
}

static status map_element(struct cursor *c, const struct dataset_run *run, bool *end) {
  struct index_state *s = c->state;
  struct tensor *element[DATASET_COMPONENTS_MAX];
  uint32_t count = c->dataset->sources[0]->component_count;
  if (s->is_mapped)
    element_release(s->mapped, mapped_count(c->dataset));
  s->is_mapped = false;
  TRY(cursor_source_next(c, 0, run, element, end));
  if (*end)
    return OK;
  status result = dataset_call_part(c->dataset, run, "map_func", element, count, s->mapped, mapped_count(c->dataset));
  element_release(element, count);
  s->is_mapped = result == OK;
  return result;
}

/* A row of the only value that map_func gives, which may be a scalar, or one of several values. */
static status take_row(const struct dataset *d, const struct index_state *s, int64_t row, struct tensor **out) {
  const struct tensor *mapped = s->mapped[0];
  bool has_rows = mapped_count(d) == 1;
  if (has_rows && mapped->shape.rank == 0) {
    *out = tensor_retain(s->mapped[0]);
    return OK;
  }
  int64_t count = has_rows ? mapped->shape.dims[0] : mapped_count(d);
  if (row < 0 || row >= count)
    return fail(INVALID_ARGUMENT,
                "`index_flat_map` got invalid `index_map_func` which returns offset %lld, but the input "
                "element has %lld elements",
                (long long)row, (long long)count);
  if (has_rows)
    return tensor_row(mapped, row, out);
  *out = tensor_retain(s->mapped[row]);
  return OK;
}

/* As in TensorFlow the next element is read when a later one is asked for, whichever that is. */
static status index_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct index_state *s = c->state;
  int64_t element, row;
  *end = false;
  TRY(find_row(c, run, s->at, &element, &row));
  if (element > s->element || !s->is_mapped) {
    TRY(map_element(c, run, end));
    if (*end)
      return OK;
    s->element = element;
  }
  TRY(take_row(c->dataset, s, row, out));
  s->at++;
  return OK;
}

/* ---- the first of each source, as many as their weights say ---- */

struct weighted_state {
  uint32_t source;
  int64_t given; /* of it */
};

static double weight_of(const struct dataset *d, uint32_t i) { return *(const double *)d->inputs[i]->data; }

/* How many of source i are taken: the one that is the first to end gives all it has. */
static int64_t share_of(const struct dataset *d, uint32_t i) {
  double most = 0, least = 0;
  uint32_t first = d->source_count;
  for (uint32_t k = 0; k < d->source_count; k++)
    most = weight_of(d, k) > most ? weight_of(d, k) : most;
  for (uint32_t k = 0; k < d->source_count; k++) {
    double size = (double)dataset_size(d->sources[k]) * weight_of(d, k) / most;
    if (first == d->source_count || size < least) {
      least = size;
      first = k;
    }
  }
  return (int64_t)(least * weight_of(d, i) / weight_of(d, first));
}

static status weighted_check_source(const struct dataset *d, uint32_t i) {
  int64_t size = dataset_size(d->sources[i]);
  if (d->sources[i]->component_count != d->component_count)
    return fail(INVALID_ARGUMENT,
                "All inputs to WeightedFlatMap must have compatible outputs. Input %u has %u components. "
                "Expected to have %u components.",
                i, d->sources[i]->component_count, d->component_count);
  if (size < 0)
    return fail(INVALID_ARGUMENT, "Cardinalities of the inputs must be known. Input %u has %s cardinality.", i,
                size == DATASET_INFINITE ? "INFINITE" : "UNKNOWN");
  if (d->inputs[i]->dtype != DTYPE_DOUBLE || d->inputs[i]->count != 1)
    return fail(INVALID_ARGUMENT, "weight %u must be a scalar", i);
  return weight_of(d, i) > 0
         ? OK
         : fail(INVALID_ARGUMENT, "`weights` must be greater than 0.0. Input %u has a weight of %g", i, weight_of(d, i));
}

static status weighted_check(const struct dataset *d) {
  if (d->source_count < 2)
    return fail(INVALID_ARGUMENT, "WeightedFlatMap must have at least two input datasets.");
  if (d->input_count != d->source_count)
    return fail(INVALID_ARGUMENT,
                "`input_datasets` and `weights` of the WeightedFlatMap must have the same size. "
                "Got %u datasets and %u weights.",
                d->source_count, d->input_count);
  for (uint32_t i = 0; i < d->source_count; i++)
    TRY(weighted_check_source(d, i));
  for (uint32_t i = 0; i < d->source_count; i++)
    if (share_of(d, i) > dataset_size(d->sources[i]))
      return fail(INVALID_ARGUMENT,
                  "Input %u needs to have at least %lld elements. It only has "
                  "%lld elements.",
                  i, (long long)share_of(d, i), (long long)dataset_size(d->sources[i]));
  return OK;
}

static int64_t weighted_size(const struct dataset *d) {
  int64_t size = 0;
  for (uint32_t i = 0; i < d->source_count; i++)
    size = dataset_size_sum(size, share_of(d, i));
  return size;
}

static status weighted_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct weighted_state *s = c->state;
  for (; s->source < c->dataset->source_count && s->given >= share_of(c->dataset, s->source); s->source++)
    s->given = 0;
  *end = s->source == c->dataset->source_count;
  if (*end)
    return OK;
  s->given++;
  return cursor_source_next(c, s->source, run, out, end);
}

const struct dataset_kind dataset_flats[] = {
  {"IndexFlatMapDataset", sizeof(struct index_state), index_next, index_stop, index_check, .size = index_size,
   .has_places = dataset_has_places},
  {"WeightedFlatMapDataset", sizeof(struct weighted_state), weighted_next, NULL, weighted_check, MADE_FROM_ALL, .size = weighted_size,
   .has_places = dataset_has_places},
  {0},
};
