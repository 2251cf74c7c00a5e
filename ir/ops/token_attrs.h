/* token_attrs.h: what the compiler adds to nodes that take part in rounds with tokens (compiler/token_round.h); their
 * host calls find it without the underscore, which keeps it out of what clients compare. */
#ifndef TFC_IR_OPS_TOKEN_ATTRS_H
#define TFC_IR_OPS_TOKEN_ATTRS_H

#define ATTR_TOKENS_EACH "_tfc_tokens_each"       /* of a dequeue: as many elements of one value are for each driver */
#define ATTR_GRADIENTS_EACH "_tfc_gradients_each" /* of a take: as many gradients of a round come from each replica */

#endif
