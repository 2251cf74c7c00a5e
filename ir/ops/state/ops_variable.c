/* ops_variable.c: variables, by reference and by resource handle alike: both are a number in the build's table of variables. */
#include <string.h>

#include "ir/lower/lower_walk.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/arrange.h"
#include "ir/kernel/formula_words.h"

/* ---- making ---- */

/* The name under which a variable is found: shared_name, else the node's name (TensorFlow: handles without a name share ""). */
static const char *variable_name(const struct op_call *c) {
  const char *shared = node_attr_string(c->node, "shared_name", "");
  return *shared ? shared : c->node->name;
}

status build_variable(struct op_call *c) {
  const struct attr_shape *shape = node_attr_shape(c->node, "shape");
  enum dtype dtype = (enum dtype)node_attr_int(c->node, "dtype", DTYPE_FLOAT);
  const char *container = node_attr_string(c->node, "container", "");
  struct flow_var var = {.name = variable_name(c),
                         .container = *container ? container : "localhost",
                         .dtype = dtype,
                         .task = c->node->task,
                         .node = c->node->name,
                         .rank = -1,
                         .is_resource = OP_ROW(c, variable_row)->is_handle};
  if (shape) {
    if (shape->rank > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a variable of rank %d", shape->rank);
    var.rank = shape->rank;
    var.has_shape = true;
    for (int i = 0; i < var.rank; i++) {
      var.dims[i] = shape->dims[i];
      var.has_shape = var.has_shape && var.dims[i] >= 0;
    }
  }
  if (OP_ROW(c, variable_row)->is_temporary) {
    var.container = "tfc-temporary";
    var.zero_initial = var.has_shape; /* TensorFlow's is whatever the memory holds */
  }
  c->out[0] = (struct bound){.var = op_find_var(c, &var) + 1};
  return OK;
}

/* Whether input 0 is the handle of something else. */
static bool is_other_handle(struct op_call *c) {
  value_id v = c->in[0].var ? NO_VALUE : c->in[0].value;
  return v && c->node->input_dtypes[0] == DTYPE_RESOURCE && op_value(c, v)->dtype == DTYPE_RESOURCE;
}

status build_read_variable(struct op_call *c) {
  value_id v;
  if (is_other_handle(c))
    return fail(FAILED_PRECONDITION, "Could not find variable: its handle is that of %s",
                c->in[0].maker ? c->in[0].maker->name : "no variable");
  TRY(op_input(c, 0, &v));
  enum dtype have = op_value(c, v)->dtype, want = dtype_base(c->node->output_dtypes[0]);
  if (have != want)
    return fail(INVALID_ARGUMENT, "Trying to read variable with wrong dtype. Expected %s got %s", dtype_name(want), dtype_name(have));
  op_set_output(c, 0, v);
  return OK;
}

/* ---- whole updates ---- */

/* Ops on references give the reference back, to be used after the update. */
static void return_reference(struct op_call *c, uint32_t var) {
  if (c->out_count)
    c->out[0] = (struct bound){.var = var + 1, .after = c->effect};
}

/* Whether the value has the declared shape: 1 or 0, -1 where only the step knows. */
static int fits_declared(struct op_call *c, const struct flow_var *var, const struct flow_value *v) {
  int fits = var->rank < 0 || v->rank == var->rank;
  for (int i = 0; i < v->rank && fits && var->rank >= 0; i++) {
    int equal = var->dims[i] < 0 ? 1 : dim_equal(op_dims(c), v->dims[i], op_dim(c, var->dims[i]));
    fits = equal == 1 ? fits : equal;
  }
  return fits;
}

static status check_assign(struct op_call *c, const struct flow_var *var, value_id value) {
  struct flow_value v = *op_value(c, value);
  if (v.dtype != var->dtype)
    return fail(INVALID_ARGUMENT, "Trying to assign a %s to variable '%s' of %s", dtype_name(v.dtype), var->name, dtype_name(var->dtype));
  if (fits_declared(c, var, &v))
    return OK;
  dim dims[LIMIT_RANK];
  for (int i = 0; i < var->rank; i++)
    dims[i] = op_dim(c, var->dims[i]);
  return fail(INVALID_ARGUMENT, "Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s",
              op_shape_text(c, var->rank, dims), op_shape_text(c, v.rank, v.dims));
}

/* Whether some assignment of the graph gives the variable the shape that it is declared with: then that is what it has. */
static bool is_assigned_as_declared(struct op_call *c, const struct flow_var *var) {
  const struct graph *g = op_graph(c);
  uint32_t maker = graph_find(g, var->node);
  bool found = false;
  for (uint32_t n = 0; n < g->nodes.count && !found; n++) {
    const struct node *assign = &g->nodes.items[n];
    int rank;
    int64_t sizes[LIMIT_RANK];
    if (strcmp(assign->op, "AssignVariableOp") != 0 || assign->inputs[0].node != maker)
      continue;
    found = lower_said_shape(c->lw, assign->inputs[1], &rank, sizes) && rank == var->rank &&
            memcmp(sizes, var->dims, sizeof *sizes * (size_t)rank) == 0;
  }
  return found;
}

/* TensorFlow does not hold all assignments to the declared shape: those which say so, and the first one of a variable behind a handle. */
static bool may_change_shape(struct op_call *c, const struct flow_var *var) {
  if (!var->has_shape || op_in_trial(c) || op_frame(c)->graph != op_graph(c))
    return false;
  return OP_ROW(c, variable_row)->is_handle ? !is_assigned_as_declared(c, var) : !node_attr_int(c->node, "validate_shape", 1);
}

static void open_shape(struct op_call *c, uint32_t number, const struct flow_value *v) {
  struct flow_var var = *op_var(c, number);
  int rank = v->rank == var.rank ? var.rank : -1;
  for (int i = 0; i < rank; i++)
    if (dim_equal(op_dims(c), v->dims[i], op_dim(c, var.dims[i])) != 1)
      var.dims[i] = -1;
  op_open_var(c, number, rank, var.dims);
}

status build_assign(struct op_call *c) {
  uint32_t var;
  value_id value;
  TRY(op_input_var(c, 0, &var));
  TRY(op_input(c, 1, &value));
  struct flow_value v = *op_value(c, value);
  if (v.dtype == op_var(c, var)->dtype && fits_declared(c, op_var(c, var), &v) != 1 && may_change_shape(c, op_var(c, var)))
    open_shape(c, var, &v);
  const struct flow_var *to = op_var(c, var);
  if (node_attr_int(c->node, "validate_shape", 1) || to->has_shape)
    TRY(check_assign(c, to, value));
  for (int i = 0; i < v.rank && to->has_shape; i++)
    TRY(op_equal_dims(c, v.dims[i], op_dim(c, to->dims[i]), "Assign requires shapes of both tensors to match"));
  struct flow_node *n = op_emit(c, FLOW_ASSIGN, true);
  n->var = var;
  lower_note_change(c->lw, var);
  lower_note_rank(c, var, v.rank);
  vec_push(&n->inputs, value);
  return_reference(c, var);
  return OK;
}

status build_is_initialized(struct op_call *c) {
  uint32_t var;
  if (is_other_handle(c)) {
    op_set_output(c, 0, op_bool(c, false));
    return OK;
  }
  TRY(op_input_var(c, 0, &var));
  struct flow_node *n = op_emit(c, FLOW_VARIABLE, true);
  n->stateful = false;
  n->var = var;
  n->imm = VARIABLE_IS_INITIALIZED;
  op_set_output(c, 0, op_add_output(c, n, DTYPE_BOOL, 0, NULL));
  return OK;
}

status build_variable_shape(struct op_call *c) {
  value_id v;
  if (is_other_handle(c))
    return fail(INVALID_ARGUMENT, "Trying to access resource using the wrong type: input 0 is no variable");
  TRY(op_input(c, 0, &v)); /* a read: its dims are what the variable has then */
  struct flow_value x = *op_value(c, v);
  op_set_output(c, 0, op_dims_value(c, op_output_dtype(c, 0), 1, x.dims, x.rank));
  return OK;
}

static status same_shape(struct op_call *c, int rank, const dim *dims, value_id value) {
  struct flow_value v = *op_value(c, value);
  bool fits = v.rank == rank;
  for (int i = 0; i < rank && fits; i++)
    fits = dim_equal(op_dims(c), dims[i], v.dims[i]) != 0;
  if (!fits)
    return fail(INVALID_ARGUMENT, "Cannot update variable with shape %s using a Tensor with shape %s, shapes must be equal.",
                op_shape_text(c, rank, dims), op_shape_text(c, v.rank, v.dims));
  for (int i = 0; i < rank; i++)
    TRY(op_equal_dims(c, dims[i], v.dims[i], "Cannot update variable: shapes must be equal"));
  return OK;
}

status build_assign_op(struct op_call *c) {
  uint32_t var;
  value_id value;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_input_var(c, 0, &var));
  TRY(op_input(c, 1, &value));
  TRY(op_updated_dims(c, 0, var, &rank, dims));
  TRY(same_shape(c, rank, dims, value));
  struct kb kb;
  kb_begin(&kb, c, op_var(c, var)->dtype);
  uint32_t b = kb_in(&kb, value), o = kb_var(&kb, var, BUFFER_INOUT, rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  struct formula *f = &kb.f;
  struct element old = kb_load(&kb, o, index), x = kb_load(&kb, b, index);
  kb_store(&kb, o, index, OP_ROW(c, combine_row)->how == COMBINE_ADD ? ADD(old, x) : SUB(old, x));
  kb_close(&kb, rank);
  TRY(kb_finish(&kb));
  return_reference(c, var);
  return OK;
}

/* Gives the old value and adds one, unless the limit is reached. */
status build_count_up_to(struct op_call *c) {
  uint32_t var;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_input_var(c, 0, &var));
  TRY(op_updated_dims(c, 0, var, &rank, dims));
  if (rank != 0)
    return fail(INVALID_ARGUMENT, "input is not a scalar: %s", op_shape_text(c, rank, dims));
  int64_t limit = node_attr_int(c->node, "limit", 0);
  struct kb kb;
  kb_begin(&kb, c, op_var(c, var)->dtype);
  uint32_t o = kb_var(&kb, var, BUFFER_INOUT, 0, NULL), out = kb_out(&kb, op_var(c, var)->dtype, 0, NULL);
  struct formula *f = &kb.f;
  struct element old = kb_load(&kb, o, NULL);
  struct element held = real_element(kb_get(&kb, kb_local(&kb, old.re)));
  kb_check(&kb, LT(held, K((double)limit)).re, OUT_OF_RANGE, arena_printf(op_arena(c), "Reached limit of %lld", (long long)limit), NO_EXPR,
           NO_EXPR);
  kb_store(&kb, out, NULL, held);
  kb_store(&kb, o, NULL, ADD(held, K(1)));
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}
