/* shared_line.h: what it costs the cores of this machine that one of them writes a cache line which another one has read, and that the
 * other one reads it again. Cores of one cluster take a few nanoseconds for it, those of a large server 30 and more, and a program is not
 * told where it runs: so it is measured. */
#ifndef TFC_RUNTIME_STEP_SHARED_LINE_H
#define TFC_RUNTIME_STEP_SHARED_LINE_H

#include <stdint.h>

#include "runtime/step/pool.h"

#define SHARED_LINE_USUAL_NS 28 /* between two cores of a large server: until it is measured */
#define SHARED_LINE_UNKNOWN (-1)

/* Nanoseconds a line; takes 2 ms at most. SHARED_LINE_USUAL_NS where the pool has one thread, which shares none; SHARED_LINE_UNKNOWN when
 * two are not found at work on two cores in that time, as on a busy machine. */
int64_t shared_line_measure(struct pool *pool);

#endif
