/* line_up_node.c: see line_up_node.h. */
#include "compiler/edit/line_up_node.h"

#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "ir/schedule/line_up.h"

static value_id append_copy(struct flow *f, const struct flow_node *n, struct flow_arg factor, struct kernel *copy) {
  const struct kernel_buffer *b = &copy->buffers.items[1];
  struct flow_value like = {.dtype = b->dtype, .rank = b->rank};
  flow_id id;
  for (int i = 0; i < b->rank; i++)
    like.dims[i] = DIM_IS_SIZE(b->dims[i]) ? n->sizes[SIZE_OF_DIM(b->dims[i])] : dim_const(f->dims, b->dims[i]);
  struct flow_node *made = flow_append(f, FLOW_KERNEL, n, n->task, &id);
  made->kernel = copy;
  made->sizes = n->sizes; /* the same ones */
  made->guards = n->guards;
  made->guard_count = n->guard_count;
  made->args = ARENA_ARRAY(f->arena, struct flow_arg, 2);
  made->args[0] = factor;
  made->args[1].value = flow_append_output(f, made, id, like);
  vec_push(&made->inputs, factor.value);
  return made->args[1].value;
}

bool node_line_up(struct flow *f, struct flow_node *n) {
  struct kernel *copy;
  uint32_t buffer, count = n->kernel->buffers.count;
  struct kernel *made = kernel_line_up(n->kernel, f->arena, &copy, &buffer);
  if (!made || !n->args[buffer].value)
    return false;
  struct flow_arg *args = ARENA_ARRAY(f->arena, struct flow_arg, count + 1);
  memcpy(args, n->args, sizeof *args * count);
  args[count].value = append_copy(f, n, n->args[buffer], copy);
  n->kernel = made;
  n->args = args;
  return true;
}
