/* kernel_parse_expr.c: the words of the text form of kernels, and its expressions. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel_parse.h"

status parser_wrong(struct parser *p, const char *what) {
  int line = 1, column = 1;
  for (const char *c = p->start; c < p->at; c++) {
    column = *c == '\n' ? 1 : column + 1;
    line += *c == '\n';
  }
  return fail(INVALID_ARGUMENT, "line %d, column %d: %s", line, column, what);
}

/* ---- words ---- */

void parser_skip(struct parser *p) {
  while (isspace((unsigned char)*p->at))
    p->at++;
}
bool parser_accept(struct parser *p, const char *token) {
  parser_skip(p);
  size_t n = strlen(token);
  if (strncmp(p->at, token, n) != 0)
    return false;
  if (isalpha((unsigned char)token[0]) && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_'))
    return false;
  p->at += n;
  return true;
}
status parser_expect(struct parser *p, const char *token) {
  if (parser_accept(p, token))
    return OK;
  char text[64] = "expected '";
  strcat(strncat(text, token, 40), "'");
  return parser_wrong(p, text);
}
status parser_word(struct parser *p, char *out, size_t size) {
  parser_skip(p);
  size_t n = 0;
  while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
    n++;
  if (n == 0 || n >= size || isdigit((unsigned char)*p->at))
    return parser_wrong(p, "expected a name");
  memcpy(out, p->at, n);
  out[n] = 0;
  p->at += n;
  return OK;
}
status parser_number(struct parser *p, int64_t *out) {
  parser_skip(p);
  char *end;
  errno = 0;
  if (!isdigit((unsigned char)*p->at) && *p->at != '-')
    return parser_wrong(p, "expected a number");
  *out = strtoll(p->at, &end, 10);
  if (errno || end == p->at)
    return parser_wrong(p, "a number that is none or too large");
  p->at = end;
  return OK;
}
bool parser_numbered(const char *text, char letter, uint32_t *out) {
  if (text[0] != letter || !isdigit((unsigned char)text[1]) || strlen(text) > 8)
    return false;
  for (const char *c = text + 1; *c; c++)
    if (!isdigit((unsigned char)*c))
      return false;
  *out = (uint32_t)strtoul(text + 1, NULL, 10);
  return true;
}
status parser_dtype(struct parser *p, enum dtype *out) {
  char text[32];
  TRY(parser_word(p, text, sizeof text));
  return dtype_from_name(text, out) ? OK : parser_wrong(p, "expected a dtype");
}

/* ---- expressions ---- */

bool parser_find_buffer(const struct parser *p, const char *text, uint32_t *out) {
  if (text[0] >= 'a' && text[0] <= 'z' && !text[1])
    *out = (uint32_t)(text[0] - 'a');
  else if (!parser_numbered(text, 'b', out) || *out < 26)
    return false;
  return *out < p->k->buffers.count;
}

static status parse_list(struct parser *p, const char *end, expr_id *out, int *count) {
  *count = 0;
  if (parser_accept(p, end))
    return OK;
  do {
    if (*count == LIMIT_RANK)
      return parser_wrong(p, "too many operands");
    TRY(parse_expr(p, &out[(*count)++]));
  } while (parser_accept(p, ","));
  return parser_expect(p, end);
}

status parse_element(struct parser *p, uint32_t buffer, int *part, expr_id *index, int *count) {
  const struct kernel_buffer *b = &p->k->buffers.items[buffer];
  *part = 0;
  if (dtype_is_complex(b->dtype)) {
    if (parser_accept(p, ".im"))
      *part = 1;
    else
      TRY(parser_expect(p, ".re"));
  }
  TRY(parser_expect(p, "["));
  TRY(parse_list(p, "]", index, count));
  if (*count != b->rank)
    return parser_wrong(p, "the number of indices is not the buffer's rank");
  for (int i = 0; i < *count; i++)
    if (expr_get(p->k, index[i])->dtype != DTYPE_INT64)
      return parser_wrong(p, "an index is no i64");
  return OK;
}

static status parse_special(struct parser *p, bool *is_nan, uint64_t *bits, double *v) {
  bool negative = parser_accept(p, "-");
  *is_nan = false;
  if (parser_accept(p, "inf")) {
    *v = negative ? -__builtin_inf() : __builtin_inf();
    return OK;
  }
  TRY(parser_expect(p, "nan"));
  TRY(parser_expect(p, "("));
  char *end;
  *bits = strtoull(p->at, &end, 16);
  p->at = end;
  *is_nan = true;
  return parser_expect(p, ")");
}

/* 784  3:i32  1:f32  0x1.8p+1:f64  inf:f32  nan(0x7fc00000):f32 */
static status parse_literal(struct parser *p, expr_id *out) {
  parser_skip(p);
  const char *text = p->at;
  bool special = strncmp(text + (*text == '-'), "inf", 3) == 0 || strncmp(text, "nan", 3) == 0, is_nan = false;
  uint64_t bits = 0;
  double v = 0;
  if (special) {
    TRY(parse_special(p, &is_nan, &bits, &v));
  } else {
    char *end;
    v = strtod(text, &end);
    if (end == text)
      return parser_wrong(p, "expected an expression");
    p->at = end;
  }
  enum dtype dtype = DTYPE_INT64;
  if (parser_accept(p, ":"))
    TRY(parser_dtype(p, &dtype));
  if (dtype_is_float(dtype)) {
    *out = is_nan ? expr_bits(p->k, dtype, (int64_t)bits) : expr_float(p->k, dtype, v);
    return OK;
  }
  if (special || (!dtype_is_integer(dtype) && dtype_is_valid(dtype) && dtype_size(dtype) > 8) || dtype_is_complex(dtype))
    return parser_wrong(p, "no literal of this dtype");
  errno = 0;
  int64_t i = dtype == DTYPE_UINT64 ? (int64_t)strtoull(text, NULL, 10) : strtoll(text, NULL, 10);
  if (errno)
    return parser_wrong(p, "a literal that is too large");
  *out = expr_int(p->k, dtype, i);
  return OK;
}

static bool find_scalar(const char *text, enum scalar_op *out) {
  for (int op = SCALAR_LOAD + 1; op < SCALAR_OP_COUNT; op++)
    if (strcmp(scalar_text(op), text) == 0)
      return *out = op, true;
  return false;
}

static status check_dtypes(struct parser *p, enum scalar_op op, enum dtype own, const expr_id *operands, int count) {
  if (count != scalar_operands(op))
    return parser_wrong(p, "the wrong number of operands");
  enum dtype in[3] = {0};
  for (int i = 0; i < count; i++)
    in[i] = expr_get(p->k, operands[i])->dtype;
  if (op == SCALAR_SELECT)
    return in[0] == DTYPE_BOOL && in[1] == in[2] ? OK : parser_wrong(p, "select takes a bool and two alike");
  for (int i = 1; i < count; i++)
    if (in[i] != in[0])
      return parser_wrong(p, "operands of different dtypes");
  if (in[0] == DTYPE_STRING && (op < SCALAR_EQ || op > SCALAR_LE))
    return parser_wrong(p, "strings can only be compared");
  if ((op == SCALAR_CAST || op == SCALAR_BITCAST) && (own == DTYPE_STRING || dtype_is_complex(own)))
    return parser_wrong(p, "no cast to this dtype");
  if (op == SCALAR_BITCAST && dtype_size(own) != dtype_size(in[0]))
    return parser_wrong(p, "bitcast between dtypes of different size");
  return OK;
}

static status parse_call(struct parser *p, const char *text, expr_id *out) {
  enum scalar_op op;
  if (!find_scalar(text, &op))
    return parser_wrong(p, "neither an operation nor anything defined");
  enum dtype own = DTYPE_INVALID;
  if (op == SCALAR_CAST || op == SCALAR_BITCAST || op == SCALAR_POPCOUNT) {
    TRY(parser_expect(p, "."));
    TRY(parser_dtype(p, &own));
  }
  expr_id operands[LIMIT_RANK];
  int count;
  TRY(parser_expect(p, "("));
  TRY(parse_list(p, ")", operands, &count));
  TRY(check_dtypes(p, op, own, operands, count));
  *out = expr_make(p->k, op, own, operands, count);
  return OK;
}

bool parser_find_loop(const struct parser *p, const char *text, uint32_t *out) {
  for (uint32_t i = p->named.count; i-- > 0;)
    if (strcmp(p->k->locals.items[p->named.items[i]].name, text) == 0)
      return *out = p->named.items[i], true;
  return false;
}

static status parse_name(struct parser *p, expr_id *out) {
  struct kernel *k = p->k;
  char text[32];
  uint32_t n;
  expr_id index[LIMIT_RANK];
  int part, count;
  TRY(parser_word(p, text, sizeof text));
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    *out = expr_int(k, DTYPE_BOOL, text[0] == 't');
    return OK;
  }
  if (parser_numbered(text, 'n', &n)) {
    if (n >= k->size_count)
      return parser_wrong(p, "a size that does not exist");
    *out = expr_size(k, n);
    return OK;
  }
  bool is_loop = parser_numbered(text, 'i', &n);
  if (is_loop || parser_numbered(text, 'v', &n)) {
    uint32_t known = is_loop ? p->loops.count : p->vars.count;
    uint32_t local = n < known ? (is_loop ? p->loops.items[n] : p->vars.items[n]) : UINT32_MAX;
    if (local == UINT32_MAX)
      return parser_wrong(p, "a local that is not alive here");
    *out = expr_local(k, local);
    return OK;
  }
  bool is_local = *p->at != '[' && *p->at != '.' && *p->at != '(';
  if (is_local && parser_find_loop(p, text, &n)) {
    *out = expr_local(k, n);
    return OK;
  }
  if (!parser_find_buffer(p, text, &n) || (*p->at != '[' && *p->at != '.'))
    return parse_call(p, text, out);
  TRY(parse_element(p, n, &part, index, &count));
  *out = expr_load(k, n, part, index, count);
  return OK;
}

status parse_expr(struct parser *p, expr_id *out) {
  if (p->depth >= DEPTH_LIMIT)
    return parser_wrong(p, "nested too deep");
  p->depth++;
  parser_skip(p);
  if (*p->at == '%') {
    int64_t n;
    p->at++;
    TRY(parser_number(p, &n));
    if (n < 0 || n >= p->shared.count)
      return parser_wrong(p, "a shared expression that is not defined");
    *out = p->shared.items[n];
  } else if (parser_accept(p, "\"\":str")) {
    *out = expr_bits(p->k, DTYPE_STRING, 0);
  } else if (isalpha((unsigned char)*p->at) && strncmp(p->at, "nan(", 4) != 0 && strncmp(p->at, "inf:", 4) != 0) {
    TRY(parse_name(p, out));
  } else {
    TRY(parse_literal(p, out));
  }
  p->depth--;
  return OK;
}
status parse_typed(struct parser *p, enum dtype dtype, expr_id *out) {
  TRY(parse_expr(p, out));
  return expr_get(p->k, *out)->dtype == dtype ? OK : parser_wrong(p, "an expression of another dtype than is needed here");
}
