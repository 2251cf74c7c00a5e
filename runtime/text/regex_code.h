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
struct regex_set {
  uint32_t first, count; /* of ranges, sorted or not */
};
struct regex {
  VEC(struct regex_instr) code;
  VEC(struct regex_range) ranges;
  VEC(struct regex_set) sets;
  int groups;
};

#endif
