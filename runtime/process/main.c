/* main.c: where an executable begins: the program and the kernels that are linked in, those of the CPU at hand. */
#include <stdio.h>

#include "runtime/process/stacks.h"
#include "runtime/process/task_main.h"
#include "runtime/program/cpu.h"

/* Of an executable that was built for several CPUs. */
extern const struct kernel_code tfc_kernels_1[] __attribute__((weak)), tfc_kernels_2[] __attribute__((weak)),
  tfc_kernels_3[] __attribute__((weak));

int main(int argc, char **argv) {
  const struct program *program = (const struct program *)tfc_program;
  const struct kernel_code *const kernels[PROGRAM_CPUS_MAX] = {tfc_kernels, tfc_kernels_1, tfc_kernels_2, tfc_kernels_3};
  uint32_t cpu;
  stacks_make_room();
  status result = cpu_choose(program, cpu_level(), &cpu);
  if (result == OK)
    return task_main(program, kernels[cpu], argc, argv);
  fprintf(stderr, "error: %s: %s\n", status_name(result), status_text());
  return status_exit_code(result);
}
