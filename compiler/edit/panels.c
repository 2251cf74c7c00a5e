/* panels.c: see panels.h. */
#include "compiler/edit/panels.h"

#include <string.h>

#include "compiler/edit/kernel_clone.h"

/* ---- which ---- */

/* The buffer is loaded at one place of the kernel, which its first use decides: one expression. */
static bool is_loaded_once(const struct kernel *k, expr_id load) {
  for (expr_id e = 1; e < k->exprs.count; e++)
    if (e != load && expr_get(k, e)->op == SCALAR_LOAD && expr_get(k, e)->imm == expr_get(k, load)->imm)
      return false;
  return true;
}
static bool moves_in_sum(const struct contraction *c, expr_id e) {
  for (int i = c->par_count; i < c->axis_count; i++)
    if (expr_reads_local(c->k, e, c->axes[i].loop->local))
      return true;
  return false;
}
/* The dimension that the lanes' loop itself indexes, and no other moves with it; -1: none. */
static int find_lanes(const struct contraction *c, int64_t *first) {
  uint32_t local = c->axes[c->lanes].loop->local;
  int found = -1;
  for (int i = 0; i < expr_get(c->k, c->load[1])->count; i++) {
    expr_id e = expr_operand(c->k, c->load[1], i);
    if (!expr_reads_local(c->k, e, local))
      continue;
    if (found >= 0 || !expr_is_local_from(c->k, e, local, first))
      return -1;
    found = i;
  }
  return found;
}
static void find_order(const struct contraction *c, struct panels *p) {
  int count = 0;
  for (int in_sum = 0; in_sum < 2; in_sum++) {
    for (int i = 0; i < p->rank; i++)
      if (i != p->lanes && moves_in_sum(c, expr_operand(c->k, c->load[1], i)) == in_sum)
        p->order[count++] = i;
    p->outer = in_sum ? p->outer : count;
  }
}

bool panels_of(const struct contraction *c, int64_t width, struct panels *out) {
  if (c->lanes < 0 || c->axes[c->lanes].role != ROLE_N || c->load[1] == NO_EXPR)
    return false;
  const struct kernel_buffer *b = &c->k->buffers.items[expr_get(c->k, c->load[1])->imm];
  *out = (struct panels){.rank = b->rank, .width = width, .count = c->axes[c->lanes].extent};
  out->lanes = find_lanes(c, &out->first);
  if (out->lanes < 0 || b->mode != BUFFER_IN || dtype_is_complex(b->dtype) || b->rank < 2 || b->rank == LIMIT_RANK ||
      !is_loaded_once(c->k, c->load[1]))
    return false;
  for (int i = 0; i < b->rank; i++) {
    if (DIM_IS_SIZE(b->dims[i]) || b->dims[i] < 1)
      return false;
    out->dims[i] = b->dims[i];
  }
  find_order(c, out);
  return out->count > 0 && out->first >= 0 && out->first + out->count <= out->dims[out->lanes] && out->outer < out->rank - 1;
}

bool panels_equal(const struct panels *a, const struct panels *b) {
  return a->rank == b->rank && a->lanes == b->lanes && a->width == b->width && a->outer == b->outer && a->first == b->first &&
         a->count == b->count && memcmp(a->dims, b->dims, sizeof a->dims) == 0 && memcmp(a->order, b->order, sizeof a->order) == 0;
}

const char *panels_text(const struct panels *p, struct arena *arena) {
  const char *text = "", *lanes = arena_printf(arena, p->first ? "(%d-%lld)" : "%d", p->lanes, (long long)p->first);
  for (int i = 0; i < p->rank; i++) {
    if (i == p->outer)
      text = arena_printf(arena, "%s[%s/%lld]", text, lanes, (long long)p->width);
    if (i + 1 < p->rank)
      text = arena_printf(arena, "%s[%d]", text, p->order[i]);
  }
  return arena_printf(arena, "%s[%s%%%lld]", text, lanes, (long long)p->width);
}

/* ---- kernels ---- */

struct kernel *panels_kernel(const struct panels *p, enum dtype dtype, struct arena *arena) {
  struct kernel *k = kernel_create(arena, "Pack");
  int64_t sizes[LIMIT_RANK + 1];
  expr_id at[LIMIT_RANK + 1], from[LIMIT_RANK];
  panels_sizes(p, sizes);
  uint32_t dense = kernel_add_buffer(k, dtype, BUFFER_IN, p->rank, p->dims),
           packed = kernel_add_buffer(k, dtype, BUFFER_OUT, p->rank + 1, sizes);
  struct stmt **tail = &k->body;
  for (int i = 0; i <= p->rank; i++) {
    struct stmt *loop = stmt_for(k, tail, LOOP_PAR, expr_int(k, DTYPE_INT64, sizes[i]));
    at[i] = expr_local(k, loop->local);
    tail = &loop->body;
  }
  for (int i = 0, other = 0; i < p->rank; i++)
    if (i != p->outer)
      from[p->order[other++]] = at[i];
  expr_id width = expr_int(k, DTYPE_INT64, p->width), count = expr_int(k, DTYPE_INT64, p->count);
  expr_id column = expr_binary(k, SCALAR_ADD, expr_binary(k, SCALAR_MUL, at[p->outer], width), at[p->rank]);
  bool is_whole = p->count % p->width == 0;
  expr_id inside = is_whole ? column : expr_binary(k, SCALAR_MIN, column, expr_int(k, DTYPE_INT64, p->count - 1));
  from[p->lanes] = expr_binary(k, SCALAR_ADD, inside, expr_int(k, DTYPE_INT64, p->first));
  expr_id value = expr_load(k, dense, 0, from, p->rank);
  if (!is_whole)
    value = expr_select(k, expr_binary(k, SCALAR_LT, column, count), value, expr_bits(k, dtype, 0));
  stmt_store(k, tail, packed, 0, at, p->rank + 1, value);
  return k;
}

/* in a: the value in panels, out b: the dense one. */
static struct kernel *unpack_kernel(const struct panels *p, enum dtype dtype, struct arena *arena, struct producer *out) {
  struct kernel *k = kernel_create(arena, "Unpack");
  int64_t sizes[LIMIT_RANK + 1];
  expr_id *at = ARENA_ARRAY(arena, expr_id, p->rank), from[LIMIT_RANK + 1];
  panels_sizes(p, sizes);
  uint32_t packed = kernel_add_buffer(k, dtype, BUFFER_IN, p->rank + 1, sizes),
           dense = kernel_add_buffer(k, dtype, BUFFER_OUT, p->rank, p->dims);
  struct stmt **tail = &k->body;
  for (int i = 0; i < p->rank; i++) {
    struct stmt *loop = stmt_for(k, tail, LOOP_PAR, expr_int(k, DTYPE_INT64, p->dims[i]));
    at[i] = expr_local(k, out->locals[i] = loop->local);
    tail = &loop->body;
  }
  expr_id width = expr_int(k, DTYPE_INT64, p->width);
  expr_id column = expr_binary(k, SCALAR_SUB, at[p->lanes], expr_int(k, DTYPE_INT64, p->first));
  for (int i = 0, other = 0; i < p->rank; i++)
    from[i] = i == p->outer ? expr_binary(k, SCALAR_FLOORDIV, column, width) : at[p->order[other++]];
  from[p->rank] = expr_binary(k, SCALAR_FLOORMOD, column, width);
  out->value[0] = expr_load(k, packed, 0, from, p->rank + 1);
  stmt_store(k, tail, dense, 0, at, p->rank, out->value[0]);
  out->index = at;
  out->index_count = out->depth = p->rank;
  out->buffer = dense;
  out->is_map = true;
  return k;
}

/* Panels that have nothing but the lanes in them. */
static bool are_whole(const struct panels *p) { return p->first == 0 && p->count == p->dims[p->lanes] && p->count % p->width == 0; }
struct kernel *panels_back_kernel(const struct panels *p, enum dtype dtype, struct arena *arena) {
  struct producer unused = {0};
  if (!are_whole(p))
    return unpack_kernel(p, dtype, arena, &unused);
  struct kernel *k = kernel_create(arena, "Unpack");
  int64_t sizes[LIMIT_RANK + 1];
  expr_id at[LIMIT_RANK], from[LIMIT_RANK + 1];
  panels_sizes(p, sizes);
  uint32_t packed = kernel_add_buffer(k, dtype, BUFFER_IN, p->rank + 1, sizes),
           dense = kernel_add_buffer(k, dtype, BUFFER_OUT, p->rank, p->dims);
  struct stmt **tail = &k->body;
  for (int i = 0; i < p->rank; i++) { /* panels and their lanes are loops: no quotients, and what lies side by side can be seen */
    bool is_split = i == p->lanes;
    struct stmt *loop = stmt_for(k, tail, LOOP_PAR, expr_int(k, DTYPE_INT64, is_split ? sizes[p->outer] : p->dims[i]));
    at[i] = expr_local(k, loop->local);
    tail = &loop->body;
    if (!is_split)
      continue;
    struct stmt *lane = stmt_for(k, tail, LOOP_PAR, expr_int(k, DTYPE_INT64, p->width));
    tail = &lane->body;
    from[p->outer] = at[i];
    from[p->rank] = expr_local(k, lane->local);
    at[i] = expr_binary(k, SCALAR_ADD, expr_binary(k, SCALAR_MUL, at[i], expr_int(k, DTYPE_INT64, p->width)), from[p->rank]);
  }
  for (int i = 0, other = 0; i < p->rank; i++)
    if (i != p->outer)
      from[i] = at[p->order[other++]];
  stmt_store(k, tail, dense, 0, at, p->rank, expr_load(k, packed, 0, from, p->rank + 1));
  return k;
}

void panels_read(struct flow *f, struct flow_node *n, uint32_t buffer, const struct panels *p, value_id packed) {
  struct producer unpack = {0};
  struct flow_arg args[] = {{.value = packed}, {0}};
  struct flow_node maker = {.op = FLOW_KERNEL, .args = args};
  struct clone clone;
  maker.kernel = unpack_kernel(p, n->kernel->buffers.items[buffer].dtype, f->arena, &unpack);
  unpack.node = &maker;
  clone_begin(&clone, f, n->kernel->name);
  clone_inline(&clone, n, buffer, &unpack);
  clone_finish(&clone, n);
}
