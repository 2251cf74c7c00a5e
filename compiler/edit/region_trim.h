/* region_trim.h: regions without the parameters that they do not use. */
#ifndef TFC_COMPILER_REGION_TRIM_H
#define TFC_COMPILER_REGION_TRIM_H

#include "ir/flow/flow.h"

/* Takes from every `if` and `while` of the flow, and of its regions, what no node of them uses: what was made only for that is dead
 * afterwards. False: there was none. */
bool flow_trim_regions(struct flow *flow);

#endif
