/* loop_form.h: what is known of a `while` of a flow before it runs: what its turns do not change, what counts them, how many there are. */
#ifndef TFC_COMPILER_LOOP_FORM_H
#define TFC_COMPILER_LOOP_FORM_H

#include "ir/flow/flow.h"

/* Its variables: inputs, parameters, results and outputs of these numbers belong together; behind them are rows. */
uint32_t loop_var_count(const struct flow_node *loop);
/* Whether the regions take and give one for one what the node takes and gives. */
bool loop_is_regular(const struct flow_node *loop);
/* The body gives variable i back as it was. */
bool loop_hands_on(const struct flow_node *loop, uint32_t i);
/* Whether the condition looks at variable i. */
bool loop_condition_takes(const struct flow_node *loop, uint32_t i);
/* The number of the variable that a value of the body is at the start of a turn, or UINT32_MAX. */
uint32_t loop_var_of(const struct flow_node *loop, value_id param);
/* Variable i is 0 in the first turn, 1 in the second, and so on. */
bool loop_counts(const struct flow *flow, const struct flow_node *loop, uint32_t i);
/* How many turns the loop makes, when its sizes say it: else NO_DIM. */
dim loop_turns(const struct flow *flow, const struct flow_node *loop);
/* Whether `later` makes as many turns as `first`, as the loops of gradients do: it counts back what the other counted, or up to it. */
bool loop_follows(const struct flow *flow, const struct flow_node *first, const struct flow_node *later);
/* How many turns the loop makes, when its sizes say it, or those of one in front of it that it follows: else NO_DIM. */
dim loop_turns_known(const struct flow *flow, flow_id loop);

#endif
