/* emit_part.c: a flow becomes slots and instructions.
 *
 * First every value gets a slot: where its elements will be (enum program_storage). Values that leave the step, or whose
 * size is known only while it runs, are tensors of their own; all others lie in the arena. Then the nodes are written in the
 * order of the schedule, and while that goes on positions are counted, which are the lifetimes of arena slots.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/emit_tables.h"
#include "compiler/pass/schedule.h"

struct part_writer {
  struct emitter *e;
  VEC(struct program_slot) slots;
  struct symbol_set start; /* symbols known when the part starts */
  struct symbol_set known; /* symbols known where the walk is */
  uint32_t task, position, size_count, kernel_count, instr_first;
  bool dataflow;
};

/* One flow of the part: the outer one, or a region. */
struct flow_writer {
  struct part_writer *w;
  struct flow *flow;
  struct schedule schedule;
  uint32_t *slot_of;         /* per value: slot + 1 */
  uint32_t *instr_of;        /* per node: instruction of the block + 1 */
  uint32_t first, count;     /* its instructions */
  uint32_t *last_use;        /* per slot of the part at the time of writing: instruction + 1; TENSOR slots */
  uint32_t slot_limit;       /* slots that existed when writing began */
  struct symbol_set definer; /* dataflow: per symbol: instruction + 1 that gives it its value */
  VEC(uint32_t) * preds;     /* dataflow */
};

static status write_flow(struct part_writer *w, struct flow *flow, uint32_t block, bool outer);

static struct program_slot *slot_at(struct part_writer *w, uint32_t slot) { return &w->slots.items[slot]; }

/* ---- slots ---- */

static uint32_t slot_add(struct flow_writer *f, value_id v, enum program_storage storage) {
  const struct flow_value *value = flow_value_get(f->flow, v);
  struct part_writer *w = f->w;
  struct program_slot slot = {
    .dtype = (uint8_t)value->dtype, .rank = (uint8_t)value->rank, .storage = (uint8_t)storage, .any_rank = value->any_rank};
  slot.root = w->slots.count;
  uint32_t dims[LIMIT_RANK];
  bool known = true;
  for (int i = 0; i < value->rank; i++) {
    dims[i] = emit_code(w->e, value->dims[i]);
    known = known && code_is_known(w->e, dims[i], &w->start, NULL);
  }
  slot.dims = emit_operands(w->e, dims, slot.rank).first;
  if (storage == STORAGE_ARENA && !known)
    slot.storage = STORAGE_TENSOR;
  vec_push(&w->slots, slot);
  f->slot_of[v] = w->slots.count;
  return w->slots.count - 1;
}

static uint32_t slot_of(const struct flow_writer *f, value_id v) { return f->slot_of[v] - 1; }

static bool kernel_arg_is_output(const struct flow_node *node, uint32_t i) {
  return node->args[i].value != NO_VALUE && !node->args[i].var && node->kernel->buffers.items[i].mode != BUFFER_IN &&
         node->kernel->buffers.items[i].mode != BUFFER_SCRATCH;
}

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
  enum program_storage storage = STORAGE_TENSOR;
  switch (node->op) {
  case FLOW_KERNEL:
    for (uint32_t i = 0; i < node->kernel->buffers.count; i++)
      if (kernel_arg_is_output(node, i))
        slot_add(f, node->args[i].value, STORAGE_ARENA);
    return;
  case FLOW_CONST: storage = STORAGE_CONST; break;
  case FLOW_VARIABLE: storage = STORAGE_ARENA; break;
  case FLOW_READ: storage = STORAGE_VARIABLE; break;
  case FLOW_ALIAS: storage = STORAGE_ALIAS; break;
  default: break;
  }
  for (uint32_t i = 0; i < node->outputs.count; i++) {
    uint32_t slot = slot_add(f, node->outputs.items[i], storage);
    const struct flow_value *value = flow_value_get(f->flow, node->outputs.items[i]);
    if (storage == STORAGE_CONST)
      slot_at(f->w, slot)->data = emit_elements(f->w->e, value->dtype, value->data, constant_count(f->w->e, value));
    if (storage == STORAGE_VARIABLE)
      slot_at(f->w, slot)->data = f->w->e->variable_numbers[node->var];
    if (storage == STORAGE_ALIAS)
      slot_at(f->w, slot)->root = slot_at(f->w, slot_of(f, node->inputs.items[0]))->root;
  }
}

/* A value that outlives the step cannot be in the arena; strings are copied when they leave in any case. */
static void let_escape(struct flow_writer *f, value_id v) {
  struct program_slot *root = slot_at(f->w, slot_at(f->w, slot_of(f, v))->root);
  if (root->storage == STORAGE_ARENA && root->dtype != DTYPE_STRING)
    root->storage = STORAGE_TENSOR;
}

static void add_slots(struct flow_writer *f) {
  for (uint32_t i = 0; i < f->flow->params.count; i++)
    slot_add(f, f->flow->params.items[i], STORAGE_TENSOR);
  for (uint32_t i = 0; i < f->schedule.order.count; i++)
    add_output_slots(f, f->flow->nodes.items[f->schedule.order.items[i]]);
  for (uint32_t i = 0; i < f->schedule.order.count; i++) {
    const struct flow_node *node = f->flow->nodes.items[f->schedule.order.items[i]];
    if (node->op == FLOW_SEND || node->op == FLOW_FETCH)
      let_escape(f, node->inputs.items[0]);
    for (uint32_t side = 1; node->op == FLOW_MERGE && side < 3; side++)
      let_escape(f, node->inputs.items[side]);
  }
  for (uint32_t i = 0; i < f->flow->results.count; i++)
    let_escape(f, f->flow->results.items[i]);
}

/* ---- symbols ---- */

/* The sizes of a value that arrives from outside: bare symbols get their values from it. */
static void define_slot(struct flow_writer *f, uint32_t slot, uint32_t instr) {
  const struct program_slot *s = slot_at(f->w, slot);
  for (int i = 0; i < s->rank; i++) {
    uint32_t symbol = code_symbol(f->w->e, f->w->e->operands.items[s->dims + (uint32_t)i]);
    if (symbol == PROGRAM_NONE || symbol_get(&f->w->known, symbol))
      continue;
    symbol_set(&f->w->known, symbol, 1);
    symbol_set(&f->definer, symbol, instr + 1);
  }
}

static void define_code(struct flow_writer *f, uint32_t code, uint32_t instr) {
  uint32_t symbol = code_symbol(f->w->e, code);
  if (symbol == PROGRAM_NONE || symbol_get(&f->w->known, symbol))
    return;
  symbol_set(&f->w->known, symbol, 1);
  symbol_set(&f->definer, symbol, instr + 1);
}

/* ---- edges between instructions that run by counts ---- */

static void add_edge(struct flow_writer *f, flow_id before, uint32_t instr) {
  if (before && f->instr_of[before])
    vec_push(&f->preds[instr], f->instr_of[before] - 1);
}

static void add_code_edges(struct flow_writer *f, uint32_t code, uint32_t instr) {
  const struct emitter *e = f->w->e;
  for (const int64_t *word = e->words.items + code; *word != PROGRAM_DIM_END; word++) {
    bool is_symbol = *word == PROGRAM_DIM_SYMBOL;
    if (is_symbol || *word == PROGRAM_DIM_CONST)
      word++;
    uint32_t definer = is_symbol ? symbol_get(&f->definer, (uint32_t)*word) : 0;
    if (definer && definer - 1 < instr)
      vec_push(&f->preds[instr], definer - 1);
  }
}

static void add_edges(struct flow_writer *f, const struct flow_node *node, const struct program_instr *instr, uint32_t number) {
  for (uint32_t i = 0; i < node->inputs.count; i++)
    add_edge(f, flow_value_get(f->flow, node->inputs.items[i])->producer, number);
  for (uint32_t i = 0; node->op == FLOW_KERNEL && i < node->kernel->buffers.count; i++)
    if (node->args[i].value && !kernel_arg_is_output(node, i))
      add_edge(f, flow_value_get(f->flow, node->args[i].value)->producer, number);
  for (uint32_t i = 0; i < node->guard_count; i++)
    add_edge(f, flow_value_get(f->flow, node->guards[i].predicate)->producer, number);
  for (uint32_t i = 0; i < node->controls.count; i++)
    add_edge(f, node->controls.items[i], number);
  for (uint32_t i = 0; i < instr->sizes.count; i++)
    add_code_edges(f, f->w->e->operands.items[instr->sizes.first + i], number);
  struct program_range lists[] = {instr->args, instr->outputs};
  for (int list = 0; list < 2; list++)
    for (uint32_t i = 0; i < lists[list].count; i++) {
      uint32_t slot = f->w->e->operands.items[lists[list].first + i];
      if (slot & PROGRAM_ARG_VARIABLE)
        continue;
      const struct program_slot *s = slot_at(f->w, slot);
      for (int d = 0; d < s->rank; d++)
        add_code_edges(f, f->w->e->operands.items[s->dims + (uint32_t)d], number);
    }
}

static void write_successors(struct flow_writer *f) {
  struct emitter *e = f->w->e;
  for (uint32_t i = 0; i < f->schedule.needs.count; i++) {
    struct schedule_need need = f->schedule.needs.items[i];
    if (f->instr_of[need.before] && f->instr_of[need.after])
      vec_push(&f->preds[f->instr_of[need.after] - 1], f->instr_of[need.before] - 1);
  }
  VEC(uint32_t) *successors = calloc((size_t)f->count + 1, sizeof *successors);
  for (uint32_t i = 0; i < f->count; i++) {
    e->instrs.items[f->first + i].need_count = f->preds[i].count;
    for (uint32_t j = 0; j < f->preds[i].count; j++)
      vec_push(&successors[f->preds[i].items[j]], i);
    vec_free(&f->preds[i]);
  }
  for (uint32_t i = 0; i < f->count; i++) {
    e->instrs.items[f->first + i].successors = emit_operands(e, successors[i].items, successors[i].count);
    vec_free(&successors[i]);
  }
  free(successors);
}

/* ---- instructions ---- */

/* Nodes that do nothing while a step runs. */
static bool is_static(const struct flow_writer *f, const struct flow_node *node) {
  if (f->preds)
    return false; /* their edges count */
  if (node->op == FLOW_CONST || node->op == FLOW_NOOP)
    return true;
  if (node->op != FLOW_ALIAS)
    return false;
  enum program_storage root = slot_at(f->w, slot_at(f->w, slot_of(f, node->outputs.items[0]))->root)->storage;
  return root == STORAGE_ARENA || root == STORAGE_CONST;
}

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
      if (kernel_arg_is_output(node, i))
        vec_push(&outputs, slot_of(f, arg->value));
    }
  }
  instr->args = emit_operands(e, args.items, args.count);
  instr->outputs = emit_operands(e, outputs.items, outputs.count);
  vec_free(&args);
  vec_free(&outputs);
  return OK;
}

/* Mode, rank and size codes of each variable argument. */
static void kernel_shapes(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr) {
  static const uint32_t modes[] = {
    [BUFFER_IN] = PROGRAM_VARIABLE_IN, [BUFFER_OUT] = PROGRAM_VARIABLE_OUT, [BUFFER_INOUT] = PROGRAM_VARIABLE_INOUT};
  struct emitter *e = f->w->e;
  VEC(uint32_t) shapes = {0};
  for (uint32_t i = 0; i < node->kernel->buffers.count; i++) {
    const struct kernel_buffer *buffer = &node->kernel->buffers.items[i];
    if (!node->args[i].var)
      continue;
    vec_push(&shapes, modes[buffer->mode]);
    vec_push(&shapes, (uint32_t)buffer->rank);
    for (int d = 0; d < buffer->rank; d++) {
      kernel_dim size = buffer->dims[d];
      uint32_t code = DIM_IS_SIZE(size) ? emit_code(e, node->sizes[SIZE_OF_DIM(size)]) : emit_constant_code(e, size);
      vec_push(&shapes, code);
    }
  }
  instr->shapes = emit_operands(e, shapes.items, shapes.count).first;
  vec_free(&shapes);
}

static status write_kernel(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr) {
  struct part_writer *w = f->w;
  struct emitter *e = w->e;
  instr->number = emit_kernel_number(e, node->kernel);
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

static void write_bind(struct flow_writer *f, const struct flow_node *node, struct program_instr *instr, uint32_t number) {
  struct emitter *e = f->w->e;
  uint32_t *codes = calloc((size_t)node->bind_count + 1, sizeof *codes);
  for (uint32_t i = 0; codes && i < node->bind_count; i++) {
    codes[i] = emit_code(e, dim_of_symbol(e->dims, node->binds[i]));
    define_code(f, codes[i], number);
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
    instr->peer = (uint32_t)node->imm;
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
  case FLOW_BIND: write_bind(f, node, instr, number); return OK;
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

/* Lifetimes: an arena slot lives from its first position to its last; of the others the last user is remembered. */
static void note_use(struct flow_writer *f, uint32_t slot, uint32_t instr) {
  struct program_slot *root = slot_at(f->w, slot_at(f->w, slot)->root);
  uint32_t number = slot_at(f->w, slot)->root;
  if (!root->first)
    root->first = f->w->position;
  root->last = f->w->position;
  if (number < f->slot_limit)
    f->last_use[number] = instr + 1;
}

static status write_instr(struct flow_writer *f, const struct flow_node *node, uint32_t number) {
  struct part_writer *w = f->w;
  struct emitter *e = w->e;
  struct program_instr instr = {.op = (uint8_t)op_of(f, node)};
  instr.node = emit_text(e, node->name);
  instr.tf_op = emit_text(e, node->tf_op);
  instr.place = emit_text(e, node->place ? node->place : "");
  if (node->op != FLOW_KERNEL) {
    instr.args = slot_list(f, node->inputs.items, node->inputs.count);
    instr.outputs = slot_list(f, node->outputs.items, node->outputs.count);
  }
  TRY(write_details(f, node, &instr, number));
  if (node->op != FLOW_IF && node->op != FLOW_WHILE && flow_node_changes(node))
    instr.flags |= INSTR_CHANGES;
  instr.guards = guard_list(f, node);
  w->position++;
  for (uint32_t i = 0; i < instr.args.count; i++)
    if (!(e->operands.items[instr.args.first + i] & PROGRAM_ARG_VARIABLE))
      note_use(f, e->operands.items[instr.args.first + i], number);
  bool arrives = node->op == FLOW_FEED || node->op == FLOW_RECV || node->op == FLOW_HOST || node->op == FLOW_READ || node->op == FLOW_IF ||
                 node->op == FLOW_WHILE || node->op == FLOW_MERGE;
  for (uint32_t i = 0; i < node->guard_count; i++)
    note_use(f, slot_of(f, node->guards[i].predicate), number);
  for (uint32_t i = 0; i < instr.outputs.count; i++) {
    uint32_t slot = e->operands.items[instr.outputs.first + i];
    note_use(f, slot, number);
    if (arrives)
      define_slot(f, slot, number);
  }
  if (f->preds)
    add_edges(f, node, &instr, number);
  e->instrs.items[f->first + number] = instr;
  return OK;
}

/* Tensors are given up after their last use, but for strings (their elements may have been copied as views), parameters
 * and results (the region's caller gives them up). Objects in parameters are given up, too: a list that only its last user has is changed
 * in place. */
static void write_releases(struct flow_writer *f) {
  struct emitter *e = f->w->e;
  for (uint32_t i = 0; i < f->flow->params.count; i++) {
    uint32_t slot = slot_of(f, f->flow->params.items[i]);
    f->last_use[slot] = slot_at(f->w, slot)->dtype == DTYPE_VARIANT ? f->last_use[slot] : 0;
  }
  for (uint32_t i = 0; i < f->flow->results.count; i++)
    f->last_use[slot_at(f->w, slot_of(f, f->flow->results.items[i]))->root] = 0;
  uint32_t *start = calloc((size_t)f->count + 2, sizeof *start);
  uint32_t *list = calloc((size_t)f->slot_limit + 1, sizeof *list);
  for (int pass = 0; start && list && pass < 2; pass++) {
    for (uint32_t slot = 0; slot < f->slot_limit; slot++) {
      const struct program_slot *s = slot_at(f->w, slot);
      bool held = (s->storage == STORAGE_TENSOR || s->storage == STORAGE_VARIABLE) && s->dtype != DTYPE_STRING;
      if (!held || !f->last_use[slot])
        continue;
      if (pass == 0)
        start[f->last_use[slot] + 1]++;
      else
        list[start[f->last_use[slot]]++] = slot;
    }
    for (uint32_t i = 1; pass == 0 && i < f->count + 2; i++)
      start[i] += start[i - 1];
  }
  for (uint32_t i = 0; start && list && i < f->count; i++)
    e->instrs.items[f->first + i].release = emit_operands(e, list + start[i], start[i + 1] - start[i]);
  free(start);
  free(list);
}

static uint32_t count_instrs(struct flow_writer *f) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->schedule.order.count; i++) {
    flow_id id = f->schedule.order.items[i];
    f->instr_of[id] = is_static(f, f->flow->nodes.items[id]) ? 0 : ++count;
  }
  return count;
}

static status write_nodes(struct flow_writer *f) {
  for (uint32_t i = 0; i < f->schedule.order.count; i++) {
    flow_id id = f->schedule.order.items[i];
    if (f->instr_of[id])
      TRY(write_instr(f, f->flow->nodes.items[id], f->instr_of[id] - 1));
  }
  return OK;
}

/* The symbols that got their values in this flow. */
static struct program_range defined_symbols(struct flow_writer *f) {
  struct emitter *e = f->w->e;
  struct program_range range = {e->operands.count, 0};
  for (uint32_t s = 0; s < f->definer.values.count; s++)
    if (f->definer.values.items[s])
      vec_push(&e->operands, s);
  range.count = e->operands.count - range.first;
  return range;
}

static status write_block(struct flow_writer *f, uint32_t block, bool outer) {
  struct part_writer *w = f->w;
  struct emitter *e = w->e;
  TRY(schedule_flow(f->flow, &f->schedule));
  f->slot_of = calloc((size_t)f->flow->values.count + 1, sizeof *f->slot_of);
  f->instr_of = calloc((size_t)f->flow->nodes.count + 1, sizeof *f->instr_of);
  if (outer && w->dataflow)
    f->preds = calloc((size_t)f->flow->nodes.count + 1, sizeof *f->preds);
  add_slots(f);
  for (uint32_t i = 0; i < f->flow->params.count; i++)
    define_slot(f, slot_of(f, f->flow->params.items[i]), 0);
  f->slot_limit = w->slots.count;
  f->last_use = calloc((size_t)f->slot_limit + 1, sizeof *f->last_use);
  f->count = count_instrs(f);
  f->first = e->instrs.count;
  for (uint32_t i = 0; i < f->count; i++)
    vec_push(&e->instrs, (struct program_instr){0});
  TRY(write_nodes(f));
  if (f->preds)
    write_successors(f);
  else
    write_releases(f);
  struct program_block *out = &e->blocks.items[block];
  struct program_range params = slot_list(f, f->flow->params.items, f->flow->params.count);
  struct program_range results = slot_list(f, f->flow->results.items, f->flow->results.count);
  w->position++;
  for (uint32_t i = 0; i < f->flow->results.count; i++)
    note_use(f, slot_of(f, f->flow->results.items[i]), 0);
  *out = (struct program_block){{f->first, f->count}, params, results, {0, 0}};
  if (!outer)
    out->symbols = defined_symbols(f);
  return OK;
}

static status write_flow(struct part_writer *w, struct flow *flow, uint32_t block, bool outer) {
  struct flow_writer f = {.w = w, .flow = flow};
  status result = write_block(&f, block, outer);
  vec_free(&f.schedule.order);
  vec_free(&f.schedule.needs);
  vec_free(&f.definer.values);
  free(f.slot_of);
  free(f.instr_of);
  free(f.last_use);
  free(f.preds);
  return result;
}

static bool flow_blocks(const struct flow *flow) {
  for (uint32_t i = 1; i < flow->nodes.count; i++)
    if (flow->nodes.items[i] && flow->nodes.items[i]->blocks)
      return true;
  return false;
}

/* is_function: its parameters are values passed in. */
static status write_part(struct emitter *e, struct flow *flow, uint32_t task, const struct symbol_set *start, bool is_function,
                         bool by_counts) {
  struct part_writer w = {.e = e, .task = task, .dataflow = by_counts};
  for (uint32_t i = 0; i < start->values.count; i++) {
    symbol_set(&w.start, i, start->values.items[i]);
    symbol_set(&w.known, i, start->values.items[i]);
  }
  struct program_part part = {.task = task, .block = e->blocks.count, .dataflow = w.dataflow};
  uint32_t first = e->instrs.count;
  vec_push(&e->blocks, (struct program_block){0});
  status result = write_flow(&w, flow, part.block, !is_function);
  part.slots = (struct program_range){e->slots.count, w.slots.count};
  part.instr_count = e->instrs.count - first;
  part.positions = w.position + 1;
  for (uint32_t i = 0; i < w.slots.count; i++)
    vec_push(&e->slots, w.slots.items[i]);
  vec_push(&e->parts, part);
  vec_free(&w.slots);
  vec_free(&w.start.values);
  vec_free(&w.known.values);
  return result;
}

status emit_part(struct emitter *e, struct flow *flow, uint32_t task, const struct symbol_set *start) {
  return write_part(e, flow, task, start, false, flow_blocks(flow));
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
