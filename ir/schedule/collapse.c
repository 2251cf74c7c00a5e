/* collapse.c: see collapse.h. What may become one is found by crossing out: at first every dimension is joined to the next and every loop
 * to the one in it; each use that does not fit parts a pair of dimensions or of loops, until nothing changes. */
#include "ir/schedule/collapse.h"

#include <stdlib.h>
#include <string.h>

#include "ir/schedule/cost.h"
#include "ir/schedule/schedule_rewrite.h"

struct collapser {
  struct kernel *k;
  bool *joined;        /* by buffer and dimension: it becomes one with the next that has more than one element */
  struct stmt **inner; /* by local of a loop: the loop that becomes one with it, the only statement in it; NULL: none */
  struct stmt **outer; /* the same, the other way round */
  bool changed;
  bool *stays; /* by buffer and dimension: it is still there in the end */
  bool shortens;
  struct new_sizes *sizes; /* NULL: extents are constants */
  uint32_t own_sizes;      /* of the kernel, at first */
  struct arena *arena;
};

#define SHORT_TURNS 64 /* a vector of the widest loops: an open loop around fewer turns is one with them */

static bool turns_of(const struct kernel *k, const struct stmt *loop, int64_t *out) { return expr_is_const(k, loop->value, out); }
/* The extent as a buffer's dimension would be that it fills; false: it is computed. */
static bool extent_of(const struct collapser *c, const struct stmt *loop, kernel_dim *out) {
  const struct expr *x = expr_get(c->k, loop->value);
  if (c->sizes && x->op == SCALAR_SIZE) {
    *out = DIM_OF_SIZE(x->imm);
    return true;
  }
  return turns_of(c->k, loop, out) && *out >= 0;
}
/* The loop that is all there is in `s`, of the same kind. */
static struct stmt *only_loop_in(const struct stmt *s) {
  struct stmt *in = s->body;
  return in && !in->next && in->kind == STMT_FOR && in->loop == s->loop ? in : NULL;
}

/* ---- loops of one turn ---- */

static bool drop_single_loops(struct kernel *k, struct stmt *s) {
  bool any = false;
  int64_t turns;
  for (; s; s = s->next) {
    while (s->kind == STMT_FOR && s->loop != LOOP_SEQ && only_loop_in(s) && turns_of(k, s, &turns) && turns == 1) {
      struct stmt *body = NULL;
      copy_body(k, s, number(k, 0), &body);
      replace_loop(s, body);
      any = true;
    }
    any = drop_single_loops(k, s->body) || any;
    any = drop_single_loops(k, s->otherwise) || any;
  }
  return any;
}

/* ---- which are one ---- */

static bool *joined_at(const struct collapser *c, uint32_t buffer, int d) { return &c->joined[buffer * LIMIT_RANK + (uint32_t)d]; }
static bool has_many(const struct collapser *c, uint32_t buffer, int d) { return c->k->buffers.items[buffer].dims[d] != 1; }
/* The next dimension of more than one element from d on; the rank: none. */
static int dim_from(const struct collapser *c, uint32_t buffer, int d) {
  while (d < c->k->buffers.items[buffer].rank && !has_many(c, buffer, d))
    d++;
  return d;
}

static void part_dims(struct collapser *c, uint32_t buffer, int d) {
  c->changed = c->changed || *joined_at(c, buffer, d);
  *joined_at(c, buffer, d) = false;
}
/* `outer` and the loop in it. */
static void part_loops(struct collapser *c, uint32_t outer) {
  struct stmt *inner = c->inner[outer];
  if (!inner)
    return;
  c->changed = true;
  c->inner[outer] = c->outer[inner->local] = NULL;
}
static void part_from_inner(struct collapser *c, uint32_t local) { part_loops(c, local); }
static void part_from_outer(struct collapser *c, uint32_t local) {
  if (c->outer[local])
    part_loops(c, c->outer[local]->local);
}

/* The loop whose variable the expression is; UINT32_MAX: it is none. */
static uint32_t loop_of(const struct kernel *k, expr_id e) {
  const struct expr *x = expr_get(k, e);
  return x->op == SCALAR_LOCAL && k->locals.items[x->imm].is_loop ? (uint32_t)x->imm : UINT32_MAX;
}

/* Whether loops p and q, one in the other, fill a dimension. */
static bool fills(const struct collapser *c, uint32_t p, uint32_t q, kernel_dim size) {
  kernel_dim turns;
  return p != UINT32_MAX && q != UINT32_MAX && c->inner[p] && c->inner[p]->local == q && extent_of(c, c->inner[p], &turns) && size == turns;
}
/* An element of a buffer. */
static void see_element(struct collapser *c, uint32_t buffer, const expr_id *index) {
  const struct kernel_buffer *b = &c->k->buffers.items[buffer];
  int before = -1;
  for (int d = dim_from(c, buffer, 0), next; d < b->rank; before = d, d = next) {
    uint32_t p = loop_of(c->k, index[d]);
    next = dim_from(c, buffer, d + 1);
    if (next < b->rank && !fills(c, p, loop_of(c->k, index[next]), b->dims[next]))
      part_dims(c, buffer, d);
    if (p == UINT32_MAX)
      continue;
    if (next == b->rank || !*joined_at(c, buffer, d))
      part_from_inner(c, p);
    if (before < 0 || !*joined_at(c, buffer, before))
      part_from_outer(c, p);
  }
}
static void see_expr(struct collapser *c, expr_id e, bool *seen);
/* A loop's own variable in an index is looked at by see_element. */
static void see_index(struct collapser *c, uint32_t buffer, const expr_id *index, int count, bool *seen) {
  for (int d = 0; d < count; d++)
    if (has_many(c, buffer, d) && loop_of(c->k, index[d]) == UINT32_MAX)
      see_expr(c, index[d], seen);
  see_element(c, buffer, index);
}
/* Loops whose variable is used by itself are one with no other. */
static void see_expr(struct collapser *c, expr_id e, bool *seen) {
  const struct kernel *k = c->k;
  const struct expr *x = expr_get(k, e);
  uint32_t loop = loop_of(k, e);
  if (e == NO_EXPR || seen[e])
    return;
  seen[e] = true;
  if (loop != UINT32_MAX) {
    part_from_inner(c, loop);
    part_from_outer(c, loop);
  }
  if (x->op == SCALAR_LOAD)
    see_index(c, (uint32_t)x->imm, &k->operands.items[x->first], x->count, seen);
  for (int i = 0; x->op != SCALAR_LOAD && i < x->count; i++)
    see_expr(c, expr_operand(k, e, i), seen);
}
static void see_block(struct collapser *c, const struct stmt *s, bool *seen) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE)
      see_index(c, s->buffer, s->index, s->index_count, seen);
    see_expr(c, s->value, seen);
    for (int i = 0; i < STATUS_SHOWN; i++)
      see_expr(c, s->shown[i], seen);
    see_block(c, s->body, seen);
    see_block(c, s->otherwise, seen);
  }
}

/* What is known of an extent: of a size, that it is a factor. */
static int64_t known(kernel_dim d) { return DIM_IS_SIZE(d) ? 1 : d; }
static void join_loops(struct collapser *c, struct stmt *s) {
  kernel_dim a, b, turns;
  for (; s; s = s->next) {
    struct stmt *in = s->kind == STMT_FOR && s->loop != LOOP_SEQ ? only_loop_in(s) : NULL;
    if (in && extent_of(c, s, &a) && extent_of(c, in, &b) && a != 0 && b != 0 && !__builtin_mul_overflow(known(a), known(b), &turns)) {
      c->inner[s->local] = in;
      c->outer[in->local] = s;
    }
    join_loops(c, s->body);
    join_loops(c, s->otherwise);
  }
}
/* Open loops around long ones; whether there were any. */
static bool part_long(struct collapser *c, const struct stmt *s) {
  bool any = false;
  for (; s; s = s->next) {
    kernel_dim extent;
    double turns = 1;
    bool is_open = false;
    for (const struct stmt *in = s->kind == STMT_FOR ? c->inner[s->local] : NULL; in && extent_of(c, in, &extent);
         in = c->inner[in->local]) {
      turns *= (double)known(extent);
      is_open = is_open || DIM_IS_SIZE(extent);
    }
    if (s->kind == STMT_FOR && extent_of(c, s, &extent) && DIM_IS_SIZE(extent) && !is_open && turns >= SHORT_TURNS) {
      part_loops(c, s->local);
      any = true;
    }
    any = part_long(c, s->body) || any;
    any = part_long(c, s->otherwise) || any;
  }
  return any;
}
static void find_joined(struct collapser *c) {
  const struct kernel *k = c->k;
  join_loops(c, k->body);
  for (uint32_t b = 0; b < k->buffers.count; b++) {
    const struct kernel_buffer *buffer = &k->buffers.items[b];
    int64_t together = 1, with_next; /* of the dimensions that are one with the next: a damaged graph's may be no number */
    for (int d = 0; d < buffer->rank; d++) {
      int next = dim_from(c, b, d + 1);
      if (!has_many(c, b, d))
        continue;
      bool may = next < buffer->rank && (c->sizes || (!DIM_IS_SIZE(buffer->dims[d]) && !DIM_IS_SIZE(buffer->dims[next])));
      *joined_at(c, b, d) = may && !__builtin_mul_overflow(together, known(buffer->dims[d]), &together) &&
                            !__builtin_mul_overflow(together, known(buffer->dims[next]), &with_next);
      together = *joined_at(c, b, d) ? together : 1;
    }
  }
  bool *seen = malloc(k->exprs.count);
  do {
    do {
      c->changed = false;
      memset(seen, 0, k->exprs.count);
      see_block(c, k->body, seen);
    } while (c->changed);
  } while (part_long(c, k->body));
  free(seen);
}

/* ---- one of several ---- */

/* Of those that are one the first stays. */
static bool stays(const struct collapser *c, uint32_t buffer, int d) {
  int before = d - 1;
  while (before >= 0 && !has_many(c, buffer, before))
    before--;
  return has_many(c, buffer, d) && (before < 0 || !*joined_at(c, buffer, before));
}
static void find_stays(struct collapser *c) {
  for (uint32_t b = 0; b < c->k->buffers.count; b++)
    for (int d = 0; d < c->k->buffers.items[b].rank; d++) {
      c->stays[b * LIMIT_RANK + (uint32_t)d] = stays(c, b, d);
      c->shortens = c->shortens || !stays(c, b, d);
    }
}
static void multiply(struct size_product *p, kernel_dim d) {
  if (!DIM_IS_SIZE(d)) {
    p->factor *= d;
    return;
  }
  int at = p->count++;
  for (; at > 0 && p->sizes[at - 1] > SIZE_OF_DIM(d); at--)
    p->sizes[at] = p->sizes[at - 1];
  p->sizes[at] = SIZE_OF_DIM(d);
}
/* As a dimension: a number, a size of the kernel, or a new one, each once. */
static kernel_dim dim_of(struct collapser *c, const struct size_product *p) {
  if (p->count == 0 || (p->count == 1 && p->factor == 1))
    return p->count ? DIM_OF_SIZE(p->sizes[0]) : p->factor;
  for (uint32_t i = 0; i < c->sizes->count; i++) {
    const struct size_product *q = &c->sizes->items[i];
    if (q->factor == p->factor && q->count == p->count && memcmp(q->sizes, p->sizes, sizeof *p->sizes * (size_t)p->count) == 0)
      return DIM_OF_SIZE(c->own_sizes + i);
  }
  struct size_product *more = ARENA_ARRAY(c->arena, struct size_product, c->sizes->count + 1);
  if (c->sizes->count)
    memcpy(more, c->sizes->items, sizeof *more * c->sizes->count);
  more[c->sizes->count] = *p;
  c->sizes->items = more;
  c->k->size_count = c->own_sizes + ++c->sizes->count;
  return DIM_OF_SIZE(c->k->size_count - 1);
}

/* The index of what stays of `rank` dimensions; gives how many. */
static int shorten_index(const struct collapser *c, uint32_t buffer, const expr_id *index, int rank, expr_id *out) {
  int count = 0;
  for (int d = 0; d < rank; d++)
    if (c->stays[buffer * LIMIT_RANK + (uint32_t)d])
      out[count++] = index[d];
  return count;
}
static void shorten_buffers(struct collapser *c) {
  for (uint32_t i = 0; i < c->k->buffers.count; i++) {
    struct kernel_buffer *b = &c->k->buffers.items[i];
    int rank = 0;
    for (int d = 0; d < b->rank; d++) {
      if (!c->stays[i * LIMIT_RANK + (uint32_t)d])
        continue;
      struct size_product p = {.factor = 1};
      multiply(&p, b->dims[d]);
      for (int next = d + 1; next < b->rank && !c->stays[i * LIMIT_RANK + (uint32_t)next]; next++)
        multiply(&p, b->dims[next]);
      b->dims[rank++] = dim_of(c, &p);
    }
    b->rank = rank;
  }
}
/* Only the first variable of loops that are one is left in what is loaded; it turns as often as all of them. */
static void shorten_loads(const struct collapser *c, struct copy *copy) {
  struct kernel *k = c->k;
  for (expr_id e = 1; e < copy->exprs; e++) {
    const struct expr x = *expr_get(k, e);
    expr_id index[LIMIT_RANK];
    for (int i = 0; x.op == SCALAR_LOAD && i < x.count; i++)
      index[i] = copy_expr(copy, expr_operand(k, e, i));
    if (x.op == SCALAR_LOAD)
      copy->memo[e] = expr_load(k, (uint32_t)x.imm, x.part, index, shorten_index(c, (uint32_t)x.imm, index, x.count, index));
  }
}
static void shorten_loop(struct collapser *c, struct stmt *s) {
  struct size_product p = {.factor = 1};
  kernel_dim extent;
  for (struct stmt *in = s; in; in = c->inner[in->local]) {
    extent_of(c, in, &extent);
    multiply(&p, extent);
    s->body = in->body;
  }
  s->value = expr_dim(c->k, dim_of(c, &p));
  c->inner[s->local] = NULL;
}
static void shorten_block(struct collapser *c, struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE)
      s->index_count = (uint8_t)shorten_index(c, s->buffer, s->index, s->index_count, s->index);
    if (s->kind == STMT_FOR && c->inner[s->local])
      shorten_loop(c, s);
    shorten_block(c, s->body);
    shorten_block(c, s->otherwise);
  }
}
static void shorten(struct collapser *c) {
  struct copy copy;
  shorten_buffers(c);
  copy_begin(&copy, c->k, c->k);
  shorten_loads(c, &copy);
  replace_exprs(&copy, c->k->body);
  copy_end(&copy);
  shorten_block(c, c->k->body);
}

/* What is taken for a product is that of what is taken for its factors. */
static void note_usual(struct kernel *k, uint32_t own, const struct new_sizes *sizes, struct arena *arena) {
  double *usual = ARENA_ARRAY(arena, double, k->size_count + 1);
  for (uint32_t i = 0; i < own; i++)
    usual[i] = i < k->usual_count ? k->usual[i] : TRIPS_OPEN;
  for (uint32_t i = 0; i < sizes->count; i++) {
    usual[own + i] = (double)sizes->items[i].factor;
    for (int j = 0; j < sizes->items[i].count; j++)
      usual[own + i] *= usual[sizes->items[i].sizes[j]];
  }
  k->usual = usual;
  k->usual_count = k->size_count;
}

struct kernel *kernel_collapse(struct kernel *k, struct new_sizes *sizes, struct arena *arena) {
  struct arena work;
  if (stmts_are_marked(k->body))
    return k;
  arena_init(&work);
  struct kernel *copy = kernel_empty(k, &work);
  kernel_append(k, copy, &copy->body);
  size_t dims = (size_t)copy->buffers.count * LIMIT_RANK + 1;
  struct collapser c = {.k = copy, .sizes = sizes, .own_sizes = k->size_count, .arena = arena};
  c.joined = ARENA_ARRAY(&work, bool, dims);
  c.stays = ARENA_ARRAY(&work, bool, dims);
  bool is_simpler = kernel_simplify(copy);
  c.shortens = drop_single_loops(copy, copy->body);
  c.inner = ARENA_ARRAY(&work, struct stmt *, copy->locals.count + 1);
  c.outer = ARENA_ARRAY(&work, struct stmt *, copy->locals.count + 1);
  find_joined(&c);
  find_stays(&c);
  struct kernel *made = NULL;
  if (c.shortens)
    shorten(&c);
  if (c.shortens || is_simpler) {
    made = kernel_empty(copy, arena); /* without the expressions that are no longer used */
    kernel_append(copy, made, &made->body);
    if (sizes && sizes->count)
      note_usual(made, c.own_sizes, sizes, arena);
  }
  kernel_free(copy);
  arena_deinit(&work);
  return made ? made : k;
}
