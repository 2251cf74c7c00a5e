/* loop_rows.c: see loop_rows.h. */
#include "runtime/step/loop_rows.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/memory/buffer.h"
#include "runtime/program/size.h"
#include "runtime/step/task_state.h"

#define OPEN_ROWS 16 /* of an array whose length is not known, at first; doubled when they are full */

static struct shape array_shape(const struct loop_array *array, int64_t rows) {
  struct shape shape = {.rank = array->row.rank + 1};
  shape.dims[0] = rows;
  memcpy(shape.dims + 1, array->row.dims, sizeof *shape.dims * (size_t)array->row.rank);
  return shape;
}

static status make_array(struct loop_rows *r, struct loop_array *array, int64_t rows) {
  struct shape shape = array_shape(array, rows);
  TRY(buffer_tensor(r->frame->part->task->buffers, (enum dtype)r->frame->slots[array->slot].dtype, &shape, &array->tensor));
  array->data = array->tensor->data;
  array->rows = rows;
  return OK;
}

static status begin_in(struct loop_rows *r, struct loop_array *array, uint32_t from, uint32_t to) {
  struct shape shape;
  TRY(frame_shape(r->frame, from, &shape));
  array->slot = to;
  array->data = r->frame->data[from];
  array->rows = shape.dims[0];
  array->row.rank = shape.rank - 1;
  memcpy(array->row.dims, shape.dims + 1, sizeof *shape.dims * (size_t)array->row.rank);
  return OK;
}

static status begin_out(struct loop_rows *r, struct loop_array *array, uint32_t from, uint32_t to) {
  const struct frame *frame = r->frame;
  const int64_t *code = program_words(frame->program, *program_operands(frame->program, frame->slots[to].dims));
  int64_t rows;
  array->slot = from;
  TRY(frame_shape(frame, from, &array->row));
  r->is_open = !size_eval(code, frame->symbols, &rows);
  return make_array(r, array, r->is_open ? OPEN_ROWS : rows);
}

status loop_rows_begin(struct loop_rows *r, struct frame *frame, const struct program_instr *instr) {
  const struct program *program = frame->program;
  const struct program_block *body = program_block(program, instr->blocks.first + 1);
  const uint32_t *args = program_operands(program, instr->args.first), *outputs = program_operands(program, instr->outputs.first);
  const uint32_t *params = program_operands(program, body->params.first), *results = program_operands(program, body->results.first);
  uint32_t vars = instr->args.count - instr->number;
  *r = (struct loop_rows){.frame = frame, .from_last = instr->flags & INSTR_FROM_LAST};
  if (instr->number + instr->peer == 0)
    return OK;
  r->arrays = calloc(instr->number + instr->peer, sizeof *r->arrays);
  if (!r->arrays)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  r->in_count = instr->number;
  r->out_count = instr->peer;
  for (uint32_t i = 0; i < r->in_count; i++)
    TRY(begin_in(r, &r->arrays[i], args[vars + i], params[vars + i]));
  for (uint32_t i = 0; i < r->out_count; i++)
    TRY(begin_out(r, &r->arrays[r->in_count + i], results[vars + i], outputs[vars + i]));
  for (uint32_t i = 0; i < r->in_count + r->out_count; i++)
    r->arrays[i].row_bytes = shape_count(&r->arrays[i].row) * (int64_t)dtype_size((enum dtype)frame->slots[r->arrays[i].slot].dtype);
  return OK;
}

static int64_t row_of(const struct loop_rows *r, const struct loop_array *array, int64_t turn) {
  return r->from_last ? array->rows - 1 - turn : turn;
}

status loop_rows_take(const struct loop_rows *r, uint32_t i, void **data, struct shape *shape) {
  const struct loop_array *array = &r->arrays[i];
  int64_t row = row_of(r, array, r->turn);
  if (row < 0 || row >= array->rows)
    return fail(INTERNAL, "a loop takes row %lld of %lld", (long long)row, (long long)array->rows);
  *data = array->data + row * array->row_bytes;
  *shape = array->row;
  return OK;
}

/* Rows that were made stay where they are: the loop's state may be one of them. */
static status grow(struct loop_rows *r, struct loop_array *array) {
  struct tensor *old = array->tensor;
  int64_t filled = array->rows;
  if (!r->is_open)
    return fail(INTERNAL, "a loop makes more than %lld rows", (long long)filled);
  if (r->outgrown_count == r->outgrown_room) {
    uint32_t room = r->outgrown_room * 2 + 8;
    struct tensor **more = realloc(r->outgrown, room * sizeof *more);
    if (!more)
      return fail(RESOURCE_EXHAUSTED, "no memory");
    r->outgrown = more;
    r->outgrown_room = room;
  }
  TRY(make_array(r, array, filled * 2));
  memcpy(array->data, old->data, (size_t)(filled * array->row_bytes));
  r->outgrown[r->outgrown_count++] = old;
  return OK;
}

status loop_rows_place(struct loop_rows *r) {
  for (uint32_t i = r->in_count; i < r->in_count + r->out_count; i++) {
    struct loop_array *array = &r->arrays[i];
    if (r->turn >= array->rows)
      TRY(grow(r, array));
    uint32_t root = r->frame->slots[array->slot].root;
    if (r->frame->slots[root].storage == STORAGE_ROW)
      r->frame->data[root] = array->data + row_of(r, array, r->turn) * array->row_bytes;
  }
  r->turn++;
  return OK;
}

status loop_rows_fill(struct loop_rows *r) {
  for (uint32_t i = r->in_count; i < r->in_count + r->out_count; i++) {
    const struct loop_array *array = &r->arrays[i];
    char *row = array->data + row_of(r, array, r->turn - 1) * array->row_bytes;
    if (array->row_bytes && r->frame->data[array->slot] != row) /* of several names for one value one alone is made in its row */
      memcpy(row, r->frame->data[array->slot], (size_t)array->row_bytes);
  }
  return OK;
}

status loop_rows_end(struct loop_rows *r, uint32_t i, struct tensor **out) {
  struct loop_array *array = &r->arrays[r->in_count + i];
  if (!r->is_open && r->turn != array->rows)
    return fail(INTERNAL, "a loop made %lld of %lld rows", (long long)r->turn, (long long)array->rows);
  *out = array->tensor;
  array->tensor = NULL;
  (*out)->shape = array_shape(array, r->turn);
  (*out)->count = shape_count(&(*out)->shape);
  return OK;
}

void loop_rows_deinit(struct loop_rows *r) {
  for (uint32_t i = 0; r->arrays && i < r->in_count + r->out_count; i++)
    tensor_release(r->arrays[i].tensor);
  for (uint32_t i = 0; i < r->outgrown_count; i++)
    tensor_release(r->outgrown[i]);
  free(r->arrays);
  free(r->outgrown);
}
