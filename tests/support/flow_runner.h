/* flow_runner.h: for tests: runs a flow without branches and host calls, each kernel by the evaluator and by compiled code on
 * the same inputs. What goes on to the next node is the evaluator's, so that a difference is seen where it is made. */
#ifndef TFC_TESTS_FLOW_RUNNER_H
#define TFC_TESTS_FLOW_RUNNER_H

#include "ir/flow/flow.h"
#include "tests/support/kernel_runner.h"

struct flow_tensor {
  enum dtype dtype;
  int rank;
  int64_t dims[LIMIT_RANK];
  void *data; /* owned by whoever holds the tensor */
};
static inline int64_t flow_tensor_count(const struct flow_tensor *t) {
  int64_t n = 1;
  for (int d = 0; d < t->rank; d++)
    n *= t->dims[d];
  return n;
}
static inline struct flow_tensor flow_tensor_copy(const struct flow_tensor *t) {
  struct flow_tensor copy = *t;
  size_t bytes = (size_t)flow_tensor_count(t) * dtype_size(t->dtype);
  copy.data = aligned_block(bytes);
  memcpy(copy.data, t->data, bytes);
  return copy;
}

enum flow_outcome {
  FLOW_RAN,
  FLOW_REPORTED, /* a check failed, in both: `code` */
  FLOW_MISFIT,   /* the feeds are not of the sizes that the flow was lowered for */
  FLOW_FOREIGN,  /* it has a node that is neither kernel nor memory: nothing to compare */
  FLOW_DIFFERS,  /* `what` says where evaluator and code disagree */
};
struct flow_runner {
  const struct flow *flow;
  const struct kernel_code *(*code_of)(void *self, const struct kernel *k);
  void *self;
  struct flow_tensor *vars;        /* the build's, with memory; kernels change it */
  const struct flow_tensor *feeds; /* by number */
  struct flow_tensor *fetches;     /* by number; filled, owned by the caller */
  struct flow_tensor *values;
  int64_t *symbols;
  bool *bound;
  status code;
  char what[400];
};

/* Whether compiled code must give the evaluator's bits: no function of libm, no sum that may be regrouped or rounds once for a product and
 * its addition to a local. */
static inline bool stmts_regroup(const struct kernel *k, const struct stmt *s) {
  for (; s; s = s->next) {
    bool sums = s->kind == STMT_SET && dtype_is_float(k->locals.items[s->local].dtype) && expr_get(k, s->value)->op == SCALAR_ADD;
    if (sums || (s->kind == STMT_FOR && s->loop == LOOP_RED) || stmts_regroup(k, s->body) || stmts_regroup(k, s->otherwise))
      return true;
  }
  return false;
}
static inline bool kernel_is_exact(const struct kernel *k) {
  for (expr_id e = 1; e < k->exprs.count; e++)
    if (k->exprs.items[e].op >= SCALAR_EXP && k->exprs.items[e].op <= SCALAR_ATAN2)
      return false;
  return !stmts_regroup(k, k->body);
}

/* 2^-10 steps of half; libm and our polynomials differ in the last places. */
static inline double kernel_tolerance(const struct kernel *k) {
  double worst = 1e-12;
  for (uint32_t b = 0; b < k->buffers.count; b++) {
    enum dtype d = dtype_real(k->buffers.items[b].dtype);
    double t = d == DTYPE_BFLOAT16 ? 2e-2 : d == DTYPE_HALF ? 4e-3 : d == DTYPE_FLOAT ? 2e-5 : 1e-12;
    worst = t > worst ? t : worst;
  }
  return worst;
}

/* ---- sizes ---- */

static inline bool flow_dim_value(struct flow_runner *r, dim d, int64_t *out) {
  uint32_t n = dims_symbol_count(r->flow->dims);
  bool *seen = calloc(n + 1, 1), known = true;
  d = dim_resolve(r->flow->dims, d);
  dim_symbols(r->flow->dims, d, seen);
  for (uint32_t s = 0; s < n; s++)
    known = known && (!seen[s] || r->bound[s]);
  free(seen);
  if (known)
    *out = dim_eval(r->flow->dims, d, r->symbols);
  return known;
}

/* A size that is there: a bare symbol takes it, anything else must agree. */
static inline bool flow_bind(struct flow_runner *r, dim d, int64_t value) {
  uint32_t symbol;
  int64_t known;
  d = dim_resolve(r->flow->dims, d);
  if (dim_is_symbol(r->flow->dims, d, &symbol) && !r->bound[symbol]) {
    r->bound[symbol] = true;
    r->symbols[symbol] = value;
    return true;
  }
  return !flow_dim_value(r, d, &known) || known == value;
}

static inline enum flow_outcome flow_stop(struct flow_runner *r, enum flow_outcome outcome, const struct flow_node *n, const char *text) {
  snprintf(r->what, sizeof r->what, "%s (%s): %s", n->name ? n->name : "", n->tf_op ? n->tf_op : "", text);
  return outcome;
}

/* The memory of an output, when its sizes are known. */
static inline bool flow_output(struct flow_runner *r, value_id v) {
  const struct flow_value *x = &r->flow->values.items[v];
  struct flow_tensor t = {.dtype = x->dtype, .rank = x->rank};
  for (int d = 0; d < x->rank; d++)
    if (!flow_dim_value(r, x->dims[d], &t.dims[d]) || t.dims[d] < 0)
      return false;
  t.data = aligned_block((size_t)flow_tensor_count(&t) * dtype_size(t.dtype));
  free(r->values[v].data);
  r->values[v] = t;
  return true;
}

static inline enum flow_outcome flow_take(struct flow_runner *r, const struct flow_node *n, value_id v, const struct flow_tensor *t) {
  const struct flow_value *x = &r->flow->values.items[v];
  if (x->rank != t->rank || x->dtype != t->dtype)
    return flow_stop(r, FLOW_MISFIT, n, "another rank or dtype");
  for (int d = 0; d < t->rank; d++)
    if (!flow_bind(r, x->dims[d], t->dims[d])) {
      char text[200];
      snprintf(text, sizeof text, "dimension %d is %lld, not %s", d, (long long)t->dims[d],
               dim_text(r->flow->dims, dim_resolve(r->flow->dims, x->dims[d])));
      return flow_stop(r, FLOW_MISFIT, n, text);
    }
  free(r->values[v].data);
  r->values[v] = flow_tensor_copy(t);
  return FLOW_RAN;
}

/* ---- nodes ---- */

#define FLOW_DENORMAL 1.1754944e-38 /* below this floats are as good as zero: some instructions flush them, some hand them on */

struct flow_call {
  void *theirs[64], *mine[64];
  int64_t sizes[64];
};

static inline struct flow_tensor *flow_argument(struct flow_runner *r, const struct flow_node *n, uint32_t i) {
  return n->args[i].var ? &r->vars[n->args[i].var - 1] : &r->values[n->args[i].value];
}

static inline enum flow_outcome flow_call_prepare(struct flow_runner *r, const struct flow_node *n, struct flow_call *call) {
  const struct kernel *k = n->kernel;
  if (k->buffers.count > 64 || k->size_count > 64)
    return flow_stop(r, FLOW_DIFFERS, n, "more buffers or sizes than the runner holds");
  for (uint32_t i = 0; i < k->size_count; i++)
    if (!flow_dim_value(r, n->sizes[i], &call->sizes[i]))
      return flow_stop(r, FLOW_DIFFERS, n, "a size of the kernel is not known when it runs");
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    if (k->buffers.items[i].mode == BUFFER_SCRATCH)
      continue;
    if (k->buffers.items[i].mode == BUFFER_OUT && !n->args[i].var && !flow_output(r, n->args[i].value))
      return flow_stop(r, FLOW_DIFFERS, n, "a size of an output is not known when it is made, or negative");
    struct flow_tensor *t = flow_argument(r, n, i);
    if (!t->data || flow_tensor_count(t) != buffer_count(k, i, call->sizes))
      return flow_stop(r, FLOW_DIFFERS, n, "a buffer's sizes are not its value's");
    call->theirs[i] = t->data;
    if (k->buffers.items[i].mode == BUFFER_IN)
      call->mine[i] = t->data;
    else
      call->mine[i] = flow_tensor_copy(t).data;
  }
  return FLOW_RAN;
}

static inline enum flow_outcome flow_call_compare(struct flow_runner *r, const struct flow_node *n, const struct flow_call *call) {
  const struct kernel *k = n->kernel;
  double t = kernel_is_exact(k) ? 0 : kernel_tolerance(k), least = t > FLOW_DENORMAL ? t : FLOW_DENORMAL;
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    enum dtype dtype = k->buffers.items[i].dtype;
    if (k->buffers.items[i].mode == BUFFER_IN || k->buffers.items[i].mode == BUFFER_SCRATCH)
      continue;
    int64_t at = first_difference(dtype, call->mine[i], call->theirs[i], buffer_count(k, i, call->sizes), t, least);
    if (at >= 0) {
      bool is_float = dtype_is_float(dtype_real(dtype));
      char text[200];
      snprintf(text, sizeof text, "kernel %s, buffer %s (%s), element %lld: %.17g, the evaluator %.17g", k->name, k->buffers.items[i].name,
               dtype_name(dtype), (long long)at, is_float ? element_value(dtype, call->mine[i], at) : NAN,
               is_float ? element_value(dtype, call->theirs[i], at) : NAN);
      return flow_stop(r, FLOW_DIFFERS, n, text);
    }
  }
  return FLOW_RAN;
}

/* As the runtime's threads run it: denormals are zero (bits DAZ and FTZ of the control register). */
static inline struct kernel_fault flow_run_compiled(const struct kernel_code *code, void *const *buffers, const int64_t *sizes) {
  unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040);
  struct kernel_fault fault = run_compiled(code, buffers, sizes);
  __builtin_ia32_ldmxcsr(before);
  return fault;
}

static inline enum flow_outcome flow_kernel(struct flow_runner *r, const struct flow_node *n) {
  const struct kernel *k = n->kernel;
  struct flow_call call = {0};
  enum flow_outcome outcome = flow_call_prepare(r, n, &call);
  if (outcome == FLOW_RAN) {
    struct kernel_fault fault = flow_run_compiled(r->code_of(r->self, k), call.mine, call.sizes);
    r->code = kernel_eval(k, call.theirs, call.sizes);
    if ((status)fault.code != r->code) {
      char text[200];
      snprintf(text, sizeof text, "kernel %s reports %s, the evaluator %s", k->name, status_name((status)fault.code), status_name(r->code));
      outcome = flow_stop(r, FLOW_DIFFERS, n, text);
    } else {
      outcome = r->code == OK ? flow_call_compare(r, n, &call) : flow_stop(r, FLOW_REPORTED, n, status_text());
    }
  }
  for (uint32_t i = 0; i < k->buffers.count; i++)
    if (call.mine[i] != call.theirs[i])
      free(call.mine[i]);
  return outcome;
}

static inline int64_t flow_integer(const struct flow_tensor *t, int64_t i) {
  int64_t bits = 0;
  memcpy(&bits, (const char *)t->data + (size_t)i * dtype_size(t->dtype), dtype_size(t->dtype));
  return t->dtype == DTYPE_INT32 ? (int32_t)bits : bits;
}

static inline enum flow_outcome flow_bind_node(struct flow_runner *r, const struct flow_node *n) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < n->inputs.count; i++)
    for (int64_t j = 0; j < flow_tensor_count(&r->values[n->inputs.items[i]]); j++)
      if (!flow_bind(r, dim_of_symbol(r->flow->dims, n->binds[at++]), flow_integer(&r->values[n->inputs.items[i]], j))) {
        r->code = INVALID_ARGUMENT;
        return flow_stop(r, FLOW_REPORTED, n, "a size that was assumed is another");
      }
  return FLOW_RAN;
}

/* ---- loops ---- */

static inline enum flow_outcome flow_nodes_run(struct flow_runner *r);

static inline size_t flow_row_bytes(const struct flow_tensor *array) {
  size_t bytes = dtype_size(array->dtype);
  for (int d = 1; d < array->rank; d++)
    bytes *= (size_t)array->dims[d];
  return bytes;
}

/* A region once, from `params`; its results are the caller's. */
static inline enum flow_outcome flow_region_run(struct flow_runner *outer, const struct flow *region, const struct flow_node *n,
                                                const struct flow_tensor *params, struct flow_tensor *results) {
  struct flow_runner r = *outer;
  uint32_t symbols = dims_symbol_count(region->dims);
  enum flow_outcome outcome = FLOW_RAN;
  r.flow = region;
  r.values = calloc(region->values.count + 1, sizeof *r.values);
  r.symbols = memcpy(calloc(symbols + 1, sizeof *r.symbols), outer->symbols, symbols * sizeof *r.symbols);
  r.bound = memcpy(calloc(symbols + 1, 1), outer->bound, symbols);
  for (uint32_t i = 0; i < region->params.count && outcome == FLOW_RAN; i++)
    outcome = flow_take(&r, n, region->params.items[i], &params[i]);
  if (outcome == FLOW_RAN)
    outcome = flow_nodes_run(&r);
  for (uint32_t i = 0; i < region->results.count && outcome == FLOW_RAN; i++)
    results[i] = flow_tensor_copy(&r.values[region->results.items[i]]);
  for (uint32_t v = 0; v < region->values.count; v++)
    free(r.values[v].data);
  free(r.values);
  free(r.symbols);
  free(r.bound);
  outer->code = r.code;
  memcpy(outer->what, r.what, sizeof outer->what);
  return outcome;
}

struct flow_loop {
  const struct flow_node *node;
  uint32_t vars;
  struct flow_tensor *state; /* the variables, then rows that this turn takes */
  struct flow_tensor *next;  /* what it gives: variables, then rows */
};

/* The row of an array that turn `turn` has. */
static inline void *flow_row(const struct flow_loop *l, const struct flow_tensor *array, int64_t turn) {
  int64_t row = l->node->from_last ? array->dims[0] - 1 - turn : turn;
  return row < 0 || row >= array->dims[0] ? NULL : (char *)array->data + (size_t)row * flow_row_bytes(array);
}

static inline enum flow_outcome flow_turn(struct flow_runner *r, struct flow_loop *l, int64_t turn) {
  const struct flow_node *n = l->node;
  for (uint32_t i = l->vars; i < n->inputs.count; i++) {
    const struct flow_tensor *array = &r->values[n->inputs.items[i]];
    struct flow_tensor row = {.dtype = array->dtype, .rank = array->rank - 1, .data = flow_row(l, array, turn)};
    if (!row.data)
      return flow_stop(r, FLOW_DIFFERS, n, "a loop takes more rows than there are");
    memcpy(row.dims, array->dims + 1, (size_t)row.rank * sizeof *row.dims);
    free(l->state[i].data);
    l->state[i] = flow_tensor_copy(&row);
  }
  enum flow_outcome outcome = flow_region_run(r, n->branches[1], n, l->state, l->next);
  for (uint32_t i = l->vars; i < n->outputs.count && outcome == FLOW_RAN; i++) {
    const struct flow_tensor *array = &r->values[n->outputs.items[i]];
    void *row = flow_row(l, array, turn);
    if (!row)
      outcome = flow_stop(r, FLOW_DIFFERS, n, "a loop makes more rows than there is room for");
    else
      memcpy(row, l->next[i].data, flow_row_bytes(array));
  }
  for (uint32_t i = 0; i < n->outputs.count; i++) {
    struct flow_tensor *to = i < l->vars && outcome == FLOW_RAN ? &l->state[i] : NULL;
    free(to ? to->data : l->next[i].data);
    if (to)
      *to = l->next[i];
    l->next[i].data = NULL;
  }
  return outcome;
}

static inline enum flow_outcome flow_turns(struct flow_runner *r, struct flow_loop *l) {
  const struct flow_node *n = l->node;
  enum flow_outcome outcome = FLOW_RAN;
  for (uint32_t i = 0; i < l->vars; i++)
    l->state[i] = flow_tensor_copy(&r->values[n->inputs.items[i]]);
  for (uint32_t i = l->vars; i < n->outputs.count; i++)
    if (!flow_output(r, n->outputs.items[i]))
      return flow_stop(r, FLOW_FOREIGN, n, "a loop that nobody knows the turns of");
  for (int64_t turn = 0; outcome == FLOW_RAN; turn++) {
    struct flow_tensor more = {0};
    outcome = flow_region_run(r, n->branches[0], n, l->state, &more);
    bool goes_on = outcome == FLOW_RAN && *(const bool *)more.data;
    free(more.data);
    if (!goes_on)
      break;
    outcome = flow_turn(r, l, turn);
  }
  for (uint32_t i = 0; i < l->vars && outcome == FLOW_RAN; i++)
    outcome = flow_take(r, n, n->outputs.items[i], &l->state[i]);
  return outcome;
}

static inline enum flow_outcome flow_while(struct flow_runner *r, const struct flow_node *n) {
  struct flow_loop l = {.node = n, .vars = n->inputs.count - n->rows_in};
  l.state = calloc(n->inputs.count + 1, sizeof *l.state);
  l.next = calloc(n->outputs.count + 1, sizeof *l.next);
  enum flow_outcome outcome = flow_turns(r, &l);
  for (uint32_t i = 0; i < n->inputs.count; i++)
    free(l.state[i].data);
  free(l.state);
  free(l.next);
  return outcome;
}

/* ---- all nodes ---- */

static inline enum flow_outcome flow_node_run(struct flow_runner *r, const struct flow_node *n) {
  value_id in = n->inputs.count ? n->inputs.items[0] : NO_VALUE, out = n->outputs.count ? n->outputs.items[0] : NO_VALUE;
  switch (n->op) {
  case FLOW_FEED: return flow_take(r, n, out, &r->feeds[n->imm]);
  case FLOW_FETCH: r->fetches[n->imm] = flow_tensor_copy(&r->values[in]); return FLOW_RAN;
  case FLOW_KERNEL: return flow_kernel(r, n);
  case FLOW_READ: return flow_take(r, n, out, &r->vars[n->var]);
  case FLOW_BIND: return flow_bind_node(r, n);
  case FLOW_WHILE: return flow_while(r, n);
  case FLOW_NOOP: return FLOW_RAN;
  case FLOW_ASSIGN:
    free(r->vars[n->var].data);
    r->vars[n->var] = flow_tensor_copy(&r->values[in]);
    return FLOW_RAN;
  case FLOW_CONST:
  case FLOW_ALIAS:
  case FLOW_VARIABLE: {
    if (!flow_output(r, out))
      return flow_stop(r, FLOW_DIFFERS, n, "a size of an output is not known when it is made, or negative");
    struct flow_tensor *t = &r->values[out];
    size_t bytes = (size_t)flow_tensor_count(t) * dtype_size(t->dtype);
    if (n->op == FLOW_VARIABLE)
      *(bool *)t->data = r->vars[n->var].data != NULL;
    else if (bytes)
      memcpy(t->data, n->op == FLOW_CONST ? r->flow->values.items[out].data : r->values[in].data, bytes);
    return FLOW_RAN;
  }
  default: return flow_stop(r, FLOW_FOREIGN, n, "a node that only the runtime runs");
  }
}

/* Whether all sizes of the node are known: those that a later node binds may be used by one before it. */
static inline bool flow_is_ready(struct flow_runner *r, const struct flow_node *n) {
  int64_t value;
  for (uint32_t i = 0; n->op == FLOW_KERNEL && i < n->kernel->size_count; i++)
    if (!flow_dim_value(r, n->sizes[i], &value))
      return false;
  for (uint32_t i = 0; i < (n->op == FLOW_KERNEL ? n->kernel->buffers.count : 0); i++)
    if (n->kernel->buffers.items[i].mode == BUFFER_IN && !n->args[i].var && !r->values[n->args[i].value].data)
      return false;
  for (uint32_t i = 0; i < n->inputs.count; i++)
    if (!r->values[n->inputs.items[i]].data)
      return false;
  return true;
}

/* Feeds first: what they say of sizes is said before anything uses it; twice, as the second round checks what the first one took. Then the
 * others in order; what waits for a size runs in a later round. */
static inline enum flow_outcome flow_nodes_run(struct flow_runner *r) {
  enum flow_outcome outcome = FLOW_RAN;
  uint32_t count = r->flow->nodes.count, left = 1;
  bool *done = calloc(count + 1, 1);
  for (int round = 0; outcome == FLOW_RAN && left; round++) {
    uint32_t ran = 0;
    left = 0;
    for (flow_id id = 1; outcome == FLOW_RAN && id < count; id++) {
      const struct flow_node *n = r->flow->nodes.items[id];
      if (!n || done[id] || (n->op != FLOW_FEED && (round < 2 || !flow_is_ready(r, n)))) {
        left += n && !done[id];
        continue;
      }
      outcome = flow_node_run(r, n);
      done[id] = n->op != FLOW_FEED || round > 0;
      ran++;
    }
    if (round > 2 && left && !ran)
      outcome = flow_stop(r, FLOW_DIFFERS, r->flow->nodes.items[1], "sizes that are never bound");
  }
  free(done);
  return outcome;
}

static inline enum flow_outcome flow_run(struct flow_runner *r) {
  uint32_t symbols = dims_symbol_count(r->flow->dims);
  r->values = calloc(r->flow->values.count + 1, sizeof *r->values);
  r->symbols = calloc(symbols + 1, sizeof *r->symbols);
  r->bound = calloc(symbols + 1, 1);
  enum flow_outcome outcome = flow_nodes_run(r);
  for (uint32_t v = 0; v < r->flow->values.count; v++)
    free(r->values[v].data);
  free(r->values);
  free(r->symbols);
  free(r->bound);
  return outcome;
}

#endif
