/* row_case.h: for tests: the little language in which a table says how an op is exercised, and the graphs and feeds made of it.
 *
 * A form is {ops, inputs, attributes}; ops that take the same are listed together.
 *
 * Inputs, separated by spaces, groups of one argument (AddN) in parentheses, each
 *
 *     [$]SHAPE[@DTYPE][:FILL]        $: a variable (a reference or a resource, as the op wants)
 *
 * SHAPE is sizes joined by commas, `-` a scalar, `*` each rank from 0 to 5 in turn. A size is made of letters and numbers: `3`, `a`,
 * `2a+1`, `ab`. The letters a .. f take awkward values: 0, 1, 3, 7, 17, 33, 65, 130. FILL:
 *
 *     (nothing)      numbers of both signs, zeros, NaN and infinities among them; the op is computed from their negation, which can be
 * fused
 *     r              the same without NaN and infinities; `pos`: 0.1 to 2; `big`: -100 to 100
 *     =1,-2,a        these numbers: a constant where no letter is in it or sizes are known, else fed; words for strings
 *     LO..HI[/FLAGS] numbers from LO to below HI; s sorted; u sorted and distinct; p a permutation of LO, LO+1 ...; e the first is LO, the
 * last HI-1
 *     coo(a,b)       distinct indices in order into a tensor of that shape
 *     spd            symmetric and positive definite matrices; `wc`: matrices far from singular; `low`: lower triangles
 *
 * Attributes: `name=VALUE|VALUE ...`, as TensorFlow's registry types them; lists in brackets; `T!=str,bool` leaves out types. Types that
 * are not said run through those that the registry allows. `~` in front: the op wants sizes that are known; `^`: its sums are ordered
 * otherwise where they are not. */
#ifndef TFC_TESTS_ROW_CASE_H
#define TFC_TESTS_ROW_CASE_H

#include <ctype.h>

#include "ir/graph/registry.h"
#include "tests/support/flow_runner.h"

struct row_form {
  const char *ops, *inputs, *attrs;
};

#define ROW_INPUTS 20
#define ROW_TYPES 12
#define ROW_ATTRS 16
#define ROW_LETTERS 6

enum input_kind { INPUT_FEED, INPUT_CONST, INPUT_VARIABLE };
struct row_input {
  const char *shape, *fill;
  enum dtype dtype;
  enum input_kind kind;
  bool is_resource, has_letter; /* has_letter: in the shape or the fill's numbers */
};
struct row_case {
  const struct op_def *def;
  struct arena *arena;
  struct {
    const char *name;
    enum dtype dtype;
  } types[ROW_TYPES];
  struct {
    const struct op_attr *attr;
    const char *text;
  } attrs[ROW_ATTRS];
  struct row_input inputs[ROW_INPUTS];
  uint32_t type_count, attr_count, input_count;
};

static const enum dtype row_dtypes[] = {DTYPE_FLOAT, DTYPE_DOUBLE,    DTYPE_HALF,       DTYPE_BFLOAT16, DTYPE_INT32,  DTYPE_INT64,
                                        DTYPE_INT8,  DTYPE_UINT8,     DTYPE_INT16,      DTYPE_UINT16,   DTYPE_UINT32, DTYPE_UINT64,
                                        DTYPE_BOOL,  DTYPE_COMPLEX64, DTYPE_COMPLEX128, DTYPE_STRING};
#define ROW_DTYPES (sizeof row_dtypes / sizeof row_dtypes[0])

/* ---- words ---- */

/* The next word of a list, or NULL; `at` moves on. */
static inline const char *row_word(struct arena *arena, const char **at, char separator) {
  while (**at == separator && separator == ' ')
    (*at)++;
  if (!**at)
    return NULL;
  const char *start = *at;
  int depth = 0;
  while (**at && (**at != separator || depth)) {
    depth += **at == '[' || **at == '(' ? 1 : **at == ']' || **at == ')' ? -1 : 0;
    (*at)++;
  }
  const char *word = arena_strndup(arena, start, (size_t)(*at - start));
  if (**at)
    (*at)++;
  return word;
}

static inline int64_t row_product(const char **at, const int64_t *sizes) {
  int64_t value = 1, sign = 1;
  if (**at == '-') {
    sign = -1;
    (*at)++;
  }
  while (isdigit((unsigned char)**at) || (**at >= 'a' && **at < 'a' + ROW_LETTERS))
    if (isdigit((unsigned char)**at))
      value *= strtoll(*at, (char **)at, 10);
    else
      value *= sizes[*(*at)++ - 'a'];
  if (**at == '/' && isdigit((unsigned char)(*at)[1])) {
    (*at)++;
    value /= strtoll(*at, (char **)at, 10);
  }
  return sign * value;
}
static inline int64_t row_number_at(const char **at, const int64_t *sizes) {
  int64_t value = row_product(at, sizes);
  while (**at == '+' || **at == '-') {
    bool minus = **at == '-';
    if (!minus)
      (*at)++;
    value += row_product(at, sizes);
  }
  return value;
}
static inline int64_t row_number(const char *text, const int64_t *sizes) { return row_number_at(&text, sizes); }
static inline bool row_has_letter(const char *text) {
  for (; *text && *text != '/'; text++)
    if (*text >= 'a' && *text < 'a' + ROW_LETTERS)
      return true;
  return false;
}

static inline int row_shape(struct arena *arena, const char *shape, const int64_t *sizes, int64_t *dims) {
  int rank = 0;
  const char *word, *at = shape;
  if (strcmp(shape, "-") == 0)
    return 0;
  while ((word = row_word(arena, &at, ',')))
    dims[rank++] = row_number(word, sizes);
  return rank;
}

/* ---- cases of a form ---- */

static inline enum dtype row_type(const struct row_case *c, const char *name) {
  for (uint32_t i = 0; i < c->type_count; i++)
    if (strcmp(c->types[i].name, name) == 0)
      return c->types[i].dtype;
  for (uint32_t i = 0; i < c->attr_count; i++) {
    enum dtype dtype;
    if (strcmp(c->attrs[i].attr->name, name) == 0 && dtype_from_name(c->attrs[i].text, &dtype))
      return dtype;
  }
  return DTYPE_INVALID;
}
static inline void row_set_type(struct row_case *c, const char *name, enum dtype dtype) {
  for (uint32_t i = 0; i < c->type_count; i++)
    if (strcmp(c->types[i].name, name) == 0) {
      c->types[i].dtype = dtype;
      return;
    }
}

static inline const struct op_attr *row_attr(const struct op_def *def, const char *name) {
  for (uint32_t i = 0; i < def->attr_count; i++)
    if (strcmp(def->attrs[i].name, name) == 0)
      return &def->attrs[i];
  fprintf(stderr, "%s has no attribute %s\n", def->name, name);
  exit(2);
}

/* The types that an attribute may be, but those of the comma-separated list `without`. */
static inline uint32_t row_type_list(const struct op_attr *attr, const char *without, struct arena *arena, enum dtype *out) {
  uint32_t count = 0;
  for (size_t i = 0; i < ROW_DTYPES; i++) {
    bool allowed = !attr->allowed || strchr((const char *)attr->allowed, row_dtypes[i]);
    const char *word, *at = without ? without : "";
    while ((word = row_word(arena, &at, ',')))
      allowed = allowed && strcmp(word, dtype_short(row_dtypes[i])) != 0;
    if (allowed)
      out[count++] = row_dtypes[i];
  }
  return count;
}

/* What is said of an attribute in the form: its alternatives; NULL: nothing. `without`: of a type, what is left out. */
static inline const char *row_said(struct arena *arena, const char *attrs, const char *name, const char **without) {
  const char *word, *at = attrs, *said = NULL;
  while ((word = row_word(arena, &at, ' '))) {
    size_t n = strlen(name);
    if (strncmp(word, name, n) == 0 && word[n] == '=')
      said = word + n + 1;
    if (without && strncmp(word, name, n) == 0 && strncmp(word + n, "!=", 2) == 0)
      *without = word + n + 2;
  }
  return said;
}

static inline uint32_t row_alternatives(const char *text) {
  uint32_t n = 1;
  for (; *text; text++)
    n += *text == '|';
  return n;
}
static inline const char *row_alternative(struct arena *arena, const char *text, uint32_t index) {
  const char *word = text, *at = text;
  for (uint32_t i = 0; i <= index; i++)
    word = row_word(arena, &at, '|');
  return word;
}

/* Attributes: all at their first alternative, but one in turn. */
static inline uint32_t row_attr_variants(struct arena *arena, const char *attrs) {
  uint32_t n = 1;
  const char *word, *at = attrs;
  while ((word = row_word(arena, &at, ' ')))
    n += strstr(word, "!=") ? 0 : row_alternatives(word) - 1;
  return n;
}

static inline void row_choose_attrs(struct row_case *c, const char *attrs, uint32_t variant) {
  const char *word, *at = attrs;
  while ((word = row_word(c->arena, &at, ' '))) {
    const char *equals = strchr(word, '=');
    if (!equals || equals == word || equals[-1] == '!')
      continue;
    uint32_t more = row_alternatives(equals + 1) - 1, pick = variant >= 1 && variant <= more ? variant : 0;
    variant = variant > more ? variant - more : 0;
    c->attrs[c->attr_count].attr = row_attr(c->def, arena_strndup(c->arena, word, (size_t)(equals - word)));
    c->attrs[c->attr_count++].text = row_alternative(c->arena, equals + 1, pick);
  }
}

/* Types that the form does not say: number `turn` of those allowed. Returns how many turns there are. */
static inline uint32_t row_choose_types(struct row_case *c, const char *attrs, uint32_t turn) {
  uint32_t turns = 1;
  for (uint32_t i = 0; i < c->def->attr_count; i++) {
    const struct op_attr *attr = &c->def->attrs[i];
    const char *without = NULL;
    enum dtype list[ROW_DTYPES];
    if (strcmp(attr->type, "type") != 0 || row_said(c->arena, attrs, attr->name, &without))
      continue;
    uint32_t n = row_type_list(attr, without, c->arena, list);
    if (!n)
      continue;
    c->types[c->type_count].name = attr->name;
    c->types[c->type_count++].dtype = list[turn % n];
    turns = n > turns ? n : turns;
  }
  return turns;
}

static inline const char *row_expand_shape(struct arena *arena, const char *inputs, uint32_t variant) {
  static const char *const ranks[] = {"a,b", "a", "-", "a,3,b", "2,a,1,b", "a,1,2,b,3"};
  const char *text = arena_strdup(arena, "");
  for (; *inputs; inputs++)
    text = *inputs == '*' ? arena_printf(arena, "%s%s", text, ranks[variant % 6]) : arena_printf(arena, "%s%c", text, *inputs);
  return text;
}

static inline void row_add_input(struct row_case *c, const struct op_arg *arg, const char *token) {
  struct row_input in = {.fill = ""};
  const char *colon = strchr(token, ':');
  if (colon) {
    in.fill = colon + 1;
    token = arena_strndup(c->arena, token, (size_t)(colon - token));
  }
  bool is_variable = *token == '$';
  token += is_variable;
  const char *at = strchr(token, '@');
  enum dtype said = DTYPE_INVALID;
  if (at) {
    if (!dtype_from_name(at + 1, &said)) {
      fprintf(stderr, "%s: no dtype %s\n", c->def->name, at + 1);
      exit(2);
    }
    token = arena_strndup(c->arena, token, (size_t)(at - token));
  }
  in.shape = token;
  in.is_resource = arg->dtype == DTYPE_RESOURCE;
  const char *type = arg->type_attr ? arg->type_attr : in.is_resource ? (row_type(c, "T") ? "T" : "dtype") : NULL;
  if (said && type)
    row_set_type(c, type, said);
  in.dtype = said ? said : type ? row_type(c, type) : (enum dtype)arg->dtype;
  if (!in.dtype)
    in.dtype = DTYPE_FLOAT;
  in.has_letter = *in.fill == '=' && (row_has_letter(in.shape) || (row_has_letter(in.fill + 1) && in.dtype != DTYPE_STRING));
  in.kind = is_variable ? INPUT_VARIABLE : *in.fill == '=' ? INPUT_CONST : INPUT_FEED;
  c->inputs[c->input_count++] = in;
}

/* Case number i of a form: its types, attributes and rank. Returns how many cases the form has. `first`: of the op's forms: it goes
 * through all types; the others through a few. */
static inline uint32_t row_case_make(struct row_case *c, const struct op_def *def, const struct row_form *form, uint32_t i,
                                     uint32_t form_number, struct arena *arena) {
  const char *attrs = form->attrs + (*form->attrs == '~' || *form->attrs == '^');
  *c = (struct row_case){.def = def, .arena = arena};
  uint32_t shapes = strchr(form->inputs, '*') ? 6 : 1, variants = row_attr_variants(arena, attrs);
  row_choose_attrs(c, attrs, i % variants);
  uint32_t turns = row_choose_types(c, attrs, form_number ? i + form_number * 3 - 1 : i);
  turns = form_number && turns > 2 ? 2 : turns;
  for (int pass = 0; pass < 2; pass++) { /* dtypes said of a later input hold for an earlier one too */
    const char *at = row_expand_shape(arena, form->inputs, i % shapes), *word;
    c->input_count = 0;
    for (uint32_t k = 0; k < def->input_count; k++) {
      if (!(word = row_word(arena, &at, ' '))) {
        fprintf(stderr, "%s: the form '%s' has too few inputs\n", def->name, form->inputs);
        exit(2);
      }
      const char *inner = *word == '(' ? arena_strndup(arena, word + 1, strlen(word) - 2) : NULL, *one;
      if (!inner)
        row_add_input(c, &def->inputs[k], word);
      while (inner && (one = row_word(arena, &inner, ' ')))
        row_add_input(c, &def->inputs[k], one);
      if (op_arg_is_list(&def->inputs[k])) {
        if (!inner) {
          fprintf(stderr, "%s: input %u of the form '%s' is a list\n", def->name, k, form->inputs);
          exit(2);
        }
      }
    }
  }
  return shapes > variants ? (shapes > turns ? shapes : turns) : variants > turns ? variants : turns;
}

/* ---- contents ---- */

static inline void row_put(enum dtype dtype, void *data, int64_t i, double value) {
  switch (dtype) {
  case DTYPE_COMPLEX64: ((float *)data)[2 * i] = (float)value, ((float *)data)[2 * i + 1] = 0; return;
  case DTYPE_COMPLEX128: ((double *)data)[2 * i] = value, ((double *)data)[2 * i + 1] = 0; return;
  case DTYPE_FLOAT: ((float *)data)[i] = (float)value; return;
  case DTYPE_DOUBLE: ((double *)data)[i] = value; return;
  case DTYPE_HALF: ((uint16_t *)data)[i] = float_to_half((float)value); return;
  case DTYPE_BFLOAT16: ((uint16_t *)data)[i] = float_to_bfloat16((float)value); return;
  default: {
    int64_t bits = dtype == DTYPE_BOOL ? value != 0 : (int64_t)value;
    memcpy((char *)data + (size_t)i * dtype_size(dtype), &bits, dtype_size(dtype));
  }
  }
}

static inline double row_unit(struct sequence *s) { return (double)(next_random(s) % 100000) / 100000; }

/* Numbers from low to below high; false when there are none to choose from, or too few distinct ones. */
static inline bool row_fill_range(const struct row_input *in, void *data, int64_t count, const int64_t *sizes, struct sequence *s) {
  const char *at = in->fill, *flags;
  int64_t low = row_number_at(&at, sizes);
  at += 2;
  int64_t high = row_number_at(&at, sizes);
  flags = *at == '/' ? at + 1 : "";
  bool sorted = strchr(flags, 's'), distinct = strchr(flags, 'u'), permuted = strchr(flags, 'p');
  if (count && (high <= low || ((distinct || permuted) && high - low < count)))
    return false;
  double *values = calloc((size_t)count + 1, sizeof *values);
  for (int64_t i = 0; i < count; i++) {
    values[i] = dtype_is_float(in->dtype) && !sorted ? (double)low + row_unit(s) * (double)(high - low)
                                                     : (double)(low + (int64_t)(next_random(s) % (uint64_t)(high - low)));
    if (sorted) /* evenly, with repetitions and gaps */
      values[i] = (double)(low + (high - low) * i / count);
    if (distinct)
      values[i] = (double)(low + (high - low) * i / count);
    if (permuted)
      values[i] = (double)(low + i);
  }
  for (int64_t i = count - 1; i > 0 && permuted; i--) {
    int64_t j = (int64_t)(next_random(s) % (uint64_t)(i + 1));
    double t = values[i];
    values[i] = values[j], values[j] = t;
  }
  if (strchr(flags, 'e') && count)
    values[0] = (double)low, values[count - 1] = (double)(high - 1);
  for (int64_t i = 0; i < count; i++)
    row_put(in->dtype, data, i, values[i]);
  free(values);
  return !(strchr(flags, 'e') && count == 1 && high - 1 != low);
}

static inline bool row_fill_coo(struct arena *arena, const struct row_input *in, void *data, const int64_t *dims, const int64_t *sizes) {
  int64_t shape[LIMIT_RANK], total = 1;
  const char *end = strchr(in->fill, ')');
  int rank = row_shape(arena, arena_strndup(arena, in->fill + 4, (size_t)(end - in->fill - 4)), sizes, shape);
  for (int d = 0; d < rank; d++)
    total *= shape[d];
  if (dims[0] > total)
    return false;
  for (int64_t i = 0; i < dims[0]; i++) {
    int64_t flat = i * total / dims[0];
    for (int d = rank - 1; d >= 0; d--) {
      row_put(in->dtype, data, i * rank + d, (double)(flat % shape[d]));
      flat /= shape[d];
    }
  }
  return true;
}

/* Square matrices that behave: `spd`, `wc`, `low`. Complex ones are Hermitian where spd. */
static inline void row_fill_matrix(const struct row_input *in, void *data, int rank, const int64_t *dims, struct sequence *s) {
  int64_t n = dims[rank - 1], batch = 1;
  for (int d = 0; d < rank - 2; d++)
    batch *= dims[d];
  for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        double v = row_unit(s) - 0.5, diagonal = (double)n + 1;
        if (strcmp(in->fill, "spd") == 0) /* symmetric by formula, so that both halves are the same */
          v = cos((double)((i + 1) * (j + 1) + b)) / 2;
        if (strcmp(in->fill, "low") == 0 && j > i)
          v = 0;
        row_put(in->dtype, data, (b * n + i) * n + j, i == j ? diagonal + v : v);
      }
}

static inline void row_fill_data(const struct row_input *in, void *data, int64_t count, bool specials, struct sequence *s) {
  static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0, 1e-30, 1, -1};
  fill_random(in->dtype, data, count, s);
  for (int64_t i = 0; i < count && specials && dtype_is_float(dtype_real(in->dtype)); i++)
    if (next_random(s) % 16 == 0)
      row_put(in->dtype, data, i, special[next_random(s) % 8]);
  for (int64_t i = 0; i < count && (strcmp(in->fill, "pos") == 0 || strcmp(in->fill, "big") == 0); i++)
    row_put(in->dtype, data, i, *in->fill == 'p' ? 0.1 + 1.9 * row_unit(s) : 200 * row_unit(s) - 100);
}

static inline void row_fill_list(struct arena *arena, const struct row_input *in, void *data, int64_t count, const int64_t *sizes) {
  const char *at = in->fill + 1, *word = NULL, *last = "0";
  for (int64_t i = 0; i < count; i++) { /* the last number is repeated */
    if ((word = row_word(arena, &at, ',')))
      last = word;
    if (in->dtype == DTYPE_STRING)
      ((struct string_view *)data)[i] = (struct string_view){last, strlen(last)};
    else
      row_put(in->dtype, data, i, strchr(last, '.') || strchr(last, 'n') ? strtod(last, NULL) : (double)row_number(last, sizes));
  }
}

/* The tensor of input `number` for these sizes; the same for the same arguments. False: no such numbers exist. */
static inline bool row_input_make(const struct row_case *c, uint32_t number, const int64_t *sizes, bool specials, struct flow_tensor *out) {
  const struct row_input *in = &c->inputs[number];
  struct sequence s = {number * 7919u + (uint64_t)sizes[0] * 31u + (uint64_t)sizes[1] + 5u};
  *out = (struct flow_tensor){.dtype = in->dtype};
  out->rank = row_shape(c->arena, in->shape, sizes, out->dims);
  int64_t count = 1;
  for (int d = 0; d < out->rank; d++) {
    if (out->dims[d] < 0)
      return false;
    count *= out->dims[d];
  }
  out->data = aligned_block((size_t)count * dtype_size(in->dtype));
  if (*in->fill == '=')
    row_fill_list(c->arena, in, out->data, count, sizes);
  else if (strstr(in->fill, ".."))
    return row_fill_range(in, out->data, count, sizes, &s);
  else if (strncmp(in->fill, "coo(", 4) == 0)
    return row_fill_coo(c->arena, in, out->data, out->dims, sizes);
  else if (strcmp(in->fill, "spd") == 0 || strcmp(in->fill, "wc") == 0 || strcmp(in->fill, "low") == 0)
    row_fill_matrix(in, out->data, out->rank, out->dims, &s);
  else
    row_fill_data(in, out->data, count, specials && !*in->fill, &s);
  return true;
}

/* ---- graphs in protobuf's text form ---- */

static inline const char *row_attr_text(struct arena *arena, const char *type, const char *text) {
  enum dtype dtype = DTYPE_INVALID;
  if (strncmp(type, "list(", 5) == 0) {
    const char *items = arena_strdup(arena, ""), *inner = arena_strndup(arena, text + 1, strlen(text) - 2), *word;
    const char *element = arena_strndup(arena, type + 5, strlen(type) - 6);
    while ((word = row_word(arena, &inner, ',')))
      items = arena_printf(arena, "%s%s ", items, row_attr_text(arena, element, word));
    return arena_printf(arena, "list { %s}", items);
  }
  if (strcmp(type, "type") == 0 && dtype_from_name(text, &dtype))
    return arena_printf(arena, "type: %d", (int)dtype);
  if (strcmp(type, "string") == 0)
    return arena_printf(arena, "s: '%s'", text);
  if (strcmp(type, "shape") == 0) {
    const char *dims = arena_strdup(arena, ""), *inner = arena_strndup(arena, text + 1, strlen(text) - 2), *word;
    while ((word = row_word(arena, &inner, ',')))
      dims = arena_printf(arena, "%sdim { size: %s } ", dims, word);
    return arena_printf(arena, "shape { %s}", dims);
  }
  return arena_printf(arena, "%s: %s", strcmp(type, "bool") == 0 ? "b" : *type == 'f' ? "f" : "i", text);
}

/* The op that is its own inverse and loses nothing, for what is fused before and behind; NULL when the dtype has none. */
static inline const char *row_wrapper(enum dtype dtype) {
  if (dtype == DTYPE_BOOL)
    return "LogicalNot";
  if (dtype >= DTYPE_QINT8 && dtype <= DTYPE_QUINT16 && dtype != DTYPE_BFLOAT16)
    return NULL;
  if (dtype_is_unsigned(dtype))
    return "Invert";
  return dtype_is_float(dtype) || dtype_is_complex(dtype) || dtype_is_signed(dtype) ? "Neg" : NULL;
}

/* Whether the input is a constant of the graph in this form. */
static inline bool row_is_const(const struct row_input *in, bool fixed) { return in->kind == INPUT_CONST && (fixed || !in->has_letter); }

static inline const char *row_shape_text(const struct row_case *c, const struct row_input *in, bool fixed, const int64_t *sizes) {
  const char *text = arena_strdup(c->arena, ""), *at = in->shape, *word;
  while (strcmp(in->shape, "-") != 0 && (word = row_word(c->arena, &at, ',')))
    text =
      arena_printf(c->arena, "%sdim { size: %lld } ", text, fixed || !row_has_letter(word) ? (long long)row_number(word, sizes) : -1LL);
  return text;
}

static inline const char *row_const_text(const struct row_case *c, uint32_t number, const int64_t *sizes) {
  const struct row_input *in = &c->inputs[number];
  struct flow_tensor t;
  const char *content = arena_strdup(c->arena, "");
  if (!row_input_make(c, number, sizes, false, &t))
    return NULL;
  const char *bytes = t.data;
  int64_t count = flow_tensor_count(&t);
  if (in->dtype == DTYPE_STRING) {
    for (int64_t i = 0; i < count; i++)
      content = arena_printf(c->arena, "%sstring_val: '%s' ", content, ((struct string_view *)t.data)[i].data);
  } else {
    char *octal = arena_alloc(c->arena, (size_t)count * dtype_size(in->dtype) * 4 + 1);
    *octal = 0;
    for (size_t i = 0; i < (size_t)count * dtype_size(in->dtype); i++)
      sprintf(octal + 4 * i, "\\%03o", (unsigned)(unsigned char)bytes[i]);
    content = arena_printf(c->arena, "tensor_content: \"%s\"", octal);
  }
  free(t.data);
  return arena_printf(c->arena, "tensor { dtype: %d tensor_shape { %s} %s }", (int)in->dtype, row_shape_text(c, in, true, sizes), content);
}

/* The node or nodes that make input i; *name: the tensor that the op takes. */
static inline const char *row_input_text(const struct row_case *c, uint32_t i, bool fixed, const int64_t *sizes, const char **name) {
  const struct row_input *in = &c->inputs[i];
  const char *shape = row_shape_text(c, in, fixed, sizes), *wrapper = *in->fill ? NULL : row_wrapper(in->dtype);
  *name = arena_printf(c->arena, "in%u", i);
  if (in->kind == INPUT_VARIABLE)
    return arena_printf(
      c->arena, "node { name: 'in%u' op: '%s' attr { key: 'dtype' value { type: %d } } attr { key: 'shape' value { shape { %s} } } }\n", i,
      in->is_resource ? "VarHandleOp" : "VariableV2", (int)in->dtype, shape);
  if (row_is_const(in, fixed)) {
    const char *value = row_const_text(c, i, sizes);
    return value
           ? arena_printf(c->arena,
                          "node { name: 'in%u' op: 'Const' attr { key: 'dtype' value { type: %d } } attr { key: 'value' value { %s } } }\n",
                          i, (int)in->dtype, value)
           : NULL;
  }
  const char *text = arena_printf(
    c->arena,
    "node { name: 'in%u' op: 'Placeholder' attr { key: 'dtype' value { type: %d } } attr { key: 'shape' value { shape { %s} } } }\n", i,
    (int)in->dtype, shape);
  if (!wrapper || in->kind == INPUT_CONST)
    return text;
  *name = arena_printf(c->arena, "not%u", i);
  const char *type = in->dtype == DTYPE_BOOL ? "" : arena_printf(c->arena, "attr { key: 'T' value { type: %d } }", (int)in->dtype);
  return arena_printf(c->arena, "%snode { name: 'not%u' op: '%s' input: 'in%u' %s}\n", text, i, wrapper, i, type);
}

/* The attributes of the op's node; numbers of inputs and lists of their types follow from the inputs. */
static inline const char *row_attrs_text(const struct row_case *c) {
  const char *text = arena_strdup(c->arena, "");
  for (uint32_t i = 0; i < c->attr_count; i++)
    text = arena_printf(c->arena, "%sattr { key: '%s' value { %s } } ", text, c->attrs[i].attr->name,
                        row_attr_text(c->arena, c->attrs[i].attr->type, c->attrs[i].text));
  for (uint32_t i = 0; i < c->type_count; i++)
    text = arena_printf(c->arena, "%sattr { key: '%s' value { type: %d } } ", text, c->types[i].name, (int)c->types[i].dtype);
  uint32_t lists = 0;
  for (uint32_t i = 0; i < c->def->input_count; i++)
    lists += op_arg_is_list(&c->def->inputs[i]);
  for (uint32_t i = 0, at = 0; i < c->def->input_count; i++) {
    const struct op_arg *arg = &c->def->inputs[i];
    uint32_t n = op_arg_is_list(arg) ? (c->input_count - (c->def->input_count - lists)) / lists : 1;
    bool said = false;
    for (uint32_t k = 0; k < c->attr_count; k++)
      said = said || (arg->number_attr && strcmp(c->attrs[k].attr->name, arg->number_attr) == 0);
    if (arg->number_attr && !said && !strstr(text, arena_printf(c->arena, "'%s'", arg->number_attr)))
      text = arena_printf(c->arena, "%sattr { key: '%s' value { i: %u } } ", text, arg->number_attr, n);
    if (arg->list_attr && !strstr(text, arena_printf(c->arena, "'%s'", arg->list_attr))) {
      text = arena_printf(c->arena, "%sattr { key: '%s' value { list { ", text, arg->list_attr);
      for (uint32_t k = 0; k < n; k++)
        text = arena_printf(c->arena, "%stype: %d ", text, (int)c->inputs[at + k].dtype);
      text = arena_printf(c->arena, "%s} } } ", text);
    }
    at += n;
  }
  return text;
}

/* The graph: inputs and node `y`; then, where the dtypes of y's outputs are said, nodes `out0` ... around them where something can be
 * fused behind. NULL: no such constants exist. */
static inline const char *row_graph_text(const struct row_case *c, bool fixed, const int64_t *sizes, const uint8_t *types,
                                         uint32_t type_count) {
  const char *text = arena_strdup(c->arena, ""), *inputs = text;
  for (uint32_t i = 0; i < c->input_count; i++) {
    const char *name, *nodes = row_input_text(c, i, fixed, sizes, &name);
    if (!nodes)
      return NULL;
    text = arena_printf(c->arena, "%s%s", text, nodes);
    inputs = arena_printf(c->arena, "%sinput: '%s' ", inputs, name);
  }
  text = arena_printf(c->arena, "%snode { name: 'y' op: '%s' %s%s}\n", text, c->def->name, inputs, row_attrs_text(c));
  for (uint32_t i = 0; i < type_count; i++)
    if (types[i] < DTYPE_REF && row_wrapper((enum dtype)types[i])) {
      const char *type = types[i] == DTYPE_BOOL ? "" : arena_printf(c->arena, "attr { key: 'T' value { type: %d } }", types[i]);
      text =
        arena_printf(c->arena, "%snode { name: 'out%u' op: '%s' input: 'y:%u' %s}\n", text, i, row_wrapper((enum dtype)types[i]), i, type);
    }
  return text;
}

#endif
