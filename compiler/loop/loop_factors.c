/* loop_factors.c: see loop_factors.h. */
#include "compiler/loop/loop_factors.h"

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/flow_kernel.h"
#include "compiler/loop/loop_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/loop/loop_rows.h"

#define TURNS_MIN 2

/* ---- how many turns ---- */

static bool all_have_rows(struct flow *f, const value_id *arrays, uint32_t count, dim rows) {
  for (uint32_t i = 0; i < count; i++)
    if (dim_equal(f->dims, f->values.items[arrays[i]].dims[0], rows) != 1)
      return false;
  return true;
}
static bool begin_moves(const struct build *b, struct flow *f, flow_id loop, struct loop_moves *out) {
  const struct flow_node *n = f->nodes.items[loop];
  if (!n || n->op != FLOW_WHILE || !loop_is_regular(n))
    return false;
  uint32_t vars = loop_var_count(n);
  *out = (struct loop_moves){.build = b, .flow = f, .loop = loop, .turns = loop_turns_known(f, loop)};
  int64_t count;
  return out->turns != NO_DIM && (!dim_is_const(f->dims, out->turns, &count) || count >= TURNS_MIN) &&
         all_have_rows(f, n->inputs.items + vars, n->rows_in, out->turns) &&
         all_have_rows(f, n->outputs.items + vars, n->rows_out, out->turns);
}
bool loops_each_move(const struct build *b, struct flow *f, bool (*work)(struct loop_moves *m)) {
  uint32_t count = f->nodes.count;
  bool any = false;
  for (flow_id id = 1; id < count; id++) {
    struct loop_moves m;
    any |= begin_moves(b, f, id, &m) && work(&m);
  }
  if (any)
    flow_sort(f);
  return any;
}
struct flow_node *moves_loop(const struct loop_moves *m) {
  return m->flow->nodes.items[m->loop];
}
struct flow *moves_body(const struct loop_moves *m) {
  return moves_loop(m)->branches[1];
}

/* ---- which kernels ---- */

bool loop_may_move(const struct loop_moves *m, const struct flow_node *n) {
  return n && n->op == FLOW_KERNEL && !n->guard_count && !n->stateful && !n->is_target && n->outputs.count == 1 &&
         loop_dims_last(m->flow, moves_loop(m), n->sizes, n->kernel->size_count);
}
kernel_dim loop_turns_of(const struct loop_moves *m, const struct flow_node *n) {
  int64_t count;
  return dim_is_const(m->flow->dims, m->turns, &count) ? count : DIM_OF_SIZE(n->kernel->size_count);
}
static enum factor_kind kind_of(const struct loop_moves *m, value_id v) {
  const struct flow_node *n = moves_loop(m);
  const struct flow *body = moves_body(m);
  const struct flow_value *x = &body->values.items[v];
  const struct flow_node *maker = x->producer ? body->nodes.items[x->producer] : NULL;
  uint32_t var = loop_var_of(n, v);
  if (x->rank == LIMIT_RANK || x->any_rank)
    return FACTOR_NONE;
  if ((var != UINT32_MAX && loop_hands_on(n, var)) || (maker && maker->op == FLOW_CONST))
    return FACTOR_STEADY;
  if (!maker && var == UINT32_MAX)
    return FACTOR_ROW;
  return !maker || (!maker->guard_count && !loop_is_variable_memory(body, v)) ? FACTOR_NEW_ROW : FACTOR_NONE;
}
bool loop_factors_find(const struct loop_moves *m, const struct flow_node *p, enum factor_kind *kinds) {
  for (uint32_t i = 0; i < p->kernel->buffers.count; i++) {
    bool is_in = p->kernel->buffers.items[i].mode == BUFFER_IN;
    kinds[i] = is_in && p->args[i].value ? kind_of(m, p->args[i].value) : FACTOR_NONE;
    if (is_in && kinds[i] == FACTOR_NONE)
      return false;
  }
  return true;
}
bool *loop_factor_rows(const struct loop_moves *m, const struct flow_node *p, const enum factor_kind *kinds) {
  bool *is_row = ARENA_ARRAY(m->flow->arena, bool, p->kernel->buffers.count + 1);
  for (uint32_t i = 0; i < p->kernel->buffers.count; i++)
    is_row[i] = kinds[i] == FACTOR_ROW || kinds[i] == FACTOR_NEW_ROW;
  return is_row;
}

/* ---- what is worth it ---- */

int64_t loop_buffer_bytes(const struct flow_node *n, uint32_t buffer) {
  const struct kernel_buffer *b = &n->kernel->buffers.items[buffer];
  int64_t bytes = (int64_t)dtype_size(b->dtype);
  for (int i = 0; i < b->rank; i++)
    bytes *= DIM_IS_SIZE(b->dims[i]) ? 1 : b->dims[i];
  return bytes;
}
/* By so few terms what is in the second cache is read and written in the time of its multiply-adds (a Xeon of 2024), and what comes from
 * beyond it. */
#define USES_NEAR 16
#define USES_FAR 64
bool loop_is_used_little(const struct loop_moves *m, int64_t bytes, int64_t uses) {
  bool is_near = true;
  for (uint32_t i = 0; i < m->build->cpus.count; i++)
    is_near = is_near && 2 * bytes <= cpu_machine(&m->build->cpus, i)->bytes[LEVEL_L2];
  return uses <= (is_near ? USES_NEAR : USES_FAR);
}

/* ---- outside ---- */

/* A variable that the loop reads, which may be missing until it turns: outside there is no other who says so. */
static value_id needed_now(struct flow *f, value_id v) {
  struct flow_node *from = f->nodes.items[f->values.items[v].producer];
  if (from && from->op == FLOW_READ)
    from->imm = READ_NOW;
  return v;
}
static value_id factor_outside(const struct loop_moves *m, value_id v, enum factor_kind kind) {
  const struct flow_node *n = moves_loop(m);
  const struct flow *body = moves_body(m);
  switch (kind) {
  case FACTOR_STEADY: {
    uint32_t var = loop_var_of(n, v);
    return var != UINT32_MAX ? needed_now(m->flow, n->inputs.items[var]) : loop_copy_constant(m->flow, body, v);
  }
  case FACTOR_ROW: return n->inputs.items[body->values.items[v].index];
  default: return loop_add_row_out(m->flow, m->loop, v, m->turns);
  }
}
value_id loop_append_kernel(const struct loop_moves *m, const struct flow_node *like, struct kernel *kernel, const value_id *in,
                            struct flow_value result) {
  const struct flow_node *n = moves_loop(m);
  struct flow_node *made = flow_append_kernel(m->flow, like, n->task, kernel, in, result);
  made->guards = n->guards;
  made->guard_count = n->guard_count;
  made->sizes = ARENA_ARRAY(m->flow->arena, dim, kernel->size_count + 1);
  for (uint32_t i = 0; i < kernel->size_count; i++)
    made->sizes[i] = i < like->kernel->size_count ? like->sizes[i] : m->turns;
  return made->outputs.items[0];
}
value_id loop_append_product(const struct loop_moves *m, const struct flow_node *p, struct kernel *kernel, const enum factor_kind *kinds,
                             struct flow_value result) {
  value_id *in = ARENA_ARRAY(m->flow->arena, value_id, kernel->buffers.count + 1);
  for (uint32_t i = 0; i < kernel->buffers.count; i++)
    in[i] = kinds[i] != FACTOR_NONE ? factor_outside(m, p->args[i].value, kinds[i]) : NO_VALUE;
  return loop_append_kernel(m, p, kernel, in, result);
}
