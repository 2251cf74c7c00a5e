/* kernel_form.c: a kernel whose sizes are told when it runs. */
#include "compiler/edit/kernel_form.h"

#include <stdlib.h>

#define SMALL 8 /* an extent below is part of what a kernel is: windows, channels of an image, which code unrolls */

static void mark_factors(const struct kernel *k, bool *stays) {
  for (expr_id e = 1; e < k->exprs.count; e++) {
    enum scalar_op op = (enum scalar_op)expr_get(k, e)->op;
    bool divides =
      op == SCALAR_DIV || op == SCALAR_REM || op == SCALAR_FLOORDIV || op == SCALAR_FLOORMOD || op == SCALAR_SHL || op == SCALAR_SHR;
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
static uint32_t told_size(struct kernel_form *s, uint32_t own, int64_t value) {
  uint32_t i = 0;
  while (i < s->told_count && s->told[i] != value)
    i++;
  if (i == s->told_count)
    s->told[s->told_count++] = value;
  return own + i;
}

/* Sizes that are numbers become parameters: those of scratch memory stay. */
static void form_dims(struct arena *arena, struct kernel_buffer *b, uint32_t size_count, struct kernel_form *out) {
  b->dims = arena_copy(arena, b->dims, sizeof *b->dims * (size_t)b->rank);
  for (int d = 0; d < b->rank && b->mode != BUFFER_SCRATCH; d++)
    if (b->dims[d] >= SMALL)
      b->dims[d] = DIM_OF_SIZE(told_size(out, size_count, b->dims[d]));
}

void kernel_form(struct arena *arena, const struct kernel *k, struct kernel_form *out) {
  bool *stays = calloc(k->exprs.count, 1), *is_extent = calloc(k->exprs.count, 1);
  struct kernel *g = arena_copy(arena, k, sizeof *k);
  g->exprs.items = arena_copy(arena, k->exprs.items, sizeof *k->exprs.items * k->exprs.count);
  g->buffers.items = arena_copy(arena, k->buffers.items, sizeof *k->buffers.items * k->buffers.count);
  g->exprs.capacity = g->exprs.count;
  g->buffers.capacity = g->buffers.count;
  *out = (struct kernel_form){0};
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
    form_dims(arena, &g->buffers.items[b], k->size_count, out);
  g->size_count = k->size_count + out->told_count;
  out->general = out->told_count ? g : NULL;
  free(stays);
  free(is_extent);
}

uint64_t kernel_form_hash(const struct kernel *k) {
  struct arena arena;
  struct kernel_form form;
  arena_init(&arena);
  kernel_form(&arena, k, &form);
  uint64_t hash = kernel_hash(form.general ? form.general : k);
  arena_deinit(&arena);
  return hash;
}
