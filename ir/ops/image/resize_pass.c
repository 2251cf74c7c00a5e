/* resize_pass.c: see resize_pass.h. */
#include "ir/ops/image/resize_pass.h"

#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

#define TAPS_WRITTEN 4 /* more are a loop */

/* A kernel of one pass, at one element of its result. */
struct pass {
  struct kb *kb;
  const struct axis_taps *taps;
  uint32_t image, at, weight; /* buffers */
  int axis;
  const expr_id *index; /* of the element */
};

static struct element tap_weight(const struct pass *p, expr_id tap) {
  return kb_load(p->kb, p->weight, (const expr_id[]){p->index[p->axis], tap});
}
static struct element tap_pixel(const struct pass *p, expr_id tap) {
  expr_id from[4];
  memcpy(from, p->index, sizeof from);
  from[p->axis] = kb_index(p->kb, kb_load(p->kb, p->at, (const expr_id[]){p->index[p->axis], tap}));
  return load_as(p->kb, DTYPE_FLOAT, p->image, from);
}
static struct element tap_value(const struct pass *p, expr_id tap) {
  struct formula *f = &p->kb->f;
  struct element weight = tap_weight(p, tap), value = f_binary(f, SCALAR_MUL, weight, tap_pixel(p, tap));
  struct element zero = f_const_as(f, DTYPE_FLOAT, 0);
  return p->taps->skips ? f_select(f, f_binary(f, SCALAR_NE, weight, zero), value, zero) : value;
}
static struct element between(const struct pass *p) {
  struct formula *f = &p->kb->f;
  struct element a = tap_pixel(p, kb_int(p->kb, 0)), b = tap_pixel(p, kb_int(p->kb, 1));
  return f_binary(f, SCALAR_ADD, a, f_binary(f, SCALAR_MUL, f_binary(f, SCALAR_SUB, b, a), tap_weight(p, kb_int(p->kb, 1))));
}
static struct element written_sum(const struct pass *p, int64_t count) {
  struct element sum = tap_value(p, kb_int(p->kb, 0));
  for (int i = 1; i < count; i++)
    sum = f_binary(&p->kb->f, SCALAR_ADD, sum, tap_value(p, kb_int(p->kb, i)));
  return sum;
}
static struct element looped_sum(const struct pass *p) {
  struct accumulator sum = acc_zero(p->kb, DTYPE_FLOAT);
  expr_id tap = kb_for_dim(p->kb, LOOP_RED, p->taps->count);
  acc_add(p->kb, &sum, tap_value(p, tap));
  kb_close(p->kb, 1);
  return acc_get(p->kb, &sum);
}
static struct element sum_of(const struct pass *p) {
  int64_t count = op_dim_value(p->kb->c, p->taps->count);
  if (p->taps->is_between)
    return between(p);
  return count >= 1 && count <= TAPS_WRITTEN ? written_sum(p, count) : looped_sum(p);
}

status resize_pass(struct op_call *c, value_id image, int axis, const struct axis_taps *taps, value_id factor, enum dtype dtype,
                   value_id *out) {
  struct flow_value x = *op_value(c, image);
  struct kb kb;
  expr_id index[4];
  x.dims[axis] = op_value(c, taps->at)->dims[0];
  kb_begin(&kb, c, DTYPE_FLOAT);
  struct pass p = {.kb = &kb, .taps = taps, .axis = axis, .index = index};
  p.image = kb_in(&kb, image), p.at = kb_in(&kb, taps->at), p.weight = kb_in(&kb, taps->weight);
  uint32_t by = factor ? kb_in(&kb, factor) : 0, made = kb_out(&kb, dtype, 4, x.dims);
  kb_loops(&kb, LOOP_PAR, 4, x.dims, index);
  struct element sum = sum_of(&p);
  store_as(&kb, made, index, factor ? f_binary(&kb.f, SCALAR_MUL, sum, kb_load(&kb, by, NULL)) : sum);
  kb_close(&kb, 4);
  *out = kb_value(&kb, made);
  return kb_finish_guarded(&kb);
}

/* The position that shares out, at one element of it. */
static void share_out(const struct pass *p, uint32_t made, enum dtype sum) {
  struct kb *kb = p->kb;
  expr_id to[4];
  struct element value = load_as(kb, sum, p->image, p->index);
  memcpy(to, p->index, sizeof to);
  for (int i = 0; i < op_dim_value(kb->c, p->taps->count); i++) {
    const expr_id place[2] = {p->index[p->axis], kb_int(kb, i)};
    struct element share = f_binary(&kb->f, SCALAR_MUL, load_as(kb, sum, p->weight, place), value);
    to[p->axis] = kb_index(kb, kb_load(kb, p->at, place));
    store_as(kb, made, to, f_binary(&kb->f, SCALAR_ADD, load_as(kb, sum, made, to), share));
  }
}
#define CHANNELS_MANY 32 /* fill lines by themselves: a pixel's are together; else lines have several pixels */

status resize_pass_back(struct op_call *c, value_id grads, int axis, const struct axis_taps *taps, dim size, enum dtype dtype,
                        value_id *out) {
  struct flow_value g = *op_value(c, grads);
  struct kb kb;
  expr_id index[4];
  kb_begin(&kb, c, sum_dtype(dtype));
  struct pass p = {.kb = &kb, .taps = taps, .axis = axis, .index = index};
  p.image = kb_in(&kb, grads), p.at = kb_in(&kb, taps->at), p.weight = kb_in(&kb, taps->weight);
  dim positions = g.dims[axis];
  g.dims[axis] = size;
  uint32_t made = kb_out(&kb, dtype, 4, g.dims);
  bool inside = op_dim_value(c, g.dims[3]) >= CHANNELS_MANY;
  for (int d = 0; d < 4 - inside; d++)
    index[d] = d == axis ? NO_EXPR : kb_for_dim(&kb, LOOP_PAR, g.dims[d]);
  for (int shares = 0; shares < 2; shares++) {
    index[axis] = kb_for_dim(&kb, shares ? LOOP_SEQ : LOOP_PAR, shares ? positions : size);
    index[3] = inside ? kb_for_dim(&kb, LOOP_PAR, g.dims[3]) : index[3];
    if (shares)
      share_out(&p, made, sum_dtype(dtype));
    else
      kb_store(&kb, made, index, f_const_as(&kb.f, dtype, 0));
    kb_close(&kb, 1 + inside);
  }
  kb_close(&kb, 3 - inside);
  *out = kb_value(&kb, made);
  return kb_finish_guarded(&kb);
}
