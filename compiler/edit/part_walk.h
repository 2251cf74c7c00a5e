/* part_walk.h: what runs of a build, as flows: the parts of all entries, the regions of their nodes, the functions of their host calls. */
#ifndef TFC_COMPILER_PART_WALK_H
#define TFC_COMPILER_PART_WALK_H

#include <stdio.h>

#include "compiler/build.h"

/* The text of a flow; the arena is for what is made on the way. */
typedef void flow_printer(const struct flow *flow, struct arena *arena, FILE *out);

/* A part, or a function of a host call in it. */
struct part_ref {
  const struct entry *entry;
  uint32_t task;
  struct flow *flow; /* the outer one */
  bool is_function;
};

/* For each part, then for the functions of its calls, and of calls in them. Stops at the first failure. */
status part_each(struct build *build, status (*visit)(struct build *build, const struct part_ref *part, void *self), void *self);
/* For each flow: of each of these the outer one, then its regions. */
status part_each_flow(struct build *build, status (*visit)(struct build *build, const struct part_ref *part, struct flow *flow, void *self),
                      void *self);
/* "entry main on driver", then the flow's text, for each part and function, the flows in it indented. */
void part_print(struct build *build, flow_printer *print, FILE *out);
/* "main"; where an entry has variants, each with the feeds that it is for: "main (variant: x f32[x.0], y f32[y.0])", and sizes that were
 * decided: "main (x f32[x.0], x.0 = 1)". */
const char *part_entry_name(struct build *build, const struct entry *entry);
/* "driver", "self", "/job:ps/task:0" */
const char *part_task_name(struct build *build, uint32_t task);

#endif
