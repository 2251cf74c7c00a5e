/* optimizers.c: optimizer updates. A rule says what happens to one element of the variable and its slots; the same rule makes
 * the dense form (all elements) and the sparse one (the rows that `indices` names, one after another), on references and
 * on handles. Methods and orders of operations as in TensorFlow's training ops. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/ops/arrange.h"
#include "ir/kernel/formula_words.h"

/* ---- what a rule reads ---- */

static bool is_slot(const struct op_call *c, uint32_t i) {
  return c->in[i].var && (c->node->input_dtypes[i] > DTYPE_REF || c->node->input_dtypes[i] == DTYPE_RESOURCE);
}

/* the current value of var, accum, m ... */
static struct element update_slot(struct update *u, const char *name) {
  return kb_load(u->kb, u->var_buffers[op_arg_index(u->c, name)], u->index);
}
static void update_set(struct update *u, const char *name, struct element value) {
  kb_store(u->kb, u->var_buffers[op_arg_index(u->c, name)], u->index, value);
}
/* lr, momentum ... */
static struct element update_scalar(struct update *u, const char *name) {
  uint32_t i = op_arg_index(u->c, name);
  value_id v = u->c->in[i].value;
  struct element e = kb_load(u->kb, kb_in(u->kb, v), NULL);
  return f_cast(u->f, u->f->dtype, e); /* Adagrad's global step is an i64 */
}
/* use_nesterov ... */
static bool update_flag(struct update *u, const char *name) { return node_attr_int(u->c->node, name, 0); }
static bool has_arg(struct update *u, const char *name) { return op_arg_index(u->c, name) != UINT32_MAX; }

/* A value that later reads see although the slot it came from changes: a local. */
static struct element hold(struct update *u, struct element e) {
  struct element r = {kb_get(u->kb, kb_local(u->kb, e.re)), NO_EXPR};
  if (e.im)
    r.im = kb_get(u->kb, kb_local(u->kb, e.im));
  return r;
}
#define SLOT(name) hold(u, update_slot(u, name))
#define SET(name, value) update_set(u, name, value)
#define SCALAR_IN(name) update_scalar(u, name)
#define RULE(name)             \
  void name(struct update *u); \
  void name(struct update *u)
#define BEGIN               \
  struct formula *f = u->f; \
  struct element g = u->grad;

/* ---- the rules ---- */

RULE(update_gradient_descent) {
  BEGIN
  g = has_arg(u, "delta") ? g : u->grad;
  SET("var", SUB(SLOT("var"), MUL(SCALAR_IN("alpha"), g)));
}

/* The proximal step: shrink towards zero by lr*l1, divide by 1 + lr*l2. */
static struct element proximal(struct update *u, struct element x, struct element lr) {
  struct formula *f = u->f;
  struct element l1 = SCALAR_IN("l1"), l2 = SCALAR_IN("l2");
  struct element shrunk = MUL(SIGN(x), MAX(SUB(ABS(x), MUL(lr, l1)), K(0)));
  return DIV(SELECT(GT(l1, K(0)), shrunk, x), ADD(K(1), MUL(lr, l2)));
}
RULE(update_proximal_gradient_descent) {
  BEGIN
  struct element lr = SCALAR_IN("alpha");
  SET("var", proximal(u, SUB(SLOT("var"), MUL(lr, g)), lr));
}
RULE(update_momentum) {
  BEGIN
  struct element lr = SCALAR_IN("lr"), m = SCALAR_IN("momentum");
  struct element accum = hold(u, ADD(MUL(SLOT("accum"), m), g));
  SET("accum", accum);
  struct element step = MUL(lr, accum);
  if (update_flag(u, "use_nesterov"))
    step = ADD(MUL(g, lr), MUL(MUL(accum, m), lr));
  SET("var", SUB(SLOT("var"), step));
}
RULE(update_keras_momentum) {
  BEGIN
  struct element lr = SCALAR_IN("lr"), m = SCALAR_IN("momentum");
  struct element accum = hold(u, SUB(MUL(SLOT("accum"), m), MUL(lr, g)));
  SET("accum", accum);
  SET("var", ADD(SLOT("var"), update_flag(u, "use_nesterov") ? SUB(MUL(accum, m), MUL(lr, g)) : accum));
}
RULE(update_adagrad) {
  BEGIN
  struct element accum = SLOT("accum");
  if (node_attr_int(u->c->node, "update_slots", 1)) {
    accum = hold(u, ADD(accum, SQUARE(g)));
    SET("accum", accum);
  }
  struct element root = SQRT(accum);
  if (has_arg(u, "epsilon"))
    root = ADD(root, SCALAR_IN("epsilon"));
  SET("var", SUB(SLOT("var"), DIV(MUL(g, SCALAR_IN("lr")), root)));
}
RULE(update_proximal_adagrad) {
  BEGIN
  struct element accum = hold(u, ADD(SLOT("accum"), SQUARE(g)));
  SET("accum", accum);
  struct element lr = DIV(SCALAR_IN("lr"), SQRT(accum));
  SET("var", proximal(u, SUB(SLOT("var"), MUL(g, lr)), lr));
}
RULE(update_adagrad_da) {
  BEGIN
  struct element lr = SCALAR_IN("lr"), l1 = SCALAR_IN("l1"), l2 = SCALAR_IN("l2"), step = SCALAR_IN("global_step");
  struct element sum = hold(u, ADD(SLOT("gradient_accumulator"), g));
  struct element squares = hold(u, ADD(SLOT("gradient_squared_accumulator"), SQUARE(g)));
  SET("gradient_accumulator", sum);
  SET("gradient_squared_accumulator", squares);
  struct element shrunk = MUL(SIGN(sum), MAX(SUB(ABS(sum), MUL(l1, step)), K(0)));
  struct element top = SELECT(GT(l1, K(0)), shrunk, sum);
  SET("var", DIV(MUL(NEG(lr), top), ADD(MUL(MUL(l2, step), lr), SQRT(squares))));
}
RULE(update_adadelta) {
  BEGIN
  struct element rho = SCALAR_IN("rho"), epsilon = SCALAR_IN("epsilon"), rest = SUB(K(1), rho);
  struct element accum = hold(u, ADD(MUL(SLOT("accum"), rho), MUL(SQUARE(g), rest)));
  struct element old = SLOT("accum_update");
  struct element update = hold(u, MUL(MUL(SQRT(ADD(old, epsilon)), DIV(K(1), SQRT(ADD(accum, epsilon)))), g));
  SET("accum", accum);
  SET("accum_update", ADD(MUL(old, rho), MUL(SQUARE(update), rest)));
  SET("var", SUB(SLOT("var"), MUL(update, SCALAR_IN("lr"))));
}
static struct element adam_rate(struct update *u) {
  struct formula *f = u->f;
  return DIV(MUL(SCALAR_IN("lr"), SQRT(SUB(K(1), SCALAR_IN("beta2_power")))), SUB(K(1), SCALAR_IN("beta1_power")));
}
RULE(update_adam) {
  BEGIN
  struct element beta1 = SCALAR_IN("beta1"), beta2 = SCALAR_IN("beta2"), m = SLOT("m"), v = SLOT("v");
  m = hold(u, ADD(m, MUL(SUB(g, m), SUB(K(1), beta1))));
  v = hold(u, ADD(v, MUL(SUB(SQUARE(g), v), SUB(K(1), beta2))));
  SET("m", m);
  SET("v", v);
  struct element top = update_flag(u, "use_nesterov") ? ADD(MUL(g, SUB(K(1), beta1)), MUL(beta1, m)) : m;
  SET("var", SUB(SLOT("var"), DIV(MUL(top, adam_rate(u)), ADD(SQRT(v), SCALAR_IN("epsilon")))));
}
RULE(update_adam_amsgrad) {
  BEGIN
  struct element beta1 = SCALAR_IN("beta1"), beta2 = SCALAR_IN("beta2"), m = SLOT("m"), v = SLOT("v");
  m = hold(u, ADD(m, MUL(SUB(g, m), SUB(K(1), beta1))));
  v = hold(u, ADD(v, MUL(SUB(SQUARE(g), v), SUB(K(1), beta2))));
  struct element highest = hold(u, MAX(SLOT("vhat"), v));
  SET("m", m);
  SET("v", v);
  SET("vhat", highest);
  SET("var", SUB(SLOT("var"), DIV(MUL(m, adam_rate(u)), ADD(SQRT(highest), SCALAR_IN("epsilon")))));
}
RULE(update_ada_max) {
  BEGIN
  struct element beta1 = SCALAR_IN("beta1"), beta2 = SCALAR_IN("beta2"), m = SLOT("m");
  m = hold(u, ADD(m, MUL(SUB(g, m), SUB(K(1), beta1))));
  struct element v = hold(u, MAX(MUL(beta2, SLOT("v")), ABS(g)));
  SET("m", m);
  SET("v", v);
  struct element rate = DIV(SCALAR_IN("lr"), SUB(K(1), SCALAR_IN("beta1_power")));
  SET("var", SUB(SLOT("var"), MUL(rate, DIV(m, ADD(v, SCALAR_IN("epsilon"))))));
}
RULE(update_rms_prop) {
  BEGIN
  struct element rest = SUB(K(1), SCALAR_IN("rho")), ms = SLOT("ms");
  ms = hold(u, ADD(ms, MUL(SUB(SQUARE(g), ms), rest)));
  SET("ms", ms);
  struct element step = DIV(MUL(g, SCALAR_IN("lr")), SQRT(ADD(ms, SCALAR_IN("epsilon"))));
  struct element mom = hold(u, ADD(MUL(SLOT("mom"), SCALAR_IN("momentum")), step));
  SET("mom", mom);
  SET("var", SUB(SLOT("var"), mom));
}
RULE(update_centered_rms_prop) {
  BEGIN
  struct element rest = SUB(K(1), SCALAR_IN("rho")), ms = SLOT("ms"), mg = SLOT("mg");
  ms = hold(u, ADD(ms, MUL(SUB(SQUARE(g), ms), rest)));
  mg = hold(u, ADD(mg, MUL(SUB(g, mg), rest)));
  SET("ms", ms);
  SET("mg", mg);
  struct element spread = ADD(SUB(ms, SQUARE(mg)), SCALAR_IN("epsilon"));
  struct element mom = hold(u, ADD(MUL(SLOT("mom"), SCALAR_IN("momentum")), DIV(MUL(g, SCALAR_IN("lr")), SQRT(spread))));
  SET("mom", mom);
  SET("var", SUB(SLOT("var"), mom));
}
RULE(update_ftrl) {
  BEGIN
  struct element lr = SCALAR_IN("lr"), l1 = SCALAR_IN("l1"), l2 = SCALAR_IN("l2"), power = SCALAR_IN("lr_power");
  struct element var = SLOT("var"), accum = SLOT("accum"), linear = SLOT("linear");
  struct element shrunk = g;
  if (has_arg(u, "l2_shrinkage"))
    shrunk = ADD(g, MUL(MUL(K(2), SCALAR_IN("l2_shrinkage")), var));
  bool scaled = update_flag(u, "multiply_linear_by_lr");
  struct element next = hold(u, ADD(accum, SQUARE(g)));
  struct element root = POW(next, NEG(power)), old_root = POW(accum, NEG(power));
  struct element grow = SUB(root, old_root);
  struct element l;
  if (scaled)
    l = hold(u, SUB(ADD(linear, MUL(shrunk, lr)), MUL(grow, var)));
  else
    l = hold(u, SUB(ADD(linear, shrunk), MUL(DIV(grow, lr), var)));
  struct element bound = scaled ? MUL(l1, lr) : l1;
  struct element bottom = scaled ? ADD(root, MUL(K(2), MUL(l2, lr))) : ADD(DIV(root, lr), MUL(K(2), l2));
  struct element top = SUB(MUL(bound, SIGN(l)), l);
  SET("linear", l);
  SET("var", SELECT(GT(ABS(l), bound), DIV(top, bottom), K(0)));
  SET("accum", next);
}
RULE(update_add_sign) {
  BEGIN
  struct element beta = SCALAR_IN("beta"), m = SLOT("m");
  m = hold(u, ADD(MUL(beta, m), MUL(SUB(K(1), beta), g)));
  SET("m", m);
  struct element agree = MUL(SIGN(g), SIGN(m));
  struct element scale = ADD(SCALAR_IN("alpha"), MUL(SCALAR_IN("sign_decay"), agree));
  SET("var", SUB(SLOT("var"), MUL(SCALAR_IN("lr"), MUL(scale, g))));
}
RULE(update_power_sign) {
  BEGIN
  struct element beta = SCALAR_IN("beta"), m = SLOT("m");
  m = hold(u, ADD(MUL(beta, m), MUL(SUB(K(1), beta), g)));
  SET("m", m);
  struct element agree = MUL(SIGN(g), SIGN(m));
  struct element scale = EXP(MUL(MUL(SCALAR_IN("logbase"), SCALAR_IN("sign_decay")), agree));
  SET("var", SUB(SLOT("var"), MUL(SCALAR_IN("lr"), MUL(scale, g))));
}

/* ---- the kernels around a rule ---- */

/* Reads all inputs; binds the variables; their shapes must be equal. */
static status bind_inputs(struct op_call *c, struct kb *kb, struct update *u, int *rank, dim *dims) {
  for (uint32_t i = 0; i < c->in_count; i++) {
    uint32_t var;
    value_id v;
    if (!is_slot(c, i)) {
      TRY(op_input(c, i, &v));
      c->in[i] = (struct bound){.value = v};
      continue;
    }
    TRY(op_input_var(c, i, &var));
    int r;
    dim d[LIMIT_RANK];
    TRY(op_updated_dims(c, i, var, &r, d));
    if (u->var_count == 0) {
      *rank = r;
      memcpy(dims, d, sizeof d);
    }
    bool same = r == *rank;
    for (int j = 0; j < r && same; j++)
      same = dim_equal(op_dims(c), d[j], dims[j]) == 1;
    if (!same)
      return fail(INVALID_ARGUMENT, "var and %s do not have the same shape%s %s", c->node->def->inputs[i].name,
                  op_shape_text(c, *rank, dims), op_shape_text(c, r, d));
    u->var_buffers[i] = kb_var(kb, var, BUFFER_INOUT, r, d);
    u->var_count++;
  }
  return OK;
}

static status check_grad(struct op_call *c, value_id grad, int rank, const dim *dims, int from) {
  struct flow_value g = *op_value(c, grad);
  bool fits = g.rank == rank;
  for (int i = from; i < rank && fits; i++)
    fits = dim_equal(op_dims(c), g.dims[i], dims[i]) != 0;
  if (!fits)
    return fail(INVALID_ARGUMENT, "var and grad do not have the same shape%s %s", op_shape_text(c, rank, dims),
                op_shape_text(c, g.rank, g.dims));
  for (int i = from; i < rank; i++)
    TRY(op_equal_dims(c, g.dims[i], dims[i], "var and grad do not have the same shape"));
  return OK;
}

static status check_scalars(struct op_call *c, uint32_t grad, uint32_t indices) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (!is_slot(c, i) && i != grad && i != indices && op_value(c, c->in[i].value)->rank != 0)
      return fail(INVALID_ARGUMENT, "%s is not a scalar: %s", c->node->def->inputs[i].name,
                  op_shape_text(c, op_value(c, c->in[i].value)->rank, op_value(c, c->in[i].value)->dims));
  return OK;
}

/* Opens the loops; the index of the element in index[]; for the sparse form the gradient's row is row[0]. */
static void open_loops(struct kb *kb, struct update *u, value_id indices, int rank, const dim *dims, expr_id *index, expr_id *row) {
  if (indices == NO_VALUE) {
    kb_loops(kb, LOOP_PAR, rank, dims, index);
    memcpy(row, index, sizeof *index * (size_t)rank);
    return;
  }
  uint32_t b = kb_in(kb, indices);
  row[0] = kb_for_dim(kb, LOOP_SEQ, op_value(u->c, indices)->dims[0]);
  index[0] = kb_index(kb, kb_load(kb, b, row));
  expr_id rows = kb_dim(kb, dims[0]);
  expr_id inside = kb_and(kb, expr_binary(kb->k, SCALAR_LE, kb_int(kb, 0), index[0]), kb_lt(kb, index[0], rows));
  kb_check(kb, inside, INVALID_ARGUMENT, "Index %d at offset %d in indices is out of range", index[0], row[0]);
  for (int i = 1; i < rank; i++)
    row[i] = index[i] = kb_for_dim(kb, LOOP_PAR, dims[i]);
}

status build_update(struct op_call *c) {
  void (*rule)(struct update *) = (void (*)(struct update *))(uintptr_t)c->row->data;
  bool sparse = op_takes(c, "indices");
  uint32_t grad = op_arg_index(c, "grad"), indices = op_arg_index(c, "indices");
  if (grad == UINT32_MAX)
    grad = op_arg_index(c, "delta");
  struct update u = {.c = c, .sparse = sparse};
  struct kb kb;
  int rank = 0;
  dim dims[LIMIT_RANK];
  uint32_t var;
  TRY(op_input_var(c, 0, &var));
  kb_begin(&kb, c, op_var(c, var)->dtype);
  TRY(bind_inputs(c, &kb, &u, &rank, dims));
  TRY(check_grad(c, c->in[grad].value, rank, dims, sparse ? 1 : 0));
  TRY(check_scalars(c, grad, indices));
  value_id index_value = sparse ? c->in[indices].value : NO_VALUE;
  if (sparse) {
    if (op_value(c, index_value)->rank != 1)
      return fail(INVALID_ARGUMENT, "indices must be one-dimensional");
    TRY(op_equal_dims(c, op_value(c, index_value)->dims[0], op_value(c, c->in[grad].value)->dims[0],
                      "grad must be the same size as indices in the first dimension"));
  }
  expr_id index[LIMIT_RANK], row[LIMIT_RANK];
  uint32_t g = kb_in(&kb, c->in[grad].value);
  open_loops(&kb, &u, index_value, rank, dims, index, row);
  u.kb = &kb;
  u.f = &kb.f;
  u.index = index;
  u.grad = kb_load(&kb, g, row);
  rule(&u);
  kb_close(&kb, rank);
  TRY(kb_finish(&kb));
  if (c->out_count)
    c->out[0] = (struct bound){.var = var + 1, .after = c->effect};
  return OK;
}
