/* dataset_source.c: datasets from tensors, and the ways to put datasets one after or beside another. */
#include <stdlib.h>
#include <string.h>

#include "runtime/data/dataset.h"
#include "runtime/text/element_number.h"
#include "runtime/value/tensor_list.h"

/* ---- tensors ---- */

struct count_state {
  int64_t at;
};

static status tensor_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct count_state *s = c->state;
  *end = s->at++ > 0;
  for (uint32_t i = 0; !*end && i < c->dataset->input_count; i++)
    out[i] = tensor_retain(c->dataset->inputs[i]);
  return OK;
}

static int64_t tensor_size(const struct dataset *d) {
  (void)d;
  return 1;
}

static status slices_check(const struct dataset *d) {
  for (uint32_t i = 0; i < d->input_count; i++) {
    if (d->inputs[i]->shape.rank < 1)
      return fail(INVALID_ARGUMENT, "Component %u: a scalar has no slices", i);
    if (d->inputs[i]->shape.dims[0] != d->inputs[0]->shape.dims[0])
      return fail(INVALID_ARGUMENT, "Component %u has %lld slices, component 0 has %lld", i, (long long)d->inputs[i]->shape.dims[0],
                  (long long)d->inputs[0]->shape.dims[0]);
  }
  return OK;
}

static status rows_next(struct tensor *const *tensors, uint32_t count, int64_t row, struct tensor **out) {
  for (uint32_t i = 0; i < count; i++) {
    status result = tensor_row(tensors[i], row, &out[i]);
    if (result != OK) {
      element_release(out, i);
      return result;
    }
  }
  return OK;
}

static status slices_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct count_state *s = c->state;
  const struct dataset *d = c->dataset;
  *end = d->input_count == 0 || s->at >= d->inputs[0]->shape.dims[0];
  return *end ? OK : rows_next(d->inputs, d->input_count, s->at++, out);
}

static int64_t slices_size(const struct dataset *d) { return d->input_count ? d->inputs[0]->shape.dims[0] : 0; }

/* ---- range ---- */

static enum dtype range_dtype(const struct dataset *d) {
  const struct program_attr *types = host_attr(&d->words, "output_types");
  return types && types->list.count ? (enum dtype)program_attr(d->words.program, types->list.first)->i : DTYPE_INT64;
}

static status range_check(const struct dataset *d) {
  int64_t value = 0;
  enum dtype dtype = range_dtype(d);
  if (!dtype_is_integer(dtype) && !dtype_is_float(dtype))
    return fail(INVALID_ARGUMENT, "Unsupported data type: %s", dtype_name(dtype));
  static const char *const names[] = {"start", "stop", "step"};
  for (uint32_t i = 0; i < 3; i++)
    TRY(dataset_int(d, i, names[i], &value));
  return value ? OK : fail(INVALID_ARGUMENT, "step must be a non-zero integer.");
}

static status range_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct count_state *s = c->state;
  const struct dataset *d = c->dataset;
  int64_t start = host_scalar_int(d->inputs[0]), stop = host_scalar_int(d->inputs[1]), step = host_scalar_int(d->inputs[2]), at;
  *end = __builtin_mul_overflow(step, s->at, &at) || __builtin_add_overflow(start, at, &at) || (step > 0 ? at >= stop : at <= stop);
  if (*end)
    return OK;
  s->at++;
  TRY(tensor_create(range_dtype(d), &(struct shape){0}, &out[0]));
  element_put_int(out[0], 0, at);
  return OK;
}

/* To the largest number (enumerate): TensorFlow takes it as infinite. */
static int64_t range_size(const struct dataset *d) {
  int64_t start = host_scalar_int(d->inputs[0]), stop = host_scalar_int(d->inputs[1]), step = host_scalar_int(d->inputs[2]);
  if (stop == INT64_MAX)
    return DATASET_INFINITE;
  if (step > 0 ? start >= stop : start <= stop)
    return 0;
  uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t each = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
  return (int64_t)((span - 1) / each + 1);
}

/* ---- concatenate, zip ---- */

static status concatenate_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  for (; s->at < 2; s->at++) {
    TRY(cursor_source_next(c, (uint32_t)s->at, run, out, end));
    if (!*end)
      return OK;
  }
  return OK;
}

/* What the sources have given of the next element: a step that is given up leaves it to the one after it. */
struct zip_state {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  struct kept_status error; /* the first */
  uint32_t source, held;    /* the next one; components so far */
  bool is_over;
};

static void zip_stop(struct cursor *c) {
  struct zip_state *s = c->state;
  element_release(s->element, s->held);
  status_drop(&s->error);
}

static status zip_check(const struct dataset *d) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < d->source_count; i++)
    count += d->sources[i]->component_count;
  return count == d->component_count ? OK : fail(INVALID_ARGUMENT, "%u components from datasets of %u", d->component_count, count);
}

/* All sources go on, also where one fails or is over: they stay side by side, and caches become complete. */
static status zip_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct zip_state *s = c->state;
  const struct dataset *d = c->dataset;
  for (; s->source < d->source_count; s->source++) {
    bool is_over;
    status code = cursor_source_next(c, s->source, run, s->element + s->held, &is_over);
    if (code == CANCELLED)
      return code;
    if (code != OK && s->error.code == OK && !s->is_over)
      s->error = status_keep(code);
    if (code == OK && !is_over)
      s->held += d->sources[s->source]->component_count;
    s->is_over = s->is_over || (code == OK && is_over);
  }
  bool is_whole = s->error.code == OK && !s->is_over && d->source_count > 0;
  if (is_whole)
    memcpy(out, s->element, s->held * sizeof *out);
  else
    element_release(s->element, s->held);
  *end = s->is_over || d->source_count == 0;
  s->held = 0;
  s->source = s->is_over ? d->source_count : 0;
  return status_tell(&s->error);
}

static int64_t concatenate_size(const struct dataset *d) {
  int64_t a = dataset_size(d->sources[0]), b = dataset_size(d->sources[1]);
  if (a == DATASET_INFINITE || b == DATASET_INFINITE)
    return DATASET_INFINITE;
  return a == DATASET_UNKNOWN || b == DATASET_UNKNOWN ? DATASET_UNKNOWN : dataset_size_sum(a, b);
}

/* The shortest. */
static int64_t zip_size(const struct dataset *d) {
  int64_t least = DATASET_INFINITE;
  for (uint32_t i = 0; i < d->source_count; i++) {
    int64_t n = dataset_size(d->sources[i]);
    if (n == DATASET_UNKNOWN)
      return n;
    least = n != DATASET_INFINITE && (least == DATASET_INFINITE || n < least) ? n : least;
  }
  return least;
}

/* ---- unbatch ---- */

struct unbatch_state {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  int64_t at, rows;
};

static void unbatch_stop(struct cursor *c) {
  struct unbatch_state *s = c->state;
  element_release(s->element, c->dataset->component_count);
}

static status unbatch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct unbatch_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  while (s->at >= s->rows) {
    element_release(s->element, count);
    s->at = s->rows = 0;
    TRY(cursor_source_next(c, 0, run, s->element, end));
    if (*end)
      return OK;
    for (uint32_t i = 0; i < count; i++)
      if (s->element[i]->shape.rank < 1 || s->element[i]->shape.dims[0] != s->element[0]->shape.dims[0])
        return fail(
          INVALID_ARGUMENT,
          "Input element must have the same batch size in each component. Component 0 had size %lld but component %u has shape %s",
          (long long)s->element[0]->shape.dims[0], i, shape_text(&s->element[i]->shape));
    s->rows = s->element[0]->shape.dims[0];
  }
  *end = false;
  return rows_next(s->element, count, s->at++, out);
}

/* The rows that the source's shapes say, of each of its elements. */
static int64_t unbatch_size(const struct dataset *d) {
  const struct host_call *words = &d->sources[0]->words;
  const struct program_attr *shapes = host_attr(words, "output_shapes");
  int64_t n = dataset_size_of_source(d), each = -1;
  struct shape shape;
  for (uint32_t i = 0; shapes && i < shapes->list.count && each < 0; i++)
    if (host_read_shape(words, program_attr(words->program, shapes->list.first + i), &shape) == OK && shape.rank > 0)
      each = shape.dims[0];
  return n < 0 ? n : each > 0 ? dataset_size_product(n, each) : DATASET_UNKNOWN;
}

const struct dataset_kind dataset_sources[] = {
  {"TensorDataset", sizeof(struct count_state), tensor_next, NULL, NULL, MADE_FROM_NONE, .size = tensor_size,
   .has_places = dataset_has_places},
  {"TensorSliceDataset", sizeof(struct count_state), slices_next, NULL, slices_check, MADE_FROM_NONE, .size = slices_size,
   .has_places = dataset_has_places},
  {"RangeDataset", sizeof(struct count_state), range_next, NULL, range_check, .size = range_size, .has_places = dataset_has_places},
  {"ConcatenateDataset", sizeof(struct count_state), concatenate_next, NULL, NULL, MADE_FROM_ALL, .size = concatenate_size,
   .batch = dataset_batch_of_all, .has_places = dataset_has_places},
  {"ZipDataset", sizeof(struct zip_state), zip_next, zip_stop, zip_check, MADE_FROM_ALL, .size = zip_size, .batch = dataset_batch_of_all,
   .has_places = dataset_has_places},
  {"UnbatchDataset", sizeof(struct unbatch_state), unbatch_next, unbatch_stop, NULL, .size = unbatch_size},
  {0},
};
