/* choose_parts.c: sums in parts, where a nest has few results, each the sum of many terms: statistics of channels, a bias' gradient, the
 * norm of a variable. Without, they are the work of one thread, or of several that read the same lines of memory.
 *
 * What decides is the kernel, its sizes and the width of a vector, no cost and no measurement: a sum in parts has another tree. So this is
 * not one of several ways that are compared: it is how such a nest runs. Products are none of these: their tiles are tasks enough.
 *
 * Where the results lie side by side, and so do the terms, a part reads memory in its order, a few vectors of results at a time. */
#include "compiler/schedule/choose.h"
#include "ir/schedule/vectors.h"

#define RESULTS_MAX 4096
#define TERMS_MIN 524288 /* of all results: fewer are over before another thread has begun */
#define PART_TERMS 32768
#define PARTS_USUAL 16
#define PARTS_MAX 256
#define RESULT_TERMS 65536 /* of one result in a part: of more, terms that are alike add up what each rounds */
#define VECTORS_MIN 4      /* of sums: fewer wait for each other */

struct parts {
  const struct nest *n;
  const struct stmt *par;   /* the loop of the results, where it is the only one; NULL: it is not */
  const struct stmt *block; /* of a result */
  int64_t results;
  int64_t lanes;   /* of a vector of what the sums carry */
  int64_t vectors; /* of results that are added up together; 0: as the target does */
  int loop;        /* the position of the loop looked at */
  int sum;         /* how many sums had parts */
  const char *text, *tasks;
};

/* ---- loops ---- */

static bool is_red(const struct stmt *s) { return s->kind == STMT_FOR && s->loop == LOOP_RED; }
static const struct stmt *only_red(const struct stmt *block) { return block && is_red(block) && !block->next ? block : NULL; }
static double terms_of(const struct kernel *k, const struct stmt *sum) {
  double inner = 1;
  for (const struct stmt *s = sum->body; s; s = s->next) {
    double terms = s->kind == STMT_FOR ? terms_of(k, s) : 1;
    inner = terms > inner ? terms : inner;
  }
  return loop_trips(k, sum->value) * inner;
}

/* ---- which nests ---- */

/* The nest of the results: false where their number is open, or too large. */
static bool find_results(struct parts *p) {
  int loops = 0;
  const struct stmt *s = p->n->top;
  for (p->results = 1; s && s->kind == STMT_FOR && s->loop == LOOP_PAR && !(loops && s->next); s = s->body, loops++) {
    int64_t extent;
    if (!expr_is_const(p->n->k, s->value, &extent) || extent < 1 || extent > RESULTS_MAX)
      return false;
    p->results *= extent;
    p->par = loops ? NULL : s;
  }
  p->block = s;
  p->loop = p->n->first_loop + loops;
  return p->results <= RESULTS_MAX && s;
}
/* A sum at the kernel's top, beside nothing but its like: one result. */
static bool stands_alone(const struct parts *p) {
  for (const struct stmt *s = p->n->k->body; s; s = s->next)
    if ((s->kind == STMT_FOR && !is_red(s)) || s->kind == STMT_IF)
      return false;
  return is_red(p->n->top);
}

/* Whether all that e loads lies side by side for neighbouring results, or is the same for all. */
static bool lies_along(const struct kernel *k, expr_id e, uint32_t local) {
  const struct expr *x = expr_get(k, e);
  if (!expr_reads_local(k, e, local))
    return true;
  if (x->op != SCALAR_LOAD) {
    for (int i = 0; i < x->count; i++)
      if (!lies_along(k, expr_operand(k, e, i), local))
        return false;
    return true;
  }
  for (int i = 0; i + 1 < x->count; i++)
    if (expr_reads_local(k, expr_operand(k, e, i), local))
      return false;
  const struct expr *last = expr_get(k, expr_operand(k, e, x->count - 1));
  return last->op == SCALAR_LOCAL && last->imm == local;
}
/* What a sum carries. */
struct carried {
  int count;
  int64_t bytes; /* of the widest */
};
/* Also finds what the sums in it carry. */
static bool block_lies_along(const struct kernel *k, const struct stmt *s, uint32_t local, struct carried *carried) {
  for (; s; s = s->next) {
    if (s->kind == STMT_SET) {
      int64_t bytes = (int64_t)dtype_size(expr_get(k, s->value)->dtype);
      carried->count++;
      carried->bytes = bytes > carried->bytes ? bytes : carried->bytes;
    }
    if (s->kind == STMT_IF || s->kind == STMT_WHILE || (s->value != NO_EXPR && !lies_along(k, s->value, local)) ||
        !block_lies_along(k, s->body, local, carried))
      return false;
  }
  return true;
}
/* As many vectors as half of the registers hold sums, that fill the results if they can. */
static void find_vectors(struct parts *p) {
  const struct kernel *k = p->n->k;
  struct carried most = {1, 1};
  for (const struct stmt *s = p->block; p->par && s; s = s->next) {
    struct carried carried = {0};
    if (is_red(s) && !block_lies_along(k, s->body, p->par->local, &carried))
      return;
    most.count = carried.count > most.count ? carried.count : most.count;
    most.bytes = carried.bytes > most.bytes ? carried.bytes : most.bytes;
  }
  p->lanes = p->n->machine->vector_bytes / most.bytes;
  int64_t fit = p->n->machine->registers / 2 / most.count, all = divide_up(p->results, p->lanes);
  if (!p->par || all < VECTORS_MIN || fit < VECTORS_MIN)
    return;
  p->vectors = all < fit ? all : fit;
  for (int64_t v = p->vectors; v >= VECTORS_MIN; v--)
    if (p->results % (v * p->lanes) == 0) {
      p->vectors = v;
      return;
    }
}

/* ---- steps ---- */

static void add_text(struct parts *p, const char *step) { p->text = p->text ? arena_printf(p->n->arena, "%s; %s", p->text, step) : step; }

/* The loop whose turns are dealt to parts: the sum's outermost, together with those in it until there are turns for all. */
static const char *dealt_loop(struct parts *p, const struct stmt **sum, int64_t parts, double *turns, const char *number, int *loops) {
  struct arena *a = p->n->arena;
  const char *fused = arena_printf(a, "fuse i%d", p->loop);
  *turns = loop_trips(p->n->k, (*sum)->value);
  *loops = 1;
  for (const struct stmt *s = only_red((*sum)->body); s && *turns < (double)parts; s = only_red(s->body), ++*loops) {
    *turns *= loop_trips(p->n->k, s->value);
    fused = arena_printf(a, "%s i%d", fused, p->loop + *loops);
    *sum = s;
  }
  if (*loops == 1)
    return arena_printf(a, "i%d", p->loop);
  add_text(p, arena_printf(a, "%s -> pt%s", fused, number));
  return arena_printf(a, "pt%s", number);
}
/* So many that each is worth a task, but no more than usual unless a result's own terms ask for it; partial sums stay few. */
static int64_t parts_of(const struct parts *p, double terms) {
  int64_t most = PARTS_USUAL;
  while (most < PARTS_MAX && terms / (double)(p->results * most) > RESULT_TERMS && p->results * most < PARTS_USUAL * RESULTS_MAX)
    most *= 2;
  return terms / PART_TERMS < (double)most ? (int64_t)(terms / PART_TERMS) : most;
}
static void add_sum(struct parts *p, const struct stmt *sum) {
  struct arena *a = p->n->arena;
  double terms = terms_of(p->n->k, sum) * (double)p->results;
  int64_t parts = parts_of(p, terms);
  if (terms < TERMS_MIN)
    return;
  const char *number = p->n->number || p->sum ? arena_printf(a, "%d_%d", p->n->number, p->sum) : "";
  double turns; /* an open loop's may be more than an integer holds */
  int loops;
  const char *on = dealt_loop(p, &sum, parts, &turns, number, &loops), *under = "";
  if (turns < 2)
    return;
  add_text(p, arena_printf(a, "part %s %lld -> po%s pi%s ps%s", on, turns < (double)parts ? (long long)turns : (long long)parts, number,
                           number, number));
  for (const struct stmt *s = only_red(sum->body); s; s = only_red(s->body), loops++)
    under = arena_printf(a, "%s i%d", under, p->loop + loops);
  if (p->vectors)
    add_text(p, arena_printf(a, "sink ri%d under pi%s%s in register", p->n->number, number, under));
  p->tasks = arena_printf(a, "%s po%s", p->tasks, number);
  p->sum++;
}
static void add_sums(struct parts *p) {
  struct arena *a = p->n->arena;
  int m = p->n->number;
  if (p->vectors)
    add_text(p, arena_printf(a, "split i%d %lld -> ro%d ri%d", p->n->first_loop, (long long)(p->vectors * p->lanes), m, m));
  for (const struct stmt *s = p->block; s; s = s->next) {
    if (is_red(s))
      add_sum(p, s);
    p->loop += stmt_loops(s);
  }
  if (p->vectors)
    add_text(p, arena_printf(a, "run%s ro%d tasks; run ri%d lanes", p->tasks, m, m));
}

void propose_parts(const struct nest *n, struct candidates *out) {
  struct parts p = {.n = n, .tasks = ""};
  if (!find_results(&p) || (p.block == n->top && !stands_alone(&p)))
    return;
  find_vectors(&p);
  if (p.block == n->top)
    add_sum(&p, n->top);
  else
    add_sums(&p);
  if (p.sum && nest_allows(n, p.text))
    out->items.items[0].steps = p.text;
}
