/* update_values.c: see update_values.h. The kernel is that of the update, behind copies of what it updates: it changes these. */
#include "compiler/edit/update_values.h"

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

struct flow_node *update_append_values(struct flow *f, const struct flow_node *update, uint32_t task, const value_id *old, value_id *made) {
  struct clone cl;
  flow_id id;
  struct flow_node *n = flow_append(f, FLOW_KERNEL, update, task, &id);
  for (uint32_t b = 0; b < update->kernel->buffers.count; b++) {
    struct flow_value like = f->values.items[old[b]];
    made[b] = old[b] ? flow_add_value(f, like.dtype, like.rank, like.dims) : NO_VALUE;
  }
  clone_begin(&cl, f, update->kernel->name);
  clone_copies(&cl, update, old, made);
  clone_place(&cl, f, id);
  return n;
}
