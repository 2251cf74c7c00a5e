/* rehearsal.c: see rehearsal.h. What came is kept in a record of its own, instruction by instruction. */
#include "runtime/step/rehearsal.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/memory/variable.h"
#include "runtime/step/record.h"
#include "runtime/step/task_state.h"

struct copied {
  uint32_t number;
  struct variable variable;
};
struct rehearsal {
  struct task *task;
  uint32_t end; /* number of the first instruction that is not rehearsed */
  uint32_t begin;
  bool is_own, is_over;
  struct record *came;
  struct copied **copies; /* each stays where it is: kernels lock them */
  uint32_t copy_count;
};

/* ---- which parts ---- */

static bool block_changes(const struct program *program, uint32_t block);

bool instr_changes_variable(const struct program *program, const struct program_instr *instr) {
  const uint32_t *args = program_operands(program, instr->args.first);
  for (uint32_t i = 0; i < instr->blocks.count; i++)
    if (block_changes(program, instr->blocks.first + i))
      return true;
  if (!(instr->flags & INSTR_CHANGES))
    return false;
  if (instr->op == INSTR_ASSIGN)
    return true;
  const uint32_t *spec = program_operands(program, instr->shapes);
  for (uint32_t i = 0; instr->op == INSTR_KERNEL && i < instr->args.count; i++) {
    if (!(args[i] & PROGRAM_ARG_VARIABLE) || args[i] == PROGRAM_ARG_SCRATCH)
      continue;
    const struct program_variable *variable = program_variable(program, args[i] & ~PROGRAM_ARG_VARIABLE);
    if (spec[0] != PROGRAM_VARIABLE_IN && strcmp(program_text(program, variable->container), VARIABLE_RANDOM) != 0)
      return true;
    spec += 2 + spec[1];
  }
  return false;
}

static bool block_changes(const struct program *program, uint32_t block) {
  const struct program_range instrs = program_block(program, block)->instrs;
  for (uint32_t i = 0; i < instrs.count; i++)
    if (instr_changes_variable(program, program_instr(program, instrs.first + i)))
      return true;
  return false;
}

uint32_t rehearsal_length(const struct program *program, const struct program_part *part) {
  const struct program_range instrs = program_block(program, part->block)->instrs;
  uint32_t first_change = 0, length = 0;
  while (first_change < instrs.count && !instr_changes_variable(program, program_instr(program, instrs.first + first_change)))
    first_change++;
  for (uint32_t i = first_change; i < instrs.count; i++)
    if (program_instr(program, instrs.first + i)->op == INSTR_RECV)
      length = i + 1;
  return length;
}

/* ---- life ---- */

status rehearsal_create(struct task *task, const struct part *part, bool is_own, struct rehearsal **out) {
  struct rehearsal *rehearsal = calloc(1, sizeof *rehearsal);
  if (!rehearsal)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  rehearsal->task = task;
  rehearsal->is_own = is_own;
  rehearsal->begin = program_block(part->program, part->code->block)->instrs.first;
  rehearsal->end = rehearsal->begin + part->rehearsed;
  status result = record_create(0, 0, &rehearsal->came);
  if (result == OK)
    *out = rehearsal;
  else
    rehearsal_destroy(rehearsal);
  return result;
}

bool rehearsal_is_own(const struct rehearsal *rehearsal) { return rehearsal && rehearsal->is_own; }

static void forget_copies(struct rehearsal *rehearsal) {
  for (uint32_t i = 0; i < rehearsal->copy_count; i++) {
    variable_deinit(&rehearsal->copies[i]->variable);
    free(rehearsal->copies[i]);
  }
  rehearsal->copy_count = 0;
}

void rehearsal_destroy(struct rehearsal *rehearsal) {
  if (!rehearsal)
    return;
  forget_copies(rehearsal);
  free(rehearsal->copies);
  record_destroy(rehearsal->came);
  free(rehearsal);
}

void rehearsal_end(struct rehearsal *rehearsal) {
  rehearsal->is_over = true;
  for (uint32_t i = 0; i < rehearsal->copy_count && rehearsal->is_own; i++)
    variable_swap(&rehearsal->task->variables[rehearsal->copies[i]->number], &rehearsal->copies[i]->variable);
  forget_copies(rehearsal);
  record_begin(rehearsal->came, 0, 0);
}

/* ---- while the part runs ---- */

static uint32_t number_of(const struct frame *frame, const struct program_instr *instr) {
  return (uint32_t)(instr - program_instr(frame->program, 0));
}

bool rehearsal_is_on(const struct frame *frame) { return __builtin_expect(frame->rehearsal != NULL, 0) && !frame->rehearsal->is_over; }

bool rehearsal_skips(const struct frame *frame, const struct program_instr *instr) {
  const struct rehearsal *rehearsal = frame->rehearsal;
  if (__builtin_expect(!rehearsal, 1))
    return false;
  bool is_rehearsed = number_of(frame, instr) < rehearsal->end;
  return rehearsal->is_over ? is_rehearsed && (rehearsal->is_own || instr->op == INSTR_SEND) : !is_rehearsed;
}

bool rehearsal_covers(const struct frame *frame, const struct program_instr *instr) {
  return rehearsal_is_on(frame) && instr->op != INSTR_HOST &&
         (!rehearsal_is_own(frame->rehearsal) || instr_changes_variable(frame->program, instr));
}

struct program_range rehearsal_instrs(const struct frame *frame, struct program_range instrs) {
  uint32_t rehearsed = frame->part->rehearsed;
  if (rehearsal_is_on(frame))
    instrs.count = rehearsed;
  else if (rehearsal_is_own(frame->rehearsal))
    instrs = (struct program_range){instrs.first + rehearsed, instrs.count - rehearsed};
  return instrs;
}

static struct copied *find_copy(const struct rehearsal *rehearsal, uint32_t number) {
  for (uint32_t i = 0; i < rehearsal->copy_count; i++)
    if (rehearsal->copies[i]->number == number)
      return rehearsal->copies[i];
  return NULL;
}

struct variable *rehearsal_variable(const struct frame *frame, uint32_t number) {
  struct copied *copy = __builtin_expect(frame->rehearsal != NULL, 0) ? find_copy(frame->rehearsal, number) : NULL;
  return copy ? &copy->variable : &frame->part->task->variables[number];
}

status rehearsal_change(struct frame *frame, uint32_t number) {
  struct rehearsal *rehearsal = frame->rehearsal;
  struct variable *variable = &frame->part->task->variables[number];
  if (!rehearsal_is_on(frame) || variable_is_random(variable) || find_copy(rehearsal, number))
    return OK;
  struct copied **grown = realloc(rehearsal->copies, (rehearsal->copy_count + 1) * sizeof(struct copied *));
  if (!grown)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  rehearsal->copies = grown;
  struct copied *copy = calloc(1, sizeof *copy);
  if (!copy)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  copy->number = number;
  status result = variable_clone(variable, &copy->variable);
  if (result == OK)
    rehearsal->copies[rehearsal->copy_count++] = copy;
  else
    free(copy);
  return result;
}

status rehearsal_keep(struct frame *frame, const struct program_instr *instr, struct tensor *const *values, uint32_t count) {
  bool is_run_again = rehearsal_is_on(frame) && !rehearsal_is_own(frame->rehearsal);
  return is_run_again ? record_add(frame->rehearsal->came, number_of(frame, instr), values, count) : OK;
}

bool rehearsal_find(struct frame *frame, const struct program_instr *instr, struct tensor ***out) {
  struct record_item item;
  if (__builtin_expect(!frame->rehearsal, 1) || !frame->rehearsal->is_over)
    return false;
  bool is_there = record_find(frame->rehearsal->came, number_of(frame, instr), &item);
  if (is_there)
    *out = item.outputs;
  return is_there;
}
