/* update_values.c: see update_values.h. The kernel stays as it is, but for loads of what it updates, which are of buffers of their own. */
#include "compiler/edit/update_values.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_clone.h"

/* ---- which ---- */

struct map_walk {
  const struct kernel *k;
  uint32_t loops[LIMIT_RANK]; /* par loops around, and their extents */
  expr_id extents[LIMIT_RANK];
  int depth;
  uint8_t *stored; /* per buffer: how often */
};

/* The element of the turn, of all that the loops go through. */
static bool is_own_element(const struct map_walk *w, uint32_t buffer, const expr_id *index, int count) {
  const struct kernel_buffer *b = &w->k->buffers.items[buffer];
  bool is = count == w->depth && b->rank == w->depth;
  for (int i = 0; is && i < count; i++) {
    const struct expr *extent = expr_get(w->k, w->extents[i]);
    int64_t size;
    bool same = DIM_IS_SIZE(b->dims[i]) ? extent->op == SCALAR_SIZE && extent->imm == (int64_t)SIZE_OF_DIM(b->dims[i])
                                        : expr_is_const(w->k, w->extents[i], &size) && size == b->dims[i];
    is = same && expr_is_local(w->k, index[i], w->loops[i]);
  }
  return is;
}
/* What it loads of updated variables is the turn's element, and was not stored yet. */
static bool loads_old(const struct map_walk *w, expr_id e) {
  const struct expr *x = expr_get(w->k, e);
  bool is_updated = x->op == SCALAR_LOAD && w->k->buffers.items[x->imm].mode == BUFFER_INOUT;
  if (is_updated && (w->stored[x->imm] || !is_own_element(w, (uint32_t)x->imm, &w->k->operands.items[x->first], x->count)))
    return false;
  for (int i = 0; i < x->count; i++)
    if (!loads_old(w, expr_operand(w->k, e, i)))
      return false;
  return true;
}
static bool is_map_block(struct map_walk *w, const struct stmt *s);
static bool is_map_loop(struct map_walk *w, const struct stmt *s) {
  if (s->loop != LOOP_PAR || w->depth == LIMIT_RANK)
    return false;
  w->loops[w->depth] = s->local;
  w->extents[w->depth++] = s->value;
  bool is = is_map_block(w, s->body);
  w->depth--;
  return is;
}
static bool is_map_store(struct map_walk *w, const struct stmt *s) {
  bool is_updated = w->k->buffers.items[s->buffer].mode == BUFFER_INOUT;
  return is_updated && loads_old(w, s->value) && !w->stored[s->buffer]++ && is_own_element(w, s->buffer, s->index, s->index_count);
}
static bool is_map_block(struct map_walk *w, const struct stmt *s) {
  bool is = true;
  for (; s && is; s = s->next)
    switch (s->kind) {
    case STMT_FOR: is = is_map_loop(w, s); break;
    case STMT_VAR:
    case STMT_SET: is = loads_old(w, s->value); break;
    case STMT_STORE: is = is_map_store(w, s); break;
    default: is = false; break;
    }
  return is;
}

bool update_is_map(const struct flow_node *n) {
  if (n->op != FLOW_KERNEL)
    return false;
  struct map_walk w = {.k = n->kernel};
  w.stored = calloc(n->kernel->buffers.count + 1, 1);
  bool is = is_map_block(&w, n->kernel->body), updates = false;
  for (uint32_t b = 0; b < n->kernel->buffers.count && is; b++) {
    const struct kernel_buffer *buffer = &n->kernel->buffers.items[b];
    bool is_updated = buffer->mode == BUFFER_INOUT && n->args[b].var && !n->args[b].dims && !dtype_is_complex(buffer->dtype);
    is = is_updated ? w.stored[b] : buffer->mode == BUFFER_IN && n->args[b].value;
    updates = updates || is_updated;
  }
  free(w.stored);
  return is && updates;
}

/* ---- the values ---- */

/* The update as if it were of values: what it stores are results, and what it loads of them lies in buffers behind its own. */
struct split {
  struct flow_node node;
  struct kernel kernel;
};
static uint32_t add_old(struct split *s, uint32_t b, value_id old) {
  uint32_t n = s->kernel.buffers.count++;
  s->kernel.buffers.items[n] = s->kernel.buffers.items[b];
  s->kernel.buffers.items[n].mode = BUFFER_IN;
  s->node.args[n] = (struct flow_arg){.value = old};
  return n;
}
static void split_buffers(struct split *s, const struct flow_node *update, const value_id *old, const value_id *made) {
  const struct kernel *k = update->kernel;
  uint32_t count = k->buffers.count, *from = calloc(count + 1, sizeof *from);
  *s = (struct split){*update, *k};
  s->node.kernel = &s->kernel;
  s->node.args = calloc(2 * count + 1, sizeof *s->node.args);
  s->kernel.buffers.items = calloc(2 * count + 1, sizeof *k->buffers.items);
  s->kernel.exprs.items = calloc(k->exprs.count + 1, sizeof *k->exprs.items);
  memcpy(s->node.args, update->args, sizeof *update->args * count);
  memcpy(s->kernel.buffers.items, k->buffers.items, sizeof *k->buffers.items * count);
  memcpy(s->kernel.exprs.items, k->exprs.items, sizeof *k->exprs.items * k->exprs.count);
  for (uint32_t b = 0; b < count; b++) {
    from[b] = made[b] ? add_old(s, b, old[b]) : b;
    if (made[b]) {
      s->kernel.buffers.items[b].mode = BUFFER_OUT;
      s->node.args[b] = (struct flow_arg){.value = made[b]};
    }
  }
  for (expr_id e = 1; e < k->exprs.count; e++)
    if (k->exprs.items[e].op == SCALAR_LOAD)
      s->kernel.exprs.items[e].imm = from[k->exprs.items[e].imm];
  free(from);
}
static void split_free(struct split *s) {
  free(s->node.args);
  free(s->kernel.buffers.items);
  free(s->kernel.exprs.items);
}

struct flow_node *update_append_values(struct flow *f, const struct flow_node *update, uint32_t task, const value_id *old, value_id *made) {
  struct split s;
  struct clone cl;
  flow_id id;
  struct flow_node *n = flow_append(f, FLOW_KERNEL, update, task, &id);
  for (uint32_t b = 0; b < update->kernel->buffers.count; b++) {
    const struct flow_value *like = &f->values.items[old[b]];
    made[b] = old[b] ? flow_add_value(f, like->dtype, like->rank, like->dims) : NO_VALUE;
  }
  split_buffers(&s, update, old, made);
  clone_begin(&cl, f, update->kernel->name);
  clone_inline(&cl, &s.node, UINT32_MAX, NULL);
  clone_place(&cl, f, id);
  split_free(&s);
  return n;
}
