/* cuts.h: what --strategy has found, in words: where a step is cut, and what the means change. */
#ifndef TFC_COMPILER_CUTS_H
#define TFC_COMPILER_CUTS_H

#include <stdio.h>

#include "compiler/build.h"

/* After pass spread: a line for each value that the workers of an entry make alike, but for variants of an entry. */
void cuts_print(struct build *build, FILE *out);

#endif
