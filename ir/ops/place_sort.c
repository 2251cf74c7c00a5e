/* place_sort.c: see place_sort.h. */
#include "ir/ops/place_sort.h"

static expr_id place_at(struct place_sort *s, uint32_t buffer, expr_id i) {
  s->at[s->axis] = i;
  return kb_load(s->kb, buffer, s->at).re;
}
static void put_place(struct place_sort *s, uint32_t buffer, expr_id i, expr_id place) {
  s->at[s->axis] = i;
  kb_store(s->kb, buffer, s->at, real_element(place));
}

/* The sorted runs [first, middle) and [middle, end) of `order`, as one run of `merged`. */
static void merge_runs(struct place_sort *s, expr_id first, expr_id middle, expr_id end, expr_id n) {
  struct kb *kb = s->kb;
  uint32_t left = kb_local(kb, first), right = kb_local(kb, middle);
  expr_id k = kb_add(kb, first, kb_for(kb, LOOP_SEQ, kb_sub(kb, end, first)));
  expr_id l = kb_get(kb, left), r = kb_get(kb, right);
  uint32_t a = kb_local(kb, place_at(s, s->order, kb_clamp(kb, l, n))), b = kb_local(kb, place_at(s, s->order, kb_clamp(kb, r, n)));
  expr_id has_left = kb_lt(kb, l, middle), has_right = kb_lt(kb, r, end);
  expr_id earlier = s->comes_before(s, kb_get(kb, b), kb_get(kb, a)), none_left = expr_unary(kb->k, SCALAR_NOT, has_left);
  uint32_t takes_right = kb_local(kb, kb_and(kb, has_right, kb_or(kb, none_left, earlier)));
  expr_id take = kb_get(kb, takes_right), one = kb_int(kb, 1), zero = kb_int(kb, 0);
  put_place(s, s->merged, k, kb_select(kb, take, kb_get(kb, b), kb_get(kb, a)));
  kb_set(kb, left, kb_add(kb, l, kb_select(kb, take, zero, one)));
  kb_set(kb, right, kb_add(kb, r, kb_select(kb, take, one, zero)));
  kb_close(kb, 1);
}

static expr_id smaller(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_MIN, a, b); }

static void merge_sort(struct place_sort *s, expr_id n) {
  struct kb *kb = s->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  put_place(s, s->order, i, i);
  kb_close(kb, 1);
  uint32_t width = kb_local(kb, kb_int(kb, 1));
  kb_while(kb, kb_lt(kb, kb_get(kb, width), n));
  uint32_t first = kb_local(kb, kb_int(kb, 0));
  kb_while(kb, kb_lt(kb, kb_get(kb, first), n));
  uint32_t middle = kb_local(kb, smaller(kb, kb_add(kb, kb_get(kb, first), kb_get(kb, width)), n));
  uint32_t end = kb_local(kb, smaller(kb, kb_add(kb, kb_get(kb, middle), kb_get(kb, width)), n));
  merge_runs(s, kb_get(kb, first), kb_get(kb, middle), kb_get(kb, end), n);
  kb_set(kb, first, kb_get(kb, end));
  kb_close(kb, 1);
  i = kb_for(kb, LOOP_SEQ, n);
  put_place(s, s->order, i, place_at(s, s->merged, i));
  kb_close(kb, 1);
  kb_set(kb, width, kb_mul(kb, kb_get(kb, width), kb_int(kb, 2)));
  kb_close(kb, 1);
}

/* Rows of an open length decide while they are sorted. */
void place_sort(struct place_sort *s, dim length) {
  struct kb *kb = s->kb;
  expr_id n = kb_dim(kb, length);
  int64_t known = op_dim_value(kb->c, length);
  if (s->key && (known < 0 || known >= PLACE_KEYS_MIN)) {
    if (known < 0)
      kb_if(kb, kb_le(kb, kb_int(kb, PLACE_KEYS_MIN), n));
    place_radix_sort(s, n);
    if (known >= 0)
      return;
    kb_else(kb);
  }
  merge_sort(s, n);
  if (s->key && known < 0)
    kb_close(kb, 1);
}

expr_id place_sort_get(struct place_sort *s, expr_id i) { return place_at(s, s->order, i); }
