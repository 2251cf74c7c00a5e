/* kernel_parse.c: reads the text form of kernels (kernel_print.c). Text comes from tests and users: every mistake is an
 * INVALID_ARGUMENT with line and column. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel.h"

#define DEPTH_LIMIT 100
#define COUNT_LIMIT 100000 /* of buffers, sizes, shared expressions */

struct parser {
  const char *start, *at;
  struct kernel *k;
  VEC(uint32_t) loops, vars; /* number in the text -> local; UINT32_MAX where out of scope */
  VEC(uint32_t) named;       /* the locals of the loops with names that are open here, outermost first */
  VEC(expr_id) shared;       /* %N */
  int depth;
};

static status wrong(struct parser *p, const char *what) {
  int line = 1, column = 1;
  for (const char *c = p->start; c < p->at; c++) {
    column = *c == '\n' ? 1 : column + 1;
    line += *c == '\n';
  }
  return fail(INVALID_ARGUMENT, "line %d, column %d: %s", line, column, what);
}

/* ---- words ---- */

static void skip(struct parser *p) {
  while (isspace((unsigned char)*p->at))
    p->at++;
}
static bool accept(struct parser *p, const char *token) {
  skip(p);
  size_t n = strlen(token);
  if (strncmp(p->at, token, n) != 0)
    return false;
  if (isalpha((unsigned char)token[0]) && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_'))
    return false;
  p->at += n;
  return true;
}
static status expect(struct parser *p, const char *token) {
  if (accept(p, token))
    return OK;
  char text[64] = "expected '";
  strcat(strncat(text, token, 40), "'");
  return wrong(p, text);
}
static status word(struct parser *p, char *out, size_t size) {
  skip(p);
  size_t n = 0;
  while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
    n++;
  if (n == 0 || n >= size || isdigit((unsigned char)*p->at))
    return wrong(p, "expected a name");
  memcpy(out, p->at, n);
  out[n] = 0;
  p->at += n;
  return OK;
}
static status number(struct parser *p, int64_t *out) {
  skip(p);
  char *end;
  errno = 0;
  if (!isdigit((unsigned char)*p->at) && *p->at != '-')
    return wrong(p, "expected a number");
  *out = strtoll(p->at, &end, 10);
  if (errno || end == p->at)
    return wrong(p, "a number that is none or too large");
  p->at = end;
  return OK;
}
/* N of a word like n3, i0, v7; false when the word is another. */
static bool numbered(const char *text, char letter, uint32_t *out) {
  if (text[0] != letter || !isdigit((unsigned char)text[1]) || strlen(text) > 8)
    return false;
  for (const char *c = text + 1; *c; c++)
    if (!isdigit((unsigned char)*c))
      return false;
  *out = (uint32_t)strtoul(text + 1, NULL, 10);
  return true;
}
static status dtype_word(struct parser *p, enum dtype *out) {
  char text[32];
  TRY(word(p, text, sizeof text));
  return dtype_from_name(text, out) ? OK : wrong(p, "expected a dtype");
}

/* ---- expressions ---- */

static status parse_expr(struct parser *p, expr_id *out);

static bool find_buffer(const struct parser *p, const char *text, uint32_t *out) {
  if (text[0] >= 'a' && text[0] <= 'z' && !text[1])
    *out = (uint32_t)(text[0] - 'a');
  else if (!numbered(text, 'b', out) || *out < 26)
    return false;
  return *out < p->k->buffers.count;
}

static status parse_list(struct parser *p, const char *end, expr_id *out, int *count) {
  *count = 0;
  if (accept(p, end))
    return OK;
  do {
    if (*count == LIMIT_RANK)
      return wrong(p, "too many operands");
    TRY(parse_expr(p, &out[(*count)++]));
  } while (accept(p, ","));
  return expect(p, end);
}

/* `.re` or `.im` where there are parts, and the indices. */
static status parse_element(struct parser *p, uint32_t buffer, int *part, expr_id *index, int *count) {
  const struct kernel_buffer *b = &p->k->buffers.items[buffer];
  *part = 0;
  if (dtype_is_complex(b->dtype)) {
    if (accept(p, ".im"))
      *part = 1;
    else
      TRY(expect(p, ".re"));
  }
  TRY(expect(p, "["));
  TRY(parse_list(p, "]", index, count));
  if (*count != b->rank)
    return wrong(p, "the number of indices is not the buffer's rank");
  for (int i = 0; i < *count; i++)
    if (expr_get(p->k, index[i])->dtype != DTYPE_INT64)
      return wrong(p, "an index is no i64");
  return OK;
}

static status parse_special(struct parser *p, bool *is_nan, uint64_t *bits, double *v) {
  bool negative = accept(p, "-");
  *is_nan = false;
  if (accept(p, "inf")) {
    *v = negative ? -__builtin_inf() : __builtin_inf();
    return OK;
  }
  TRY(expect(p, "nan"));
  TRY(expect(p, "("));
  char *end;
  *bits = strtoull(p->at, &end, 16);
  p->at = end;
  *is_nan = true;
  return expect(p, ")");
}

/* 784  3:i32  1:f32  0x1.8p+1:f64  inf:f32  nan(0x7fc00000):f32 */
static status parse_literal(struct parser *p, expr_id *out) {
  skip(p);
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
      return wrong(p, "expected an expression");
    p->at = end;
  }
  enum dtype dtype = DTYPE_INT64;
  if (accept(p, ":"))
    TRY(dtype_word(p, &dtype));
  if (dtype_is_float(dtype)) {
    *out = is_nan ? expr_bits(p->k, dtype, (int64_t)bits) : expr_float(p->k, dtype, v);
    return OK;
  }
  if (special || (!dtype_is_integer(dtype) && dtype_is_valid(dtype) && dtype_size(dtype) > 8) || dtype_is_complex(dtype))
    return wrong(p, "no literal of this dtype");
  errno = 0;
  int64_t i = dtype == DTYPE_UINT64 ? (int64_t)strtoull(text, NULL, 10) : strtoll(text, NULL, 10);
  if (errno)
    return wrong(p, "a literal that is too large");
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
    return wrong(p, "the wrong number of operands");
  enum dtype in[3] = {0};
  for (int i = 0; i < count; i++)
    in[i] = expr_get(p->k, operands[i])->dtype;
  if (op == SCALAR_SELECT)
    return in[0] == DTYPE_BOOL && in[1] == in[2] ? OK : wrong(p, "select takes a bool and two alike");
  for (int i = 1; i < count; i++)
    if (in[i] != in[0])
      return wrong(p, "operands of different dtypes");
  if (in[0] == DTYPE_STRING && (op < SCALAR_EQ || op > SCALAR_LE))
    return wrong(p, "strings can only be compared");
  if ((op == SCALAR_CAST || op == SCALAR_BITCAST) && (own == DTYPE_STRING || dtype_is_complex(own)))
    return wrong(p, "no cast to this dtype");
  if (op == SCALAR_BITCAST && dtype_size(own) != dtype_size(in[0]))
    return wrong(p, "bitcast between dtypes of different size");
  return OK;
}

static status parse_call(struct parser *p, const char *text, expr_id *out) {
  enum scalar_op op;
  if (!find_scalar(text, &op))
    return wrong(p, "neither an operation nor anything defined");
  enum dtype own = DTYPE_INVALID;
  if (op == SCALAR_CAST || op == SCALAR_BITCAST || op == SCALAR_POPCOUNT) {
    TRY(expect(p, "."));
    TRY(dtype_word(p, &own));
  }
  expr_id operands[LIMIT_RANK];
  int count;
  TRY(expect(p, "("));
  TRY(parse_list(p, ")", operands, &count));
  TRY(check_dtypes(p, op, own, operands, count));
  *out = expr_make(p->k, op, own, operands, count);
  return OK;
}

static bool find_named(const struct parser *p, const char *text, uint32_t *out) {
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
  TRY(word(p, text, sizeof text));
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    *out = expr_int(k, DTYPE_BOOL, text[0] == 't');
    return OK;
  }
  if (numbered(text, 'n', &n)) {
    if (n >= k->size_count)
      return wrong(p, "a size that does not exist");
    *out = expr_size(k, n);
    return OK;
  }
  bool is_loop = numbered(text, 'i', &n);
  if (is_loop || numbered(text, 'v', &n)) {
    uint32_t known = is_loop ? p->loops.count : p->vars.count;
    uint32_t local = n < known ? (is_loop ? p->loops.items[n] : p->vars.items[n]) : UINT32_MAX;
    if (local == UINT32_MAX)
      return wrong(p, "a local that is not alive here");
    *out = expr_local(k, local);
    return OK;
  }
  bool is_local = *p->at != '[' && *p->at != '.' && *p->at != '(';
  if (is_local && find_named(p, text, &n)) {
    *out = expr_local(k, n);
    return OK;
  }
  if (!find_buffer(p, text, &n) || (*p->at != '[' && *p->at != '.'))
    return parse_call(p, text, out);
  TRY(parse_element(p, n, &part, index, &count));
  *out = expr_load(k, n, part, index, count);
  return OK;
}

static status parse_expr(struct parser *p, expr_id *out) {
  if (p->depth >= DEPTH_LIMIT)
    return wrong(p, "nested too deep");
  p->depth++;
  skip(p);
  if (*p->at == '%') {
    int64_t n;
    p->at++;
    TRY(number(p, &n));
    if (n < 0 || n >= p->shared.count)
      return wrong(p, "a shared expression that is not defined");
    *out = p->shared.items[n];
  } else if (accept(p, "\"\":str")) {
    *out = expr_bits(p->k, DTYPE_STRING, 0);
  } else if (isalpha((unsigned char)*p->at) && strncmp(p->at, "nan(", 4) != 0 && strncmp(p->at, "inf:", 4) != 0) {
    TRY(parse_name(p, out));
  } else {
    TRY(parse_literal(p, out));
  }
  p->depth--;
  return OK;
}
static status parse_typed(struct parser *p, enum dtype dtype, expr_id *out) {
  TRY(parse_expr(p, out));
  return expr_get(p->k, *out)->dtype == dtype ? OK : wrong(p, "an expression of another dtype than is needed here");
}

/* ---- statements ---- */

static status parse_block(struct parser *p, struct stmt **body);

/* `tasks`, `lanes 32`, `unroll`, or nothing */
static status parse_run(struct parser *p, struct stmt *s) {
  int64_t width = 0;
  if (accept(p, "tasks"))
    s->run = RUN_TASKS;
  else if (accept(p, "unroll"))
    s->run = RUN_UNROLL;
  else if (accept(p, "lanes")) {
    s->run = RUN_LANES;
    TRY(number(p, &width));
    if (width < 1 || width > LANES_MAX)
      return wrong(p, "too few or too many lanes");
  }
  s->width = (int32_t)width;
  return OK;
}
static status parse_for(struct parser *p, enum loop_kind loop, struct stmt **tail) {
  char text[32];
  uint32_t n, other;
  expr_id extent;
  TRY(word(p, text, sizeof text));
  bool is_numbered = numbered(text, 'i', &n);
  if (is_numbered && n != p->loops.count)
    return wrong(p, "loop variables without a name are numbered in order: i0, i1, ...");
  if (!is_numbered && (!kernel_is_loop_name(text) || find_named(p, text, &other)))
    return wrong(p, "no name for a loop variable, or one that is taken here");
  TRY(expect(p, "<"));
  TRY(parse_typed(p, DTYPE_INT64, &extent));
  struct stmt *s = stmt_for(p->k, tail, loop, extent);
  TRY(parse_run(p, s));
  if (is_numbered) {
    vec_push(&p->loops, s->local);
    TRY(parse_block(p, &s->body));
    p->loops.items[n] = UINT32_MAX;
    return OK;
  }
  p->k->locals.items[s->local].name = arena_strdup(p->k->arena, text);
  vec_push(&p->named, s->local);
  TRY(parse_block(p, &s->body));
  p->named.count--;
  return OK;
}
static status parse_var(struct parser *p, struct stmt **tail) {
  char text[32];
  uint32_t n;
  enum dtype dtype;
  expr_id initial;
  TRY(word(p, text, sizeof text));
  if (!numbered(text, 'v', &n) || n != p->vars.count)
    return wrong(p, "vars are numbered in order: v0, v1, ...");
  TRY(expect(p, ":"));
  TRY(dtype_word(p, &dtype));
  TRY(expect(p, "="));
  TRY(parse_typed(p, dtype, &initial));
  vec_push(&p->vars, stmt_var(p->k, tail, dtype, initial)->local);
  return OK;
}
static status parse_if(struct parser *p, struct stmt **tail) {
  expr_id condition;
  TRY(parse_typed(p, DTYPE_BOOL, &condition));
  struct stmt *s = stmt_if(p->k, tail, condition);
  TRY(parse_block(p, &s->body));
  return accept(p, "else") ? parse_block(p, &s->otherwise) : OK;
}
static status parse_while(struct parser *p, struct stmt **tail) {
  expr_id condition;
  TRY(parse_typed(p, DTYPE_BOOL, &condition));
  return parse_block(p, &stmt_while(p->k, tail, condition)->body);
}

static status parse_quoted(struct parser *p, char **out) {
  TRY(expect(p, "\""));
  VEC(char) text = {0};
  while (*p->at && *p->at != '"') {
    char c = *p->at++;
    if (c == '\\' && *p->at == 'x' && isxdigit((unsigned char)p->at[1]) && isxdigit((unsigned char)p->at[2])) {
      char digits[3] = {p->at[1], p->at[2], 0};
      c = (char)strtol(digits, NULL, 16);
      p->at += 3;
    } else if (c == '\\' && *p->at) {
      c = *p->at++;
    }
    vec_push(&text, c);
  }
  *out = arena_strndup(p->k->arena, text.items ? text.items : "", text.count);
  vec_free(&text);
  return expect(p, "\"");
}
static status parse_check(struct parser *p, struct stmt **tail) {
  expr_id condition, shown[STATUS_SHOWN] = {NO_EXPR, NO_EXPR, NO_EXPR};
  char name[32], *text;
  TRY(parse_typed(p, DTYPE_BOOL, &condition));
  TRY(expect(p, "else"));
  TRY(word(p, name, sizeof name));
  status code = CANCELLED;
  while (code <= UNAUTHENTICATED && strcmp(status_name(code), name) != 0)
    code++;
  if (code > UNAUTHENTICATED)
    return wrong(p, "expected the name of a status code");
  TRY(parse_quoted(p, &text));
  for (int i = 0; i < STATUS_SHOWN && accept(p, i ? "," : ":"); i++)
    TRY(parse_typed(p, DTYPE_INT64, &shown[i]));
  stmt_check(p->k, tail, condition, code, text, shown);
  return OK;
}

/* v0 = ...   b[..] = ... */
static status parse_assignment(struct parser *p, struct stmt **tail) {
  char text[32];
  uint32_t n;
  expr_id value, index[LIMIT_RANK];
  int part, count;
  TRY(word(p, text, sizeof text));
  if (numbered(text, 'v', &n)) {
    if (n >= p->vars.count || p->vars.items[n] == UINT32_MAX)
      return wrong(p, "a var that is not alive here");
    TRY(expect(p, "="));
    TRY(parse_typed(p, p->k->locals.items[p->vars.items[n]].dtype, &value));
    stmt_set(p->k, tail, p->vars.items[n], value);
    return OK;
  }
  if (!find_buffer(p, text, &n))
    return wrong(p, "expected a statement");
  TRY(parse_element(p, n, &part, index, &count));
  TRY(expect(p, "="));
  TRY(parse_typed(p, dtype_real(p->k->buffers.items[n].dtype), &value));
  stmt_store(p->k, tail, n, part, index, count, value);
  return OK;
}
static status parse_shared(struct parser *p) {
  int64_t n;
  expr_id e;
  TRY(number(p, &n));
  if (n < 0 || n > p->shared.count || n > COUNT_LIMIT)
    return wrong(p, "shared expressions are numbered in order");
  TRY(expect(p, "="));
  TRY(parse_expr(p, &e));
  if (n == p->shared.count)
    vec_push(&p->shared, e);
  p->shared.items[n] = e;
  return OK;
}

static status parse_dims(struct parser *p, kernel_dim *dims, int *rank);

/* buffer e: f32[8,32] in register */
static status parse_block_buffer(struct parser *p, struct stmt **tail) {
  char name[32];
  enum dtype dtype;
  kernel_dim dims[LIMIT_RANK];
  int rank;
  uint32_t number;
  TRY(word(p, name, sizeof name));
  TRY(expect(p, ":"));
  TRY(dtype_word(p, &dtype));
  TRY(parse_dims(p, dims, &rank));
  TRY(expect(p, "in"));
  bool in_register = accept(p, "register");
  if (!in_register)
    TRY(expect(p, "stack"));
  uint32_t buffer = kernel_add_block_buffer(p->k, dtype, in_register ? SPACE_REGISTER : SPACE_STACK, rank, dims);
  if (!find_buffer(p, name, &number) || number != buffer || buffer >= COUNT_LIMIT)
    return wrong(p, "buffers are named by position, those of blocks behind the arguments");
  stmt_buffer(p->k, tail, buffer);
  return OK;
}
static status parse_fetch(struct parser *p, struct stmt **tail) {
  char name[32];
  uint32_t n;
  expr_id index[LIMIT_RANK];
  int part, count;
  TRY(word(p, name, sizeof name));
  if (!find_buffer(p, name, &n))
    return wrong(p, "expected a buffer");
  TRY(parse_element(p, n, &part, index, &count));
  stmt_fetch(p->k, tail, n, index, count);
  return OK;
}

static status parse_stmt(struct parser *p, struct stmt **tail) {
  static const char *const loops[] = {"par", "red", "seq"};
  if (accept(p, "%"))
    return parse_shared(p);
  for (int i = 0; i < 3; i++)
    if (accept(p, loops[i]))
      return parse_for(p, i, tail);
  if (accept(p, "var"))
    return parse_var(p, tail);
  if (accept(p, "if"))
    return parse_if(p, tail);
  if (accept(p, "while"))
    return parse_while(p, tail);
  if (accept(p, "check"))
    return parse_check(p, tail);
  if (accept(p, "buffer"))
    return parse_block_buffer(p, tail);
  if (accept(p, "fetch"))
    return parse_fetch(p, tail);
  return parse_assignment(p, tail);
}
/* Vars end with their block. */
static status parse_block(struct parser *p, struct stmt **body) {
  if (p->depth >= DEPTH_LIMIT)
    return wrong(p, "nested too deep");
  p->depth++;
  TRY(expect(p, "{"));
  uint32_t vars = p->vars.count;
  struct stmt **tail = body;
  while (!accept(p, "}")) {
    if (!*p->at)
      return wrong(p, "expected '}'");
    TRY(parse_stmt(p, tail));
    while (*tail)
      tail = &(*tail)->next;
  }
  for (uint32_t i = vars; i < p->vars.count; i++)
    p->vars.items[i] = UINT32_MAX;
  p->depth--;
  return OK;
}

/* ---- the head ---- */

static status parse_dims(struct parser *p, kernel_dim *dims, int *rank) {
  *rank = 0;
  TRY(expect(p, "["));
  if (accept(p, "]"))
    return OK;
  do {
    if (*rank == LIMIT_RANK)
      return wrong(p, "too many dimensions");
    skip(p);
    if (*p->at == 'n') {
      int64_t n;
      p->at++;
      TRY(number(p, &n));
      if (n < 0 || n >= COUNT_LIMIT)
        return wrong(p, "no such size");
      dims[(*rank)++] = DIM_OF_SIZE(n);
    } else {
      TRY(number(p, &dims[*rank]));
      if (dims[(*rank)++] < 0)
        return wrong(p, "a dimension below 0");
    }
  } while (accept(p, ","));
  return expect(p, "]");
}
static status parse_buffer(struct parser *p) {
  static const char *const modes[] = {"inout", "in", "out", "scratch"};
  static const enum buffer_mode values[] = {BUFFER_INOUT, BUFFER_IN, BUFFER_OUT, BUFFER_SCRATCH};
  for (int i = 0; i < 4; i++) {
    if (!accept(p, modes[i]))
      continue;
    char name[32];
    enum dtype dtype;
    kernel_dim dims[LIMIT_RANK];
    int rank;
    TRY(word(p, name, sizeof name));
    TRY(expect(p, ":"));
    TRY(dtype_word(p, &dtype));
    TRY(parse_dims(p, dims, &rank));
    kernel_add_buffer(p->k, dtype, values[i], rank, dims);
    uint32_t number;
    if (!find_buffer(p, name, &number) || number != p->k->buffers.count - 1)
      return wrong(p, "buffers are named by position: a, b, ... z, b26 ...");
    return p->k->buffers.count < COUNT_LIMIT ? OK : wrong(p, "too many buffers");
  }
  return wrong(p, "expected in, out, inout or scratch");
}

static status parse_kernel(struct parser *p, struct arena *arena) {
  char name[256];
  TRY(expect(p, "kernel"));
  TRY(word(p, name, sizeof name));
  p->k = kernel_create(arena, arena_strdup(arena, name));
  TRY(expect(p, "("));
  if (!accept(p, ")")) {
    do
      TRY(parse_buffer(p));
    while (accept(p, ","));
    TRY(expect(p, ")"));
  }
  if (accept(p, "sizes")) {
    int64_t n;
    TRY(number(p, &n));
    if (n < p->k->size_count || n > COUNT_LIMIT)
      return wrong(p, "fewer sizes than the buffers have, or too many");
    p->k->size_count = (uint32_t)n;
  }
  TRY(parse_block(p, &p->k->body));
  skip(p);
  return *p->at ? wrong(p, "something behind the kernel") : OK;
}

status kernel_parse(const char *text, struct arena *arena, struct kernel **out) {
  struct parser p = {.start = text, .at = text};
  status result = parse_kernel(&p, arena);
  if (result == OK && kernel_verify(p.k) != OK) {
    char reason[512];
    strncpy(reason, status_text(), sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    result = fail(INVALID_ARGUMENT, "%s", reason);
  }
  if (result == OK)
    *out = p.k;
  vec_free(&p.loops);
  vec_free(&p.named);
  vec_free(&p.vars);
  vec_free(&p.shared);
  return result;
}
