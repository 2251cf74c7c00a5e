/* emit_tables.h: the tables of a program while they are written; private to emit*.c.
 *
 * Everything is appended in the order in which the flows are walked, so the same build gives the same bytes.
 */
#ifndef TFC_COMPILER_EMIT_TABLES_H
#define TFC_COMPILER_EMIT_TABLES_H

#include "base/map.h"
#include "compiler/build.h"
#include "runtime/program/program.h"

/* Numbers per symbol of an entry. */
struct symbol_set {
  VEC(uint32_t) values; /* missing ones are 0 */
};

/* An instruction that runs regions of its node as functions. */
struct emitted_call {
  const struct flow_node *node;
  uint32_t instr, task;
};

struct emitter {
  struct build *build;
  struct arena *arena;
  uint32_t task;
  VEC(char) texts;
  VEC(uint8_t) data;
  VEC(int64_t) words;
  VEC(uint32_t) operands;
  VEC(struct program_task) tasks;
  VEC(struct program_variable) variables;
  VEC(struct program_entry) entries;
  VEC(struct program_part) parts;
  VEC(struct program_block) blocks;
  VEC(struct program_instr) instrs;
  VEC(struct program_slot) slots;
  VEC(struct program_port) ports;
  VEC(struct program_attr) attrs;
  VEC(struct program_runner) runners;
  VEC(struct program_node) nodes;
  VEC(struct kernel *) kernels;                     /* in the program's order */
  VEC(struct kernel *) scheduled[PROGRAM_CPUS_MAX]; /* the same, as each CPU runs them */
  struct map text_numbers, kernel_numbers, data_numbers;
  uint32_t *variable_numbers; /* of the build's variables: number here, or PROGRAM_NONE */
  bool too_large;             /* PROGRAM_DATA would pass 4 GiB */
  /* of the entry being written */
  struct dim_table *dims;
  VEC(uint32_t) symbol_numbers;   /* per symbol of `dims`: number + 1 in the entry, 0: none yet */
  VEC(uint32_t) symbols;          /* texts: names, by number in the entry */
  VEC(uint32_t) codes;            /* per dim: its code + 1, 0: not written yet */
  VEC(struct emitted_call) calls; /* host calls whose functions have to be written: they become parts of their own */
};

uint32_t emit_text(struct emitter *e, const char *text);
/* The elements of a constant: strings become struct program_string. */
uint64_t emit_elements(struct emitter *e, enum dtype dtype, const void *data, uint64_t count);
/* The size code of a dim of the entry's table. */
uint32_t emit_code(struct emitter *e, dim d);
uint32_t emit_constant_code(struct emitter *e, int64_t value);
/* A list of operands. */
struct program_range emit_operands(struct emitter *e, const uint32_t *items, uint32_t count);
/* Integers in PROGRAM_WORDS: the first of them. */
uint32_t emit_words(struct emitter *e, const int64_t *words, uint32_t count);
/* The number of a kernel; equal kernels are one. */
uint32_t emit_kernel_number(struct emitter *e, const struct flow_node *node);
struct program_range emit_attrs(struct emitter *e, const struct flow_attr *attrs, uint32_t count);
/* Forgets the symbols and codes of the last entry. */
void emit_begin_entry(struct emitter *e, struct dim_table *dims);

uint32_t symbol_get(const struct symbol_set *set, uint32_t symbol);
void symbol_set(struct symbol_set *set, uint32_t symbol, uint32_t value);
/* Whether every symbol of a code has a value other than 0; else *missing is one that has not. */
bool code_is_known(const struct emitter *e, uint32_t code, const struct symbol_set *known, uint32_t *missing);
/* The symbol when the code is nothing else, or PROGRAM_NONE. */
uint32_t code_symbol(const struct emitter *e, uint32_t code);

/* emit_part.c: one part of the entry. start: the symbols known when it starts. */
status emit_part(struct emitter *e, struct flow *flow, uint32_t task, const struct symbol_set *start);
/* A part once more, for partial runs: by counts, and no symbol is known when it starts. False: it cannot be written so; the caller takes
 * back what was begun. */
bool emit_partial_part(struct emitter *e, struct flow *flow, uint32_t task);
/* The functions of all host calls written since the entry began, and of those in them: parts behind the entry's own. */
status emit_functions(struct emitter *e);

#endif
