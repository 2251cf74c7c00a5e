/* loop_factors.h: kernels of a loop's body that run once for all turns, in front of the loop or behind it: what their factors are there. */
#ifndef TFC_COMPILER_PASS_LOOP_FACTORS_H
#define TFC_COMPILER_PASS_LOOP_FACTORS_H

#include "compiler/build.h"

/* A loop that makes a number of turns that is known in front of it, and whose arrays have a row for each. */
struct loop_moves {
  const struct build *build;
  struct flow *flow;
  flow_id loop;
  dim turns;
};
/* For each of the flow; true: for one of them `work` says that the flow is another one now. */
bool loops_each_move(const struct build *build, struct flow *flow, bool (*work)(struct loop_moves *m));
struct flow_node *moves_loop(const struct loop_moves *m);
struct flow *moves_body(const struct loop_moves *m);

/* What a value of the body is outside of the loop: the same in all turns, a row of an array that is there, or of one that the loop makes
 * from now on and which is there behind it. */
enum factor_kind { FACTOR_NONE, FACTOR_STEADY, FACTOR_ROW, FACTOR_NEW_ROW };

/* Whether a node of the body is a pure kernel of one result, of sizes that are there outside of the loop. */
bool loop_may_move(const struct loop_moves *m, const struct flow_node *node);
/* The turns as a dimension of the node's kernel, or of what is made of it: a size is one more than it has. */
kernel_dim loop_turns_of(const struct loop_moves *m, const struct flow_node *node);
/* For each argument that the kernel reads; false: one of them is FACTOR_NONE. */
bool loop_factors_find(const struct loop_moves *m, const struct flow_node *product, enum factor_kind *kinds);
/* Those that are rows. Owner: the flow's arena. */
bool *loop_factor_rows(const struct loop_moves *m, const struct flow_node *product, const enum factor_kind *kinds);
int64_t loop_buffer_bytes(const struct flow_node *product, uint32_t buffer); /* sizes count as 1 */
/* Whether each element of so many bytes is used so few times a turn that moving it to the core, or back, takes longer. */
bool loop_is_used_little(const struct loop_moves *m, int64_t bytes, int64_t uses);

/* A kernel in the place of `like`, outside of the loop, that reads these values, and gives one like `result`. It has the sizes of `like`,
 * and the turns where it has one more. */
value_id loop_append_kernel(const struct loop_moves *m, const struct flow_node *like, struct kernel *kernel, const value_id *in,
                            struct flow_value result);
/* The same with what the product's factors are there. */
value_id loop_append_product(const struct loop_moves *m, const struct flow_node *product, struct kernel *kernel,
                             const enum factor_kind *kinds, struct flow_value result);

/* Whether a product of the body is worth making for all turns in front of the loop (loop_products.c). */
bool loop_product_goes_in_front(const struct loop_moves *m, struct flow_node *product);

#endif
