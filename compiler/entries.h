/* entries.h: which Session.run calls are compiled: --entry texts, or what the graph itself suggests (contract, section 1). */
#ifndef TFC_COMPILER_ENTRIES_H
#define TFC_COMPILER_ENTRIES_H

#include "compiler/build.h"

/* Fills build->specs from options.entries: `NAME: FEEDS -> FETCHES | TARGETS`, every part but NAME may be empty.
 * Without any: the signatures (their keys name feeds and fetches), the collections of training, else operations with
 * known names, else `main` with every output that nothing consumes. Entries that come from no signature are fed the
 * placeholders that they depend on. What initialises is also called `init`, unless variables come with the model.
 * Call it after registry_check. INVALID_ARGUMENT: no entry of this form, two of one name, a tensor fed twice;
 * NOT_FOUND: a tensor or operation that the graph has not. Both name the entry. */
status entries_resolve(struct build *build);

/* Parses one text without looking at a graph. */
status entry_parse(struct arena *arena, const char *text, struct entry_spec *out);

#endif
