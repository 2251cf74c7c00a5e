/* lower_call.c: what a builder may ask of the lowering that calls it, and what it notes there. */
#include "ir/lower/lower_state.h"

struct arena *op_arena(const struct op_call *c) {
  return c->lw->arena;
}
struct dim_table *op_dims(const struct op_call *c) {
  return c->lw->dims;
}
struct flow *op_flow(const struct op_call *c) {
  return c->lw->walk.flow;
}
const struct graph *op_graph(const struct op_call *c) { return c->lw->graph; }
struct frame *op_frame(const struct op_call *c) {
  return c->lw->walk.frame;
}
struct frame *op_newest_frame(const struct op_call *c) {
  return c->lw->walk.newest_frame;
}
struct flow_value *op_value(const struct op_call *c, value_id v) {
  return &c->lw->walk.flow->values.items[v];
}

bool op_in_region(const struct op_call *c) { return c->lw->walk.region_depth > 0; }
bool op_in_trial(const struct op_call *c) { return c->lw->walk.trial_depth > 0; }

/* ---- variables ---- */

const struct flow_var *op_var(const struct op_call *c, uint32_t var) { return c->lw->options->get_var(c->lw->options->self, var); }
uint32_t op_find_var(struct op_call *c, const struct flow_var *wanted) { return c->lw->options->find_var(c->lw->options->self, wanted); }
void op_open_var(struct op_call *c, uint32_t var, int rank, const int64_t *dims) {
  c->lw->options->open_var(c->lw->options->self, var, rank, dims);
}

void lower_note_change(struct lower *lw, uint32_t var) {
  while (lw->facts.changed.count <= var)
    vec_push(&lw->facts.changed, false);
  lw->facts.changed.items[var] = true;
}

bool lower_may_have_changed(const struct lower *lw, uint32_t var) { return var < lw->facts.changed.count && lw->facts.changed.items[var]; }

value_id *op_temporaries(struct op_call *c) {
  struct lower_facts *facts = &c->lw->facts;
  for (uint32_t i = 0; i < facts->temporaries.count; i++)
    if (facts->temporaries.items[i].task == c->node->task)
      return &facts->temporaries.items[i].list;
  vec_push(&facts->temporaries, (struct temporary_list){.task = c->node->task});
  return &facts->temporaries.items[facts->temporaries.count - 1].list;
}

/* ---- what is assumed ---- */

bool op_takes_misfits(struct op_call *c) {
  c->lw->found.undecided = true;
  return c->lw->options->misfits;
}
void op_note_assumed(struct op_call *c) { c->lw->found.assumed = true; }
void op_note_unfed(struct op_call *c) { c->lw->not_fed = c->node; }

/* ---- functions of datasets ---- */

struct dataset_functions *op_datasets(const struct op_call *c) {
  return c->lw->walk.datasets;
}
struct dataset_functions *op_collect_datasets(struct op_call *c, struct dataset_functions *all) {
  struct dataset_functions *before = c->lw->walk.datasets;
  c->lw->walk.datasets = all;
  return before;
}
