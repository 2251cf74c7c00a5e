/* ops_summary_writer.c: ops that write to event files: the Summary message is made by the op that only makes it, and written as it is. */
#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"

/* Input 0 is the writer, input 1 the step; the row says of which others the message is made. */
status build_write_summary(struct op_call *c) {
  const struct summary_row *row = OP_ROW(c, summary_row);
  value_id writer, step, values[sizeof row->inputs / sizeof *row->inputs];
  TRY(op_input(c, 0, &writer));
  TRY(op_input(c, 1, &step));
  for (uint32_t i = 0; i < row->count; i++)
    TRY(op_input(c, row->inputs[i], &values[i]));
  struct flow_node *make = op_emit(c, FLOW_HOST, false);
  make->host = row->maker;
  for (uint32_t i = 0; i < row->count; i++)
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
