/* share.c: kernels that differ in nothing but sizes, when there are many of them or of all kernels, become one that is told its sizes.
 *
 * Code for a known size is better, and most graphs have each kernel in a few sizes. But a graph with layers of hundreds of widths would
 * make the code generator write each of its kernels hundreds of times, and the program as large. */
#include "base/map.h"
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_form.h"
#include "compiler/pass/pass.h"

#define MANY 128 /* kernels that differ in sizes alone: more than models have that people design, whose code is better for known sizes */
#define KERNELS_MAX 1024 /* of a program: where there are more, fewer count as many, down to two */

/* A kernel as it is in the flows. */
struct sized_kernel {
  struct kernel_form form;
  uint32_t class;
};

struct sharing {
  struct build *build;
  uint32_t many;
  struct map kernels, classes; /* by kernel_hash -> index into sized, into members */
  VEC(struct sized_kernel) sized;
  VEC(uint32_t) members;      /* per class */
  VEC(struct kernel *) shown; /* per class: the one that all take */
};

static const char *key_of(struct sharing *s, const struct kernel *k) { return kernel_hash_text(kernel_hash(k), &s->build->arena); }

static void add_kernel(struct sharing *s, const struct kernel *k) {
  struct sized_kernel sized = {0};
  if (!map_insert(&s->kernels, key_of(s, k), s->sized.count))
    return;
  kernel_form(&s->build->arena, k, &sized.form);
  const char *class = sized.form.general ? key_of(s, sized.form.general) : "";
  if (sized.form.general && !map_find(&s->classes, class, &sized.class)) {
    sized.class = s->members.count;
    map_insert(&s->classes, class, sized.class);
    vec_push(&s->members, 0);
    vec_push(&s->shown, sized.form.general);
  }
  if (sized.form.general)
    s->members.items[sized.class]++;
  vec_push(&s->sized, sized);
}

static void take_shared(struct sharing *s, struct flow *f, struct flow_node *n) {
  uint32_t at;
  if (!map_find(&s->kernels, key_of(s, n->kernel), &at))
    return;
  const struct sized_kernel *sized = &s->sized.items[at];
  if (!sized->form.general || s->members.items[sized->class] < s->many)
    return;
  node_take_told(f, n, s->shown.items[sized->class], sized->form.told, sized->form.told_count);
}

static void each_kernel(struct sharing *s, struct flow *f, bool takes) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (n && n->op == FLOW_KERNEL && takes)
      take_shared(s, f, n);
    else if (n && n->op == FLOW_KERNEL)
      add_kernel(s, n->kernel);
    for (uint32_t r = 0; n && r < n->region_count; r++)
      each_kernel(s, n->branches[r], takes);
  }
}

static void each_part(struct sharing *s, bool takes) {
  for (uint32_t i = 0; i < s->build->entries.count; i++)
    for (uint32_t p = 0; p < s->build->entries.items[i].parts.count; p++)
      each_kernel(s, s->build->entries.items[i].parts.items[p].flow, takes);
}

/* How many kernels stay when classes of so many are shared. */
static uint32_t count_kernels(const struct sharing *s, uint32_t many) {
  uint32_t count = s->sized.count;
  for (uint32_t i = 0; i < s->members.count; i++)
    if (s->members.items[i] >= many)
      count -= s->members.items[i] - 1;
  return count;
}
static void choose_many(struct sharing *s) {
  for (s->many = MANY; s->many > 2 && count_kernels(s, s->many) > KERNELS_MAX;)
    s->many /= 2;
}

status pass_share(struct build *b) {
  struct sharing s = {.build = b};
  each_part(&s, false);
  choose_many(&s);
  if (count_kernels(&s, s.many) < s.sized.count)
    each_part(&s, true);
  map_deinit(&s.kernels);
  map_deinit(&s.classes);
  vec_free(&s.sized);
  vec_free(&s.members);
  vec_free(&s.shown);
  return OK;
}
