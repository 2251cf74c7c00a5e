/* lower_kernel.c: building the kernel of an op: buffers bound to values, sizes bound to dims, blocks opened and closed; and,
 * when all its inputs are known while compiling, evaluating it at once instead of emitting it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel_eval.h"
#include "ir/lower/lower.h"

void kb_begin(struct kb *kb, struct op_call *c, enum dtype dtype) {
  memset(kb, 0, sizeof *kb);
  kb->c = c;
  kb->k = kernel_create(op_arena(c), c->node->op);
  kb->f = (struct formula){.kernel = kb->k, .dtype = dtype};
  kb->tail[0] = &kb->k->body;
}

/* ---- buffers and sizes ---- */

static uint32_t size_number(struct kb *kb, dim d) {
  for (uint32_t i = 0; i < kb->sizes.count; i++)
    if (kb->sizes.items[i] == d)
      return i;
  vec_push(&kb->sizes, d);
  return kb->sizes.count - 1;
}

static kernel_dim buffer_dim(struct kb *kb, dim d) {
  d = dim_resolve(op_dims(kb->c), d);
  int64_t value;
  return dim_is_const(op_dims(kb->c), d, &value) ? (value < 0 ? 0 : value) : DIM_OF_SIZE(size_number(kb, d));
}

expr_id kb_dim(struct kb *kb, dim d) {
  d = dim_resolve(op_dims(kb->c), d);
  int64_t value;
  return dim_is_const(op_dims(kb->c), d, &value) ? kb_int(kb, value) : expr_size(kb->k, size_number(kb, d));
}
expr_id kb_int(struct kb *kb, int64_t value) { return expr_int(kb->k, DTYPE_INT64, value); }

static uint32_t add_buffer(struct kb *kb, enum dtype dtype, enum buffer_mode mode, int rank, const dim *dims, struct flow_arg arg) {
  kernel_dim kd[LIMIT_RANK];
  for (int i = 0; i < rank; i++)
    kd[i] = buffer_dim(kb, dims[i]);
  vec_push(&kb->args, arg);
  return kernel_add_buffer(kb->k, dtype, mode, rank, kd);
}

uint32_t kb_in(struct kb *kb, value_id v) {
  for (uint32_t i = 0; i < kb->args.count; i++)
    if (kb->args.items[i].value == v && kb->k->buffers.items[i].mode == BUFFER_IN)
      return i;
  struct flow_value x = *op_value(kb->c, v);
  return add_buffer(kb, x.dtype, BUFFER_IN, x.rank, x.dims, (struct flow_arg){.value = v});
}

uint32_t kb_out(struct kb *kb, enum dtype dtype, int rank, const dim *dims) {
  value_id v = flow_add_value(op_flow(kb->c), dtype, rank, dims);
  if (dtype == DTYPE_VARIANT) {
    value_id numbers = flow_add_value(op_flow(kb->c), DTYPE_INT64, rank, dims);
    vec_push(&kb->places, ((struct kb_places){kb->args.count, v}));
    return add_buffer(kb, DTYPE_INT64, BUFFER_OUT, rank, dims, (struct flow_arg){.value = numbers});
  }
  return add_buffer(kb, dtype, BUFFER_OUT, rank, dims, (struct flow_arg){.value = v});
}
value_id kb_value(const struct kb *kb, uint32_t buffer) {
  for (uint32_t i = 0; i < kb->places.count; i++)
    if (kb->places.items[i].buffer == buffer)
      return kb->places.items[i].value;
  return kb->args.items[buffer].value;
}

uint32_t kb_var(struct kb *kb, uint32_t var, enum buffer_mode mode, int rank, const dim *dims) {
  kb->effect = true;
  if (mode != BUFFER_IN)
    lower_note_change(kb->c->lw, var);
  return add_buffer(kb, op_var(kb->c, var)->dtype, mode, rank, dims, (struct flow_arg){.var = var + 1});
}
uint32_t kb_scratch(struct kb *kb, enum dtype dtype, int rank, const dim *dims) {
  return add_buffer(kb, dtype, BUFFER_SCRATCH, rank, dims, (struct flow_arg){0});
}

/* ---- blocks and statements ---- */

static void open_block(struct kb *kb, struct stmt *s) {
  assert(kb->depth + 1 < KB_DEPTH);
  kb->open[++kb->depth] = s;
  kb->tail[kb->depth] = &s->body;
}
expr_id kb_for(struct kb *kb, enum loop_kind loop, expr_id extent) {
  struct stmt *s = stmt_for(kb->k, kb->tail[kb->depth], loop, extent);
  open_block(kb, s);
  return expr_local(kb->k, s->local);
}
expr_id kb_for_dim(struct kb *kb, enum loop_kind loop, dim extent) { return kb_for(kb, loop, kb_dim(kb, extent)); }
void kb_loops(struct kb *kb, enum loop_kind loop, int rank, const dim *dims, expr_id *index) {
  for (int i = 0; i < rank; i++)
    index[i] = kb_for_dim(kb, loop, dims[i]);
  kb_loops_over(kb, rank, dims);
}
void kb_loops_over(struct kb *kb, int rank, const dim *dims) {
  for (int i = 0; i < rank; i++)
    kb->loop_dims[i] = dims[i];
  kb->loop_rank = rank;
}
void kb_if(struct kb *kb, expr_id condition) { open_block(kb, stmt_if(kb->k, kb->tail[kb->depth], condition)); }
void kb_else(struct kb *kb) { kb->tail[kb->depth] = &kb->open[kb->depth]->otherwise; }
void kb_while(struct kb *kb, expr_id condition) { open_block(kb, stmt_while(kb->k, kb->tail[kb->depth], condition)); }
void kb_close(struct kb *kb, int count) {
  assert(count <= kb->depth);
  kb->depth -= count;
}
uint32_t kb_local(struct kb *kb, expr_id initial) {
  return stmt_var(kb->k, kb->tail[kb->depth], (enum dtype)expr_get(kb->k, initial)->dtype, initial)->local;
}
expr_id kb_get(struct kb *kb, uint32_t local) { return expr_local(kb->k, local); }
void kb_set(struct kb *kb, uint32_t local, expr_id value) { stmt_set(kb->k, kb->tail[kb->depth], local, value); }
/* A "%d" for each value that is shown; any other % stands for itself: it came from a name or a message. */
static const char *check_text(struct arena *arena, const char *text, int shown) {
  char *out = arena_alloc(arena, 2 * strlen(text) + 1), *at = out;
  for (; *text; text++) {
    if (*text == '%' && (text[1] != 'd' || shown-- <= 0))
      *at++ = '%';
    *at++ = *text;
  }
  *at = 0;
  return out;
}

static void check_showing(struct kb *kb, expr_id holds, status code, const char *text, const expr_id shown[STATUS_SHOWN]) {
  int64_t known;
  int count = 0;
  if (expr_is_const(kb->k, holds, &known) && known)
    return;
  for (int i = 0; i < STATUS_SHOWN; i++)
    count += shown[i] != NO_EXPR;
  stmt_check(kb->k, kb->tail[kb->depth], holds, code, check_text(op_arena(kb->c), text, count), shown);
}

void kb_check(struct kb *kb, expr_id holds, status code, const char *text, expr_id shown0, expr_id shown1) {
  check_showing(kb, holds, code, text, (expr_id[]){shown0, shown1, NO_EXPR});
}

void kb_check_index(struct kb *kb, expr_id holds, const char *text, expr_id place, expr_id index, expr_id size) {
  check_showing(kb, holds, INVALID_ARGUMENT, text, (expr_id[]){place, index, size});
}

static bool is_variant(const struct kb *kb, uint32_t buffer) { return kb->k->buffers.items[buffer].dtype == DTYPE_VARIANT; }

/* The number of a variant among those of all inputs. */
static struct element variant_number(struct kb *kb, uint32_t buffer, const expr_id *index) {
  expr_id number = kb_int(kb, 0);
  for (uint32_t b = 0; b < buffer; b++) {
    const struct flow_value *before = is_variant(kb, b) ? op_value(kb->c, kb->args.items[b].value) : NULL;
    if (before)
      number = kb_add(kb, number, kb_dim(kb, op_count(kb->c, before->rank, before->dims)));
  }
  const struct flow_value *v = op_value(kb->c, kb->args.items[buffer].value);
  expr_id own = kb_int(kb, 0);
  for (int d = 0; d < v->rank; d++)
    own = kb_add(kb, kb_mul(kb, own, kb_dim(kb, v->dims[d])), index[d]);
  return real_element(kb_add(kb, number, own));
}

struct element kb_load(struct kb *kb, uint32_t buffer, const expr_id *index) {
  const struct kernel_buffer b = kb->k->buffers.items[buffer];
  if (!index && b.rank) {
    static const expr_id origin[LIMIT_RANK]; /* any: the kernel is thrown away */
    kb->misshapen = buffer + 1;
    index = origin;
  }
  if (b.dtype == DTYPE_VARIANT)
    return variant_number(kb, buffer, index);
  struct element e = {expr_load(kb->k, buffer, 0, index, b.rank), NO_EXPR};
  if (dtype_is_complex(b.dtype))
    e.im = expr_load(kb->k, buffer, 1, index, b.rank);
  return e;
}
void kb_store(struct kb *kb, uint32_t buffer, const expr_id *index, struct element value) {
  const struct kernel_buffer b = kb->k->buffers.items[buffer];
  struct stmt **tail = kb->tail[kb->depth];
  stmt_store(kb->k, tail, buffer, 0, index, b.rank, value.re);
  if (dtype_is_complex(b.dtype))
    stmt_store(kb->k, tail, buffer, 1, index, b.rank, f_imag(&kb->f, value).re);
}
/* Whether dimension i of a buffer may be 1 where the loop over it is longer. */
static bool may_be_one(struct kb *kb, uint32_t buffer, int i, int out_dim, int out_rank) {
  value_id v = kb->args.items[buffer].value;
  return v && kb->loop_rank == out_rank && dim_equal(op_dims(kb->c), op_value(kb->c, v)->dims[i], kb->loop_dims[out_dim]) != 1;
}

expr_id kb_broadcast_index(struct kb *kb, uint32_t buffer, int axis, int out_rank, const expr_id *index) {
  const struct kernel_buffer b = kb->k->buffers.items[buffer];
  int out_dim = out_rank - b.rank + axis;
  expr_id at = b.dims[axis] == 1 ? kb_int(kb, 0) : index[out_dim];
  if (b.dims[axis] != 1 && may_be_one(kb, buffer, axis, out_dim, out_rank))
    at =
      expr_binary(kb->k, SCALAR_MIN, at, kb_sub(kb, kb_dim(kb, op_value(kb->c, kb->args.items[buffer].value)->dims[axis]), kb_int(kb, 1)));
  return at;
}

struct element kb_load_broadcast(struct kb *kb, uint32_t buffer, int out_rank, const expr_id *index) {
  expr_id at[LIMIT_RANK];
  for (int i = 0; i < kb->k->buffers.items[buffer].rank; i++)
    at[i] = kb_broadcast_index(kb, buffer, i, out_rank, index);
  return kb_load(kb, buffer, at);
}

expr_id kb_add(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_ADD, a, b); }
expr_id kb_sub(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_SUB, a, b); }
expr_id kb_mul(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_MUL, a, b); }
expr_id kb_div(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_FLOORDIV, a, b); }
expr_id kb_mod(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_FLOORMOD, a, b); }
expr_id kb_lt(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_LT, a, b); }
expr_id kb_and(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_AND, a, b); }
expr_id kb_clamp(struct kb *kb, expr_id a, expr_id count) {
  expr_id top = expr_binary(kb->k, SCALAR_MIN, a, kb_sub(kb, count, kb_int(kb, 1)));
  return expr_binary(kb->k, SCALAR_MAX, top, kb_int(kb, 0));
}
expr_id kb_index(struct kb *kb, struct element e) { return expr_cast(kb->k, DTYPE_INT64, e.re); }

/* ---- evaluating while compiling ---- */

#define FOLD_ELEMENTS 4096 /* interpreting more would cost compile time for no gain */
#define FOLD_STEPS (1 << 18)

static bool is_known(const struct flow_value *v) { return v->data || v->content; }

/* The number of elements when it is constant; -1 otherwise. */
static int64_t known_count(struct dim_table *t, const struct flow_value *v) {
  int64_t count = 1, d;
  for (int i = 0; i < v->rank; i++) {
    if (!dim_is_const(t, v->dims[i], &d))
      return -1;
    if (d < 0 || d > LIMIT_FOLD_BYTES || (count *= d) > LIMIT_FOLD_BYTES)
      return -1;
  }
  return count;
}

static struct cell *content_cells(struct kb *kb, const struct flow_value *v, int64_t count) {
  struct dim_table *t = op_dims(kb->c);
  struct cell *cells = calloc((size_t)count + 1, sizeof *cells);
  for (int64_t i = 0; i < count; i++) {
    dim d = dim_resolve(t, v->content[i]);
    int64_t value;
    if (d == NO_DIM)
      cells[i].kind = CELL_UNKNOWN;
    else if (dim_is_const(t, d, &value))
      cells[i] = (struct cell){.kind = CELL_BITS, .bits = value};
    else
      cells[i] = (struct cell){.kind = CELL_DIM, .d = d};
  }
  return cells;
}

/* A small integer input may be unknown where another is known: the known elements of a packed shape stay known so. */
#define UNKNOWN_ELEMENTS 64
static bool may_be_unknown(const struct flow_value *v, int64_t count) {
  return (v->dtype == DTYPE_INT32 || v->dtype == DTYPE_INT64) && count <= UNKNOWN_ELEMENTS;
}

static bool can_evaluate(struct kb *kb) {
  struct dim_table *t = op_dims(kb->c);
  uint32_t known = 0, unknown = 0;
  if (kb->effect)
    return false;
  for (uint32_t b = 0; b < kb->args.count; b++) {
    const struct kernel_buffer *buffer = &kb->k->buffers.items[b];
    if (buffer->mode == BUFFER_SCRATCH)
      continue;
    const struct flow_value *v = op_value(kb->c, kb->args.items[b].value);
    int64_t count = known_count(t, v);
    if (count < 0 || v->dtype == DTYPE_RESOURCE || v->dtype == DTYPE_VARIANT)
      return false;
    if (buffer->mode == BUFFER_IN ? !is_known(v) && !may_be_unknown(v, count) : count > FOLD_ELEMENTS)
      return false;
    known += buffer->mode == BUFFER_IN && is_known(v);
    unknown += buffer->mode == BUFFER_IN && !is_known(v);
  }
  return unknown == 0 || known > 0;
}

/* The cells of an output as constant data, or as content; false when neither holds them. */
static bool take_output(struct kb *kb, struct flow_value *v, const struct cell *cells, int64_t count) {
  struct dim_table *t = op_dims(kb->c);
  bool complex = dtype_is_complex(v->dtype), all_bits = true, any_known = false;
  enum dtype part = dtype_real(v->dtype);
  int64_t n = complex ? count * 2 : count;
  for (int64_t i = 0; i < n; i++) {
    all_bits = all_bits && (cells[i].kind == CELL_BITS || cells[i].kind == CELL_STRING);
    any_known = any_known || cells[i].kind != CELL_UNKNOWN;
  }
  if (all_bits) {
    char *data = arena_alloc_aligned(op_arena(kb->c), (size_t)n * dtype_size(part) + 16, 64);
    for (int64_t i = 0; i < n; i++) {
      if (v->dtype == DTYPE_STRING)
        ((struct string_view *)(void *)data)[i] = cells[i].text;
      else
        memcpy(data + i * (int64_t)dtype_size(part), &cells[i].bits, dtype_size(part));
    }
    v->data = data;
  }
  bool integers = v->dtype == DTYPE_INT32 || v->dtype == DTYPE_INT64;
  if (integers && count <= LIMIT_CONTENT && any_known) {
    dim *content = ARENA_ARRAY(op_arena(kb->c), dim, count + 1);
    for (int64_t i = 0; i < count; i++)
      content[i] = cells[i].kind == CELL_DIM ? cells[i].d : cells[i].kind == CELL_BITS ? dim_const(t, cells[i].bits) : NO_DIM;
    v->content = content;
  }
  return all_bits;
}

/* Runs the kernel over what is known. *all: every output became constant data, so that no node is needed. */
static status evaluate(struct kb *kb, bool *all) {
  struct dim_table *t = op_dims(kb->c);
  uint32_t n = kb->args.count;
  struct eval_buffer *buffers = calloc(n + 1, sizeof *buffers);
  struct cell *sizes = calloc(kb->sizes.count + 1, sizeof *sizes);
  for (uint32_t i = 0; i < kb->sizes.count; i++)
    sizes[i] = (struct cell){.kind = CELL_DIM, .d = kb->sizes.items[i]};
  for (uint32_t b = 0; b < n; b++) {
    if (kb->k->buffers.items[b].mode == BUFFER_SCRATCH)
      continue;
    const struct flow_value *v = op_value(kb->c, kb->args.items[b].value);
    int64_t count = known_count(t, v);
    if (kb->k->buffers.items[b].mode != BUFFER_IN)
      buffers[b].cells = calloc((size_t)count * 2 + 1, sizeof(struct cell));
    else if (v->data)
      buffers[b].memory = (void *)(uintptr_t)v->data;
    else if (v->content)
      buffers[b].cells = content_cells(kb, v, count);
  }
  struct eval_input input = {.dims = t, .buffers = buffers, .sizes = sizes, .step_limit = FOLD_STEPS};
  status result = kernel_eval_cells(kb->k, &input);
  *all = result == OK;
  for (uint32_t b = 0; b < n && result == OK; b++) {
    if (kb->k->buffers.items[b].mode == BUFFER_OUT) {
      struct flow_value *v = op_value(kb->c, kb->args.items[b].value);
      *all = take_output(kb, v, buffers[b].cells, known_count(t, v)) && *all;
    }
  }
  for (uint32_t b = 0; b < n; b++)
    free(buffers[b].cells);
  free(buffers);
  free(sizes);
  return result == ABORTED || op_in_region(kb->c) || kb->c->guards ? OK : result;
}

/* An output known as constant data gets a node of its own. */
static void emit_constants(struct kb *kb) {
  for (uint32_t b = 0; b < kb->args.count; b++) {
    if (kb->k->buffers.items[b].mode != BUFFER_OUT)
      continue;
    struct flow_node *n = op_emit(kb->c, FLOW_CONST, false);
    value_id v = kb->args.items[b].value;
    vec_push(&n->outputs, v);
    struct flow_value *value = op_value(kb->c, v);
    value->producer = op_flow(kb->c)->nodes.count - 1;
    value->index = 0;
  }
}

static void emit_kernel(struct kb *kb) {
  struct flow_node *n = op_emit(kb->c, FLOW_KERNEL, kb->effect);
  flow_id id = op_flow(kb->c)->nodes.count - 1;
  if (!kb->effect && kb->c->guard)
    vec_push(&n->controls, kb->c->guard);
  n->kernel = kb->k;
  n->args = arena_copy(op_arena(kb->c), kb->args.items, sizeof *n->args * kb->args.count);
  n->sizes = arena_copy(op_arena(kb->c), kb->sizes.items, sizeof *n->sizes * kb->sizes.count);
  for (uint32_t b = 0; b < kb->args.count; b++) {
    value_id v = kb->args.items[b].value;
    if (v == NO_VALUE)
      continue;
    if (kb->k->buffers.items[b].mode == BUFFER_IN) {
      vec_push(&n->inputs, v);
    } else {
      op_value(kb->c, v)->producer = id;
      op_value(kb->c, v)->index = n->outputs.count;
      vec_push(&n->outputs, v);
    }
  }
}

/* The variants that the kernel's numbers name. */
static void emit_variants(struct kb *kb) {
  for (uint32_t i = 0; i < kb->places.count; i++) {
    struct flow_node *n = op_emit(kb->c, FLOW_HOST, false);
    struct flow_value *value = op_value(kb->c, kb->places.items[i].value);
    n->host = "VariantTake";
    for (uint32_t b = 0; b < kb->args.count; b++)
      if (is_variant(kb, b))
        vec_push(&n->inputs, kb->args.items[b].value);
    vec_push(&n->inputs, kb->args.items[kb->places.items[i].buffer].value);
    vec_push(&n->outputs, kb->places.items[i].value);
    value->producer = op_flow(kb->c)->nodes.count - 1;
    value->index = 0;
  }
}

/* An op that takes any dtype, but computes with it: of strings there is nothing but comparing and choosing. */
static status check_strings(const struct kernel *k) {
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    bool chooses = x->op <= SCALAR_LOAD || x->op == SCALAR_SELECT || (x->op >= SCALAR_EQ && x->op <= SCALAR_LE);
    if (!chooses && expr_get(k, expr_operand(k, e, 0))->dtype == DTYPE_STRING)
      return fail(UNIMPLEMENTED, "%s of strings", scalar_text(x->op));
  }
  return OK;
}

/* A builder has divided by a size that is 0 (dim_floordiv), and nothing has refused it. */
static status check_sizes(const struct kb *kb) {
  for (uint32_t b = 0, output = 0; b < kb->args.count; b++) {
    if (kb->k->buffers.items[b].mode != BUFFER_OUT || !kb->args.items[b].value)
      continue;
    const struct flow_value *v = op_value(kb->c, kb->args.items[b].value);
    for (int i = 0; i < v->rank; i++)
      if (v->dims[i] == NO_DIM)
        return fail(INTERNAL, "dimension %d of output %u has no size", i, output);
    output++;
  }
  return OK;
}

static status emit(struct kb *kb) {
  if (kb->misshapen) {
    const struct flow_value *v = op_value(kb->c, kb->args.items[kb->misshapen - 1].value);
    return fail(INVALID_ARGUMENT, "an input must be a scalar, not of shape %s", op_shape_text(kb->c, v->rank, v->dims));
  }
  TRY(check_sizes(kb));
  TRY(check_strings(kb->k));
  kb->k->size_count = kb->sizes.count;
  bool all = false;
  if (can_evaluate(kb))
    TRY(evaluate(kb, &all));
  if (all)
    emit_constants(kb);
  else
    emit_kernel(kb);
  emit_variants(kb);
  return OK;
}
status kb_finish(struct kb *kb) {
  assert(kb->depth == 0);
  status result = emit(kb);
  vec_free(&kb->places);
  vec_free(&kb->args);
  vec_free(&kb->sizes);
  return result;
}
