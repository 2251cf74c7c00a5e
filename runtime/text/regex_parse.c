/* regex_parse.c: a pattern becomes a tree by descent, and the tree code (regex_emit.c). */
#include <stdlib.h>
#include <string.h>

#include "runtime/text/regex_tree.h"
#include "runtime/text/unicode_class.h"
#include "runtime/text/utf8.h"

#define NESTING_MAX 250
#define REPEAT_MAX 1000 /* RE2's own */
#define CODE_POINT_MAX 0x10ffff

struct flags {
  bool fold, lines, dot_all, swap_greed;
};
struct parser {
  struct regex *regex;
  const char *pattern, *at, *end;
  VEC(struct regex_node) nodes;
  struct flags flags;
  int depth;
};

static uint32_t node_add(struct parser *p, struct regex_node node) {
  vec_push(&p->nodes, node);
  return p->nodes.count - 1;
}

static status wrong(const struct parser *p, const char *what) {
  return fail(INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s", (int)(p->end - p->pattern), p->pattern, what);
}

/* ---- sets ---- */

struct set {
  VEC(struct regex_range) ranges;
};

static void set_add(struct set *set, int32_t low, int32_t high) { vec_push(&set->ranges, (struct regex_range){low, high}); }

static int range_order(const void *a, const void *b) {
  int32_t x = ((const struct regex_range *)a)->low, y = ((const struct regex_range *)b)->low;
  return (x > y) - (x < y);
}

static void set_negate(struct set *set) {
  if (set->ranges.count)
    qsort(set->ranges.items, set->ranges.count, sizeof *set->ranges.items, range_order);
  struct set other = {0};
  int32_t next = 0;
  for (uint32_t i = 0; i < set->ranges.count; i++) {
    if (set->ranges.items[i].low > next)
      set_add(&other, next, set->ranges.items[i].low - 1);
    next = set->ranges.items[i].high >= next ? set->ranges.items[i].high + 1 : next;
  }
  if (next <= CODE_POINT_MAX)
    set_add(&other, next, CODE_POINT_MAX);
  vec_free(&set->ranges);
  *set = other;
}

static void set_fold(struct set *set) {
  uint32_t count = set->ranges.count;
  for (uint32_t i = 0; i < count; i++) {
    struct regex_range r = set->ranges.items[i];
    int32_t low = r.low > 'A' ? r.low : 'A', high = r.high < 'Z' ? r.high : 'Z';
    if (low <= high)
      set_add(set, low + 32, high + 32);
    low = r.low > 'a' ? r.low : 'a', high = r.high < 'z' ? r.high : 'z';
    if (low <= high)
      set_add(set, low - 32, high - 32);
  }
}

/* Adds what is in the named class, or all else; frees it. */
static void add_class(struct set *set, struct set *named, bool negate) {
  if (negate)
    set_negate(named);
  for (uint32_t i = 0; i < named->ranges.count; i++)
    set_add(set, named->ranges.items[i].low, named->ranges.items[i].high);
  vec_free(&named->ranges);
}

/* d, w, s as Perl has them; capitals are their complements. */
static bool set_add_perl(struct set *set, char letter) {
  struct set s = {0};
  switch (letter | 32) {
  case 'd': set_add(&s, '0', '9'); break;
  case 'w': set_add(&s, '0', '9'), set_add(&s, 'A', 'Z'), set_add(&s, '_', '_'), set_add(&s, 'a', 'z'); break;
  case 's': set_add(&s, '\t', '\n'), set_add(&s, '\f', '\r'), set_add(&s, ' ', ' '); break;
  default: return false;
  }
  add_class(set, &s, letter < 'a');
  return true;
}

static bool set_add_named(struct set *set, const char *name, size_t size) {
  static const struct {
    const char *name, *pairs;
  } names[] = {{"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"ascii", "\x01\x7f"}, {"blank", "\t\t  "}, {"cntrl", "\x01\x1f\x7f\x7f"},
               {"digit", "09"},     {"graph", "!~"},   {"lower", "az"},       {"print", " ~"},     {"punct", "!/:@[`{~"},
               {"space", "\t\r  "}, {"upper", "AZ"},   {"word", "09AZaz__"},  {"xdigit", "09AFaf"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strlen(names[i].name) != size || memcmp(names[i].name, name, size) != 0)
      continue;
    for (const char *pair = names[i].pairs; *pair; pair += 2)
      set_add(set, pair[0], pair[1]);
    if (strcmp(names[i].name, "ascii") == 0 || strcmp(names[i].name, "cntrl") == 0)
      set_add(set, 0, 0);
    return true;
  }
  return false;
}

/* Takes the set's memory. */
static uint32_t set_node(struct parser *p, struct set *set, bool negate) {
  if (p->flags.fold)
    set_fold(set);
  if (negate)
    set_negate(set);
  vec_push(&p->regex->sets, (struct regex_set){.first = p->regex->ranges.count, .count = set->ranges.count});
  for (uint32_t i = 0; i < set->ranges.count; i++)
    vec_push(&p->regex->ranges, set->ranges.items[i]);
  vec_free(&set->ranges);
  return node_add(p, (struct regex_node){.kind = NODE_SET, .left = p->regex->sets.count - 1});
}

static uint32_t literal_node(struct parser *p, int32_t code) {
  struct set set = {0};
  set_add(&set, code, code);
  return set_node(p, &set, false);
}

/* ---- characters ---- */

static status take_code(struct parser *p, int32_t *out) {
  size_t used;
  *out = utf8_decode(p->at, (size_t)(p->end - p->at), &used);
  if (*out == UTF8_BAD)
    return wrong(p, "invalid UTF-8");
  p->at += used;
  return OK;
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

static status take_hex(struct parser *p, int32_t *out) {
  *out = 0;
  if (p->at < p->end && *p->at == '{') {
    int digits = 0;
    for (p->at++; p->at < p->end && hex_digit(*p->at) >= 0 && digits < 8; digits++)
      *out = *out * 16 + hex_digit(*p->at++);
    if (p->at == p->end || *p->at++ != '}' || !digits || *out > CODE_POINT_MAX)
      return wrong(p, "invalid escape sequence");
    return OK;
  }
  if (p->end - p->at < 2 || hex_digit(p->at[0]) < 0 || hex_digit(p->at[1]) < 0)
    return wrong(p, "invalid escape sequence");
  *out = hex_digit(p->at[0]) * 16 + hex_digit(p->at[1]);
  p->at += 2;
  return OK;
}

/* What follows a backslash and stands for one character. */
static status take_escaped(struct parser *p, int32_t *out) {
  if (p->at == p->end)
    return wrong(p, "trailing \\");
  char c = *p->at;
  static const char letters[] = "aftnrv", values[] = "\a\f\t\n\r\v";
  const char *found = strchr(letters, c);
  if (c && found) {
    p->at++;
    *out = values[found - letters];
    return OK;
  }
  if (c == 'x') {
    p->at++;
    return take_hex(p, out);
  }
  bool octal = c == '0' || (c >= '1' && c <= '7' && p->end - p->at > 1 && p->at[1] >= '0' && p->at[1] <= '7');
  if (octal) {
    *out = 0;
    for (int i = 0; i < 3 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; i++)
      *out = *out * 8 + (*p->at++ - '0');
    return OK;
  }
  if (c == 'C')
    return fail(UNIMPLEMENTED, "\\%c in the pattern %.*s", c, (int)(p->end - p->pattern), p->pattern);
  bool word = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  if (word)
    return wrong(p, "invalid escape sequence");
  return take_code(p, out);
}

/* ---- classes ---- */

static void add_found(void *self, int32_t low, int32_t high) { set_add(self, low, high); }

/* p{Greek}, pL, P{Lu}, p{^Lu} behind a backslash: adds the class; *taken is false for anything else. */
static status take_unicode_class(struct parser *p, struct set *set, bool *taken) {
  *taken = p->at < p->end && (*p->at | 32) == 'p';
  if (!*taken)
    return OK;
  bool negate = *p->at++ == 'P';
  struct set named = {0};
  const char *name = p->at, *end = p->at < p->end ? p->at + 1 : p->at;
  if (p->at < p->end && *p->at == '{') {
    end = memchr(p->at, '}', (size_t)(p->end - p->at));
    name = p->at + 1;
  }
  if (!end || end == p->at)
    return wrong(p, "invalid character class range");
  p->at = *p->at == '{' ? end + 1 : end;
  if (name < end && *name == '^') {
    negate = !negate;
    name++;
  }
  if (!unicode_class_each(name, (size_t)(end - name), add_found, &named))
    return wrong(p, "invalid character class range");
  add_class(set, &named, negate);
  return OK;
}

static status class_item(struct parser *p, struct set *set) {
  int32_t low, high;
  if (p->at[0] == '[' && p->end - p->at > 1 && p->at[1] == ':') {
    const char *close = memmem(p->at + 2, (size_t)(p->end - p->at - 2), ":]", 2);
    bool negate = close && p->at[2] == '^';
    const char *name = p->at + 2 + negate;
    struct set named = {0};
    if (close) {
      if (!set_add_named(&named, name, (size_t)(close - name)))
        return wrong(p, "invalid character class range");
      add_class(set, &named, negate);
      p->at = close + 2;
      return OK;
    }
  }
  if (*p->at == '\\') {
    p->at++;
    if (p->at < p->end && set_add_perl(set, *p->at)) {
      p->at++;
      return OK;
    }
    bool taken;
    TRY(take_unicode_class(p, set, &taken));
    if (taken)
      return OK;
    TRY(take_escaped(p, &low));
  } else {
    TRY(take_code(p, &low));
  }
  high = low;
  if (p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']') {
    p->at++;
    if (*p->at == '\\') {
      p->at++;
      TRY(take_escaped(p, &high));
    } else {
      TRY(take_code(p, &high));
    }
    if (high < low)
      return wrong(p, "invalid character class range");
  }
  set_add(set, low, high);
  return OK;
}

static status parse_class(struct parser *p, uint32_t *out) {
  struct set set = {0};
  bool negate = p->at < p->end && *p->at == '^';
  p->at += negate;
  status result = OK;
  for (bool first = true; result == OK; first = false) {
    if (p->at == p->end) {
      result = wrong(p, "missing closing ]");
    } else if (*p->at == ']' && !first) {
      p->at++;
      break;
    } else {
      result = class_item(p, &set);
    }
  }
  if (result != OK) {
    vec_free(&set.ranges);
    return result;
  }
  *out = set_node(p, &set, negate);
  return OK;
}

/* ---- the grammar ---- */

static status parse_alternatives(struct parser *p, uint32_t *out);

static uint32_t assert_node(struct parser *p, enum regex_place place) {
  return node_add(p, (struct regex_node){.kind = NODE_ASSERT, .left = place});
}

/* After "(?": flags up to ':' or ')'. */
static status parse_flags(struct parser *p, bool *group) {
  bool value = true;
  for (; p->at < p->end; p->at++) {
    switch (*p->at) {
    case 'i': p->flags.fold = value; break;
    case 'm': p->flags.lines = value; break;
    case 's': p->flags.dot_all = value; break;
    case 'U': p->flags.swap_greed = value; break;
    case '-': value = false; break;
    case ':':
    case ')':
      *group = *p->at == ':';
      p->at++;
      return OK;
    default: return wrong(p, "invalid perl operator");
    }
  }
  return wrong(p, "missing closing )");
}

static status parse_group(struct parser *p, uint32_t *out) {
  struct flags outer = p->flags;
  int number = 0;
  bool named = false;
  if (p->end - p->at > 1 && p->at[0] == '?') {
    size_t skip = p->at[1] == 'P' && p->end - p->at > 2 && p->at[2] == '<' ? 3 : p->at[1] == '<' ? 2 : 0;
    named = skip > 0;
    if (named) {
      const char *close = memchr(p->at, '>', (size_t)(p->end - p->at));
      if (!close || close == p->at + skip)
        return wrong(p, "invalid named capture group");
      p->at = close + 1;
    } else {
      bool group = false;
      p->at++;
      TRY(parse_flags(p, &group));
      if (!group) { /* for the rest of the enclosing group */
        *out = node_add(p, (struct regex_node){.kind = NODE_EMPTY});
        return OK;
      }
      number = -1;
    }
  }
  if (number == 0)
    number = ++p->regex->groups;
  uint32_t inner;
  TRY(parse_alternatives(p, &inner));
  if (p->at == p->end || *p->at != ')')
    return wrong(p, "missing closing )");
  p->at++;
  p->flags = outer;
  *out = number < 0 ? inner : node_add(p, (struct regex_node){.kind = NODE_GROUP, .left = inner, .right = (uint32_t)number});
  return OK;
}

static status parse_quoted(struct parser *p, uint32_t *out) {
  *out = node_add(p, (struct regex_node){.kind = NODE_EMPTY});
  while (p->at < p->end) {
    if (p->end - p->at > 1 && p->at[0] == '\\' && p->at[1] == 'E') {
      p->at += 2;
      return OK;
    }
    int32_t code;
    TRY(take_code(p, &code));
    uint32_t right = literal_node(p, code);
    *out = node_add(p, (struct regex_node){.kind = NODE_CAT, .left = *out, .right = right});
  }
  return OK;
}

static status parse_escape(struct parser *p, uint32_t *out) {
  struct set set = {0};
  int32_t code;
  char c = p->at < p->end ? *p->at : 0;
  if (set_add_perl(&set, c)) {
    p->at++;
    *out = set_node(p, &set, false);
    return OK;
  }
  bool taken;
  TRY(take_unicode_class(p, &set, &taken));
  if (taken) {
    *out = set_node(p, &set, false);
    return OK;
  }
  static const struct {
    char letter;
    enum regex_place place;
  } places[] = {{'A', PLACE_TEXT_BEGIN}, {'z', PLACE_TEXT_END}, {'b', PLACE_WORD}, {'B', PLACE_NO_WORD}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (c == places[i].letter) {
      p->at++;
      *out = assert_node(p, places[i].place);
      return OK;
    }
  if (c == 'Q') {
    p->at++;
    return parse_quoted(p, out);
  }
  TRY(take_escaped(p, &code));
  *out = literal_node(p, code);
  return OK;
}

static status parse_atom(struct parser *p, uint32_t *out) {
  struct set set = {0};
  int32_t code;
  switch (*p->at) {
  case '(':
    p->at++;
    if (++p->depth > NESTING_MAX)
      return wrong(p, "nested too deeply");
    TRY(parse_group(p, out));
    p->depth--;
    return OK;
  case '[': p->at++; return parse_class(p, out);
  case '\\': p->at++; return parse_escape(p, out);
  case '.':
    p->at++;
    if (!p->flags.dot_all)
      set_add(&set, '\n', '\n');
    set_negate(&set);
    *out = set_node(p, &set, false);
    return OK;
  case '^':
    p->at++;
    *out = assert_node(p, p->flags.lines ? PLACE_LINE_BEGIN : PLACE_TEXT_BEGIN);
    return OK;
  case '$':
    p->at++;
    *out = assert_node(p, p->flags.lines ? PLACE_LINE_END : PLACE_TEXT_END);
    return OK;
  case '*':
  case '+':
  case '?': return wrong(p, "no argument for repetition operator");
  default:
    TRY(take_code(p, &code));
    *out = literal_node(p, code);
    return OK;
  }
}

/* {n}, {n,}, {n,m}; anything else in braces is text. */
static bool take_counts(struct parser *p, int *min, int *max) {
  const char *at = p->at + 1;
  int numbers[2] = {-1, -1}, which = 0;
  for (; at < p->end && *at != '}'; at++) {
    if (*at == ',' && which == 0 && numbers[0] >= 0)
      which = 1;
    else if (*at >= '0' && *at <= '9' && numbers[which] < 100000)
      numbers[which] = (numbers[which] < 0 ? 0 : numbers[which]) * 10 + (*at - '0');
    else
      return false;
  }
  if (at == p->end || numbers[0] < 0)
    return false;
  *min = numbers[0];
  *max = which ? numbers[1] : numbers[0];
  p->at = at + 1;
  return true;
}

static status parse_repeats(struct parser *p, uint32_t *node) {
  bool repeated = false;
  while (p->at < p->end) {
    int min = 0, max = -1;
    char c = *p->at;
    if (c == '{') {
      if (!take_counts(p, &min, &max))
        return OK; /* an ordinary brace */
      if (min > REPEAT_MAX || max > REPEAT_MAX || (max >= 0 && max < min))
        return wrong(p, "invalid repetition size");
    } else if (c == '*' || c == '+' || c == '?') {
      min = c == '+';
      max = c == '?' ? 1 : -1;
      p->at++;
    } else {
      return OK;
    }
    if (repeated)
      return wrong(p, "bad repetition operator");
    bool lazy = p->at < p->end && *p->at == '?';
    p->at += lazy;
    *node =
      node_add(p, (struct regex_node){.kind = NODE_REPEAT, .left = *node, .min = min, .max = max, .lazy = lazy != p->flags.swap_greed});
    repeated = true;
  }
  return OK;
}

static status parse_sequence(struct parser *p, uint32_t *out) {
  *out = node_add(p, (struct regex_node){.kind = NODE_EMPTY});
  while (p->at < p->end && *p->at != '|' && *p->at != ')') {
    uint32_t right = 0;
    if (*p->at == '{') { /* not after an atom: text */
      right = literal_node(p, '{');
      p->at++;
    } else {
      TRY(parse_atom(p, &right));
    }
    TRY(parse_repeats(p, &right));
    *out = node_add(p, (struct regex_node){.kind = NODE_CAT, .left = *out, .right = right});
  }
  return OK;
}

static status parse_alternatives(struct parser *p, uint32_t *out) {
  TRY(parse_sequence(p, out));
  while (p->at < p->end && *p->at == '|') {
    uint32_t right;
    p->at++;
    TRY(parse_sequence(p, &right));
    *out = node_add(p, (struct regex_node){.kind = NODE_ALT, .left = *out, .right = right});
  }
  return OK;
}

/* ---- the whole ---- */

static status compile(struct parser *p) {
  uint32_t root;
  TRY(parse_alternatives(p, &root));
  if (p->at < p->end)
    return wrong(p, "unexpected )");
  return regex_emit(p->nodes.items, root, p->regex);
}

status regex_create(const char *pattern, size_t size, struct regex **out) {
  struct regex *regex = calloc(1, sizeof *regex);
  if (!regex)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  struct parser p = {.regex = regex, .pattern = pattern, .at = pattern, .end = pattern + size};
  status result = compile(&p);
  vec_free(&p.nodes);
  if (result != OK) {
    regex_destroy(regex);
    return result;
  }
  *out = regex;
  return OK;
}

void regex_destroy(struct regex *regex) {
  if (!regex)
    return;
  vec_free(&regex->code);
  vec_free(&regex->ranges);
  vec_free(&regex->sets);
  free(regex);
}

int regex_group_count(const struct regex *regex) { return regex->groups; }
