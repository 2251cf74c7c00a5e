/* layout.h: which values lie as their contractions read them: in panels (compiler/edit/panels.h).
 *
 * A value that a contraction reads anew in each step, or in each turn of a loop, and that does not change meanwhile is brought into panels
 * once: a constant while building, what no turn of a loop changes in front of the loop. A variable that steps only read lies in panels from
 * step to step (struct flow_var.panels). No new kind of value comes with it: one in panels is dense, of another shape, and what reads it is
 * another kernel. All CPUs of a build have the same panels.
 *
 * The pass stands behind those that need to see what a graph computes, and in front of `order`: its nodes read variables and are used like
 * any other's, so that `order` puts them where no update disturbs, and `plan` gives them their place. */
#ifndef TFC_COMPILER_LAYOUT_H
#define TFC_COMPILER_LAYOUT_H

#include "compiler/edit/panels.h"

/* Of a flow: its values in panels, as its own nodes know them. */
struct layout {
  VEC(struct layout_value {
    value_id value;
    struct panels panels;
    const char *of; /* the node whose value it was */
    double gain;    /* cycles of one core that a step is expected to save, over all who read it */
    double pack;    /* and that it costs to make it; 0: it is a constant, or a variable that no step takes otherwise */
  })
  values;
};

/* INTERNAL: a value in panels has other sizes than they say, or is read by what does not know. */
status layout_verify(const struct flow *flow);
/* For each value: what it was, who reads it, what that gains. */
void layout_print(const struct flow *flow, struct arena *arena, FILE *out);

#endif
