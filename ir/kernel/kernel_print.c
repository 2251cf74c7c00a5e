/* kernel_print.c: the text form of kernels (ir/README.md shows it), and the hash made of it.
 *
 *   kernel sigmoid(in a: f32[n0,784], out b: f32[n0,784]) sizes 1 {
 *     par i0 < n0 {
 *       par i1 < 784 {
 *         b[i0,i1] = div(1:f32, add(1:f32, exp(neg(a[i0,i1]))))
 *       }
 *     }
 *   }
 *
 * Arguments are named by position, buffers of blocks and locals by order of appearance (i: loop variables without a name of their own, v:
 * vars), so that equal code has equal text. A subexpression that a statement uses twice, or that is deep, stands on a line of its own
 * before the statement: `%0 = ...`. Literals carry their dtype but for i64; floats that are no small integers are printed as
 * hexadecimal. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "ir/kernel/kernel.h"

#define DEPTH_MAX 12 /* of an expression on one line */

struct printer {
  const struct kernel *k;
  VEC(char) text;
  uint32_t *local_number;  /* by local, + 1 */
  uint32_t *buffer_number; /* by buffer: its place in the text */
  uint32_t buffers;        /* that the text has so far */
  uint32_t loops, vars;
  uint32_t *uses; /* by expression, of the statement at hand */
  uint32_t *line; /* by expression: its % number + 1 */
  uint8_t *depth;
  uint32_t lines;
  int indent;
};

static void put(struct printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct printer *p, const char *format, ...) {
  char small[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  size_t size = n < (int)sizeof small ? (size_t)n : sizeof small - 1;
  vec_reserve(&p->text, p->text.count + size + 1);
  memcpy(p->text.items + p->text.count, small, size);
  p->text.count += (uint32_t)size;
}
static void put_indent(struct printer *p) { put(p, "%*s", 2 * p->indent, ""); }

static void put_buffer_name(struct printer *p, uint32_t buffer) {
  uint32_t number = p->buffer_number[buffer];
  if (number < 26)
    put(p, "%c", 'a' + (int)number);
  else
    put(p, "b%u", number);
}

/* ---- expressions ---- */

static void put_float(struct printer *p, enum dtype dtype, int64_t bits) {
  double v = expr_bits_to_double(dtype, bits);
  if (isnan(v))
    put(p, "nan(0x%" PRIx64 ")", (uint64_t)bits & (UINT64_MAX >> (64 - 8 * dtype_size(dtype))));
  else if (isinf(v))
    put(p, v < 0 ? "-inf" : "inf");
  else if (v == rint(v) && fabs(v) < 1e6)
    put(p, "%.0f", v);
  else
    put(p, "%a", v);
  put(p, ":%s", dtype_short(dtype));
}
static void put_const(struct printer *p, const struct expr *x) {
  if (x->dtype == DTYPE_STRING)
    put(p, "\"\":str");
  else if (x->dtype == DTYPE_BOOL)
    put(p, x->imm ? "true" : "false");
  else if (x->dtype == DTYPE_INT64)
    put(p, "%" PRId64, x->imm);
  else if (dtype_is_float(x->dtype))
    put_float(p, x->dtype, x->imm);
  else if (x->dtype == DTYPE_UINT64)
    put(p, "%" PRIu64 ":u64", (uint64_t)x->imm);
  else
    put(p, "%" PRId64 ":%s", x->imm, dtype_short(x->dtype));
}
static void put_local(struct printer *p, uint32_t local) {
  const struct kernel_local *l = &p->k->locals.items[local];
  if (l->name)
    put(p, "%s", l->name);
  else
    put(p, "%c%u", l->is_loop ? 'i' : 'v', p->local_number[local] - 1);
}
static void put_part(struct printer *p, uint32_t buffer, int part) {
  if (dtype_is_complex(p->k->buffers.items[buffer].dtype))
    put(p, part ? ".im" : ".re");
}

static void put_expr(struct printer *p, expr_id e);

static void put_list(struct printer *p, const expr_id *items, int count, const char *separator) {
  for (int i = 0; i < count; i++) {
    put(p, "%s", i ? separator : "");
    put_expr(p, items[i]);
  }
}
/* Without regard to a line of its own. */
static void put_expr_text(struct printer *p, expr_id e) {
  const struct kernel *k = p->k;
  const struct expr *x = expr_get(k, e);
  const expr_id *operands = x->count ? &k->operands.items[x->first] : NULL;
  switch (x->op) {
  case SCALAR_CONST: put_const(p, x); return;
  case SCALAR_SIZE: put(p, "n%" PRId64, x->imm); return;
  case SCALAR_LOCAL: put_local(p, (uint32_t)x->imm); return;
  case SCALAR_LOAD:
    put_buffer_name(p, (uint32_t)x->imm);
    put_part(p, (uint32_t)x->imm, x->part);
    put(p, "[");
    put_list(p, operands, x->count, ",");
    put(p, "]");
    return;
  default: break;
  }
  put(p, "%s", scalar_text(x->op));
  if (x->op == SCALAR_CAST || x->op == SCALAR_BITCAST || x->op == SCALAR_POPCOUNT)
    put(p, ".%s", dtype_short(x->dtype));
  put(p, "(");
  put_list(p, operands, x->count, ", ");
  put(p, ")");
}
static void put_expr(struct printer *p, expr_id e) {
  if (p->line[e])
    put(p, "%%%u", p->line[e] - 1);
  else
    put_expr_text(p, e);
}

static bool is_leaf(const struct expr *x) { return x->op == SCALAR_CONST || x->op == SCALAR_SIZE || x->op == SCALAR_LOCAL; }

/* Operands come before users, so walks over a statement's expressions are loops over ids. */
static void count_uses(struct printer *p, const expr_id *roots, int count, expr_id *first, expr_id *last) {
  const struct kernel *k = p->k;
  *last = 0;
  for (int i = 0; i < count; i++) {
    p->uses[roots[i]]++;
    if (roots[i] > *last)
      *last = roots[i];
  }
  *first = *last;
  for (expr_id e = *last; e > 0; e--) {
    if (!p->uses[e])
      continue;
    *first = e;
    for (int i = 0; i < expr_get(k, e)->count; i++)
      p->uses[expr_operand(k, e, i)]++;
  }
}

/* Numbers the shared and the deep ones in the order in which a post-order walk from the roots meets them. */
static void put_lines(struct printer *p, expr_id e) {
  const struct kernel *k = p->k;
  const struct expr *x = expr_get(k, e);
  if (is_leaf(x) || p->line[e] || p->depth[e])
    return;
  uint8_t depth = 1;
  for (int i = 0; i < x->count; i++) {
    expr_id operand = expr_operand(k, e, i);
    put_lines(p, operand);
    if (!p->line[operand] && p->depth[operand] >= depth)
      depth = (uint8_t)(p->depth[operand] + 1);
  }
  p->depth[e] = depth;
  if (p->uses[e] < 2 && depth < DEPTH_MAX)
    return;
  put_indent(p);
  put(p, "%%%u = ", p->lines);
  put_expr_text(p, e);
  put(p, "\n");
  p->line[e] = ++p->lines;
}

/* ---- statements ---- */

static int stmt_roots(const struct stmt *s, expr_id *roots) {
  int n = 0;
  for (int i = 0; i < s->index_count; i++)
    roots[n++] = s->index[i];
  if (s->value != NO_EXPR)
    roots[n++] = s->value;
  for (int i = 0; s->kind == STMT_CHECK && i < STATUS_SHOWN; i++)
    if (s->shown[i] != NO_EXPR)
      roots[n++] = s->shown[i];
  return n;
}

static void put_quoted(struct printer *p, const char *text) {
  put(p, "\"");
  for (const char *c = text; *c; c++)
    if (*c == '"' || *c == '\\')
      put(p, "\\%c", *c);
    else if ((unsigned char)*c < ' ')
      put(p, "\\x%02x", (unsigned char)*c);
    else
      put(p, "%c", *c);
  put(p, "\"");
}

static void put_block(struct printer *p, const struct stmt *s);
static void put_braces(struct printer *p, const struct stmt *body) {
  put(p, " {\n");
  p->indent++;
  put_block(p, body);
  p->indent--;
  put_indent(p);
  put(p, "}");
}

static void put_loop(struct printer *p, const struct stmt *s) {
  static const char *const loops[] = {"par", "red", "seq"};
  if (!p->k->locals.items[s->local].name)
    p->local_number[s->local] = ++p->loops;
  put(p, "%s ", loops[s->loop]);
  put_local(p, s->local);
  put(p, " < ");
  put_expr(p, s->value);
  if (s->run != RUN_PLAIN)
    put(p, " %s", loop_run_words[s->run]);
  if (run_has_width(s->run))
    put(p, " %d", s->width);
}

static void put_type(struct printer *p, const struct kernel_buffer *b) {
  put(p, ": %s[", dtype_short(b->dtype));
  for (int d = 0; d < b->rank; d++) {
    put(p, "%s", d ? "," : "");
    if (DIM_IS_SIZE(b->dims[d]))
      put(p, "n%u", SIZE_OF_DIM(b->dims[d]));
    else
      put(p, "%" PRId64, b->dims[d]);
  }
  put(p, "]");
}

static void put_element(struct printer *p, const struct stmt *s) {
  put_buffer_name(p, s->buffer);
  put_part(p, s->buffer, s->part);
  put(p, "[");
  put_list(p, s->index, s->index_count, ",");
  put(p, "]");
}

static void put_block_buffer(struct printer *p, const struct stmt *s) {
  const struct kernel_buffer *b = &p->k->buffers.items[s->buffer];
  p->buffer_number[s->buffer] = p->buffers++;
  put(p, "buffer ");
  put_buffer_name(p, s->buffer);
  put_type(p, b);
  put(p, " in %s", b->space == SPACE_REGISTER ? "register" : b->space == SPACE_TASK ? "task" : "stack");
}

static void put_check(struct printer *p, const struct stmt *s) {
  put(p, "check ");
  put_expr(p, s->value);
  put(p, " else %s ", status_name(s->code));
  put_quoted(p, s->text ? s->text : "");
  for (int i = 0; i < STATUS_SHOWN && s->shown[i] != NO_EXPR; i++) {
    put(p, i ? ", " : ": ");
    put_expr(p, s->shown[i]);
  }
}

static void put_head(struct printer *p, const struct stmt *s) {
  switch (s->kind) {
  case STMT_FOR: put_loop(p, s); break;
  case STMT_VAR:
    put(p, "var v%u: %s = ", p->vars, dtype_short(p->k->locals.items[s->local].dtype));
    put_expr(p, s->value);
    p->local_number[s->local] = ++p->vars;
    break;
  case STMT_SET:
    put_local(p, s->local);
    put(p, " = ");
    put_expr(p, s->value);
    break;
  case STMT_STORE:
    put_element(p, s);
    put(p, " = ");
    put_expr(p, s->value);
    break;
  case STMT_IF:
  case STMT_WHILE:
    put(p, s->kind == STMT_IF ? "if " : "while ");
    put_expr(p, s->value);
    break;
  case STMT_CHECK: put_check(p, s); break;
  case STMT_BUFFER: put_block_buffer(p, s); break;
  case STMT_FETCH:
    put(p, "fetch ");
    put_element(p, s);
    break;
  }
}

static void put_stmt(struct printer *p, const struct stmt *s) {
  expr_id roots[LIMIT_RANK + 3], first, last;
  int count = stmt_roots(s, roots);
  count_uses(p, roots, count, &first, &last);
  p->lines = 0;
  for (int i = 0; i < count; i++)
    put_lines(p, roots[i]);
  put_indent(p);
  put_head(p, s);
  for (expr_id e = first; e <= last; e++)
    p->uses[e] = p->line[e] = p->depth[e] = 0;
  if (s->kind == STMT_FOR || s->kind == STMT_IF || s->kind == STMT_WHILE)
    put_braces(p, s->body);
  if (s->otherwise) {
    put(p, " else");
    put_braces(p, s->otherwise);
  }
  put(p, "\n");
}
static void put_block(struct printer *p, const struct stmt *s) {
  for (; s; s = s->next)
    put_stmt(p, s);
}

static void put_buffer(struct printer *p, uint32_t number) {
  static const char *const modes[] = {"in", "out", "inout", "scratch"};
  const struct kernel_buffer *b = &p->k->buffers.items[number];
  if (b->mode == BUFFER_LOCAL)
    return;
  p->buffer_number[number] = p->buffers++;
  put(p, "%s%s ", number ? ", " : "", modes[b->mode]);
  put_buffer_name(p, number);
  put_type(p, b);
}

static char *print_named(const struct kernel *k, const char *name, struct arena *arena) {
  struct printer p = {.k = k, .indent = 1};
  p.local_number = calloc(k->locals.count + 1, sizeof *p.local_number);
  p.buffer_number = calloc(k->buffers.count + 1, sizeof *p.buffer_number);
  p.uses = calloc(k->exprs.count + 1, sizeof *p.uses);
  p.line = calloc(k->exprs.count + 1, sizeof *p.line);
  p.depth = calloc(k->exprs.count + 1, sizeof *p.depth);
  put(&p, "kernel %s(", name);
  for (uint32_t i = 0; i < k->buffers.count; i++)
    put_buffer(&p, i);
  put(&p, ")");
  if (k->size_count)
    put(&p, " sizes %u", k->size_count);
  put(&p, " {\n");
  put_block(&p, k->body);
  put(&p, "}\n");
  char *text = arena_strndup(arena, p.text.items, p.text.count);
  free(p.local_number);
  free(p.buffer_number);
  free(p.uses);
  free(p.line);
  free(p.depth);
  vec_free(&p.text);
  return text;
}

char *kernel_print(const struct kernel *k, struct arena *arena) { return print_named(k, k->name, arena); }

char *kernel_hash_text(uint64_t hash, struct arena *arena) { return arena_printf(arena, "%016llx", (unsigned long long)hash); }

uint64_t kernel_hash(const struct kernel *k) {
  struct arena arena;
  arena_init(&arena);
  const char *text = print_named(k, "_", &arena);
  uint64_t hash = hash_bytes(text, strlen(text), 0);
  arena_deinit(&arena);
  return hash;
}
