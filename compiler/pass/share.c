/* share.c: kernels that differ in nothing but sizes, when there are many of them, become one that is told its sizes.
 *
 * Code for a known size is better, and most graphs have each kernel in a few sizes. But a graph with layers of hundreds of widths would
 * make the code generator write each of its kernels hundreds of times, and the program as large. Extents of loops and dims of
 * buffers become sizes; a number that indices are multiplied or divided by stays what it is, as it decides how memory is read. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/pass/pass.h"

#define MANY 128 /* kernels that differ in sizes alone: more than models have that people design, whose code is better for known sizes */
#define SMALL 8  /* an extent below is part of what a kernel is: windows, channels of an image, which code unrolls */

/* A kernel as it is in the flows, and told its sizes: those appended to its own. */
struct sized_kernel {
  struct kernel *general; /* NULL: there is nothing to tell */
  int64_t *told;
  uint32_t told_count, class;
};

struct sharing {
  struct build *build;
  struct map kernels, classes; /* by kernel_hash -> index into sized, into members */
  VEC(struct sized_kernel) sized;
  VEC(uint32_t) members;       /* per class */
  VEC(struct kernel *) shown;  /* per class: the one that all take */
};

/* ---- one kernel ---- */

static void mark_factors(const struct kernel *k, bool *stays) {
  for (expr_id e = 1; e < k->exprs.count; e++) {
    enum scalar_op op = (enum scalar_op)expr_get(k, e)->op;
    bool divides = op == SCALAR_DIV || op == SCALAR_REM || op == SCALAR_FLOORDIV || op == SCALAR_FLOORMOD || op == SCALAR_SHL || op == SCALAR_SHR;
    if (!divides && op != SCALAR_MUL)
      continue;
    stays[expr_operand(k, e, 1)] = true;
    stays[expr_operand(k, e, 0)] |= op == SCALAR_MUL;
  }
}

static void mark_extents(const struct kernel *k, const struct stmt *s, bool *is_extent) {
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR)
      is_extent[s->value] = true;
    mark_extents(k, s->body, is_extent);
    mark_extents(k, s->otherwise, is_extent);
  }
}

/* The number of the size that tells `value`. */
static uint32_t told_size(struct sized_kernel *s, uint32_t own, int64_t value) {
  uint32_t i = 0;
  while (i < s->told_count && s->told[i] != value)
    i++;
  if (i == s->told_count)
    s->told[s->told_count++] = value;
  return own + i;
}

static void generalise(struct arena *arena, const struct kernel *k, struct sized_kernel *out) {
  bool *stays = calloc(k->exprs.count, 1), *is_extent = calloc(k->exprs.count, 1);
  struct kernel *g = arena_copy(arena, k, sizeof *k);
  g->exprs.items = arena_copy(arena, k->exprs.items, sizeof *k->exprs.items * k->exprs.count);
  g->buffers.items = arena_copy(arena, k->buffers.items, sizeof *k->buffers.items * k->buffers.count);
  g->exprs.capacity = g->exprs.count;
  g->buffers.capacity = g->buffers.count;
  out->told = ARENA_ARRAY(arena, int64_t, k->exprs.count + k->buffers.count * LIMIT_RANK + 1);
  mark_factors(k, stays);
  mark_extents(k, k->body, is_extent);
  for (expr_id e = 1; e < k->exprs.count; e++) {
    struct expr *x = &g->exprs.items[e];
    if (!is_extent[e] || stays[e] || x->op != SCALAR_CONST || x->dtype != DTYPE_INT64 || x->imm < SMALL)
      continue;
    x->imm = told_size(out, k->size_count, x->imm);
    x->op = SCALAR_SIZE;
  }
  for (uint32_t b = 0; b < g->buffers.count; b++)
    for (int d = 0; d < g->buffers.items[b].rank && g->buffers.items[b].mode != BUFFER_SCRATCH; d++)
      if (g->buffers.items[b].dims[d] >= SMALL)
        g->buffers.items[b].dims[d] = DIM_OF_SIZE(told_size(out, k->size_count, g->buffers.items[b].dims[d]));
  g->size_count = k->size_count + out->told_count;
  out->general = out->told_count ? g : NULL;
  free(stays);
  free(is_extent);
}

/* ---- all of them ---- */

static const char *key_of(struct sharing *s, const struct kernel *k) {
  return arena_printf(&s->build->arena, "%016llx", (unsigned long long)kernel_hash(k));
}

static void add_kernel(struct sharing *s, const struct kernel *k) {
  struct sized_kernel sized = {0};
  if (!map_insert(&s->kernels, key_of(s, k), s->sized.count))
    return;
  generalise(&s->build->arena, k, &sized);
  const char *class = sized.general ? key_of(s, sized.general) : "";
  if (sized.general && !map_find(&s->classes, class, &sized.class)) {
    sized.class = s->members.count;
    map_insert(&s->classes, class, sized.class);
    vec_push(&s->members, 0);
    vec_push(&s->shown, sized.general);
  }
  if (sized.general)
    s->members.items[sized.class]++;
  vec_push(&s->sized, sized);
}

static void take_shared(struct sharing *s, struct flow *f, struct flow_node *n) {
  uint32_t at, own = n->kernel->size_count;
  if (!map_find(&s->kernels, key_of(s, n->kernel), &at))
    return;
  const struct sized_kernel *sized = &s->sized.items[at];
  if (!sized->general || s->members.items[sized->class] < MANY)
    return;
  dim *sizes = ARENA_ARRAY(&s->build->arena, dim, own + sized->told_count);
  if (own)
    memcpy(sizes, n->sizes, sizeof *sizes * own);
  for (uint32_t i = 0; i < sized->told_count; i++)
    sizes[own + i] = dim_const(f->dims, sized->told[i]);
  n->kernel = s->shown.items[sized->class];
  n->sizes = sizes;
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

status pass_share(struct build *b) {
  struct sharing s = {.build = b};
  bool any = false;
  each_part(&s, false);
  for (uint32_t i = 0; i < s.members.count; i++)
    any = any || s.members.items[i] >= MANY;
  if (any)
    each_part(&s, true);
  map_deinit(&s.kernels);
  map_deinit(&s.classes);
  vec_free(&s.sized);
  vec_free(&s.members);
  vec_free(&s.shown);
  return OK;
}
