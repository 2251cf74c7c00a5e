/* run_options.h: which task gets which options of `tfc run`. */
#ifndef TFC_COMPILER_RUN_OPTIONS_H
#define TFC_COMPILER_RUN_OPTIONS_H

#include <stdbool.h>

#include "base/arena.h"

/* What goes with --checkpoint-dir, or, like --restore, to whom it would go. */
static const char *const run_checkpoint_options[4] = {"--save-steps", "--save-seconds", "--keep", "--restore"};

/* All by reference. */
struct run_options {
  int count; /* words on the command line */
  char **words;
  const char *trace, *checkpoint_dir; /* taken out of the words; NULL: not given */
  const char *of_checkpoints[4];      /* the values of run_checkpoint_options, likewise */
  bool no_init;                       /* somebody has said --no-init */
  bool log_last;                      /* fetches are printed at the last step only: nobody has said --log-every */
};

struct run_task {
  const char *name, *path;
  bool has_phases, has_variables; /* runs the phases; has what a checkpoint holds */
  bool initialises;               /* the chief, which is none of those with phases: runs `init` */
};

/* on_terminal: somebody looks at a line of progress instead. */
void run_options_read(int count, char **words, bool on_terminal, struct run_options *out);
/* The argv of a task, in the arena: phases and all else to those with phases, `--entry init` to who initialises; --trace, each to a file of
 * its own, to all; --checkpoint-dir and what goes with it to those that have variables, wherever they are. */
char **run_options_for(const struct run_options *options, const struct run_task *task, struct arena *arena);
/* The file of a task's trace. */
const char *run_options_trace(const struct run_options *options, const char *task, struct arena *arena);

#endif
