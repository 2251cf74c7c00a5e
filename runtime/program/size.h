/* size.h: evaluates the size codes of a program (PROGRAM_DIM_*) over the symbols of a step. */
#ifndef TFC_RUNTIME_PROGRAM_SIZE_H
#define TFC_RUNTIME_PROGRAM_SIZE_H

#include <stdbool.h>
#include "base/tensor.h"
#include "runtime/program/program.h"

#define SYMBOL_UNBOUND INT64_MIN

/* False when it depends on a symbol that has no value yet; without `symbols` (NULL) none has. */
bool size_eval(const int64_t *code, const int64_t *symbols, int64_t *out);
/* The symbol when the code is nothing but one; PROGRAM_NONE else. */
uint32_t size_symbol(const int64_t *code);

/* "[?,784]": with what the symbols give, or without them (NULL) what is known anyhow. `text` has `size` bytes and is what is returned. */
const char *size_shape_text(const struct program *program, const uint32_t *dims, uint32_t rank, const int64_t *symbols, char *text,
                            size_t size);

/* The shape that codes dims[0 .. rank-1] give. INTERNAL when a symbol has no value, INVALID_ARGUMENT for a negative
 * size or too many elements. */
status shape_eval(const struct program *program, const uint32_t *dims, uint32_t rank, const int64_t *symbols, struct shape *out);
/* Fits a shape that arrived to the one that was compiled for: symbols without a value get one, everything else must
 * agree: INVALID_ARGUMENT with both shapes (the caller prefixes what it was). */
status shape_bind(const struct program *program, const uint32_t *dims, uint32_t rank, const struct shape *shape, int64_t *symbols);

#endif
