/* choose.c: the cheapest candidate of each nest of a kernel; see choose.h. */
#include "compiler/schedule/choose.h"

#include <string.h>

void nest_candidates(const struct nest *n, struct candidates *out) {
  struct contraction c;
  vec_push(&out->items, (struct candidate){0});
  if (contraction_find(n->uses, n->top, &c)) {
    propose_products(n, &c, out);
    propose_filters(n, &c, out);
  }
}

static int count_loops(const struct stmt *s) {
  int count = 0;
  for (; s; s = s->next)
    count += (s->kind == STMT_FOR) + count_loops(s->body) + count_loops(s->otherwise);
  return count;
}
static int loops_of(const struct stmt *s) { return (s->kind == STMT_FOR) + count_loops(s->body) + count_loops(s->otherwise); }

/* What a kernel's form does not allow the steps themselves refuse: generators look at sizes and roles alone. */
static bool applies(const struct nest *n, const struct candidate *c) {
  struct schedule s = {0};
  struct kernel *out;
  return schedule_parse(c->steps, n->arena, &s) == OK && schedule_apply(n->k, &s, n->arena, &out) == OK;
}
static struct candidate cheapest(const struct nest *n) {
  struct candidates all = {0};
  nest_candidates(n, &all);
  struct candidate best = all.items.items[0];
  for (uint32_t i = 1; i < all.items.count; i++)
    if (all.items.items[i].cycles < best.cycles && applies(n, &all.items.items[i]))
      best = all.items.items[i];
  vec_free(&all.items);
  return best;
}

const char *schedule_choose(const struct kernel *k, const struct machine *machine, struct arena *arena) {
  struct kernel_uses uses;
  const char *text = NULL;
  kernel_uses_find(k, arena, &uses);
  struct nest n = {.k = k, .uses = &uses, .machine = machine, .arena = arena};
  for (const struct stmt *s = k->body; s; s = s->next, n.number++) {
    n.top = s;
    struct candidate best = cheapest(&n);
    n.first_loop += loops_of(s);
    if (!best.steps)
      continue;
    if (best.below && !k->body->next)
      return arena_printf(arena, "when n%u < %lld: %s else:", best.size, (long long)best.below, best.steps);
    if (!best.below)
      text = text ? arena_printf(arena, "%s; %s", text, best.steps) : best.steps;
  }
  return text;
}
