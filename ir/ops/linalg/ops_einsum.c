/* ops_einsum.c: Einsum: parallel over the labels of the result, reduced over the others. Repeated labels of an input read its
 * diagonal, of the result write one; an ellipsis stands for axes that are broadcast. */
#include <string.h>

#include "ir/ops/accumulate.h"

#define OPERANDS 2
#define ELLIPSIS (-1) /* in a term: where the ellipsis is */

/* One term of the equation: labels in order. Labels are letters; an axis of the ellipsis is 256 + its number from the right. */
struct term {
  int count;
  int labels[LIMIT_RANK + 1];
  int ellipsis; /* axes that it stands for */
};
#define LABELS (256 + LIMIT_RANK)
struct einsum {
  int operands;
  struct term in[OPERANDS], out;
  dim sizes[LABELS]; /* NO_DIM: a label that does not occur */
};

static status parse_term(struct op_call *c, const char **text, struct term *t) {
  const char *p = *text;
  bool dots = false;
  t->count = 0;
  for (; *p && *p != ',' && !(p[0] == '-' && p[1] == '>'); p++) {
    if (*p == ' ')
      continue;
    if (t->count > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "an equation with terms of more than %d labels", LIMIT_RANK);
    bool is_letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
    if (!is_letter && (strncmp(p, "...", 3) != 0 || dots))
      return fail(INVALID_ARGUMENT, "Invalid equation: %s", node_attr_string(c->node, "equation", ""));
    t->labels[t->count++] = is_letter ? *p : ELLIPSIS;
    if (!is_letter) {
      dots = true;
      p += 2;
    }
  }
  *text = p;
  return OK;
}

static status parse_equation(struct op_call *c, struct einsum *e) {
  const char *equation = node_attr_string(c->node, "equation", ""), *p = equation;
  e->operands = (int)c->in_count;
  if (e->operands < 1 || e->operands > OPERANDS)
    return fail(INVALID_ARGUMENT, "Einsum takes one or two inputs, not %d", e->operands);
  for (int i = 0; i < e->operands; i++) {
    TRY(parse_term(c, &p, &e->in[i]));
    if (i + 1 < e->operands ? *p != ',' : strncmp(p, "->", 2) != 0)
      return fail(INVALID_ARGUMENT, "Expected %d inputs in equation %s", e->operands, equation);
    p += i + 1 < e->operands ? 1 : 2;
  }
  TRY(parse_term(c, &p, &e->out));
  if (e->out.count > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "an equation with terms of more than %d labels", LIMIT_RANK);
  return *p ? fail(INVALID_ARGUMENT, "Invalid equation: %s", equation) : OK;
}

/* Writes the axes of the ellipsis out as labels. */
static status expand_ellipsis(struct term *t, int axes) {
  for (int i = 0; i < t->count; i++) {
    if (t->labels[i] != ELLIPSIS)
      continue;
    if (axes < 0 || t->count - 1 + axes > LIMIT_RANK)
      return fail(INVALID_ARGUMENT, "the equation does not fit the ranks of the inputs");
    memmove(&t->labels[i + axes], &t->labels[i + 1], sizeof *t->labels * (size_t)(t->count - 1 - i));
    for (int j = 0; j < axes; j++)
      t->labels[i + j] = 256 + axes - 1 - j;
    t->count += axes - 1;
    t->ellipsis = axes;
    return OK;
  }
  return OK;
}

static status bind_sizes(struct op_call *c, struct einsum *e, const value_id *in) {
  int widest = 0;
  for (int i = 0; i < e->operands; i++) {
    struct flow_value x = *op_value(c, in[i]);
    TRY(expand_ellipsis(&e->in[i], x.rank - (e->in[i].count - 1)));
    if (e->in[i].count != x.rank)
      return fail(INVALID_ARGUMENT, "Expected input %d to have rank %d but got shape %s", i, e->in[i].count,
                  op_shape_text(c, x.rank, x.dims));
    widest = e->in[i].ellipsis > widest ? e->in[i].ellipsis : widest;
    for (int j = 0; j < x.rank; j++) {
      dim *size = &e->sizes[e->in[i].labels[j]];
      bool broadcasts = e->in[i].labels[j] >= 256;
      if (*size == NO_DIM)
        *size = x.dims[j];
      else if (broadcasts)
        TRY(op_broadcast_dim(c, *size, x.dims[j], size));
      else
        TRY(op_equal_dims(c, *size, x.dims[j], "Expected dimension of a label to be the same in all inputs"));
    }
  }
  TRY(expand_ellipsis(&e->out, widest));
  for (int i = 0; i < e->out.count; i++)
    if (e->sizes[e->out.labels[i]] == NO_DIM)
      return fail(INVALID_ARGUMENT, "Label '%c' of the output is in no input", e->out.labels[i] < 256 ? e->out.labels[i] : '.');
  return OK;
}

static struct element load_term(struct kb *kb, enum dtype sum, const struct einsum *e, int term, uint32_t buffer,
                                const expr_id *variables) {
  const struct kernel_buffer b = kb->k->buffers.items[buffer];
  const struct term *t = &e->in[term];
  const struct flow_value *x = op_value(kb->c, kb->args.items[buffer].value);
  expr_id index[LIMIT_RANK];
  for (int i = 0; i < t->count; i++) {
    index[i] = t->labels[i] >= 256 && b.dims[i] == 1 ? kb_int(kb, 0) : variables[t->labels[i]];
    if (t->labels[i] >= 256 && b.dims[i] != 1 && dim_equal(op_dims(kb->c), x->dims[i], e->sizes[t->labels[i]]) != 1)
      index[i] = expr_binary(kb->k, SCALAR_MIN, index[i], kb_sub(kb, kb_dim(kb, x->dims[i]), kb_int(kb, 1))); /* it may be 1 */
  }
  return load_as(kb, sum, buffer, index);
}

static status build_contraction(struct op_call *c, const struct einsum *e, const value_id *in) {
  struct flow_value first = *op_value(c, in[0]);
  enum dtype sum = sum_dtype(first.dtype);
  struct kb kb;
  kb_begin(&kb, c, sum);
  uint32_t buffers[OPERANDS];
  for (int i = 0; i < e->operands; i++)
    buffers[i] = kb_in(&kb, in[i]);
  dim dims[LIMIT_RANK];
  for (int i = 0; i < e->out.count; i++)
    dims[i] = e->sizes[e->out.labels[i]];
  uint32_t o = kb_out(&kb, first.dtype, e->out.count, dims);
  expr_id variables[LABELS] = {0}, index[LIMIT_RANK], diagonal = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_loops(&kb, LOOP_PAR, e->out.count, dims, index);
  for (int i = 0; i < e->out.count; i++) {
    expr_id *known = &variables[e->out.labels[i]];
    if (*known)
      diagonal = kb_and(&kb, diagonal, expr_binary(kb.k, SCALAR_EQ, *known, index[i]));
    else
      *known = index[i];
  }
  struct accumulator acc = acc_zero(&kb, sum);
  int open = 0;
  for (int i = 0; i < e->operands; i++)
    for (int j = 0; j < e->in[i].count; j++)
      if (!variables[e->in[i].labels[j]])
        variables[e->in[i].labels[j]] = kb_for_dim(&kb, LOOP_RED, e->sizes[e->in[i].labels[j]]), open++;
  struct element product = load_term(&kb, sum, e, 0, buffers[0], variables);
  if (e->operands > 1)
    product = f_binary(&kb.f, SCALAR_MUL, product, load_term(&kb, sum, e, 1, buffers[1], variables));
  acc_add(&kb, &acc, product);
  kb_close(&kb, open);
  store_as(&kb, o, index, f_select(&kb.f, real_element(diagonal), acc_get(&kb, &acc), f_const(&kb.f, 0)));
  kb_close(&kb, e->out.count);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

status build_einsum(struct op_call *c) {
  struct einsum e;
  memset(&e, 0, sizeof e);
  value_id in[OPERANDS];
  TRY(parse_equation(c, &e));
  for (uint32_t i = 0; i < c->in_count; i++)
    TRY(op_input(c, i, &in[i]));
  TRY(bind_sizes(c, &e, in));
  return build_contraction(c, &e, in);
}
