/* transfer.c: the receives of a program, sorted by number; entries number their transfers each for itself, so several may have one. */
#include "runtime/step/transfer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "runtime/step/exchange.h"

struct transfer_row {
  uint32_t transfer, from; /* PROGRAM_TASK_DRIVER: whoever drives */
  const struct program_slot *slot;
};
struct transfer_table {
  const struct program *program;
  VEC(struct transfer_row) rows;
};

static void add_block(struct transfer_table *table, const struct program_part *part, uint32_t number) {
  const struct program *program = table->program;
  const struct program_block *block = program_block(program, number);
  for (uint32_t i = 0; i < block->instrs.count; i++) {
    const struct program_instr *instr = program_instr(program, block->instrs.first + i);
    for (uint32_t j = 0; j < instr->blocks.count; j++)
      add_block(table, part, instr->blocks.first + j);
    if (instr->op != INSTR_RECV)
      continue;
    uint32_t slot = program_operands(program, instr->outputs.first)[0];
    uint32_t from = instr->peer < program->tables[PROGRAM_TASKS].count ? instr->peer : PROGRAM_TASK_DRIVER;
    vec_push(&table->rows, (struct transfer_row){instr->number, from, program_slot(program, part->slots.first + slot)});
  }
}

static int compare_rows(const void *a, const void *b) {
  const struct transfer_row *x = a, *y = b;
  return x->transfer < y->transfer ? -1 : x->transfer > y->transfer;
}

status transfer_table_create(const struct program *program, struct transfer_table **out) {
  struct transfer_table *table = calloc(1, sizeof *table);
  if (!table)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  table->program = program;
  for (uint32_t i = 0; i < program->tables[PROGRAM_PARTS].count; i++)
    add_block(table, program_part(program, i), program_part(program, i)->block);
  if (table->rows.count > 0)
    qsort(table->rows.items, table->rows.count, sizeof *table->rows.items, compare_rows);
  *out = table;
  return OK;
}

void transfer_table_destroy(struct transfer_table *table) {
  if (!table)
    return;
  vec_free(&table->rows);
  free(table);
}

/* Sizes that are known while compiling agree. */
static bool shape_fits(const struct program *program, const struct program_slot *slot, const struct shape *shape) {
  if (slot->any_rank)
    return true;
  if (slot->rank != shape->rank)
    return false;
  for (int d = 0; d < shape->rank; d++) {
    const int64_t *code = program_words(program, program_operands(program, slot->dims)[d]);
    if (code[0] == PROGRAM_DIM_CONST && code[2] == PROGRAM_DIM_END && code[1] != shape->dims[d])
      return false;
  }
  return true;
}

static bool row_fits(const struct transfer_table *table, const struct transfer_row *row, const struct transfer_claim *claim) {
  uint32_t from = row->from == PROGRAM_TASK_DRIVER ? (uint32_t)(claim->step >> 48) : row->from;
  return from == claim->from && row->slot->dtype == claim->dtype && shape_fits(table->program, row->slot, &claim->shape);
}

status transfer_check(const struct transfer_table *table, const struct transfer_claim *claim) {
  uint32_t low = 0, high = table->rows.count;
  if (claim->transfer >= TRANSFER_STATE && claim->step >> 48 == table->program->task)
    return OK;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (table->rows.items[middle].transfer < claim->transfer)
      low = middle + 1;
    else
      high = middle;
  }
  bool fits = false;
  for (; low < table->rows.count && table->rows.items[low].transfer == claim->transfer && !fits; low++)
    fits = row_fits(table, &table->rows.items[low], claim);
  return fits ? OK
              : fail(DATA_LOSS, "it sends a value %s%s as transfer %u, which nothing here receives from it", dtype_name(claim->dtype),
                     shape_text(&claim->shape), claim->transfer);
}
