/* cpu.h: which of the CPUs that an executable was built for (`tfc build --cpu A,B`) is the one at hand.
 *
 * Levels are those of the x86-64 psABI: 1 is every 64-bit CPU, 2 has SSE4.2, 3 AVX2 and FMA, 4 AVX-512 (F, BW, CD, DQ, VL). */
#ifndef TFC_RUNTIME_PROGRAM_CPU_H
#define TFC_RUNTIME_PROGRAM_CPU_H

#include "base/status.h"
#include "runtime/program/program.h"

/* The level of the machine at hand, 1 to 4. */
uint32_t cpu_level(void);

/* The variant with the highest level that a machine of `level` runs, the first of equal ones, into *out (an index into
 * program->cpus). FAILED_PRECONDITION where all need more: the text says what the executable was built for and what to do. */
status cpu_choose(const struct program *program, uint32_t level, uint32_t *out);

#endif
