/* size.c: a stack machine over 64-bit words; wrap-around is caught later, when a shape's elements are counted. */
#include "runtime/program/size.h"

#include <stdio.h>
#include <string.h>

#define SIZE_STACK 64

static int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return (int64_t)(0 - (uint64_t)a);
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_modulo(int64_t a, int64_t b) {
  return b == 0 ? 0 : (int64_t)((uint64_t)a - (uint64_t)floor_divide(a, b) * (uint64_t)b);
}

static int64_t size_apply(int64_t op, int64_t a, int64_t b) {
  switch (op) {
  case PROGRAM_DIM_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
  case PROGRAM_DIM_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
  case PROGRAM_DIM_FLOORDIV: return floor_divide(a, b);
  case PROGRAM_DIM_MOD: return floor_modulo(a, b);
  case PROGRAM_DIM_MIN: return a < b ? a : b;
  default: return a > b ? a : b;
  }
}

bool size_eval(const int64_t *code, const int64_t *symbols, int64_t *out) {
  if (code[0] == PROGRAM_DIM_CONST && code[2] == PROGRAM_DIM_END) {
    *out = code[1];
    return true;
  }
  int64_t stack[SIZE_STACK];
  int top = 0;
  for (; *code != PROGRAM_DIM_END; code++) {
    if (*code == PROGRAM_DIM_CONST || *code == PROGRAM_DIM_SYMBOL) {
      int64_t value = *code == PROGRAM_DIM_CONST ? code[1] : symbols ? symbols[code[1]] : SYMBOL_UNBOUND;
      if (*code++ == PROGRAM_DIM_SYMBOL && value == SYMBOL_UNBOUND)
        return false;
      if (top == SIZE_STACK)
        return false;
      stack[top++] = value;
    } else {
      if (top < 2)
        return false;
      top--;
      stack[top - 1] = size_apply(*code, stack[top - 1], stack[top]);
    }
  }
  if (top != 1)
    return false;
  *out = stack[0];
  return true;
}

uint32_t size_symbol(const int64_t *code) {
  return code[0] == PROGRAM_DIM_SYMBOL && code[2] == PROGRAM_DIM_END ? (uint32_t)code[1] : PROGRAM_NONE;
}

status shape_eval(const struct program *program, const uint32_t *dims, uint32_t rank, const int64_t *symbols, struct shape *out) {
  out->rank = (int)rank;
  for (uint32_t i = 0; i < rank; i++)
    if (!size_eval(program_words(program, dims[i]), symbols, &out->dims[i]))
      return fail(INTERNAL, "the size of dimension %u is not known yet", i);
  if (shape_count(out) < 0)
    return shape_refuse(out);
  return OK;
}

const char *size_shape_text(const struct program *program, const uint32_t *dims, uint32_t rank, const int64_t *symbols, char *text,
                            size_t size) {
  size_t at = (size_t)snprintf(text, size, "[");
  for (uint32_t i = 0; i < rank && at < size; i++) {
    int64_t value;
    const char *comma = i ? "," : "";
    if (size_eval(program_words(program, dims[i]), symbols, &value))
      at += (size_t)snprintf(text + at, size - at, "%s%lld", comma, (long long)value);
    else
      at += (size_t)snprintf(text + at, size - at, "%s?", comma);
  }
  if (at < size)
    snprintf(text + at, size - at, "]");
  return text;
}

static status shape_mismatch(const struct program *program, const uint32_t *dims, uint32_t rank, const struct shape *shape,
                             const int64_t *symbols) {
  char text[256];
  return fail(INVALID_ARGUMENT, "shape is %s, must be %s", shape_text(shape),
              size_shape_text(program, dims, rank, symbols, text, sizeof text));
}

status shape_bind(const struct program *program, const uint32_t *dims, uint32_t rank, const struct shape *shape, int64_t *symbols) {
  if (shape->rank != (int)rank)
    return shape_mismatch(program, dims, rank, shape, symbols);
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t symbol = size_symbol(program_words(program, dims[i]));
    if (symbol != PROGRAM_NONE && symbols[symbol] == SYMBOL_UNBOUND)
      symbols[symbol] = shape->dims[i];
  }
  for (uint32_t i = 0; i < rank; i++) {
    int64_t value;
    if (!size_eval(program_words(program, dims[i]), symbols, &value))
      return fail(UNIMPLEMENTED, "dimension %u of %s is a formula over sizes that are not known yet", i, shape_text(shape));
    if (value != shape->dims[i])
      return shape_mismatch(program, dims, rank, shape, symbols);
  }
  return OK;
}
