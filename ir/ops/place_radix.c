/* place_radix.c: places sorted by a key of four or eight bytes: byte by byte from the last, each time counted and dealt out in order
 * (Knuth, The Art of Computer Programming 3, 5.2.5). Equal keys keep their order. */
#include "ir/ops/place_sort.h"

#define DIGITS 256

_Static_assert(PLACE_KEYS_MIN *PLACE_COUNTS >= DIGITS, "a row of counts has room for all digits");

static expr_id digit_of(struct place_sort *s, expr_id place, int byte) {
  struct kb *kb = s->kb;
  expr_id key = s->key(s, place);
  enum dtype dtype = expr_get(kb->k, key)->dtype;
  expr_id digit = expr_binary(kb->k, SCALAR_SHR, key, expr_int(kb->k, dtype, 8 * byte));
  return kb_get(kb, kb_local(kb, expr_cast(kb->k, DTYPE_INT64, expr_binary(kb->k, SCALAR_AND, digit, expr_int(kb->k, dtype, DIGITS - 1)))));
}
static expr_id count_get(struct place_sort *s, expr_id digit) {
  s->at[s->axis] = digit;
  return kb_get(s->kb, kb_local(s->kb, kb_load(s->kb, s->counts, s->at).re));
}
static void count_put(struct place_sort *s, expr_id digit, expr_id count) {
  s->at[s->axis] = digit;
  kb_store(s->kb, s->counts, s->at, real_element(count));
}

/* counts[d]: how many keys have a smaller byte. */
static void count_bytes(struct place_sort *s, int byte, expr_id n) {
  struct kb *kb = s->kb;
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0), digits = kb_int(kb, DIGITS);
  count_put(s, kb_for(kb, LOOP_PAR, digits), zero);
  kb_close(kb, 1);
  expr_id digit = digit_of(s, kb_for(kb, LOOP_SEQ, n), byte);
  count_put(s, digit, kb_add(kb, count_get(s, digit), one));
  kb_close(kb, 1);
  uint32_t before = kb_local(kb, zero);
  digit = kb_for(kb, LOOP_SEQ, digits);
  expr_id count = count_get(s, digit);
  count_put(s, digit, kb_get(kb, before));
  kb_set(kb, before, kb_add(kb, kb_get(kb, before), count));
  kb_close(kb, 1);
}
/* from: UINT32_MAX where places are still in order */
static void deal_out(struct place_sort *s, int byte, expr_id n, uint32_t from, uint32_t to) {
  struct kb *kb = s->kb;
  expr_id place = s->at[s->axis] = kb_for(kb, LOOP_SEQ, n);
  if (from != UINT32_MAX)
    place = kb_get(kb, kb_local(kb, kb_load(kb, from, s->at).re));
  expr_id digit = digit_of(s, place, byte), where = count_get(s, digit);
  count_put(s, digit, kb_add(kb, where, kb_int(kb, 1)));
  s->at[s->axis] = where;
  kb_store(kb, to, s->at, real_element(place));
  kb_close(kb, 1);
}

void place_radix_sort(struct place_sort *s, expr_id n) {
  uint32_t from = UINT32_MAX;
  for (int byte = 0; byte < s->key_bytes; byte++) {
    uint32_t to = (s->key_bytes - byte) % 2 ? s->order : s->merged;
    count_bytes(s, byte, n);
    deal_out(s, byte, n, from, to);
    from = to;
  }
}
