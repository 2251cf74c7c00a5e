/* target.h: a target turns kernels into code. A target is a struct of functions over the kernel IR; targets.def lists them. */
#ifndef TFC_TARGETS_TARGET_H
#define TFC_TARGETS_TARGET_H

#include "base/arena.h"
#include "base/status.h"
#include "ir/kernel/kernel.h"

/* What code may do with floats: --math.
 *   strict   every operation rounds as it stands in the kernel, sums take their terms in order: the same bits on every CPU, but for what
 *            the machine's libm computes, which has code of its own for some: functions of f64 (not sqrt), and of smaller floats those
 *            that codegen_math.c does not write out
 *   default  a sum of products rounds once for each term where the CPU can, long sums are trees; NaN, infinities and zeros
 *            come out as TensorFlow has them
 *   fast     besides, NaN and infinities may be lost, quotients by a constant are products with its reciprocal, and exp and tanh are
 *            shorter: some ulp less exact */
enum math_mode { MATH_DEFAULT, MATH_STRICT, MATH_FAST };

struct target_options {
  const char *cpu;  /* "native", or an LLVM CPU name or level */
  uint32_t variant; /* the number of that CPU among those of the build: names in the objects of one build differ by it */
  const char *gpu;  /* "sm_90", or NULL */
  enum math_mode math;
};

/* One unit of code generation: kernels with distinct names. */
struct target_unit {
  struct kernel *const *kernels;
  uint32_t count;
  const void *data; /* the program (runtime/program/program.h), linked in as symbol tfc_program, aligned to 64; may be NULL */
  uint64_t data_size;
};

struct target {
  const char *name; /* "cpu", "cuda" */
  /* Text of the given kind ("llvm", "asm", "cuda", "ptx"); UNIMPLEMENTED for a kind it has not. */
  status (*emit)(const struct target_options *options, const struct target_unit *unit, const char *kind, struct arena *arena, char **out);
  /* An object file with the kernels' functions and the table tfc_kernels (tfc_kernels_N of variant N), or an archive of such, to be linked
   * whole. NULL: the target has none. */
  status (*compile)(const struct target_options *options, const struct target_unit *unit, const char *object_path);
  /* The level (runtime/program/cpu.h) that a machine must have to run what is compiled with these options; INVALID_ARGUMENT for a
   * CPU that there is not. NULL: the target's code is not for CPUs. */
  status (*level)(const struct target_options *options, uint32_t *out);
};

const struct target *target_find(const char *name);

/* "strict", "default" or "fast"; false: another word. */
bool math_mode_read(const char *word, enum math_mode *out);

#endif
