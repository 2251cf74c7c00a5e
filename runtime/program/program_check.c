/* program_check.c: walks every table once. What a step reads afterwards it reads without asking. */
#include "runtime/program/program_check.h"

#include <stdbool.h>
#include "base/dtype.h"
#include "base/limits.h"

static const size_t item_bytes[PROGRAM_TABLE_COUNT] = {
  [PROGRAM_TEXTS] = 1,
  [PROGRAM_DATA] = 1,
  [PROGRAM_WORDS] = sizeof(int64_t),
  [PROGRAM_OPERANDS] = sizeof(uint32_t),
  [PROGRAM_TASKS] = sizeof(struct program_task),
  [PROGRAM_VARIABLES] = sizeof(struct program_variable),
  [PROGRAM_ENTRIES] = sizeof(struct program_entry),
  [PROGRAM_PARTS] = sizeof(struct program_part),
  [PROGRAM_BLOCKS] = sizeof(struct program_block),
  [PROGRAM_INSTRS] = sizeof(struct program_instr),
  [PROGRAM_SLOTS] = sizeof(struct program_slot),
  [PROGRAM_PORTS] = sizeof(struct program_port),
  [PROGRAM_ATTRS] = sizeof(struct program_attr),
  [PROGRAM_RUNNERS] = sizeof(struct program_runner),
  [PROGRAM_NODES] = sizeof(struct program_node),
};

#define CHECK(condition, ...)              \
  do {                                     \
    if (!(condition))                      \
      return fail(DATA_LOSS, __VA_ARGS__); \
  } while (0)

static uint64_t count_of(const struct program *p, enum program_table_id table) { return p->tables[table].count; }

static bool range_fits(const struct program *p, struct program_range range, enum program_table_id table) {
  return range.count == 0 || (uint64_t)range.first + range.count <= count_of(p, table);
}

static bool text_fits(const struct program *p, uint32_t text) { return text < count_of(p, PROGRAM_TEXTS); }

/* A size code must end within its table and use symbols below the count. */
static bool code_fits(const struct program *p, uint32_t code, uint32_t symbols) {
  uint64_t end = count_of(p, PROGRAM_WORDS);
  for (uint64_t at = code; at < end; at++) {
    int64_t word = *program_words(p, (uint32_t)at);
    if (word == PROGRAM_DIM_END)
      return true;
    if (word < 0 || word > PROGRAM_DIM_MAX)
      return false;
    if (word == PROGRAM_DIM_CONST || word == PROGRAM_DIM_SYMBOL)
      at++;
    if (word == PROGRAM_DIM_SYMBOL && (at >= end || (uint64_t)*program_words(p, (uint32_t)at) >= symbols))
      return false;
  }
  return false;
}

static bool codes_fit(const struct program *p, const uint32_t *codes, uint32_t count, uint32_t symbols) {
  for (uint32_t i = 0; i < count; i++)
    if (!code_fits(p, codes[i], symbols))
      return false;
  return true;
}

/* As many size codes, or texts, from an operand on. */
static bool dims_fit(const struct program *p, uint32_t first, uint32_t rank, uint32_t symbols) {
  return range_fits(p, (struct program_range){first, rank}, PROGRAM_OPERANDS) && codes_fit(p, program_operands(p, first), rank, symbols);
}

static bool texts_fit(const struct program *p, uint32_t first, uint32_t rank) {
  if (!range_fits(p, (struct program_range){first, rank}, PROGRAM_OPERANDS))
    return false;
  for (uint32_t i = 0; i < rank; i++)
    if (!text_fits(p, program_operands(p, first)[i]))
      return false;
  return true;
}

static status check_tables(const struct program *p) {
  CHECK(p->magic == PROGRAM_MAGIC, "the program is of another version of tfc");
  for (int i = 0; i < PROGRAM_TABLE_COUNT; i++) {
    CHECK(p->tables[i].offset <= p->size, "table %d lies outside of the program", i);
    CHECK(p->tables[i].count <= (p->size - p->tables[i].offset) / item_bytes[i], "table %d is too long", i);
    CHECK(p->tables[i].offset % (item_bytes[i] >= 8 ? 8 : 4) == 0, "table %d is not aligned", i);
  }
  uint64_t texts = count_of(p, PROGRAM_TEXTS);
  CHECK(texts > 0 && program_text(p, 0)[texts - 1] == 0, "the texts do not end");
  CHECK(p->task < count_of(p, PROGRAM_TASKS) && p->chief < count_of(p, PROGRAM_TASKS), "no such task");
  CHECK(text_fits(p, p->build_json) && text_fits(p, p->replicated_job), "no such text");
  return OK;
}

#define PANEL_WIDTH_MAX 4096
/* Whole panels of a variable of the same number of elements. */
static bool panels_fit(const struct program *p, const struct program_variable *v) {
  uint64_t first = v->panels - 1, left = count_of(p, PROGRAM_WORDS);
  if (first > left || left - first < PANEL_WORDS)
    return false;
  const int64_t *words = program_words(p, v->panels - 1);
  int64_t rank = words[PANEL_RANK], dense = 1, packed = 1;
  if (rank < 1 || rank >= LIMIT_RANK || left - first - PANEL_WORDS < (uint64_t)rank * 2 || !v->has_shape || words[PANEL_LANES] < 0 ||
      words[PANEL_LANES] >= rank || words[PANEL_OUTER] < 0 || words[PANEL_OUTER] >= rank || words[PANEL_WIDTH] < 1 ||
      words[PANEL_WIDTH] > PANEL_WIDTH_MAX)
    return false;
  uint32_t seen = 0;
  for (int64_t i = 0; i < rank; i++) {
    int64_t size = words[PANEL_WORDS + 2 * i], from = words[PANEL_WORDS + 2 * i + 1];
    if (size < 1 || __builtin_mul_overflow(packed, size, &packed) || from < 0 || from >= rank)
      return false;
    seen |= i + 1 < rank ? UINT32_C(1) << from : 0;
  }
  for (uint32_t i = 0; i < v->rank; i++)
    if (__builtin_mul_overflow(dense, program_words(p, v->dims)[i], &dense))
      return false;
  return seen == (((UINT32_C(1) << rank) - 1) & ~(UINT32_C(1) << words[PANEL_LANES])) && dense == packed &&
         words[PANEL_COUNT] == words[PANEL_WORDS + 2 * words[PANEL_LANES]];
}

static status check_tasks(const struct program *p) {
  for (uint32_t i = 0; i < count_of(p, PROGRAM_TASKS); i++)
    CHECK(text_fits(p, program_task(p, i)->job) && text_fits(p, program_task(p, i)->address), "task %u", i);
  for (uint32_t i = 0; i < count_of(p, PROGRAM_VARIABLES); i++) {
    const struct program_variable *v = program_variable(p, i);
    CHECK(text_fits(p, v->name) && text_fits(p, v->container) && text_fits(p, v->node) && text_fits(p, v->slice), "variable %u", i);
    CHECK(v->rank <= LIMIT_RANK && v->initial_rank <= LIMIT_RANK && dtype_is_valid(v->dtype), "variable %u", i);
    const struct program_range dims[] = {{v->dims, v->rank}, {v->initial_dims, v->initial_rank}};
    CHECK(range_fits(p, dims[0], PROGRAM_WORDS) && range_fits(p, dims[1], PROGRAM_WORDS), "variable %u: its shape", i);
    CHECK(v->initial <= count_of(p, PROGRAM_DATA), "variable %u: its value", i);
    CHECK(!v->panels || panels_fit(p, v), "variable %u: its panels", i);
  }
  for (uint32_t i = 0; i < count_of(p, PROGRAM_NODES); i++)
    CHECK(text_fits(p, program_node(p, i)->name) && text_fits(p, program_node(p, i)->op) &&
            range_fits(p, program_node(p, i)->attrs, PROGRAM_OPERANDS),
          "node %u", i);
  for (uint32_t i = 0; i < count_of(p, PROGRAM_ATTRS); i++) {
    const struct program_attr *a = program_attr(p, i);
    CHECK(text_fits(p, a->name) && a->offset <= count_of(p, PROGRAM_DATA), "attribute %u", i);
  }
  return OK;
}

static bool slots_fit(const struct program *p, struct program_range range, uint32_t slots) {
  if (!range_fits(p, range, PROGRAM_OPERANDS))
    return false;
  for (uint32_t i = 0; i < range.count; i++)
    if (program_operands(p, range.first)[i] >= slots)
      return false;
  return true;
}

static bool args_fit(const struct program *p, struct program_range range, uint32_t slots) {
  if (!range_fits(p, range, PROGRAM_OPERANDS))
    return false;
  for (uint32_t i = 0; i < range.count; i++) {
    uint32_t arg = program_operands(p, range.first)[i];
    uint64_t limit = arg & PROGRAM_ARG_VARIABLE ? count_of(p, PROGRAM_VARIABLES) : slots;
    if (arg != PROGRAM_ARG_SCRATCH && (arg & ~PROGRAM_ARG_VARIABLE) >= limit)
      return false;
  }
  return true;
}

static uint32_t variable_args(const struct program *p, struct program_range args) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < args.count; i++) {
    uint32_t arg = program_operands(p, args.first)[i];
    count += (arg & PROGRAM_ARG_VARIABLE) && arg != PROGRAM_ARG_SCRATCH;
  }
  return count;
}

static status check_instr(const struct program *p, uint32_t number, uint32_t slots, uint32_t symbols) {
  const struct program_instr *instr = program_instr(p, number);
  CHECK(instr->op >= INSTR_FEED && instr->op <= INSTR_MERGE, "instruction %u is none", number);
  CHECK(text_fits(p, instr->node) && text_fits(p, instr->tf_op) && text_fits(p, instr->place), "instruction %u: its name", number);
  CHECK(args_fit(p, instr->args, slots) && slots_fit(p, instr->outputs, slots), "instruction %u: a slot", number);
  CHECK(slots_fit(p, instr->release, slots), "instruction %u: a slot to release", number);
  CHECK(range_fits(p, instr->guards, PROGRAM_OPERANDS), "instruction %u: its guards", number);
  for (uint32_t i = 0; i < instr->guards.count; i++)
    CHECK(program_operands(p, instr->guards.first)[i] / 2 < slots, "instruction %u: a guard", number);
  CHECK(range_fits(p, instr->sizes, PROGRAM_OPERANDS) && codes_fit(p, program_operands(p, instr->sizes.first), instr->sizes.count, symbols),
        "instruction %u: a size", number);
  CHECK(range_fits(p, instr->blocks, PROGRAM_BLOCKS) && range_fits(p, instr->attrs, PROGRAM_ATTRS) &&
          range_fits(p, instr->functions, PROGRAM_PARTS) && range_fits(p, instr->successors, PROGRAM_OPERANDS),
        "instruction %u: a list", number);
  if (instr->op == INSTR_KERNEL) {
    CHECK(instr->number < p->kernel_count, "instruction %u: kernel %u", number, instr->number);
    CHECK(variable_args(p, instr->args) <= PROGRAM_KERNEL_VARIABLES, "instruction %u: too many variables", number);
  }
  if (instr->op == INSTR_READ || instr->op == INSTR_ASSIGN || instr->op == INSTR_VARIABLE)
    CHECK(instr->number < count_of(p, PROGRAM_VARIABLES), "instruction %u: variable %u", number, instr->number);
  if (instr->op == INSTR_HOST)
    CHECK(text_fits(p, instr->number), "instruction %u: its function", number);
  return OK;
}

static status check_part(const struct program *p, const struct program_part *part, uint32_t symbols) {
  CHECK(range_fits(p, part->slots, PROGRAM_SLOTS) && part->block < count_of(p, PROGRAM_BLOCKS), "a part's tables");
  uint32_t first = program_block(p, part->block)->instrs.first;
  CHECK((uint64_t)first + part->instr_count <= count_of(p, PROGRAM_INSTRS), "a part's instructions");
  for (uint32_t i = 0; i < part->slots.count; i++) {
    const struct program_slot *slot = program_slot(p, part->slots.first + i);
    CHECK(slot->rank <= LIMIT_RANK && dtype_is_valid(slot->dtype) && slot->root < part->slots.count, "slot %u", i);
    CHECK(slot->storage <= STORAGE_ROW, "slot %u", i);
    CHECK(slot->storage == STORAGE_VARIABLE ? slot->data < count_of(p, PROGRAM_VARIABLES) : slot->data <= count_of(p, PROGRAM_DATA),
          "slot %u: its data", i);
    CHECK(dims_fit(p, slot->dims, slot->rank, symbols), "slot %u: a size", i);
  }
  for (uint32_t i = 0; i < part->instr_count; i++)
    TRY(check_instr(p, first + i, part->slots.count, symbols));
  return OK;
}

static status check_block(const struct program *p, uint32_t number) {
  const struct program_block *block = program_block(p, number);
  CHECK(range_fits(p, block->instrs, PROGRAM_INSTRS) && range_fits(p, block->params, PROGRAM_OPERANDS) &&
          range_fits(p, block->results, PROGRAM_OPERANDS) && range_fits(p, block->symbols, PROGRAM_OPERANDS),
        "block %u", number);
  for (uint32_t i = 0, members = 1; i < block->instrs.count; i++) {
    const struct program_instr *instr = program_instr(p, block->instrs.first + i);
    members = instr->flags & INSTR_BESIDE ? members + 1 : 1;
    if (members > 1)
      CHECK(instr->op == INSTR_KERNEL && members <= PROGRAM_GROUP_MAX && i + 1 < block->instrs.count && instr[1].op == INSTR_KERNEL &&
              !(instr->flags & (INSTR_LOCKS | INSTR_LATE | INSTR_CHANGES)) &&
              !(instr[1].flags & (INSTR_LOCKS | INSTR_LATE | INSTR_CHANGES)),
            "block %u: what runs beside what", number);
  }
  return OK;
}

static status check_entry(const struct program *p, uint32_t number) {
  const struct program_entry *entry = program_entry(p, number);
  CHECK(text_fits(p, entry->name), "entry %u: its name", number);
  CHECK(range_fits(p, entry->feeds, PROGRAM_PORTS) && range_fits(p, entry->fetches, PROGRAM_PORTS) &&
          range_fits(p, entry->parts, PROGRAM_PARTS) && range_fits(p, entry->functions, PROGRAM_PARTS) &&
          range_fits(p, entry->targets, PROGRAM_OPERANDS) && range_fits(p, entry->decisions, PROGRAM_OPERANDS) &&
          entry->decisions.count % 2 == 0 && range_fits(p, entry->tasks, PROGRAM_OPERANDS) &&
          range_fits(p, entry->symbols, PROGRAM_OPERANDS) && range_fits(p, entry->partial_needs, PROGRAM_OPERANDS),
        "entry %u", number);
  if (entry->partial)
    CHECK(entry->partial - 1 >= entry->functions.first &&
            (uint64_t)entry->partial - 1 + entry->parts.count <= (uint64_t)entry->functions.first + entry->functions.count &&
            entry->partial_needs.count == (uint64_t)entry->feeds.count * entry->fetches.count,
          "entry %u: its parts for partial runs", number);
  for (uint32_t i = 0; entry->partial && i < entry->parts.count; i++)
    CHECK(program_part(p, entry->partial - 1 + i)->dataflow, "entry %u: its parts for partial runs", number);
  for (uint32_t i = 0; i < entry->decisions.count; i += 2)
    CHECK(codes_fit(p, program_operands(p, entry->decisions.first) + i, 1, entry->symbols.count), "entry %u: a decision", number);
  for (uint32_t i = 0; i < entry->parts.count; i++)
    TRY(check_part(p, program_part(p, entry->parts.first + i), entry->symbols.count));
  for (uint32_t i = 0; i < entry->functions.count; i++)
    TRY(check_part(p, program_part(p, entry->functions.first + i), entry->symbols.count));
  const struct program_range ports[] = {entry->feeds, entry->fetches};
  for (int list = 0; list < 2; list++)
    for (uint32_t i = 0; i < ports[list].count; i++) {
      const struct program_port *port = program_port(p, ports[list].first + i);
      CHECK(text_fits(p, port->name) && text_fits(p, port->tensor) && port->rank <= LIMIT_RANK &&
              dims_fit(p, port->dims, port->rank, entry->symbols.count) && texts_fit(p, port->reasons, port->rank),
            "entry %u: a feed or fetch", number);
    }
  return OK;
}

static bool is_entry(const struct program *p, uint32_t number, bool may_lack) {
  return number < count_of(p, PROGRAM_ENTRIES) || (may_lack && number == PROGRAM_NONE);
}

static status check_runner(const struct program *p, uint32_t number) {
  const struct program_runner *runner = program_runner(p, number);
  CHECK(text_fits(p, runner->name) && range_fits(p, runner->entries, PROGRAM_OPERANDS) && runner->entries.count > 0, "runner %u", number);
  CHECK(is_entry(p, runner->begin, true) && is_entry(p, runner->close, true), "runner %u: its first or last entry", number);
  for (uint32_t i = 0; i < runner->entries.count; i++)
    CHECK(is_entry(p, program_operands(p, runner->entries.first)[i], false), "runner %u: its entries", number);
  return OK;
}

static status check_cpus(const struct program *p) {
  CHECK(p->cpu_count > 0 && p->cpu_count <= PROGRAM_CPUS_MAX, "the program is for %u CPUs", p->cpu_count);
  for (uint32_t i = 0; i < p->cpu_count; i++)
    CHECK(text_fits(p, p->cpus[i].name), "the name of CPU %u is beyond the texts", i);
  return OK;
}

status program_check(const struct program *program) {
  TRY(check_tables(program));
  TRY(check_cpus(program));
  TRY(check_tasks(program));
  for (uint32_t i = 0; i < count_of(program, PROGRAM_BLOCKS); i++)
    TRY(check_block(program, i));
  for (uint32_t i = 0; i < count_of(program, PROGRAM_ENTRIES); i++)
    TRY(check_entry(program, i));
  for (uint32_t i = 0; i < count_of(program, PROGRAM_RUNNERS); i++)
    TRY(check_runner(program, i));
  return OK;
}
