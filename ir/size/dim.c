/* dim.c: symbolic sizes in normal form: a sum of terms, each an integer times a sorted product of atoms. Equal sums are the
 * same id. Sums are tiny (one to three terms), so plain sorting and linear walks do. */
#include "ir/size/dim.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "runtime/program/program.h"

enum atom_kind { ATOM_SYMBOL, ATOM_FLOORDIV, ATOM_MOD, ATOM_MIN, ATOM_MAX };
struct atom {
  enum atom_kind kind;
  dim a, b;     /* of a symbol: a is its number */
  bool has_low; /* low is known: nested atoms would be walked again and again */
  int64_t low;
};
#define TERM_ATOMS 12
struct term {
  int64_t coefficient;
  uint32_t count;
  uint32_t atoms[TERM_ATOMS]; /* sorted */
};
struct sum {
  uint32_t count;
  const struct term *terms; /* sorted; the constant, if any, first */
};
struct symbol {
  const char *name;
  dim stands_for; /* NO_DIM: itself */
};
struct dim_pair {
  dim a, b; /* assumed equal while compiling; a is the bare symbol */
  const char *why;
};
struct dim_table {
  struct arena *arena;
  VEC(struct sum) sums; /* sums.items[0] is none */
  VEC(struct atom) atoms;
  VEC(struct symbol) symbols;
  VEC(struct dim_pair) assumptions;
  VEC(uint32_t) cons; /* hash slots of sums */
  const char *reason; /* of assumptions made now */
  uint32_t unified;   /* number of unifications: 0 makes dim_resolve free */
};

struct dim_table *dims_create(struct arena *arena) {
  struct dim_table *t = ARENA_NEW(arena, struct dim_table);
  t->arena = arena;
  vec_push(&t->sums, (struct sum){0});
  return t;
}

static int term_compare(const struct term *a, const struct term *b) {
  if (a->count != b->count)
    return a->count < b->count ? -1 : 1;
  return memcmp(a->atoms, b->atoms, sizeof a->atoms[0] * a->count);
}
static int term_order(const void *a, const void *b) { return term_compare(a, b); }

static uint64_t sum_hash(const struct term *terms, uint32_t count) {
  uint64_t h = count;
  for (uint32_t i = 0; i < count; i++) {
    h = hash_bytes(&terms[i].coefficient, sizeof(int64_t), h);
    h = hash_bytes(terms[i].atoms, sizeof(uint32_t) * terms[i].count, h);
  }
  return h;
}
static bool sum_same(const struct sum *s, const struct term *terms, uint32_t count) {
  if (s->count != count)
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (s->terms[i].coefficient != terms[i].coefficient || term_compare(&s->terms[i], &terms[i]) != 0)
      return false;
  return true;
}

static void cons_grow(struct dim_table *t) {
  uint32_t size = t->cons.count ? t->cons.count * 2 : 256;
  vec_reserve(&t->cons, size);
  t->cons.count = size;
  memset(t->cons.items, 0, sizeof(uint32_t) * size);
  for (uint32_t id = 1; id < t->sums.count; id++) {
    uint64_t at = sum_hash(t->sums.items[id].terms, t->sums.items[id].count) & (size - 1);
    while (t->cons.items[at])
      at = (at + 1) & (size - 1);
    t->cons.items[at] = id;
  }
}

/* Sorts, merges equal terms, drops zeros, interns. */
static dim sum_intern(struct dim_table *t, struct term *terms, uint32_t count) {
  qsort(terms, count, sizeof *terms, term_order);
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (n && term_compare(&terms[n - 1], &terms[i]) == 0)
      terms[n - 1].coefficient = (int64_t)((uint64_t)terms[n - 1].coefficient + (uint64_t)terms[i].coefficient);
    else
      terms[n++] = terms[i];
    if (terms[n - 1].coefficient == 0)
      n--;
  }
  if (t->sums.count * 2 >= t->cons.count)
    cons_grow(t);
  uint64_t at = sum_hash(terms, n) & (t->cons.count - 1);
  for (; t->cons.items[at]; at = (at + 1) & (t->cons.count - 1))
    if (sum_same(&t->sums.items[t->cons.items[at]], terms, n))
      return t->cons.items[at];
  vec_push(&t->sums, (struct sum){.count = n, .terms = arena_copy(t->arena, terms, sizeof *terms * n)});
  return t->cons.items[at] = t->sums.count - 1;
}

static dim atom_dim(struct dim_table *t, enum atom_kind kind, dim a, dim b) {
  uint32_t i = 0;
  while (i < t->atoms.count && (t->atoms.items[i].kind != kind || t->atoms.items[i].a != a || t->atoms.items[i].b != b))
    i++;
  if (i == t->atoms.count)
    vec_push(&t->atoms, (struct atom){.kind = kind, .a = a, .b = b});
  return sum_intern(t, &(struct term){.coefficient = 1, .count = 1, .atoms = {i}}, 1);
}

dim dim_const(struct dim_table *t, int64_t value) { return sum_intern(t, &(struct term){.coefficient = value}, value ? 1 : 0); }
dim dim_symbol(struct dim_table *t, const char *name) {
  vec_push(&t->symbols, (struct symbol){.name = arena_strdup(t->arena, name)});
  return atom_dim(t, ATOM_SYMBOL, t->symbols.count - 1, NO_DIM);
}
dim dim_of_symbol(struct dim_table *t, uint32_t symbol) { return atom_dim(t, ATOM_SYMBOL, symbol, NO_DIM); }
uint32_t dims_symbol_count(const struct dim_table *t) { return t->symbols.count; }
const char *dims_symbol_name(const struct dim_table *t, uint32_t symbol) { return t->symbols.items[symbol].name; }

bool dim_is_const(const struct dim_table *t, dim d, int64_t *value) {
  const struct sum *s = &t->sums.items[d];
  if (d == NO_DIM || s->count > 1 || (s->count == 1 && s->terms[0].count > 0))
    return false;
  if (value)
    *value = s->count ? s->terms[0].coefficient : 0;
  return true;
}
bool dim_is_symbol(const struct dim_table *t, dim d, uint32_t *symbol) {
  const struct sum *s = &t->sums.items[d];
  if (d == NO_DIM || s->count != 1 || s->terms[0].count != 1 || s->terms[0].coefficient != 1)
    return false;
  const struct atom *a = &t->atoms.items[s->terms[0].atoms[0]];
  if (a->kind != ATOM_SYMBOL)
    return false;
  if (symbol)
    *symbol = a->a;
  return true;
}

/* ---- arithmetic on resolved dims ---- */

#define SUM_TERMS 64

/* The same value as one atom: keeps sums and products within their limits. */
static dim opaque(struct dim_table *t, dim d) { return atom_dim(t, ATOM_FLOORDIV, d, dim_const(t, 1)); }

static dim sum_combine(struct dim_table *t, dim a, int64_t factor, dim b) {
  if (t->sums.items[a].count + t->sums.items[b].count > SUM_TERMS) {
    bool first = t->sums.items[a].count > t->sums.items[b].count;
    return first ? sum_combine(t, opaque(t, a), factor, b) : sum_combine(t, a, factor, opaque(t, b));
  }
  const struct sum x = t->sums.items[a], y = t->sums.items[b];
  struct term terms[SUM_TERMS];
  uint32_t n = 0;
  for (uint32_t i = 0; i < x.count; i++)
    terms[n++] = x.terms[i];
  for (uint32_t i = 0; i < y.count; i++) {
    terms[n] = y.terms[i];
    terms[n].coefficient = (int64_t)((uint64_t)terms[n].coefficient * (uint64_t)factor);
    n++;
  }
  return sum_intern(t, terms, n);
}

static int atom_order(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}
static struct term term_product(const struct term *a, const struct term *b) {
  struct term r = {.coefficient = (int64_t)((uint64_t)a->coefficient * (uint64_t)b->coefficient)};
  memcpy(r.atoms, a->atoms, sizeof(uint32_t) * a->count);
  memcpy(r.atoms + a->count, b->atoms, sizeof(uint32_t) * b->count);
  r.count = a->count + b->count;
  qsort(r.atoms, r.count, sizeof(uint32_t), atom_order);
  return r;
}

dim dim_add(struct dim_table *t, dim a, dim b) { return sum_combine(t, dim_resolve(t, a), 1, dim_resolve(t, b)); }
dim dim_sub(struct dim_table *t, dim a, dim b) { return sum_combine(t, dim_resolve(t, a), -1, dim_resolve(t, b)); }

/* The most atoms that a term of the sum has. */
static uint32_t sum_atoms(const struct sum *s) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < s->count; i++)
    most = s->terms[i].count > most ? s->terms[i].count : most;
  return most;
}

dim dim_mul(struct dim_table *t, dim a, dim b) {
  a = dim_resolve(t, a), b = dim_resolve(t, b);
  if (t->sums.items[a].count * t->sums.items[b].count > SUM_TERMS ||
      sum_atoms(&t->sums.items[a]) + sum_atoms(&t->sums.items[b]) > TERM_ATOMS) {
    a = opaque(t, a);
    b = sum_atoms(&t->sums.items[b]) < TERM_ATOMS ? b : opaque(t, b);
  }
  const struct sum x = t->sums.items[a], y = t->sums.items[b];
  struct term terms[SUM_TERMS];
  uint32_t n = 0;
  for (uint32_t i = 0; i < x.count; i++)
    for (uint32_t j = 0; j < y.count; j++)
      terms[n++] = term_product(&x.terms[i], &y.terms[j]);
  return sum_intern(t, terms, n);
}

/* Whether every term of `terms` can be divided by the single term `by`; the quotient in out. */
static bool term_divide(const struct term *a, const struct term *by, struct term *out) {
  if (by->coefficient == -1 || a->coefficient % by->coefficient != 0) /* -1: the least number has no counterpart */
    return false;
  *out = (struct term){.coefficient = a->coefficient / by->coefficient};
  uint32_t j = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    if (j < by->count && a->atoms[i] == by->atoms[j])
      j++;
    else
      out->atoms[out->count++] = a->atoms[i];
  }
  return j == by->count;
}

static bool dim_positive(struct dim_table *t, dim d) { return dim_less(t, dim_const(t, 0), d) == 1; }

dim dim_floordiv(struct dim_table *t, dim a, dim b) {
  a = dim_resolve(t, a), b = dim_resolve(t, b);
  int64_t value, divisor;
  if (dim_is_const(t, b, &divisor)) {
    if (divisor == 0)
      return NO_DIM;
    if (divisor == -1)
      return dim_sub(t, dim_const(t, 0), a);
    if (dim_is_const(t, a, &value))
      return dim_const(t, value / divisor - (value % divisor != 0 && (value < 0) != (divisor < 0)));
  }
  const struct sum x = t->sums.items[a], y = t->sums.items[b];
  if (y.count != 1)
    return a == b && dim_positive(t, a) ? dim_const(t, 1) : atom_dim(t, ATOM_FLOORDIV, a, b);
  /* exact terms leave the division: (k*b*x + r) / b = k*x + r / b */
  struct term whole[SUM_TERMS], rest[SUM_TERMS];
  uint32_t whole_count = 0, rest_count = 0;
  for (uint32_t i = 0; i < x.count; i++) {
    if (term_divide(&x.terms[i], &y.terms[0], &whole[whole_count]))
      whole_count++;
    else
      rest[rest_count++] = x.terms[i];
  }
  if (whole_count == 0)
    return atom_dim(t, ATOM_FLOORDIV, a, b);
  dim q = sum_intern(t, whole, whole_count);
  return rest_count ? dim_add(t, q, dim_floordiv(t, sum_intern(t, rest, rest_count), b)) : q;
}

dim dim_mod(struct dim_table *t, dim a, dim b) {
  dim q = dim_floordiv(t, a, b);
  if (q == NO_DIM)
    return NO_DIM;
  dim r = dim_sub(t, a, dim_mul(t, q, b));
  if (dim_is_const(t, r, NULL))
    return r;
  return atom_dim(t, ATOM_MOD, dim_resolve(t, a), dim_resolve(t, b));
}

static dim min_max(struct dim_table *t, enum atom_kind kind, dim a, dim b) {
  a = dim_resolve(t, a), b = dim_resolve(t, b);
  if (a == b)
    return a;
  int less = dim_less(t, a, b), more = dim_less(t, b, a);
  if (less == 1 || more == 0)
    return kind == ATOM_MIN ? a : b;
  if (more == 1 || less == 0)
    return kind == ATOM_MIN ? b : a;
  return atom_dim(t, kind, a < b ? a : b, a < b ? b : a);
}
dim dim_min(struct dim_table *t, dim a, dim b) { return min_max(t, ATOM_MIN, a, b); }
dim dim_max(struct dim_table *t, dim a, dim b) { return min_max(t, ATOM_MAX, a, b); }

/* ---- comparing ---- */

static void sum_bounds(struct dim_table *t, dim d, bool *has_low, int64_t *low, bool *has_high, int64_t *high);

static int64_t floordiv_low(struct dim_table *t, struct atom a) {
  bool has_low, has_high;
  int64_t low, high, divisor;
  sum_bounds(t, a.a, &has_low, &low, &has_high, &high);
  if (!has_low || low < 0)
    return -1;
  if (dim_is_const(t, a.b, &divisor))
    return divisor > 0 ? low / divisor : -1;
  return dim_less(t, dim_const(t, 0), a.b) == 1 ? 0 : -1;
}

static int64_t atom_low_find(struct dim_table *t, struct atom a) {
  dim zero = dim_const(t, 0);
  int64_t v;
  switch (a.kind) {
  case ATOM_SYMBOL: return 0;
  case ATOM_MOD: return dim_less(t, zero, a.b) == 1 ? 0 : -1;
  case ATOM_FLOORDIV: return floordiv_low(t, a);
  case ATOM_MIN: return dim_less(t, a.a, zero) == 0 && dim_less(t, a.b, zero) == 0 ? 0 : -1;
  default:
    if (dim_is_const(t, a.a, &v) || dim_is_const(t, a.b, &v))
      return v > 0 ? v : -1;
    return dim_less(t, a.a, zero) == 0 || dim_less(t, a.b, zero) == 0 ? 0 : -1;
  }
}

/* The least value an atom can have when that is known to be >= 0: then 0 or more; else -1. */
static int64_t atom_low(struct dim_table *t, uint32_t index) {
  if (!t->atoms.items[index].has_low) {
    int64_t low = atom_low_find(t, t->atoms.items[index]);
    t->atoms.items[index].low = low;
    t->atoms.items[index].has_low = true;
  }
  return t->atoms.items[index].low;
}

/* The sign of a sum from the bounds of its atoms: sets *low (the least value) when all terms but the constant are known to
 * be >= 0, and *high when all are <= 0. */
static void sum_bounds(struct dim_table *t, dim d, bool *has_low, int64_t *low, bool *has_high, int64_t *high) {
  const struct sum s = t->sums.items[d];
  *has_low = *has_high = true;
  *low = *high = 0;
  for (uint32_t i = 0; i < s.count; i++) {
    int64_t least = 1;
    for (uint32_t j = 0; j < s.terms[i].count && least >= 0; j++) {
      int64_t l = atom_low(t, s.terms[i].atoms[j]);
      least = l < 0 || __builtin_mul_overflow(least, l, &least) ? -1 : least;
    }
    int64_t c = s.terms[i].coefficient;
    bool constant = s.terms[i].count == 0;
    int64_t edge; /* the term's least value, or with a negative coefficient its greatest */
    if (least < 0 || __builtin_mul_overflow(c, least, &edge)) {
      *has_low = *has_high = false;
      continue;
    }
    if ((c > 0 || constant) && __builtin_add_overflow(*low, edge, low))
      *has_low = false;
    if ((c < 0 || constant) && __builtin_add_overflow(*high, edge, high))
      *has_high = false;
    if (!constant)
      *(c > 0 ? has_high : has_low) = false;
  }
}

int dim_less(struct dim_table *t, dim a, dim b) {
  bool has_low, has_high;
  int64_t low, high;
  sum_bounds(t, dim_sub(t, b, a), &has_low, &low, &has_high, &high);
  if (has_low && low > 0)
    return 1;
  return has_high && high <= 0 ? 0 : -1;
}

int dim_equal(struct dim_table *t, dim a, dim b) {
  dim d = dim_sub(t, a, b);
  int64_t v;
  if (dim_is_const(t, d, &v))
    return v == 0;
  bool has_low, has_high;
  int64_t low, high;
  sum_bounds(t, d, &has_low, &low, &has_high, &high);
  return (has_low && low > 0) || (has_high && high < 0) ? 0 : -1;
}

/* ---- unification ---- */

/* What a symbol is by `symbols`; NULL: by what it has been unified with. NO_DIM: itself. */
static dim symbol_for(const struct dim_table *t, uint32_t symbol, const dim *symbols) {
  return symbols ? symbols[symbol] : t->symbols.items[symbol].stands_for;
}

static dim rebuild(struct dim_table *t, dim d, const dim *symbols);

static dim rebuild_atom(struct dim_table *t, uint32_t index, const dim *symbols) {
  struct atom a = t->atoms.items[index];
  if (a.kind == ATOM_SYMBOL) {
    dim other = symbol_for(t, a.a, symbols);
    return other == NO_DIM ? atom_dim(t, ATOM_SYMBOL, a.a, NO_DIM) : symbols ? other : rebuild(t, other, symbols);
  }
  dim x = rebuild(t, a.a, symbols), y = rebuild(t, a.b, symbols);
  switch (a.kind) {
  case ATOM_FLOORDIV: return dim_floordiv(t, x, y);
  case ATOM_MOD: return dim_mod(t, x, y);
  case ATOM_MIN: return dim_min(t, x, y);
  default: return dim_max(t, x, y);
  }
}

static bool mentions_others(const struct dim_table *t, dim d, const dim *symbols) {
  const struct sum s = t->sums.items[d];
  for (uint32_t i = 0; i < s.count; i++)
    for (uint32_t j = 0; j < s.terms[i].count; j++) {
      struct atom a = t->atoms.items[s.terms[i].atoms[j]];
      if (a.kind == ATOM_SYMBOL ? symbol_for(t, a.a, symbols) != NO_DIM
                                : mentions_others(t, a.a, symbols) || mentions_others(t, a.b, symbols))
        return true;
    }
  return false;
}

static dim rebuild(struct dim_table *t, dim d, const dim *symbols) {
  if (!mentions_others(t, d, symbols))
    return d;
  const struct sum s = t->sums.items[d];
  dim total = dim_const(t, 0);
  for (uint32_t i = 0; i < s.count; i++) {
    dim product = dim_const(t, s.terms[i].coefficient);
    for (uint32_t j = 0; j < s.terms[i].count; j++)
      product = dim_mul(t, product, rebuild_atom(t, s.terms[i].atoms[j], symbols));
    total = dim_add(t, total, product);
  }
  return total;
}

dim dim_resolve(struct dim_table *t, dim d) { return t->unified && d != NO_DIM ? rebuild(t, d, NULL) : d; }
dim dim_replace(struct dim_table *t, dim d, const dim *symbols) { return d == NO_DIM ? d : rebuild(t, dim_resolve(t, d), symbols); }

/* Whether d has a symbol from `first` to `last`. */
static bool has_symbol(const struct dim_table *t, dim d, uint32_t first, uint32_t last) {
  const struct sum s = t->sums.items[d];
  for (uint32_t i = 0; i < s.count; i++)
    for (uint32_t j = 0; j < s.terms[i].count; j++) {
      struct atom a = t->atoms.items[s.terms[i].atoms[j]];
      if (a.kind == ATOM_SYMBOL ? a.a >= first && a.a <= last : has_symbol(t, a.a, first, last) || has_symbol(t, a.b, first, last))
        return true;
    }
  return false;
}

bool dim_has_symbol(const struct dim_table *t, dim d, uint32_t symbol) { return has_symbol(t, d, symbol, symbol); }
bool dim_has_symbol_from(const struct dim_table *t, dim d, uint32_t first) { return has_symbol(t, d, first, UINT32_MAX); }

bool dim_unify(struct dim_table *t, dim a, dim b) {
  a = dim_resolve(t, a), b = dim_resolve(t, b);
  if (a == b)
    return true;
  uint32_t sa, sb, s;
  bool is_a = dim_is_symbol(t, a, &sa), is_b = dim_is_symbol(t, b, &sb);
  if (!is_a && !is_b)
    return false;
  /* the newer of two symbols gives way, so that names stay those of the feeds */
  bool replace_a = is_a && (!is_b || sa > sb);
  s = replace_a ? sa : sb;
  dim other = replace_a ? b : a;
  if (dim_has_symbol(t, other, s))
    return false;
  vec_push(&t->assumptions, (struct dim_pair){replace_a ? a : b, other, t->reason});
  t->symbols.items[s].stands_for = other;
  t->unified++;
  return true;
}

void dim_isolate(struct dim_table *t, dim *a, dim *b) {
  dim difference = dim_sub(t, *a, *b);
  const struct sum s = t->sums.items[difference];
  const struct term *last = s.count ? &s.terms[s.count - 1] : NULL;
  bool alone = s.count == 1 || (s.count == 2 && s.terms[0].count == 0);
  if (!alone || last->count != 1 || (last->coefficient != 1 && last->coefficient != -1))
    return;
  if (t->atoms.items[last->atoms[0]].kind != ATOM_SYMBOL)
    return;
  int64_t rest = s.count == 2 ? s.terms[0].coefficient : 0;
  *a = dim_of_symbol(t, t->atoms.items[last->atoms[0]].a);
  *b = dim_const(t, last->coefficient == 1 ? -rest : rest);
}

void dims_set_reason(struct dim_table *t, const char *why) { t->reason = why; }

const char *dim_reason(const struct dim_table *t, dim symbol) {
  for (uint32_t i = 0; i < t->assumptions.count; i++)
    if (t->assumptions.items[i].a == symbol)
      return t->assumptions.items[i].why;
  return NULL;
}

/* ---- walks ---- */

void dim_symbols(struct dim_table *t, dim d, bool *seen) {
  const struct sum s = t->sums.items[d];
  for (uint32_t i = 0; i < s.count; i++)
    for (uint32_t j = 0; j < s.terms[i].count; j++) {
      struct atom a = t->atoms.items[s.terms[i].atoms[j]];
      if (a.kind == ATOM_SYMBOL) {
        seen[a.a] = true;
      } else {
        dim_symbols(t, a.a, seen);
        dim_symbols(t, a.b, seen);
      }
    }
}

static const struct {
  const char *text;
  int64_t code;
} atom_words[] = {[ATOM_FLOORDIV] = {"floordiv", PROGRAM_DIM_FLOORDIV},
                  [ATOM_MOD] = {"mod", PROGRAM_DIM_MOD},
                  [ATOM_MIN] = {"min", PROGRAM_DIM_MIN},
                  [ATOM_MAX] = {"max", PROGRAM_DIM_MAX}};

const char *dim_text(struct dim_table *t, dim d) {
  if (d == NO_DIM)
    return "?";
  const struct sum s = t->sums.items[d];
  const char *text = s.count ? "" : "0";
  for (uint32_t n = s.count; n-- > 0;) { /* the constant last */
    const struct term *term = &s.terms[n];
    const char *part = "";
    for (uint32_t j = 0; j < term->count; j++) {
      struct atom a = t->atoms.items[term->atoms[j]];
      const char *one = a.kind == ATOM_SYMBOL
                        ? t->symbols.items[a.a].name
                        : arena_printf(t->arena, "%s(%s,%s)", atom_words[a.kind].text, dim_text(t, a.a), dim_text(t, a.b));
      part = arena_printf(t->arena, "%s%s%s", part, j ? "*" : "", one);
    }
    int64_t c = term->coefficient;
    if (term->count == 0)
      part = arena_printf(t->arena, "%lld", (long long)c);
    else if (c != 1)
      part = arena_printf(t->arena, "%s*%lld", part, (long long)c);
    text = arena_printf(t->arena, "%s%s%s", text, n + 1 < s.count && c >= 0 ? "+" : "", part);
  }
  return text;
}

static void emit_raw(struct dim_table *t, dim d, struct dim_code *code) {
  const struct sum s = t->sums.items[d];
  if (s.count == 0) {
    vec_push(&code->words, PROGRAM_DIM_CONST);
    vec_push(&code->words, 0);
  }
  for (uint32_t i = 0; i < s.count; i++) {
    bool pushed = false;
    for (uint32_t j = 0; j < s.terms[i].count; j++) {
      struct atom a = t->atoms.items[s.terms[i].atoms[j]];
      if (a.kind == ATOM_SYMBOL) {
        vec_push(&code->words, PROGRAM_DIM_SYMBOL);
        vec_push(&code->words, (int64_t)a.a);
      } else {
        emit_raw(t, a.a, code);
        emit_raw(t, a.b, code);
        vec_push(&code->words, atom_words[a.kind].code);
      }
      if (pushed)
        vec_push(&code->words, PROGRAM_DIM_MUL);
      pushed = true;
    }
    if (!pushed || s.terms[i].coefficient != 1) {
      vec_push(&code->words, PROGRAM_DIM_CONST);
      vec_push(&code->words, s.terms[i].coefficient);
      if (pushed)
        vec_push(&code->words, PROGRAM_DIM_MUL);
    }
    if (i)
      vec_push(&code->words, PROGRAM_DIM_ADD);
  }
}
void dim_emit(struct dim_table *t, dim d, struct dim_code *code) {
  emit_raw(t, dim_resolve(t, d), code);
  vec_push(&code->words, PROGRAM_DIM_END);
}

static int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1)
    return (int64_t)(0 - (uint64_t)a);
  return b ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
}

int64_t dim_eval(struct dim_table *t, dim d, const int64_t *symbols) {
  const struct sum s = t->sums.items[dim_resolve(t, d)];
  int64_t total = 0;
  for (uint32_t i = 0; i < s.count; i++) {
    int64_t product = s.terms[i].coefficient;
    for (uint32_t j = 0; j < s.terms[i].count; j++) {
      struct atom a = t->atoms.items[s.terms[i].atoms[j]];
      int64_t x = a.kind == ATOM_SYMBOL ? symbols[a.a] : dim_eval(t, a.a, symbols);
      int64_t y = a.kind == ATOM_SYMBOL ? 0 : dim_eval(t, a.b, symbols);
      switch (a.kind) {
      case ATOM_SYMBOL: break;
      case ATOM_FLOORDIV: x = floor_divide(x, y); break;
      case ATOM_MOD: x = y ? x - floor_divide(x, y) * y : 0; break;
      case ATOM_MIN: x = x < y ? x : y; break;
      case ATOM_MAX: x = x > y ? x : y; break;
      }
      product = (int64_t)((uint64_t)product * (uint64_t)x);
    }
    total = (int64_t)((uint64_t)total + (uint64_t)product);
  }
  return total;
}
