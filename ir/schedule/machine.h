/* machine.h: what costs and schedules know of the CPU that code is for.
 *
 * What decides bits (level, vector_bytes, has_fma, whether pair_rate is 0) follows from the name alone, or for `native` from the
 * instructions that the CPU at hand has; caches, cores and rates may differ from machine to machine and decide order and places only.
 *
 * Owner: static. Safe for many threads once machine_find has returned for a name. */
#ifndef TFC_IR_SCHEDULE_MACHINE_H
#define TFC_IR_SCHEDULE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_MEMORY, LEVELS };
#define LINE_BYTES 64 /* of a cache */

/* What lies `stride` bytes apart finds as many sets of a cache as the power of two in it leaves: that power; 0 of 0, and of what is too
 * much to be an address, as the stride of a damaged graph may be. */
static inline int64_t bytes_apart(double stride) { return stride > -0x1p62 && stride < 0x1p62 ? (int64_t)stride & -(int64_t)stride : 0; }

struct machine {
  const char *name;
  uint32_t level;        /* 1 to 4, of x86-64: what a machine must have to run code for it */
  uint32_t vector_bytes; /* the widest vectors worth using: 64, 32 or 16 */
  uint32_t registers;    /* of vectors */
  bool has_fma;
  double fma_rate;          /* vector multiply-adds a cycle */
  double pair_rate;         /* vectors of pairs of bfloat16 that it multiplies and adds up in a cycle; 0: it has no such instruction */
  double loads;             /* vectors, or elements for all lanes, that it loads in a cycle beside those */
  int64_t bytes[LEVELS];    /* that one core can use of a level; memory: no limit */
  double bandwidth[LEVELS]; /* bytes a cycle that one core reads from a level */
  bool is_strict;           /* --math strict: only what keeps all values is chosen for it */
  int cores;                /* that this process may use, of the machine at hand; 0: not known */
};

/* The same for --math strict: products round by themselves. */
struct machine machine_strict(const struct machine *machine);
/* The same one with vectors of at most so many bytes; of those that are shorter than its longest it starts two multiply-adds a cycle. */
struct machine machine_narrow(const struct machine *machine, uint32_t vector_bytes);
/* The machine of a --cpu name, also one that LLVM alone knows; NULL and "native": the one at hand. Never NULL. */
const struct machine *machine_find(const char *cpu);

#endif
