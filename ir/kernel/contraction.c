/* contraction.c: recognises sums of products; see contraction.h. */
#include "ir/kernel/contraction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the nest ---- */

/* A constant that e never exceeds; -1: none is known. */
static int64_t most_of(const struct kernel_uses *u, expr_id e) {
  const struct expr *x = expr_get(u->k, e);
  if (x->op == SCALAR_SUB && u->bounds[expr_operand(u->k, e, 1)] >= 0)
    return most_of(u, expr_operand(u->k, e, 0));
  int64_t by, all;
  if (x->op == SCALAR_FLOORDIV && expr_is_const(u->k, expr_operand(u->k, e, 1), &by) && by > 0) /* pixels that steps of two meet */
    return (all = most_of(u, expr_operand(u->k, e, 0))) < 0 ? -1 : all / by;
  if (x->op != SCALAR_MIN)
    return u->bounds[e] == INT64_MAX ? -1 : u->bounds[e];
  int64_t a = most_of(u, expr_operand(u->k, e, 0)), b = most_of(u, expr_operand(u->k, e, 1));
  return a < 0 || (b >= 0 && b < a) ? b : a;
}
static bool add_axis(const struct kernel_uses *u, struct contraction *c, const struct stmt *loop) {
  int64_t extent;
  if (c->axis_count == CONTRACTION_AXES)
    return false;
  bool known = expr_is_const(c->k, loop->value, &extent);
  struct contraction_axis axis = {.loop = loop, .extent = !known ? -1 : extent < 0 ? 0 : extent};
  axis.most = known ? axis.extent : most_of(u, loop->value);
  c->axes[c->axis_count++] = axis;
  return true;
}
static bool is_for(const struct stmt *s, enum loop_kind loop) { return s && s->kind == STMT_FOR && s->loop == loop; }

/* Par loops that are all of each other's body; their sizes are known when the kernel is called. */
static bool find_pars(const struct kernel_uses *u, struct contraction *c) {
  const struct stmt *s = c->top;
  for (; is_for(s, LOOP_PAR); s = s->body) {
    if ((s != c->top && s->next) || !uses_only_sizes(u, s->value) || !add_axis(u, c, s))
      return false;
    c->inside = s->body;
  }
  c->par_count = c->axis_count;
  return c->par_count > 0;
}

/* Whether the number of a red loop's turns is known where the sum begins. */
static bool is_known_before(const struct kernel_uses *u, const struct contraction *c, expr_id extent) {
  for (int i = c->par_count; i < c->axis_count; i++)
    if (uses_local(u, extent, c->axes[i].loop->local))
      return false;
  return !uses_loads(u, extent) && !uses_vars(u, extent);
}
/* Inside: vars, one nest of red loops around one set, stores. */
static bool find_sum(const struct kernel_uses *u, struct contraction *c) {
  for (const struct stmt *s = c->inside; s; s = s->next) {
    if (s->kind == STMT_IF || s->kind == STMT_WHILE || s->kind == STMT_CHECK || (s->kind == STMT_FOR && (c->sum || s->loop != LOOP_RED)))
      return false;
    if (s->kind == STMT_FOR)
      c->sum = s;
  }
  const struct stmt *s = c->sum;
  for (; is_for(s, LOOP_RED); s = s->body) {
    if ((s != c->sum && s->next) || !is_known_before(u, c, s->value) || !add_axis(u, c, s))
      return false;
    c->is_ragged = c->is_ragged || !uses_only_sizes(u, s->value);
  }
  if (s && s != c->sum && s->kind == STMT_IF && !s->next && !s->otherwise) {
    c->test = s;
    s = s->body;
  }
  c->set = s && s->kind == STMT_SET && !s->next ? s : NULL;
  return c->set != NULL;
}

/* ---- the product ---- */

/* sum = sum + x * y */
static bool match_product(const struct kernel *k, const struct stmt *s, expr_id out[2]) {
  const struct expr *x = expr_get(k, s->value);
  if (x->op == SCALAR_FMA && expr_is_local(k, expr_operand(k, s->value, 2), s->local)) {
    out[0] = expr_operand(k, s->value, 0);
    out[1] = expr_operand(k, s->value, 1);
    return true;
  }
  for (int i = 0; x->op == SCALAR_ADD && i < 2; i++) {
    expr_id product = expr_operand(k, s->value, 1 - i);
    if (!expr_is_local(k, expr_operand(k, s->value, i), s->local) || expr_get(k, product)->op != SCALAR_MUL)
      continue;
    out[0] = expr_operand(k, product, 0);
    out[1] = expr_operand(k, product, 1);
    return true;
  }
  return false;
}

/* The load whose element the expression is made of; *several where there is more than one. Loads inside a load's index are its own. */
static void find_load(const struct kernel *k, expr_id e, uint8_t *seen, expr_id *load, bool *several) {
  const struct expr *x = expr_get(k, e);
  if (seen[e])
    return;
  seen[e] = 1;
  if (x->op == SCALAR_LOAD) {
    *several = *several || (*load != NO_EXPR && *load != e);
    *load = e;
    return;
  }
  for (int i = 0; i < x->count; i++)
    find_load(k, expr_operand(k, e, i), seen, load, several);
}
static expr_id only_load(const struct kernel *k, expr_id e) {
  uint8_t *seen = calloc(e + 1, 1);
  expr_id load = NO_EXPR;
  bool several = false;
  find_load(k, e, seen, &load, &several);
  free(seen);
  return several ? NO_EXPR : load;
}
static bool is_zero(const struct kernel *k, expr_id e) {
  int64_t bits;
  return expr_is_const(k, e, &bits) && bits == 0;
}

static void find_factor(struct contraction *c, int i) {
  expr_id e = c->factor[i];
  bool guarded = expr_get(c->k, e)->op == SCALAR_SELECT && is_zero(c->k, expr_operand(c->k, e, 2));
  c->guard[i] = guarded ? expr_operand(c->k, e, 0) : NO_EXPR;
  c->load[i] = only_load(c->k, guarded ? expr_operand(c->k, e, 1) : e);
}

/* ---- axes ---- */

static bool stores_along(const struct kernel_uses *u, const struct stmt *s, uint32_t local) {
  const struct kernel_buffer *b = &u->k->buffers.items[s->buffer];
  int64_t step;
  int last = s->index_count - 1;
  while (last > 0 && b->dims[last] == 1)
    last--;
  if (last < 0 || dtype_is_complex(b->dtype) || !index_coefficient(u, s->index[last], local, &step) || step != 1)
    return false;
  for (int d = 0; d < last; d++)
    if (uses_local(u, s->index[d], local))
      return false;
  return true;
}

/* The innermost axis along which all results lie side by side. */
static int find_lanes(const struct kernel_uses *u, const struct contraction *c) {
  for (int i = c->par_count - 1; i >= 0; i--) {
    bool stores = false, along = true;
    for (const struct stmt *s = c->inside; s; s = s->next) {
      stores = stores || s->kind == STMT_STORE;
      along = along && (s->kind != STMT_STORE || stores_along(u, s, c->axes[i].loop->local));
    }
    if (stores && along)
      return i;
  }
  return -1;
}

static int64_t load_stride(const struct kernel_uses *u, expr_id load, uint32_t local) {
  int64_t stride;
  const struct expr *x = expr_get(u->k, load);
  if (load == NO_EXPR || !index_stride(u, (uint32_t)x->imm, &u->k->operands.items[x->first], local, &stride))
    return STRIDE_OPEN;
  return stride;
}
static int64_t store_stride(const struct kernel_uses *u, const struct contraction *c, uint32_t local) {
  const struct stmt *last = NULL;
  for (const struct stmt *s = c->inside; s; s = s->next)
    last = s->kind == STMT_STORE ? s : last;
  int64_t stride;
  return last && index_stride(u, last->buffer, last->index, local, &stride) ? stride : STRIDE_OPEN;
}

/* Whether some index of what the factors load moves with both. */
static bool share_index(const struct kernel_uses *u, const struct contraction *c, uint32_t red, uint32_t par) {
  for (int i = 0; i < FACTORS; i++)
    for (int d = 0; c->load[i] != NO_EXPR && d < expr_get(u->k, c->load[i])->count; d++) {
      expr_id at = expr_operand(u->k, c->load[i], d);
      if (uses_local(u, at, red) && uses_local(u, at, par))
        return true;
    }
  return false;
}
static enum axis_role role_of(const struct kernel_uses *u, const struct contraction *c, int axis) {
  const struct contraction_axis *a = &c->axes[axis];
  if (axis < c->par_count)
    return a->in[0] == a->in[1] ? ROLE_BATCH : a->in[0] ? ROLE_M : ROLE_N;
  for (int i = 0; i < c->par_count; i++)
    if (share_index(u, c, a->loop->local, c->axes[i].loop->local))
      return ROLE_WINDOW;
  return ROLE_K;
}
static void find_axes(const struct kernel_uses *u, struct contraction *c) {
  for (int i = 0; i < c->axis_count; i++) {
    struct contraction_axis *a = &c->axes[i];
    for (int f = 0; f < FACTORS; f++) {
      a->in[f] = uses_local(u, c->factor[f], a->loop->local);
      a->stride[f] = a->in[f] ? load_stride(u, c->load[f], a->loop->local) : 0;
    }
    a->stride[FACTOR_RESULT] = store_stride(u, c, a->loop->local);
    a->role = role_of(u, c, i);
  }
}

bool contraction_find(const struct kernel_uses *u, const struct stmt *top, struct contraction *c) {
  memset(c, 0, sizeof *c);
  c->k = u->k;
  c->top = top;
  if (!find_pars(u, c) || !find_sum(u, c) || !match_product(u->k, c->set, c->factor) || uses_vars(u, c->factor[0]) ||
      uses_vars(u, c->factor[1]))
    return false;
  c->local = c->set->local;
  c->dtype = u->k->locals.items[c->local].dtype;
  c->lanes = find_lanes(u, c);
  uint32_t lanes = c->lanes < 0 ? 0 : c->axes[c->lanes].loop->local;
  if (c->lanes >= 0 && uses_local(u, c->factor[0], lanes) && !uses_local(u, c->factor[1], lanes)) {
    expr_id first = c->factor[0];
    c->factor[0] = c->factor[1];
    c->factor[1] = first;
  }
  find_factor(c, 0);
  find_factor(c, 1);
  find_axes(u, c);
  return true;
}

/* ---- text ---- */

static void print_number(FILE *out, int64_t n, bool known) { known ? fprintf(out, "%lld", (long long)n) : fprintf(out, "?"); }

const struct kernel_buffer *contraction_buffer(const struct contraction *c, int factor) {
  return &c->k->buffers.items[expr_get(c->k, c->load[factor])->imm];
}
int64_t contraction_size(const struct contraction *c, int axis) {
  const struct expr *extent = expr_get(c->k, c->axes[axis].loop->value);
  return extent->op == SCALAR_SIZE ? extent->imm : -1;
}

char *contraction_text(const struct contraction *c, struct arena *arena) {
  static const char *const roles[] = {"batch", "m", "n", "k", "window"};
  char *buffer = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&buffer, &size);
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    fprintf(out, "%s%s ", i ? " " : "", roles[a->role]);
    a->extent < 0 && a->most >= 0 ? (void)fprintf(out, "%lld?", (long long)a->most) : print_number(out, a->extent, a->extent >= 0);
    for (int f = 0; f <= FACTOR_RESULT; f++) {
      fputs(f ? "," : "[", out);
      print_number(out, a->stride[f], a->stride[f] != STRIDE_OPEN);
    }
    fputs("]", out);
  }
  for (int f = 0; f < FACTORS; f++)
    if (c->guard[f] != NO_EXPR)
      fprintf(out, " guard %d", f);
  if (c->is_ragged)
    fputs(" ragged", out);
  if (c->test)
    fputs(" under if", out);
  if (c->lanes >= 0)
    fprintf(out, " lanes %d", c->lanes);
  fclose(out);
  char *text = arena_strndup(arena, buffer, size);
  free(buffer);
  return text;
}
