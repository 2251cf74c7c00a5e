/* op_rows.c: ops.def read as code: formulas become functions, rows become a table found by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/lower/lower.h"
#include "ir/ops/op_rows.h"
#include "ir/kernel/formula_words.h"

/* ---- MAP ---- */
#define MAP(name, inputs, value_)                                                                             \
  static struct element map_##name(struct formula *f, struct element a, struct element b, struct element c) { \
    (void)f, (void)a, (void)b, (void)c;                                                                       \
    return value_;                                                                                            \
  }
#define MAPC(name, inputs, check_, code_, text_, value_)                                                        \
  static struct element holds_##name(struct formula *f, struct element a, struct element b, struct element c) { \
    (void)a, (void)b, (void)c;                                                                                  \
    return check_;                                                                                              \
  }                                                                                                             \
  MAP(name, inputs, value_)
#define REDUCE(name, first_, next_, last_)                                                                        \
  static struct element start_##name(struct formula *f) { return first_; }                                        \
  static struct element combine_##name(struct formula *f, struct element acc, struct element x) { return next_; } \
  static struct element finish_##name(struct formula *f, struct element acc, expr_id n) {                         \
    (void)f, (void)n;                                                                                             \
    return last_;                                                                                                 \
  }
#define UPDATE(name, function)
#define BUILD(name, function)
#include "ir/ops.def"

/* ---- what the rows point at ---- */
#define MAP(name, inputs, value_) static const struct map_row row_##name = {inputs, map_##name, NULL, OK, NULL, false};
#define MAP_ALIKE(name, inputs, value_) static const struct map_row row_##name = {inputs, map_##name, NULL, OK, NULL, true};
#define MAPC(name, inputs, check_, code_, text_, value_) \
  static const struct map_row row_##name = {inputs, map_##name, holds_##name, code_, text_, false};
#define REDUCE(name, first_, next_, last_) static const struct reduce_row row_##name = {start_##name, combine_##name, finish_##name, false};
#define REDUCE_WIDE(name, first_, next_, last_) \
  static const struct reduce_row row_##name = {start_##name, combine_##name, finish_##name, true};
#define UPDATE(name, function) void function(struct update *u);
#define BUILD(name, function) status function(struct op_call *c);
#define BUILD_AS(name, function, row, ...) \
  BUILD(name, function)                    \
  _Static_assert(sizeof(struct row) <= OP_ROW_BYTES, #row);
#include "ir/ops.def"

static const struct op_row rows[] = {
#define MAP(name, inputs, value_) {#name, build_map, NULL, &row_##name},
#define REDUCE(name, first_, next_, last_) {#name, build_reduce, NULL, &row_##name},
#define UPDATE(name, function)                                                                                                      \
  {"Apply" #name, build_update, NULL, (const void *)function}, {"ResourceApply" #name, build_update, NULL, (const void *)function}, \
    {"SparseApply" #name, build_update, NULL, (const void *)function},                                                              \
    {"ResourceSparseApply" #name, build_update, NULL, (const void *)function},
#define BUILD(name, function) {#name, function, NULL, NULL},
#define BUILD_AS(name, function, row, ...) {#name, function, #row, &(const struct row){__VA_ARGS__}},
#include "ir/ops.def"
};

const struct op_row *op_rows(uint32_t *count) {
  *count = sizeof rows / sizeof rows[0];
  return rows;
}

const void *op_row_fields(const struct op_call *c, const char *type) {
  static const _Alignas(16) char none[OP_ROW_BYTES];
  return c->row->type && strcmp(c->row->type, type) == 0 ? c->row->data : none;
}

const struct op_row *op_row_find(const char *op) {
  static struct map by_name;
  if (by_name.count == 0)
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
      if (registry_find(rows[i].name)) /* UPDATE makes names of forms that TensorFlow lacks */
        map_insert(&by_name, rows[i].name, i);
  uint32_t at;
  return map_find(&by_name, op, &at) ? &rows[at] : NULL;
}
