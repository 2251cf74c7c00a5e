/* lower_implementation.c: calls that run another implementation of the function that they name (ir/graph/implementation.h).
 *
 * TensorFlow's optimizer looks at the nodes of a graph that is about to run. It does not at functions which a kernel runs by itself (those
 * of datasets, of RemoteCall, BatchFunction and MapDefun), nor at a graph of fewer than four nodes. Of the step's own graph it makes two
 * rounds, so that a function which was chosen there may be passed over in its turn. */
#include <string.h>

#include "ir/graph/function.h"
#include "ir/graph/implementation.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

#define OPTIMIZED_NODES_MIN 4

/* The results of a function that ran in the place of another one. */
struct handed_on {
  const struct flow *flow;
  const struct bound *rets;
  uint32_t count;
  uint32_t named_count; /* as many had the function that the graph names: the gradient which it names takes the last of these */
  struct handed_on *next;
};

/* A body that is inlined is a part of a larger graph, whatever its size. */
bool lower_is_optimized(const struct lower *lw) {
  const struct frame *fr = lw->walk.frame;
  const struct function *f = fr->function ? function_find(lw->graph, fr->function) : NULL;
  uint32_t count = f ? f->ret_count : 0;
  if (fr->function && !(f && f->is_shared))
    return true;
  for (uint32_t i = 0; i < fr->graph->nodes.count && count < OPTIMIZED_NODES_MIN; i++)
    count += !f || strcmp(fr->graph->nodes.items[i].op, "Identity") != 0;
  return count >= OPTIMIZED_NODES_MIN;
}

static const struct function *select_function(const struct op_call *c, const char *name) {
  const struct lower *lw = c->lw;
  const struct function *first = implementation_find(lw->graph, name, c->node->assigned);
  if (!first || lw->walk.as_written || !lower_is_optimized(lw))
    return NULL;
  const struct function *second = lw->walk.frame->function ? NULL : implementation_find(lw->graph, first->name, c->node->assigned);
  return second ? second : first;
}

/* The results that `last`, the last input of a gradient as it is written, is one of. */
static const struct handed_on *find_handed_on(const struct lower *lw, struct bound last) {
  const struct handed_on *h = lw->walk.handed_on;
  while (h &&
         !(h->flow == lw->walk.flow && h->named_count && h->named_count <= h->count && h->rets[h->named_count - 1].value == last.value))
    h = h->next;
  return h;
}

/* The arguments of a gradient that runs in the place of another one: what the function before it hands on, be it more or less. */
static status gradient_args(const struct op_call *c, uint32_t count, const struct bound **out) {
  struct bound *args = ARENA_ARRAY(c->lw->arena, struct bound, count + 1);
  uint32_t have = c->in_count < count ? c->in_count : count;
  memcpy(args, c->in, have * sizeof *args);
  *out = args;
  if (have == count)
    return OK;
  const struct handed_on *h = have ? find_handed_on(c->lw, c->in[have - 1]) : NULL;
  if (!h || h->count - h->named_count != count - have)
    return fail(INVALID_ARGUMENT, "its last input is not what the function whose gradient it is hands on");
  memcpy(args + have, h->rets + h->named_count, (count - have) * sizeof *args);
  return OK;
}

static status call_other(struct op_call *c, const struct function *f, const struct attr *attrs, uint32_t attr_count) {
  struct op_call inner = *c;
  uint32_t rets;
  TRY(function_ret_count(f, attrs, attr_count, c->lw->arena, &rets));
  inner.out_count = rets;
  inner.out = ARENA_ARRAY(c->lw->arena, struct bound, rets + 1);
  const struct bound *args = c->in;
  if (f->role == FUNCTION_BACKWARD) {
    inner.in_count = f->arg_count;
    TRY(gradient_args(c, f->arg_count, &args));
  }
  inner.in = arena_copy(c->lw->arena, args, inner.in_count * sizeof *args);
  status s = lower_call_function(&inner, f->name, attrs, attr_count);
  op_go_on(c, &inner);
  TRY(s);
  memcpy(c->out, inner.out, (rets < c->out_count ? rets : c->out_count) * sizeof *c->out);
  if (f->role != FUNCTION_FORWARD)
    return OK;
  struct handed_on *h = ARENA_NEW(c->lw->arena, struct handed_on);
  *h = (struct handed_on){c->lw->walk.flow, inner.out, rets, c->out_count, c->lw->walk.handed_on};
  c->lw->walk.handed_on = h;
  return OK;
}

/* Results are of the types that the node says. Those of another implementation need not be: what it hands on to its gradient is its own. */
static status check_results(const struct op_call *c) {
  for (uint32_t i = 0; i < c->out_count; i++) {
    enum dtype have = c->out[i].value ? op_value(c, c->out[i].value)->dtype : op_output_dtype(c, i);
    if (have != op_output_dtype(c, i))
      return fail(INTERNAL, "Output %u of type %s does not match declared output type %s", i, dtype_name(have),
                  dtype_name(op_output_dtype(c, i)));
  }
  return OK;
}

status lower_call_selected(struct op_call *c, const char *name, const struct attr *attrs, uint32_t attr_count) {
  const struct function *f = select_function(c, name);
  if (f)
    return call_other(c, f, attrs, attr_count);
  TRY(lower_call_function(c, name, attrs, attr_count));
  return check_results(c);
}

status lower_call_as_written(struct op_call *c, const struct attr_func *f) {
  bool outer = c->lw->walk.as_written;
  c->lw->walk.as_written = true;
  status s = lower_call_function(c, f->name, f->attrs, f->attr_count);
  c->lw->walk.as_written = outer;
  return s;
}
