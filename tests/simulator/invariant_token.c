/* invariant_token.c: rounds with tokens: a worker gets its share of a round's tokens and no more, and no gradient of a round that is over
 * counts. */
#include "base/vec.h"
#include "runtime/resource/accumulator.h"
#include "runtime/resource/token_share.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/invariant.h"
#include "tests/simulator/process.h"

/* What a queue has given: a token's value is the number of its round. */
struct given {
  const struct process *process;
  const struct token_shares *shares;
  uint32_t driver;
  int64_t value, count, each;
};
static VEC(struct given) all_given;

static struct given *given_of(const struct token_shares *shares, uint32_t driver, int64_t value) {
  const struct process *process = process_self();
  for (uint32_t i = 0; i < all_given.count; i++) {
    struct given *given = &all_given.items[i];
    if (given->process == process && given->shares == shares && given->driver == driver && given->value == value)
      return given;
  }
  vec_push(&all_given, (struct given){process, shares, driver, value, 0, 0});
  return &all_given.items[all_given.count - 1];
}

bool __wrap_token_share_allows(const struct token_shares *shares, uint32_t driver, int64_t value, int64_t each);
bool __wrap_token_share_allows(const struct token_shares *shares, uint32_t driver, int64_t value, int64_t each) {
  given_of(shares, driver, value)->each = each;
  return token_share_allows(shares, driver, value, each);
}

bool __wrap_token_share_note(struct token_shares *shares, uint32_t driver, int64_t value);
bool __wrap_token_share_note(struct token_shares *shares, uint32_t driver, int64_t value) {
  struct given *given = given_of(shares, driver, value);
  if (++given->count > given->each)
    run_fault(invariants_run(), "I14: %s has had %lld tokens of round %lld, and %lld are for each", invariants_name(driver),
              (long long)given->count, (long long)value, (long long)given->each);
  return token_share_note(shares, driver, value);
}

/* A round whose tokens are out is over. */
static int64_t newest_round(void) {
  int64_t newest = 0;
  for (uint32_t i = 0; i < all_given.count; i++)
    if (all_given.items[i].process == process_self() && all_given.items[i].count > 0 && all_given.items[i].value > newest)
      newest = all_given.items[i].value;
  return newest;
}

static uint64_t applied; /* begun and ended */

/* Nobody else is to change the count while it is looked at. */
status __wrap_accumulator_apply(struct accumulator *a, uint32_t driver, int64_t step, const struct tensor *gradient);
status __wrap_accumulator_apply(struct accumulator *a, uint32_t driver, int64_t step, const struct tensor *gradient) {
  bool is_stale = step < newest_round();
  uint64_t began = ++applied;
  int64_t count = accumulator_count(a);
  status result = accumulator_apply(a, driver, step, gradient);
  bool counts = accumulator_count(a) > count && applied == began;
  applied++;
  if (is_stale && counts)
    run_fault(invariants_run(), "I14: a gradient of %s counts that is of round %lld, and tokens of round %lld are out",
              invariants_name(driver), (long long)step, (long long)newest_round());
  return result;
}
