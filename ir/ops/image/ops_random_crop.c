/* ops_random_crop.c: RandomCrop, a window of a given size somewhere in an image. */
#include <string.h>

#include "ir/ops/element_words.h"
#include "ir/ops/random/random_source.h"

/* Where the window begins: [row, column]. One word of the stream for each axis that leaves a choice, columns first. */
static status draw_corner(struct op_call *c, const dim *in, const dim *out, value_id *corner) {
  struct random_source source = random_stateful(c);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  struct random_state state = random_bind(&kb, &source);
  dim two = op_dim(c, 2);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &two);
  expr_id words[4], zero = kb_int(&kb, 0), one = kb_int(&kb, 1), room[2];
  for (int i = 0; i < 2; i++)
    room[i] = kb_sub(&kb, kb_dim(&kb, in[i]), kb_dim(&kb, out[i]));
  struct philox stream = random_load(&kb, &source, &state);
  philox_block(&kb, &stream, expr_int(kb.k, DTYPE_UINT64, 0), words);
  expr_id word = kb_now(&kb, words[0]);
  for (int i = 1; i >= 0; i--) {
    expr_id axis = kb_int(&kb, i), choices = expr_cast(kb.k, DTYPE_UINT32, kb_add(&kb, room[i], one)), some = kb_lt(&kb, zero, room[i]);
    expr_id at = expr_cast(kb.k, DTYPE_INT64, expr_binary(kb.k, SCALAR_REM, word, choices));
    kb_store(&kb, o, &axis, real_element(kb_select(&kb, some, at, zero)));
    word = kb_select(&kb, some, words[1], words[0]);
  }
  random_advance(&kb, &source, &state, one);
  *corner = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* image, size */
status build_random_crop(struct op_call *c) {
  value_id image, size, corner;
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &image));
  TRY(op_input(c, 1, &size));
  struct flow_value x = *op_value(c, image);
  if (x.rank != 3)
    return fail(INVALID_ARGUMENT, "input must be 3-dimensional: %s", op_shape_text(c, x.rank, x.dims));
  TRY(op_sizes(c, size, "size", 2, dims));
  struct kb guard, kb;
  guard_begin(&guard, c);
  for (int i = 0; i < 2; i++) {
    expr_id n = kb_dim(&guard, x.dims[i]), wanted = kb_dim(&guard, dims[i]);
    kb_check(&guard, kb_le(&guard, wanted, n), FAILED_PRECONDITION, "the image must not be smaller than the crop: %d, not %d", n, wanted);
  }
  TRY(guard_finish(&guard));
  dims[2] = x.dims[2];
  TRY(draw_corner(c, x.dims, dims, &corner));
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, image), p = kb_in(&kb, corner), o = kb_out(&kb, x.dtype, 3, dims);
  expr_id index[3], at[3];
  kb_loops(&kb, LOOP_PAR, 3, dims, index);
  memcpy(at, index, sizeof at);
  for (int i = 0; i < 2; i++) {
    expr_id axis = kb_int(&kb, i);
    at[i] = kb_add(&kb, index[i], kb_load(&kb, p, &axis).re);
  }
  kb_store(&kb, o, index, kb_load(&kb, a, at));
  kb_close(&kb, 3);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
