/* emit_part.c: a flow becomes slots and instructions, as the passes order, lanes and plan have decided. */
#include <stdlib.h>
#include <string.h>

#include "compiler/emit_tables.h"
#include "compiler/edit/flow_edit.h"
#include "compiler/pass/lanes.h"
#include "compiler/pass/order.h"
#include "compiler/pass/plan.h"

struct part_writer {
  struct emitter *e;
  VEC(struct program_slot) slots;
  struct symbol_set start; /* symbols known when the part starts */
  struct symbol_set known; /* symbols known where the walk is */
  uint32_t task, size_count, kernel_count;
  bool is_partial;
};

/* One flow of the part: the outer one, or a region. */
struct flow_writer {
  struct part_writer *w;
  struct flow *flow;
  const struct plan *plan;
  uint32_t *slot_of;         /* per value: slot + 1 */
  uint32_t *instr_of;        /* per node: instruction of the block + 1 */
  uint32_t first, count;     /* its instructions */
  struct symbol_set defined; /* per symbol: this flow gives it its value */
};

static status write_flow(struct part_writer *w, struct flow *flow, uint32_t block, bool outer);

static struct program_slot *slot_at(struct part_writer *w, uint32_t slot) { return &w->slots.items[slot]; }

/* ---- slots ---- */

static void slot_add(struct flow_writer *f, value_id v) {
  const struct flow_value *value = flow_value_get(f->flow, v);
  const struct plan_place *place = &f->plan->places[v];
  struct part_writer *w = f->w;
  struct program_slot slot = {.dtype = (uint8_t)value->dtype,
                              .rank = (uint8_t)value->rank,
                              .storage = place->storage,
                              .any_rank = value->any_rank,
                              .root = place->root == v ? w->slots.count : f->slot_of[place->root] - 1,
                              .first = place->first,
                              .last = place->last};
  uint32_t dims[LIMIT_RANK];
  for (int i = 0; i < value->rank; i++)
    dims[i] = emit_code(w->e, value->dims[i]);
  slot.dims = emit_operands(w->e, dims, slot.rank).first;
  vec_push(&w->slots, slot);
  f->slot_of[v] = w->slots.count;
}

static uint32_t slot_of(const struct flow_writer *f, value_id v) { return f->slot_of[v] - 1; }

static uint64_t constant_count(const struct emitter *e, const struct flow_value *value) {
  uint64_t count = 1;
  for (int i = 0; i < value->rank; i++) {
    int64_t size = 0;
    dim_is_const(e->dims, dim_resolve(e->dims, value->dims[i]), &size);
    count *= (uint64_t)size;
  }
  return count;
}

static void add_output_slots(struct flow_writer *f, const struct flow_node *node) {
  for (uint32_t i = 0; node->op == FLOW_KERNEL && i < node->kernel->buffers.count; i++)
    if (flow_arg_is_output(node, i))
      slot_add(f, node->args[i].value);
  for (uint32_t i = 0; node->op != FLOW_KERNEL && i < node->outputs.count; i++) {
    slot_add(f, node->outputs.items[i]);
    const struct flow_value *value = flow_value_get(f->flow, node->outputs.items[i]);
    struct program_slot *slot = slot_at(f->w, slot_of(f, node->outputs.items[i]));
    if (node->op == FLOW_CONST)
      slot->data = emit_elements(f->w->e, value->dtype, value->data, constant_count(f->w->e, value));
    if (node->op == FLOW_READ)
      slot->data = f->w->e->variable_numbers[node->var];
  }
}

static void add_slots(struct flow_writer *f) {
  for (uint32_t i = 0; i < f->flow->params.count; i++)
    slot_add(f, f->flow->params.items[i]);
  for (uint32_t i = 0; i < f->flow->order->nodes.count; i++)
    add_output_slots(f, f->flow->nodes.items[f->flow->order->nodes.items[i]]);
}

/* ---- symbols ---- */

static void define_code(struct flow_writer *f, uint32_t code) {
  uint32_t symbol = code_symbol(f->w->e, code);
  if (symbol == PROGRAM_NONE || symbol_get(&f->w->known, symbol))
    return;
  symbol_set(&f->w->known, symbol, 1);
  symbol_set(&f->defined, symbol, 1);
}

/* The sizes of a value that arrives from outside: bare symbols get their values from it. */
static void define_slot(struct flow_writer *f, uint32_t slot) {
  const struct program_slot *s = slot_at(f->w, slot);
  for (int i = 0; i < s->rank; i++)
    define_code(f, f->w->e->operands.items[s->dims + (uint32_t)i]);
}

/* ---- what runs by counts ---- */

static void write_successors(struct flow_writer *f) {
  struct emitter *e = f->w->e;
  const struct lanes *lanes = f->flow->lanes;
  VEC(uint32_t) *successors = calloc((size_t)f->count + 1, sizeof *successors);
  for (uint32_t i = 0; i < f->flow->order->nodes.count; i++) {
    flow_id id = f->flow->order->nodes.items[i];
    e->instrs.items[f->first + f->instr_of[id] - 1].need_count = lanes->at[id + 1] - lanes->at[id];
    for (uint32_t j = lanes->at[id]; j < lanes->at[id + 1]; j++)
      vec_push(&successors[f->instr_of[lanes->before[j]] - 1], f->instr_of[id] - 1);
  }
  for (uint32_t i = 0; i < f->count; i++) {
    e->instrs.items[f->first + i].successors = emit_operands(e, successors[i].items, successors[i].count);
    vec_free(&successors[i]);
  }
  free(successors);
}

/* ---- instructions ---- */

static enum program_op op_of(const struct flow_writer *f, const struct flow_node *node) {
  switch (node->op) {
  case FLOW_FEED: return INSTR_FEED;
  case FLOW_FETCH: return INSTR_FETCH;
  case FLOW_KERNEL: return INSTR_KERNEL;
  case FLOW_ALIAS: {
    enum program_storage root = slot_at(f->w, slot_at(f->w, slot_of(f, node->outputs.items[0]))->root)->storage;
    return root == STORAGE_ARENA || root == STORAGE_CONST ? INSTR_NOOP : INSTR_ALIAS;
  }
  case FLOW_READ: return INSTR_READ;
  case FLOW_ASSIGN: return INSTR_ASSIGN;
  case FLOW_VARIABLE: return INSTR_VARIABLE;
  case FLOW_HOST: return INSTR_HOST;
  case FLOW_BIND: return INSTR_BIND;
  case FLOW_IF: return INSTR_IF;
  case FLOW_WHILE: return INSTR_WHILE;
  case FLOW_SEND: return INSTR_SEND;
  case FLOW_RECV: return INSTR_RECV;
  case FLOW_MERGE: return INSTR_MERGE;
  case FLOW_NONE:
  case FLOW_CONST:
  case FLOW_NOOP: break;
  }
  return INSTR_NOOP;
}

static status check_variable(const struct flow_writer *f, const struct flow_node *node, uint32_t var) {
  if (f->w->e->variable_numbers[var] == PROGRAM_NONE)
    return fail(INTERNAL, "%s '%s': variable '%s' is on another task", node->tf_op, node->name, f->w->e->build->vars.items[var].name);
  return OK;
}

static status kernel_args(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr) {
  struct emitter *e = f->w->e;
  VEC(uint32_t) args = {0}, outputs = {0};
  uint32_t variables = 0;
  for (uint32_t i = 0; i < node->kernel->buffers.count; i++)
    variables += node->args[i].var > 0;
  if (variables > PROGRAM_KERNEL_VARIABLES)
    return fail(UNIMPLEMENTED, "%s '%s': a kernel on more than %d variables", node->tf_op, node->name, PROGRAM_KERNEL_VARIABLES);
  for (uint32_t i = 0; i < node->kernel->buffers.count; i++) {
    const struct flow_arg *arg = &node->args[i];
    if (arg->var) {
      TRY(check_variable(f, node, arg->var - 1));
      vec_push(&args, e->variable_numbers[arg->var - 1] | PROGRAM_ARG_VARIABLE);
      instr->flags |= INSTR_LOCKS;
    } else if (arg->value == NO_VALUE) {
      vec_push(&args, PROGRAM_ARG_SCRATCH);
    } else {
      vec_push(&args, slot_of(f, arg->value));
      if (flow_arg_is_output(node, i))
        vec_push(&outputs, slot_of(f, arg->value));
    }
  }
  instr->args = emit_operands(e, args.items, args.count);
  instr->outputs = emit_operands(e, outputs.items, outputs.count);
  vec_free(&args);
  vec_free(&outputs);
  return OK;
}

/* Of dimension d of a variable argument. */
static uint32_t size_code(struct emitter *e, const struct flow_node *node, uint32_t arg, int d) {
  kernel_dim size = node->kernel->buffers.items[arg].dims[d];
  return DIM_IS_SIZE(size) ? emit_code(e, node->sizes[SIZE_OF_DIM(size)]) : emit_constant_code(e, size);
}
/* Mode, rank and size codes of each variable argument. */
static void kernel_shapes(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr) {
  static const uint32_t modes[] = {
    [BUFFER_IN] = PROGRAM_VARIABLE_IN, [BUFFER_OUT] = PROGRAM_VARIABLE_OUT, [BUFFER_INOUT] = PROGRAM_VARIABLE_INOUT};
  struct emitter *e = f->w->e;
  VEC(uint32_t) shapes = {0};
  for (uint32_t i = 0; i < node->kernel->buffers.count; i++) {
    const struct kernel_buffer *buffer = &node->kernel->buffers.items[i];
    const struct flow_arg *arg = &node->args[i];
    int rank = arg->dims ? arg->rank : buffer->rank;
    if (!arg->var)
      continue;
    vec_push(&shapes, modes[buffer->mode]);
    vec_push(&shapes, (uint32_t)rank);
    for (int d = 0; d < rank; d++)
      vec_push(&shapes, arg->dims ? emit_code(e, arg->dims[d]) : size_code(e, node, i, d));
  }
  instr->shapes = emit_operands(e, shapes.items, shapes.count).first;
  vec_free(&shapes);
}

static status write_kernel(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr) {
  struct part_writer *w = f->w;
  struct emitter *e = w->e;
  instr->number = emit_kernel_number(e, node);
  TRY(kernel_args(f, node, instr));
  if (instr->flags & INSTR_LOCKS)
    kernel_shapes(f, node, instr);
  uint32_t count = node->kernel->size_count;
  uint32_t *codes = calloc((size_t)count + 1, sizeof *codes);
  for (uint32_t i = 0; codes && i < count; i++) {
    uint32_t missing;
    codes[i] = emit_code(e, node->sizes[i]);
    if (!code_is_known(e, codes[i], &w->start, NULL))
      instr->flags |= INSTR_LATE;
    if (!code_is_known(e, codes[i], &w->known, &missing)) {
      free(codes);
      return fail(INTERNAL, "%s '%s': size %s is not known on its task", node->tf_op, node->name,
                  e->texts.items + e->symbols.items[missing]);
    }
  }
  instr->sizes = emit_operands(e, codes, count);
  free(codes);
  instr->sizes_at = w->size_count;
  w->size_count += count;
  instr->kernel_at = w->kernel_count++;
  for (uint32_t i = 0; i < instr->outputs.count; i++)
    if (slot_at(w, e->operands.items[instr->outputs.first + i])->storage == STORAGE_TENSOR)
      instr->flags |= INSTR_MAKES;
  return OK;
}

static void write_bind(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr) {
  struct emitter *e = f->w->e;
  uint32_t *codes = calloc((size_t)node->bind_count + 1, sizeof *codes);
  for (uint32_t i = 0; codes && i < node->bind_count; i++) {
    codes[i] = emit_code(e, dim_of_symbol(e->dims, node->binds[i]));
    define_code(f, codes[i]);
  }
  instr->sizes = emit_operands(e, codes, node->bind_count);
  free(codes);
}

/* The blocks of a region node: what becomes known inside is known there only. */
static status write_regions(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr) {
  struct part_writer *w = f->w;
  struct emitter *e = w->e;
  instr->blocks = (struct program_range){e->blocks.count, node->region_count};
  for (uint32_t i = 0; i < node->region_count; i++)
    vec_push(&e->blocks, (struct program_block){0});
  struct symbol_set outer = {0};
  for (uint32_t i = 0; i < w->known.values.count; i++)
    symbol_set(&outer, i, w->known.values.items[i]);
  status result = OK;
  for (uint32_t i = 0; i < node->region_count && result == OK; i++) {
    result = write_flow(w, node->branches[i], instr->blocks.first + i, false);
    for (uint32_t s = 0; s < w->known.values.count; s++)
      w->known.values.items[s] = symbol_get(&outer, s);
  }
  vec_free(&outer.values);
  instr->number = node->rows_in;
  instr->peer = node->rows_out;
  instr->flags |= node->from_last ? INSTR_FROM_LAST : 0;
  return result;
}

static struct program_range slot_list(struct flow_writer *f, const value_id *values, uint32_t count) {
  struct emitter *e = f->w->e;
  struct program_range range = {e->operands.count, count};
  for (uint32_t i = 0; i < count; i++)
    vec_push(&e->operands, slot_of(f, values[i]));
  return range;
}

static struct program_range guard_list(struct flow_writer *f, const struct flow_node *node) {
  struct emitter *e = f->w->e;
  struct program_range range = {e->operands.count, node->guard_count};
  for (uint32_t i = 0; i < node->guard_count; i++)
    vec_push(&e->operands, slot_of(f, node->guards[i].predicate) * 2 + node->guards[i].expected);
  return range;
}

static bool reads_any_shape(const struct flow_writer *f, const struct flow_node *node) {
  return !f->w->e->build->vars.items[node->var].has_shape;
}

/* What an instruction says beside its slots, by its op. */
static status write_details(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr, uint32_t number) {
  struct emitter *e = f->w->e;
  switch (node->op) {
  case FLOW_KERNEL: return write_kernel(f, node, instr);
  case FLOW_READ:
  case FLOW_ASSIGN:
  case FLOW_VARIABLE:
    TRY(check_variable(f, node, node->var));
    instr->number = e->variable_numbers[node->var];
    if (node->op == FLOW_VARIABLE)
      instr->peer = (uint32_t)node->imm;
    if (node->op == FLOW_READ && node->imm)
      instr->flags |= INSTR_OPTIONAL;
    if (node->op == FLOW_READ && reads_any_shape(f, node))
      instr->flags |= INSTR_DEFINES;
    if (node->op == FLOW_VARIABLE && slot_at(f->w, slot_of(f, node->outputs.items[0]))->storage == STORAGE_TENSOR)
      instr->flags |= INSTR_MAKES;
    return OK;
  case FLOW_HOST:
    instr->number = emit_text(e, node->host);
    instr->attrs = emit_attrs(e, node->attrs, node->attr_count);
    instr->flags |= node->blocks ? INSTR_BLOCKS : 0;
    if (node->region_count)
      vec_push(&e->calls, (struct emitted_call){node, f->first + number, f->w->task});
    return OK;
  case FLOW_BIND: write_bind(f, node, instr); return OK;
  case FLOW_IF:
  case FLOW_WHILE: return write_regions(f, node, instr);
  case FLOW_FEED:
  case FLOW_FETCH:
  case FLOW_SEND:
  case FLOW_RECV:
    instr->number = (uint32_t)node->imm;
    instr->peer = node->peer;
    return OK;
  default: return OK;
  }
}

static bool makes_own_iterator(const struct flow_node *n) {
  return n && n->op == FLOW_HOST && strncmp(n->host, "AnonymousIterator", strlen("AnonymousIterator")) == 0;
}

/* A call for an iterator that the step has made itself: nobody else has it, and a step that is tried again makes another one. */
static bool is_of_own_iterator(const struct flow *flow, const struct flow_node *n) {
  bool is = makes_own_iterator(n);
  for (uint32_t i = 0; n->op == FLOW_HOST && i < n->inputs.count; i++)
    is = is || (n->inputs.items[i] && makes_own_iterator(flow->nodes.items[flow->values.items[n->inputs.items[i]].producer]));
  return is;
}

static status write_instr(struct flow_writer *f, const struct flow_node *node, uint32_t number) {
  struct emitter *e = f->w->e;
  struct program_instr instr = {.op = (uint8_t)op_of(f, node)};
  instr.node = emit_text(e, node->name);
  instr.tf_op = emit_text(e, node->tf_op);
  instr.place = emit_text(e, node->place ? node->place : "");
  if (node->op != FLOW_KERNEL) {
    instr.args = slot_list(f, node->inputs.items, node->inputs.count);
    instr.outputs = slot_list(f, node->outputs.items, node->outputs.count);
  }
  TRY(write_details(f, node, &instr, number));
  if (node->op != FLOW_IF && node->op != FLOW_WHILE && node_changes(node) && !is_of_own_iterator(f->flow, node))
    instr.flags |= INSTR_CHANGES;
  instr.guards = guard_list(f, node);
  bool arrives = node->op == FLOW_FEED || node->op == FLOW_RECV || node->op == FLOW_HOST || node->op == FLOW_READ || node->op == FLOW_IF ||
                 node->op == FLOW_WHILE || node->op == FLOW_MERGE;
  for (uint32_t i = 0; arrives && i < instr.outputs.count; i++)
    define_slot(f, e->operands.items[instr.outputs.first + i]);
  e->instrs.items[f->first + number] = instr;
  return OK;
}

/* What holds a tensor gives it up after its last use. */
static void write_releases(struct flow_writer *f) {
  struct emitter *e = f->w->e;
  const struct order *order = f->flow->order;
  VEC(uint32_t) slots = {0};
  for (uint32_t i = 0, next; i < order->release.count; i = next) {
    flow_id after = order->release.items[i].after;
    slots.count = 0;
    for (next = i; next < order->release.count && order->release.items[next].after == after; next++) {
      uint32_t slot = slot_of(f, order->release.items[next].value);
      if (slot_at(f->w, slot)->storage == STORAGE_TENSOR || slot_at(f->w, slot)->storage == STORAGE_VARIABLE)
        vec_push(&slots, slot);
    }
    if (slots.count)
      e->instrs.items[f->first + f->instr_of[after] - 1].release = emit_operands(e, slots.items, slots.count);
  }
  vec_free(&slots);
}

static uint32_t count_instrs(struct flow_writer *f) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->flow->order->nodes.count; i++) {
    flow_id id = f->flow->order->nodes.items[i];
    f->instr_of[id] = f->plan->at[id] ? ++count : 0;
  }
  return count;
}

static status write_nodes(struct flow_writer *f) {
  for (uint32_t i = 0; i < f->flow->order->nodes.count; i++) {
    flow_id id = f->flow->order->nodes.items[i];
    if (f->instr_of[id])
      TRY(write_instr(f, f->flow->nodes.items[id], f->instr_of[id] - 1));
  }
  return OK;
}

/* Neighbours of a group; whose sizes are known late is asked by the runtime one at a time. */
static void mark_groups(struct flow_writer *f) {
  const struct order *order = f->flow->order;
  const uint32_t *group = f->flow->lanes->group;
  struct program_instr *before = NULL;
  for (uint32_t i = 0, last = 0, count = 0; i < order->nodes.count; i++) {
    flow_id id = order->nodes.items[i];
    if (!f->instr_of[id])
      continue;
    struct program_instr *instr = &f->w->e->instrs.items[f->first + f->instr_of[id] - 1];
    uint32_t own = instr->flags & INSTR_LATE ? 0 : group[id];
    bool joins = own && own == last && count < PROGRAM_GROUP_MAX;
    if (joins)
      before->flags |= INSTR_BESIDE;
    count = joins ? count + 1 : 1;
    before = instr;
    last = own;
  }
}

/* The symbols that got their values in this flow. */
static struct program_range defined_symbols(struct flow_writer *f) {
  struct emitter *e = f->w->e;
  struct program_range range = {e->operands.count, 0};
  for (uint32_t s = 0; s < f->defined.values.count; s++)
    if (f->defined.values.items[s])
      vec_push(&e->operands, s);
  range.count = e->operands.count - range.first;
  return range;
}

static status write_block(struct flow_writer *f, uint32_t block, bool outer) {
  struct part_writer *w = f->w;
  struct emitter *e = w->e;
  f->plan = w->is_partial ? f->flow->partial_plan : f->flow->plan;
  f->slot_of = calloc((size_t)f->flow->values.count + 1, sizeof *f->slot_of);
  f->instr_of = calloc((size_t)f->flow->nodes.count + 1, sizeof *f->instr_of);
  add_slots(f);
  for (uint32_t i = 0; i < f->flow->params.count; i++)
    define_slot(f, slot_of(f, f->flow->params.items[i]));
  f->count = count_instrs(f);
  f->first = e->instrs.count;
  for (uint32_t i = 0; i < f->count; i++)
    vec_push(&e->instrs, (struct program_instr){0});
  TRY(write_nodes(f));
  if (f->plan->by_counts)
    write_successors(f);
  else {
    write_releases(f);
    mark_groups(f);
  }
  struct program_range params = slot_list(f, f->flow->params.items, f->flow->params.count);
  struct program_range results = slot_list(f, f->flow->results.items, f->flow->results.count);
  e->blocks.items[block] = (struct program_block){{f->first, f->count}, params, results, {0, 0}};
  if (!outer)
    e->blocks.items[block].symbols = defined_symbols(f);
  return OK;
}

static status write_flow(struct part_writer *w, struct flow *flow, uint32_t block, bool outer) {
  struct flow_writer f = {.w = w, .flow = flow};
  status result = write_block(&f, block, outer);
  vec_free(&f.defined.values);
  free(f.slot_of);
  free(f.instr_of);
  return result;
}

/* is_function: its parameters are values passed in. */
static status write_part(struct emitter *e, struct flow *flow, uint32_t task, const struct symbol_set *start, bool is_function,
                         bool is_partial) {
  struct part_writer w = {.e = e, .task = task, .is_partial = is_partial};
  const struct plan *plan = is_partial ? flow->partial_plan : flow->plan;
  for (uint32_t i = 0; i < start->values.count; i++) {
    symbol_set(&w.start, i, start->values.items[i]);
    symbol_set(&w.known, i, start->values.items[i]);
  }
  struct program_part part = {.task = task, .block = e->blocks.count, .dataflow = plan->by_counts};
  uint32_t first = e->instrs.count;
  vec_push(&e->blocks, (struct program_block){0});
  status result = write_flow(&w, flow, part.block, !is_function);
  part.slots = (struct program_range){e->slots.count, w.slots.count};
  part.instr_count = e->instrs.count - first;
  part.positions = plan->positions;
  for (uint32_t i = 0; i < w.slots.count; i++)
    vec_push(&e->slots, w.slots.items[i]);
  vec_push(&e->parts, part);
  vec_free(&w.slots);
  vec_free(&w.start.values);
  vec_free(&w.known.values);
  return result;
}

status emit_part(struct emitter *e, struct flow *flow, uint32_t task, const struct symbol_set *start) {
  return write_part(e, flow, task, start, false, false);
}

bool emit_partial_part(struct emitter *e, struct flow *flow, uint32_t task) {
  const struct symbol_set none = {0};
  return write_part(e, flow, task, &none, false, true) == OK;
}

/* The list grows: a function may call others. No symbol is known when one starts but those of what is passed in. */
status emit_functions(struct emitter *e) {
  const struct symbol_set none = {0};
  for (uint32_t i = 0; i < e->calls.count; i++) {
    struct emitted_call call = e->calls.items[i];
    e->instrs.items[call.instr].functions = (struct program_range){e->parts.count, call.node->region_count};
    for (uint32_t r = 0; r < call.node->region_count; r++)
      TRY(write_part(e, call.node->branches[r], call.task, &none, true, false));
  }
  e->calls.count = 0;
  return OK;
}
