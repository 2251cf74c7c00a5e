/* schedule.c: how kernels run on the CPU: for each distinct one its schedule is chosen (compiler/schedule) and applied, and for the loops
 * that this leaves plain whether they are vectors.
 *
 * A node keeps its kernel, which is what it computes, and beside it the scheduled one, which is that with marks: the CPU's code is written
 * from it. */
#include "compiler/pass/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"
#include "compiler/schedule/choose.h"
#include "compiler/schedule/tune.h"
#include "ir/schedule/machine.h"

/* A distinct kernel of the build, and how each CPU runs it. */
struct distinct {
  const struct kernel *kernel;
  struct scheduled_kernel *made; /* b->cpus.count of them */
  double work;                   /* with --tune */
};
struct scheduler {
  struct map known; /* by kernel_hash -> index into kernels */
  VEC(struct distinct) kernels;
};

static bool is_kernel(const struct flow *f, flow_id id) { return f->nodes.items[id] && f->nodes.items[id]->op == FLOW_KERNEL; }

static status collect(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  struct scheduler *s = self;
  (void)part;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    uint32_t at = s->kernels.count;
    if (!is_kernel(f, id))
      continue;
    struct flow_node *n = f->nodes.items[id];
    const char *key = kernel_hash_text(kernel_hash(n->kernel), &b->arena);
    if (!map_find(&s->known, key, &at)) {
      struct distinct d = {n->kernel, ARENA_ARRAY(&b->arena, struct scheduled_kernel, b->cpus.count), 0};
      map_insert(&s->known, key, at);
      vec_push(&s->kernels, d);
    }
    n->scheduled = s->kernels.items[at].made;
    n->scheduled_count = b->cpus.count;
  }
  return OK;
}

static status schedule_for(struct build *b, const struct kernel *k, uint32_t cpu, struct tuner *tuner, struct scheduled_kernel *out) {
  const struct machine *machine = cpu_machine(&b->cpus, cpu);
  struct kernel *stepped;
  out->cpu = b->cpus.items[cpu].name;
  TRY(schedule_make(k, machine, tuner, &b->arena, &out->steps, &stepped));
  out->kernel = vectors_choose(stepped ? stepped : k, machine, &b->arena);
  if (stepped)
    kernel_free(stepped);
  return OK;
}

/* ---- --tune and --cache ---- */

static bool is_here(const char *cpu) { return strcmp(cpu, "native") == 0; }

static int by_work(const void *a, const void *b) {
  const struct distinct *x = a, *y = b;
  return (x->work < y->work) - (x->work > y->work);
}
/* What takes longest is measured first. */
static status prepare_tuner(struct build *b, struct scheduler *s, struct tuner *tuner) {
  bool any = false;
  for (uint32_t i = 0; i < b->cpus.count; i++)
    any = any || is_here(b->cpus.items[i].name);
  if (!any)
    return fail(INVALID_ARGUMENT, "--tune and --cache are of kernels for the machine at hand: with --cpu native, not %s", b->options.cpu);
  for (uint32_t i = 0; i < s->kernels.count; i++)
    s->kernels.items[i].work = schedule_work(s->kernels.items[i].kernel, machine_find("native"), &b->arena);
  if (s->kernels.count)
    qsort(s->kernels.items, s->kernels.count, sizeof s->kernels.items[0], by_work);
  return tuner_open(tuner);
}

static status schedule_all(struct build *b, struct scheduler *s) {
  struct tuner tuner = {.seconds = b->options.tune, .folder = b->options.cache};
  bool tunes = b->options.tune > 0 || b->options.cache;
  if (tunes)
    TRY(prepare_tuner(b, s, &tuner));
  for (uint32_t i = 0; i < s->kernels.count; i++)
    for (uint32_t c = 0; c < b->cpus.count; c++) {
      bool measures = tunes && is_here(b->cpus.items[c].name) && b->options.math != MATH_STRICT;
      TRY(schedule_for(b, s->kernels.items[i].kernel, c, measures ? &tuner : NULL, &s->kernels.items[i].made[c]));
    }
  if (tunes && !b->options.quiet)
    fprintf(stderr, "tuned: %u loop nests measured, %u known from before, %u left to the cost model\n", tuner.measured, tuner.known,
            tuner.guessed);
  return OK;
}

status pass_schedule(struct build *b) {
  struct scheduler s = {0};
  status result = part_each_flow(b, collect, &s);
  if (result == OK)
    result = schedule_all(b, &s);
  map_deinit(&s.known);
  vec_free(&s.kernels);
  return result;
}

/* ---- text ---- */

static bool has_arguments_of(const struct kernel *a, const struct kernel *b) {
  bool same = a->size_count == b->size_count && a->buffers.count <= b->buffers.count;
  for (uint32_t i = 0; same && i < b->buffers.count; i++)
    same = i < a->buffers.count ? a->buffers.items[i].mode == b->buffers.items[i].mode : b->buffers.items[i].mode == BUFFER_LOCAL;
  return same;
}
static status verify_node(const struct flow_node *n) {
  for (uint32_t i = 0; i < n->scheduled_count; i++) {
    const struct kernel *k = n->scheduled[i].kernel;
    status s = k ? kernel_verify(k) : OK;
    if (s == OK && k && !has_arguments_of(n->kernel, k))
      s = fail(INTERNAL, "the scheduled kernel has other arguments");
    if (s != OK)
      return status_prefix(s, "%s (%s): ", n->name, n->tf_op);
  }
  return OK;
}
status scheduled_verify(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_KERNEL)
      TRY(verify_node(f->nodes.items[id]));
  return OK;
}

/* known: ids of nodes of this flow that were printed, by kernel_hash. */
static void print_node(FILE *out, const struct flow *f, flow_id id, int indent, struct map *known, struct arena *arena) {
  const struct flow_node *n = f->nodes.items[id];
  const char *key = kernel_hash_text(kernel_hash(n->kernel), arena);
  uint32_t first;
  fprintf(out, "%*s#%u %s:", indent, "", id, n->kernel->name);
  if (map_find(known, key, &first)) {
    fprintf(out, " as #%u\n", first);
    return;
  }
  map_insert(known, key, id);
  for (uint32_t i = 0; i < n->scheduled_count; i++) {
    const struct scheduled_kernel *s = &n->scheduled[i];
    if (n->scheduled_count > 1)
      fprintf(out, "\n%*s%s:", indent, "", s->cpu);
    fprintf(out, " %s\n%s", s->steps ? s->steps : PLAIN_LOOPS, kernel_print(s->kernel, arena));
  }
}
static void print_schedules(FILE *out, const struct flow *f, int indent, struct arena *arena) {
  struct map known = {0};
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = 0; n && (n->op == FLOW_IF || n->op == FLOW_WHILE) && r < n->region_count; r++) {
      fprintf(out, "%*s#%u region %u\n", indent, "", id, r);
      print_schedules(out, n->branches[r], indent + 2, arena);
    }
    if (n && n->op == FLOW_KERNEL)
      print_node(out, f, id, indent, &known, arena);
  }
  map_deinit(&known);
}
void scheduled_print(const struct flow *f, struct arena *arena, FILE *out) { print_schedules(out, f, 0, arena); }
