/* token_share.c: a row for each driver that has had a token. */
#include "runtime/resource/token_share.h"

#include <stdlib.h>

#include "runtime/program/fault.h"

static struct token_share *share_of(const struct token_shares *s, uint32_t driver) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->items[i].driver == driver)
      return &s->items[i];
  return NULL;
}

void token_shares_deinit(struct token_shares *s) {
  free(s->items);
  *s = (struct token_shares){0};
}

bool token_share_allows(const struct token_shares *s, uint32_t driver, int64_t value, int64_t each) {
  const struct token_share *share = share_of(s, driver);
  return !share || value > share->value || (value == share->value && share->count < each) || FAULT(38);
}

bool token_share_note(struct token_shares *s, uint32_t driver, int64_t value) {
  struct token_share *share = share_of(s, driver);
  if (!share && s->count == s->capacity) {
    uint32_t capacity = s->capacity * 2 + 4;
    struct token_share *grown = realloc(s->items, capacity * sizeof *grown);
    if (!grown)
      return false;
    s->items = grown;
    s->capacity = capacity;
  }
  if (!share) {
    share = &s->items[s->count++];
    *share = (struct token_share){.driver = driver, .value = value};
  }
  share->count = value == share->value ? share->count + 1 : 1;
  share->value = value;
  return true;
}
