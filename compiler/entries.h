/* entries.h: which Session.run calls are compiled: --entry texts, or what the graph itself suggests (contract, section 1). */
#ifndef TFC_COMPILER_ENTRIES_H
#define TFC_COMPILER_ENTRIES_H

#include "compiler/build.h"

/* Fills build->specs from options.entries: `NAME: FEEDS -> FETCHES | TARGETS`, every part but NAME may be empty; a feed or fetch is
 * `TENSOR` or `KEY=TENSOR`. Without any: entry_defaults.c.
 * Call it after registry_check. INVALID_ARGUMENT: no entry of this form, two of one name, a tensor fed twice;
 * NOT_FOUND: a tensor or operation that the graph has not. Both name the entry. */
status entries_resolve(struct build *build);

/* The entry of that name among build->specs; NULL: there is none. */
struct entry_spec *entry_find(struct build *build, const char *name);
void entry_add_feed(struct entry_spec *spec, const char *tensor, const char *key);
void entry_add_fetch(struct entry_spec *spec, const char *tensor, const char *key);
void entry_spec_deinit(struct entry_spec *spec);

#endif
