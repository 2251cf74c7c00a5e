/* memory_report.c: the slots of a part by their bytes, and the nodes that they belong to. */
#include "runtime/step/memory_report.h"

#include <stdio.h>
#include <string.h>

#include "runtime/program/size.h"
#include "runtime/step/task_state.h"

#define SHOWN 8

struct entry {
  uint64_t bytes;
  uint32_t slot;
};
struct largest {
  struct entry items[SHOWN];
  uint32_t count;
};

static void largest_add(struct largest *list, uint32_t slot, uint64_t bytes) {
  uint32_t at = list->count < SHOWN ? list->count : SHOWN;
  while (at > 0 && list->items[at - 1].bytes < bytes) {
    if (at < SHOWN)
      list->items[at] = list->items[at - 1];
    at--;
  }
  if (at < SHOWN)
    list->items[at] = (struct entry){bytes, slot};
  if (list->count < SHOWN)
    list->count++;
}

static const char *slot_node(const struct part *part, uint32_t slot, const char **op) {
  uint32_t first = program_block(part->program, part->code->block)->instrs.first;
  for (uint32_t i = 0; i < part->code->instr_count; i++) {
    const struct program_instr *instr = program_instr(part->program, first + i);
    const uint32_t *outputs = program_operands(part->program, instr->outputs.first);
    for (uint32_t j = 0; j < instr->outputs.count; j++)
      if (outputs[j] == slot) {
        *op = program_text(part->program, instr->tf_op);
        return program_text(part->program, instr->node);
      }
  }
  *op = "";
  return "a value passed in";
}

static status report(const struct part *part, const struct largest *list, const struct shape *shapes, status code) {
  const struct program_slot *slots = program_slot(part->program, part->code->slots.first);
  char text[1024];
  size_t used = 0;
  for (uint32_t i = 0; i < list->count && list->items[i].bytes > 0 && used + 1 < sizeof text; i++) {
    const char *op, *node = slot_node(part, list->items[i].slot, &op);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%.1f MiB %s%s of %s '%s'", i ? ", " : "",
                             (double)list->items[i].bytes / (1 << 20), dtype_name((enum dtype)slots[list->items[i].slot].dtype),
                             shape_text(&shapes[i]), op, node);
  }
  return used ? status_suffix(code, MEMORY_REPORT "%s: %s", part->task->name, text) : code;
}

static bool bytes_of(const struct part *part, uint32_t slot, const int64_t *symbols, struct shape *shape, uint64_t *bytes) {
  const struct program_slot *code = program_slot(part->program, part->code->slots.first + slot);
  if (shape_eval(part->program, program_operands(part->program, code->dims), code->rank, symbols, shape) != OK)
    return false;
  *bytes = (uint64_t)shape_count(shape) * dtype_size((enum dtype)code->dtype);
  return true;
}

/* Evaluating sizes may fail and record that: the text of the error at hand is put back. */
static status with_text(const char *text, const struct part *part, const struct largest *list, const int64_t *symbols,
                        const struct frame *frame, status code) {
  struct shape shapes[SHOWN] = {{.rank = 0}};
  uint64_t bytes;
  for (uint32_t i = 0; i < list->count; i++) {
    const struct tensor *held = frame ? frame->held[list->items[i].slot] : NULL;
    if (held)
      shapes[i] = held->shape;
    else
      bytes_of(part, list->items[i].slot, symbols, &shapes[i], &bytes);
  }
  code = fail(code, "%s", text);
  return report(part, list, shapes, code);
}

status frame_report_memory(const struct frame *frame, status code) {
  const struct part *part = frame->part;
  struct largest list = {.count = 0};
  struct shape shape;
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  for (uint32_t i = 0; i < part->code->slots.count; i++) {
    uint64_t bytes = 0;
    if (frame->held[i])
      largest_add(&list, i, (uint64_t)tensor_byte_size(frame->held[i]));
    else if (frame->slots[i].storage == STORAGE_ARENA && bytes_of(part, i, frame->symbols, &shape, &bytes))
      largest_add(&list, i, bytes);
  }
  return with_text(text, part, &list, frame->symbols, frame, code);
}

status part_report_memory(const struct part *part, const int64_t *symbols, status code) {
  struct largest list = {.count = 0};
  struct shape shape;
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  for (uint32_t i = 0; i < part->code->slots.count; i++) {
    uint64_t bytes = 0;
    if (program_slot(part->program, part->code->slots.first + i)->storage == STORAGE_ARENA && bytes_of(part, i, symbols, &shape, &bytes))
      largest_add(&list, i, bytes);
  }
  return with_text(text, part, &list, symbols, NULL, code);
}
