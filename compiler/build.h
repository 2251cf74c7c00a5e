/* build.h: one compilation: what the passes hand on to each other. */
#ifndef TFC_COMPILER_BUILD_H
#define TFC_COMPILER_BUILD_H

#include "compiler/cluster.h"
#include "compiler/cpus.h"
#include "compiler/token_round.h"
#include "ir/flow/flow.h"
#include "ir/graph/graph.h"
#include "ir/lower/lower.h"
#include "targets/target.h"

struct entry_spec { /* one --entry, or a default one */
  const char *name;
  VEC(const char *) feeds, fetches, targets; /* tensor names, operation names */
  VEC(const char *) feed_keys, fetch_keys;   /* the names users give them: the same, or a signature's keys */
  bool is_guess;                             /* nobody has asked for it: left out, and said so, when it cannot be built */
};

/* A second name of an entry. */
struct entry_alias {
  const char *name, *entry;
};
/* A guess that was left out. */
struct entry_dropped {
  const char *entry, *reason;
};

/* A loop beside the phases: each entry is run again and again on a thread of its own. */
struct build_runner {
  const char *name; /* of its queue */
  VEC(const char *) entries;
  const char *begin, *close; /* entries that run once, before and after; NULL: none */
  uint64_t end_codes;        /* bits of the statuses that are the end, no error */
  bool is_chiefs;            /* else every replica runs it */
};

struct build_options {
  const char *graph_path, *cluster_path, *output_dir;
  const char *tags;      /* of a SavedModel's graph, or NULL */
  const char *replicate; /* a job, or NULL */
  const char *strategy;  /* NULL, or as in the contract; what it means is build.strategy */
  const char *cpu, *gpu;
  enum math_mode math;
  bool soft_placement, log_device_placement;
  const char *emit;        /* NULL: build */
  const char *dump_phases; /* a folder, or NULL */
  double tune;             /* seconds for measuring schedules; 0: their costs are estimated */
  const char *cache;       /* a folder with what was measured before, or NULL */
  bool quiet;
  bool tls;                  /* the executables have TLS in them */
  VEC(const char *) entries; /* the texts of --entry */
};

/* Initial values of variables that come from a SavedModel. */
struct var_initial {
  uint32_t var;
  struct constant value;
};

/* Who has the variables of a graph of one machine that several train, and whether they wait for each other. */
enum strategy { STRATEGY_NONE, STRATEGY_PS_ASYNC, STRATEGY_PS_SYNC, STRATEGY_ALLREDUCE };

struct build {
  struct build_options options;
  struct cpu_list cpus;       /* pass layout */
  enum strategy strategy;     /* pass strategy */
  const char *replicated_job; /* found in the graph, or the strategy's; see build_replicated */
  struct arena arena;
  struct model model;
  struct cluster cluster;
  VEC(struct entry_spec) specs;
  VEC(struct entry_alias) aliases;
  VEC(struct entry_dropped) dropped;
  VEC(struct build_runner) runners;
  bool has_round; /* the graph is that of a SyncReplicasOptimizer: */
  struct token_round round;
  VEC(struct entry) entries; /* after lowering; parts after partition */
  VEC(struct flow_var) vars; /* shared by all entries; var.task may be TASK_SELF (one for each replica) */
  bool vars_opened;          /* a variable turned out to have other shapes than were taken for granted */
  bool init_is_loaders;      /* the entry `init` is what a SavedModel's loader runs, nothing that the user has named */
  struct map var_names;      /* (task, container, name) as a text -> index into vars */
  VEC(struct var_initial) initials;
  VEC(struct lower_gather) gathers; /* pass means: rows of gradients that are to be those of all workers, found in a first lowering */
  struct means *means;              /* pass means; until pass spread */
  uint32_t default_task;            /* chief_0, worker_0 or the first */
};

/* The job whose tasks each run the graph as their own; NULL: none. */
static inline const char *build_replicated(const struct build *build) {
  return build->options.replicate ? build->options.replicate : build->replicated_job;
}

/* emit.c: the program (runtime/program/program.h) of one task and the kernels it needs, in the program's order. */
struct emitted {
  const void *program;
  uint64_t program_size;
  VEC(struct kernel *) kernels;                     /* distinct by kernel_hash */
  VEC(struct kernel *) scheduled[PROGRAM_CPUS_MAX]; /* the same, as each CPU of the build runs them */
};
status build_emit(struct build *build, uint32_t task, struct emitted *out);

/* link.c: objects (one for each CPU) + runtime -> executable; `program`: the emitted one, which says what parts of the runtime it needs;
 * with_tls: OpenSSL is among them. INTERNAL with the linker's words. */
status link_executable(const char *const *objects, int object_count, const void *program, bool with_tls, const char *output_path);
/* An object alone -> a library that can be loaded. */
status link_library(const char *object, const char *output_path);

#endif
