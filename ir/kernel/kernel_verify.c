/* kernel_verify.c: what every kernel must keep: operands of the right dtype, indices that fit the buffer, locals used where
 * they are alive, stores only to buffers that may be written. */
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel_verify.h"

struct verifier {
  const struct kernel *k;
  uint8_t *alive;   /* by local */
  uint8_t *begun;   /* by buffer: of a block that is open here */
  uint8_t *checked; /* by expression: its own rule holds */
  uint32_t *seen;   /* by expression: the statement in which its locals were looked at */
  uint32_t stmt;
  int depth;
};
#define NESTING_MAX 200

#define WRONG(...) fail(INTERNAL, __VA_ARGS__)

static const char *name_of(const struct kernel *k) { return k->name ? k->name : "?"; }

static status check_index(struct verifier *v, uint32_t buffer, int part, const expr_id *index, int count) {
  const struct kernel *k = v->k;
  if (buffer >= k->buffers.count)
    return WRONG("kernel %s: there is no buffer %u", name_of(k), buffer);
  const struct kernel_buffer *b = &k->buffers.items[buffer];
  if (count != b->rank)
    return WRONG("kernel %s: %d indices for buffer %u of rank %d", name_of(k), count, buffer, b->rank);
  if (part < 0 || part > dtype_is_complex(b->dtype))
    return WRONG("kernel %s: buffer %u has no part %d", name_of(k), buffer, part);
  for (int i = 0; i < count; i++)
    if (index[i] == NO_EXPR || index[i] >= k->exprs.count || expr_get(k, index[i])->dtype != DTYPE_INT64)
      return WRONG("kernel %s: index %d of buffer %u is no i64", name_of(k), i, buffer);
  return OK;
}

static status check_operands(struct verifier *v, const struct expr *x, const uint8_t *in) {
  const struct kernel *k = v->k;
  const char *text = scalar_text(x->op);
  enum dtype own = x->dtype;
  if (x->count != scalar_operands(x->op))
    return WRONG("kernel %s: %s has %d operands, not %d", name_of(k), text, scalar_operands(x->op), x->count);
  if (dtype_is_complex(own))
    return WRONG("kernel %s: %s of a complex dtype", name_of(k), text);
  if (x->op == SCALAR_SELECT) {
    if (in[0] != DTYPE_BOOL || in[1] != in[2] || in[1] != own)
      return WRONG("kernel %s: select(%s, %s, %s) is %s", name_of(k), dtype_short(in[0]), dtype_short(in[1]), dtype_short(in[2]),
                   dtype_short(own));
    return OK;
  }
  for (int i = 1; i < x->count; i++)
    if (in[i] != in[0])
      return WRONG("kernel %s: %s of %s and %s", name_of(k), text, dtype_short(in[0]), dtype_short(in[i]));
  bool compares = x->op == SCALAR_EQ || x->op == SCALAR_NE || x->op == SCALAR_LT || x->op == SCALAR_LE;
  bool owns = x->op == SCALAR_CAST || x->op == SCALAR_BITCAST || x->op == SCALAR_POPCOUNT;
  if (in[0] == DTYPE_STRING && !compares)
    return WRONG("kernel %s: %s of strings", name_of(k), text);
  if (own != (compares ? DTYPE_BOOL : owns ? own : in[0]))
    return WRONG("kernel %s: %s of %s is no %s", name_of(k), text, dtype_short(in[0]), dtype_short(own));
  if (x->op == SCALAR_BITCAST && dtype_size(own) != dtype_size(in[0]))
    return WRONG("kernel %s: bitcast from %s to %s", name_of(k), dtype_short(in[0]), dtype_short(own));
  return OK;
}

/* The rule of one expression, apart from where it stands. */
static status check_rule(struct verifier *v, expr_id e) {
  const struct kernel *k = v->k;
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_NONE || x->op >= SCALAR_OP_COUNT || !dtype_is_valid(x->dtype))
    return WRONG("kernel %s: expression %u is none", name_of(k), e);
  uint8_t in[LIMIT_RANK] = {0};
  if (x->count > LIMIT_RANK || (x->count && (uint64_t)x->first + x->count > k->operands.count))
    return WRONG("kernel %s: expression %u has operands that do not exist", name_of(k), e);
  for (int i = 0; i < x->count; i++) {
    if (expr_operand(k, e, i) >= e || expr_operand(k, e, i) == NO_EXPR)
      return WRONG("kernel %s: expression %u comes before its operands", name_of(k), e);
    in[i] = expr_get(k, expr_operand(k, e, i))->dtype;
  }
  switch (x->op) {
  case SCALAR_CONST: return OK;
  case SCALAR_SIZE: return x->imm >= 0 && x->imm < k->size_count ? OK : WRONG("kernel %s: there is no size %d", name_of(k), (int)x->imm);
  case SCALAR_LOCAL:
    if (x->imm < 0 || x->imm >= k->locals.count || k->locals.items[x->imm].dtype != x->dtype)
      return WRONG("kernel %s: local %d is none of dtype %s", name_of(k), (int)x->imm, dtype_short(x->dtype));
    return OK;
  case SCALAR_LOAD:
    TRY(check_index(v, (uint32_t)x->imm, x->part, x->count ? &k->operands.items[x->first] : NULL, x->count));
    return x->dtype == dtype_real(k->buffers.items[x->imm].dtype) ? OK : WRONG("kernel %s: a load of the wrong dtype", name_of(k));
  default: return check_operands(v, x, in);
  }
}

static status check_begun(const struct verifier *v, uint32_t buffer) {
  bool outside = v->k->buffers.items[buffer].mode == BUFFER_LOCAL && !v->begun[buffer];
  return outside ? WRONG("kernel %s: buffer %u is used outside of its block", name_of(v->k), buffer) : OK;
}

/* The rules of what e is made of, and that its locals are alive here. */
static status check_expr(struct verifier *v, expr_id e) {
  const struct kernel *k = v->k;
  if (e == NO_EXPR || e >= k->exprs.count)
    return WRONG("kernel %s: a statement without its expression", name_of(k));
  if (v->seen[e] == v->stmt)
    return OK;
  v->seen[e] = v->stmt;
  if (!v->checked[e]) {
    TRY(check_rule(v, e));
    v->checked[e] = 1;
  }
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOCAL && !v->alive[x->imm])
    return WRONG("kernel %s: local %d is used outside of its block", name_of(k), (int)x->imm);
  if (x->op == SCALAR_LOAD)
    TRY(check_begun(v, (uint32_t)x->imm));
  for (int i = 0; i < x->count; i++)
    TRY(check_expr(v, expr_operand(k, e, i)));
  return OK;
}

static status check_value(struct verifier *v, expr_id e, enum dtype dtype, const char *what) {
  TRY(check_expr(v, e));
  if (expr_get(v->k, e)->dtype != dtype)
    return WRONG("kernel %s: %s is %s, not %s", name_of(v->k), what, dtype_short(expr_get(v->k, e)->dtype), dtype_short(dtype));
  return OK;
}

static status check_block(struct verifier *v, const struct stmt *s);

static status check_local(struct verifier *v, const struct stmt *s, bool is_loop, bool alive) {
  if (s->local >= v->k->locals.count || v->k->locals.items[s->local].is_loop != is_loop)
    return WRONG("kernel %s: local %u is of the wrong kind", name_of(v->k), s->local);
  if ((v->alive[s->local] != 0) != alive)
    return WRONG("kernel %s: local %u is %s", name_of(v->k), s->local, alive ? "set outside of its block" : "defined twice");
  return OK;
}

static bool name_is_taken(const struct verifier *v, uint32_t local) {
  const char *name = v->k->locals.items[local].name;
  for (uint32_t i = 0; i < v->k->locals.count; i++)
    if (v->alive[i] && v->k->locals.items[i].name && strcmp(v->k->locals.items[i].name, name) == 0)
      return true;
  return false;
}
static status check_loop(struct verifier *v, const struct stmt *s) {
  TRY(check_value(v, s->value, DTYPE_INT64, "the extent of a loop"));
  TRY(check_local(v, s, true, false));
  const char *name = v->k->locals.items[s->local].name;
  if (name && (!kernel_is_loop_name(name) || name_is_taken(v, s->local)))
    return WRONG("kernel %s: loop variable '%s' is no name, or one that is taken here", name_of(v->k), name);
  v->alive[s->local] = 1;
  TRY(check_block(v, s->body));
  v->alive[s->local] = 0;
  return OK;
}

static status check_block_buffer(struct verifier *v, const struct stmt *s) {
  const struct kernel *k = v->k;
  if (s->buffer >= k->buffers.count || k->buffers.items[s->buffer].mode != BUFFER_LOCAL)
    return WRONG("kernel %s: buffer %u begins in a block but is none of one", name_of(k), s->buffer);
  if (v->begun[s->buffer])
    return WRONG("kernel %s: buffer %u begins twice", name_of(k), s->buffer);
  v->begun[s->buffer] = 1;
  return OK;
}
static status check_fetch(struct verifier *v, const struct stmt *s) {
  TRY(check_index(v, s->buffer, s->part, s->index, s->index_count));
  for (int i = 0; i < s->index_count; i++)
    TRY(check_expr(v, s->index[i]));
  bool in_register = v->k->buffers.items[s->buffer].space == SPACE_REGISTER;
  return in_register ? WRONG("kernel %s: a fetch from registers", name_of(v->k)) : check_begun(v, s->buffer);
}

static status check_store(struct verifier *v, const struct stmt *s) {
  TRY(check_index(v, s->buffer, s->part, s->index, s->index_count));
  TRY(check_begun(v, s->buffer));
  const struct kernel_buffer *b = &v->k->buffers.items[s->buffer];
  if (b->mode == BUFFER_IN)
    return WRONG("kernel %s: a store to input %u", name_of(v->k), s->buffer);
  for (int i = 0; i < s->index_count; i++)
    TRY(check_expr(v, s->index[i]));
  return check_value(v, s->value, dtype_real(b->dtype), "what is stored");
}

static status check_stmt(struct verifier *v, const struct stmt *s) {
  v->stmt++;
  switch (s->kind) {
  case STMT_FOR: return check_loop(v, s);
  case STMT_VAR:
    TRY(check_local(v, s, false, false));
    TRY(check_value(v, s->value, v->k->locals.items[s->local].dtype, "the initial value of a var"));
    v->alive[s->local] = 1;
    return OK;
  case STMT_SET: TRY(check_local(v, s, false, true)); return check_value(v, s->value, v->k->locals.items[s->local].dtype, "what is set");
  case STMT_STORE: return check_store(v, s);
  case STMT_IF:
    TRY(check_value(v, s->value, DTYPE_BOOL, "a condition"));
    TRY(check_block(v, s->body));
    return check_block(v, s->otherwise);
  case STMT_WHILE: TRY(check_value(v, s->value, DTYPE_BOOL, "a condition")); return check_block(v, s->body);
  case STMT_CHECK:
    TRY(check_value(v, s->value, DTYPE_BOOL, "a check"));
    for (int i = 0; i < STATUS_SHOWN; i++)
      if (s->shown[i] != NO_EXPR)
        TRY(check_value(v, s->shown[i], DTYPE_INT64, "what a check shows"));
    return s->code == OK ? WRONG("kernel %s: a check that reports OK", name_of(v->k)) : OK;
  case STMT_BUFFER: return check_block_buffer(v, s);
  case STMT_FETCH: return check_fetch(v, s);
  }
  return WRONG("kernel %s: a statement of no kind", name_of(v->k));
}

/* A var and a buffer live to the end of their block. */
static status check_block(struct verifier *v, const struct stmt *s) {
  if (v->depth >= NESTING_MAX)
    return WRONG("kernel %s: nested deeper than %d", name_of(v->k), NESTING_MAX);
  v->depth++;
  for (const struct stmt *t = s; t; t = t->next)
    TRY(check_stmt(v, t));
  for (const struct stmt *t = s; t; t = t->next)
    if (t->kind == STMT_VAR)
      v->alive[t->local] = 0;
    else if (t->kind == STMT_BUFFER)
      v->begun[t->buffer] = 0;
  v->depth--;
  return OK;
}

static status check_block_type(const struct kernel *k, uint32_t i) {
  const struct kernel_buffer *b = &k->buffers.items[i];
  if ((b->mode == BUFFER_LOCAL) != (b->space != SPACE_ARGUMENT))
    return WRONG("kernel %s: buffer %u lies in the wrong space", name_of(k), i);
  if (b->mode != BUFFER_LOCAL && i && k->buffers.items[i - 1].mode == BUFFER_LOCAL)
    return WRONG("kernel %s: buffer %u comes behind one of a block", name_of(k), i);
  for (int d = 0; d < b->rank && b->mode == BUFFER_LOCAL; d++)
    if (DIM_IS_SIZE(b->dims[d]))
      return WRONG("kernel %s: buffer %u of a block has no constant size", name_of(k), i);
  return OK;
}

static status check_buffers(const struct kernel *k) {
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    const struct kernel_buffer *b = &k->buffers.items[i];
    TRY(check_block_type(k, i));
    if (!dtype_is_valid(b->dtype) || b->rank < 0 || b->rank > LIMIT_RANK)
      return WRONG("kernel %s: buffer %u has no dtype or rank", name_of(k), i);
    for (int d = 0; d < b->rank; d++)
      if (DIM_IS_SIZE(b->dims[d]) && SIZE_OF_DIM(b->dims[d]) >= k->size_count)
        return WRONG("kernel %s: buffer %u has a size that does not exist", name_of(k), i);
  }
  return OK;
}

status kernel_verify(const struct kernel *k) {
  TRY(check_buffers(k));
  struct verifier v = {.k = k};
  v.alive = calloc(k->locals.count + 1, sizeof *v.alive);
  v.begun = calloc(k->buffers.count + 1, sizeof *v.begun);
  v.checked = calloc(k->exprs.count + 1, sizeof *v.checked);
  v.seen = calloc(k->exprs.count + 1, sizeof *v.seen);
  bool has_memory = v.alive && v.begun && v.checked && v.seen;
  status result = has_memory ? check_block(&v, k->body) : fail(RESOURCE_EXHAUSTED, "no memory to verify a kernel");
  free(v.alive);
  free(v.begun);
  free(v.checked);
  free(v.seen);
  return result == OK ? kernel_verify_marks(k) : result;
}
