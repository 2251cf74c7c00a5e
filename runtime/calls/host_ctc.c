/* host_ctc.c: CTCBeamSearchDecoder: the label sequences of highest probability, kept as a tree of prefixes of which the best
 * `beam_width` go on (A. Graves, Supervised Sequence Labelling with Recurrent Neural Networks, 2012, section 7.5).
 *
 * Probabilities are logarithms, rounded to the input's dtype after each step so that the same prefixes win. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"

struct probability {
  double total, blank, label; /* of all alignments; of those that end with a blank, with the label */
};
struct prefix {
  int32_t parent, label; /* parent: -1 for the root */
  int32_t children;      /* the first of those that are longer by a label, in the labels' order; 0: not made */
  struct probability old, new;
};
struct search {
  bool single; /* float */
  int32_t classes, width;
  struct prefix *prefixes;
  int32_t count, room;
  int32_t *beam, *before; /* prefixes that go on; those of the step before, the best first */
  int32_t size, before_size;
  int32_t bottom; /* the place in the beam of the least probable prefix; -1: not known */
  double *logits; /* of one step, less their norm */
};

static double rounded(const struct search *s, double x) { return s->single ? (double)(float)x : x; }

/* log(exp(a) + exp(b)); the correction is a float's, whatever the dtype */
static double log_sum(const struct search *s, double a, double b) {
  if (isinf(a) && a < 0)
    return b;
  if (isinf(b) && b < 0)
    return a;
  double high = a > b ? a : b, low = a > b ? b : a;
  return rounded(s, high + (double)log1pf(expf((float)rounded(s, low - high))));
}

static const struct probability impossible = {-INFINITY, -INFINITY, -INFINITY};
static bool is_active(const struct prefix *p) { return p->new.total != -INFINITY; }

/* ---- the tree ---- */

static status make_room(struct search *s, int32_t count) {
  int64_t wanted = (int64_t)s->count + count, room = wanted * 2 < INT32_MAX ? wanted * 2 : INT32_MAX;
  if (wanted <= s->room)
    return OK;
  struct prefix *grown = wanted <= INT32_MAX ? realloc(s->prefixes, (size_t)room * sizeof *grown) : NULL;
  if (!grown)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld prefixes", (long long)wanted);
  s->prefixes = grown;
  s->room = (int32_t)room;
  return OK;
}

static void add_prefix(struct search *s, int32_t parent, int32_t label) {
  s->prefixes[s->count++] = (struct prefix){parent, label, 0, impossible, impossible};
}

static status make_children(struct search *s, int32_t parent) {
  if (s->prefixes[parent].children)
    return OK;
  TRY(make_room(s, s->classes - 1));
  s->prefixes[parent].children = s->count;
  for (int32_t label = 0; label < s->classes - 1; label++)
    add_prefix(s, parent, label);
  return OK;
}

static status search_reset(struct search *s) {
  s->count = s->size = 0;
  TRY(make_room(s, 1));
  add_prefix(s, -1, -1);
  s->prefixes[0].new = (struct probability){0, 0, -INFINITY};
  s->beam[s->size++] = 0;
  return OK;
}

static int32_t bottom_of(struct search *s) {
  if (s->bottom >= 0)
    return s->bottom;
  int32_t bottom = 0;
  for (int32_t i = 1; i < s->size; i++)
    if (s->prefixes[s->beam[i]].new.total <= s->prefixes[s->beam[bottom]].new.total)
      bottom = i;
  s->bottom = is_active(&s->prefixes[s->beam[bottom]]) ? bottom : -1; /* grow may yet raise what is not active */
  return bottom;
}

static bool is_candidate(struct search *s, double total) {
  return total > -INFINITY && (s->size < s->width || total > s->prefixes[s->beam[bottom_of(s)]].new.total);
}

/* The beam, the most probable first; equal ones in their order. */
static void sort_beam(const struct search *s, int32_t *out) {
  for (int32_t i = 0; i < s->size; i++) {
    int32_t at = i;
    for (; at > 0 && s->prefixes[out[at - 1]].new.total < s->prefixes[s->beam[i]].new.total; at--)
      out[at] = out[at - 1];
    out[at] = s->beam[i];
  }
}

/* ---- a step in time ---- */

static double element(const struct tensor *t, int64_t i) {
  return t->dtype == DTYPE_FLOAT ? (double)((const float *)t->data)[i] : ((const double *)t->data)[i];
}

/* Logarithms of the softmax: what is taken from every logit. */
static double norm_of(const struct search *s, const struct tensor *inputs, int64_t at) {
  double most = element(inputs, at), sum = 0;
  for (int32_t k = 1; k < s->classes; k++)
    most = fmax(most, element(inputs, at + k));
  for (int32_t k = 0; k < s->classes; k++) {
    double x = rounded(s, element(inputs, at + k) - most);
    sum = rounded(s, sum + (s->single ? (double)expf((float)x) : exp(x)));
  }
  return rounded(s, most + (s->single ? (double)logf((float)sum) : log(sum)));
}

/* The prefix stays as it is: its label again, or a blank. */
static void stay(struct search *s, struct prefix *p, const double *logits, double norm) {
  if (p->parent >= 0) {
    const struct prefix *parent = &s->prefixes[p->parent];
    if (is_active(parent))
      p->new.label = log_sum(s, p->new.label, p->label == parent->label ? parent->old.blank : parent->old.total);
    p->new.label = rounded(s, p->new.label + rounded(s, logits[p->label] - norm));
  }
  p->new.blank = rounded(s, rounded(s, p->old.total + logits[s->classes - 1]) - norm);
  p->new.total = log_sum(s, p->new.blank, p->new.label);
}

/* The prefix becomes longer by each label: those that are probable enough take the place of the least probable. */
static status grow(struct search *s, int32_t from, const double *logits, double norm) {
  TRY(make_children(s, from));
  const struct prefix *p = &s->prefixes[from];
  for (int32_t label = 0; label < s->classes - 1; label++) {
    int32_t number = p->children + label;
    struct prefix *c = &s->prefixes[number];
    if (is_active(c))
      continue;
    double before = label == p->label ? p->old.blank : p->old.total;
    c->new.blank = -INFINITY;
    c->new.label = c->new.total = rounded(s, rounded(s, logits[label] - norm) + before);
    if (!is_candidate(s, c->new.total)) {
      c->old = c->new = impossible;
    } else if (s->size < s->width) {
      s->beam[s->size++] = number;
      s->bottom = -1;
    } else {
      int32_t *place = &s->beam[bottom_of(s)];
      s->prefixes[*place].new = impossible;
      *place = number;
      s->bottom = -1;
    }
  }
  return OK;
}

static status step(struct search *s, const struct tensor *inputs, int64_t at) {
  double norm = norm_of(s, inputs, at);
  for (int32_t k = 0; k < s->classes; k++)
    s->logits[k] = element(inputs, at + k);
  sort_beam(s, s->before);
  s->before_size = s->size;
  for (int32_t i = 0; i < s->before_size; i++)
    s->prefixes[s->before[i]].old = s->prefixes[s->before[i]].new;
  for (int32_t i = 0; i < s->before_size; i++)
    stay(s, &s->prefixes[s->before[i]], s->logits, norm);
  memcpy(s->beam, s->before, sizeof *s->beam * (size_t)s->size);
  s->bottom = -1;
  for (int32_t i = 0; i < s->before_size; i++)
    if (is_candidate(s, s->prefixes[s->before[i]].old.total))
      TRY(grow(s, s->before[i], s->logits, norm));
  return OK;
}

/* ---- results ---- */

struct paths {
  int64_t *values, *rows; /* of one path: labels of all rows, and the row of each */
  int64_t count, room, longest;
};

static status path_put(struct paths *p, int64_t row, const struct search *s, int32_t end, bool merge) {
  int64_t length = 0, last = -1;
  for (int pass = 0; pass < 2; pass++) { /* counted, then written from the back */
    int64_t at = p->count + length;
    last = -1;
    length = pass ? length : 0;
    for (int32_t n = end; s->prefixes[n].parent >= 0; n = s->prefixes[n].parent) {
      int32_t label = s->prefixes[n].label;
      bool again = merge && label == last;
      last = label;
      if (again)
        continue;
      if (pass) {
        p->values[--at] = label;
        p->rows[at] = row;
      } else {
        length++;
      }
    }
    if (!pass && p->count + length > p->room) {
      p->room = (p->count + length) * 2;
      int64_t *values = realloc(p->values, (size_t)p->room * sizeof *values), *rows = realloc(p->rows, (size_t)p->room * sizeof *rows);
      p->values = values ? values : p->values;
      p->rows = rows ? rows : p->rows;
      if (!values || !rows)
        return fail(RESOURCE_EXHAUSTED, "no memory for a path");
    }
  }
  p->count += length;
  p->longest = length > p->longest ? length : p->longest;
  return OK;
}

static status put_path(struct host_call *call, const struct paths *p, uint32_t number, uint32_t paths, int64_t batch) {
  TRY(host_make_output(call, number, DTYPE_INT64, &(struct shape){2, {p->count, 2}}));
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){1, {p->count}}, p->values, &call->outputs[paths + number]));
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){1, {2}}, (int64_t[]){batch, p->longest}, &call->outputs[2 * paths + number]));
  int64_t *indices = call->outputs[number]->data;
  for (int64_t i = 0, place = 0; i < p->count; i++) {
    place = i && p->rows[i] == p->rows[i - 1] ? place + 1 : 0;
    indices[2 * i] = p->rows[i];
    indices[2 * i + 1] = place;
  }
  return OK;
}

static status decode_row(struct host_call *call, struct search *s, struct paths *paths, uint32_t count, int64_t row) {
  const struct tensor *inputs = &call->inputs[0], *lengths = &call->inputs[1];
  int64_t batch = inputs->shape.dims[1];
  bool merge = host_attr_int(call, "merge_repeated", 1);
  TRY(search_reset(s));
  for (int32_t t = 0; t < ((const int32_t *)lengths->data)[row]; t++)
    TRY(step(s, inputs, (t * batch + row) * s->classes));
  if ((int64_t)count > s->width)
    return fail(INVALID_ARGUMENT, "requested more paths than the beam width.");
  if ((int64_t)count > s->size)
    return fail(INVALID_ARGUMENT, "Less leaves in the beam search than requested.");
  sort_beam(s, s->before);
  struct tensor *scores = call->outputs[3 * count];
  for (uint32_t p = 0; p < count; p++) {
    double total = s->prefixes[s->before[p]].new.total;
    int64_t to = row * count + p;
    if (scores->dtype == DTYPE_FLOAT)
      ((float *)scores->data)[to] = (float)total;
    else
      ((double *)scores->data)[to] = total;
    TRY(path_put(&paths[p], row, s, s->before[p], merge));
  }
  return OK;
}

static status check_inputs(const struct tensor *inputs, const struct tensor *lengths) {
  if (inputs->shape.rank != 3)
    return fail(INVALID_ARGUMENT, "inputs is not a 3-Tensor");
  if (inputs->count == 0)
    return fail(INVALID_ARGUMENT, "inputs must not be empty");
  if (lengths->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "sequence_length is not a vector");
  if (lengths->count != inputs->shape.dims[1])
    return fail(FAILED_PRECONDITION, "len(sequence_length) != batch_size.  len(sequence_length):  %lld batch_size: %lld",
                (long long)lengths->count, (long long)inputs->shape.dims[1]);
  for (int64_t b = 0; b < lengths->count; b++)
    if (((const int32_t *)lengths->data)[b] > inputs->shape.dims[0])
      return fail(FAILED_PRECONDITION, "sequence_length(%lld) <= %lld", (long long)b, (long long)inputs->shape.dims[0]);
  return OK;
}

static status decode_all(struct host_call *call, struct search *s, struct paths *paths, uint32_t count) {
  int64_t batch = call->inputs[0].shape.dims[1];
  s->beam = calloc((size_t)s->width + 1, sizeof *s->beam);
  s->before = calloc((size_t)s->width + 1, sizeof *s->before);
  s->logits = calloc((size_t)s->classes + 1, sizeof *s->logits);
  if (!s->beam || !s->before || !s->logits || !paths)
    return fail(RESOURCE_EXHAUSTED, "no memory for a beam of %d", s->width);
  TRY(host_make_output(call, 3 * count, call->inputs[0].dtype, &(struct shape){2, {batch, count}}));
  for (int64_t row = 0; row < batch; row++)
    TRY(decode_row(call, s, paths, count, row));
  for (uint32_t p = 0; p < count; p++)
    TRY(put_path(call, &paths[p], p, count, batch));
  return OK;
}

status host_ctc_beam_search(struct host_call *call) {
  TRY(check_inputs(&call->inputs[0], &call->inputs[1]));
  int64_t width = host_attr_int(call, "beam_width", 1);
  uint32_t count = (uint32_t)host_attr_int(call, "top_paths", 1);
  if (width > INT32_MAX / 2 || call->inputs[0].shape.dims[2] > INT32_MAX)
    return fail(UNIMPLEMENTED, "a beam of %lld", (long long)width);
  struct search s = {
    .single = call->inputs[0].dtype == DTYPE_FLOAT, .classes = (int32_t)call->inputs[0].shape.dims[2], .width = (int32_t)width};
  struct paths *paths = calloc((size_t)count + 1, sizeof *paths);
  status result = decode_all(call, &s, paths, count);
  for (uint32_t p = 0; paths && p < count; p++) {
    free(paths[p].values);
    free(paths[p].rows);
  }
  free(paths);
  free(s.prefixes);
  free(s.beam);
  free(s.before);
  free(s.logits);
  return result;
}
