/* line_up.c: the pass `line_up`: second factors of products that lie apart, as a transposition that was fused into the product leaves them,
 * are copied in front of it where the cost model says that the product gains more than the copy takes. */
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_clone.h"
#include "compiler/edit/line_up_node.h"
#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"
#include "compiler/schedule/choose.h"

#define GAIN 1.02 /* what copies win may not be what estimates miss */

static bool is_product(const struct flow_node *n) {
  if (!n || n->op != FLOW_KERNEL || n->kernel->size_count || !n->kernel->body || n->kernel->body->next)
    return false;
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++)
    if (n->kernel->buffers.items[i].mode == BUFFER_SCRATCH)
      return false;
  return true;
}
static double copy_cycles(const struct kernel *copy, const struct machine *machine) {
  const struct kernel_buffer *to = &copy->buffers.items[1];
  double bytes = (double)dtype_size(to->dtype);
  for (int d = 0; d < to->rank; d++)
    bytes *= (double)to->dims[d];
  return conv_copy_cycles(machine, bytes, 0, 0);
}
/* Whether what lies side by side in the copy does so in the factor, too: one that is turned products copy by themselves, while they read
 * it. */
static bool keeps_columns(const struct kernel *copy) {
  const struct stmt *s = copy->body;
  while (s->kind == STMT_FOR)
    s = s->body;
  const struct kernel_buffer *from = &copy->buffers.items[0], *to = &copy->buffers.items[1];
  return expr_operand(copy, s->value, from->rank - 1) == s->index[to->rank - 1];
}
static bool gains(struct build *b, const struct kernel *from, const struct kernel *to, const struct kernel *copy) {
  for (uint32_t i = 0; i < b->cpus.count; i++) {
    const struct machine *machine = cpu_machine(&b->cpus, i);
    double before = schedule_cycles(from, machine, &b->arena), after = schedule_cycles(to, machine, &b->arena);
    if (before == 0 || after == 0 || (after + copy_cycles(copy, machine)) * GAIN > before)
      return false;
  }
  return b->cpus.count > 0;
}
static void line_up(struct build *b, struct flow *f, flow_id id) {
  struct flow_node n = *f->nodes.items[id];
  uint32_t nodes = f->nodes.count, values = f->values.count;
  if (!node_line_up(f, &n))
    return;
  const struct kernel *copy = f->nodes.items[nodes]->kernel;
  if (!keeps_columns(copy) || !gains(b, f->nodes.items[id]->kernel, n.kernel, copy)) {
    flow_take_back(f, nodes, values);
    return;
  }
  struct clone made;
  clone_begin(&made, f, n.kernel->name);
  clone_append(&made, &n);
  clone_place(&made, f, id);
}
static status line_up_flow(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  uint32_t count = f->nodes.count;
  (void)part, (void)self;
  for (flow_id id = 1; id < count; id++)
    if (is_product(f->nodes.items[id]))
      line_up(b, f, id);
  if (f->nodes.count > count)
    flow_sort(f);
  return OK;
}

status pass_line_up(struct build *b) { return b->options.math == MATH_STRICT ? OK : part_each_flow(b, line_up_flow, NULL); }
