/* pipeline.h: the order of passes. */
#ifndef TFC_COMPILER_PIPELINE_H
#define TFC_COMPILER_PIPELINE_H

#include "compiler/build.h"
#include "compiler/edit/part_walk.h"

/* What is true of a build; a pass needs some, gives some and may break some. */
enum build_fact {
  FACT_GRAPH = 1,      /* model.graph and cluster are read */
  FACT_CHECKED = 2,    /* every node fits its op's signature */
  FACT_ENTRIES = 4,    /* specs are resolved: every feed, fetch and target exists */
  FACT_PLACED = 8,     /* every node has a task */
  FACT_FLOW = 16,      /* every entry is a flow of core ops with dtypes and shapes */
  FACT_LIVE = 32,      /* nothing in the flows is without use */
  FACT_FUSED = 64,     /* no two kernels that could be one */
  FACT_PARTS = 128,    /* every entry is one flow for each task */
  FACT_INITIALS = 256, /* initial values of variables are known */
  FACT_ORDER = 512,    /* every flow has an order */
  FACT_LANES = 1024,   /* and a partial order behind it */
  FACT_PLAN = 2048,    /* and every value a place */
  FACT_MEANS = 4096,   /* with --strategy it is known what of each step is the mean of all workers' */
};

struct pass {
  const char *name;
  status (*run)(struct build *build);
  unsigned needs, gives, breaks;
  const char *after;                         /* what is true of the graph afterwards */
  status (*verify)(const struct flow *flow); /* of each flow that runs, after the pass; or NULL */
  flow_printer *print;                       /* of each part: its text for --emit NAME and --dump-phases; or NULL */
  bool (*when)(const struct build *build);   /* whether the build needs it; NULL: each does */
};
extern const struct pass passes[];
extern const uint32_t pass_count;

/* Runs all passes that the build needs; with options.dump_phases one file for each. */
status pipeline_run(struct build *build);
/* Those from one to another, by name: for commands that have something to say in between. */
status pipeline_run_part(struct build *build, const char *first, const char *last);
/* What the pass of that name has decided, part by part; false when there is no such pass, or it has no text. */
bool pipeline_print_pass(struct build *build, const char *name, FILE *out);
/* The text of a build as it stands, for --dump-phases and --emit graph|ir. */
void pipeline_print(struct build *build, unsigned facts, FILE *out);

#endif
