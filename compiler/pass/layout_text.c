/* layout_text.c: what the pass `layout` has decided, as text, and what must be true of it; see layout.h. */
#include <stdio.h>

#include "compiler/pass/layout.h"

/* ---- verify ---- */

static status verify_reader(const struct flow *f, const struct flow_node *n, uint32_t buffer) {
  const struct flow_value *x = &f->values.items[n->args[buffer].value];
  const struct kernel_buffer *b = &n->kernel->buffers.items[buffer];
  bool same = b->rank == x->rank;
  for (int d = 0; same && d < x->rank; d++) {
    int64_t size;
    same = dim_is_const(f->dims, x->dims[d], &size) && b->dims[d] == size;
  }
  return same ? OK : fail(INTERNAL, "%s (%s) does not know that what it reads lies in panels", n->name, n->tf_op);
}
static status verify_value(const struct flow *f, const struct layout_value *v) {
  const struct flow_value *x = &f->values.items[v->value];
  int64_t sizes[LIMIT_RANK + 1], size;
  panels_sizes(&v->panels, sizes);
  bool same = x->rank == v->panels.rank + 1;
  for (int d = 0; same && d < x->rank; d++)
    same = dim_is_const(f->dims, x->dims[d], &size) && size == sizes[d];
  if (!same)
    return fail(INTERNAL, "%%%u is %s, which its panels are not", v->value, flow_value_text(f, v->value));
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && n->op == FLOW_KERNEL && i < n->kernel->buffers.count; i++)
      if (n->args[i].value == v->value)
        TRY(verify_reader(f, n, i));
  }
  return OK;
}
status layout_verify(const struct flow *f) {
  for (uint32_t i = 0; f->layout && i < f->layout->values.count; i++)
    TRY(verify_value(f, &f->layout->values.items[i]));
  return OK;
}

/* ---- text ---- */

static void print_value(FILE *out, const struct flow *f, const struct layout_value *v, int indent, struct arena *arena) {
  const char *before = " for";
  fprintf(out, "%*s%%%u: %s = %s of %s", indent, "", v->value, flow_value_text(f, v->value), panels_text(&v->panels, arena), v->of);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && i < flow_input_count(n); i++)
      if (flow_input(n, i) == v->value) {
        fprintf(out, "%s #%u", before, id);
        before = ",";
      }
  }
  fprintf(out, ": saves %.0f cycles", v->gain);
  v->pack > 0 ? (void)fprintf(out, ", costs %.0f\n", v->pack) : (void)fputs("\n", out);
}
static void print_flow(const struct flow *f, int indent, struct arena *arena, FILE *out) {
  for (uint32_t i = 0; f->layout && i < f->layout->values.count; i++)
    print_value(out, f, &f->layout->values.items[i], indent, arena);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = 0; n && (n->op == FLOW_IF || n->op == FLOW_WHILE) && r < n->region_count; r++) {
      fprintf(out, "%*s#%u region %u\n", indent, "", id, r);
      print_flow(n->branches[r], indent + 2, arena, out);
    }
  }
}
void layout_print(const struct flow *f, struct arena *arena, FILE *out) { print_flow(f, 0, arena, out); }
