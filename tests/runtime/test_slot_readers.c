/* test_slot_readers.c: who reads a slot: directly, through branches, and from turn to turn of a loop. */
#include <stdbool.h>
#include <string.h>

#include "runtime/memory/slot_readers.h"
#include "tests/support/part_text.h"
#include "tests/support/test.h"

/* Instruction 0 is a region, or what hands on; then kernels, whose last one is dealt to threads. */
static struct slot_reader reader_of(const struct part_text *text, uint32_t slot) {
  struct slot_reader readers[PART_SLOTS] = {0};
  bool is_dealt[PART_INSTRS] = {0};
  is_dealt[text->part.instr_count - 1] = true;
  slot_readers_find(&text->head, &text->part, is_dealt, readers);
  return readers[text->slots[slot].root];
}
static void check_reader(const struct part_text *text, uint32_t slot, uint32_t only, bool by_several_threads) {
  struct slot_reader r = reader_of(text, slot);
  assert_int_equal(r.only, only);
  assert_int_equal(r.by_several_threads, by_several_threads);
}
static struct program_instr *begin(struct part_text *text, enum program_op op, uint32_t args, uint32_t outputs) {
  begin_text(text);
  text->instrs[0] = (struct program_instr){.op = (uint8_t)op, .args = operands_of(text, args), .outputs = operands_of(text, outputs)};
  text->part.instr_count = 1;
  return &text->instrs[0];
}

static void those_that_take_it(void **state) {
  (void)state;
  struct part_text text;
  begin(&text, INSTR_NOOP, 0, 0);
  add_kernel(&text, 0, S(0) | S(1), S(2));
  add_kernel(&text, 0, S(1) | S(2) | S(3), S(3)); /* 3: what it makes is among its arguments */
  check_reader(&text, 0, 2, false);
  check_reader(&text, 1, SLOT_READ_BY_SEVERAL, true);
  check_reader(&text, 2, 3, true);
  check_reader(&text, 3, 0, false);
}
static void those_of_other_names_for_it(void **state) {
  (void)state;
  struct part_text text;
  begin(&text, INSTR_ALIAS, S(0), S(1));
  text.slots[1].root = 0;
  add_kernel(&text, 0, S(1), S(2));
  check_reader(&text, 0, 2, true);
  begin(&text, INSTR_NOOP, S(0), S(1)); /* an alias where instructions run by counts */
  text.slots[1].root = 0;
  add_kernel(&text, 0, S(1), S(2));
  check_reader(&text, 0, 2, true);
  begin(&text, INSTR_MERGE, S(0) | S(1) | S(2), S(3));
  add_kernel(&text, 0, S(3), S(4));
  check_reader(&text, 0, 0, false);
  check_reader(&text, 1, 2, true);
  check_reader(&text, 2, 2, true);
}

/* Slot 0 decides, 1 goes in as 2, 3 comes out as 4. */
static void those_in_a_branch_and_behind_it(void **state) {
  (void)state;
  struct part_text text;
  begin(&text, INSTR_IF, S(0) | S(1), S(4))->blocks = (struct program_range){1, 1};
  text.blocks[1].params = operands_of(&text, S(2));
  text.blocks[1].results = operands_of(&text, S(3));
  add_kernel(&text, 0, S(2), S(3));
  add_kernel(&text, 0, S(4), S(5));
  check_reader(&text, 1, 2, false);
  check_reader(&text, 3, 3, true);
}
/* Slot 0 goes in as 1 (2 for the condition), 3 comes back from a turn, 4 behind the loop. */
static struct program_instr *begin_loop(struct part_text *text) {
  struct program_instr *loop = begin(text, INSTR_WHILE, S(0), S(4));
  loop->blocks = (struct program_range){1, 2};
  text->blocks[1].params = operands_of(text, S(2));
  text->blocks[2].params = operands_of(text, S(1));
  text->blocks[2].results = operands_of(text, S(3));
  return loop;
}
static void those_of_the_next_turn(void **state) {
  (void)state;
  struct part_text text;
  begin_loop(&text);
  add_kernel(&text, 0, S(1), S(3)); /* an update of its own */
  add_kernel(&text, 0, S(4), S(5)); /* behind the loop: once */
  check_reader(&text, 3, 2, false);
  check_reader(&text, 0, 2, false);
  begin_loop(&text);
  add_kernel(&text, 0, S(2), S(6)); /* the condition's */
  add_kernel(&text, 0, S(1), S(3));
  check_reader(&text, 3, SLOT_READ_BY_SEVERAL, true);
}
/* Slot 3 is a row of 4. */
static void those_of_the_array_that_it_is_a_row_of(void **state) {
  (void)state;
  struct part_text text;
  struct program_instr *loop = begin(&text, INSTR_WHILE, 0, S(4));
  loop->blocks = (struct program_range){1, 2};
  loop->peer = 1;
  text.blocks[2].results = operands_of(&text, S(3));
  add_kernel(&text, 0, 0, S(3));
  add_kernel(&text, 0, S(4), S(5));
  check_reader(&text, 3, 3, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(those_that_take_it),
    cmocka_unit_test(those_of_other_names_for_it),
    cmocka_unit_test(those_in_a_branch_and_behind_it),
    cmocka_unit_test(those_of_the_next_turn),
    cmocka_unit_test(those_of_the_array_that_it_is_a_row_of),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
