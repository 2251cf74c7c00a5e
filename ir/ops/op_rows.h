/* op_rows.h: the shapes of the rows of ops.def, for the builders that read them. Private to ir/. */
#ifndef TFC_IR_OPS_OP_ROWS_H
#define TFC_IR_OPS_OP_ROWS_H

#include "ir/lower/host_call.h"

struct map_row {
  int inputs;
  map_formula formula;
  map_formula holds; /* NULL: nothing to check */
  status code;
  const char *text;
  bool alike; /* the inputs have one shape */
};
struct reduce_row {
  struct element (*start)(struct formula *f);
  struct element (*combine)(struct formula *f, struct element acc, struct element x);
  struct element (*finish)(struct formula *f, struct element acc, expr_id n);
  bool is_wide; /* integers are summed up in 64 bits */
};

/* ---- rows of BUILD_AS: what tells apart the ops of one builder, where it is not what they take (op_takes) ---- */

/* How an element that is there already and one more become one. */
enum combine {
  COMBINE_SET, /* the new one */
  COMBINE_ADD,
  COMBINE_SUB,
  COMBINE_MUL,
  COMBINE_DIV,
  COMBINE_MIN,
  COMBINE_MAX,
  COMBINE_MEAN, /* of segments: sums that are divided at the end, by how many there were, */
  COMBINE_SQRTN /* and by its root */
};
struct combine_row {
  enum combine how;
};
enum scan { SCAN_SUM, SCAN_PRODUCT, SCAN_LOG_SUM_EXP };
struct scan_row {
  enum scan scan;
};
struct equal_row {
  bool negated;
};
struct arg_row {
  bool largest; /* not the smallest */
};
struct search_row {
  bool upper; /* behind equal elements, not before */
};
struct softmax_row {
  bool log; /* its logarithm */
};
struct relu_row {
  bool to_six; /* at most 6 */
};
struct transpose_row {
  bool conjugates;
};
struct csr_row {
  bool transposed;
};
struct fourier_row {
  int axes; /* over so many of the last; 0: over one, or those that an input says */
  bool inverse;
};
struct matmul_row {
  bool is_first_version; /* which does not broadcast batches */
};
struct glimpse_row {
  bool is_first_version;
};
struct conv_row {
  bool depthwise; /* a filter for each channel */
};
struct resize_row {
  bool is_prefixed; /* an image is resized first: its attributes say so in their names */
};
struct pool_row {
  bool over_depth; /* windows may reach over channels */
  bool by_place;   /* with the places of what was taken */
};
struct lstm_row {
  bool forget_first; /* the forget gate's columns are before the cell's */
};
struct fake_quant_row {
  bool per_channel; /* a range for each */
};
/* Random numbers: uniform ones unless a row says otherwise. */
enum draw {
  DRAW_UNIFORM,
  DRAW_NORMAL,
  DRAW_TRUNCATED, /* normal, near the mean */
  DRAW_INT,
  DRAW_FULL_INT /* each integer of the dtype */
};
struct random_row {
  enum draw draw;
};
struct distribution_row {
  bool poisson; /* else gamma */
};
enum sampler_kind {
  SAMPLER_UNIFORM, /* all classes alike */
  SAMPLER_LOG,     /* the class k with a probability like log((k + 2) / (k + 1)) */
  SAMPLER_ALL,     /* every class once */
  SAMPLER_LEARNED, /* like 1 + the number of times that it was a true class before */
  SAMPLER_FIXED,   /* like a weight from the graph */
};
struct sampler_row {
  enum sampler_kind kind;
};
struct variable_row {
  bool is_handle; /* the variable is behind a handle, not a reference */
  bool is_temporary;
};
struct list_row {
  bool at_end; /* the element becomes the list's last */
};
/* Of queues and readers: one element, unless a row says otherwise. */
struct count_row {
  bool many;  /* in the first dimension */
  bool up_to; /* as many as come, up to a number */
};
struct sparse_box_row {
  bool many;
  bool in_map; /* sparse tensors that a map in the task keeps, rather than serialized ones */
};
struct parse_row {
  bool single; /* one record, never a batch */
};
struct image_row {
  bool frames;       /* an animation's, */
  bool maybe_frames; /* or as the bytes have it */
};
/* What a member gets of a collective: */
enum collective_shape {
  COLLECTIVE_SAME, /* as large as what it gives, */
  COLLECTIVE_PART, /* some of its rows, */
  COLLECTIVE_ROWS, /* those of all, */
  COLLECTIVE_SAID  /* what the shape says */
};
struct collective_row {
  enum collective_shape shape;
};
/* A summary that is written: the host function that makes the message, and which inputs of the op it takes. */
struct summary_row {
  const char *maker;
  uint32_t count, inputs[3];
};
struct host_row {
  enum host_kind kind;
  const char *outputs; /* ops_host.c has the language */
};
#define OP_ROW_BYTES 64 /* no row is larger */
/* The row of the call's op; all fields are 0 where it has none of the type. */
#define OP_ROW(c, row) ((const struct row *)op_row_fields(c, #row))
const void *op_row_fields(const struct op_call *c, const char *type);

status build_map(struct op_call *c);
status build_reduce(struct op_call *c);
status build_update(struct op_call *c);

/* The parts of formulas that only rows use. */
struct element f_nonzero_integer(struct formula *f, struct element x);     /* true for floats */
struct element f_nonnegative_integer(struct formula *f, struct element x); /* true for floats */
struct element f_truncate(struct formula *f, struct element x);            /* towards zero; integers are whole */
struct element f_mean(struct formula *f, struct element sum, expr_id n);

/* What a reduction adds up in, and its step: `next` into the locals, `im` only where it has one. */
enum dtype op_accumulator_dtype(const struct reduce_row *row, enum dtype dtype);
void op_set_accumulator(struct kb *kb, uint32_t re, uint32_t im, struct element next);
/* The same as the call's output for axes that are not known while compiling. Where not even their number is, the axes stay as 1
 * and the output is marked (struct bound.rank_open), if nothing but a Reshape takes it. */
status op_reduce_at_runtime(struct op_call *c, value_id v, value_id axes, bool keep, const struct reduce_row *row);
/* Reduces the axes marked in `reduced` of v by a row, keeping them as 1 or not. */
status op_reduce(struct op_call *c, value_id v, const bool *reduced, bool keep, const struct reduce_row *row, value_id *out);

/* One element of an optimizer update (ops/state/optimizers.c): what its rule reads and sets. */
struct update {
  struct op_call *c;
  struct formula *f;
  struct kb *kb;
  const expr_id *index; /* of the element in the variables */
  struct element grad;
  uint32_t var_buffers[6]; /* var and slots, by input number */
  uint32_t var_count;
  bool sparse;
};

#endif
