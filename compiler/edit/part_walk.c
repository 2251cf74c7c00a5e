/* part_walk.c: one walk over flows that run, for passes behind the partition. */
#include "compiler/edit/part_walk.h"

typedef status (*part_visit)(struct build *build, const struct part_ref *part, void *self);

static status visit_functions(struct build *b, const struct part_ref *part, const struct flow *flow, part_visit visit, void *self);

static status visit_part(struct build *b, const struct part_ref *part, part_visit visit, void *self) {
  TRY(visit(b, part, self));
  return visit_functions(b, part, part->flow, visit, self);
}

static status visit_functions(struct build *b, const struct part_ref *part, const struct flow *flow, part_visit visit, void *self) {
  for (flow_id id = 1; id < flow->nodes.count; id++) {
    const struct flow_node *n = flow->nodes.items[id];
    for (uint32_t r = 0; n && r < n->region_count; r++)
      if (n->op == FLOW_HOST)
        TRY(visit_part(b, &(struct part_ref){part->entry, part->task, n->branches[r], true}, visit, self));
      else
        TRY(visit_functions(b, part, n->branches[r], visit, self));
  }
  return OK;
}

status part_each(struct build *b, part_visit visit, void *self) {
  for (uint32_t i = 0; i < b->entries.count; i++) {
    const struct entry *e = &b->entries.items[i];
    if (e->parts.count == 0)
      TRY(visit_part(b, &(struct part_ref){e, TASK_DRIVER, e->flow, false}, visit, self));
    for (uint32_t p = 0; p < e->parts.count; p++)
      TRY(visit_part(b, &(struct part_ref){e, e->parts.items[p].task, e->parts.items[p].flow, false}, visit, self));
  }
  return OK;
}

struct flow_visit {
  status (*visit)(struct build *build, const struct part_ref *part, struct flow *flow, void *self);
  void *self;
};

static status visit_flows(struct build *b, const struct part_ref *part, struct flow *flow, const struct flow_visit *to) {
  TRY(to->visit(b, part, flow, to->self));
  for (flow_id id = 1; id < flow->nodes.count; id++) {
    const struct flow_node *n = flow->nodes.items[id];
    for (uint32_t r = 0; n && n->op != FLOW_HOST && r < n->region_count; r++)
      TRY(visit_flows(b, part, n->branches[r], to));
  }
  return OK;
}

static status visit_flows_of_part(struct build *b, const struct part_ref *part, void *self) {
  return visit_flows(b, part, part->flow, self);
}

status part_each_flow(struct build *b, status (*visit)(struct build *, const struct part_ref *, struct flow *, void *), void *self) {
  return part_each(b, visit_flows_of_part, &(struct flow_visit){visit, self});
}

/* ---- text ---- */

static const char *feeds_text(struct arena *arena, const struct entry *e) {
  const char *text = "";
  for (uint32_t i = 0; i < e->feeds.count; i++)
    text = arena_printf(arena, "%s%s%s %s", text, i ? ", " : "", e->feeds.items[i].name, flow_value_text(e->flow, e->feeds.items[i].value));
  for (uint32_t i = 0; i < e->decisions.count; i++)
    text = arena_printf(arena, "%s, %s %s 1", text, dim_text(e->flow->dims, e->decisions.items[i].size),
                        e->decisions.items[i].is_one ? "=" : "!=");
  return text;
}

const char *part_entry_name(struct build *b, const struct entry *e) {
  const struct entry *end = b->entries.items + b->entries.count;
  if (!e->is_variant && (e + 1 == end || !e[1].is_variant))
    return e->name;
  return arena_printf(&b->arena, "%s (%s%s)", e->name, e->is_variant ? "variant: " : "", feeds_text(&b->arena, e));
}

const char *part_task_name(struct build *b, uint32_t task) {
  if (task == TASK_DRIVER)
    return "driver";
  if (task == TASK_SELF)
    return "self";
  return arena_printf(&b->arena, "/job:%s/task:%u", b->cluster.tasks.items[task].job, b->cluster.tasks.items[task].index);
}

struct printing {
  flow_printer *print;
  FILE *out;
};

static status print_part(struct build *b, const struct part_ref *part, void *self) {
  const struct printing *p = self;
  fprintf(p->out, "%s %s on %s\n", part->is_function ? "function of entry" : "entry", part_entry_name(b, part->entry),
          part_task_name(b, part->task));
  p->print(part->flow, &b->arena, p->out);
  fputs("\n", p->out);
  return OK;
}

void part_print(struct build *b, flow_printer *print, FILE *out) { part_each(b, print_part, &(struct printing){print, out}); }
