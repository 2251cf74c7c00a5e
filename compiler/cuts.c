/* cuts.c: see cuts.h. */
#include "compiler/cuts.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/pass/sync.h"

/* What a value leads to, but by scalars. */
struct led_to {
  const struct flow *flow;
  bool *values, *vars; /* led to; changed by what is */
};

static bool is_led_to(const struct led_to *l, const struct flow_node *n) {
  uint32_t var;
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (l->values[node_input(n, i)])
      return true;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    if (node_touch(n, i, &var) == TOUCH_READ && l->vars[var])
      return true;
  return false;
}

static void lead_on(struct led_to *l, const struct flow_node *n) {
  uint32_t var;
  for (uint32_t i = 0; i < n->outputs.count; i++)
    l->values[n->outputs.items[i]] = l->flow->values.items[n->outputs.items[i]].rank != 0;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    if (node_touch(n, i, &var) == TOUCH_UPDATE)
      l->vars[var] = true;
}

/* "'w', 'm/w'": the variables that change by it. */
static const char *changed_text(struct build *b, const struct flow *f, value_id v) {
  struct led_to l = {f, calloc(f->values.count + 1, 1), calloc(b->vars.count + 1, 1)};
  const char *text = "";
  l.values[v] = true;
  for (flow_id id = f->values.items[v].producer + 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && is_led_to(&l, f->nodes.items[id]))
      lead_on(&l, f->nodes.items[id]);
  for (uint32_t i = 0; i < b->vars.count; i++)
    if (l.vars[i])
      text = arena_printf(&b->arena, "%s%s'%s'", text, *text ? ", " : "", b->vars.items[i].name);
  free(l.values);
  free(l.vars);
  return text;
}

static const char *cut_kind(const struct flow *f, const struct flow_node *n) {
  bool reduces = false, divides = false;
  for (uint32_t i = 0; i < n->attr_count; i++) {
    reduces = reduces || strcmp(n->attrs[i].name, "kind") == 0;
    divides = divides || (strcmp(n->attrs[i].name, "final_op") == 0 && strcmp(n->attrs[i].value.s.data, "Div") == 0);
  }
  if (reduces)
    return divides ? "mean" : "sum";
  return dtype_is_float(f->values.items[n->outputs.items[0]].dtype) ? "rows" : "indices of rows";
}

static void print_entry(struct build *b, const struct entry *e, FILE *out) {
  const struct flow *f = e->flow;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (n && sync_is_mean(n))
      fprintf(out, "entry %s: %s of all workers, %s '%s', changes %s\n", e->name, cut_kind(f, n), flow_value_text(f, n->inputs.items[0]),
              n->name, changed_text(b, f, n->outputs.items[0]));
  }
}

void cuts_print(struct build *b, FILE *out) {
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (!b->entries.items[i].is_variant)
      print_entry(b, &b->entries.items[i], out);
}
