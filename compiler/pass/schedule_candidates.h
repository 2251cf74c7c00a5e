/* schedule_candidates.h: why each kernel has the schedule it has: what could have been, and what it was expected to take. */
#ifndef TFC_COMPILER_SCHEDULE_CANDIDATES_H
#define TFC_COMPILER_SCHEDULE_CANDIDATES_H

#include <stdio.h>

#include "compiler/build.h"

/* For each distinct kernel with a choice, and each CPU of the build: its candidates with the cycles of one core that the cost model
 * (ir/schedule/cost.h) expects of them, the one it would take marked with `>`. What --tune has measured is not said here. For builds whose
 * passes have run. */
status candidates_print(struct build *build, FILE *out);

#endif
