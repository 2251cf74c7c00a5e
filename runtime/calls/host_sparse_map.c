/* host_sparse_map.c: AddSparseToTensorsMap and what goes with it: sparse tensors kept by number until they are taken. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory/container.h"
#include "runtime/step/task_state.h"
#include "runtime/value/boxed_sparse.h"

struct kept {
  struct kept *next;
  int64_t number;
  struct boxed_sparse box;
};
struct sparse_map {
  struct resource resource; /* first */
  pthread_mutex_t lock;
  int64_t next;
  struct kept **places; /* lists, by the last bits of the number */
  int64_t room, count;  /* room: a power of two, or 0 */
};

static status map_init(struct resource *resource, void *argument) {
  (void)argument;
  pthread_mutex_init(&((struct sparse_map *)resource)->lock, NULL);
  return OK;
}

static void map_destroy(struct resource *resource) {
  struct sparse_map *map = (struct sparse_map *)resource;
  for (int64_t i = 0; i < map->room; i++)
    for (struct kept *k = map->places[i], *next; k; k = next) {
      next = k->next;
      boxed_sparse_deinit(&k->box);
      free(k);
    }
  free(map->places);
  pthread_mutex_destroy(&map->lock);
}

static const struct resource_maker map_maker = {"map of sparse tensors", sizeof(struct sparse_map), map_init, map_destroy};

/* Named by the attribute, else by the node. */
static status find_map(struct host_call *call, struct sparse_map **out) {
  struct string_view space = host_attr_string(call, "container", ""), name = host_attr_string(call, "shared_name", "");
  char place[256], names[512];
  bool is_new;
  struct resource *resource;
  snprintf(place, sizeof place, "%.*s", space.size ? (int)space.size : 9, space.size ? space.data : "localhost");
  if (name.size)
    snprintf(names, sizeof names, "%.*s", (int)name.size, name.data);
  else
    snprintf(names, sizeof names, "%s", host_node_name(call));
  TRY(container_get(call->task->container, place, names, &map_maker, NULL, &is_new, &resource));
  *out = (struct sparse_map *)resource;
  return OK;
}

static struct kept **place_of(const struct sparse_map *map, int64_t number) { return &map->places[number & (map->room - 1)]; }

/* Room for one more: lists stay short. The lock is held. */
static status map_grow(struct sparse_map *map) {
  int64_t room = map->room ? map->room * 2 : 64;
  struct kept **places = map->count == map->room ? calloc((size_t)room, sizeof *places) : NULL, **old = map->places;
  if (map->count < map->room)
    return OK;
  if (!places)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld sparse tensors", (long long)room);
  int64_t old_room = map->room;
  map->places = places;
  map->room = room;
  for (int64_t i = 0; i < old_room; i++)
    for (struct kept *k = old[i], *next; k; k = next) {
      next = k->next;
      k->next = *place_of(map, k->number);
      *place_of(map, k->number) = k;
    }
  free(old);
  return OK;
}

/* Takes the box's references unless it fails. */
static status map_add(struct sparse_map *map, struct boxed_sparse *box, int64_t *number) {
  struct kept *kept = calloc(1, sizeof *kept);
  if (!kept)
    return fail(RESOURCE_EXHAUSTED, "no memory for a sparse tensor");
  pthread_mutex_lock(&map->lock);
  status s = map_grow(map);
  if (s == OK) {
    *number = kept->number = map->next++;
    struct kept **place = place_of(map, kept->number);
    kept->box = *box;
    kept->next = *place;
    *place = kept;
    map->count++;
  }
  pthread_mutex_unlock(&map->lock);
  if (s == OK)
    memset(box, 0, sizeof *box);
  else
    free(kept);
  return s;
}

static status map_take(struct sparse_map *map, int64_t number, struct boxed_sparse *out) {
  pthread_mutex_lock(&map->lock);
  struct kept **at = map->room ? place_of(map, number) : NULL;
  while (at && *at && (*at)->number != number)
    at = &(*at)->next;
  struct kept *found = at ? *at : NULL;
  if (found) {
    *at = found->next;
    map->count--;
  }
  pthread_mutex_unlock(&map->lock);
  if (!found)
    return fail(INVALID_ARGUMENT, "Unable to find SparseTensor: %lld in map: %s", (long long)number, map->resource.name);
  *out = found->box;
  free(found);
  return OK;
}

static status add_boxes(struct host_call *call, struct boxed_sparse *boxes, int64_t count, const struct shape *shape) {
  struct sparse_map *map;
  TRY(find_map(call, &map));
  TRY(host_make_output(call, 0, DTYPE_INT64, shape));
  for (int empty = 0; empty < 2; empty++) /* those with entries have the first numbers */
    for (int64_t i = 0; i < count; i++)
      if (boxes[i].values && (boxes[i].values->count == 0) == empty)
        TRY(map_add(map, &boxes[i], (int64_t *)call->outputs[0]->data + i));
  return OK;
}

status host_sparse_map_add(struct host_call *call) {
  struct boxed_sparse box = {0};
  status s = boxed_sparse_input(call, 0, &box);
  s = s == OK ? add_boxes(call, &box, 1, &(struct shape){0}) : s;
  boxed_sparse_deinit(&box);
  return s;
}

status host_sparse_map_add_many(struct host_call *call) {
  struct boxed_sparse *boxes;
  int64_t count;
  TRY(boxed_sparse_rows(call, 0, &boxes, &count));
  status s = add_boxes(call, boxes, count, &(struct shape){1, {count}});
  boxed_sparse_free(boxes, count);
  return s;
}

status host_sparse_map_take(struct host_call *call) {
  const struct tensor *numbers = &call->inputs[0];
  struct sparse_map *map;
  if (numbers->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "sparse_handles should be a vector but received shape %s", shape_text(&numbers->shape));
  if (numbers->count < 1)
    return fail(INVALID_ARGUMENT, "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
  TRY(find_map(call, &map));
  struct boxed_sparse *boxes = calloc((size_t)numbers->count, sizeof *boxes);
  if (!boxes)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld sparse tensors", (long long)numbers->count);
  status s = OK;
  for (int64_t i = 0; i < numbers->count && s == OK; i++)
    s = map_take(map, ((const int64_t *)numbers->data)[i], &boxes[i]);
  s = s == OK ? boxed_sparse_stack(call, boxes, &numbers->shape, (enum dtype)host_attr_int(call, "dtype", DTYPE_FLOAT)) : s;
  boxed_sparse_free(boxes, numbers->count);
  return s;
}
