/* scenarios.h: what is simulated: jobs, what may go wrong, and what must be true in the end. */
#ifndef TFC_TESTS_SIMULATOR_SCENARIOS_H
#define TFC_TESTS_SIMULATOR_SCENARIOS_H

#include "tests/simulator/run.h"

/* Built when first asked for; ends with one without a name. */
struct scenario *scenarios(void);
/* NULL: there is none. */
struct scenario *scenario_find(const char *name);

#endif
