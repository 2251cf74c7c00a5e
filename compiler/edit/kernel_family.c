/* kernel_family.c: see kernel_family.h. It works on the text form, which is the same for equal kernels however they were built: numbers are
 * found there, and the kernel that is told them is read from a text. */
#include "compiler/edit/kernel_family.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/contraction.h"

#define DEPTH_MAX 256 /* of calls in an expression: deeper ones have lines of their own */
#define TOLD_MAX 32   /* more are not worth a kernel */

/* ---- which kernels ---- */

static bool has_loop(const struct stmt *s) {
  for (; s; s = s->next)
    if (s->kind == STMT_FOR || has_loop(s->body) || has_loop(s->otherwise))
      return true;
  return false;
}
static bool is_par(const struct stmt *s) { return s && s->kind == STMT_FOR && s->loop == LOOP_PAR && s->run == RUN_PLAIN; }
/* Only nests of par loops, each the only statement of the one around. */
static bool is_flat(const struct kernel *k) {
  for (const struct stmt *s = k->body; s; s = s->next) {
    const struct stmt *inside = s;
    while (is_par(inside) && (inside == s || !inside->next))
      inside = inside->body;
    if (!is_par(s) || has_loop(inside))
      return false;
  }
  return k->body != NULL;
}

static bool is_plain(const struct stmt *s) {
  for (; s; s = s->next)
    if ((s->kind == STMT_FOR && s->run != RUN_PLAIN) || s->kind == STMT_WHILE || !is_plain(s->body) || !is_plain(s->otherwise))
      return false;
  return true;
}
/* Sums, but no products: of these it is only where they read and write that may be told. */
static bool is_sum(const struct kernel *k) {
  struct kernel_uses uses;
  struct contraction c;
  struct arena work;
  bool is_product = false;
  if (!is_plain(k->body))
    return false;
  arena_init(&work);
  kernel_uses_find(k, &work, &uses);
  for (const struct stmt *s = k->body; s && !is_product; s = s->next)
    is_product = s->kind == STMT_FOR && contraction_find(&uses, s, &c);
  arena_deinit(&work);
  return !is_product;
}

/* ---- a text's numbers ---- */

struct reader {
  struct arena *arena;
  const char *at;
  const char *body; /* where statements begin; sizes of arguments stand in front */
  bool places_only;
  char *out;                    /* the end of what was written */
  const char *calls[DEPTH_MAX]; /* what is open here: a call, or the brackets of an index */
  int depth;
  VEC(int64_t) values;
  VEC(const char *) spellings;
};

static void keep(struct reader *r, const char *end) {
  memcpy(r->out, r->at, (size_t)(end - r->at));
  r->out += end - r->at;
  r->at = end;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '%' || c == '.'; }
static const char *word_end(const char *p) {
  while (is_word(*p))
    p++;
  return p;
}
static bool starts(const char *text, const char *word) {
  size_t n = strlen(word);
  return strncmp(text, word, n) == 0 && !is_word(text[n]);
}

/* Whether an operand that is a known number makes other code of the call around it. */
static bool call_wants_number(const struct reader *r, bool is_float) {
  static const char *const calls[] = {"div", "rem", "floordiv", "floormod", "shl", "shr", "pow"};
  const char *call = r->depth ? r->calls[r->depth - 1] : "";
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (starts(call, calls[i]))
      return true;
  return starts(call, "mul") && !is_float;
}

/* Whether it is a place, or what is added to one: of the code only an address hangs on it. */
static bool is_place(const struct reader *r) {
  int i = r->depth - 1;
  while (i >= 0 && (starts(r->calls[i], "add") || starts(r->calls[i], "sub")))
    i--;
  return i >= 0 && *r->calls[i] == '[' && r->at > r->body;
}

/* The value of the number that ends before `suffix`, where it may be told as a size; -1: it stays. */
static int64_t told_value(const struct reader *r, const char *suffix) {
  bool is_float = starts(suffix, ":f32"), is_int = starts(suffix, ":u32") || starts(suffix, ":u64");
  if (*suffix == ':' && !is_float && !is_int)
    return -1;
  if (call_wants_number(r, is_float) || (r->places_only && !is_place(r)))
    return -1;
  if (is_float)
    return (int64_t)((uint64_t)expr_double_to_bits(DTYPE_FLOAT, strtod(r->at, NULL)) & UINT32_MAX);
  int64_t value = strtoll(r->at, NULL, 10);
  return is_int || value >= KERNEL_SIZE_MIN || is_place(r) ? value : -1;
}

static void read_number(struct reader *r) {
  char *end;
  strtod(r->at, &end);
  int64_t value = told_value(r, end);
  if (value < 0 || value >= INT64_C(1) << 48) {
    keep(r, end);
    return;
  }
  vec_push(&r->values, value);
  vec_push(&r->spellings, arena_strndup(r->arena, r->at, (size_t)(end - r->at)));
  *r->out++ = '#';
  r->at = end;
}

static void read_string(struct reader *r) {
  const char *end = r->at + 1;
  while (*end && *end != '"')
    end += *end == '\\' && end[1] ? 2 : 1;
  keep(r, *end ? end + 1 : end);
}

static bool open_call(struct reader *r) {
  if (r->depth == DEPTH_MAX)
    return false;
  r->calls[r->depth++] = r->at;
  return true;
}
/* A word with what it calls; a number; anything else. false: calls are too deep. */
static bool read_item(struct reader *r) {
  char c = *r->at;
  bool is_number = isdigit((unsigned char)c) || (c == '-' && isdigit((unsigned char)r->at[1]));
  if (is_number) {
    read_number(r);
  } else if (c == '"') {
    read_string(r);
  } else if (is_word(c)) {
    const char *end = word_end(r->at);
    if (*end == '(' && !open_call(r))
      return false;
    keep(r, *end == '(' ? end + 1 : end);
  } else {
    if (c == '[' && !open_call(r))
      return false;
    r->depth -= (c == ')' || c == ']') && r->depth > 0;
    keep(r, r->at + 1);
  }
  return true;
}

bool kernel_numbers_read(struct arena *arena, const struct kernel *k, struct kernel_numbers *out) {
  bool places_only = !is_flat(k);
  if (places_only && !is_sum(k))
    return false;
  const char *text = strchr(kernel_print(k, arena), '('); /* behind the name */
  char *made = arena_alloc(arena, strlen(text) + 1);
  struct reader r = {.arena = arena, .at = text + 1, .body = strchr(text, '{'), .places_only = places_only, .out = made};
  bool reads = true;
  while (reads && *r.at)
    reads = strncmp(r.at, "sizes ", 6) == 0 ? (keep(&r, word_end(r.at + 6)), true) : read_item(&r);
  *r.out = 0;
  *out = (struct kernel_numbers){.name = k->name, .text = made, .count = r.values.count};
  out->values = arena_copy(arena, r.values.items, sizeof *out->values * r.values.count);
  out->spellings = arena_copy(arena, r.spellings.items, sizeof *out->spellings * r.spellings.count);
  vec_free(&r.values);
  vec_free(&r.spellings);
  return reads;
}

/* ---- the kernel that is told them ---- */

static bool differs(const struct kernel_numbers *members, uint32_t count, uint32_t number) {
  for (uint32_t m = 1; m < count; m++)
    if (members[m].values[number] != members[0].values[number])
      return true;
  return false;
}
static bool equal_in_all(const struct kernel_numbers *members, uint32_t count, uint32_t a, uint32_t b) {
  for (uint32_t m = 0; m < count; m++)
    if (members[m].values[a] != members[m].values[b])
      return false;
  return true;
}
/* Which size tells the number; told_count: none yet. */
static uint32_t told_number(const struct kernel_family *f, const struct kernel_numbers *members, uint32_t count, uint32_t number) {
  uint32_t i = 0;
  while (i < f->told_count && !equal_in_all(members, count, f->told[i], number))
    i++;
  return i;
}

/* A size as an expression of the number's dtype; *suffix, which says that, is passed. */
static const char *told_text(struct arena *arena, uint32_t size, const char **suffix) {
  const char *type = *suffix;
  if (*type == ':')
    *suffix = word_end(type + 1);
  if (*type != ':')
    return arena_printf(arena, "n%u", size);
  return starts(type, ":f32") ? arena_printf(arena, "bitcast.f32(cast.u32(n%u))", size)
                              : arena_printf(arena, "cast.%.*s(n%u)", (int)(*suffix - type - 1), type + 1, size);
}

struct text {
  struct arena *arena;
  VEC(char) chars;
};
static void add(struct text *t, const char *from, size_t n) {
  for (size_t i = 0; i < n; i++)
    vec_push(&t->chars, from[i]);
}

/* Behind the arguments it says how many sizes there are, which it did not where there were none. */
static const char *write_header_end(struct text *t, const char *p, uint32_t sizes) {
  const char *count = arena_printf(t->arena, ") sizes %u {", sizes);
  add(t, count, strlen(count));
  return strchr(p, '{') + 1;
}

static const char *general_text(struct arena *arena, const struct kernel_numbers *members, uint32_t count, uint32_t sizes,
                                const struct kernel_family *f) {
  struct text t = {.arena = arena};
  const char *header = arena_printf(arena, "kernel %s(", members[0].name), *header_end = strchr(members[0].text, ')');
  uint32_t number = 0;
  add(&t, header, strlen(header));
  for (const char *p = members[0].text; *p;) {
    if (p == header_end) {
      p = write_header_end(&t, p, sizes + f->told_count);
    } else if (*p == '#') {
      const char *suffix = ++p;
      const char *spelling = members[0].spellings[number];
      uint32_t told = told_number(f, members, count, number++);
      if (told < f->told_count)
        spelling = told_text(arena, sizes + told, &suffix);
      add(&t, spelling, strlen(spelling));
      p = suffix;
    } else {
      add(&t, p++, 1);
    }
  }
  const char *text = arena_strndup(arena, t.chars.items, t.chars.count);
  vec_free(&t.chars);
  return text;
}

status kernel_family_make(struct arena *arena, const struct kernel_numbers *members, uint32_t count, uint32_t sizes,
                          struct kernel_family *out) {
  *out = (struct kernel_family){.told = ARENA_ARRAY(arena, uint32_t, members[0].count + 1)};
  for (uint32_t i = 0; i < members[0].count; i++)
    if (differs(members, count, i) && told_number(out, members, count, i) == out->told_count)
      out->told[out->told_count++] = i;
  if (out->told_count > TOLD_MAX)
    return OK;
  return kernel_parse(general_text(arena, members, count, sizes, out), arena, &out->general);
}
