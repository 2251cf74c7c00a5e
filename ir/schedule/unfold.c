/* unfold.c: see unfold.h. First loops, whose quotients then are variables; then dimensions, one buffer after the other. */
#include "ir/schedule/unfold.h"

#include <stdlib.h>
#include <string.h>

#include "ir/kernel/contraction.h"
#include "ir/schedule/schedule_rewrite.h"

/* ---- loops ---- */

/* A constant by which the variable is divided in e; 0: none. */
static int64_t divisor_in(const struct kernel *k, expr_id e, uint32_t local) {
  const struct expr *x = expr_get(k, e);
  int64_t by = 0;
  if (x->op == SCALAR_FLOORDIV && expr_is_local(k, expr_operand(k, e, 0), local) && expr_is_const(k, expr_operand(k, e, 1), &by))
    return by;
  for (int i = 0; i < x->count && !by; i++)
    by = divisor_in(k, expr_operand(k, e, i), local);
  return by;
}
/* The index of a factor in which the axis is divided, by *by, beside another loop's variable; NO_EXPR: there is none. */
static expr_id grouped_index(const struct kernel_uses *u, const struct contraction *c, int axis, int64_t *by) {
  uint32_t local = c->axes[axis].loop->local;
  for (int f = 0; f < FACTORS; f++)
    for (int d = 0; c->load[f] != NO_EXPR && d < expr_get(c->k, c->load[f])->count; d++) {
      expr_id at = expr_operand(c->k, c->load[f], d);
      bool is_alone = true;
      for (int i = 0; i < c->axis_count; i++)
        is_alone = is_alone && (i == axis || !uses_local(u, at, c->axes[i].loop->local));
      *by = !is_alone && uses_local(u, at, local) ? divisor_in(c->k, at, local) : 0;
      if (*by >= UNFOLD_LEAST && c->axes[axis].extent > *by && c->axes[axis].extent % *by == 0)
        return at;
    }
  return NO_EXPR;
}
/* Two loops in the place of one. */
static void split_loop(struct kernel *k, struct stmt *loop, int64_t extent, int64_t group) {
  struct stmt *made = NULL, *outer = loop_make(k, &made, loop, number(k, extent / group), NULL);
  struct stmt *inner = loop_make(k, &outer->body, loop, number(k, group), NULL);
  copy_body(k, loop, add(k, mul(k, expr_local(k, outer->local), group), expr_local(k, inner->local)), &inner->body);
  replace_loop(loop, made);
}
/* The axis becomes two. That over groups stays where the axis was; but where a channel of a group is an axis, too, as in the gradient of a
 * filter, it goes to the front of the nest. Gives its variable. */
static uint32_t split_axis(const struct kernel_uses *u, const struct contraction *c, int axis, expr_id at, int64_t group,
                           struct kernel *k) {
  struct stmt *loops[CONTRACTION_AXES]; /* k's, which the caller may change */
  int place = axis;
  for (int i = 0; i <= axis; i++) {
    loops[i] = (struct stmt *)c->axes[i].loop;
    place = i < axis && uses_local(u, at, loops[i]->local) ? 0 : place;
  }
  split_loop(k, loops[axis], c->axes[axis].extent, group);
  for (int i = axis; i > place; i--)
    loops_swap(loops[i - 1], loops[i]);
  kernel_simplify(k);
  return loops[place]->local;
}
/* One loop of some nest; false: there is none. *groups: the variable of the loop over groups. */
static bool split_one(struct kernel *k, struct arena *work, uint32_t *groups) {
  struct kernel_uses uses;
  kernel_uses_find(k, work, &uses);
  for (struct stmt *top = k->body; top; top = top->next) {
    struct contraction c;
    bool found = contraction_find(&uses, top, &c);
    for (int i = 0; found && i < c.par_count; i++) {
      int64_t group;
      expr_id at = grouped_index(&uses, &c, i, &group);
      if (at == NO_EXPR)
        continue;
      *groups = split_axis(&uses, &c, i, at, group, k);
      return true;
    }
  }
  return false;
}

/* ---- dimensions ---- */

struct divider {
  struct kernel *k;
  const int64_t *turns; /* by local: of a loop of a constant extent; 0: it is none */
  uint32_t buffer;
  int dim;
  int64_t by;
};

/* e = *many * by + *few, 0 <= *few < by; few: one loop's variable, or 0. */
static bool divide(const struct divider *d, expr_id e, expr_id *many, expr_id *few) {
  struct kernel *k = d->k;
  struct expr x = *expr_get(k, e);
  int64_t factor;
  *many = *few = number(k, 0);
  if (x.op == SCALAR_LOCAL) {
    *few = e;
    return d->turns[x.imm] > 0 && d->turns[x.imm] <= d->by;
  }
  if (x.op == SCALAR_MUL && expr_is_const(k, expr_operand(k, e, 1), &factor) && factor % d->by == 0) {
    *many = mul(k, expr_operand(k, e, 0), factor / d->by);
    return true;
  }
  expr_id many_of[2], few_of[2];
  if (x.op != SCALAR_ADD || !divide(d, expr_operand(k, e, 0), &many_of[0], &few_of[0]) ||
      !divide(d, expr_operand(k, e, 1), &many_of[1], &few_of[1]) || (few_of[0] != *few && few_of[1] != *few))
    return false;
  *many = add(k, many_of[0], many_of[1]);
  *few = few_of[0] != *few ? few_of[0] : few_of[1];
  return true;
}
static bool divides_expr(const struct divider *d, expr_id e, bool *seen) {
  struct expr x = *expr_get(d->k, e);
  expr_id many, few;
  if (e == NO_EXPR || seen[e])
    return true;
  seen[e] = true;
  if (x.op == SCALAR_LOAD && x.imm == (int64_t)d->buffer && !divide(d, expr_operand(d->k, e, d->dim), &many, &few))
    return false;
  for (int i = 0; i < x.count; i++)
    if (!divides_expr(d, expr_operand(d->k, e, i), seen))
      return false;
  return true;
}
static bool divides_block(const struct divider *d, const struct stmt *s, bool *seen) {
  expr_id used[LIMIT_RANK + 4], many, few;
  for (; s; s = s->next) {
    int count = stmt_exprs(s, used);
    for (int i = 0; i < count; i++)
      if (!divides_expr(d, used[i], seen))
        return false;
    if (s->kind == STMT_STORE && s->buffer == d->buffer && !divide(d, s->index[d->dim], &many, &few))
      return false;
    if (!divides_block(d, s->body, seen) || !divides_block(d, s->otherwise, seen))
      return false;
  }
  return true;
}

/* The index with two elements for the dimension's. */
static void index_divided(const struct divider *d, expr_id *index, int count) {
  expr_id many, few;
  divide(d, index[d->dim], &many, &few);
  for (int i = count; i > d->dim + 1; i--)
    index[i] = index[i - 1];
  index[d->dim] = many;
  index[d->dim + 1] = few;
}
/* Those of another rank are not used any more. */
static void divide_loads(const struct divider *d, struct copy *copy) {
  struct kernel *k = d->k;
  for (expr_id e = 1; e < copy->exprs; e++) {
    const struct expr x = *expr_get(k, e);
    expr_id index[LIMIT_RANK];
    if (x.op != SCALAR_LOAD || x.imm != (int64_t)d->buffer || x.count + 1 != k->buffers.items[d->buffer].rank)
      continue;
    for (int i = 0; i < x.count; i++)
      index[i] = copy_expr(copy, expr_operand(k, e, i));
    index_divided(d, index, x.count);
    copy->memo[e] = expr_load(k, d->buffer, x.part, index, x.count + 1);
  }
}
static void divide_stores(const struct divider *d, struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE && s->buffer == d->buffer) {
      expr_id *index = ARENA_ARRAY(d->k->arena, expr_id, s->index_count + 1);
      memcpy(index, s->index, sizeof *index * s->index_count);
      index_divided(d, index, s->index_count++);
      s->index = index;
    }
    divide_stores(d, s->body);
    divide_stores(d, s->otherwise);
  }
}
static void divide_dim(const struct divider *d) {
  struct kernel_buffer *b = &d->k->buffers.items[d->buffer];
  kernel_dim *dims = ARENA_ARRAY(d->k->arena, kernel_dim, b->rank + 1);
  memcpy(dims, b->dims, sizeof *dims * (size_t)b->rank);
  for (int i = b->rank++; i > d->dim; i--)
    dims[i] = dims[i - 1];
  dims[d->dim] /= d->by;
  dims[d->dim + 1] = d->by;
  b->dims = dims;
  struct copy copy;
  copy_begin(&copy, d->k, d->k);
  divide_loads(d, &copy);
  replace_exprs(&copy, d->k->body);
  copy_end(&copy);
  divide_stores(d, d->k->body);
}

static void note_turns(const struct kernel *k, const struct stmt *s, int64_t *turns) {
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR)
      (void)expr_is_const(k, s->value, &turns[s->local]);
    note_turns(k, s->body, turns);
    note_turns(k, s->otherwise, turns);
  }
}
/* What `local` is multiplied by in an index of dimension d of the buffer; 0: nothing. */
static int64_t step_of(const struct kernel *k, expr_id e, uint32_t local) {
  const struct expr *x = expr_get(k, e);
  int64_t step = 0;
  if (x->op == SCALAR_MUL && expr_is_local(k, expr_operand(k, e, 0), local) && expr_is_const(k, expr_operand(k, e, 1), &step))
    return step;
  for (int i = 0; x->op == SCALAR_ADD && i < 2 && !step; i++)
    step = step_of(k, expr_operand(k, e, i), local);
  return step;
}
static int64_t step_of_stores(const struct kernel *k, const struct stmt *s, uint32_t buffer, int dim, uint32_t local) {
  int64_t step = 0;
  for (; s && !step; s = s->next) {
    step = s->kind == STMT_STORE && s->buffer == buffer ? step_of(k, s->index[dim], local) : 0;
    step = step ? step : step_of_stores(k, s->body, buffer, dim, local);
    step = step ? step : step_of_stores(k, s->otherwise, buffer, dim, local);
  }
  return step;
}
static int64_t step_in(const struct kernel *k, uint32_t buffer, int dim, uint32_t local) {
  int64_t step = step_of_stores(k, k->body, buffer, dim, local);
  for (expr_id e = 1; e < k->exprs.count && !step; e++) {
    const struct expr *x = expr_get(k, e);
    if (x->op == SCALAR_LOAD && x->imm == (int64_t)buffer && x->count == k->buffers.items[buffer].rank)
      step = step_of(k, expr_operand(k, e, dim), local);
  }
  return step;
}
/* Dimensions in which the variable of groups steps over what a group has. */
static void divide_dims(struct kernel *k, uint32_t local, struct arena *work) {
  int64_t *turns = ARENA_ARRAY(work, int64_t, k->locals.count + 1);
  note_turns(k, k->body, turns);
  for (uint32_t b = 0; b < k->buffers.count; b++)
    for (int dim = k->buffers.items[b].rank - 1; dim >= 0; dim--) {
      struct divider d = {.k = k, .turns = turns, .buffer = b, .dim = dim, .by = step_in(k, b, dim, local)};
      bool *seen = ARENA_ARRAY(work, bool, k->exprs.count + 1);
      kernel_dim size = k->buffers.items[b].dims[dim];
      bool may = d.by > 1 && !DIM_IS_SIZE(size) && size % d.by == 0 && k->buffers.items[b].rank < LIMIT_RANK;
      if (may && divides_block(&d, k->body, seen))
        divide_dim(&d);
    }
}

int kernel_outer_loops(const struct kernel *k, const struct stmt *loops[LIMIT_RANK], int64_t extents[LIMIT_RANK]) {
  int count = 0;
  for (const struct stmt *s = k->body; s && !s->next && s->kind == STMT_FOR && s->loop == LOOP_PAR && count < LIMIT_RANK; s = s->body) {
    const struct expr *x = expr_get(k, s->value);
    if (count == 0 && x->op == SCALAR_SIZE)
      extents[count] = DIM_OF_SIZE(x->imm);
    else if (!expr_is_const(k, s->value, &extents[count]) || extents[count] < 1)
      break;
    loops[count++] = s;
  }
  return count;
}
static bool cut_loops(struct kernel *k, const int64_t *extents, int count, struct arena *work) {
  for (int i = 0; i < count; i++) {
    const struct stmt *loops[LIMIT_RANK];
    int64_t own[LIMIT_RANK];
    if (kernel_outer_loops(k, loops, own) <= i)
      return false;
    if (own[i] == extents[i])
      continue;
    if (DIM_IS_SIZE(own[i]) || DIM_IS_SIZE(extents[i]) || own[i] % extents[i])
      return false;
    split_loop(k, (struct stmt *)loops[i], own[i], own[i] / extents[i]); /* k is the caller's to change */
    kernel_simplify(k);
    divide_dims(k, loops[i]->local, work);
  }
  return true;
}
struct kernel *kernel_cut_loops(const struct kernel *k, const int64_t *extents, int count, struct arena *arena) {
  struct arena work;
  struct kernel *made = NULL;
  arena_init(&work);
  struct kernel *copy = kernel_empty(k, &work);
  kernel_append(k, copy, &copy->body);
  if (cut_loops(copy, extents, count, &work)) {
    made = kernel_empty(copy, arena); /* without the expressions that are no longer used */
    kernel_append(copy, made, &made->body);
  }
  kernel_free(copy);
  arena_deinit(&work);
  return made;
}

static bool has_quotients(const struct kernel *k) {
  for (expr_id e = 1; e < k->exprs.count; e++)
    if (expr_get(k, e)->op == SCALAR_FLOORDIV)
      return true;
  return false;
}
struct kernel *kernel_unfold(struct kernel *k, struct arena *arena) {
  struct arena work;
  struct kernel *made = NULL;
  VEC(uint32_t) groups = {0};
  uint32_t local;
  if (!has_quotients(k))
    return k;
  arena_init(&work);
  struct kernel *copy = kernel_empty(k, &work);
  kernel_append(k, copy, &copy->body);
  while (split_one(copy, &work, &local))
    vec_push(&groups, local);
  for (uint32_t i = 0; i < groups.count; i++)
    divide_dims(copy, groups.items[i], &work);
  if (groups.count) {
    made = kernel_empty(copy, arena); /* without the expressions that are no longer used */
    kernel_append(copy, made, &made->body);
  }
  vec_free(&groups);
  kernel_free(copy);
  arena_deinit(&work);
  return made ? made : k;
}
