/* kernel.c: building kernels: buffers, locals, hash-consed expressions, statements.
 *
 * Expressions are simplified while they are made, but only where no bit of any result changes: integer constants are
 * folded, neutral elements of integer arithmetic dropped, selects on constants taken. Floats are left alone. */
#include "ir/kernel/kernel.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "ir/kernel/scalar.h"

struct kernel *kernel_create(struct arena *arena, const char *name) {
  struct kernel *k = ARENA_NEW(arena, struct kernel);
  k->arena = arena;
  k->name = name;
  vec_push(&k->exprs, (struct expr){0});
  return k;
}

uint32_t kernel_add_buffer(struct kernel *k, enum dtype dtype, enum buffer_mode mode, int rank, const kernel_dim *dims) {
  assert(rank >= 0 && rank <= LIMIT_RANK);
  struct kernel_buffer b = {.dtype = dtype, .mode = mode, .rank = rank};
  uint32_t n = k->buffers.count;
  b.name = n < 26 ? arena_printf(k->arena, "%c", 'a' + (int)n) : arena_printf(k->arena, "b%u", n);
  b.dims = arena_copy(k->arena, dims, sizeof *dims * (size_t)rank);
  for (int i = 0; i < rank; i++) {
    if (DIM_IS_SIZE(dims[i]) && SIZE_OF_DIM(dims[i]) >= k->size_count)
      k->size_count = SIZE_OF_DIM(dims[i]) + 1;
  }
  vec_push(&k->buffers, b);
  return n;
}

bool buffer_has_dims(const struct kernel_buffer *b, int rank, const kernel_dim *dims) {
  return b->rank == rank && memcmp(b->dims, dims, sizeof *dims * (size_t)rank) == 0;
}
uint32_t kernel_add_block_buffer(struct kernel *k, enum dtype dtype, enum space space, int rank, const kernel_dim *dims) {
  uint32_t n = kernel_add_buffer(k, dtype, BUFFER_LOCAL, rank, dims);
  k->buffers.items[n].space = space;
  return n;
}

uint32_t kernel_add_local(struct kernel *k, enum dtype dtype, bool is_loop) {
  vec_push(&k->locals, (struct kernel_local){.dtype = dtype, .is_loop = is_loop});
  return k->locals.count - 1;
}

bool kernel_is_loop_name(const char *text) {
  static const char *const taken[] = {"true", "false", "inf", "nan"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (strcmp(text, taken[i]) == 0)
      return false;
  if (strchr("niv", text[0]) && text[0] && text[1] && strspn(text + 1, "0123456789") == strlen(text + 1))
    return false;
  for (const char *c = text; *c; c++)
    if (!isalpha((unsigned char)*c) && (c == text || (!isdigit((unsigned char)*c) && *c != '_')))
      return false;
  return text[0] != 0;
}

/* ---- hash-consing ---- */

static uint64_t expr_hash(const struct expr *e, const expr_id *operands) {
  uint64_t h = hash_bytes(&e->imm, sizeof e->imm, (uint64_t)e->op << 24 | (uint64_t)e->dtype << 16 | e->part);
  return hash_bytes(operands, sizeof *operands * e->count, h);
}

static bool expr_same(const struct kernel *k, const struct expr *a, const struct expr *b, const expr_id *operands) {
  return a->op == b->op && a->dtype == b->dtype && a->part == b->part && a->count == b->count && a->imm == b->imm &&
         (a->count == 0 || memcmp(&k->operands.items[a->first], operands, sizeof *operands * a->count) == 0);
}

static void cons_grow(struct kernel *k) {
  uint32_t size = k->cons_size ? k->cons_size * 2 : 64;
  uint32_t *cons = ARENA_ARRAY(k->arena, uint32_t, size);
  for (uint32_t id = 1; id < k->exprs.count; id++) {
    const struct expr *e = &k->exprs.items[id];
    const expr_id *operands = e->count ? &k->operands.items[e->first] : NULL;
    uint64_t at = expr_hash(e, operands) & (size - 1);
    while (cons[at])
      at = (at + 1) & (size - 1);
    cons[at] = id;
  }
  k->cons = cons;
  k->cons_size = size;
}

static expr_id expr_intern(struct kernel *k, struct expr e, const expr_id *operands) {
  if (k->exprs.count * 2 >= k->cons_size)
    cons_grow(k);
  uint64_t at = expr_hash(&e, operands) & (k->cons_size - 1);
  for (; k->cons[at]; at = (at + 1) & (k->cons_size - 1))
    if (expr_same(k, &k->exprs.items[k->cons[at]], &e, operands))
      return k->cons[at];
  expr_id copy[LIMIT_RANK]; /* operands may point into k->operands */
  assert(e.count <= LIMIT_RANK);
  if (e.count)
    memcpy(copy, operands, sizeof *operands * e.count);
  e.first = k->operands.count;
  for (int i = 0; i < e.count; i++)
    vec_push(&k->operands, copy[i]);
  vec_push(&k->exprs, e);
  k->cons[at] = k->exprs.count - 1;
  return k->exprs.count - 1;
}

/* ---- leaves ---- */

expr_id expr_bits(struct kernel *k, enum dtype dtype, int64_t bits) {
  return expr_intern(k, (struct expr){.op = SCALAR_CONST, .dtype = (uint8_t)dtype, .imm = bits}, NULL);
}
expr_id expr_int(struct kernel *k, enum dtype dtype, int64_t value) {
  if (dtype_is_float(dtype))
    return expr_float(k, dtype, (double)value);
  return expr_bits(k, dtype, scalar_wrap(dtype, value));
}
expr_id expr_float(struct kernel *k, enum dtype dtype, double value) { return expr_bits(k, dtype, expr_double_to_bits(dtype, value)); }
expr_id expr_size(struct kernel *k, uint32_t size) {
  if (size >= k->size_count)
    k->size_count = size + 1;
  return expr_intern(k, (struct expr){.op = SCALAR_SIZE, .dtype = DTYPE_INT64, .imm = size}, NULL);
}
expr_id expr_dim(struct kernel *k, kernel_dim d) { return DIM_IS_SIZE(d) ? expr_size(k, SIZE_OF_DIM(d)) : expr_int(k, DTYPE_INT64, d); }
expr_id expr_local(struct kernel *k, uint32_t local) {
  return expr_intern(k, (struct expr){.op = SCALAR_LOCAL, .dtype = (uint8_t)k->locals.items[local].dtype, .imm = local}, NULL);
}
expr_id expr_load(struct kernel *k, uint32_t buffer, int part, const expr_id *index, int count) {
  const struct kernel_buffer *b = &k->buffers.items[buffer];
  assert(count == b->rank);
  return expr_intern(
    k,
    (struct expr){.op = SCALAR_LOAD, .dtype = (uint8_t)dtype_real(b->dtype), .part = (uint8_t)part, .count = (uint8_t)count, .imm = buffer},
    index);
}

bool expr_is_const(const struct kernel *k, expr_id e, int64_t *bits) {
  if (k->exprs.items[e].op != SCALAR_CONST)
    return false;
  if (bits)
    *bits = k->exprs.items[e].imm;
  return true;
}

double expr_bits_to_double(enum dtype dtype, int64_t bits) {
  switch (dtype) {
  case DTYPE_FLOAT: {
    uint32_t u = (uint32_t)bits;
    float f;
    memcpy(&f, &u, 4);
    return (double)f;
  }
  case DTYPE_DOUBLE: {
    double d;
    memcpy(&d, &bits, 8);
    return d;
  }
  case DTYPE_HALF: return (double)half_to_float((uint16_t)bits);
  case DTYPE_BFLOAT16: return (double)bfloat16_to_float((uint16_t)bits);
  case DTYPE_UINT64: return (double)(uint64_t)bits;
  default: return (double)bits;
  }
}

int64_t expr_double_to_bits(enum dtype dtype, double value) {
  switch (dtype) {
  case DTYPE_FLOAT: {
    float f = (float)value;
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
  }
  case DTYPE_DOUBLE: {
    int64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
  }
  case DTYPE_HALF: return float_to_half((float)value);
  case DTYPE_BFLOAT16: return float_to_bfloat16((float)value);
  default: return scalar_wrap(dtype, (int64_t)value);
  }
}

/* ---- operations ---- */

static const struct {
  const char *text;
  int operands;
  char result;
} scalars[SCALAR_OP_COUNT] = {
  [SCALAR_CONST] = {"const", 0, 'O'},
  [SCALAR_SIZE] = {"size", 0, 'O'},
  [SCALAR_LOCAL] = {"local", 0, 'O'},
  [SCALAR_LOAD] = {"load", 0, 'O'},
#define SCALAR(name, text, operands, result, meaning) [SCALAR_##name] = {text, operands, #result[0]},
#include "ir/scalars.def"
#undef SCALAR
};

const char *scalar_text(enum scalar_op op) { return scalars[op].text; }
int scalar_operands(enum scalar_op op) { return scalars[op].operands; }

static enum dtype result_dtype(const struct kernel *k, enum scalar_op op, enum dtype own, const expr_id *operands) {
  switch (scalars[op].result) {
  case 'S': return k->exprs.items[operands[0]].dtype;
  case 'B': return DTYPE_BOOL;
  case 'P': return k->exprs.items[operands[1]].dtype;
  default: return own;
  }
}

static bool is_int_const(const struct kernel *k, expr_id e, int64_t value) {
  int64_t bits;
  enum dtype d = k->exprs.items[e].dtype;
  return !dtype_is_float(d) && d != DTYPE_STRING && expr_is_const(k, e, &bits) && bits == value;
}

/* x of x + c - c, NO_EXPR of all else. */
static expr_id without_term(const struct kernel *k, expr_id sum, expr_id c) {
  for (int i = 0; k->exprs.items[sum].op == SCALAR_ADD && expr_is_const(k, c, NULL) && i < 2; i++)
    if (expr_operand(k, sum, i) == c)
      return expr_operand(k, sum, 1 - i);
  return NO_EXPR;
}
/* Integer identities with one constant operand; NO_EXPR when none applies. */
static expr_id simplify_integer(struct kernel *k, enum scalar_op op, expr_id a, expr_id b) {
  switch (op) {
  case SCALAR_ADD:
    if (is_int_const(k, a, 0))
      return b;
    return is_int_const(k, b, 0) ? a : NO_EXPR;
  case SCALAR_SUB: return is_int_const(k, b, 0) ? a : without_term(k, a, b);
  case SCALAR_MUL:
    if (is_int_const(k, a, 1) || is_int_const(k, b, 0))
      return b;
    return is_int_const(k, b, 1) || is_int_const(k, a, 0) ? a : NO_EXPR;
  case SCALAR_DIV:
  case SCALAR_FLOORDIV: return is_int_const(k, b, 1) ? a : NO_EXPR;
  case SCALAR_FLOORMOD:
  case SCALAR_REM: return is_int_const(k, b, 1) ? expr_int(k, k->exprs.items[a].dtype, 0) : NO_EXPR;
  case SCALAR_MIN:
  case SCALAR_MAX: return a == b ? a : NO_EXPR;
  default: return NO_EXPR;
  }
}

/* A product with 1, what is divided by it, the power of 1: the other operand, in every bit; of 2: the product with itself. */
static expr_id simplify_float(struct kernel *k, enum scalar_op op, expr_id a, expr_id b) {
  double is[2] = {0, 0};
  const expr_id of[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    int64_t bits;
    if (expr_is_const(k, of[i], &bits))
      is[i] = expr_bits_to_double((enum dtype)k->exprs.items[of[i]].dtype, bits);
  }
  if (is[1] == 1 && (op == SCALAR_MUL || op == SCALAR_DIV || op == SCALAR_POW))
    return a;
  if (is[1] == 2 && op == SCALAR_POW)
    return expr_intern(k, (struct expr){.op = SCALAR_MUL, .dtype = k->exprs.items[a].dtype, .count = 2}, (expr_id[]){a, a});
  return is[0] == 1 && op == SCALAR_MUL ? b : NO_EXPR;
}
static expr_id simplify_bool(struct kernel *k, enum scalar_op op, expr_id a, expr_id b) {
  if (op == SCALAR_AND) {
    if (is_int_const(k, a, 1) || is_int_const(k, b, 0))
      return b;
    if (is_int_const(k, b, 1) || is_int_const(k, a, 0) || a == b)
      return a;
  }
  if (op == SCALAR_OR) {
    if (is_int_const(k, a, 0) || is_int_const(k, b, 1))
      return b;
    if (is_int_const(k, b, 0) || is_int_const(k, a, 1) || a == b)
      return a;
  }
  return NO_EXPR;
}

static expr_id simplify(struct kernel *k, enum scalar_op op, enum dtype dtype, const expr_id *o, int count) {
  int64_t bits;
  if (op == SCALAR_SELECT) {
    if (expr_is_const(k, o[0], &bits))
      return bits ? o[1] : o[2];
    return o[1] == o[2] ? o[1] : NO_EXPR;
  }
  if (count == 0)
    return NO_EXPR;
  enum dtype in = k->exprs.items[o[0]].dtype;
  bool integers = !dtype_is_float(in) && in != DTYPE_STRING && !dtype_is_float(dtype) && dtype != DTYPE_STRING;
  if (!integers)
    return count == 2 && dtype_is_float(in) ? simplify_float(k, op, o[0], o[1]) : NO_EXPR;
  int64_t values[3] = {0};
  bool all = true;
  for (int i = 0; i < count; i++)
    all = all && expr_is_const(k, o[i], &values[i]);
  if (all && op != SCALAR_BITCAST)
    return expr_bits(k, dtype, scalar_eval_integer(op, dtype, in, values));
  if (count == 2 && o[0] == o[1] && (op == SCALAR_EQ || op == SCALAR_LE))
    return expr_int(k, DTYPE_BOOL, 1);
  if (count == 2 && o[0] == o[1] && (op == SCALAR_NE || op == SCALAR_LT))
    return expr_int(k, DTYPE_BOOL, 0);
  if (count != 2)
    return NO_EXPR;
  return in == DTYPE_BOOL ? simplify_bool(k, op, o[0], o[1]) : simplify_integer(k, op, o[0], o[1]);
}

/* Walks down from e through what it is made of; operands have lower numbers. */
bool expr_reads_local(const struct kernel *k, expr_id e, uint32_t local) {
  bool *wanted = calloc(e + 1, 1), found = false;
  uint32_t open = 1;
  wanted[e] = true;
  for (expr_id at = e; open && !found; at--) {
    const struct expr *x = expr_get(k, at);
    if (!wanted[at])
      continue;
    open--;
    found = x->op == SCALAR_LOCAL && x->imm == (int64_t)local;
    for (int i = 0; i < x->count; i++) {
      expr_id operand = expr_operand(k, at, i);
      open += !wanted[operand];
      wanted[operand] = true;
    }
  }
  free(wanted);
  return found;
}
bool expr_is_local(const struct kernel *k, expr_id e, uint32_t local) {
  return expr_get(k, e)->op == SCALAR_LOCAL && expr_get(k, e)->imm == local;
}
bool expr_is_local_from(const struct kernel *k, expr_id e, uint32_t local, int64_t *from) {
  const struct expr *x = expr_get(k, e);
  *from = 0;
  for (int i = 0; x->op == SCALAR_ADD && i < 2; i++)
    if (expr_is_const(k, expr_operand(k, e, i), from))
      return expr_is_local(k, expr_operand(k, e, 1 - i), local);
  return expr_is_local(k, e, local);
}
bool expr_has_load(const struct kernel *k, expr_id e) {
  if (expr_get(k, e)->op == SCALAR_LOAD)
    return true;
  for (int i = 0; i < expr_get(k, e)->count; i++)
    if (expr_has_load(k, expr_operand(k, e, i)))
      return true;
  return false;
}

expr_id expr_make(struct kernel *k, enum scalar_op op, enum dtype own, const expr_id *operands, int count) {
  assert(count == scalars[op].operands);
  enum dtype dtype = result_dtype(k, op, own, operands);
  if ((op == SCALAR_CAST || op == SCALAR_BITCAST) && k->exprs.items[operands[0]].dtype == dtype)
    return operands[0];
  expr_id simpler = simplify(k, op, dtype, operands, count);
  if (simpler != NO_EXPR)
    return simpler;
  return expr_intern(k, (struct expr){.op = (uint8_t)op, .dtype = (uint8_t)dtype, .count = (uint8_t)count}, operands);
}

expr_id expr_unary(struct kernel *k, enum scalar_op op, expr_id a) { return expr_make(k, op, k->exprs.items[a].dtype, &a, 1); }
expr_id expr_binary(struct kernel *k, enum scalar_op op, expr_id a, expr_id b) {
  return expr_make(k, op, DTYPE_INVALID, (expr_id[]){a, b}, 2);
}
expr_id expr_select(struct kernel *k, expr_id condition, expr_id then, expr_id otherwise) {
  return expr_make(k, SCALAR_SELECT, DTYPE_INVALID, (expr_id[]){condition, then, otherwise}, 3);
}
expr_id expr_cast(struct kernel *k, enum dtype dtype, expr_id a) { return expr_make(k, SCALAR_CAST, dtype, &a, 1); }
expr_id expr_bitcast(struct kernel *k, enum dtype dtype, expr_id a) { return expr_make(k, SCALAR_BITCAST, dtype, &a, 1); }

/* ---- statements ---- */

static struct stmt *stmt_new(struct kernel *k, struct stmt **tail, enum stmt_kind kind, expr_id value) {
  struct stmt *s = ARENA_NEW(k->arena, struct stmt);
  s->kind = kind;
  s->value = value;
  while (*tail)
    tail = &(*tail)->next;
  *tail = s;
  return s;
}

struct stmt *stmt_for(struct kernel *k, struct stmt **tail, enum loop_kind loop, expr_id extent) {
  struct stmt *s = stmt_new(k, tail, STMT_FOR, extent);
  s->loop = loop;
  s->local = kernel_add_local(k, DTYPE_INT64, true);
  return s;
}
struct stmt *stmt_var(struct kernel *k, struct stmt **tail, enum dtype dtype, expr_id initial) {
  struct stmt *s = stmt_new(k, tail, STMT_VAR, initial);
  s->local = kernel_add_local(k, dtype, false);
  return s;
}
struct stmt *stmt_set(struct kernel *k, struct stmt **tail, uint32_t local, expr_id value) {
  struct stmt *s = stmt_new(k, tail, STMT_SET, value);
  s->local = local;
  return s;
}
struct stmt *stmt_store(struct kernel *k, struct stmt **tail, uint32_t buffer, int part, const expr_id *index, int count, expr_id value) {
  struct stmt *s = stmt_new(k, tail, STMT_STORE, value);
  s->buffer = buffer;
  s->part = (uint8_t)part;
  s->index_count = (uint8_t)count;
  s->index = arena_copy(k->arena, index, sizeof *index * (size_t)count);
  return s;
}
struct stmt *stmt_buffer(struct kernel *k, struct stmt **tail, uint32_t buffer) {
  struct stmt *s = stmt_new(k, tail, STMT_BUFFER, NO_EXPR);
  s->buffer = buffer;
  return s;
}
struct stmt *stmt_fetch(struct kernel *k, struct stmt **tail, uint32_t buffer, const expr_id *index, int count) {
  struct stmt *s = stmt_new(k, tail, STMT_FETCH, NO_EXPR);
  s->buffer = buffer;
  s->index_count = (uint8_t)count;
  s->index = arena_copy(k->arena, index, sizeof *index * (size_t)count);
  return s;
}
struct stmt *stmt_if(struct kernel *k, struct stmt **tail, expr_id condition) {
  return stmt_new(k, tail, STMT_IF, condition);
}
struct stmt *stmt_while(struct kernel *k, struct stmt **tail, expr_id condition) {
  return stmt_new(k, tail, STMT_WHILE, condition);
}
struct stmt *stmt_check(struct kernel *k, struct stmt **tail, expr_id condition, status code, const char *text,
                        const expr_id shown[STATUS_SHOWN]) {
  struct stmt *s = stmt_new(k, tail, STMT_CHECK, condition);
  s->code = code;
  s->text = text;
  memcpy(s->shown, shown, sizeof s->shown);
  return s;
}

static bool is_made(const struct stmt *s, bool any_mark) {
  if (s->kind == STMT_FOR && (s->run == RUN_TASKS || s->run == RUN_LANES || (any_mark && s->run != RUN_PLAIN)))
    return true;
  if (s->kind == STMT_BUFFER || s->kind == STMT_FETCH)
    return true;
  for (const struct stmt *t = s->body; t; t = t->next)
    if (is_made(t, any_mark))
      return true;
  for (const struct stmt *t = s->otherwise; t; t = t->next)
    if (is_made(t, any_mark))
      return true;
  return false;
}
bool stmt_is_scheduled(const struct stmt *s) { return is_made(s, false); }
bool stmt_is_marked(const struct stmt *s) { return is_made(s, true); }
bool stmts_are_marked(const struct stmt *block) {
  while (block && !stmt_is_marked(block))
    block = block->next;
  return block != NULL;
}

const char *const loop_run_words[LOOP_RUNS] = {
  [RUN_PLAIN] = "plain",   [RUN_TASKS] = "tasks",     [RUN_LANES] = "lanes",
  [RUN_UNROLL] = "unroll", [RUN_VECTORS] = "vectors", [RUN_TOGETHER] = "together",
};
bool run_takes_width(enum loop_run run, int64_t width) {
  switch (run) {
  case RUN_LANES: return width >= 1 && width <= LANES_MAX;
  case RUN_VECTORS: return width >= 2 && width <= LANES_MAX && (width & (width - 1)) == 0; /* its lanes are added up in halves */
  case RUN_TOGETHER: return width >= 2 && width <= TOGETHER_MAX;
  default: return width == 0;
  }
}
