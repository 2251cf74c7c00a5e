/* measure.h: forms of one kernel (the kernel itself, and scheduled ones) timed on the machine at hand.
 *
 * They are compiled, linked as a library, loaded and called in turn, round after round, so that what else the machine does hits all alike;
 * what counts is each one's best call by the thread's own clock. One thread at a time. */
#ifndef TFC_COMPILER_SCHEDULE_MEASURE_H
#define TFC_COMPILER_SCHEDULE_MEASURE_H

#include "ir/kernel/kernel.h"

/* Seconds of a call of each form, on one core, with random floats and zeros of other dtypes; measuring (not compiling) takes `budget`
 * seconds, or two rounds where those take longer. All have the same arguments, whose sizes are known, and distinct names. UNIMPLEMENTED:
 * a size is open, or the machine cannot run what is compiled for this CPU; RESOURCE_EXHAUSTED, INTERNAL, FAILED_PRECONDITION: as
 * compiling and linking say. */
status measure_forms(struct kernel *const *forms, uint32_t count, const char *cpu, double budget, double *seconds);

#endif
