/* line_up.c: see line_up.h. */
#include "ir/schedule/line_up.h"

#include "ir/kernel/contraction.h"
#include "ir/schedule/schedule_rewrite.h"

/* How many elements the copy has along an axis: of the outermost, images, as many as a size may say; 0: it is something else. */
static kernel_dim axis_dim(const struct contraction *c, const struct contraction_axis *a) {
  const struct expr *x = expr_get(c->k, a->loop->value);
  return a->extent > 0 ? a->extent : x->op == SCALAR_SIZE && a == &c->axes[0] ? DIM_OF_SIZE(x->imm) : 0;
}

/* The axes of the second factor in the order in which it is to lie. */
struct order {
  const struct contraction_axis *axes[LIMIT_RANK];
  kernel_dim dims[LIMIT_RANK];
  int count;
};
static bool find_order(const struct contraction *c, struct order *out) {
  out->count = 0;
  if (c->axis_count != c->par_count + 1 || c->lanes < 0 || c->axes[c->lanes].role != ROLE_N || c->axes[c->par_count].role != ROLE_K ||
      c->load[1] == NO_EXPR || c->factor[1] != c->load[1] || c->guard[1] != NO_EXPR || c->test || c->is_ragged)
    return false;
  for (int i = 0; i < c->par_count; i++)
    if (c->axes[i].in[1] && i != c->lanes && out->count < LIMIT_RANK - 2)
      out->axes[out->count++] = &c->axes[i];
  out->axes[out->count++] = &c->axes[c->par_count];
  out->axes[out->count++] = &c->axes[c->lanes];
  for (int i = 0; i < out->count; i++) {
    out->dims[i] = axis_dim(c, out->axes[i]);
    if (!out->dims[i])
      return false;
  }
  return true;
}
/* Whether the factor's indices are the axes, each by itself, and nothing else. */
static bool lies_so(const struct kernel *k, const struct order *o, expr_id load) {
  const struct kernel_buffer *b = &k->buffers.items[expr_get(k, load)->imm];
  if (b->rank != o->count)
    return false;
  for (int d = 0; d < b->rank; d++)
    if (b->dims[d] != o->dims[d] || !expr_is_local(k, expr_operand(k, load, d), o->axes[d]->loop->local))
      return false;
  return true;
}
/* Whether the index hangs on axes of the factor alone. */
static bool is_of_axes(const struct kernel_uses *u, const struct contraction *c, const struct order *o, expr_id load) {
  if (uses_vars(u, load))
    return false;
  for (int i = 0; i < expr_get(c->k, load)->count; i++)
    if (uses_loads(u, expr_operand(c->k, load, i)))
      return false;
  for (int i = 0; i < c->axis_count; i++) {
    bool known = false;
    for (int a = 0; a < o->count; a++)
      known = known || o->axes[a] == &c->axes[i];
    if (!known && uses_local(u, load, c->axes[i].loop->local))
      return false;
  }
  return true;
}

/* ---- the two kernels ---- */

static struct kernel *make_copy(const struct kernel *k, const struct order *o, expr_id load, struct arena *arena) {
  const struct kernel_buffer *from = &k->buffers.items[expr_get(k, load)->imm];
  struct kernel *made = kernel_create(arena, "LineUp");
  struct stmt **tail = &made->body;
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  struct copy c;
  made->size_count = k->size_count;
  uint32_t in = kernel_add_buffer(made, from->dtype, BUFFER_IN, from->rank, from->dims);
  uint32_t out = kernel_add_buffer(made, from->dtype, BUFFER_OUT, o->count, o->dims);
  copy_begin(&c, k, made);
  for (int i = 0; i < o->count; i++) {
    bool is_size = DIM_IS_SIZE(o->dims[i]);
    expr_id extent = is_size ? expr_size(made, SIZE_OF_DIM(o->dims[i])) : expr_int(made, DTYPE_INT64, o->dims[i]);
    struct stmt *loop = stmt_for(made, tail, LOOP_PAR, extent);
    index[i] = c.local[o->axes[i]->loop->local] = expr_local(made, loop->local);
    tail = &loop->body;
  }
  for (int i = 0; i < from->rank; i++)
    at[i] = copy_expr(&c, expr_operand(k, load, i));
  stmt_store(made, tail, out, 0, index, o->count, expr_load(made, in, 0, at, from->rank));
  copy_end(&c);
  return made;
}
static struct kernel *read_copy(const struct kernel *k, const struct order *o, expr_id load, struct arena *arena) {
  struct arena work;
  struct copy c;
  expr_id index[LIMIT_RANK];
  arena_init(&work);
  struct kernel *copied = kernel_empty(k, &work);
  uint32_t in = kernel_add_buffer(copied, k->buffers.items[expr_get(k, load)->imm].dtype, BUFFER_IN, o->count, o->dims);
  /* in two steps: the loops of the copy are known when it is there */
  copy_begin(&c, k, copied);
  copy_stmts(&c, k->body, NULL, &copied->body);
  for (int i = 0; i < o->count; i++)
    index[i] = c.local[o->axes[i]->loop->local];
  expr_id old = c.memo[load];
  copy_end(&c);
  copy_begin(&c, copied, copied);
  c.memo[old] = expr_load(copied, in, 0, index, o->count);
  replace_exprs(&c, copied->body);
  copy_end(&c);
  struct kernel *made = kernel_empty(copied, arena); /* without the expressions that are no longer used */
  kernel_append(copied, made, &made->body);
  kernel_free(copied);
  arena_deinit(&work);
  return made;
}

/* Gives what the factor loads; NO_EXPR: it is no such kernel, or the factor lies so already. */
static expr_id find_factor(const struct kernel *k, struct arena *work, struct contraction *c, struct order *o) {
  struct kernel_uses uses;
  if (!k->body || k->body->next)
    return NO_EXPR;
  kernel_uses_find(k, work, &uses);
  if (!contraction_find(&uses, k->body, c) || !find_order(c, o) || lies_so(k, o, c->load[1]) || !is_of_axes(&uses, c, o, c->load[1]))
    return NO_EXPR;
  const struct kernel_buffer *b = &k->buffers.items[expr_get(k, c->load[1])->imm];
  return b->mode == BUFFER_IN && !dtype_is_complex(b->dtype) ? c->load[1] : NO_EXPR;
}
struct kernel *kernel_line_up(const struct kernel *k, struct arena *arena, struct kernel **copy, uint32_t *buffer) {
  struct contraction c;
  struct order o;
  struct arena work;
  arena_init(&work);
  expr_id load = find_factor(k, &work, &c, &o);
  arena_deinit(&work);
  if (load == NO_EXPR)
    return NULL;
  *buffer = (uint32_t)expr_get(k, load)->imm;
  *copy = make_copy(k, &o, load, arena);
  return read_copy(k, &o, load, arena);
}
