/* dataset_window.c: neighbouring elements as small datasets, one for each component, or as one batch. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"

struct window_state {
  VEC(struct tensor *) held;      /* the elements that the next window begins with, components side by side; NULL: it failed */
  VEC(struct kept_status) errors; /* of each of them */
  int64_t count;                  /* of elements held */
  int64_t skip;                   /* elements of the source between this window and the next */
  bool source_ended;
};
struct window_shape {
  int64_t size, shift, stride;
  bool drop;
};

static uint32_t width_of(const struct cursor *c) { return c->dataset->sources[0]->component_count; }

static void window_stop(struct cursor *c) {
  struct window_state *s = c->state;
  element_release(s->held.items, s->held.count);
  for (uint32_t i = 0; i < s->errors.count; i++)
    status_drop(&s->errors.items[i]);
  vec_free(&s->held);
  vec_free(&s->errors);
}

static status read_shape(const struct dataset *d, struct window_shape *out) {
  TRY(dataset_int(d, 0, "size", &out->size));
  TRY(dataset_int(d, 1, "shift", &out->shift));
  TRY(dataset_int(d, 2, "stride", &out->stride));
  out->drop = dataset_bool(d, 3, host_attr_int(&d->words, "drop_remainder", 1) != 0); /* an input of one op, an attribute of the other */
  if (out->size < 1)
    return fail(INVALID_ARGUMENT, "Window size must be greater than zero.");
  if (out->shift < 1)
    return fail(INVALID_ARGUMENT, "Window shift must be greater than zero.");
  if (out->stride < 1)
    return fail(INVALID_ARGUMENT, "Window stride must be greater than zero.");
  return out->size > LIMIT_ELEMENTS / out->stride ? fail(INVALID_ARGUMENT, "a window of %lld elements", (long long)out->size) : OK;
}

/* `keeps`: an element that fails has its place in a window, too. */
static status window_fill(struct cursor *c, const struct dataset_run *run, int64_t wanted, bool keeps) {
  struct window_state *s = c->state;
  while (!s->source_ended && (s->skip > 0 || s->count < wanted)) {
    struct tensor *element[DATASET_COMPONENTS_MAX] = {0};
    status code = cursor_source_next(c, 0, run, element, &s->source_ended);
    if (code != OK && (!keeps || code == CANCELLED))
      return code;
    if (code == OK && s->source_ended)
      break;
    if (s->skip > 0) {
      s->skip--;
      if (code == OK)
        element_release(element, width_of(c));
      continue;
    }
    for (uint32_t i = 0; i < width_of(c); i++)
      vec_push(&s->held, code == OK ? element[i] : NULL);
    vec_push(&s->errors, status_keep(code));
    s->count++;
  }
  return OK;
}

/* The first failure among those of a window. */
static status window_error(const struct window_state *s, int64_t stride) {
  for (int64_t i = 0; i < s->count; i += stride)
    TRY(status_repeat(&s->errors.items[i]));
  return OK;
}

static void window_shift(struct cursor *c, int64_t shift) {
  struct window_state *s = c->state;
  int64_t gone = shift < s->count ? shift : s->count;
  uint32_t tensors = (uint32_t)gone * width_of(c);
  element_release(s->held.items, tensors);
  s->held.count -= tensors;
  memmove(s->held.items, s->held.items + tensors, s->held.count * sizeof *s->held.items);
  for (int64_t i = 0; i < gone; i++)
    status_drop(&s->errors.items[i]);
  s->errors.count -= (uint32_t)gone;
  memmove(s->errors.items, s->errors.items + gone, s->errors.count * sizeof *s->errors.items);
  s->count -= gone;
  s->skip = shift - gone;
}

/* What a window is for one component: `count` of the tensors, every stride-th. */
typedef status (*window_maker)(const struct cursor *c, uint32_t component, struct tensor *const *tensors, int64_t count, int64_t stride,
                               struct tensor **out);

static status as_dataset(const struct cursor *c, uint32_t component, struct tensor *const *tensors, int64_t count, int64_t stride,
                         struct tensor **out) {
  (void)component;
  return dataset_of_elements(c->dataset, 1, tensors, (uint32_t)count, stride, out);
}

static status as_batch(const struct cursor *c, uint32_t component, struct tensor *const *tensors, int64_t count, int64_t stride,
                       struct tensor **out) {
  (void)c;
  return rows_stack(tensors, count, stride, component, out);
}

static status next_window(struct cursor *c, const struct dataset_run *run, window_maker make, bool keeps, struct tensor **out, bool *end) {
  struct window_state *s = c->state;
  struct window_shape shape;
  TRY(read_shape(c->dataset, &shape));
  int64_t wanted = (shape.size - 1) * shape.stride + 1;
  TRY(window_fill(c, run, wanted, keeps));
  *end = s->count == 0 || (shape.drop && s->count < wanted);
  status result = *end ? OK : window_error(s, shape.stride);
  for (uint32_t i = 0; !*end && result == OK && i < width_of(c); i++) {
    result = make(c, i, s->held.items + i, (s->count + shape.stride - 1) / shape.stride, shape.stride * width_of(c), &out[i]);
    if (result != OK)
      element_release(out, i);
  }
  if (!*end)
    window_shift(c, shape.shift); /* also where it cannot be made: that is an error once */
  return result;
}

static status window_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  return next_window(c, run, as_dataset, true, out, end);
}

static status sliding_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  return next_window(c, run, as_batch, false, out, end);
}

static int64_t window_size(const struct dataset *d) {
  struct window_shape shape;
  int64_t n = dataset_size_of_source(d);
  if (n < 0 || read_shape(d, &shape) != OK)
    return n < 0 ? n : DATASET_UNKNOWN;
  int64_t rest = n - ((shape.size - 1) * shape.stride + 1);
  return !shape.drop ? n / shape.shift + (n % shape.shift != 0) : rest < 0 ? 0 : rest / shape.shift + 1;
}

/* ---- elements that are there: of a window, of a list ---- */

struct place_state {
  uint32_t at;
};

static status elements_next(struct cursor *cursor, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct place_state *s = cursor->state;
  const struct dataset *d = cursor->dataset;
  *end = s->at + d->component_count > d->input_count;
  for (uint32_t i = 0; !*end && i < d->component_count; i++)
    out[i] = tensor_retain(d->inputs[s->at++]);
  return OK;
}

static int64_t elements_size(const struct dataset *d) { return d->component_count ? d->input_count / d->component_count : 0; }

/* Made by no op. */
static const struct dataset_kind elements_kind = {"window elements",    sizeof(struct place_state), elements_next, NULL, NULL,
                                                  .size = elements_size};

status dataset_of_elements(const struct dataset *maker, uint32_t components, struct tensor *const *tensors, uint32_t count, int64_t stride,
                           struct tensor **out) {
  struct dataset *dataset = calloc(1, sizeof *dataset);
  if (!dataset)
    return fail(RESOURCE_EXHAUSTED, "no memory for a window");
  dataset_init(dataset);
  dataset->kind = &elements_kind;
  dataset->words = maker->words;
  dataset->component_count = components;
  dataset->inputs = calloc((size_t)count + 1, sizeof(struct tensor *));
  for (uint32_t i = 0; dataset->inputs && i < count; i++)
    dataset->inputs[dataset->input_count++] = tensor_retain(tensors[i * stride]);
  status result = dataset->inputs ? dataset_handle(dataset, out) : fail(RESOURCE_EXHAUSTED, "no memory for a window");
  if (result != OK)
    dataset_release(dataset);
  return result;
}

static status window_check(const struct dataset *d) {
  struct window_shape unused;
  return read_shape(d, &unused);
}

const struct dataset_kind dataset_windows[] = {
  {"WindowDataset", sizeof(struct window_state), window_next, window_stop, window_check, .size = window_size},
  {"SlidingWindowDataset", sizeof(struct window_state), sliding_next, window_stop, window_check, .size = NULL},
  {"ListDataset", sizeof(struct place_state), elements_next, NULL, NULL, MADE_FROM_NONE, .size = elements_size,
   .has_places = dataset_has_places},
  {0},
};
