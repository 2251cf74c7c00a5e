/* entry_defaults.h: what is compiled without any --entry. */
#ifndef TFC_COMPILER_ENTRY_DEFAULTS_H
#define TFC_COMPILER_ENTRY_DEFAULTS_H

#include "compiler/build.h"
#include "compiler/graph_walk.h"

/* Fills build->specs. INVALID_ARGUMENT: nothing in the graph can be fetched. */
status entry_defaults_add(struct build *build);
/* Adds the entry `init` that a SavedModel's loader would run, where nothing else is called so. */
void entry_loaders_add(struct build *build);

/* The nodes that the entry's fetches and targets depend on, themselves included: one bool for each, to be freed. Names that do not exist
 * are
 * found later. */
bool *entry_mark_needed(const struct graph *graph, const struct entry_spec *spec);
/* Those that depend on what the entry is fed, likewise. */
bool *entry_mark_fed(const struct graph *graph, const struct entry_spec *spec);
/* Feeds the placeholders among the nodes that it needs. */
void entry_feed_placeholders(const struct graph *graph, struct entry_spec *spec);

/* A training step shows its loss, or its losses. */
void entry_loss_fetch(struct build *build, struct entry_spec *spec);

/* entry_session.c: after the other default entries and the runners': what a client that manages its session asks for beside them. */
void entry_session_add(struct build *build);
/* What an item of a collection names: the item itself, or the name that a message (of a variable, a queue) begins with; "..." otherwise. */
const char *entry_item_name(struct arena *arena, const struct attr_value *item);

/* entry_main.c: every output that nothing consumes, as `main`. is_guess: the graph trains; only answers, without labels where they need
 * none, and no entry where there are none. */
void entry_main_add(struct build *build, bool is_guess);

/* entry_train.c: the operations that apply the gradients of an optimizer, with all that follows its updates; how many. None when there
 * are more than TRAIN_STEPS_MAX: those are no steps. */
#define TRAIN_STEPS_MAX 4
uint32_t train_steps_find(const struct graph *graph, uint32_t *steps);
/* The names of the nodes whose gradients these nodes need; else of the only one in the collection `losses`; how many. None when there are
 * more than TRAIN_LOSSES_MAX. */
#define TRAIN_LOSSES_MAX 4
uint32_t train_losses_find(const struct build *build, const uint32_t *nodes, uint32_t count, const char **losses);

/* entry_init.c: the entry `init`, which the chief runs first, initialises all that starts without a value: variables, tables and
 * iterators that its operation leaves out. In a replicated build `local_init` does it for what each replica has of its own: here what
 * sessions run for it, in pass replicas all else of `init` that lies there. */
void entry_init_complete(struct build *build);
/* Whether the node gives a variable, a table or an iterator what it starts with. */
bool node_gives_first_value(const struct node *node);

#endif
