/* ops_glimpse.c: a window of an image around a point; what lies outside of the image is noise. */
#include <math.h>
#include <string.h>

#include "ir/ops/element_words.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/random/random_source.h"

enum noise { NOISE_ZERO, NOISE_UNIFORM, NOISE_GAUSSIAN };
struct glimpse {
  value_id images, offsets;
  struct flow_value image;
  dim out[4];
  enum noise noise;
  bool first_version, normalized, centered;
  value_id range; /* [batch, channels, 4]: smallest, largest, mean, deviation */
};

static status read_noise(struct op_call *c, enum noise *out) {
  const char *noise = node_attr_string(c->node, "noise", "uniform");
  bool uniform = node_attr_int(c->node, "uniform_noise", 1);
  if (uniform && *noise && strcmp(noise, "uniform") != 0)
    return fail(INVALID_ARGUMENT, "The uniform_noise and noise could not be specified at the same time");
  *out = *noise ? NOISE_ZERO : uniform ? NOISE_UNIFORM : NOISE_GAUSSIAN;
  if (strcmp(noise, "uniform") == 0)
    *out = NOISE_UNIFORM;
  else if (strcmp(noise, "gaussian") == 0)
    *out = NOISE_GAUSSIAN;
  else if (*noise && strcmp(noise, "zero") != 0)
    return fail(INVALID_ARGUMENT, "The noise could only be uniform, gaussian, or zero, got '%s'", noise);
  return OK;
}

/* input, size, offsets */
static status glimpse_begin(struct op_call *c, struct glimpse *g) {
  value_id size;
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &g->images));
  TRY(op_input(c, 1, &size));
  TRY(op_input(c, 2, &g->offsets));
  TRY(read_noise(c, &g->noise));
  g->first_version = OP_ROW(c, glimpse_row)->is_first_version;
  g->normalized = node_attr_int(c->node, "normalized", 1);
  g->centered = node_attr_int(c->node, "centered", 1);
  g->image = *op_value(c, g->images);
  if (g->image.rank != 4)
    return fail(INVALID_ARGUMENT, "input must be 4-dimensional (batch_size, height, width, depth): %s",
                op_shape_text(c, g->image.rank, g->image.dims));
  TRY(op_sizes(c, size, "size", 2, dims));
  struct flow_value at = *op_value(c, g->offsets);
  if (at.rank != 2)
    return fail(INVALID_ARGUMENT, "offsets must be a matrix: %s", op_shape_text(c, at.rank, at.dims));
  TRY(op_equal_dims(c, at.dims[0], g->image.dims[0], "first dimension should be batch"));
  TRY(op_equal_dims(c, at.dims[1], op_dim(c, 2), "second dimension should be of size 2 (y,x)"));
  memcpy(g->out, g->image.dims, sizeof g->out);
  memcpy(&g->out[1], dims, 2 * sizeof *dims);
  return OK;
}

/* The first pixel of the window on an axis (0: rows), truncated towards zero. */
static expr_id window_start(struct kb *kb, const struct glimpse *g, expr_id image, int axis) {
  expr_id index[2] = {image, kb_int(kb, axis)};
  struct element at = kb_load(kb, kb_in(kb, g->offsets), index), half = e_num(kb, 0.5);
  struct element n = e_of(kb, DTYPE_FLOAT, kb_dim(kb, g->image.dims[1 + axis])), size = e_of(kb, DTYPE_FLOAT, kb_dim(kb, g->out[1 + axis]));
  if (g->normalized)
    at = e_mul(kb, at, n);
  if (g->centered) {
    if (g->first_version || g->normalized)
      at = e_mul(kb, at, half);
    at = e_add(kb, at, e_mul(kb, n, half));
  }
  if (g->first_version || (g->normalized && g->centered))
    at = e_sub(kb, at, e_mul(kb, size, half));
  return kb_now(kb, e_int(kb, at));
}

/* ---- noise like the image's pixels ---- */

static status pixel_range(struct op_call *c, struct glimpse *g) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim dims[3] = {g->image.dims[0], g->image.dims[3], op_dim(c, 4)};
  uint32_t a = kb_in(&kb, g->images), o = kb_out(&kb, DTYPE_FLOAT, 3, dims);
  expr_id at[4], to[3];
  kb_loops(&kb, LOOP_PAR, 2, dims, to);
  at[0] = to[0];
  at[3] = to[1];
  struct accumulator low = acc_begin(&kb, e_num(&kb, INFINITY)), high = acc_begin(&kb, e_num(&kb, -INFINITY)),
                     sum = acc_zero(&kb, DTYPE_FLOAT);
  kb_loops(&kb, LOOP_RED, 2, &g->image.dims[1], &at[1]);
  struct element e = kb_load(&kb, a, at);
  acc_set(&kb, &low, e_min(&kb, acc_get(&kb, &low), e));
  acc_set(&kb, &high, e_max(&kb, acc_get(&kb, &high), e));
  acc_add(&kb, &sum, e);
  kb_close(&kb, 2);
  struct element n = e_of(&kb, DTYPE_FLOAT, kb_dim(&kb, op_count(c, 2, &g->image.dims[1]))),
                 mean = e_now(&kb, e_div(&kb, acc_get(&kb, &sum), n));
  struct accumulator squares = acc_zero(&kb, DTYPE_FLOAT);
  kb_loops(&kb, LOOP_RED, 2, &g->image.dims[1], &at[1]);
  struct element away = e_sub(&kb, kb_load(&kb, a, at), mean);
  acc_add(&kb, &squares, e_mul(&kb, away, away));
  kb_close(&kb, 2);
  struct element values[4] = {acc_get(&kb, &low), acc_get(&kb, &high), mean,
                              f_unary(&kb.f, SCALAR_SQRT, e_div(&kb, acc_get(&kb, &squares), n))};
  for (int i = 0; i < 4; i++) {
    to[2] = kb_int(&kb, i);
    kb_store(&kb, o, to, values[i]);
  }
  kb_close(&kb, 2);
  g->range = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

static struct element noise_pixel(struct kb *kb, const struct glimpse *g, const struct philox *stream, const expr_id *index) {
  if (g->noise == NOISE_ZERO)
    return e_num(kb, 0);
  expr_id words[4], normals[2], number = kb_int(kb, 0), at[3] = {index[0], index[3], 0};
  for (int i = 0; i < 4; i++)
    number = kb_add(kb, kb_mul(kb, number, kb_dim(kb, g->out[i])), index[i]);
  struct element range[4];
  for (int i = 0; i < 4; i++) {
    at[2] = kb_int(kb, i);
    range[i] = kb_load(kb, kb_in(kb, g->range), at);
  }
  philox_block(kb, stream, expr_cast(kb->k, DTYPE_UINT64, number), words);
  if (g->noise == NOISE_UNIFORM) {
    struct element u = real_element(philox_uniform(kb, DTYPE_FLOAT, words[0], words[1]));
    return e_add(kb, range[0], e_mul(kb, u, e_sub(kb, range[1], range[0])));
  }
  philox_normals(kb, DTYPE_FLOAT, words, normals);
  struct element e = e_add(kb, range[2], e_mul(kb, real_element(normals[0]), range[3]));
  return e_max(kb, e_min(kb, e, range[1]), range[0]);
}

status build_extract_glimpse(struct op_call *c) {
  struct glimpse g = {0};
  TRY(glimpse_begin(c, &g));
  if (g.noise != NOISE_ZERO)
    TRY(pixel_range(c, &g));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, g.images);
  kb_in(&kb, g.offsets);
  struct random_source source;
  struct random_state state;
  struct philox stream = {0, 0, 0};
  if (g.noise != NOISE_ZERO) {
    kb_in(&kb, g.range);
    source = random_stateful(c);
    state = random_bind(&kb, &source);
  }
  uint32_t o = kb_out(&kb, DTYPE_FLOAT, 4, g.out);
  expr_id index[4], at[4], inside = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_loops(&kb, LOOP_PAR, 4, g.out, index);
  if (g.noise != NOISE_ZERO)
    stream = random_load(&kb, &source, &state);
  memcpy(at, index, sizeof at);
  for (int i = 0; i < 2; i++) {
    expr_id n = kb_dim(&kb, g.image.dims[1 + i]), place = kb_add(&kb, window_start(&kb, &g, index[0], i), index[1 + i]);
    inside = kb_and(&kb, inside, kb_in_range(&kb, place, n));
    at[1 + i] = kb_clamp(&kb, place, n);
  }
  kb_if(&kb, inside);
  kb_store(&kb, o, index, kb_load(&kb, a, at));
  kb_else(&kb);
  kb_store(&kb, o, index, noise_pixel(&kb, &g, &stream, index));
  kb_close(&kb, 5);
  if (g.noise != NOISE_ZERO)
    random_advance(&kb, &source, &state, kb_dim(&kb, op_count(c, 4, g.out)));
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
