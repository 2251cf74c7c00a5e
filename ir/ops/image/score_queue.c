/* score_queue.c: see score_queue.h. */
#include "ir/ops/image/score_queue.h"

#include "ir/ops/element_words.h"

static expr_id number_at(struct kb *kb, const struct score_queue *q, expr_id place) { return kb_now(kb, kb_load(kb, q->heap, &place).re); }
static void put(struct kb *kb, const struct score_queue *q, expr_id place, expr_id number) {
  kb_store(kb, q->heap, &place, real_element(number));
}
static struct element score_of(struct kb *kb, const struct score_queue *q, expr_id number) {
  expr_id at[LIMIT_RANK];
  for (int d = 0; d < q->rank; d++)
    at[d] = d == q->dim ? number : q->at[d];
  return kb_load(kb, q->scores, at);
}
static expr_id comes_first(struct kb *kb, const struct score_queue *q, expr_id number, expr_id other) {
  struct element a = score_of(kb, q, number), b = score_of(kb, q, other);
  return kb_now(kb, kb_or(kb, e_lt(kb, b, a), kb_and(kb, e_eq(kb, a, b), kb_lt(kb, number, other))));
}
static expr_id halved(struct kb *kb, expr_id e) { return expr_binary(kb->k, SCALAR_FLOORDIV, e, kb_int(kb, 2)); }

void queue_create(struct kb *kb, struct score_queue *q, uint32_t scores, dim count) {
  *q = (struct score_queue){.scores = scores, .rank = 1, .heap = kb_scratch(kb, DTYPE_INT64, 1, &count)};
}
void queue_start(struct kb *kb, struct score_queue *q) { q->length = kb_local(kb, kb_int(kb, 0)); }

void queue_add(struct kb *kb, struct score_queue *q, expr_id number) {
  uint32_t place = kb_local(kb, kb_get(kb, q->length)), going = kb_local(kb, kb_lt(kb, kb_int(kb, 0), kb_get(kb, q->length)));
  kb_set(kb, q->length, kb_add(kb, kb_get(kb, q->length), kb_int(kb, 1)));
  kb_while(kb, kb_get(kb, going));
  expr_id above = kb_now(kb, halved(kb, kb_sub(kb, kb_get(kb, place), kb_int(kb, 1)))), other = number_at(kb, q, above);
  expr_id up = comes_first(kb, q, number, other);
  kb_if(kb, up);
  put(kb, q, kb_get(kb, place), other);
  kb_set(kb, place, above);
  kb_close(kb, 1);
  kb_set(kb, going, kb_and(kb, up, kb_lt(kb, kb_int(kb, 0), kb_get(kb, place))));
  kb_close(kb, 1);
  put(kb, q, kb_get(kb, place), number);
}

expr_id queue_best(struct kb *kb, struct score_queue *q) { return number_at(kb, q, kb_int(kb, 0)); }

/* The number goes to the top, and from there below all that come before it. */
static void sift_down(struct kb *kb, struct score_queue *q, expr_id number) {
  expr_id one = kb_int(kb, 1), length = kb_now(kb, kb_get(kb, q->length)), last = kb_now(kb, kb_sub(kb, length, one));
  uint32_t place = kb_local(kb, kb_int(kb, 0)), going = kb_local(kb, kb_lt(kb, one, length));
  kb_while(kb, kb_get(kb, going));
  expr_id left = kb_now(kb, kb_add(kb, kb_mul(kb, kb_get(kb, place), kb_int(kb, 2)), one));
  expr_id right = kb_now(kb, expr_binary(kb->k, SCALAR_MIN, kb_add(kb, left, one), last));
  expr_id a = number_at(kb, q, left), b = number_at(kb, q, right), is_right = comes_first(kb, q, b, a);
  expr_id below = kb_now(kb, kb_select(kb, is_right, right, left)), other = kb_now(kb, kb_select(kb, is_right, b, a));
  expr_id down = comes_first(kb, q, other, number);
  kb_if(kb, down);
  put(kb, q, kb_get(kb, place), other);
  kb_set(kb, place, below);
  kb_close(kb, 1);
  kb_set(kb, going, kb_and(kb, down, kb_lt(kb, kb_add(kb, kb_mul(kb, kb_get(kb, place), kb_int(kb, 2)), one), length)));
  kb_close(kb, 1);
  put(kb, q, kb_get(kb, place), number);
}
void queue_drop_best(struct kb *kb, struct score_queue *q) {
  kb_set(kb, q->length, kb_sub(kb, kb_get(kb, q->length), kb_int(kb, 1)));
  sift_down(kb, q, number_at(kb, q, kb_get(kb, q->length)));
}
void queue_lower_best(struct kb *kb, struct score_queue *q) { sift_down(kb, q, number_at(kb, q, kb_int(kb, 0))); }
