/* part.c: see part.h. */
#include "ir/ops/part.h"

#include <string.h>

status op_part_outputs(struct op_call *c, op_builder build, uint32_t count, const struct bound *in, uint32_t outputs, struct bound *out) {
  struct op_call p = *c;
  memset(out, 0, sizeof *out * outputs);
  p.in = arena_copy(op_arena(c), in, sizeof *in * count);
  p.in_count = count;
  p.out = out;
  p.out_count = outputs;
  status s = build(&p);
  op_go_on(c, &p);
  TRY(s);
  struct bound *own_in = c->in, *own_out = c->out; /* effects and controls go on from there */
  uint32_t in_count = c->in_count, out_count = c->out_count;
  *c = p;
  c->in = own_in, c->out = own_out;
  c->in_count = in_count, c->out_count = out_count;
  return OK;
}

status op_part(struct op_call *c, op_builder build, uint32_t count, const struct bound *in, struct bound *out) {
  return op_part_outputs(c, build, count, in, 1, out);
}
