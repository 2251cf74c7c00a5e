/* loops.h: the steps of the pass `loops`. */
#ifndef TFC_COMPILER_LOOPS_H
#define TFC_COMPILER_LOOPS_H

#include "compiler/build.h"

/* Each is of the loops of one flow, not of those in their regions; true: the flow is another one now. */

/* What a loop saves on a stack or a list for the loop of its gradient: what does not change is taken in front of both, the rest are rows
 * of one array. */
bool loops_join_saves(const struct build *build, struct flow *flow);

/* Elements of tensor lists that a loop takes or sets one after the other are rows of arrays; a list of one element is that. */
bool loops_list_rows(const struct build *build, struct flow *flow);

/* The same of tensor arrays, whose handles all calls share. */
bool loops_array_rows(const struct build *build, struct flow *flow);

/* Products of which a factor is values beside each other, some of them rows: one for each, and their sum. */
bool loops_part_products(const struct build *build, struct flow *flow);

/* Variables to which each turn adds a product: one product behind the loop. */
bool loops_sum_behind(const struct build *build, struct flow *flow);

/* Products of rows with what all turns read: one product in front of the loop, or behind it. */
bool loops_move_products(const struct build *build, struct flow *flow);

#endif
