/* slot_readers.c: the readers of each slot are found at the instructions, and then handed to the slots that they are read for, until
 * nothing changes any more. */
#include "runtime/memory/slot_readers.h"

struct readers {
  const struct program *program;
  const struct program_part *part;
  struct slot_reader *out;
  bool has_changed;
};

static uint32_t root_of(const struct readers *r, uint32_t slot) { return program_slot(r->program, r->part->slots.first + slot)->root; }

static void add_reader(struct readers *r, uint32_t slot, struct slot_reader reader) {
  struct slot_reader *at = &r->out[root_of(r, slot)], was = *at;
  if (reader.only)
    at->only = at->only == 0 || at->only == reader.only ? reader.only : SLOT_READ_BY_SEVERAL;
  at->by_several_threads |= reader.by_several_threads;
  r->has_changed |= at->only != was.only || at->by_several_threads != was.by_several_threads;
}
/* What is read at `to` is what was at `from`. */
static void hand_on(struct readers *r, uint32_t from, uint32_t to) { add_reader(r, from, r->out[root_of(r, to)]); }
static void hand_on_all(struct readers *r, const uint32_t *from, const uint32_t *to, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    hand_on(r, from[i], to[i]);
}

static bool is_written(const struct program *program, const struct program_instr *instr, uint32_t slot) {
  const uint32_t *outputs = program_operands(program, instr->outputs.first);
  for (uint32_t i = 0; i < instr->outputs.count; i++)
    if (outputs[i] == slot)
      return true;
  return false;
}
static void read_args(struct readers *r, const struct program_instr *instr, struct slot_reader reader) {
  const uint32_t *args = program_operands(r->program, instr->args.first);
  for (uint32_t i = 0; i < instr->args.count; i++)
    if (args[i] < r->part->slots.count && !is_written(r->program, instr, args[i])) /* else a variable, or scratch */
      add_reader(r, args[i], reader);
}

/* The first argument says which block; the others are their parameters. */
static void pass_branches(struct readers *r, const struct program_instr *instr) {
  const uint32_t *args = program_operands(r->program, instr->args.first), *outputs = program_operands(r->program, instr->outputs.first);
  for (uint32_t i = 0; i < instr->blocks.count; i++) {
    const struct program_block *block = program_block(r->program, instr->blocks.first + i);
    hand_on_all(r, args + 1, program_operands(r->program, block->params.first), block->params.count);
    hand_on_all(r, program_operands(r->program, block->results.first), outputs, instr->outputs.count);
  }
}
/* Of loop variables that the body gives back the next turn's reading counts: behind the loop they are read once. */
static void pass_turns(struct readers *r, const struct program_instr *instr) {
  const uint32_t *args = program_operands(r->program, instr->args.first), *outputs = program_operands(r->program, instr->outputs.first);
  const struct program_block *condition = program_block(r->program, instr->blocks.first), *body = condition + 1;
  const uint32_t *params = program_operands(r->program, body->params.first);
  const uint32_t *results = program_operands(r->program, body->results.first);
  uint32_t variables = instr->args.count - instr->number;
  hand_on_all(r, args, program_operands(r->program, condition->params.first), condition->params.count);
  hand_on_all(r, args, params, body->params.count);
  hand_on_all(r, results, params, variables);
  hand_on_all(r, results + variables, outputs + variables, instr->peer); /* rows */
  hand_on_all(r, params, program_operands(r->program, condition->params.first), condition->params.count);
}

static void pass_on(struct readers *r, const struct program_instr *instr) {
  const uint32_t *args = program_operands(r->program, instr->args.first), *outputs = program_operands(r->program, instr->outputs.first);
  if (instr->op == INSTR_IF)
    pass_branches(r, instr);
  else if (instr->op == INSTR_WHILE)
    pass_turns(r, instr);
  else if (instr->op == INSTR_MERGE)
    hand_on_all(r, args + 1, (uint32_t[]){outputs[0], outputs[0]}, 2);
}
static bool hands_on(const struct program_instr *instr) {
  return instr->op == INSTR_IF || instr->op == INSTR_WHILE || instr->op == INSTR_MERGE || instr->op == INSTR_ALIAS ||
         instr->op == INSTR_NOOP; /* of a part that runs by counts: an alias */
}

void slot_readers_find(const struct program *program, const struct program_part *part, const bool *is_dealt, struct slot_reader *out) {
  struct readers r = {.program = program, .part = part, .out = out};
  const struct program_block *outer = program_block(program, part->block);
  for (uint32_t i = 0; i < part->instr_count; i++) {
    const struct program_instr *instr = program_instr(program, outer->instrs.first + i);
    if (!hands_on(instr))
      read_args(&r, instr, (struct slot_reader){i + 1, is_dealt[i]});
  }
  do {
    r.has_changed = false;
    for (uint32_t i = 0; i < part->instr_count; i++)
      pass_on(&r, program_instr(program, outer->instrs.first + i));
  } while (r.has_changed);
}
