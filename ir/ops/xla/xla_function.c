/* xla_function.c: see xla.h. The function is lowered like any other, with scalars for arguments, into a flow that is
 * thrown away; what it became are kernels of one store each, whose expressions are copied into the kernel that applies
 * it. */
#include "ir/graph/function.h"
#include "ir/lower/lower_walk.h"
#include "ir/ops/xla/xla.h"

/* ---- making ---- */

static bool is_arithmetic(const struct flow_node *n) {
  if (n->op == FLOW_CONST || n->op == FLOW_ALIAS)
    return true;
  if (n->op != FLOW_KERNEL)
    return false;
  for (const struct stmt *s = n->kernel->body; s; s = s->next)
    if (s->kind != STMT_STORE || s->index_count)
      return false;
  return true;
}

status xla_function_read(struct op_call *c, const char *attr, uint32_t arg_count, const enum dtype *args, uint32_t ret_count,
                         const enum dtype *rets, struct xla_function *out) {
  const struct attr_value *f = node_attr(c->node, attr);
  if (!f || f->kind != ATTR_FUNC)
    return fail(INVALID_ARGUMENT, "has no function %s", attr);
  if (arg_count > 2 * XLA_OPERANDS || ret_count > XLA_OPERANDS)
    return fail(UNIMPLEMENTED, "more than %d operands", XLA_OPERANDS);
  *out = (struct xla_function){.arg_count = arg_count, .ret_count = ret_count};
  TRY(lower_scalars(c, f->func, args, arg_count, out->args, ret_count, out->rets, &out->flow));
  for (uint32_t i = 1; i < out->flow->nodes.count; i++)
    if (!is_arithmetic(out->flow->nodes.items[i]))
      return fail(UNIMPLEMENTED, "its function %s has '%s' (%s), which is no arithmetic of scalars", f->func->name,
                  out->flow->nodes.items[i]->name, out->flow->nodes.items[i]->tf_op);
  for (uint32_t i = 0; i < ret_count; i++) {
    const struct flow_value *x = out->rets[i] ? flow_value_get(out->flow, out->rets[i]) : NULL;
    if (!x || x->rank != 0 || x->dtype != rets[i])
      return fail(INVALID_ARGUMENT, "result %u of its function %s is no scalar of %s", i, f->func->name, dtype_name(rets[i]));
  }
  return OK;
}

/* ---- applying ---- */

struct application {
  struct kb *kb;
  const struct flow *flow;
  struct element *values; /* for each value of the flow */
};

static expr_id known_part(struct kb *kb, enum dtype dtype, const void *data) {
  int64_t bits = 0;
  size_t size = dtype_size(dtype);
  memcpy(&bits, data, size);
  if (dtype_is_signed(dtype) && size < 8) /* sign-extended */
    bits = (int64_t)((uint64_t)bits << (64 - 8 * size)) >> (64 - 8 * size);
  return expr_bits(kb->k, dtype, bits);
}

static struct element known_element(struct kb *kb, const struct flow_value *v) {
  enum dtype part = dtype_real(v->dtype);
  const char *data = v->data;
  return (struct element){known_part(kb, part, data), dtype_is_complex(v->dtype) ? known_part(kb, part, data + dtype_size(part)) : NO_EXPR};
}

static struct element value_element(struct application *a, value_id v) {
  const struct flow_value *x = flow_value_get(a->flow, v);
  return x->data ? known_element(a->kb, x) : a->values[v];
}

/* `copied`: what has been made of each expression so far, as many use one. */
static expr_id copy_expr(struct application *a, const struct flow_node *n, expr_id *copied, expr_id e) {
  struct kernel *k = a->kb->k;
  const struct expr *x = expr_get(n->kernel, e);
  if (copied[e] != NO_EXPR)
    return copied[e];
  if (x->op == SCALAR_CONST)
    return expr_bits(k, (enum dtype)x->dtype, x->imm);
  if (x->op == SCALAR_LOAD) {
    struct element value = value_element(a, n->args[x->imm].value);
    return x->part ? value.im : value.re;
  }
  expr_id operands[4];
  for (int i = 0; i < x->count; i++)
    operands[i] = copy_expr(a, n, copied, expr_operand(n->kernel, e, i));
  return copied[e] = expr_make(k, (enum scalar_op)x->op, (enum dtype)x->dtype, operands, x->count);
}

static void apply_kernel(struct application *a, const struct flow_node *n) {
  expr_id *copied = ARENA_ARRAY(op_arena(a->kb->c), expr_id, n->kernel->exprs.count); /* NO_EXPR */
  for (const struct stmt *s = n->kernel->body; s; s = s->next) {
    expr_id e = copy_expr(a, n, copied, s->value);
    struct element *to = &a->values[n->args[s->buffer].value];
    if (s->part)
      to->im = e;
    else
      to->re = e;
  }
}

void xla_function_apply(struct kb *kb, const struct xla_function *function, const struct element *args, struct element *rets) {
  struct application a = {.kb = kb, .flow = function->flow};
  a.values = ARENA_ARRAY(op_arena(kb->c), struct element, function->flow->values.count + 1);
  for (uint32_t i = 0; i < function->arg_count; i++)
    a.values[function->args[i]] = args[i];
  for (uint32_t i = 1; i < function->flow->nodes.count; i++) {
    const struct flow_node *n = function->flow->nodes.items[i];
    if (n->op == FLOW_KERNEL)
      apply_kernel(&a, n);
    else if (n->op == FLOW_ALIAS)
      a.values[n->outputs.items[0]] = value_element(&a, n->inputs.items[0]);
  }
  for (uint32_t i = 0; i < function->ret_count; i++)
    rets[i] = value_element(&a, function->rets[i]);
}
