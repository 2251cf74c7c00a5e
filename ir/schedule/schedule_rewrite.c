/* schedule_rewrite.c: copies of statements with substitution, and the questions that steps ask. */
#include "ir/schedule/schedule_rewrite.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies ---- */

void copy_begin(struct copy *c, const struct kernel *from, struct kernel *to) {
  *c = (struct copy){.from = from, .to = to, .locals = from->locals.count, .buffers = from->buffers.count, .exprs = from->exprs.count};
  c->local = calloc(c->locals + 1, sizeof *c->local);
  c->element = calloc(c->locals + 1, sizeof *c->element);
  c->buffer = calloc(c->buffers + 1, sizeof *c->buffer);
  c->memo = calloc(c->exprs + 1, sizeof *c->memo);
}
void copy_end(struct copy *c) {
  free(c->local);
  free(c->element);
  free(c->buffer);
  free(c->memo);
}

expr_id element_value(struct kernel *k, const struct element *e) {
  expr_id value = expr_load(k, e->buffer, 0, e->index, e->count);
  return e->started == NO_EXPR ? value : expr_select(k, e->started, value, e->start);
}

static expr_id copy_local(struct copy *c, const struct expr *x) {
  uint32_t local = (uint32_t)x->imm;
  if (local < c->locals && c->element[local])
    return element_value(c->to, c->element[local]);
  return local < c->locals && c->local[local] ? c->local[local] : expr_local(c->to, local);
}

static uint32_t copy_buffer(const struct copy *c, uint32_t buffer) {
  return buffer < c->buffers && c->buffer[buffer] ? c->buffer[buffer] - 1 : buffer;
}

expr_id copy_expr(struct copy *c, expr_id e) {
  if (e == NO_EXPR || (e < c->exprs && c->memo[e]))
    return e == NO_EXPR ? NO_EXPR : c->memo[e];
  struct expr x = *expr_get(c->from, e);
  expr_id operands[LIMIT_RANK], r;
  for (int i = 0; i < x.count; i++)
    operands[i] = copy_expr(c, expr_operand(c->from, e, i));
  switch (x.op) {
  case SCALAR_CONST: r = expr_bits(c->to, (enum dtype)x.dtype, x.imm); break;
  case SCALAR_SIZE: r = expr_size(c->to, (uint32_t)x.imm); break;
  case SCALAR_LOCAL: r = copy_local(c, &x); break;
  case SCALAR_LOAD: r = expr_load(c->to, copy_buffer(c, (uint32_t)x.imm), x.part, operands, x.count); break;
  default: r = expr_make(c->to, (enum scalar_op)x.op, (enum dtype)x.dtype, operands, x.count); break;
  }
  if (e < c->exprs)
    c->memo[e] = r;
  return r;
}

/* A local that begins in what is copied. */
static uint32_t copy_new_local(struct copy *c, uint32_t old) {
  struct kernel_local l = c->from->locals.items[old];
  uint32_t made = kernel_add_local(c->to, l.dtype, l.is_loop);
  c->to->locals.items[made].name = l.name ? arena_strdup(c->to->arena, l.name) : NULL;
  c->local[old] = expr_local(c->to, made);
  return made;
}

static struct stmt *stmt_copy(struct copy *c, const struct stmt *s, struct stmt **tail) {
  struct stmt *made = ARENA_NEW(c->to->arena, struct stmt);
  *made = *s;
  made->next = made->body = made->otherwise = NULL;
  made->value = copy_expr(c, s->value);
  if (s->index_count)
    made->index = ARENA_ARRAY(c->to->arena, expr_id, s->index_count);
  for (int i = 0; i < s->index_count; i++)
    made->index[i] = copy_expr(c, s->index[i]);
  for (int i = 0; i < STATUS_SHOWN; i++)
    made->shown[i] = copy_expr(c, s->shown[i]);
  made->buffer = copy_buffer(c, s->buffer);
  while (*tail)
    tail = &(*tail)->next;
  return *tail = made;
}

struct stmt **copy_loop(struct copy *c, const struct stmt *loop, struct stmt **tail) {
  struct stmt *made = stmt_copy(c, loop, tail);
  made->local = copy_new_local(c, loop->local);
  return &made->body;
}

static void copy_to_element(struct copy *c, const struct stmt *s, struct stmt **tail) {
  const struct element *e = c->element[s->local];
  stmt_store(c->to, tail, e->buffer, 0, e->index, e->count, copy_expr(c, s->value));
}

static void copy_block_buffer(struct copy *c, const struct stmt *s, struct stmt **tail) {
  struct kernel_buffer b = c->from->buffers.items[s->buffer];
  c->buffer[s->buffer] = kernel_add_block_buffer(c->to, b.dtype, b.space, b.rank, b.dims) + 1;
  stmt_copy(c, s, tail);
}

static void copy_stmt(struct copy *c, const struct stmt *s, struct stmt **tail) {
  struct stmt *made;
  switch (s->kind) {
  case STMT_FOR: copy_stmts(c, s->body, NULL, copy_loop(c, s, tail)); break;
  case STMT_VAR:
    if (c->element[s->local]) {
      copy_to_element(c, s, tail);
      break;
    }
    made = stmt_copy(c, s, tail);
    made->local = copy_new_local(c, s->local);
    break;
  case STMT_SET:
    if (c->element[s->local]) {
      copy_to_element(c, s, tail);
      break;
    }
    made = stmt_copy(c, s, tail);
    if (c->local[s->local])
      made->local = (uint32_t)expr_get(c->to, c->local[s->local])->imm;
    break;
  case STMT_IF:
  case STMT_WHILE:
    made = stmt_copy(c, s, tail);
    copy_stmts(c, s->body, NULL, &made->body);
    copy_stmts(c, s->otherwise, NULL, &made->otherwise);
    break;
  case STMT_BUFFER: copy_block_buffer(c, s, tail); break;
  case STMT_STORE:
  case STMT_CHECK:
  case STMT_FETCH: stmt_copy(c, s, tail); break;
  }
}

void copy_stmts(struct copy *c, const struct stmt *s, const struct stmt *end, struct stmt **tail) {
  for (; s != end; s = s->next)
    copy_stmt(c, s, tail);
}

void replace_exprs(struct copy *c, struct stmt *s) {
  for (; s; s = s->next) {
    s->value = copy_expr(c, s->value);
    for (int i = 0; i < s->index_count; i++)
      s->index[i] = copy_expr(c, s->index[i]);
    for (int i = 0; i < STATUS_SHOWN; i++)
      s->shown[i] = copy_expr(c, s->shown[i]);
    replace_exprs(c, s->body);
    replace_exprs(c, s->otherwise);
  }
}

/* ---- kernels ---- */

struct kernel *kernel_empty(const struct kernel *k, struct arena *arena) {
  struct kernel *to = kernel_create(arena, k->name);
  for (uint32_t i = 0; i < k->buffers.count && k->buffers.items[i].mode != BUFFER_LOCAL; i++) {
    const struct kernel_buffer *b = &k->buffers.items[i];
    kernel_add_buffer(to, b->dtype, b->mode, b->rank, b->dims);
  }
  to->size_count = k->size_count;
  to->usual = k->usual;
  to->usual_count = k->usual_count;
  return to;
}
void kernel_append(const struct kernel *k, struct kernel *to, struct stmt **tail) {
  struct copy c;
  copy_begin(&c, k, to);
  copy_stmts(&c, k->body, NULL, tail);
  copy_end(&c);
}
void kernel_free(struct kernel *k) {
  vec_free(&k->buffers);
  vec_free(&k->locals);
  vec_free(&k->exprs);
  vec_free(&k->operands);
}

/* ---- loops ---- */

struct stmt *loop_make(struct kernel *k, struct stmt **tail, const struct stmt *like, expr_id extent, const char *name) {
  struct stmt *s = stmt_for(k, tail, like->loop, extent);
  k->locals.items[s->local].name = name;
  return s;
}

void copy_body(struct kernel *k, const struct stmt *loop, expr_id value, struct stmt **tail) {
  struct copy c;
  copy_begin(&c, k, k);
  c.local[loop->local] = value;
  copy_stmts(&c, loop->body, NULL, tail);
  copy_end(&c);
}

void replace_loop(struct stmt *loop, struct stmt *pieces) {
  struct stmt *next = loop->next, **end = &pieces;
  while (*end)
    end = &(*end)->next;
  *end = next;
  *loop = *pieces;
}

/* ---- loops by name ---- */

const char *loop_name(const struct kernel *k, const struct stmt *loop) { return k->locals.items[loop->local].name; }
bool loop_is(const struct kernel *k, const struct stmt *s, const char *name) {
  return s && s->kind == STMT_FOR && loop_name(k, s) && strcmp(loop_name(k, s), name) == 0;
}

void find_loops(struct stmt *block, const struct kernel *k, const char *name, loops_found *out) {
  for (struct stmt *s = block; s; s = s->next) {
    if (loop_is(k, s, name))
      vec_push(out, s);
    find_loops(s->body, k, name, out);
    find_loops(s->otherwise, k, name, out);
  }
}

status each_loop(struct kernel *k, const struct step *s, const char *name, loop_act *act) {
  loops_found found = {0};
  find_loops(k->body, k, name, &found);
  status result = found.count ? OK : REFUSED("there is no loop %s", name);
  for (uint32_t i = found.count; i-- > 0 && result == OK;)
    result = act(k, s, found.items[i]);
  vec_free(&found);
  return result;
}

status loop_check_plain(const struct kernel *k, const struct stmt *loop) {
  return loop->run == RUN_PLAIN ? OK : REFUSED("loop %s is marked", loop_name(k, loop));
}

status step_check_buffer(const struct kernel *k, const struct step *s) {
  bool is_there = s->buffer < k->buffers.count && k->buffers.items[s->buffer].mode != BUFFER_LOCAL;
  return is_there ? OK : REFUSED("there is no such buffer");
}

int name_count(const char *const *names) {
  int n = 0;
  while (n < STEP_LOOPS && names[n])
    n++;
  return n;
}
bool name_listed(const char *const *names, const char *name) {
  for (int i = 0; i < STEP_LOOPS && names[i]; i++)
    if (name && strcmp(names[i], name) == 0)
      return true;
  return false;
}

/* ---- expressions ---- */

/* Of a minimum one bound is enough. */
static bool minimum_at_most(const struct kernel *k, expr_id e, int64_t *most) {
  int64_t a = INT64_MAX, b = INT64_MAX;
  bool any = expr_at_most(k, expr_operand(k, e, 0), &a);
  any = expr_at_most(k, expr_operand(k, e, 1), &b) || any;
  *most = a < b ? a : b;
  return any;
}
bool expr_at_most(const struct kernel *k, expr_id e, int64_t *most) {
  const struct expr *x = expr_get(k, e);
  int64_t by;
  if (expr_is_const(k, e, most))
    return true;
  if (x->op == SCALAR_SIZE && x->imm == k->known_size && k->known_below > 0) {
    *most = k->known_below - 1;
    return true;
  }
  if (x->op == SCALAR_MIN)
    return minimum_at_most(k, e, most);
  bool by_constant = (x->op == SCALAR_ADD || x->op == SCALAR_FLOORDIV || x->op == SCALAR_MAX) &&
                     expr_is_const(k, expr_operand(k, e, 1), &by) && by >= (x->op == SCALAR_FLOORDIV);
  if (!by_constant || !expr_at_most(k, expr_operand(k, e, 0), most))
    return false;
  if (x->op == SCALAR_ADD)
    return !__builtin_add_overflow(*most, by, most);
  *most = x->op == SCALAR_FLOORDIV ? *most / by : *most > by ? *most : by;
  return true;
}

bool expr_never_negative(const struct kernel *k, expr_id e) {
  const struct expr *x = expr_get(k, e);
  switch (x->op) {
  case SCALAR_CONST: return x->imm >= 0;
  case SCALAR_SIZE: return true;
  case SCALAR_LOCAL: return k->locals.items[x->imm].is_loop;
  case SCALAR_ADD:
  case SCALAR_MUL:
  case SCALAR_MIN:
  case SCALAR_DIV:
  case SCALAR_FLOORDIV:
  case SCALAR_FLOORMOD: return expr_never_negative(k, expr_operand(k, e, 0)) && expr_never_negative(k, expr_operand(k, e, 1));
  case SCALAR_MAX: return expr_never_negative(k, expr_operand(k, e, 0)) || expr_never_negative(k, expr_operand(k, e, 1));
  default: return false;
  }
}

bool expr_divides(const struct kernel *k, expr_id e, int64_t by) {
  const struct expr *x = expr_get(k, e);
  switch (x->op) {
  case SCALAR_CONST: return x->imm % by == 0;
  case SCALAR_MUL: return expr_divides(k, expr_operand(k, e, 0), by) || expr_divides(k, expr_operand(k, e, 1), by);
  case SCALAR_ADD:
  case SCALAR_SUB:
  case SCALAR_MIN:
  case SCALAR_MAX: return expr_divides(k, expr_operand(k, e, 0), by) && expr_divides(k, expr_operand(k, e, 1), by);
  default: return by == 1;
  }
}

/* ---- statements ---- */

int stmt_exprs(const struct stmt *s, expr_id *out) {
  int n = 0;
  for (int i = 0; i < s->index_count; i++)
    out[n++] = s->index[i];
  if (s->value != NO_EXPR)
    out[n++] = s->value;
  for (int i = 0; s->kind == STMT_CHECK && i < STATUS_SHOWN; i++)
    if (s->shown[i] != NO_EXPR)
      out[n++] = s->shown[i];
  return n;
}

bool stmts_read_local(const struct kernel *k, const struct stmt *s, const struct stmt *end, uint32_t local) {
  expr_id used[LIMIT_RANK + 4];
  for (; s != end; s = s->next) {
    int n = stmt_exprs(s, used);
    for (int i = 0; i < n; i++)
      if (expr_reads_local(k, used[i], local))
        return true;
    if (stmts_read_local(k, s->body, NULL, local) || stmts_read_local(k, s->otherwise, NULL, local))
      return true;
  }
  return false;
}

bool stmts_set_local(const struct stmt *s, const struct stmt *end, uint32_t local) {
  for (; s != end; s = s->next)
    if ((s->kind == STMT_SET && s->local == local) || stmts_set_local(s->body, NULL, local) || stmts_set_local(s->otherwise, NULL, local))
      return true;
  return false;
}

bool stmts_have(const struct stmt *s, const struct stmt *end, enum stmt_kind kind) {
  for (; s != end; s = s->next)
    if (s->kind == kind || stmts_have(s->body, NULL, kind) || stmts_have(s->otherwise, NULL, kind))
      return true;
  return false;
}
