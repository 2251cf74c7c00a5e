/* layout_wish.h: what the files of the pass `layout` share: who would read what in panels, and what that gains. Private to them. */
#ifndef TFC_COMPILER_LAYOUT_WISH_H
#define TFC_COMPILER_LAYOUT_WISH_H

#include "compiler/edit/panels.h"
#include "compiler/pass/pass.h"

/* A flow, and the node of the flow around it whose region it is. */
struct scope {
  const struct entry *entry;
  struct flow *flow;
  struct scope *outer;
  flow_id node;
  flow_id nodes; /* that it had before the pass, + 1 */
  bool has_new;  /* nodes */
  bool has_held; /* nodes around variables in panels, in regions too */
};
/* Where a value comes from: a constant; what a variable holds; or a value of a flow around the loops that hand it on. */
struct source {
  const void *data;
  uint32_t var; /* its number + 1 */
  struct scope *scope;
  value_id value;
  value_id read; /* of a variable: what a node reads of it there; `value` has another shape, perhaps */
};
struct reader {
  struct scope *scope;
  struct flow_node *node;
  value_id value; /* of one of its buffers */
  struct source source;
  int number;     /* of the nest that reads it */
  double gain;    /* cycles of a step */
  bool is_joined; /* to a wish of others: it gains nothing itself, but having the value dense would cost more */
};
/* Readers of one value that want the same panels. */
struct wish {
  struct source source;
  struct panels panels;
  enum dtype dtype;
  double gain, pack; /* cycles of a step */
  VEC(struct reader) readers;
  const void *packed; /* of a constant */
  VEC(struct placed {
    const struct scope *scope;
    value_id of; /* the source's read, where several may be handed on to one scope: of a variable */
    value_id value;
  })
  placed;
};
/* A variable, and the nodes that touch it. */
struct held {
  bool may; /* lie in panels */
  VEC(struct toucher {
    struct scope *scope;
    flow_id node;
  })
  touchers;
};
struct layouter {
  struct build *build;
  VEC(struct wish) wishes;
  VEC(struct reader) others; /* of variables, which wish for nothing */
  VEC(struct scope *) scopes;
  struct held *held; /* by variable */
};

/* layout.c: cycles that bringing the value into panels takes once, on the slowest CPU; how often a scope runs while `around` does once. */
double layout_pack_cycles(const struct layouter *l, const struct panels *p, enum dtype dtype);
double layout_runs(const struct scope *s, const struct scope *around);
/* A value in such panels, of no flow yet. */
struct flow_value layout_value_of(const struct panels *p, enum dtype dtype, struct dim_table *dims);

/* The scope's value v is that of the wish, in panels, made beside `like`. */
void layout_note(struct layouter *l, const struct wish *w, const struct scope *s, const struct flow_node *like, value_id v);

/* layout_variable.c: fills l->held, when all scopes are known; and frees it. */
void layout_find_held(struct layouter *l);
void layout_free_held(struct layouter *l);
/* Cycles of a step for who takes or gives the variable of the wish dense; below 0: somebody cannot. */
double layout_dense_cycles(const struct layouter *l, const struct wish *w);
/* The variable lies in panels, in all entries: what is read of it is in w->placed; who wants it dense has it so, made anew. */
void layout_hold(struct layouter *l, struct wish *w);
/* What was made for nobody is gone. */
void layout_sweep(struct layouter *l);

#endif
