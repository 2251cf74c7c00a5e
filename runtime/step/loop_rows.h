/* loop_rows.h: arrays of which a loop takes, or makes, one row in each turn: where they lie. One thread. */
#ifndef TFC_RUNTIME_STEP_LOOP_ROWS_H
#define TFC_RUNTIME_STEP_LOOP_ROWS_H

#include "runtime/step/frame.h"

struct loop_array {
  char *data;
  int64_t row_bytes, rows; /* rows: of an array that is made: as many as there is room for */
  struct shape row;
  struct tensor *tensor; /* that is made */
  uint32_t slot;         /* the body's, for its row */
};
struct loop_rows {
  struct frame *frame;
  struct loop_array *arrays; /* in_count that are taken, then out_count that are made */
  uint32_t in_count, out_count;
  bool from_last, is_open;  /* is_open: how many rows are made shows when the loop ends */
  int64_t turn;             /* begun, from 1 on */
  struct tensor **outgrown; /* arrays that were too small: earlier turns' rows may still be read there */
  uint32_t outgrown_count, outgrown_room;
};

/* Of an instruction WHILE. RESOURCE_EXHAUSTED. Deinit in any case. */
status loop_rows_begin(struct loop_rows *rows, struct frame *frame, const struct program_instr *instr);
/* The row of taken array i for the turn that begins. INTERNAL: it has none. */
status loop_rows_take(const struct loop_rows *rows, uint32_t i, void **data, struct shape *shape);
/* Places this turn's rows in the body's slots; counts the turn. RESOURCE_EXHAUSTED. */
status loop_rows_place(struct loop_rows *rows);
/* At the end of a turn: what was made elsewhere is copied into its row. */
status loop_rows_fill(struct loop_rows *rows);
/* Made array i, the caller's from here on. INTERNAL: it was to have more rows than there were turns. */
status loop_rows_end(struct loop_rows *rows, uint32_t i, struct tensor **out);
void loop_rows_deinit(struct loop_rows *rows);

#endif
