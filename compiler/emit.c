/* emit.c: the program of one task: its identity, variables, entries, and the parts that run here. */
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "compiler/build_json.h"
#include "compiler/emit_tables.h"
#include "compiler/graph_walk.h"
#include "compiler/pass/plan.h"
#include "compiler/variable_slice.h"
#include "ir/graph/attr_hash.h"
#include "ir/graph/registry.h"

/* Variables of this task are updated by others' steps, or it is the only one that can keep them. Counters of random ops are each
 * task's own. */
static bool task_holds(const struct emitter *e, uint32_t task) {
  bool is_held = false;
  for (uint32_t i = 0; i < e->build->vars.count; i++) {
    const struct flow_var *var = &e->build->vars.items[i];
    if (var->zero_initial || var->task == TASK_SELF)
      continue;
    is_held = true;
    if (var->task == task || (var->task == TASK_DRIVER && task == e->build->default_task))
      return true;
  }
  return !is_held && e->build->vars.count > 0 && task == e->build->default_task; /* replicas: the chief's */
}

static void emit_tasks(struct emitter *e) {
  const struct cluster *cluster = &e->build->cluster;
  for (uint32_t i = 0; i < cluster->tasks.count; i++) {
    const struct cluster_task *task = &cluster->tasks.items[i];
    vec_push(&e->tasks, (struct program_task){.job = emit_text(e, task->job),
                                              .address = emit_text(e, task->address),
                                              .index = task->index,
                                              .flags = task_holds(e, i) ? PROGRAM_TASK_HOLDS : 0});
  }
}

/* ---- variables ---- */

static bool is_replica(const struct emitter *e) {
  const char *job = build_replicated(e->build);
  return job && strcmp(job, e->build->cluster.tasks.items[e->task].job) == 0;
}

static bool variable_is_here(const struct emitter *e, const struct flow_var *var) {
  if (var->task == TASK_SELF)
    return is_replica(e);
  return var->task == e->task || (var->task == TASK_DRIVER && e->build->cluster.tasks.count == 1);
}

static uint32_t emit_panels(struct emitter *e, const struct panels *p) {
  int64_t words[PANEL_WORDS + 2 * LIMIT_RANK] = {
    [PANEL_RANK] = p->rank, [PANEL_LANES] = p->lanes, [PANEL_COUNT] = p->count, [PANEL_WIDTH] = p->width, [PANEL_OUTER] = p->outer};
  for (int i = 0; i < p->rank; i++) {
    words[PANEL_WORDS + 2 * i] = p->dims[i];
    words[PANEL_WORDS + 2 * i + 1] = p->order[i];
  }
  return emit_words(e, words, PANEL_WORDS + 2 * (uint32_t)p->rank);
}
static struct constant in_panels(struct emitter *e, const struct panels *p, const struct constant *dense) {
  struct constant out = {.dtype = dense->dtype, .rank = p->rank + 1};
  out.count = panels_sizes(p, out.dims);
  void *data = arena_alloc(e->arena, (size_t)out.count * dtype_size(out.dtype));
  panels_pack(p, dense->data, dtype_size(out.dtype), data);
  out.data = data;
  return out;
}

static void emit_variable(struct emitter *e, uint32_t number) {
  const struct flow_var *var = &e->build->vars.items[number];
  struct program_variable out = {.name = emit_text(e, var->name),
                                 .container = emit_text(e, var->container),
                                 .node = emit_text(e, var->node),
                                 .dtype = (uint8_t)var->dtype,
                                 .has_shape = var->has_shape,
                                 .is_resource = var->is_resource,
                                 .has_initial = var->zero_initial ? PROGRAM_INITIAL_ZERO : PROGRAM_INITIAL_NONE};
  out.slice = emit_text(e, variable_slice(e->build, number));
  out.rank = (uint8_t)(var->has_shape ? var->rank : 0);
  out.dims = emit_words(e, var->dims, out.rank);
  out.panels = var->panels ? emit_panels(e, var->panels) + 1 : 0;
  for (uint32_t i = 0; i < e->build->initials.count; i++) {
    const struct var_initial *initial = &e->build->initials.items[i];
    if (initial->var != number)
      continue;
    out.has_initial = PROGRAM_INITIAL_DATA;
    const struct constant value = var->panels ? in_panels(e, var->panels, &initial->value) : initial->value;
    out.initial_rank = (uint32_t)value.rank;
    out.initial_dims = emit_words(e, value.dims, out.initial_rank);
    out.initial = emit_elements(e, value.dtype, value.data, (uint64_t)value.count);
  }
  vec_push(&e->variables, out);
}

static void emit_variables(struct emitter *e) {
  e->variable_numbers = ARENA_ARRAY(e->arena, uint32_t, e->build->vars.count + 1);
  for (uint32_t i = 0; i < e->build->vars.count; i++) {
    e->variable_numbers[i] = PROGRAM_NONE;
    if (!variable_is_here(e, &e->build->vars.items[i]))
      continue;
    e->variable_numbers[i] = e->variables.count;
    emit_variable(e, i);
  }
}

/* ---- entries ---- */

static struct program_range emit_ports(struct emitter *e, const struct flow *flow, const struct flow_port *ports, uint32_t count) {
  struct program_range range = {e->ports.count, count};
  for (uint32_t i = 0; i < count; i++) {
    const struct flow_value *value = flow_value_get(flow, ports[i].value);
    struct program_port port = {.name = emit_text(e, ports[i].name),
                                .tensor = emit_text(e, ports[i].tensor),
                                .dtype = (uint8_t)value->dtype,
                                .rank = (uint8_t)value->rank,
                                .any_rank = ports[i].any_rank,
                                .every_rank = ports[i].every_rank};
    uint32_t dims[LIMIT_RANK], reasons[LIMIT_RANK];
    for (int d = 0; d < value->rank; d++) {
      const char *why = dim_reason(flow->dims, value->dims[d]);
      dims[d] = emit_code(e, value->dims[d]);
      reasons[d] = emit_text(e, why ? why : "");
    }
    port.dims = emit_operands(e, dims, port.rank).first;
    port.reasons = emit_operands(e, reasons, port.rank).first;
    vec_push(&e->ports, port);
  }
  return range;
}

static bool flow_changes_state(const struct flow *flow) {
  for (uint32_t i = 1; i < flow->nodes.count; i++) {
    const struct flow_node *node = flow->nodes.items[i];
    if (!node)
      continue;
    if (node->op == FLOW_ASSIGN || (node->op == FLOW_HOST && (node->stateful || node->blocks)))
      return true;
    for (uint32_t j = 0; node->op == FLOW_KERNEL && j < node->kernel->buffers.count; j++)
      if (node->args[j].var && node->kernel->buffers.items[j].mode != BUFFER_IN)
        return true;
    for (uint32_t j = 0; j < node->region_count; j++)
      if (flow_changes_state(node->branches[j]))
        return true;
  }
  return false;
}

/* Whether a part is in this task's program. */
static bool part_is_here(const struct emitter *e, const struct entry *entry, uint32_t task) {
  if (task == TASK_SELF || (task == TASK_DRIVER && entry->replicated))
    return is_replica(e);
  return task == TASK_DRIVER || task == e->task;
}

/* The symbols of the feeds' shapes: the driver knows them when it starts. */
static void feed_symbols(struct emitter *e, struct program_range feeds, struct symbol_set *out) {
  for (uint32_t i = 0; i < feeds.count; i++) {
    const struct program_port *port = &e->ports.items[feeds.first + i];
    for (int d = 0; d < port->rank; d++) {
      uint32_t symbol = code_symbol(e, e->operands.items[port->dims + (uint32_t)d]);
      if (symbol != PROGRAM_NONE)
        symbol_set(out, symbol, 1);
    }
  }
}

/* ---- partial runs ---- */

static void needs_of_value(const struct flow *flow, value_id value, uint8_t *needed) {
  if (value)
    needed[flow_value_get(flow, value)->producer] = 1;
}

/* The nodes that a node needs directly. */
static void needs_of_node(const struct flow *flow, const struct flow_node *node, uint8_t *needed) {
  for (uint32_t i = 0; i < node->inputs.count; i++)
    needs_of_value(flow, node->inputs.items[i], needed);
  for (uint32_t i = 0; node->op == FLOW_KERNEL && i < node->kernel->buffers.count; i++)
    needs_of_value(flow, node->args[i].value, needed);
  for (uint32_t i = 0; i < node->guard_count; i++)
    needs_of_value(flow, node->guards[i].predicate, needed);
  for (uint32_t i = 0; i < node->controls.count; i++)
    needed[node->controls.items[i]] = 1;
}

/* Marks all nodes behind those that are marked; until nothing changes: numbers say nothing about the order. */
static void needs_close(const struct flow *flow, uint8_t *needed) {
  uint8_t *done = calloc((size_t)flow->nodes.count + 1, 1);
  for (bool more = done != NULL; more;) {
    more = false;
    for (uint32_t i = flow->nodes.count; i-- > 1;)
      if (needed[i] && !done[i] && flow->nodes.items[i]) {
        done[i] = 1;
        more = true;
        needs_of_node(flow, flow->nodes.items[i], needed);
      }
  }
  free(done);
}

/* Which feeds each fetch is computed from, on whatever task. */
static struct program_range emit_partial_needs(struct emitter *e, const struct entry *entry) {
  const struct flow *flow = entry->flow;
  struct program_range range = {e->operands.count, entry->fetches.count * entry->feeds.count};
  uint8_t *needed = calloc((size_t)flow->nodes.count + 1, 1);
  for (uint32_t i = 0; i < entry->fetches.count; i++) {
    memset(needed, 0, flow->nodes.count);
    needs_of_value(flow, entry->fetches.items[i].value, needed);
    needs_close(flow, needed);
    for (uint32_t j = 0; j < entry->feeds.count; j++)
      vec_push(&e->operands, needed[flow_value_get(flow, entry->feeds.items[j].value)->producer]);
  }
  free(needed);
  return range;
}

/* A part that was written, to be written once more. */
struct written {
  struct flow *flow;
  uint32_t task;
};
typedef VEC(struct written) written_list;

static void emit_partial(struct emitter *e, struct entry *entry, const written_list *parts, struct program_entry *out) {
  uint32_t first = e->parts.count, calls = e->calls.count;
  if (!entry_has_partial_runs(entry) || out->variants)
    return;
  for (uint32_t i = 0; i < parts->count; i++)
    if (!emit_partial_part(e, parts->items[i].flow, parts->items[i].task)) {
      e->parts.count = first;
      e->calls.count = calls;
      return;
    }
  out->partial = first + 1;
  out->partial_needs = emit_partial_needs(e, entry);
}

static status emit_parts(struct emitter *e, struct entry *entry, struct program_entry *out) {
  struct symbol_set fed = {0}, none = {0};
  feed_symbols(e, out->feeds, &fed);
  bool alone = e->build->cluster.tasks.count == 1;
  written_list written = {0};
  out->parts.first = e->parts.count;
  status result = OK;
  if (entry->parts.count == 0) {
    vec_push(&written, (struct written){entry->flow, TASK_DRIVER});
    result = emit_part(e, entry->flow, TASK_DRIVER, &fed);
  }
  /* the driver's part first: it runs on the thread that drives */
  for (int turn = 0; turn < 2; turn++)
    for (uint32_t i = 0; i < entry->parts.count && result == OK; i++) {
      uint32_t task = entry->parts.items[i].task;
      bool drives = task == TASK_DRIVER || task == TASK_SELF;
      if (drives != (turn == 0) || !part_is_here(e, entry, task))
        continue;
      vec_push(&written, (struct written){entry->parts.items[i].flow, task});
      result = emit_part(e, entry->parts.items[i].flow, task, drives || alone ? &fed : &none);
    }
  out->parts.count = e->parts.count - out->parts.first;
  out->functions.first = e->parts.count;
  if (result == OK) {
    emit_partial(e, entry, &written, out);
    result = emit_functions(e);
  }
  out->functions.count = e->parts.count - out->functions.first;
  vec_free(&written);
  vec_free(&fed.values);
  vec_free(&none.values);
  return result;
}

/* A node that a step with or without it leaves everything else as it is. */
static bool is_harmless(const struct node *node) {
  static const char *const reading[] = {"VarHandleOp", "VariableV2", "Variable", "ReadVariableOp", "Placeholder"};
  for (size_t i = 0; i < sizeof reading / sizeof *reading; i++)
    if (strcmp(node->op, reading[i]) == 0)
      return true;
  return node->def && !node->def->is_stateful;
}

/* Fetches that change nothing but what the targets change anyway: a client may leave them out. */
static void mark_optional(struct emitter *e, const struct entry *entry, struct program_range fetches) {
  const struct graph *graph = e->build->model.graph;
  struct edge edge;
  VEC(uint32_t) targets = {0};
  for (uint32_t i = 0; i < entry->targets.count; i++)
    if (graph_find(graph, entry->targets.items[i]) != NO_NODE)
      vec_push(&targets, graph_find(graph, entry->targets.items[i]));
  bool *runs = targets.count ? ancestors_mark(graph, targets.items, targets.count) : NULL;
  for (uint32_t i = 0; runs && i < fetches.count; i++) {
    if (graph_find_output(graph, entry->fetches.items[i].tensor, &edge) != OK)
      continue;
    bool *needs = ancestors_mark(graph, &edge.node, 1), optional = true;
    for (uint32_t n = 0; n < graph->nodes.count && optional; n++)
      optional = !needs[n] || runs[n] || is_harmless(&graph->nodes.items[n]);
    e->ports.items[fetches.first + i].is_optional = optional;
    free(needs);
  }
  free(runs);
  vec_free(&targets);
}

static status emit_entry(struct emitter *e, struct entry *entry) {
  emit_begin_entry(e, entry->flow->dims);
  struct program_entry out = {.name = emit_text(e, entry->name),
                              .replicated = entry->replicated,
                              .changes_state = flow_changes_state(entry->flow),
                              .is_variant = entry->is_variant,
                              .failed = (uint8_t)entry->failed,
                              .failed_text = emit_text(e, entry->failed_text ? entry->failed_text : "")};
  const struct entry *end = e->build->entries.items + e->build->entries.count;
  for (const struct entry *next = entry + 1; next < end && next->is_variant; next++)
    out.variants += !entry->is_variant;
  out.feeds = emit_ports(e, entry->flow, entry->feeds.items, entry->feeds.count);
  out.fetches = emit_ports(e, entry->flow, entry->fetches.items, entry->fetches.count);
  mark_optional(e, entry, out.fetches);
  VEC(uint32_t) list = {0};
  for (uint32_t i = 0; i < entry->targets.count; i++)
    vec_push(&list, emit_text(e, entry->targets.items[i]));
  out.targets = emit_operands(e, list.items, list.count);
  list.count = 0;
  for (uint32_t i = 0; i < entry->parts.count; i++)
    if (entry->parts.items[i].task < e->build->cluster.tasks.count)
      vec_push(&list, entry->parts.items[i].task);
  out.tasks = emit_operands(e, list.items, list.count);
  list.count = 0;
  for (uint32_t i = 0; i < entry->decisions.count; i++) {
    vec_push(&list, emit_code(e, entry->decisions.items[i].size));
    vec_push(&list, entry->decisions.items[i].is_one);
  }
  out.decisions = emit_operands(e, list.items, list.count);
  vec_free(&list);
  status result = emit_parts(e, entry, &out);
  out.symbols = emit_operands(e, e->symbols.items, e->symbols.count);
  vec_push(&e->entries, out);
  return result == OK ? OK : status_prefix(result, "entry '%s': ", entry->name);
}

/* ---- runners ---- */

static uint32_t entry_number(const struct build *b, const char *name) {
  for (uint32_t i = 0; name && i < b->entries.count; i++)
    if (!b->entries.items[i].is_variant && strcmp(b->entries.items[i].name, name) == 0)
      return i;
  return PROGRAM_NONE;
}

static void emit_runners(struct emitter *e) {
  for (uint32_t i = 0; i < e->build->runners.count; i++) {
    const struct build_runner *runner = &e->build->runners.items[i];
    struct program_runner out = {.name = emit_text(e, runner->name),
                                 .is_chiefs = runner->is_chiefs,
                                 .end_codes = runner->end_codes,
                                 .begin = entry_number(e->build, runner->begin),
                                 .close = entry_number(e->build, runner->close)};
    VEC(uint32_t) numbers = {0};
    for (uint32_t k = 0; k < runner->entries.count; k++)
      vec_push(&numbers, entry_number(e->build, runner->entries.items[k]));
    out.entries = emit_operands(e, numbers.items, numbers.count);
    vec_free(&numbers);
    vec_push(&e->runners, out);
  }
}

/* ---- the graph's nodes ---- */

static const struct graph *sorted_graph;
static int compare_nodes(const void *a, const void *b) {
  return strcmp(sorted_graph->nodes.items[*(const uint32_t *)a].name, sorted_graph->nodes.items[*(const uint32_t *)b].name);
}

static uint64_t hash_inputs(const struct graph *graph, const struct node *node) {
  uint64_t hash = 0;
  for (uint32_t i = 0; i < node->input_count; i++)
    hash = program_hash_input(hash, graph->nodes.items[node->inputs[i].node].name, node->inputs[i].port);
  uint32_t *controls = malloc(((size_t)node->control_count + 1) * sizeof *controls);
  for (uint32_t i = 0; controls && i < node->control_count; i++)
    controls[i] = node->controls[i];
  if (controls)
    qsort(controls, node->control_count, sizeof *controls, compare_nodes);
  for (uint32_t i = 0; controls && i < node->control_count; i++)
    hash = program_hash_input(hash, graph->nodes.items[controls[i]].name, UINT32_MAX);
  free(controls);
  return hash;
}

static struct program_range emit_attr_hashes(struct emitter *e, const struct node *node) {
  VEC(uint32_t) pairs = {0};
  for (uint32_t i = 0; i < node->attr_count; i++)
    if (node->attrs[i].name[0] != '_') {
      vec_push(&pairs, attr_hash_name(node->attrs[i].name));
      vec_push(&pairs, attr_hash_value(&node->attrs[i].value));
    }
  struct program_range range = emit_operands(e, pairs.items, pairs.count);
  vec_free(&pairs);
  return range;
}

static void emit_nodes(struct emitter *e) {
  const struct graph *graph = sorted_graph = e->build->model.graph;
  if (!graph)
    return;
  uint32_t *order = ARENA_ARRAY(e->arena, uint32_t, graph->nodes.count + 1);
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    order[i] = i;
  qsort(order, graph->nodes.count, sizeof *order, compare_nodes);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[order[i]];
    vec_push(&e->nodes,
             (struct program_node){emit_text(e, node->name), emit_text(e, node->op), hash_inputs(graph, node), emit_attr_hashes(e, node)});
  }
}

/* ---- the block ---- */

/* All that decides what the tasks of a build say to each other. */
static uint64_t build_id(const struct build *build, const char *json) {
  uint32_t math = (uint32_t)build->options.math;
  uint64_t hash = hash_bytes(json, strlen(json), PROGRAM_MAGIC);
  hash = hash_bytes(&math, sizeof math, hash);
  const char *words[] = {build->options.cpu, build->options.gpu, build_replicated(build), build->options.strategy};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    hash = hash_bytes(words[i] ? words[i] : "", words[i] ? strlen(words[i]) : 0, hash);
  for (uint32_t i = 0; i < build->entries.count; i++) {
    const struct entry *entry = &build->entries.items[i];
    hash = hash_bytes(&entry->flow->nodes.count, sizeof entry->flow->nodes.count, hash);
    for (uint32_t j = 0; j < entry->parts.count; j++)
      hash = hash_bytes(&entry->parts.items[j].flow->nodes.count, sizeof(uint32_t), hash);
  }
  return hash;
}

/* What tasks of this build show that they know; who has neither the graph (build.json names its hash) nor an executable cannot make it. */
static void build_key(struct program *header, const char *json, struct arena *arena) {
  size_t size = strlen(json);
  uint8_t *text = arena_alloc(arena, size + sizeof header->build_id);
  memcpy(text, &header->build_id, sizeof header->build_id);
  memcpy(text + sizeof header->build_id, json, size);
  sha256(text, size + sizeof header->build_id, header->build_key);
}

struct table_source {
  const void *items;
  uint64_t count, bytes;
};

static void *lay_out(const struct emitter *e, struct program *header, uint64_t *out_size) {
#define SOURCE(vec) \
  { (vec).items, (vec).count, sizeof *(vec).items }
  const struct table_source sources[PROGRAM_TABLE_COUNT] = {
    [PROGRAM_TEXTS] = SOURCE(e->texts),       [PROGRAM_DATA] = SOURCE(e->data),   [PROGRAM_WORDS] = SOURCE(e->words),
    [PROGRAM_OPERANDS] = SOURCE(e->operands), [PROGRAM_TASKS] = SOURCE(e->tasks), [PROGRAM_VARIABLES] = SOURCE(e->variables),
    [PROGRAM_ENTRIES] = SOURCE(e->entries),   [PROGRAM_PARTS] = SOURCE(e->parts), [PROGRAM_BLOCKS] = SOURCE(e->blocks),
    [PROGRAM_INSTRS] = SOURCE(e->instrs),     [PROGRAM_SLOTS] = SOURCE(e->slots), [PROGRAM_PORTS] = SOURCE(e->ports),
    [PROGRAM_ATTRS] = SOURCE(e->attrs),       [PROGRAM_NODES] = SOURCE(e->nodes), [PROGRAM_RUNNERS] = SOURCE(e->runners),
  };
#undef SOURCE
  uint64_t size = (sizeof *header + 63) / 64 * 64;
  for (int i = 0; i < PROGRAM_TABLE_COUNT; i++) {
    header->tables[i] = (struct program_table){size, sources[i].count};
    size = (size + sources[i].count * sources[i].bytes + 63) / 64 * 64;
  }
  header->size = size;
  char *block = arena_alloc_aligned(e->arena, size, 64);
  memcpy(block, header, sizeof *header);
  for (int i = 0; i < PROGRAM_TABLE_COUNT; i++)
    if (sources[i].count)
      memcpy(block + header->tables[i].offset, sources[i].items, sources[i].count * sources[i].bytes);
  *out_size = size;
  return block;
}

static void emitter_deinit(struct emitter *e) {
  vec_free(&e->texts);
  vec_free(&e->data);
  vec_free(&e->words);
  vec_free(&e->operands);
  vec_free(&e->tasks);
  vec_free(&e->variables);
  vec_free(&e->entries);
  vec_free(&e->parts);
  vec_free(&e->blocks);
  vec_free(&e->instrs);
  vec_free(&e->slots);
  vec_free(&e->ports);
  vec_free(&e->attrs);
  vec_free(&e->nodes);
  vec_free(&e->runners);
  vec_free(&e->symbol_numbers);
  vec_free(&e->symbols);
  vec_free(&e->codes);
  vec_free(&e->calls);
  map_deinit(&e->text_numbers);
  map_deinit(&e->kernel_numbers);
  map_deinit(&e->data_numbers);
}

/* The same entry under another name: its parts are there once. */
static void emit_aliases(struct emitter *e) {
  for (uint32_t a = 0; a < e->build->aliases.count; a++)
    for (uint32_t i = 0; i < e->build->entries.count; i++) {
      if (strcmp(e->build->entries.items[i].name, e->build->aliases.items[a].entry) != 0)
        continue;
      uint32_t name = emit_text(e, e->build->aliases.items[a].name), count = 1 + e->entries.items[i].variants;
      for (uint32_t k = 0; k < count; k++) {
        struct program_entry copy = e->entries.items[i + k];
        copy.name = name;
        vec_push(&e->entries, copy);
      }
      break;
    }
}

static void emit_cpus(struct emitter *e, struct program *header) {
  const struct cpu_list *cpus = &e->build->cpus;
  header->cpu_count = cpus->count;
  for (uint32_t i = 0; i < cpus->count; i++)
    header->cpus[i] = (struct program_cpu){emit_text(e, cpus->items[i].name), cpus->items[i].level};
}

static status emit_all(struct emitter *e, struct program *header) {
  vec_push(&e->texts, 0);
  const char *json = build_json_text(e->build, e->arena);
  header->magic = PROGRAM_MAGIC;
  header->task = e->task;
  header->chief = e->build->default_task;
  header->init_flags = e->build->strategy == STRATEGY_ALLREDUCE ? INIT_EVERYWHERE : 0;
  header->init_flags |= e->build->init_is_loaders ? INIT_ALWAYS : 0;
  header->build_id = build_id(e->build, json);
  build_key(header, json, e->arena);
  header->build_json = emit_text(e, json);
  header->replicated_job = emit_text(e, build_replicated(e->build));
  emit_tasks(e);
  emit_variables(e);
  for (uint32_t i = 0; i < e->build->entries.count; i++)
    TRY(emit_entry(e, &e->build->entries.items[i]));
  emit_aliases(e);
  emit_runners(e);
  emit_nodes(e);
  header->kernel_count = e->kernels.count;
  emit_cpus(e, header);
  if (e->too_large)
    return fail(RESOURCE_EXHAUSTED, "the constants of a task take more than 4 GiB");
  return OK;
}

status build_emit(struct build *build, uint32_t task, struct emitted *out) {
  struct emitter e = {.build = build, .arena = &build->arena, .task = task};
  struct program header;
  memset(&header, 0, sizeof header);
  status result = emit_all(&e, &header);
  if (result == OK) {
    out->program = lay_out(&e, &header, &out->program_size);
    out->kernels.count = 0;
    for (uint32_t i = 0; i < e.kernels.count; i++)
      vec_push(&out->kernels, e.kernels.items[i]);
    for (uint32_t cpu = 0; cpu < build->cpus.count; cpu++) {
      out->scheduled[cpu].count = 0;
      for (uint32_t i = 0; i < e.kernels.count; i++)
        vec_push(&out->scheduled[cpu], e.scheduled[cpu].items[i]);
    }
  }
  for (uint32_t cpu = 0; cpu < build->cpus.count; cpu++)
    vec_free(&e.scheduled[cpu]);
  vec_free(&e.kernels);
  emitter_deinit(&e);
  return result;
}
