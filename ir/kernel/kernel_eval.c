/* kernel_eval.c: the interpreter. Each statement's expressions are evaluated with a memo that lives as long as that one
 * execution, so that shared subexpressions cost once and loads see the buffers as they are at that point. What hangs on constants, sizes
 * and counters of loops alone is evaluated once for a turn of the innermost of these loops, or for the kernel. A red loop of vectors is run
 * lane by lane, and the lanes' sums are added up as targets do it: the same bits. */
#include "ir/kernel/kernel_eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel_lanes.h"
#include "ir/kernel/scalar.h"

/* How often a value may become another one: never, with each turn of a loop so deep, or with each statement. */
enum { LEVEL_NEVER, LEVEL_LOOP, LEVEL_STATEMENT = UINT8_MAX };

struct eval {
  const struct kernel *k;
  const struct eval_input *in;
  struct cell *memo;    /* one for each expression */
  uint64_t *memo_epoch; /* when the memo was made */
  uint8_t *level;       /* of each expression */
  uint8_t *local_level;
  uint64_t epoch;                        /* counts what is executed */
  uint64_t changed[LEVEL_STATEMENT + 1]; /* by level: the last epoch of it */
  struct cell *locals;
  void **scratch;
  uint8_t **stored;            /* by buffer of a block, by element: whether it was stored since the block began */
  int64_t (*dims)[LIMIT_RANK]; /* of each buffer; -1: not known */
  struct {
    const struct stmt *loop; /* of vectors, of which the turns of one lane run; NULL: all turns of all loops do */
    int64_t lane;
  } split;
  struct arena arena;
  struct kernel_uses uses; /* where a loop is of vectors */
  int64_t steps;
  status failed; /* why evaluation ended */
};

static struct cell cell_bits(int64_t bits) { return (struct cell){.kind = CELL_BITS, .bits = bits}; }
static struct cell cell_unknown(void) { return (struct cell){.kind = CELL_UNKNOWN}; }

/* A dim as a cell: constants are bits. */
static struct cell cell_of_dim(const struct dim_table *t, dim d) {
  int64_t value;
  if (d == NO_DIM)
    return cell_unknown();
  return dim_is_const(t, d, &value) ? cell_bits(value) : (struct cell){.kind = CELL_DIM, .d = d};
}

static void begin(struct eval *ev, uint8_t level) { ev->changed[level] = ++ev->epoch; }

static void eval_anew(struct eval *ev, expr_id id);

/* The value lies in the memo until the next statement. */
static inline const struct cell *eval_expr(struct eval *ev, expr_id id) {
  if (ev->memo_epoch[id] < ev->changed[ev->level[id]])
    eval_anew(ev, id);
  return &ev->memo[id];
}

/* ---- memory ---- */

static int64_t memory_load(enum dtype dtype, const void *at) {
  switch (dtype_size(dtype)) {
  case 1: return scalar_wrap(dtype, *(const uint8_t *)at);
  case 2: return scalar_wrap(dtype, *(const uint16_t *)at);
  case 4: return scalar_wrap(dtype, *(const int32_t *)at);
  default: return *(const int64_t *)at;
  }
}
static void memory_store(enum dtype dtype, void *at, int64_t bits) { memcpy(at, &bits, dtype_size(dtype)); }

/* The flat element number; false when an index is unknown or out of bounds. */
static bool flat_index(struct eval *ev, uint32_t buffer, const expr_id *index, int64_t *out) {
  const struct kernel_buffer *b = &ev->k->buffers.items[buffer];
  int64_t at = 0;
  for (int i = 0; i < b->rank; i++) {
    const struct cell *c = eval_expr(ev, index[i]);
    int64_t n = ev->dims[buffer][i];
    if (c->kind != CELL_BITS || n < 0)
      return false;
    if (c->bits < 0 || c->bits >= n) {
      ev->failed =
        fail(INTERNAL, "kernel %s: index %lld of buffer %s is outside of [0,%lld)", ev->k->name, (long long)c->bits, b->name, (long long)n);
      return false;
    }
    at = at * n + c->bits;
  }
  *out = at;
  return true;
}

static bool is_own(const struct kernel_buffer *b) { return b->mode == BUFFER_SCRATCH || b->mode == BUFFER_LOCAL; }

static struct cell load(struct eval *ev, const struct expr *e) {
  uint32_t buffer = (uint32_t)e->imm;
  const struct kernel_buffer *b = &ev->k->buffers.items[buffer];
  int64_t at;
  if (!flat_index(ev, buffer, &ev->k->operands.items[e->first], &at))
    return cell_unknown();
  bool complex = dtype_is_complex(b->dtype);
  at = complex ? at * 2 + e->part : at;
  if (ev->stored[buffer] && !ev->stored[buffer][at]) {
    ev->failed = fail(INTERNAL, "kernel %s: element %lld of buffer %s is loaded but was not stored", ev->k->name, (long long)at, b->name);
    return cell_unknown();
  }
  const struct eval_buffer *source = &ev->in->buffers[buffer];
  if (!is_own(b) && source->cells)
    return source->cells[at];
  const char *memory = is_own(b) ? ev->scratch[buffer] : source->memory;
  if (!memory)
    return cell_unknown();
  if (b->dtype == DTYPE_STRING)
    return (struct cell){.kind = CELL_STRING, .text = ((const struct string_view *)(const void *)memory)[at]};
  enum dtype element = dtype_real(b->dtype);
  return cell_bits(memory_load(element, memory + at * (int64_t)dtype_size(element)));
}

static void store(struct eval *ev, const struct stmt *s) {
  const struct kernel_buffer *b = &ev->k->buffers.items[s->buffer];
  struct cell value = *eval_expr(ev, s->value);
  int64_t at;
  if (!flat_index(ev, s->buffer, s->index, &at)) {
    if (ev->failed == OK)
      ev->failed = ABORTED;
    return;
  }
  at = dtype_is_complex(b->dtype) ? at * 2 + s->part : at;
  const struct eval_buffer *target = &ev->in->buffers[s->buffer];
  if (!is_own(b) && target->cells) {
    target->cells[at] = value;
    return;
  }
  char *memory = is_own(b) ? ev->scratch[s->buffer] : target->memory;
  if (ev->stored[s->buffer])
    ev->stored[s->buffer][at] = 1;
  enum dtype element = dtype_real(b->dtype);
  if (value.kind == CELL_STRING)
    ((struct string_view *)(void *)memory)[at] = value.text;
  else if (value.kind == CELL_BITS && memory)
    memory_store(element, memory + at * (int64_t)dtype_size(element), value.bits);
  else if (ev->failed == OK)
    ev->failed = ABORTED;
}

/* ---- operations ---- */

static int string_compare(struct string_view a, struct string_view b) {
  uint64_t n = a.size < b.size ? a.size : b.size;
  int c = n ? memcmp(a.data, b.data, n) : 0;
  return c ? c : a.size < b.size ? -1 : a.size > b.size;
}

static struct cell compare_strings(enum scalar_op op, struct string_view a, struct string_view b) {
  int c = string_compare(a, b);
  switch (op) {
  case SCALAR_EQ: return cell_bits(c == 0);
  case SCALAR_NE: return cell_bits(c != 0);
  case SCALAR_LT: return cell_bits(c < 0);
  default: return cell_bits(c <= 0);
  }
}

static struct cell known_or_not(int answer) { return answer < 0 ? cell_unknown() : cell_bits(answer); }

/* An operation over integers of which some are dims. Widths of i32 and i64 alike: shapes do not overflow 32 bits where
 * TensorFlow computes them in 32 bits. */
static struct cell eval_dims(struct dim_table *t, enum scalar_op op, const struct cell *c, int count) {
  dim v[3] = {NO_DIM, NO_DIM, NO_DIM};
  for (int i = 0; i < count; i++)
    v[i] = c[i].kind == CELL_DIM ? c[i].d : dim_const(t, c[i].bits);
  dim zero = dim_const(t, 0);
  switch (op) {
  case SCALAR_ADD: return cell_of_dim(t, dim_add(t, v[0], v[1]));
  case SCALAR_SUB: return cell_of_dim(t, dim_sub(t, v[0], v[1]));
  case SCALAR_MUL: return cell_of_dim(t, dim_mul(t, v[0], v[1]));
  case SCALAR_NEG: return cell_of_dim(t, dim_sub(t, zero, v[0]));
  case SCALAR_FLOORDIV: return cell_of_dim(t, dim_floordiv(t, v[0], v[1]));
  case SCALAR_FLOORMOD: return cell_of_dim(t, dim_mod(t, v[0], v[1]));
  case SCALAR_DIV: /* truncation is floor where both are >= 0 */
    return dim_less(t, v[0], zero) == 0 && dim_less(t, zero, v[1]) == 1 ? cell_of_dim(t, dim_floordiv(t, v[0], v[1])) : cell_unknown();
  case SCALAR_MIN: return cell_of_dim(t, dim_min(t, v[0], v[1]));
  case SCALAR_MAX: return cell_of_dim(t, dim_max(t, v[0], v[1]));
  case SCALAR_ABS: return dim_less(t, v[0], zero) == 0 ? cell_of_dim(t, v[0]) : cell_unknown();
  case SCALAR_EQ: return known_or_not(dim_equal(t, v[0], v[1]));
  case SCALAR_NE: return known_or_not(dim_equal(t, v[0], v[1]) < 0 ? -1 : !dim_equal(t, v[0], v[1]));
  case SCALAR_LT: return known_or_not(dim_less(t, v[0], v[1]));
  case SCALAR_LE: return known_or_not(dim_less(t, v[1], v[0]) < 0 ? -1 : !dim_less(t, v[1], v[0]));
  default: return cell_unknown();
  }
}

/* An operation of which an operand is not bits. */
static struct cell eval_partly(struct eval *ev, const struct expr *e, const expr_id *operands) {
  struct cell c[3];
  bool any_unknown = false, of_bools = ev->k->exprs.items[operands[0]].dtype == DTYPE_BOOL;
  for (int i = 0; i < e->count; i++) {
    c[i] = *eval_expr(ev, operands[i]);
    any_unknown = any_unknown || c[i].kind == CELL_UNKNOWN;
  }
  if (e->op == SCALAR_SELECT)
    return c[0].kind == CELL_BITS ? c[0].bits ? c[1] : c[2] : cell_unknown();
  if (e->op == SCALAR_AND && of_bools)
    return (c[0].kind == CELL_BITS && !c[0].bits) || (c[1].kind == CELL_BITS && !c[1].bits) ? cell_bits(0) : cell_unknown();
  if (e->op == SCALAR_OR && of_bools)
    return (c[0].kind == CELL_BITS && c[0].bits) || (c[1].kind == CELL_BITS && c[1].bits) ? cell_bits(1) : cell_unknown();
  if (any_unknown)
    return cell_unknown();
  if (c[0].kind == CELL_STRING)
    return c[1].kind == CELL_STRING ? compare_strings((enum scalar_op)e->op, c[0].text, c[1].text) : cell_unknown();
  if (e->op == SCALAR_CAST)
    return e->dtype == DTYPE_INT32 || e->dtype == DTYPE_INT64 ? c[0] : cell_unknown();
  return ev->in->dims ? eval_dims(ev->in->dims, (enum scalar_op)e->op, c, e->count) : cell_unknown();
}

static struct cell eval_operation(struct eval *ev, const struct expr *e) {
  const expr_id *operands = &ev->k->operands.items[e->first];
  uint8_t in[3] = {0, 0, 0};
  int64_t v[3] = {0, 0, 0};
  bool all_bits = true;
  for (int i = 0; i < e->count; i++) {
    const struct cell *c = eval_expr(ev, operands[i]);
    in[i] = ev->k->exprs.items[operands[i]].dtype;
    v[i] = c->bits;
    all_bits = all_bits && c->kind == CELL_BITS;
  }
  return all_bits ? cell_bits(scalar_eval((enum scalar_op)e->op, (enum dtype)e->dtype, in, v)) : eval_partly(ev, e, operands);
}

static void eval_anew(struct eval *ev, expr_id id) {
  struct cell *c = &ev->memo[id];
  const struct expr *e = &ev->k->exprs.items[id];
  switch (e->op) {
  case SCALAR_CONST: /* the only constant string is the empty one */
    *c = e->dtype == DTYPE_STRING ? (struct cell){.kind = CELL_STRING, .text = {"", 0}} : cell_bits(e->imm);
    break;
  case SCALAR_SIZE: *c = ev->in->sizes[e->imm]; break;
  case SCALAR_LOCAL: *c = ev->locals[e->imm]; break;
  case SCALAR_LOAD: *c = load(ev, e); break;
  default: *c = eval_operation(ev, e); break;
  }
  ev->memo_epoch[id] = ev->epoch;
}

/* A number that control flow needs; false ends the evaluation. */
static bool eval_number(struct eval *ev, expr_id id, int64_t *out) {
  begin(ev, LEVEL_STATEMENT);
  const struct cell *c = eval_expr(ev, id);
  if (c->kind != CELL_BITS && ev->failed == OK)
    ev->failed = ABORTED;
  *out = c->bits;
  return ev->failed == OK;
}

/* ---- statements ---- */

static void run_block(struct eval *ev, const struct stmt *s);

static void run_turns(struct eval *ev, const struct stmt *s) {
  int64_t extent, step = s == ev->split.loop ? s->width : 1;
  if (!eval_number(ev, s->value, &extent))
    return;
  for (int64_t i = s == ev->split.loop ? ev->split.lane : 0; i < extent && ev->failed == OK; i += step) {
    ev->locals[s->local] = cell_bits(i);
    begin(ev, ev->local_level[s->local]);
    run_block(ev, s->body);
  }
}

/* ---- sums that are split over lanes ---- */

static int64_t combine(const struct eval *ev, const struct reduction *r, int64_t a, int64_t b) {
  uint8_t dtype = (uint8_t)ev->k->locals.items[r->local].dtype;
  return scalar_eval(r->op, (enum dtype)dtype, (uint8_t[]){dtype, dtype}, (int64_t[]){a, b});
}
/* Of all lanes, in halves. */
static int64_t add_up(const struct eval *ev, const struct reduction *r, int64_t *lanes, int64_t count) {
  for (count /= 2; count; count /= 2)
    for (int64_t i = 0; i < count; i++)
      lanes[i] = combine(ev, r, lanes[i], lanes[count + i]);
  return lanes[0];
}
static void run_split(struct eval *ev, const struct stmt *s, const struct stmt *vectors, const struct reductions *sums) {
  int64_t width = vectors->width, *parts = calloc((size_t)(width * (sums->count + 1)), sizeof *parts);
  struct cell start[REDUCTIONS_MAX];
  for (int i = 0; i < sums->count; i++)
    start[i] = ev->locals[sums->items[i].local];
  ev->split.loop = vectors;
  for (int64_t lane = 0; lane < width && ev->failed == OK; lane++) {
    ev->split.lane = lane;
    for (int i = 0; i < sums->count; i++) {
      uint32_t local = sums->items[i].local;
      ev->locals[local] = cell_bits(reduction_identity(sums->items[i].op, ev->k->locals.items[local].dtype));
    }
    run_turns(ev, s);
    for (int i = 0; i < sums->count; i++) {
      parts[i * width + lane] = ev->locals[sums->items[i].local].bits;
      if (ev->locals[sums->items[i].local].kind != CELL_BITS || start[i].kind != CELL_BITS)
        ev->failed = ev->failed == OK ? ABORTED : ev->failed;
    }
  }
  ev->split.loop = NULL;
  for (int i = 0; i < sums->count; i++) {
    const struct reduction *r = &sums->items[i];
    ev->locals[r->local] = cell_bits(combine(ev, r, start[i].bits, add_up(ev, r, &parts[i * width], width)));
  }
  free(parts);
}
static void run_for(struct eval *ev, const struct stmt *s) {
  struct reductions sums;
  bool may = ev->uses.k && s->loop == LOOP_RED && !ev->split.loop;
  const struct stmt *vectors = may ? split_sum(&ev->uses, s, &sums) : NULL;
  if (vectors)
    run_split(ev, s, vectors, &sums);
  else
    run_turns(ev, s);
}

static void run_check(struct eval *ev, const struct stmt *s) {
  int64_t holds, shown[STATUS_SHOWN] = {0};
  if (!eval_number(ev, s->value, &holds) || holds)
    return;
  for (int i = 0; i < STATUS_SHOWN; i++)
    if (s->shown[i] != NO_EXPR && !eval_number(ev, s->shown[i], &shown[i]))
      return;
  ev->failed = fail_shown(s->code, s->text, shown);
}

static int64_t part_count(const struct eval *ev, uint32_t buffer) {
  const struct kernel_buffer *b = &ev->k->buffers.items[buffer];
  int64_t count = dtype_is_complex(b->dtype) ? 2 : 1;
  for (int i = 0; i < b->rank; i++)
    count *= ev->dims[buffer][i];
  return count;
}

/* What an earlier turn left is gone. */
static void begin_buffer(struct eval *ev, uint32_t buffer) {
  if (ev->stored[buffer])
    memset(ev->stored[buffer], 0, (size_t)part_count(ev, buffer));
}

static void run_stmt(struct eval *ev, const struct stmt *s) {
  int64_t condition;
  begin(ev, LEVEL_STATEMENT);
  if (ev->in->step_limit && ++ev->steps > ev->in->step_limit) {
    ev->failed = ABORTED;
    return;
  }
  switch (s->kind) {
  case STMT_FOR: run_for(ev, s); break;
  case STMT_VAR:
  case STMT_SET: ev->locals[s->local] = *eval_expr(ev, s->value); break;
  case STMT_STORE: store(ev, s); break;
  case STMT_IF:
    if (eval_number(ev, s->value, &condition))
      run_block(ev, condition ? s->body : s->otherwise);
    break;
  case STMT_WHILE:
    while (eval_number(ev, s->value, &condition) && condition)
      run_block(ev, s->body);
    break;
  case STMT_CHECK: run_check(ev, s); break;
  case STMT_BUFFER: begin_buffer(ev, s->buffer); break;
  case STMT_FETCH: break;
  }
}

static void run_block(struct eval *ev, const struct stmt *s) {
  for (; s && ev->failed == OK; s = s->next)
    run_stmt(ev, s);
}

/* ---- entry ---- */

static void prepare_dims(struct eval *ev) {
  for (uint32_t b = 0; b < ev->k->buffers.count; b++) {
    const struct kernel_buffer *buffer = &ev->k->buffers.items[b];
    int64_t count = 1;
    for (int i = 0; i < buffer->rank; i++) {
      kernel_dim d = buffer->dims[i];
      struct cell c = DIM_IS_SIZE(d) ? ev->in->sizes[SIZE_OF_DIM(d)] : cell_bits(d);
      ev->dims[b][i] = c.kind == CELL_BITS ? c.bits : -1;
      count *= ev->dims[b][i];
    }
    if (is_own(buffer) && count > 0)
      ev->scratch[b] = calloc((size_t)count, dtype_size(buffer->dtype));
    if (buffer->mode == BUFFER_LOCAL && count > 0)
      ev->stored[b] = calloc((size_t)part_count(ev, b), 1);
  }
}

/* How deep the loop is that a local counts: one that counts loops of several depths is taken for one that each statement may set. */
static void find_loops(struct eval *ev, const struct stmt *s, uint8_t level) {
  for (; s; s = s->next) {
    uint8_t *known = s->kind == STMT_FOR ? &ev->local_level[s->local] : NULL;
    if (known)
      *known = *known == LEVEL_NEVER || *known == level ? level : LEVEL_STATEMENT;
    find_loops(ev, s->body, (uint8_t)(known && level < LEVEL_STATEMENT ? level + 1 : level));
    find_loops(ev, s->otherwise, level);
  }
}

/* An operation changes as often as any of its operands, which come before it. */
static uint8_t level_of(const struct eval *ev, expr_id id) {
  const struct expr *e = expr_get(ev->k, id);
  uint8_t level = LEVEL_NEVER;
  if (e->op == SCALAR_LOAD)
    return LEVEL_STATEMENT;
  if (e->op == SCALAR_LOCAL)
    return ev->k->locals.items[e->imm].is_loop ? ev->local_level[e->imm] : LEVEL_STATEMENT;
  for (int i = 0; i < e->count; i++) {
    uint8_t operand = ev->level[expr_operand(ev->k, id, i)];
    level = operand > level ? operand : level;
  }
  return level;
}

static void prepare_levels(struct eval *ev) {
  begin(ev, LEVEL_NEVER);
  find_loops(ev, ev->k->body, LEVEL_LOOP);
  for (expr_id id = 1; id < ev->k->exprs.count; id++)
    ev->level[id] = level_of(ev, id);
}

static bool has_vectors(const struct stmt *s) {
  for (; s; s = s->next)
    if ((s->kind == STMT_FOR && s->run == RUN_VECTORS) || has_vectors(s->body) || has_vectors(s->otherwise))
      return true;
  return false;
}

status kernel_eval_cells(const struct kernel *k, const struct eval_input *input) {
  struct eval ev = {.k = k, .in = input};
  ev.memo = calloc(k->exprs.count, sizeof *ev.memo);
  ev.memo_epoch = calloc(k->exprs.count, sizeof *ev.memo_epoch);
  ev.level = calloc(k->exprs.count, 1);
  ev.local_level = calloc(k->locals.count + 1, 1);
  ev.locals = calloc(k->locals.count + 1, sizeof *ev.locals);
  ev.scratch = calloc(k->buffers.count + 1, sizeof *ev.scratch);
  ev.stored = calloc(k->buffers.count + 1, sizeof *ev.stored);
  ev.dims = calloc(k->buffers.count + 1, sizeof *ev.dims);
  prepare_dims(&ev);
  prepare_levels(&ev);
  if (has_vectors(k->body)) {
    arena_init(&ev.arena);
    kernel_uses_find(k, &ev.arena, &ev.uses);
  }
  run_block(&ev, k->body);
  for (uint32_t b = 0; b < k->buffers.count; b++) {
    free(ev.scratch[b]);
    free(ev.stored[b]);
  }
  free(ev.memo);
  free(ev.memo_epoch);
  free(ev.level);
  free(ev.local_level);
  free(ev.locals);
  free(ev.scratch);
  free(ev.stored);
  free(ev.dims);
  if (ev.uses.k)
    arena_deinit(&ev.arena);
  return ev.failed;
}

status kernel_eval(const struct kernel *k, void *const *buffers, const int64_t *sizes) {
  struct eval_buffer *bound = calloc(k->buffers.count + 1, sizeof *bound);
  struct cell *cells = calloc(k->size_count + 1, sizeof *cells);
  for (uint32_t b = 0; b < k->buffers.count; b++)
    bound[b].memory = buffers[b];
  for (uint32_t i = 0; i < k->size_count; i++)
    cells[i] = cell_bits(sizes[i]);
  status result = kernel_eval_cells(k, &(struct eval_input){.buffers = bound, .sizes = cells});
  free(bound);
  free(cells);
  return result;
}
