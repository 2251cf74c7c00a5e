/* random_source.c: see random_source.h. */
#include "ir/ops/random/random_source.h"

#include <string.h>

#include "ir/ops/arrange.h"

static expr_id u64_of(struct kb *kb, expr_id e) { return expr_cast(kb->k, DTYPE_UINT64, e); }
static expr_id u64_const(struct kb *kb, int64_t v) { return expr_int(kb->k, DTYPE_UINT64, v); }

struct random_source random_stateful(struct op_call *c) {
  struct flow_var var = {.name = op_state_name(c),
                         .container = "tfc-random",
                         .dtype = DTYPE_UINT64,
                         .has_shape = true,
                         .rank = 1,
                         .dims = {1},
                         .task = c->node->task,
                         .node = c->node->name,
                         .zero_initial = true};
  struct random_source s = {.keeper = RANDOM_STATEFUL, .var = op_find_var(c, &var)};
  s.seed = node_attr_int(c->node, "seed", 0);
  s.seed2 = node_attr_int(c->node, "seed2", 0);
  if (s.seed == 0 && s.seed2 == 0)
    s.seed = (int64_t)hash_bytes(op_state_name(c), strlen(op_state_name(c)), 0);
  return s;
}

static int state_size(const struct random_source *s) { return s->keeper == RANDOM_GENERATOR ? 3 + s->names_algorithm : 1; }

status random_generator(struct op_call *c, bool names_algorithm, struct random_source *out) {
  *out = (struct random_source){.keeper = RANDOM_GENERATOR, .names_algorithm = names_algorithm};
  TRY(op_input_var(c, 0, &out->var));
  const struct flow_var *var = op_var(c, out->var);
  if (var->dtype != DTYPE_INT64 || (var->rank >= 0 && (var->rank != 1 || (var->dims[0] >= 0 && var->dims[0] < state_size(out)))))
    return fail(INVALID_ARGUMENT, "the generator's state '%s' must be at least %d int64", var->name, state_size(out));
  return OK;
}

status random_check_algorithm(struct op_call *c, uint32_t input) {
  value_id v;
  int64_t algorithm;
  TRY(op_input(c, input, &v));
  TRY(op_const_int(c, v, "the random number algorithm", &algorithm));
  if (algorithm == 1 || algorithm == 3)
    return OK;
  bool generator = op_takes(c, "resource");
  return fail(algorithm == 2 && generator ? UNIMPLEMENTED : INVALID_ARGUMENT, "Unsupported algorithm id: %lld%s", (long long)algorithm,
              algorithm == 2 ? " (ThreeFry is not there on CPUs)" : "");
}

status random_given(struct op_call *c, uint32_t first, struct random_source *out) {
  *out = (struct random_source){.keeper = RANDOM_STATELESS};
  TRY(op_input(c, first, &out->key));
  TRY(op_input(c, first + 1, &out->counter));
  TRY(random_check_algorithm(c, first + 2));
  struct flow_value key = *op_value(c, out->key), counter = *op_value(c, out->counter);
  if (key.rank != 1 || counter.rank != 1)
    return fail(INVALID_ARGUMENT, "key and counter must have shapes [1] and [2], not %s and %s", op_shape_text(c, key.rank, key.dims),
                op_shape_text(c, counter.rank, counter.dims));
  TRY(op_equal_dims(c, key.dims[0], op_dim(c, 1), "key must have shape [1]"));
  return op_equal_dims(c, counter.dims[0], op_dim(c, 2), "counter must have shape [2]");
}

/* One block under a fixed key gives the key and the counter's upper half. */
status random_scramble(struct op_call *c, value_id seed, value_id *key, value_id *counter) {
  struct flow_value v = *op_value(c, seed);
  if (v.rank != 1)
    return fail(INVALID_ARGUMENT, "seed must have shape [2], not %s", op_shape_text(c, v.rank, v.dims));
  TRY(op_equal_dims(c, v.dims[0], op_dim(c, 2), "seed must have shape [2]"));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_UINT64);
  uint32_t a = kb_in(&kb, seed);
  dim one = op_dim(c, 1), two = op_dim(c, 2);
  uint32_t k = kb_out(&kb, DTYPE_UINT64, 1, &one), n = kb_out(&kb, DTYPE_UINT64, 1, &two);
  expr_id first = kb_int(&kb, 0), second = kb_int(&kb, 1), words[4];
  struct philox p = {u64_const(&kb, INT64_C(0x02461e293ec8f720)), u64_of(&kb, kb_load(&kb, a, &first).re),
                     u64_of(&kb, kb_load(&kb, a, &second).re)};
  philox_block(&kb, &p, u64_const(&kb, 0), words);
  kb_store(&kb, k, &first, real_element(philox_join(&kb, words[0], words[1])));
  kb_store(&kb, n, &first, real_element(u64_const(&kb, 0)));
  kb_store(&kb, n, &second, real_element(philox_join(&kb, words[2], words[3])));
  *key = kb_value(&kb, k);
  *counter = kb_value(&kb, n);
  return kb_finish(&kb);
}

struct random_state random_bind(struct kb *kb, const struct random_source *s) {
  struct random_state state = {0, 0, 0};
  dim count = op_dim(kb->c, state_size(s));
  if (s->keeper != RANDOM_STATELESS) {
    state.var = kb_var(kb, s->var, BUFFER_INOUT, 1, &count);
  } else {
    state.key = kb_in(kb, s->key);
    state.counter = kb_in(kb, s->counter);
  }
  return state;
}

struct philox random_load(struct kb *kb, const struct random_source *s, const struct random_state *state) {
  int at = s->names_algorithm;
  expr_id first = kb_int(kb, at), second = kb_int(kb, at + 1), third = kb_int(kb, at + 2);
  if (s->keeper == RANDOM_GENERATOR)
    return (struct philox){u64_of(kb, kb_load(kb, state->var, &third).re), u64_of(kb, kb_load(kb, state->var, &first).re),
                           u64_of(kb, kb_load(kb, state->var, &second).re)};
  if (s->keeper == RANDOM_STATEFUL)
    return (struct philox){u64_const(kb, s->seed), kb_load(kb, state->var, &first).re, u64_const(kb, s->seed2)};
  return (struct philox){kb_load(kb, state->key, &first).re, kb_load(kb, state->counter, &first).re,
                         kb_load(kb, state->counter, &second).re};
}

void random_check_state(struct kb *kb, const struct random_source *s, const struct random_state *state) {
  if (!s->names_algorithm)
    return;
  expr_id at = kb_for(kb, LOOP_PAR, kb_int(kb, 1)), number = kb_load(kb, state->var, &at).re;
  expr_id is_philox = kb_or(kb, kb_eq(kb, number, kb_int(kb, 1)), kb_eq(kb, number, kb_int(kb, 3)));
  kb_check(kb, kb_ne(kb, number, kb_int(kb, 2)), UNIMPLEMENTED, "Unsupported algorithm id: %d (ThreeFry is not there on CPUs)", number,
           NO_EXPR);
  kb_check(kb, is_philox, INVALID_ARGUMENT, "Unsupported algorithm id: %d", number, NO_EXPR);
  kb_close(kb, 1);
}

/* A loop of one iteration, so that a parallel kernel stays one: it is a phase of its own, behind the draws. */
void random_advance(struct kb *kb, const struct random_source *s, const struct random_state *state, expr_id blocks) {
  if (s->keeper == RANDOM_STATELESS)
    return;
  enum dtype dtype = kb->k->buffers.items[state->var].dtype;
  expr_id first = kb_int(kb, s->names_algorithm), high = kb_int(kb, 1 + s->names_algorithm);
  expr_id at = kb_add(kb, kb_for(kb, LOOP_PAR, kb_int(kb, 1)), first);
  expr_id old = kb_get(kb, kb_local(kb, u64_of(kb, kb_load(kb, state->var, &at).re)));
  expr_id next = expr_binary(kb->k, SCALAR_ADD, old, u64_of(kb, blocks));
  kb_store(kb, state->var, &at, real_element(expr_cast(kb->k, dtype, next)));
  if (s->keeper == RANDOM_GENERATOR) {
    expr_id carry = expr_cast(kb->k, dtype, expr_binary(kb->k, SCALAR_LT, next, old));
    kb_store(kb, state->var, &high, real_element(kb_add(kb, kb_load(kb, state->var, &high).re, carry)));
  }
  kb_close(kb, 1);
}
