/* regex_code.h: a compiled pattern: shared by its compiler and its machine. */
#ifndef TFC_RUNTIME_TEXT_REGEX_CODE_H
#define TFC_RUNTIME_TEXT_REGEX_CODE_H

#include <stdint.h>
#include "base/vec.h"
#include "runtime/text/regex.h"

enum regex_op {
  REGEX_SET,    /* one code point of set a */
  REGEX_JUMP,   /* to a */
  REGEX_SPLIT,  /* to a, or else to b */
  REGEX_SAVE,   /* position a */
  REGEX_ASSERT, /* a: enum regex_place */
  REGEX_MATCH,
};
enum regex_place { PLACE_TEXT_BEGIN, PLACE_TEXT_END, PLACE_LINE_BEGIN, PLACE_LINE_END, PLACE_WORD, PLACE_NO_WORD };

struct regex_instr {
  enum regex_op op;
  uint32_t a, b;
};
struct regex_range {
  int32_t low, high;
};
#define ASCII_CODES 128
struct regex_set {
  uint32_t first, count;          /* of ranges, sorted or not */
  uint8_t ascii[ASCII_CODES / 8]; /* a bit for each of those codes, once the pattern is compiled */
};
struct regex {
  VEC(struct regex_instr) code;
  VEC(struct regex_range) ranges;
  VEC(struct regex_set) sets;
  int groups;
  bool begins[256]; /* by byte: a match may begin with it; where one may be empty all are true */
};
static inline bool set_has_range(const struct regex *r, uint32_t set, int32_t code) {
  const struct regex_range *range = r->ranges.items + r->sets.items[set].first;
  for (uint32_t i = 0; i < r->sets.items[set].count; i++)
    if (code >= range[i].low && code <= range[i].high)
      return true;
  return false;
}

#endif
