/* step_stats.c: nodes are written as bytes at once, under one lock: recording may cost what it costs. */
#include "runtime/step/step_stats.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/program/device_name.h"
#include "runtime/step/task_state.h"
#include "runtime/step/trace.h"

#define ALLOCATOR "cpu"
#define NAME_BYTES 1024
#define PORT_BYTES 12 /* ":4294967295" */

/* Which instruction gives a slot its value. */
struct origin {
  const struct part *part;
  uint32_t *instrs; /* per slot: instruction of the part + 1; 0: none */
  struct origin *next;
};
struct step_stats {
  const struct task *task;
  pthread_mutex_t lock;
  struct wire_buffer nodes;  /* node_stats of this task */
  struct wire_buffer others; /* dev_stats of the others */
  struct origin *origins;
  int64_t clock_ns; /* wall clock minus trace_now() */
};

/* ---- where values come from ---- */

static struct origin *origin_create(const struct part *part) {
  struct origin *origin = calloc(1, sizeof *origin);
  if (!origin)
    return NULL;
  origin->part = part;
  origin->instrs = calloc((size_t)part->code->slots.count + 1, sizeof *origin->instrs);
  uint32_t first = program_block(part->program, part->code->block)->instrs.first;
  for (uint32_t i = part->code->instr_count; origin->instrs && i-- > 0;) {
    const struct program_instr *instr = program_instr(part->program, first + i);
    const uint32_t *outputs = program_operands(part->program, instr->outputs.first);
    for (uint32_t j = 0; j < instr->outputs.count; j++)
      origin->instrs[outputs[j]] = i + 1;
  }
  if (!origin->instrs) {
    free(origin);
    return NULL;
  }
  return origin;
}

static const struct origin *origin_of(struct step_stats *stats, const struct part *part) {
  for (struct origin *origin = stats->origins; origin; origin = origin->next)
    if (origin->part == part)
      return origin;
  struct origin *origin = origin_create(part);
  if (origin) {
    origin->next = stats->origins;
    stats->origins = origin;
  }
  return origin;
}

/* What moves a value has the value's name, and an end that timelines cut off to find where it comes from. */
static void node_name(const struct program *program, const struct program_instr *instr, char *out, size_t size) {
  snprintf(out, size, "%s%s", program_text(program, instr->node),
           instr->op == INSTR_SEND   ? "/_send"
           : instr->op == INSTR_RECV ? "/_recv"
                                     : "");
}

/* "node" or "node:1"; false: a constant, or nothing that has a name. */
static bool slot_name(const struct part *part, const struct origin *origin, uint32_t slot, char out[NAME_BYTES + PORT_BYTES]) {
  const struct program_slot *slots = program_slot(part->program, part->code->slots.first);
  uint32_t number = origin->instrs[slot] ? origin->instrs[slot] : origin->instrs[slots[slot].root];
  if (!number)
    return false;
  uint32_t first = program_block(part->program, part->code->block)->instrs.first;
  const struct program_instr *instr = program_instr(part->program, first + number - 1);
  const uint32_t *outputs = program_operands(part->program, instr->outputs.first);
  uint32_t port = 0;
  while (port < instr->outputs.count && outputs[port] != slot)
    port++;
  node_name(part->program, instr, out, NAME_BYTES);
  if (!*out)
    return false;
  if (port > 0 && port < instr->outputs.count)
    snprintf(out + strlen(out), PORT_BYTES, ":%u", port);
  return true;
}

/* ---- names ---- */

static const char *op_name(const struct program *program, const struct program_instr *instr) {
  switch ((enum program_op)instr->op) {
  case INSTR_SEND: return "_Send";
  case INSTR_RECV: return "_Recv";
  default: return program_text(program, instr->tf_op);
  }
}

/* Feeds, fetches and aliases take no time, and are no nodes of their own. */
static bool is_shown(const struct program *program, const struct program_instr *instr) {
  return instr->op != INSTR_FEED && instr->op != INSTR_FETCH && instr->op != INSTR_ALIAS && instr->op != INSTR_NOOP &&
       *program_text(program, instr->node);
}

typedef void visit_input(void *self, const char *name);
static void each_input(const struct part *part, const struct origin *origin, const struct program_instr *instr, visit_input *visit,
                       void *self) {
  const uint32_t *args = program_operands(part->program, instr->args.first);
  const uint32_t *outputs = program_operands(part->program, instr->outputs.first);
  char name[NAME_BYTES + PORT_BYTES];
  for (uint32_t i = 0; i < instr->args.count; i++) {
    bool is_output = false;
    for (uint32_t j = 0; j < instr->outputs.count; j++)
      is_output |= outputs[j] == args[i];
    if (args[i] == PROGRAM_ARG_SCRATCH || is_output)
      continue;
    if (args[i] & PROGRAM_ARG_VARIABLE)
      visit(self, program_text(part->program, program_variable(part->program, args[i] & ~PROGRAM_ARG_VARIABLE)->node));
    else if (slot_name(part, origin, args[i], name))
      visit(self, name);
  }
}

struct label {
  char text[4096];
  size_t used;
  uint32_t count;
};
static void label_input(void *self, const char *name) {
  struct label *label = self;
  int size = snprintf(label->text + label->used, sizeof label->text - label->used, "%s%s", label->count++ ? ", " : "", name);
  label->used += (size_t)size;
  if (label->used >= sizeof label->text - 2)
    label->used = sizeof label->text - 2;
}

/* ---- recording ---- */

static void output_write(struct wire_buffer *b, struct frame *frame, uint32_t slot, uint32_t number, uint64_t *total) {
  const struct program_slot *code = &frame->slots[slot];
  struct shape shape;
  if (frame_shape(frame, slot, &shape) != OK)
    return;
  uint64_t bytes = (uint64_t)shape_count(&shape) * dtype_size((enum dtype)code->dtype);
  *total += bytes;
  size_t output = wire_begin(b, 7);
  wire_put_varint(b, 1, number);
  size_t description = wire_begin(b, 3);
  wire_put_varint(b, 1, code->dtype);
  size_t dims = wire_begin(b, 2);
  for (int i = 0; i < shape.rank; i++) {
    size_t dim = wire_begin(b, 2);
    wire_put_varint(b, 1, (uint64_t)shape.dims[i]);
    wire_end(b, dim);
  }
  wire_end(b, dims);
  size_t allocation = wire_begin(b, 4);
  wire_put_varint(b, 1, bytes);
  wire_put_varint(b, 2, bytes);
  wire_put_text(b, 3, ALLOCATOR);
  wire_put_varint(b, 6, (uint64_t)(uintptr_t)frame->data[slot]);
  wire_end(b, allocation);
  wire_end(b, description);
  wire_end(b, output);
}

/* Memory that the instruction made or worked in. */
static void memory_write(struct wire_buffer *b, uint64_t outputs, uint64_t scratch) {
  size_t memory = wire_begin(b, 6);
  wire_put_text(b, 1, ALLOCATOR);
  wire_put_varint(b, 2, outputs + scratch);
  wire_put_varint(b, 3, outputs + scratch);
  wire_put_varint(b, 4, outputs);
  wire_end(b, memory);
  size_t stats = wire_begin(b, 12);
  wire_put_varint(b, 1, scratch);
  wire_end(b, stats);
}

static void times_write(struct wire_buffer *b, uint64_t start_ns, uint64_t length_ns) {
  wire_put_varint(b, 2, start_ns / 1000);
  wire_put_varint(b, 4, (length_ns + 999) / 1000);
  wire_put_varint(b, 5, (length_ns + 999) / 1000);
  wire_put_varint(b, 9, start_ns / 1000);
  wire_put_varint(b, 10, (uint64_t)gettid());
  wire_put_varint(b, 13, start_ns);
  wire_put_varint(b, 15, length_ns);
  wire_put_varint(b, 16, length_ns);
  wire_put_varint(b, 17, start_ns);
}

void step_stats_add(struct step_stats *stats, struct frame *frame, const struct program_instr *instr, uint64_t begin, uint64_t end) {
  const struct program *program = frame->program;
  const uint32_t *outputs = program_operands(program, instr->outputs.first);
  if (!is_shown(program, instr))
    return;
  pthread_mutex_lock(&stats->lock);
  const struct origin *origin = origin_of(stats, frame->part);
  if (origin && stats->nodes.size < STEP_STATS_BYTES) {
    struct wire_buffer *b = &stats->nodes;
    struct label label = {.used = 0};
    char node[NAME_BYTES];
    node_name(program, instr, node, sizeof node);
    uint64_t made = 0, scratch = instr->op == INSTR_KERNEL ? (uint64_t)frame->launches[instr->kernel_at].scratch : 0;
    size_t message = wire_begin(b, 2);
    wire_put_text(b, 1, node);
    times_write(b, (uint64_t)((int64_t)begin + stats->clock_ns), end - begin);
    for (uint32_t i = 0; i < instr->outputs.count; i++)
      output_write(b, frame, outputs[i], i, &made);
    memory_write(b, made, scratch);
    label.used = (size_t)snprintf(label.text, sizeof label.text / 2, "%s = %s(", node, op_name(program, instr));
    if (label.used >= sizeof label.text / 2)
      label.used = sizeof label.text / 2 - 1;
    each_input(frame->part, origin, instr, label_input, &label);
    snprintf(label.text + label.used, sizeof label.text - label.used, ")");
    wire_put_text(b, 8, label.text);
    wire_end(b, message);
  }
  pthread_mutex_unlock(&stats->lock);
}

/* ---- life ---- */

status step_stats_create(const struct task *task, struct step_stats **out) {
  struct step_stats *stats = calloc(1, sizeof *stats);
  struct timespec now;
  if (!stats)
    return fail(RESOURCE_EXHAUSTED, "no memory to record a step");
  stats->task = task;
  clock_gettime(CLOCK_REALTIME, &now);
  stats->clock_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)trace_now();
  pthread_mutex_init(&stats->lock, NULL);
  *out = stats;
  return OK;
}

void step_stats_destroy(struct step_stats *stats) {
  if (!stats)
    return;
  while (stats->origins) {
    struct origin *origin = stats->origins;
    stats->origins = origin->next;
    free(origin->instrs);
    free(origin);
  }
  wire_buffer_free(&stats->nodes);
  wire_buffer_free(&stats->others);
  pthread_mutex_destroy(&stats->lock);
  free(stats);
}

static void device_write(struct step_stats *stats, struct wire_buffer *b) {
  char device[320];
  device_name(stats->task->program, stats->task->program->task, device, sizeof device);
  wire_put_text(b, 1, device);
  wire_put_raw(b, stats->nodes.data, stats->nodes.size);
}

struct tensor *step_stats_take(struct step_stats *stats) {
  struct wire_buffer b = {0};
  struct tensor *tensor = NULL;
  device_write(stats, &b);
  struct string_view view = {(const char *)b.data, b.size};
  if (!b.is_bad && tensor_copy_in(DTYPE_STRING, &(struct shape){.rank = 0}, &view, &tensor) != OK)
    tensor = NULL;
  wire_buffer_free(&b);
  return tensor;
}

void step_stats_join(struct step_stats *stats, const struct tensor *taken) {
  if (!taken || taken->dtype != DTYPE_STRING || taken->count != 1)
    return;
  const struct string_view *view = taken->data;
  wire_put_bytes(&stats->others, 1, view->data, (size_t)view->size);
}

void step_stats_write(struct step_stats *stats, struct wire_buffer *metadata) {
  struct wire_buffer all = {0}, device = {0};
  device_write(stats, &device);
  wire_put_message(&all, 1, &device);
  wire_put_raw(&all, stats->others.data, stats->others.size);
  wire_put_message(metadata, 1, &all);
}

/* ---- graphs ---- */

static void graph_input(void *self, const char *name) { wire_put_text(self, 3, name); }

static void graph_write(const struct task *task, const struct part *part, const struct origin *origin, struct wire_buffer *b) {
  uint32_t first = program_block(part->program, part->code->block)->instrs.first;
  char device[320];
  device_name(task->program, task->program->task, device, sizeof device);
  for (uint32_t i = 0; i < program_block(part->program, part->code->block)->instrs.count; i++) {
    const struct program_instr *instr = program_instr(part->program, first + i);
    if (!*program_text(part->program, instr->node) || instr->op == INSTR_FETCH)
      continue;
    size_t node = wire_begin(b, 1);
    char name[NAME_BYTES];
    node_name(part->program, instr, name, sizeof name);
    wire_put_text(b, 1, name);
    wire_put_text(b, 2, op_name(part->program, instr));
    each_input(part, origin, instr, graph_input, b);
    wire_put_text(b, 4, device);
    wire_end(b, node);
  }
}

void entry_graphs_write(const struct task *task, uint32_t number, struct wire_buffer *metadata) {
  const struct program_entry *entry = program_entry(task->program, number);
  for (uint32_t i = 0; i < entry->parts.count; i++) {
    const struct part *part = &task->parts[entry->parts.first + i];
    struct origin *origin = origin_create(part);
    struct wire_buffer graph = {0};
    if (!origin)
      return;
    graph_write(task, part, origin, &graph);
    wire_put_message(metadata, 3, &graph);
    free(origin->instrs);
    free(origin);
  }
}
