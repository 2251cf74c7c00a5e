/* schedule_apply.c: runs the steps of a schedule over a copy of the kernel. */
#include <stdlib.h>
#include <string.h>

#include "ir/schedule/schedule_rewrite.h"

/* ---- before the steps ---- */

/* Loops without a name get the one that the text shows. */
static void name_by_position(struct kernel *k, struct stmt *s, uint32_t *count) {
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR && !loop_name(k, s))
      k->locals.items[s->local].name = arena_printf(k->arena, "i%u", (*count)++);
    name_by_position(k, s->body, count);
    name_by_position(k, s->otherwise, count);
  }
}

/* ---- name ---- */

static status step_name(struct kernel *k, const struct step *s) {
  for (int i = 0; i < name_count(s->on); i++) {
    loops_found found = {0};
    find_loops(k->body, k, s->on[i], &found);
    for (uint32_t j = 0; j < found.count; j++)
      k->locals.items[found.items[j]->local].name = s->made[i];
    uint32_t count = found.count;
    vec_free(&found);
    if (!count || !kernel_is_loop_name(s->made[i]))
      return count ? REFUSED("'%s' is no name for a loop", s->made[i]) : REFUSED("there is no loop %s", s->on[i]);
  }
  return OK;
}

/* ---- after the steps ---- */

static bool is_position(const char *name) { return name[0] == 'i' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1); }

static void append_stmt(struct stmt **block, struct stmt *behind) {
  while (*block)
    block = &(*block)->next;
  *block = behind;
}

/* The body of a loop of one turn, with 0 for its variable, stands where the loop stood. */
static void unwrap(struct kernel *k, struct stmt **at) {
  struct stmt *loop = *at, *body = NULL;
  struct copy c;
  copy_begin(&c, k, k);
  c.local[loop->local] = expr_int(k, DTYPE_INT64, 0);
  copy_stmts(&c, loop->body, NULL, &body);
  copy_end(&c);
  append_stmt(&body, loop->next);
  *at = body;
}

static bool is_single(const struct kernel *k, const struct stmt *s) {
  int64_t extent;
  return s->kind == STMT_FOR && (s->run == RUN_PLAIN || s->run == RUN_UNROLL) && expr_is_const(k, s->value, &extent) && extent == 1;
}
static void tidy(struct kernel *k, struct stmt **at) {
  while (*at) {
    struct stmt *s = *at;
    int64_t extent;
    if (s->kind == STMT_FOR && (!s->body || (expr_is_const(k, s->value, &extent) && extent < 1))) {
      *at = s->next;
      continue;
    }
    if (is_single(k, s)) {
      unwrap(k, at);
      continue;
    }
    if (s->kind == STMT_IF && expr_is_const(k, s->value, &extent)) {
      *at = extent ? s->body : s->otherwise;
      append_stmt(at, s->next);
      continue;
    }
    if (s->kind == STMT_FOR && is_position(loop_name(k, s)))
      k->locals.items[s->local].name = NULL;
    tidy(k, &s->body);
    tidy(k, &s->otherwise);
    at = &s->next;
  }
}

/* ---- scratch ---- */

static void note_stores(const struct stmt *s, bool *used) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE)
      used[s->buffer] = true;
    note_stores(s->body, used);
    note_stores(s->otherwise, used);
  }
}
/* Scratch that nothing uses any more is one element. k is new: all its expressions are used. */
static void shrink_unused(struct kernel *k) {
  bool *used = calloc(k->buffers.count + 1, 1);
  note_stores(k->body, used);
  for (expr_id e = 1; e < k->exprs.count; e++)
    if (expr_get(k, e)->op == SCALAR_LOAD)
      used[expr_get(k, e)->imm] = true;
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    struct kernel_buffer *b = &k->buffers.items[i];
    if (b->mode != BUFFER_SCRATCH || used[i])
      continue;
    b->dims = ARENA_ARRAY(k->arena, kernel_dim, b->rank + 1);
    for (int d = 0; d < b->rank; d++)
      b->dims[d] = 1;
  }
  free(used);
}

/* ---- applying ---- */

static status apply_step(struct kernel *k, const struct step *s) {
  switch (s->op) {
  case STEP_NAME: return step_name(k, s);
  case STEP_SPLIT: return step_split(k, s);
  case STEP_FUSE: return step_fuse(k, s);
  case STEP_ORDER: return step_order(k, s);
  case STEP_RUN: return step_run(k, s);
  case STEP_SINK: return step_sink(k, s);
  case STEP_FETCH: return step_fetch(k, s);
  case STEP_FMA: return step_fma(k, s);
  case STEP_CUT: return step_cut(k, s);
  case STEP_STAGE: return step_stage(k, s);
  case STEP_PART: return step_part(k, s);
  case STEP_JOIN: return step_join(k, s);
  case STEP_PAIR: return step_pair(k, s);
  }
  return REFUSED("a step of no kind");
}

/* A failure of step `number`, told with its text. */
static status at_step(const struct variant *v, uint32_t number, struct arena *arena) {
  const char *why = arena_strdup(arena, status_text());
  struct schedule one = {0};
  vec_push(&one.variants, (struct variant){0});
  vec_push(&one.variants.items[0].steps, v->steps.items[number]);
  return REFUSED("step %u, %s: %s", number + 1, schedule_print(&one, arena), why);
}

/* What the steps make of k, in `to`, an empty kernel. */
static status apply_steps(const struct kernel *k, const struct variant *v, struct kernel *to) {
  kernel_append(k, to, &to->body);
  to->known_size = v->size;
  to->known_below = v->below;
  uint32_t count = 0;
  name_by_position(to, to->body, &count);
  for (uint32_t i = 0; i < v->steps.count; i++)
    if (apply_step(to, &v->steps.items[i]) != OK)
      return at_step(v, i, to->arena);
  kernel_simplify(to);
  tidy(to, &to->body);
  if (kernel_verify(to) != OK)
    return REFUSED("the schedule's result: %s", arena_strdup(to->arena, status_text()));
  return OK;
}

/* The place for the variant's statements: the block at *tail, or a branch there. */
static struct stmt **open_variant(struct kernel *k, const struct variant *v, struct stmt ***tail) {
  if (!v->below)
    return *tail;
  expr_id holds = expr_binary(k, SCALAR_LT, expr_size(k, v->size), expr_int(k, DTYPE_INT64, v->below));
  struct stmt *s = stmt_if(k, *tail, holds);
  *tail = &s->otherwise;
  return &s->body;
}

status schedule_apply(const struct kernel *k, const struct schedule *s, struct arena *arena, struct kernel **out) {
  struct kernel *result = kernel_empty(k, arena);
  struct stmt **tail = &result->body;
  status failed = OK;
  for (uint32_t i = 0; i < s->variants.count && failed == OK; i++) {
    const struct variant *v = &s->variants.items[i];
    struct arena work;
    arena_init(&work);
    struct kernel *scheduled = kernel_empty(k, &work);
    failed = v->below && v->size >= k->size_count ? REFUSED("there is no size n%u", v->size) : apply_steps(k, v, scheduled);
    if (failed == OK)
      kernel_append(scheduled, result, open_variant(result, v, &tail));
    kernel_free(scheduled);
    arena_deinit(&work);
  }
  if (failed != OK)
    return failed;
  shrink_unused(result);
  *out = result;
  return OK;
}

struct kernel *schedule_copy(const struct kernel *k, struct arena *arena) {
  struct kernel *to = kernel_empty(k, arena);
  kernel_append(k, to, &to->body);
  return to;
}
