/* cuts.h: what --strategy has found, in words: where a step is cut, and what the means change. */
#ifndef TFC_COMPILER_CUTS_H
#define TFC_COMPILER_CUTS_H

#include "compiler/build.h"

/* After sync_rounds: a line of build->cuts for each value that the entry's workers make alike, but for variants of an entry. */
void cuts_note(struct build *build, const struct entry *entry);

#endif
