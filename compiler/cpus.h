/* cpus.h: the CPUs that a build is for: `--cpu A,B`. */
#ifndef TFC_COMPILER_CPUS_H
#define TFC_COMPILER_CPUS_H

#include "base/arena.h"
#include "base/status.h"
#include "ir/schedule/machine.h"
#include "runtime/program/program.h"

struct cpu_list {
  uint32_t count; /* 0: not read yet */
  struct {
    const char *name;
    uint32_t level; /* runtime/program/cpu.h */
    struct machine machine;
  } items[PROGRAM_CPUS_MAX];
};

/* Reads a comma-separated list into *out, names into the arena. INVALID_ARGUMENT: an empty name, one that LLVM does not know, one
 * that is there twice, or more than PROGRAM_CPUS_MAX. strict: their machines are those of --math strict. */
status cpus_read(const char *text, bool strict, struct arena *arena, struct cpu_list *out);
const struct machine *cpu_machine(const struct cpu_list *cpus, uint32_t i);

#endif
