/* scenarios.h: what is simulated: jobs, what may go wrong, and what must be true in the end. */
#ifndef TFC_TESTS_SIMULATOR_SCENARIOS_H
#define TFC_TESTS_SIMULATOR_SCENARIOS_H

#include "tests/simulator/run.h"

/* Ends with one without a name. */
struct scenario *scenarios(void);
/* Its job; before it is run. */
void scenario_build(struct scenario *scenario);
/* NULL: there is none. */
struct scenario *scenario_find(const char *name);

/* A mechanism left out, and the scenario that is to notice. */
struct planted {
  int fault;
  const char *scenario, *what;
};
/* Ends with one without a scenario. */
const struct planted *planted(void);

#endif
