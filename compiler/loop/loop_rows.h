/* loop_rows.h: arrays of which a `while` has a row in each turn: those that its body takes, and those that it makes (struct flow_node,
 * rows_in, rows_out). */
#ifndef TFC_COMPILER_LOOP_ROWS_H
#define TFC_COMPILER_LOOP_ROWS_H

#include "ir/flow/flow.h"

/* Whether rows of arrays can be of this type: numbers. */
bool loop_rows_may_be(enum dtype dtype);
/* What an array is of which that is a row, one of so many. Its rank is less than LIMIT_RANK. */
struct flow_value loop_array_of(struct flow_value row, dim count);
/* Whether both are known to have the same type and shape. */
bool values_are_alike(struct flow *flow, const struct flow_value *a, const struct flow_value *b);
/* Whether none of the sizes, those of the value, hangs on what is known in a turn of the loop only. */
bool loop_dims_last(struct flow *flow, const struct flow_node *loop, const dim *dims, uint32_t count);
bool loop_sizes_last(struct flow *flow, const struct flow_node *loop, const struct flow_value *x);
/* Whether a value of the body can be the row of an array in each turn. */
bool loop_may_be_row(struct flow *flow, const struct flow_node *loop, value_id v);
/* The value of another loop's body whose rows a value of this one's body has, and that loop; NULL: it is no row, or not of a loop's. */
const struct flow_value *loop_row_saved(const struct flow *flow, const struct flow_node *loop, value_id v, const struct flow_node **by);
/* Whether a value of the body is in each turn the number of the row that this turn has; *from_last: the first turn has the last row. */
bool loop_row_number(const struct flow *flow, const struct flow_node *loop, value_id v, bool *from_last);
/* Whether the loop's rows begin at that end, or it has none yet. */
bool loop_may_face(const struct flow_node *loop, bool from_last);
/* Whether a value of the body is the memory of a variable, which the loop itself may change: at the end of a turn it is not what it was. */
bool loop_is_variable_memory(const struct flow *body, value_id v);

#endif
