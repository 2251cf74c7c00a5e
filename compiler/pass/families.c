/* families.c: a few kernels that differ in numbers alone become one that is told them, where no number makes the code better
 * (kernel_family.h): maps over elements, draws of random numbers, whose seeds are numbers. Each would take the code generator as long as
 * the next one. */
#include "base/map.h"
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_family.h"
#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"

#define FAMILY_MIN 3 /* kernels */

/* Kernels with the same text but for numbers. */
struct family {
  VEC(struct kernel_numbers) members;
  uint32_t sizes; /* that they have already */
  struct kernel_family one;
};
/* A kernel as it is in the flows. */
struct member {
  uint32_t family, number;
};

struct families {
  struct build *build;
  struct map kernels, texts; /* by kernel_hash -> index into members, by text -> index into items */
  VEC(struct member) members;
  VEC(struct family) items;
};

static const char *key_of(struct families *s, const struct kernel *k) { return kernel_hash_text(kernel_hash(k), &s->build->arena); }

static void add_member(struct families *s, const struct flow_node *n) {
  struct kernel_numbers numbers;
  const char *key = key_of(s, n->kernel);
  uint32_t at;
  if (map_find(&s->kernels, key, &at) || !kernel_numbers_read(&s->build->arena, n->kernel, &numbers))
    return;
  if (!map_find(&s->texts, numbers.text, &at)) {
    at = s->items.count;
    map_insert(&s->texts, numbers.text, at);
    vec_push(&s->items, (struct family){.sizes = n->kernel->size_count});
  }
  map_insert(&s->kernels, key, s->members.count);
  vec_push(&s->members, (struct member){at, s->items.items[at].members.count});
  vec_push(&s->items.items[at].members, numbers);
}

static void take_family(struct families *s, struct flow *f, struct flow_node *n) {
  uint32_t at;
  if (!map_find(&s->kernels, key_of(s, n->kernel), &at))
    return;
  const struct member *member = &s->members.items[at];
  const struct family *family = &s->items.items[member->family];
  const struct kernel_family *one = &family->one;
  if (!one->general)
    return;
  int64_t *told = ARENA_ARRAY(&s->build->arena, int64_t, one->told_count + 1);
  for (uint32_t i = 0; i < one->told_count; i++)
    told[i] = family->members.items[member->number].values[one->told[i]];
  node_take_told(f, n, one->general, told, one->told_count);
}

static status add_flow(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  (void)b, (void)part;
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_KERNEL)
      add_member(self, f->nodes.items[id]);
  return OK;
}
static status take_flow(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  (void)b, (void)part;
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_KERNEL)
      take_family(self, f, f->nodes.items[id]);
  return OK;
}

static status make_all(struct families *s) {
  for (uint32_t i = 0; i < s->items.count; i++) {
    struct family *f = &s->items.items[i];
    if (f->members.count >= FAMILY_MIN)
      TRY(kernel_family_make(&s->build->arena, f->members.items, f->members.count, f->sizes, &f->one));
  }
  return OK;
}

status pass_families(struct build *b) {
  struct families s = {.build = b};
  status result = part_each_flow(b, add_flow, &s);
  if (result == OK)
    result = make_all(&s);
  if (result == OK)
    result = part_each_flow(b, take_flow, &s);
  for (uint32_t i = 0; i < s.items.count; i++)
    vec_free(&s.items.items[i].members);
  vec_free(&s.items);
  vec_free(&s.members);
  map_deinit(&s.kernels);
  map_deinit(&s.texts);
  return result;
}
