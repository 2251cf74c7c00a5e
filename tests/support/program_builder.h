/* program_builder.h: small programs for tests of the runtime, written table by table, without the compiler. */
#ifndef TFC_TESTS_SUPPORT_PROGRAM_BUILDER_H
#define TFC_TESTS_SUPPORT_PROGRAM_BUILDER_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/vec.h"
#include "runtime/program/program.h"

struct program_builder {
  VEC(char) texts, data;
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
  VEC(struct program_node) nodes;
  uint32_t kernel_count, sizes, kernels;
  struct program *program;
};

static inline uint32_t pb_text(struct program_builder *b, const char *text) {
  uint32_t at = b->texts.count;
  for (const char *p = text;; p++) {
    vec_push(&b->texts, *p);
    if (!*p)
      return at;
  }
}

static inline void pb_begin(struct program_builder *b) {
  memset(b, 0, sizeof *b);
  pb_text(b, "");
  vec_push(&b->tasks, (struct program_task){.job = pb_text(b, "worker")});
}

/* size >= 0: a constant; -1 - s: symbol s. */
static inline uint32_t pb_code(struct program_builder *b, int64_t size) {
  uint32_t at = b->words.count;
  vec_push(&b->words, size >= 0 ? PROGRAM_DIM_CONST : PROGRAM_DIM_SYMBOL);
  vec_push(&b->words, size >= 0 ? size : -1 - size);
  vec_push(&b->words, PROGRAM_DIM_END);
  return at;
}

static inline struct program_range pb_list(struct program_builder *b, int count, const uint32_t *items) {
  struct program_range range = {b->operands.count, (uint32_t)count};
  for (int i = 0; i < count; i++)
    vec_push(&b->operands, items[i]);
  return range;
}
#define PB_LIST(b, ...) pb_list(b, (int)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), (uint32_t[]){__VA_ARGS__})

/* rank 0 or 1; size as in pb_code. */
static inline uint32_t pb_slot(struct program_builder *b, enum dtype dtype, int rank, int64_t size, enum program_storage storage) {
  struct program_slot slot = {
    .dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .storage = (uint8_t)storage, .root = b->slots.count, .first = 0, .last = 1000};
  const uint32_t code = pb_code(b, size);
  slot.dims = pb_list(b, rank, &code).first;
  vec_push(&b->slots, slot);
  return b->slots.count - 1;
}

static inline uint32_t pb_port(struct program_builder *b, const char *name, enum dtype dtype, int rank, int64_t size) {
  struct program_port port = {.name = pb_text(b, name), .tensor = pb_text(b, name), .dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
  const uint32_t code = pb_code(b, size), reason = pb_text(b, "");
  port.dims = pb_list(b, rank, &code).first;
  port.reasons = pb_list(b, rank, &reason).first;
  vec_push(&b->ports, port);
  return b->ports.count - 1;
}

static inline uint32_t pb_variable(struct program_builder *b, const char *name, enum dtype dtype, bool zero) {
  vec_push(&b->variables, (struct program_variable){.name = pb_text(b, name),
                                                    .container = pb_text(b, "localhost"),
                                                    .dtype = (uint8_t)dtype,
                                                    .has_shape = 1,
                                                    .has_initial = zero ? PROGRAM_INITIAL_ZERO : PROGRAM_INITIAL_NONE});
  return b->variables.count - 1;
}

static inline struct program_instr *pb_instr(struct program_builder *b, enum program_op op, uint32_t number) {
  vec_push(&b->instrs, (struct program_instr){.op = (uint8_t)op, .number = number});
  struct program_instr *instr = &vec_last(&b->instrs);
  instr->tf_op = pb_text(b, "Op");
  instr->node = pb_text(b, "node");
  instr->place = pb_text(b, "");
  return instr;
}

/* A kernel with one size (as in pb_code) and these arguments. */
static inline struct program_instr *pb_kernel(struct program_builder *b, uint32_t kernel, struct program_range args, int64_t size) {
  uint32_t code = pb_code(b, size);
  struct program_range sizes = PB_LIST(b, code);
  struct program_instr *instr = pb_instr(b, INSTR_KERNEL, kernel);
  instr->args = args;
  instr->sizes = sizes;
  instr->sizes_at = b->sizes++;
  instr->kernel_at = b->kernels++;
  return instr;
}

/* One entry whose only part is all that was written; the outer block has the first `outer` instructions. */
static inline void pb_entry(struct program_builder *b, const char *name, uint32_t feeds, uint32_t fetches, uint32_t symbols, uint32_t outer,
                            bool dataflow) {
  vec_push(&b->blocks, (struct program_block){.instrs = {0, outer}});
  struct program_part part = {
    .task = 0, .block = b->blocks.count - 1, .slots = {0, b->slots.count}, .instr_count = b->instrs.count, .dataflow = dataflow};
  vec_push(&b->parts, part);
  struct program_entry entry = {.name = pb_text(b, name), .feeds = {0, feeds}, .fetches = {feeds, fetches}, .parts = {0, 1}};
  entry.symbols = pb_list(b, (int)symbols, (uint32_t[16]){0});
  vec_push(&b->entries, entry);
}

static inline const struct program *pb_finish(struct program_builder *b) {
  struct {
    void *items;
    uint64_t count, bytes;
  } tables[PROGRAM_TABLE_COUNT] = {
#define TABLE(vec) {(vec).items, (vec).count, sizeof *(vec).items}
    TABLE(b->texts), TABLE(b->data),   TABLE(b->words),  TABLE(b->operands), TABLE(b->tasks), TABLE(b->variables), TABLE(b->entries),
    TABLE(b->parts), TABLE(b->blocks), TABLE(b->instrs), TABLE(b->slots),    TABLE(b->ports), TABLE(b->attrs),     TABLE(b->nodes),
#undef TABLE
  };
  uint64_t size = (sizeof(struct program) + 63) / 64 * 64;
  struct program header = {.magic = PROGRAM_MAGIC, .kernel_count = b->kernel_count, .cpu_count = 1};
  for (int i = 0; i < PROGRAM_TABLE_COUNT; i++) {
    header.tables[i] = (struct program_table){size, tables[i].count};
    size = (size + tables[i].count * tables[i].bytes + 63) / 64 * 64;
  }
  header.size = size;
  b->program = aligned_alloc(64, size);
  memset(b->program, 0, size);
  *b->program = header;
  for (int i = 0; i < PROGRAM_TABLE_COUNT; i++)
    if (tables[i].count)
      memcpy((char *)b->program + header.tables[i].offset, tables[i].items, tables[i].count * tables[i].bytes);
  return b->program;
}

static inline void pb_end(struct program_builder *b) {
  vec_free(&b->texts);
  vec_free(&b->data);
  vec_free(&b->words);
  vec_free(&b->operands);
  vec_free(&b->tasks);
  vec_free(&b->variables);
  vec_free(&b->entries);
  vec_free(&b->parts);
  vec_free(&b->blocks);
  vec_free(&b->instrs);
  vec_free(&b->slots);
  vec_free(&b->ports);
  vec_free(&b->attrs);
  vec_free(&b->nodes);
  free(b->program);
}

#endif
