/* host_call.c: calling host functions from a step. */
#include <string.h>
#include "runtime/host/host.h"
#include "runtime/step/task_state.h"

void host_call_init(struct frame *frame, const struct program_instr *instr, struct host_call *call) {
  memset(call, 0, sizeof *call);
  call->inbox = &frame->inbox;
  call->task = frame->part->task;
  call->program = frame->program;
  call->instr = instr;
  call->step = frame->step;
  call->inputs = frame->views;
  call->held = frame->views_held;
  call->outputs = frame->outputs;
  call->input_count = instr->args.count;
  call->output_count = instr->outputs.count;
  call->driver = frame->step->driver;
}

status host_call_start(struct frame *frame, struct host_call *call) {
  const uint32_t *args = program_operands(frame->program, call->instr->args.first);
  for (uint32_t i = 0; i < call->input_count; i++) {
    struct tensor *view = &frame->views[i];
    memset(view, 0, sizeof *view);
    view->dtype = (enum dtype)frame->slots[args[i]].dtype;
    TRY(frame_shape(frame, args[i], &view->shape));
    view->count = shape_count(&view->shape);
    view->data = frame->data[args[i]];
    uint32_t root = frame->slots[args[i]].root;
    struct tensor *held = frame->slots[root].storage == STORAGE_TENSOR && view->dtype != DTYPE_STRING ? frame->held[root] : NULL;
    frame->views_held[i] = root == args[i] ? held : NULL;
    if (held && view->dtype == DTYPE_VARIANT)
      view->release_data = held->release_data; /* says what its elements are (object.h), in another shape, too */
  }
  for (uint32_t i = 0; i < call->output_count; i++)
    call->outputs[i] = NULL;
  status result = frame->part->task->hosts[call->instr - program_instr(frame->program, 0)](call);
  if (result != OK)
    for (uint32_t i = 0; i < call->output_count; i++) {
      tensor_release(call->outputs[i]);
      call->outputs[i] = NULL;
    }
  return result;
}

status host_call_end(struct frame *frame, struct host_call *call) {
  const uint32_t *outputs = program_operands(frame->program, call->instr->outputs.first);
  for (uint32_t i = 0; i < call->output_count; i++)
    if (call->outputs[i])
      frame_set(frame, outputs[i], call->outputs[i]);
  for (uint32_t i = 0; i < call->output_count; i++) {
    const struct program_slot *slot = &frame->slots[outputs[i]];
    const struct tensor *tensor = call->outputs[i];
    if (!tensor || tensor->dtype != slot->dtype)
      return fail(INTERNAL, "output %u is %s, expected is %s", i, tensor ? dtype_name(tensor->dtype) : "missing",
                  dtype_name((enum dtype)slot->dtype));
    TRY(frame_bind(frame, outputs[i], &tensor->shape));
  }
  return OK;
}
