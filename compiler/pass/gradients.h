/* gradients.h: where a training step is cut: the values that all workers make alike, by their mean, before variables are changed. */
#ifndef TFC_COMPILER_GRADIENTS_H
#define TFC_COMPILER_GRADIENTS_H

#include "compiler/edit/reach.h"

enum gradient_kind {
  GRADIENT_MEAN,   /* a value: the mean of all workers' */
  GRADIENT_SUM,    /* the sum: what is added to a variable that the model declares to be one */
  GRADIENT_ROWS,   /* rows of a gradient, ... */
  GRADIENT_INDICES /* ... and where they are in the variable: those of all workers behind each other */
};
/* Whether a worker has looked up each index once, as one machine would have done with the indices of all. */
enum rows_once {
  ROWS_AS_THEY_COME,
  ROWS_ONCE,   /* the indices are unique */
  ROWS_OF_ONCE /* they are made of such: a part of them, several lists of them, others that need not be unique */
};
struct gradient {
  value_id value;
  uint32_t var; /* the variable whose update it was found from: it is applied where that lives */
  enum gradient_kind kind;
  uint32_t pair;       /* of rows and indices: those that are as many on each worker have one number */
  bool is_stored;      /* rows that are no gradient: no mean is made of them */
  enum rows_once once; /* of rows and indices */
  value_id gathered;   /* rows and indices: those of all workers, where the flow has been lowered with them; 0: not yet */
};
struct gradients {
  VEC(struct gradient) items;
  bool trains;     /* the entry is a training step */
  bool wants_rows; /* some rows are not gathered yet */
};

/* Before the flow is looked at: what is added to variables that are sums gets a value of its own. */
void gradients_of_sums(struct build *build, struct flow *flow, struct gradients *out);

/* A gradient that is also a step on the way to others (of a bias, of which the mean of a batch is moved) gets a value of its own
 * for what is applied. True: the flow has changed, and must be looked at anew. */
bool gradients_split(struct reach *r, struct flow *flow);

/* Of an update: the variable that it changes (UINT32_MAX: none, or a loop does), and the value to be cut for it (NO_VALUE: none). */
uint32_t gradients_updated(const struct reach *r, flow_id update);
value_id gradients_choose(const struct reach *r, flow_id update, const struct flow_var *var);
/* Whether a value has the variable's shape and type; whether it is like some rows of it. */
bool gradients_has_shape(const struct reach *r, const struct flow_value *value, const struct flow_var *var);
bool gradients_has_rows(const struct reach *r, const struct flow_value *value, const struct flow_var *var);

/* None where the entry is no training step: data change no variable, or whatever variables held before does not count (a plain assignment).
 * UNIMPLEMENTED, naming the variable and the way, where data come to an update past everything that could be cut. */
status gradients_find(struct reach *r, struct gradients *out);
/* The nodes that a gradient is made of: they stay with the worker, and see what it made itself. for_gradient[nodes.count] */
void gradients_mark(const struct flow *flow, const struct gradients *gradients, bool *for_gradient);

#endif
