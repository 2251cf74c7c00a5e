/* part_text.h: for tests: a part of a program written by hand: its instructions, blocks and slots. */
#ifndef TFC_TESTS_PART_TEXT_H
#define TFC_TESTS_PART_TEXT_H

#include <stddef.h>

#include "runtime/program/program.h"

#define PART_SLOTS 8
#define PART_INSTRS 8
#define S(i) (1u << (i)) /* a list of slots: a bit for each */

struct part_text {
  struct program head;
  struct program_block blocks[3];
  struct program_instr instrs[PART_INSTRS];
  struct program_slot slots[PART_SLOTS];
  uint32_t operands[PART_INSTRS * PART_SLOTS];
  int64_t words[8];
  uint32_t operand_count;
  struct program_part part;
};
#define PART_TABLE(id, field) \
  text->head.tables[id] = (struct program_table) { offsetof(struct part_text, field), sizeof text->field / sizeof *text->field }
static inline void begin_text(struct part_text *text) {
  *text = (struct part_text){0};
  PART_TABLE(PROGRAM_BLOCKS, blocks);
  PART_TABLE(PROGRAM_INSTRS, instrs);
  PART_TABLE(PROGRAM_SLOTS, slots);
  PART_TABLE(PROGRAM_OPERANDS, operands);
  PART_TABLE(PROGRAM_WORDS, words);
  text->part.slots.count = PART_SLOTS;
  for (uint32_t i = 0; i < PART_SLOTS; i++)
    text->slots[i] = (struct program_slot){.storage = STORAGE_TENSOR, .root = i};
}
static inline struct program_range operands_of(struct part_text *text, uint32_t bits) {
  struct program_range range = {text->operand_count, 0};
  for (uint32_t i = 0; bits >> i; i++)
    if (bits >> i & 1) {
      text->operands[text->operand_count++] = i;
      range.count++;
    }
  return range;
}
static inline void add_kernel(struct part_text *text, int kernel, uint32_t reads, uint32_t writes) {
  struct program_part *part = &text->part;
  text->instrs[part->instr_count] = (struct program_instr){.op = INSTR_KERNEL,
                                                           .number = (uint32_t)kernel,
                                                           .kernel_at = part->instr_count,
                                                           .args = operands_of(text, reads),
                                                           .outputs = operands_of(text, writes)};
  part->instr_count++;
}

#endif
