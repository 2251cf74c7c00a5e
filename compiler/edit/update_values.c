/* update_values.c: see update_values.h. The kernel is that of the update, behind copies of what it updates: it changes these. */
#include "compiler/edit/update_values.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_clone.h"

bool update_has_values(const struct flow_node *n) {
  bool has = n->op == FLOW_KERNEL && node_updates(n);
  for (uint32_t b = 0; has && b < n->kernel->buffers.count; b++) {
    const struct kernel_buffer *buffer = &n->kernel->buffers.items[b];
    has = buffer->mode == BUFFER_INOUT ? n->args[b].var && !n->args[b].dims : buffer->mode == BUFFER_IN && n->args[b].value;
  }
  return has;
}

/* The update as it is where variables are results. */
struct changed {
  struct flow_node node;
  struct kernel kernel;
};

/* A copy whose lists are its own; statements are not changed. */
static void copy_kernel(struct kernel *to, const struct kernel *k) {
  *to = *k;
  memset(&to->buffers, 0, sizeof to->buffers);
  memset(&to->locals, 0, sizeof to->locals);
  memset(&to->exprs, 0, sizeof to->exprs);
  memset(&to->operands, 0, sizeof to->operands);
  for (uint32_t i = 0; i < k->buffers.count; i++)
    vec_push(&to->buffers, k->buffers.items[i]);
  for (uint32_t i = 0; i < k->locals.count; i++)
    vec_push(&to->locals, k->locals.items[i]);
  for (uint32_t i = 0; i < k->exprs.count; i++)
    vec_push(&to->exprs, k->exprs.items[i]);
  for (uint32_t i = 0; i < k->operands.count; i++)
    vec_push(&to->operands, k->operands.items[i]);
  to->cons = arena_copy(k->arena, k->cons, sizeof *k->cons * k->cons_size);
  to->body = NULL;
}

/* All elements of a buffer, from one of the same shape. */
static void copy_elements(struct kernel *k, uint32_t to, uint32_t from) {
  const struct kernel_buffer b = k->buffers.items[to];
  struct stmt **at = &k->body;
  expr_id index[LIMIT_RANK];
  for (int d = 0; d < b.rank; d++) {
    struct stmt *loop = stmt_for(k, at, LOOP_PAR, expr_dim(k, b.dims[d]));
    index[d] = expr_local(k, loop->local);
    at = &loop->body;
  }
  for (int part = 0; part <= dtype_is_complex(b.dtype); part++)
    stmt_store(k, at, to, part, index, b.rank, expr_load(k, from, part, index, b.rank));
}

static void change_copies(struct changed *c, const struct flow_node *update, const value_id *old, const value_id *made) {
  uint32_t count = update->kernel->buffers.count;
  c->node = *update;
  copy_kernel(&c->kernel, update->kernel);
  c->node.kernel = &c->kernel;
  c->node.args = ARENA_ARRAY(c->kernel.arena, struct flow_arg, 2 * count + 1);
  memcpy(c->node.args, update->args, sizeof *update->args * count);
  for (uint32_t b = 0; b < count; b++) {
    if (!made[b])
      continue;
    uint32_t from = c->kernel.buffers.count;
    vec_push(&c->kernel.buffers, c->kernel.buffers.items[b]);
    c->kernel.buffers.items[from].mode = BUFFER_IN;
    c->kernel.buffers.items[b].mode = BUFFER_OUT;
    c->node.args[from] = (struct flow_arg){.value = old[b]};
    c->node.args[b] = (struct flow_arg){.value = made[b]};
    copy_elements(&c->kernel, b, from);
  }
  struct stmt **end = &c->kernel.body;
  while (*end)
    end = &(*end)->next;
  *end = update->kernel->body;
}
static void changed_free(struct changed *c) {
  vec_free(&c->kernel.buffers);
  vec_free(&c->kernel.locals);
  vec_free(&c->kernel.exprs);
  vec_free(&c->kernel.operands);
}

struct flow_node *update_append_values(struct flow *f, const struct flow_node *update, uint32_t task, const value_id *old, value_id *made) {
  struct changed c;
  struct clone cl;
  flow_id id;
  struct flow_node *n = flow_append(f, FLOW_KERNEL, update, task, &id);
  for (uint32_t b = 0; b < update->kernel->buffers.count; b++) {
    const struct flow_value *like = &f->values.items[old[b]];
    made[b] = old[b] ? flow_add_value(f, like->dtype, like->rank, like->dims) : NO_VALUE;
  }
  change_copies(&c, update, old, made);
  clone_begin(&cl, f, update->kernel->name);
  clone_inline(&cl, &c.node, UINT32_MAX, NULL);
  clone_place(&cl, f, id);
  changed_free(&c);
  return n;
}
