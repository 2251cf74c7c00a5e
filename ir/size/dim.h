/* dim.h: symbolic sizes. A dim is a constant or an expression over symbols (a fed batch, a dequeued count, ...).
 *
 * Expressions are kept in a normal form (sums of integer multiples of products of atoms; an atom is a symbol or a
 * floordiv, mod, min, max of dims) and are hash-consed, so two dims are equal when their ids are. Symbols may be unified:
 * the first of the two then stands for both; dim_resolve gives the form after all unifications so far.
 * Symbols are sizes unless made otherwise: they are known to be >= 0.
 */
#ifndef TFC_IR_SIZE_DIM_H
#define TFC_IR_SIZE_DIM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/vec.h"

typedef uint32_t dim;
#define NO_DIM 0u

struct dim_table;

struct dim_table *dims_create(struct arena *arena);
dim dim_const(struct dim_table *t, int64_t value);
dim dim_symbol(struct dim_table *t, const char *name);   /* a new one each time */
dim dim_of_symbol(struct dim_table *t, uint32_t symbol); /* an existing one, as it was made */
uint32_t dims_symbol_count(const struct dim_table *t);
const char *dims_symbol_name(const struct dim_table *t, uint32_t symbol);

dim dim_add(struct dim_table *t, dim a, dim b);
dim dim_sub(struct dim_table *t, dim a, dim b);
dim dim_mul(struct dim_table *t, dim a, dim b);
dim dim_floordiv(struct dim_table *t, dim a, dim b); /* NO_DIM when b is 0 */
dim dim_mod(struct dim_table *t, dim a, dim b);      /* floored; NO_DIM when b is 0 */
dim dim_min(struct dim_table *t, dim a, dim b);
dim dim_max(struct dim_table *t, dim a, dim b);

bool dim_is_const(const struct dim_table *t, dim d, int64_t *value);
bool dim_is_symbol(const struct dim_table *t, dim d, uint32_t *symbol);
/* 1 true, 0 false, -1 not known while compiling */
int dim_equal(struct dim_table *t, dim a, dim b);
int dim_less(struct dim_table *t, dim a, dim b); /* a < b, from bounds: symbols are >= 0 */
/* Makes two dims equal from now on when one is a bare symbol (and the other does not contain it): true, and the pair is
 * recorded so that the runtime checks it. False when it cannot be said so simply. */
bool dim_unify(struct dim_table *t, dim a, dim b);
/* Two dims that are equal when one symbol has a certain value become that symbol and the value; others stay. */
void dim_isolate(struct dim_table *t, dim *a, dim *b);
/* Who assumes from now on: "node (Op)". Kept by reference. */
void dims_set_reason(struct dim_table *t, const char *why);
/* Why a symbol stands for something else; NULL when it does not. */
const char *dim_reason(const struct dim_table *t, dim symbol);
dim dim_resolve(struct dim_table *t, dim d);
/* d with symbols[s] in the place of each symbol s; NO_DIM there: it stays. */
dim dim_replace(struct dim_table *t, dim d, const dim *symbols);
/* "n0*784 + 1" in memory of the table */
const char *dim_text(struct dim_table *t, dim d);

/* Postfix code for the runtime: see runtime/program/program.h (PROGRAM_DIM_*). Appends words to `code`. */
struct dim_code {
  VEC(int64_t) words;
};
void dim_emit(struct dim_table *t, dim d, struct dim_code *code);
/* The value when each symbol s has symbols[s]. */
int64_t dim_eval(struct dim_table *t, dim d, const int64_t *symbols);
/* Marks seen[s] for each symbol in d. */
void dim_symbols(struct dim_table *t, dim d, bool *seen);
bool dim_has_symbol(const struct dim_table *t, dim d, uint32_t symbol);
/* Whether d has a symbol with this number or a higher one: they are numbered as they are made. */
bool dim_has_symbol_from(const struct dim_table *t, dim d, uint32_t first);

#endif
