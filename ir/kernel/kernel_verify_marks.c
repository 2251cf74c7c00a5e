/* kernel_verify_marks.c: what the marks of a scheduled kernel promise a target: which loops may be tasks, lanes, vectors, together or
 * unrolled, and how registers are indexed. */
#include "ir/kernel/kernel_verify.h"

#include <stdlib.h>

#include "ir/kernel/kernel_lanes.h"

struct marks {
  const struct kernel *k;
  enum loop_run *run; /* by local: the mark of its loop */
  uint32_t *seen;     /* by expression: the statement that looked at it */
  uint32_t stmt;
  bool lanes; /* the statement at hand stands in a loop over lanes */
  struct arena arena;
  struct kernel_uses uses; /* where there is a loop of vectors, or together */
  struct lane_view view;
};

#define WRONG(...) fail(INTERNAL, __VA_ARGS__)

/* Where a statement stands. */
struct place {
  bool top;     /* nothing but `if`s around it */
  bool tasks;   /* directly in a loop of tasks */
  bool lanes;   /* in a loop over lanes, */
  bool vectors; /* or one of vectors */
};

/* ---- registers ---- */

static status check_register(const struct marks *m, uint32_t buffer, const expr_id *index, int count) {
  const struct kernel *k = m->k;
  for (int i = 0; i < count && k->buffers.items[buffer].space == SPACE_REGISTER; i++) {
    const struct expr *x = expr_get(k, index[i]);
    enum loop_run run = x->op == SCALAR_LOCAL ? m->run[x->imm] : RUN_PLAIN;
    bool fits = x->op == SCALAR_CONST || run == RUN_UNROLL || (run == RUN_LANES && i == count - 1);
    if (!fits)
      return WRONG("kernel %s: index %d of registers %u is no constant, unrolled loop or, at the end, lanes", k->name, i, buffer);
  }
  return OK;
}

static status check_expr(struct marks *m, expr_id e) {
  if (e == NO_EXPR || m->seen[e] == m->stmt)
    return OK;
  m->seen[e] = m->stmt;
  const struct expr *x = expr_get(m->k, e);
  if (x->dtype == DTYPE_STRING && m->lanes)
    return WRONG("kernel %s: a string in lanes", m->k->name);
  if (x->op == SCALAR_LOAD)
    TRY(check_register(m, (uint32_t)x->imm, x->count ? &m->k->operands.items[x->first] : NULL, x->count));
  for (int i = 0; i < x->count; i++)
    TRY(check_expr(m, expr_operand(m->k, e, i)));
  return OK;
}

static status check_exprs(struct marks *m, const struct stmt *s) {
  m->stmt++;
  TRY(check_expr(m, s->value));
  for (int i = 0; i < s->index_count; i++)
    TRY(check_expr(m, s->index[i]));
  for (int i = 0; s->kind == STMT_CHECK && i < STATUS_SHOWN; i++)
    TRY(check_expr(m, s->shown[i]));
  return s->kind == STMT_STORE ? check_register(m, s->buffer, s->index, s->index_count) : OK;
}

/* ---- loops ---- */

static bool at_most(const struct kernel *k, expr_id extent, int64_t most) {
  int64_t value;
  if (expr_is_const(k, extent, &value))
    return value <= most;
  const struct expr *x = expr_get(k, extent);
  return x->op == SCALAR_MIN && (at_most(k, expr_operand(k, extent, 0), most) || at_most(k, expr_operand(k, extent, 1), most));
}

static status check_lanes(const struct kernel *k, const struct stmt *s, struct place at) {
  if (s->loop != LOOP_PAR || at.lanes)
    return WRONG("kernel %s: lanes of a loop that is not par, or in lanes", k->name);
  if (!at_most(k, s->value, s->width))
    return WRONG("kernel %s: a loop of more than its %d lanes", k->name, s->width);
  return OK;
}
static status check_tasks(const struct kernel *k, const struct stmt *s, struct place at) {
  return s->loop == LOOP_PAR && (at.top || (at.tasks && !s->next)) ? OK
                                                                   : WRONG("kernel %s: tasks that are no outermost nest of par", k->name);
}
static status check_unroll(const struct kernel *k, const struct stmt *s) {
  int64_t extent;
  bool fits = expr_is_const(k, s->value, &extent) && extent <= UNROLL_MAX;
  return fits ? OK : WRONG("kernel %s: an unrolled loop without a constant extent up to %d", k->name, UNROLL_MAX);
}
static const struct kernel_uses *uses_of(struct marks *m) {
  if (!m->uses.k) {
    kernel_uses_find(m->k, &m->arena, &m->uses);
    lane_view_create(&m->uses, &m->arena, &m->view);
  }
  return &m->uses;
}
/* Vectors: what is inside runs alike in all lanes. */
static bool may_be_vectors(struct marks *m, const struct stmt *s) {
  struct lane_facts facts;
  uses_of(m);
  bool may = lane_view_enter(&m->view, s->local, s->loop == LOOP_PAR, s->body, false, &facts);
  if (may)
    lane_view_leave(&m->view, s->local, s->body, &facts);
  return may;
}
static status check_vectors(struct marks *m, const struct stmt *s, struct place at) {
  const struct kernel *k = m->k;
  if (s->loop == LOOP_SEQ || at.lanes || !may_be_vectors(m, s))
    return WRONG("kernel %s: vectors of a loop in lanes, or whose turns do not run alike", k->name);
  return OK;
}
static status check_together(struct marks *m, const struct stmt *s, struct place at) {
  if (s->loop != LOOP_PAR || at.lanes || turns_part_ways(uses_of(m), s->body, s->local))
    return WRONG("kernel %s: turns together of a loop that is not par, in lanes, or whose turns part their ways", m->k->name);
  return OK;
}
static status check_run(struct marks *m, const struct stmt *s, struct place at) {
  const struct kernel *k = m->k;
  if (!run_takes_width(s->run, s->width))
    return WRONG("kernel %s: a loop of %s of the width %d", k->name, loop_run_words[s->run], s->width);
  switch (s->run) {
  case RUN_PLAIN: return OK;
  case RUN_TASKS: return check_tasks(k, s, at);
  case RUN_LANES: return check_lanes(k, s, at);
  case RUN_UNROLL: return check_unroll(k, s);
  case RUN_VECTORS: return check_vectors(m, s, at);
  case RUN_TOGETHER: return check_together(m, s, at);
  }
  return WRONG("kernel %s: a loop that runs in no way", k->name);
}

static status check_block(struct marks *m, const struct stmt *block, struct place at) {
  for (const struct stmt *s = block; s; s = s->next) {
    m->lanes = at.lanes;
    TRY(check_exprs(m, s));
    if (at.lanes && (s->kind == STMT_CHECK || s->kind == STMT_WHILE))
      return WRONG("kernel %s: a check or a while in lanes", m->k->name);
    if (s->kind == STMT_BUFFER && m->k->buffers.items[s->buffer].space == SPACE_TASK && !at.top)
      return WRONG("kernel %s: buffer %u, which all threads share, begins in a loop", m->k->name, s->buffer);
    bool is_loop = s->kind == STMT_FOR;
    struct place below = {
      .top = at.top && s->kind == STMT_IF, .tasks = is_loop && s->run == RUN_TASKS, .lanes = at.lanes, .vectors = at.vectors};
    if (is_loop) {
      TRY(check_run(m, s, (struct place){.top = at.top, .tasks = at.tasks && s == block, .lanes = at.lanes || at.vectors}));
      m->run[s->local] = s->run;
      below.lanes = at.lanes || s->run == RUN_LANES;
      below.vectors = at.vectors || s->run == RUN_VECTORS;
    }
    TRY(check_block(m, s->body, below));
    TRY(check_block(m, s->otherwise, below));
  }
  return OK;
}

status kernel_verify_marks(const struct kernel *k) {
  struct marks m = {.k = k};
  arena_init(&m.arena);
  m.run = calloc(k->locals.count + 1, sizeof *m.run);
  m.seen = calloc(k->exprs.count + 1, sizeof *m.seen);
  status result = check_block(&m, k->body, (struct place){.top = true});
  free(m.run);
  free(m.seen);
  arena_deinit(&m.arena);
  return result;
}
