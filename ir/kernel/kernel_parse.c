/* kernel_parse.c: reads the text form of kernels (kernel_print.c): statements and the head. Text comes from tests and users: every mistake
 * is an INVALID_ARGUMENT with line and column. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel_parse.h"

#define COUNT_LIMIT 100000 /* of buffers, sizes, shared expressions */

/* ---- statements ---- */

static status parse_block(struct parser *p, struct stmt **body);

/* `tasks`, `lanes 32`, `unroll`, `vectors 64`, `together 6`, or nothing */
static status parse_run(struct parser *p, struct stmt *s) {
  int64_t width = 0;
  for (int run = RUN_PLAIN + 1; run < LOOP_RUNS && s->run == RUN_PLAIN; run++)
    if (parser_accept(p, loop_run_words[run]))
      s->run = (enum loop_run)run;
  if (run_has_width(s->run))
    TRY(parser_number(p, &width));
  if (!run_takes_width(s->run, width))
    return parser_wrong(p, "no width of such a loop");
  s->width = (int32_t)width;
  return OK;
}
static status parse_for(struct parser *p, enum loop_kind loop, struct stmt **tail) {
  char text[32];
  uint32_t n, other;
  expr_id extent;
  TRY(parser_word(p, text, sizeof text));
  bool is_numbered = parser_numbered(text, 'i', &n);
  if (is_numbered && n != p->loops.count)
    return parser_wrong(p, "loop variables without a name are numbered in order: i0, i1, ...");
  if (!is_numbered && (!kernel_is_loop_name(text) || parser_find_loop(p, text, &other)))
    return parser_wrong(p, "no name for a loop variable, or one that is taken here");
  TRY(parser_expect(p, "<"));
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
  TRY(parser_word(p, text, sizeof text));
  if (!parser_numbered(text, 'v', &n) || n != p->vars.count)
    return parser_wrong(p, "vars are numbered in order: v0, v1, ...");
  TRY(parser_expect(p, ":"));
  TRY(parser_dtype(p, &dtype));
  TRY(parser_expect(p, "="));
  TRY(parse_typed(p, dtype, &initial));
  vec_push(&p->vars, stmt_var(p->k, tail, dtype, initial)->local);
  return OK;
}
static status parse_if(struct parser *p, struct stmt **tail) {
  expr_id condition;
  TRY(parse_typed(p, DTYPE_BOOL, &condition));
  struct stmt *s = stmt_if(p->k, tail, condition);
  TRY(parse_block(p, &s->body));
  return parser_accept(p, "else") ? parse_block(p, &s->otherwise) : OK;
}
static status parse_while(struct parser *p, struct stmt **tail) {
  expr_id condition;
  TRY(parse_typed(p, DTYPE_BOOL, &condition));
  return parse_block(p, &stmt_while(p->k, tail, condition)->body);
}

static status parse_quoted(struct parser *p, char **out) {
  TRY(parser_expect(p, "\""));
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
  return parser_expect(p, "\"");
}
static status parse_check(struct parser *p, struct stmt **tail) {
  expr_id condition, shown[STATUS_SHOWN] = {NO_EXPR, NO_EXPR, NO_EXPR};
  char name[32], *text;
  TRY(parse_typed(p, DTYPE_BOOL, &condition));
  TRY(parser_expect(p, "else"));
  TRY(parser_word(p, name, sizeof name));
  status code = CANCELLED;
  while (code <= UNAUTHENTICATED && strcmp(status_name(code), name) != 0)
    code++;
  if (code > UNAUTHENTICATED)
    return parser_wrong(p, "expected the name of a status code");
  TRY(parse_quoted(p, &text));
  for (int i = 0; i < STATUS_SHOWN && parser_accept(p, i ? "," : ":"); i++)
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
  TRY(parser_word(p, text, sizeof text));
  if (parser_numbered(text, 'v', &n)) {
    if (n >= p->vars.count || p->vars.items[n] == UINT32_MAX)
      return parser_wrong(p, "a var that is not alive here");
    TRY(parser_expect(p, "="));
    TRY(parse_typed(p, p->k->locals.items[p->vars.items[n]].dtype, &value));
    stmt_set(p->k, tail, p->vars.items[n], value);
    return OK;
  }
  if (!parser_find_buffer(p, text, &n))
    return parser_wrong(p, "expected a statement");
  TRY(parse_element(p, n, &part, index, &count));
  TRY(parser_expect(p, "="));
  TRY(parse_typed(p, dtype_real(p->k->buffers.items[n].dtype), &value));
  stmt_store(p->k, tail, n, part, index, count, value);
  return OK;
}
static status parse_shared(struct parser *p) {
  int64_t n;
  expr_id e;
  TRY(parser_number(p, &n));
  if (n < 0 || n > p->shared.count || n > COUNT_LIMIT)
    return parser_wrong(p, "shared expressions are numbered in order");
  TRY(parser_expect(p, "="));
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
  TRY(parser_word(p, name, sizeof name));
  TRY(parser_expect(p, ":"));
  TRY(parser_dtype(p, &dtype));
  TRY(parse_dims(p, dims, &rank));
  TRY(parser_expect(p, "in"));
  enum space space = parser_accept(p, "register") ? SPACE_REGISTER : parser_accept(p, "task") ? SPACE_TASK : SPACE_STACK;
  if (space == SPACE_STACK)
    TRY(parser_expect(p, "stack"));
  uint32_t buffer = kernel_add_block_buffer(p->k, dtype, space, rank, dims);
  if (!parser_find_buffer(p, name, &number) || number != buffer || buffer >= COUNT_LIMIT)
    return parser_wrong(p, "buffers are named by position, those of blocks behind the arguments");
  stmt_buffer(p->k, tail, buffer);
  return OK;
}
static status parse_fetch(struct parser *p, struct stmt **tail) {
  char name[32];
  uint32_t n;
  expr_id index[LIMIT_RANK];
  int part, count;
  TRY(parser_word(p, name, sizeof name));
  if (!parser_find_buffer(p, name, &n))
    return parser_wrong(p, "expected a buffer");
  TRY(parse_element(p, n, &part, index, &count));
  stmt_fetch(p->k, tail, n, index, count);
  return OK;
}

static status parse_stmt(struct parser *p, struct stmt **tail) {
  static const char *const loops[] = {"par", "red", "seq"};
  if (parser_accept(p, "%"))
    return parse_shared(p);
  for (int i = 0; i < 3; i++)
    if (parser_accept(p, loops[i]))
      return parse_for(p, i, tail);
  if (parser_accept(p, "var"))
    return parse_var(p, tail);
  if (parser_accept(p, "if"))
    return parse_if(p, tail);
  if (parser_accept(p, "while"))
    return parse_while(p, tail);
  if (parser_accept(p, "check"))
    return parse_check(p, tail);
  if (parser_accept(p, "buffer"))
    return parse_block_buffer(p, tail);
  if (parser_accept(p, "fetch"))
    return parse_fetch(p, tail);
  return parse_assignment(p, tail);
}
/* Vars end with their block. */
static status parse_block(struct parser *p, struct stmt **body) {
  if (p->depth >= DEPTH_LIMIT)
    return parser_wrong(p, "nested too deep");
  p->depth++;
  TRY(parser_expect(p, "{"));
  uint32_t vars = p->vars.count;
  struct stmt **tail = body;
  while (!parser_accept(p, "}")) {
    if (!*p->at)
      return parser_wrong(p, "expected '}'");
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
  TRY(parser_expect(p, "["));
  if (parser_accept(p, "]"))
    return OK;
  do {
    if (*rank == LIMIT_RANK)
      return parser_wrong(p, "too many dimensions");
    parser_skip(p);
    if (*p->at == 'n') {
      int64_t n;
      p->at++;
      TRY(parser_number(p, &n));
      if (n < 0 || n >= COUNT_LIMIT)
        return parser_wrong(p, "no such size");
      dims[(*rank)++] = DIM_OF_SIZE(n);
    } else {
      TRY(parser_number(p, &dims[*rank]));
      if (dims[(*rank)++] < 0)
        return parser_wrong(p, "a dimension below 0");
    }
  } while (parser_accept(p, ","));
  return parser_expect(p, "]");
}
static status parse_buffer(struct parser *p) {
  static const char *const modes[] = {"inout", "in", "out", "scratch"};
  static const enum buffer_mode values[] = {BUFFER_INOUT, BUFFER_IN, BUFFER_OUT, BUFFER_SCRATCH};
  for (int i = 0; i < 4; i++) {
    if (!parser_accept(p, modes[i]))
      continue;
    char name[32];
    enum dtype dtype;
    kernel_dim dims[LIMIT_RANK];
    int rank;
    TRY(parser_word(p, name, sizeof name));
    TRY(parser_expect(p, ":"));
    TRY(parser_dtype(p, &dtype));
    TRY(parse_dims(p, dims, &rank));
    kernel_add_buffer(p->k, dtype, values[i], rank, dims);
    uint32_t number;
    if (!parser_find_buffer(p, name, &number) || number != p->k->buffers.count - 1)
      return parser_wrong(p, "buffers are named by position: a, b, ... z, b26 ...");
    return p->k->buffers.count < COUNT_LIMIT ? OK : parser_wrong(p, "too many buffers");
  }
  return parser_wrong(p, "expected in, out, inout or scratch");
}

static status parse_kernel(struct parser *p, struct arena *arena) {
  char name[256];
  TRY(parser_expect(p, "kernel"));
  TRY(parser_word(p, name, sizeof name));
  p->k = kernel_create(arena, arena_strdup(arena, name));
  TRY(parser_expect(p, "("));
  if (!parser_accept(p, ")")) {
    do
      TRY(parse_buffer(p));
    while (parser_accept(p, ","));
    TRY(parser_expect(p, ")"));
  }
  if (parser_accept(p, "sizes")) {
    int64_t n;
    TRY(parser_number(p, &n));
    if (n < p->k->size_count || n > COUNT_LIMIT)
      return parser_wrong(p, "fewer sizes than the buffers have, or too many");
    p->k->size_count = (uint32_t)n;
  }
  TRY(parse_block(p, &p->k->body));
  parser_skip(p);
  return *p->at ? parser_wrong(p, "something behind the kernel") : OK;
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
