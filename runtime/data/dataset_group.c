/* dataset_group.c: elements that are gathered by a key into groups, each of which becomes a dataset, or is reduced to an element. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"

struct group {
  int64_t key, window;       /* how many elements are a group */
  VEC(struct tensor *) held; /* components side by side */
  int64_t count;
};
struct group_state {
  VEC(struct group) groups; /* by key */
  struct cursor *current;   /* over what was made of a group */
  bool source_ended;
  uint32_t at; /* then: which group is next */
};

static uint32_t width_of(const struct cursor *c) { return c->dataset->sources[0]->component_count; }

static void group_stop(struct cursor *c) {
  struct group_state *s = c->state;
  for (uint32_t i = 0; i < s->groups.count; i++) {
    element_release(s->groups.items[i].held.items, s->groups.items[i].held.count);
    vec_free(&s->groups.items[i].held);
  }
  vec_free(&s->groups);
  cursor_destroy(s->current);
}

/* The one int64 that a function makes. */
static status call_for_number(struct cursor *c, const struct dataset_run *run, const char *part, struct tensor *const *in, uint32_t count,
                              int64_t *out) {
  struct tensor *made;
  TRY(dataset_call_part(c->dataset, run, part, in, count, &made, 1));
  bool good = made->dtype == DTYPE_INT64 && made->count == 1;
  *out = good ? *(const int64_t *)made->data : 0;
  tensor_release(made);
  return good ? OK : fail(INVALID_ARGUMENT, "`%s` must return a scalar int64.", part);
}

static status key_tensor(int64_t key, struct tensor **out) { return tensor_copy_in(DTYPE_INT64, &(struct shape){0}, &key, out); }

/* The place of the key's group, which is made when it is new. */
static status find_group(struct cursor *c, const struct dataset_run *run, int64_t key, uint32_t *at) {
  struct group_state *s = c->state;
  struct tensor *tensor;
  int64_t window;
  *at = 0;
  for (uint32_t end = s->groups.count; *at < end;) {
    uint32_t middle = *at + (end - *at) / 2;
    if (s->groups.items[middle].key < key)
      *at = middle + 1;
    else
      end = middle;
  }
  if (*at < s->groups.count && s->groups.items[*at].key == key)
    return OK;
  TRY(key_tensor(key, &tensor));
  status result = call_for_number(c, run, "window_size_func", &tensor, 1, &window);
  tensor_release(tensor);
  TRY(result);
  if (window <= 0)
    return fail(INVALID_ARGUMENT, "Window size must be greater than zero, but got %lld.", (long long)window);
  struct group new = {.key = key, .window = window};
  vec_push(&s->groups, new);
  memmove(s->groups.items + *at + 1, s->groups.items + *at, (s->groups.count - 1 - *at) * sizeof new);
  s->groups.items[*at] = new;
  return OK;
}

/* What is wrong with the reduction is said as TensorFlow says it. */
static status reduction_failed(status code) {
  struct kept_status kept = status_keep(code);
  const char *text = kept.text ? kept.text : "";
  status result = code == CANCELLED
                  ? fail(code, "%s", text)
                  : fail(INTERNAL, "Got error code %s and message: {%s} from running `reduce_func`", status_name(code), text);
  status_drop(&kept);
  return result;
}

/* What the reduction makes of the group's elements is what comes next; the group is empty again. */
static status flush_group(struct cursor *c, const struct dataset_run *run, struct group *g) {
  struct group_state *s = c->state;
  struct tensor *in[2] = {NULL, NULL}, *made = NULL;
  status result = key_tensor(g->key, &in[0]);
  if (result == OK)
    result = dataset_of_elements(c->dataset, width_of(c), g->held.items, g->held.count, 1, &in[1]);
  if (result == OK)
    result = dataset_call_part(c->dataset, run, "reduce_func", in, 2, &made, 1);
  element_release(in, 2);
  element_release(g->held.items, g->held.count);
  g->held.count = 0;
  g->count = 0;
  if (result != OK)
    return reduction_failed(result);
  struct dataset *dataset = dataset_of(made);
  result = dataset ? cursor_create(dataset, &s->current) : fail(INVALID_ARGUMENT, "`reduce_func` must return a Dataset object.");
  tensor_release(made);
  return result;
}

static status take_element(struct cursor *c, const struct dataset_run *run) {
  struct group_state *s = c->state;
  struct tensor *element[DATASET_COMPONENTS_MAX];
  int64_t key;
  uint32_t at;
  TRY(cursor_source_next(c, 0, run, element, &s->source_ended));
  if (s->source_ended)
    return OK;
  status result = call_for_number(c, run, "key_func", element, width_of(c), &key);
  if (result == OK)
    result = find_group(c, run, key, &at);
  if (result != OK) {
    element_release(element, width_of(c));
    return result;
  }
  struct group *g = &s->groups.items[at];
  for (uint32_t i = 0; i < width_of(c); i++)
    vec_push(&g->held, element[i]);
  return ++g->count == g->window ? flush_group(c, run, g) : OK;
}

static status group_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct group_state *s = c->state;
  for (;;) {
    if (s->current) {
      TRY(cursor_next(s->current, run, out, end));
      if (!*end)
        return OK;
      cursor_destroy(s->current);
      s->current = NULL;
    }
    while (!s->current && !s->source_ended)
      TRY(take_element(c, run));
    for (; !s->current && s->at < s->groups.count; s->at++) /* what is left, in the order of the keys */
      if (s->groups.items[s->at].count)
        TRY(flush_group(c, run, &s->groups.items[s->at]));
    *end = !s->current;
    if (*end)
      return OK;
  }
}

/* ---- groups that have states, which become elements when all have been seen ---- */

struct reduced {
  int64_t key;
  struct tensor **state;
};
struct reducer_state {
  VEC(struct reduced) groups; /* by key */
  uint32_t at;                /* then: which group is next */
  bool source_ended;
};

static uint32_t states_of(const struct dataset *d) { return (uint32_t)host_attr_int(&d->words, "states", 0); }

static status reducer_check(const struct dataset *d) {
  return states_of(d) <= DATASET_COMPONENTS_MAX ? OK : fail(UNIMPLEMENTED, "a state of %u components", states_of(d));
}

static void reducer_stop(struct cursor *c) {
  struct reducer_state *s = c->state;
  for (uint32_t i = 0; i < s->groups.count; i++) {
    element_release(s->groups.items[i].state, states_of(c->dataset));
    free(s->groups.items[i].state);
  }
  vec_free(&s->groups);
}

/* Its state is what init_func makes of the key. */
static status begin_group(struct cursor *c, const struct dataset_run *run, int64_t key, uint32_t at) {
  struct reducer_state *s = c->state;
  struct reduced new = {.key = key, .state = calloc(states_of(c->dataset) + 1, sizeof *new.state)};
  struct tensor *tensor;
  status result = new.state ? key_tensor(key, &tensor) : fail(RESOURCE_EXHAUSTED, "no memory for a group");
  if (result == OK) {
    result = dataset_call_part(c->dataset, run, "init_func", &tensor, 1, new.state, states_of(c->dataset));
    tensor_release(tensor);
  }
  if (result != OK) {
    free(new.state);
    return result;
  }
  vec_push(&s->groups, new);
  memmove(s->groups.items + at + 1, s->groups.items + at, (s->groups.count - 1 - at) * sizeof new);
  s->groups.items[at] = new;
  return OK;
}

static status find_reduced(struct cursor *c, const struct dataset_run *run, int64_t key, struct reduced **out) {
  struct reducer_state *s = c->state;
  uint32_t at = 0;
  for (uint32_t end = s->groups.count; at < end;) {
    uint32_t middle = at + (end - at) / 2;
    if (s->groups.items[middle].key < key)
      at = middle + 1;
    else
      end = middle;
  }
  if (at == s->groups.count || s->groups.items[at].key != key)
    TRY(begin_group(c, run, key, at));
  *out = &s->groups.items[at];
  return OK;
}

static status reduce_element(struct cursor *c, const struct dataset_run *run, struct tensor *const *element) {
  struct tensor *in[2 * DATASET_COMPONENTS_MAX], *made[DATASET_COMPONENTS_MAX];
  uint32_t states = states_of(c->dataset);
  struct reduced *group;
  int64_t key;
  TRY(call_for_number(c, run, "key_func", element, width_of(c), &key));
  TRY(find_reduced(c, run, key, &group));
  memcpy(in, group->state, states * sizeof *in);
  memcpy(in + states, element, width_of(c) * sizeof *in);
  TRY(dataset_call_part(c->dataset, run, "reduce_func", in, states + width_of(c), made, states));
  element_release(group->state, states);
  memcpy(group->state, made, states * sizeof *made);
  return OK;
}

static status reducer_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct reducer_state *s = c->state;
  const struct dataset *d = c->dataset;
  while (!s->source_ended) {
    struct tensor *element[DATASET_COMPONENTS_MAX];
    TRY(cursor_source_next(c, 0, run, element, &s->source_ended));
    if (s->source_ended)
      break;
    status result = reduce_element(c, run, element);
    element_release(element, width_of(c));
    TRY(result);
  }
  *end = s->at == s->groups.count;
  return *end ? OK : dataset_call_part(d, run, "finalize_func", s->groups.items[s->at++].state, states_of(d), out, d->component_count);
}

const struct dataset_kind dataset_groups[] = {
  {"GroupByWindowDataset", sizeof(struct group_state), group_next, group_stop, NULL, .size = dataset_size_infinite},
  {"GroupByReducerDataset", sizeof(struct reducer_state), reducer_next, reducer_stop, reducer_check, .size = NULL},
  {0},
};
