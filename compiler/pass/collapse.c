/* collapse.c: the pass `collapse`: loops of kernels over channels of groups become two (ir/schedule/unfold.h), those that walk through the
 * same memory one (ir/schedule/collapse.h), so that what decides how kernels lie and run sees products as products. Fusing is over then:
 * it needs a loop for each dimension of a value. */
#include "ir/schedule/collapse.h"

#include <string.h>

#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"
#include "ir/schedule/unfold.h"

/* A variable keeps its shape, whatever the kernel makes of it: what is not said yet is the buffer's. */
static void keep_shapes(struct flow *f, struct flow_node *n) {
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++) {
    const struct kernel_buffer *b = &n->kernel->buffers.items[i];
    if (!n->args[i].var || n->args[i].dims)
      continue;
    dim *dims = ARENA_ARRAY(f->arena, dim, b->rank + 1);
    for (int d = 0; d < b->rank; d++)
      dims[d] = DIM_IS_SIZE(b->dims[d]) ? n->sizes[SIZE_OF_DIM(b->dims[d])] : dim_const(f->dims, b->dims[d]);
    n->args[i].dims = dims;
    n->args[i].rank = b->rank;
  }
}

/* The kernel's new sizes, behind its own. */
static void take_sizes(struct flow *f, struct flow_node *n, const struct new_sizes *added) {
  uint32_t own = n->kernel->size_count;
  dim *sizes = ARENA_ARRAY(f->arena, dim, own + added->count + 1);
  if (own)
    memcpy(sizes, n->sizes, sizeof *sizes * own);
  for (uint32_t i = 0; i < added->count; i++) {
    const struct size_product *p = &added->items[i];
    sizes[own + i] = dim_const(f->dims, p->factor);
    for (int j = 0; j < p->count; j++)
      sizes[own + i] = dim_mul(f->dims, sizes[own + i], n->sizes[p->sizes[j]]);
  }
  n->sizes = sizes;
}

static status collapse_flow(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  (void)part, (void)self;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    struct new_sizes added = {0};
    struct kernel *made = n && n->op == FLOW_KERNEL ? kernel_collapse(kernel_unfold(n->kernel, &b->arena), &added, &b->arena) : NULL;
    if (!made || made == n->kernel)
      continue;
    keep_shapes(f, n);
    if (added.count)
      take_sizes(f, n, &added);
    n->kernel = made;
  }
  return OK;
}

status pass_collapse(struct build *b) { return part_each_flow(b, collapse_flow, NULL); }
