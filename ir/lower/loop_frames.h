/* loop_frames.h: the loops of a graph of TensorFlow 1: frames of Enter and Exit. Private to lowering. */
#ifndef TFC_IR_LOWER_LOOP_FRAMES_H
#define TFC_IR_LOWER_LOOP_FRAMES_H

#include "ir/lower/lower_frame.h"

struct loop {
  const char *name; /* frame_name */
  uint32_t parent;
  VEC(uint32_t) enters, merges, exits; /* nodes; merges: loop variables */
  uint32_t condition;                  /* the LoopCond node */
  bool lowered;
};
struct loops {
  VEC(struct loop) items; /* items[0]: outside of all */
  uint32_t *of;           /* per node */
  const uint32_t *frame;  /* per node: the same, but of frames that do not turn too */
  bool *plain;            /* per node: of a frame that does not turn: Enter and Exit only hand on */
};

/* Whether it is the op, or the one on references. */
bool loop_is_op(const struct node *n, const char *name);
/* INVALID_ARGUMENT where the node's inputs are in different frames. */
status loops_check_inputs(const struct loops *l, const struct graph *g, uint32_t id);
/* The child of `scope` that holds `loop`, or 0 when `loop` is the scope itself. */
uint32_t loop_child_of(const struct loops *l, uint32_t scope, uint32_t loop);
bool loop_is_within(const struct loops *l, uint32_t loop, uint32_t scope);

#endif
