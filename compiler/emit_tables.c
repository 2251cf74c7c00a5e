/* emit_tables.c: appending to the tables of a program. */
#include "compiler/emit_tables.h"

#include <stdlib.h>
#include <string.h>

uint32_t emit_text(struct emitter *e, const char *text) {
  uint32_t number;
  if (!text || !*text)
    return 0;
  if (map_find(&e->text_numbers, text, &number))
    return number;
  number = e->texts.count;
  uint32_t size = (uint32_t)strlen(text) + 1;
  vec_reserve(&e->texts, e->texts.count + size);
  memcpy(e->texts.items + number, text, size);
  e->texts.count += size;
  map_insert(&e->text_numbers, text, number);
  return number;
}

#define PROGRAM_DATA_NONE UINT64_MAX

/* Zeroed room; PROGRAM_DATA_NONE when the table would become too large. */
static uint64_t data_reserve(struct emitter *e, uint64_t size, uint64_t align) {
  uint64_t at = (e->data.count + align - 1) / align * align;
  if (size > UINT32_MAX - 64 || at + size > UINT32_MAX - 64) {
    e->too_large = true;
    return PROGRAM_DATA_NONE;
  }
  vec_reserve(&e->data, at + size + 1);
  memset(e->data.items + e->data.count, 0, at + size - e->data.count);
  e->data.count = (uint32_t)(at + size);
  return at;
}

/* Bytes in PROGRAM_DATA; the same memory is written once. */
static uint64_t emit_data(struct emitter *e, const void *data, uint64_t size, uint64_t align) {
  uint32_t known;
  char *key = arena_printf(e->arena, "%p %llu %llu", data, (unsigned long long)size, (unsigned long long)align);
  if (map_find(&e->data_numbers, key, &known))
    return known;
  uint64_t at = data_reserve(e, size, align);
  if (at == PROGRAM_DATA_NONE)
    return 0;
  if (size)
    memcpy(e->data.items + at, data, size);
  map_insert(&e->data_numbers, key, (uint32_t)at);
  return at;
}

uint64_t emit_elements(struct emitter *e, enum dtype dtype, const void *data, uint64_t count) {
  if (dtype != DTYPE_STRING)
    return emit_data(e, data, count * dtype_size(dtype), 64);
  const struct string_view *views = data;
  uint64_t at = data_reserve(e, count * sizeof(struct program_string), 64);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bytes = data_reserve(e, views[i].size, 1);
    if (at == PROGRAM_DATA_NONE || bytes == PROGRAM_DATA_NONE)
      return 0;
    if (views[i].size)
      memcpy(e->data.items + bytes, views[i].data, views[i].size);
    struct program_string string = {bytes, views[i].size};
    memcpy(e->data.items + at + i * sizeof string, &string, sizeof string);
  }
  return at;
}

struct program_range emit_operands(struct emitter *e, const uint32_t *items, uint32_t count) {
  struct program_range range = {e->operands.count, count};
  vec_reserve(&e->operands, e->operands.count + count + 1);
  if (count)
    memcpy(e->operands.items + e->operands.count, items, count * sizeof *items);
  e->operands.count += count;
  return range;
}

static struct kernel *named_copy(struct emitter *e, const struct kernel *kernel, const char *name) {
  struct kernel *copy = arena_copy(e->arena, kernel, sizeof *kernel);
  copy->name = name;
  return copy;
}
uint32_t emit_kernel_number(struct emitter *e, const struct flow_node *node) {
  uint32_t number;
  char *key = kernel_hash_text(kernel_hash(node->kernel), e->arena);
  if (map_find(&e->kernel_numbers, key, &number))
    return number;
  number = e->kernels.count;
  const char *name = arena_printf(e->arena, "%s_%u", node->kernel->name, number);
  vec_push(&e->kernels, named_copy(e, node->kernel, name));
  for (uint32_t i = 0; i < e->build->cpus.count; i++)
    vec_push(&e->scheduled[i], named_copy(e, node->scheduled[i].kernel, name));
  map_insert(&e->kernel_numbers, key, number);
  return number;
}

/* ---- attributes ---- */

uint32_t emit_words(struct emitter *e, const int64_t *words, uint32_t count) {
  uint32_t at = e->words.count;
  for (uint32_t i = 0; i < count; i++)
    vec_push(&e->words, words[i]);
  return at;
}

static void fill_attr(struct emitter *e, const struct attr_value *value, struct program_attr *out);

static void fill_list(struct emitter *e, const struct attr_value *value, struct program_attr *out) {
  uint32_t count = value->list.count;
  struct program_attr *items = calloc((size_t)count + 1, sizeof *items);
  for (uint32_t i = 0; items && i < count; i++)
    fill_attr(e, &value->list.items[i], &items[i]);
  out->list.first = e->attrs.count; /* nested lists have been written before: items of one list stay together */
  out->list.count = count;
  for (uint32_t i = 0; items && i < count; i++)
    vec_push(&e->attrs, items[i]);
  free(items);
}

static void fill_attr(struct emitter *e, const struct attr_value *value, struct program_attr *out) {
  out->kind = (uint32_t)value->kind;
  out->i = value->i;
  out->f = value->f;
  switch (value->kind) {
  case ATTR_STRING:
  case ATTR_PLACEHOLDER:
    out->offset = emit_data(e, value->s.data, value->s.size, 1);
    out->size = value->s.size;
    break;
  case ATTR_FUNC:
    out->offset = emit_data(e, value->func->name, strlen(value->func->name), 1);
    out->size = strlen(value->func->name);
    break;
  case ATTR_SHAPE:
    out->i = value->shape.unknown_rank ? -1 : value->shape.rank;
    out->list.count = value->shape.unknown_rank ? 0 : (uint32_t)value->shape.rank;
    out->list.first = emit_words(e, value->shape.dims, out->list.count);
    break;
  case ATTR_TENSOR:
    out->dtype = value->tensor->dtype;
    out->i = value->tensor->rank;
    out->list.count = (uint32_t)value->tensor->rank;
    out->list.first = emit_words(e, value->tensor->dims, out->list.count);
    out->offset = emit_elements(e, value->tensor->dtype, value->tensor->data, (uint64_t)value->tensor->count);
    out->size = (uint64_t)value->tensor->count;
    break;
  case ATTR_LIST: fill_list(e, value, out); break;
  case ATTR_NONE:
  case ATTR_INT:
  case ATTR_FLOAT:
  case ATTR_BOOL:
  case ATTR_TYPE: break;
  }
}

struct program_range emit_attrs(struct emitter *e, const struct flow_attr *attrs, uint32_t count) {
  struct program_attr *items = calloc((size_t)count + 1, sizeof *items);
  for (uint32_t i = 0; items && i < count; i++) {
    items[i].name = emit_text(e, attrs[i].name);
    fill_attr(e, &attrs[i].value, &items[i]);
  }
  struct program_range range = {e->attrs.count, count};
  for (uint32_t i = 0; items && i < count; i++)
    vec_push(&e->attrs, items[i]);
  free(items);
  return range;
}

/* ---- sizes ---- */

void emit_begin_entry(struct emitter *e, struct dim_table *dims) {
  e->dims = dims;
  e->symbol_numbers.count = 0;
  e->symbols.count = 0;
  e->codes.count = 0;
}

static uint32_t symbol_number(struct emitter *e, uint32_t symbol) {
  while (e->symbol_numbers.count <= symbol)
    vec_push(&e->symbol_numbers, 0);
  if (!e->symbol_numbers.items[symbol]) {
    vec_push(&e->symbols, emit_text(e, dims_symbol_name(e->dims, symbol)));
    e->symbol_numbers.items[symbol] = e->symbols.count;
  }
  return e->symbol_numbers.items[symbol] - 1;
}

uint32_t emit_code(struct emitter *e, dim d) {
  while (e->codes.count <= d)
    vec_push(&e->codes, 0);
  if (e->codes.items[d])
    return e->codes.items[d] - 1;
  struct dim_code code = {0};
  dim_emit(e->dims, d, &code);
  uint32_t at = e->words.count;
  for (uint32_t i = 0; i < code.words.count; i++) {
    int64_t word = code.words.items[i];
    vec_push(&e->words, word);
    if (word != PROGRAM_DIM_CONST && word != PROGRAM_DIM_SYMBOL)
      continue;
    int64_t operand = code.words.items[++i];
    vec_push(&e->words, word == PROGRAM_DIM_SYMBOL ? symbol_number(e, (uint32_t)operand) : operand);
  }
  vec_free(&code.words);
  e->codes.items[d] = at + 1;
  return at;
}

uint32_t emit_constant_code(struct emitter *e, int64_t value) {
  return emit_words(e, (int64_t[]){PROGRAM_DIM_CONST, value, PROGRAM_DIM_END}, 3);
}

uint32_t symbol_get(const struct symbol_set *set, uint32_t symbol) { return symbol < set->values.count ? set->values.items[symbol] : 0; }

void symbol_set(struct symbol_set *set, uint32_t symbol, uint32_t value) {
  while (set->values.count <= symbol)
    vec_push(&set->values, 0);
  set->values.items[symbol] = value;
}

bool code_is_known(const struct emitter *e, uint32_t code, const struct symbol_set *known, uint32_t *missing) {
  for (const int64_t *word = e->words.items + code; *word != PROGRAM_DIM_END; word++) {
    bool is_symbol = *word == PROGRAM_DIM_SYMBOL;
    if (is_symbol || *word == PROGRAM_DIM_CONST)
      word++;
    if (is_symbol && !symbol_get(known, (uint32_t)*word)) {
      if (missing)
        *missing = (uint32_t)*word;
      return false;
    }
  }
  return true;
}

uint32_t code_symbol(const struct emitter *e, uint32_t code) {
  const int64_t *word = e->words.items + code;
  return word[0] == PROGRAM_DIM_SYMBOL && word[2] == PROGRAM_DIM_END ? (uint32_t)word[1] : PROGRAM_NONE;
}
