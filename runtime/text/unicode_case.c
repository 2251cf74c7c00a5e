/* unicode_case.c: tables of ranges of letters that are alike far from the other case, in ascending order. */
#include "runtime/text/unicode_case.h"

#include <string.h>

#include "runtime/text/unicode_class.h"
#include "runtime/text/utf8.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

struct case_range {
  int32_t first, last, step, distance;
};
static const struct case_range lower_ranges[] = {
#define LOWER
#include "runtime/text/unicode_case.def"
};
static const struct case_range upper_ranges[] = {
#define UPPER
#include "runtime/text/unicode_case.def"
};
/* Letters whose capitals are several. */
static const struct {
  int32_t code;
  const char *capitals;
} long_capitals[] = {
#define LONG
#include "runtime/text/unicode_case.def"
};

static int32_t other_case(const struct case_range *ranges, size_t count, int32_t code) {
  const struct case_range *r = &ranges[unicode_entry_from(ranges, count, sizeof *ranges, code)];
  bool is_in = code >= r->first && code <= r->last && (code - r->first) % r->step == 0;
  return is_in ? code + r->distance : code;
}

size_t unicode_upper(int32_t code, char *out) {
  for (size_t i = 0; code >= long_capitals[0].code && i < COUNT(long_capitals); i++)
    if (long_capitals[i].code == code) {
      size_t size = strlen(long_capitals[i].capitals);
      memcpy(out, long_capitals[i].capitals, size);
      return size;
    }
  return utf8_encode(other_case(upper_ranges, COUNT(upper_ranges), code), out);
}

#define CAPITAL_I_WITH_DOT 0x130

size_t unicode_lower(int32_t code, char *out) {
  if (code == CAPITAL_I_WITH_DOT) { /* an i, and the dot by itself */
    memcpy(out, "i\xcc\x87", 3);
    return 3;
  }
  return utf8_encode(other_case(lower_ranges, COUNT(lower_ranges), code), out);
}

/* ---- the two small sigmas ---- */

static bool is_letter_of_case(int32_t code) {
  const char *category = unicode_category(code);
  return category[0] == 'L' && (category[1] == 'u' || category[1] == 'l' || category[1] == 't');
}
/* What stands in words without being a letter: marks, apostrophes and the like. */
static bool is_passed_over(int32_t code) {
  static const char *const categories[] = {"Mn", "Me", "Cf", "Lm", "Sk"};
  for (size_t i = 0; i < COUNT(categories); i++)
    if (strcmp(unicode_category(code), categories[i]) == 0)
      return true;
  static const int32_t points[] = {'\'', '.', ':', 0xb7, 0x387, 0x2018, 0x2019, 0x2024, 0x2027};
  for (size_t i = 0; i < COUNT(points); i++)
    if (points[i] == code)
      return true;
  return false;
}

static bool is_letter_before(const char *text, size_t at) {
  while (at > 0) {
    size_t used, end = at--;
    while (at > 0 && end - at < 4 && !utf8_is_first(text[at]))
      at--;
    int32_t code = utf8_decode(text + at, end - at, &used);
    if (code == UTF8_BAD || !is_passed_over(code))
      return code != UTF8_BAD && is_letter_of_case(code);
  }
  return false;
}
static bool is_letter_behind(const char *text, size_t size, size_t at) {
  for (size_t used; at < size; at += used) {
    int32_t code = utf8_decode(text + at, size - at, &used);
    if (code == UTF8_BAD || !is_passed_over(code))
      return code != UTF8_BAD && is_letter_of_case(code);
  }
  return false;
}

size_t unicode_lower_sigma(const char *text, size_t size, size_t at, char *out) {
  bool is_end = is_letter_before(text, at) && !is_letter_behind(text, size, at + 2);
  return utf8_encode(is_end ? 0x3c2 : 0x3c3, out);
}
