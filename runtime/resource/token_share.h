/* token_share.h: who has had how many tokens of a round: a worker that is fast must not take those that are for others.
 *
 * A token's value is the number of its round. Each driver gets as many of one value as are for each, and never one of
 * an older value than it has had: a worker that was slow goes on with the newest round. Decisions only; the queue's
 * lock guards it.
 */
#ifndef TFC_RUNTIME_RESOURCE_TOKEN_SHARE_H
#define TFC_RUNTIME_RESOURCE_TOKEN_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct token_share {
  uint32_t driver;
  int64_t value, count; /* the newest that it has had, and how often */
};
struct token_shares {
  uint32_t count, capacity;
  struct token_share *items;
};

/* All zero is empty. */
void token_shares_deinit(struct token_shares *shares);
bool token_share_allows(const struct token_shares *shares, uint32_t driver, int64_t value, int64_t each);
/* The driver has got one. False: no memory. */
bool token_share_note(struct token_shares *shares, uint32_t driver, int64_t value);

#endif
