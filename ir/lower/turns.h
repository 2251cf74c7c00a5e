/* turns.h: an op that is a loop of kernels: a `while` whose body the op's builder makes. For builders. */
#ifndef TFC_IR_LOWER_TURNS_H
#define TFC_IR_LOWER_TURNS_H

#include "ir/lower/lower.h"

/* The inside of the body, where no value from outside of the loop is known but by these. */
struct turn {
  struct op_call *call; /* adds kernels to the body */
  const void *self;
  value_id row;                   /* an i64 scalar: the number of the row that this turn makes */
  const value_id *states, *fixed; /* of struct turns, as they are in here */
  value_id *next, *rows;          /* what the builder sets: the states behind the turn, and what it saves */
};

struct turns {
  dim count;              /* how many turns */
  bool backwards;         /* the first turn makes the last row */
  const value_id *states; /* before the first turn; each turn gives new ones of the same dtypes and dims */
  uint32_t state_count;
  const value_id *fixed; /* the same in all turns */
  uint32_t fixed_count;
  uint32_t row_count; /* values of each turn for whoever comes behind the loop: rows of arrays */
  const void *self;
  status (*build)(const struct turn *turn);
};

/* The loop: the states behind its last turn, and arrays [count, ...] of what turns save. Runs behind all checks of the call so far. */
status lower_turns(struct op_call *c, const struct turns *turns, value_id *last, value_id *arrays);

#endif
