/* ops_summary_writer.c: ops that write to event files: the Summary message is made by the op that only makes it, and written as it is. */
#include <stdlib.h>

#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"

/* "HistogramSummary 2 3": the host function that makes the message, and which inputs of the op it takes; input 0 is the
 * writer, input 1 the step. */
status build_write_summary(struct op_call *c) {
  const char *word = c->row->data, *inputs = word;
  while (*inputs && *inputs != ' ')
    inputs++;
  value_id writer, step, values[8];
  uint32_t count = 0;
  TRY(op_input(c, 0, &writer));
  TRY(op_input(c, 1, &step));
  for (char *next = (char *)inputs; *next && count < 8; count++)
    TRY(op_input(c, (uint32_t)strtol(next, &next, 10), &values[count]));
  struct flow_node *make = op_emit(c, FLOW_HOST, false);
  make->host = arena_strndup(op_arena(c), word, (size_t)(inputs - word));
  for (uint32_t i = 0; i < count; i++)
    vec_push(&make->inputs, values[i]);
  op_host_attrs(c, make);
  value_id message = op_add_output(c, make, DTYPE_STRING, 0, NULL);
  struct flow_node *write = op_emit(c, FLOW_HOST, true);
  write->host = "WriteRawProtoSummary";
  write->stateful = true;
  vec_push(&write->inputs, writer);
  vec_push(&write->inputs, step);
  vec_push(&write->inputs, message);
  return OK;
}
