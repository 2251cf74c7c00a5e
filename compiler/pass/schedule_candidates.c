/* schedule_candidates.c: see schedule_candidates.h. */
#include "compiler/pass/schedule_candidates.h"

#include "base/map.h"
#include "compiler/edit/part_walk.h"
#include "compiler/schedule/choose.h"

struct printer {
  FILE *out;
  struct map known; /* by kernel_hash */
};

static void print_nest(const struct printer *p, const struct nest *n, const char *cpu) {
  struct candidates all = {0};
  nest_candidates(n, &all);
  uint32_t best = candidates_cheapest(n, &all);
  if (all.items.count > 1)
    fprintf(p->out, "%s, nest %d, on %s\n", n->k->name, n->number, cpu);
  for (uint32_t i = n->shared > 0; all.items.count > 1 && i < all.items.count; i++) {
    const struct candidate *c = &all.items.items[i];
    fprintf(p->out, "%c %12.0f  ", i == best ? '>' : ' ', c->cycles);
    fprintf(p->out, "%s\n", c->steps ? candidate_text(c, n->arena) : PLAIN_LOOPS);
  }
  vec_free(&all.items);
}

static status visit(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  struct printer *p = self;
  struct kernel_uses uses;
  uint32_t found;
  (void)part;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    const char *key = n && n->op == FLOW_KERNEL ? kernel_hash_text(kernel_hash(n->kernel), &b->arena) : NULL;
    if (!key || map_find(&p->known, key, &found))
      continue;
    map_insert(&p->known, key, id);
    for (uint32_t c = 0; c < b->cpus.count; c++) {
      const char *cpu = b->cpus.items[c].name;
      const struct machine *machine = cpu_machine(&b->cpus, c);
      int shared = schedule_shared_loops(n->kernel, machine, &b->arena);
      struct nest nest = nest_first(n->kernel, &uses, machine, &b->arena);
      for (nest.shared = shared; nest.top; nest_next(&nest))
        print_nest(p, &nest, cpu);
    }
  }
  return OK;
}

status candidates_print(struct build *b, FILE *out) {
  struct printer p = {.out = out};
  status result = part_each_flow(b, visit, &p);
  map_deinit(&p.known);
  return result;
}
