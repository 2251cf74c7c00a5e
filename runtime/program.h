/* program.h: what a compiled task holds: the only thing that compiler and runtime share.
 *
 * The object file that `tfc build` links with the runtime defines
 *   tfc_program        the program: one block of bytes, written by compiler/emit.c, read in place (all structs below are
 *                      in native layout, 8-byte aligned; a `ref` is a byte offset from its start, 0 = none)
 *   tfc_kernels        an array of struct kernel_code, in the order of the program's kernel numbers
 */
#ifndef TFC_RUNTIME_PROGRAM_H
#define TFC_RUNTIME_PROGRAM_H

#include <stdint.h>

/* ---- native kernels (made by targets/cpu) ---- */

struct kernel_fault {
  int32_t code;            /* 0: none yet; the first one stays */
  const char *text;        /* of the check, with up to two %d for the values */
  int64_t shown[2];
};
struct kernel_call {
  void *const *buffers;    /* one for each buffer of the kernel; scratch ones are NULL: they live in `scratch` */
  const int64_t *sizes;
  void *scratch;           /* kernel_code.query(sizes, KERNEL_SCRATCH) bytes, aligned to 64, shared by all tiles of the call */
  struct kernel_fault *fault;
};
#define KERNEL_SCRATCH (-1) /* bytes of scratch */
#define KERNEL_PHASES (-2)  /* number of phases, at least 1: all tiles of a phase end before the next begins */
#define KERNEL_COST (-3)    /* rough nanoseconds of the whole call on one core: decides whether threads are worth it */
struct kernel_code {
  /* Runs the tiles begin .. end-1 of a phase. */
  void (*run)(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end);
  /* what >= 0: the number of tiles of that phase; else as above. */
  int64_t (*query)(const int64_t *sizes, int64_t what);
};
extern const struct kernel_code tfc_kernels[];
extern const unsigned char tfc_program[];

/* ---- sizes: postfix code over symbols, i64 words ---- */
enum program_dim_op {
  PROGRAM_DIM_CONST = 1,  /* next word: the value */
  PROGRAM_DIM_SYMBOL = 2, /* next word: the symbol */
  PROGRAM_DIM_ADD = 3,
  PROGRAM_DIM_MUL = 4,
  PROGRAM_DIM_FLOORDIV = 5,
  PROGRAM_DIM_MOD = 6,
  PROGRAM_DIM_MIN = 7,
  PROGRAM_DIM_MAX = 8,
  PROGRAM_DIM_END = 0,
};

#endif
