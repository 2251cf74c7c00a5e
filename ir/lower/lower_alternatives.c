/* lower_alternatives.c: values whose rank the step decides: the sides of a cond that differ, a squeeze of a size that is computed.
 *
 * Such a value is two values, each there under a condition, as behind a Switch (lower_merge.c). What uses it is lowered once for
 * each. Where the results are alike again they are merged, as a cond's sides are; so only the part of the graph in which ranks differ
 * is there twice. A fetch takes the one that is there. */
#include <string.h>

#include "ir/kernel/formula_words.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

#define ALTERNATIVES_DEPTH 12 /* conditions that meet in one node: it is lowered twice for each */

struct bound bound_alternatives(struct op_call *c, value_id predicate, struct bound when_false, struct bound when_true) {
  struct alternatives *a = ARENA_NEW(c->lw->arena, struct alternatives);
  *a = (struct alternatives){.predicate = predicate, .side = {when_false, when_true}};
  for (uint32_t k = 0; k < 2; k++)
    a->side[k].guards = guards_join(c->lw, a->side[k].guards, guards_add(c->lw, c->guards, (struct flow_guard){predicate, k}));
  return (struct bound){.alternatives = a, .guards = c->guards};
}

/* Whether what is remembered of two objects is the same: lists of elements of one shape. */
static bool is_same_object(struct op_call *c, const struct node *a, const struct node *b) {
  const struct object_shapes *o = a == b ? NULL : lower_object(c->lw, a), *p = lower_object(c->lw, b);
  if (!o || !p)
    return true;
  bool same = o->count == p->count;
  for (uint32_t i = 0; i < o->count && same; i++)
    same = o->values[i].rank == p->values[i].rank &&
           memcmp(o->values[i].dims, p->values[i].dims, sizeof *o->values[i].dims * (size_t)o->values[i].rank) == 0;
  return same;
}

/* Known elements are the shapes of what is to come: they are kept apart. */
static bool is_alike(struct op_call *c, struct bound a, struct bound b) {
  if (!a.value || !b.value || a.alternatives || b.alternatives || !is_same_object(c, a.maker, b.maker))
    return false;
  const struct flow_value *x = op_value(c, a.value), *y = op_value(c, b.value);
  return x->rank == y->rank && (a.value == b.value || (!x->content && !y->content && !(x->data && dtype_is_integer(x->dtype))));
}

static struct bound join(struct op_call *c, value_id predicate, const struct bound *side) {
  if (!is_alike(c, side[0], side[1]))
    return bound_alternatives(c, predicate, side[0], side[1]);
  struct flow_value x = *op_value(c, side[0].value), y = *op_value(c, side[1].value);
  for (int d = 0; d < x.rank; d++)
    if (dim_equal(c->lw->dims, x.dims[d], y.dims[d]) != 1)
      x.dims[d] = op_new_symbol(c);
  value_id v = op_merge(c, predicate, side[0].value, side[1].value, x.rank, x.dims);
  if (c->effect) /* what is wrong with one of the sides is said first: its value is not there */
    vec_push(&c->lw->walk.flow->nodes.items[op_value(c, v)->producer]->controls, c->effect);
  return (struct bound){.value = v, .maker = side[1].maker, .guards = c->guards};
}

/* What is wrong with one side is an error of the steps that take it. */
static status refuse_side(struct op_call *c, status code, const char *why) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  kb.effect = true;
  kb_check(&kb, expr_int(kb.k, DTYPE_BOOL, 0), code, why, NO_EXPR, NO_EXPR);
  return kb_finish(&kb);
}

/* The call with one side of what `a` decides, in all inputs that it decides. */
static status lower_side(struct op_call *c, const struct alternatives *a, uint32_t k, struct bound *out) {
  struct op_call one = *c;
  one.in = ARENA_ARRAY(c->lw->arena, struct bound, c->in_count + 1);
  one.out = out;
  one.guards = guards_add(c->lw, c->guards, (struct flow_guard){a->predicate, k});
  for (uint32_t i = 0; i < c->in_count; i++) {
    const struct alternatives *of = c->in[i].alternatives;
    one.in[i] = of && of->predicate == a->predicate ? of->side[k] : c->in[i];
  }
  status s = lower_each_alternative(&one);
  op_go_on(c, &one);
  return s;
}

static status join_sides(struct op_call *c, const struct alternatives *a, struct bound *const *out, const status *s,
                         const char *const *why) {
  for (uint32_t k = 0; k < 2; k++) {
    if (s[k] == OK)
      continue;
    struct op_call one = *c;
    one.guards = guards_add(c->lw, c->guards, (struct flow_guard){a->predicate, k});
    TRY(refuse_side(&one, s[k], why[k]));
    c->effect = one.effect;
    for (uint32_t i = 0; i < c->out_count; i++) {
      c->out[i] = out[1 - k][i];
      c->out[i].guards = guards_add(c->lw, c->guards, (struct flow_guard){a->predicate, 1 - k});
    }
    c->keeps_guards = true;
    return OK;
  }
  for (uint32_t i = 0; i < c->out_count; i++) {
    const struct bound sides[] = {out[0][i], out[1][i]};
    bool is_variable = sides[0].var && sides[0].var == sides[1].var && !sides[0].value;
    c->out[i] = is_variable ? sides[0] : join(c, a->predicate, sides);
  }
  return OK;
}

static const struct alternatives *first_alternatives(const struct op_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (c->in[i].alternatives)
      return c->in[i].alternatives;
  return NULL;
}

/* What is remembered of an object that the call made is of this side alone: a list of elements of another rank is another list. */
static void own_object(struct op_call *c) {
  struct lower *lw = c->lw;
  for (uint32_t i = 0; i < lw->facts.objects.count; i++) {
    if (lw->facts.objects.items[i]->maker != c->node)
      continue;
    const struct node *own = arena_copy(lw->arena, c->node, sizeof *c->node);
    lw->facts.objects.items[i]->maker = own;
    for (uint32_t out = 0; out < c->out_count; out++)
      if (c->out[out].maker == c->node)
        c->out[out].maker = own;
    return;
  }
}

status lower_each_alternative(struct op_call *c) {
  const struct alternatives *a = first_alternatives(c);
  if (!a) {
    TRY(lower_call_node(c));
    if (c->lw->walk.alternative_depth)
      own_object(c);
    return c->lw->walk.alternative_depth && c->keeps_guards ? fail(UNIMPLEMENTED, "a condition on a value of several ranks") : OK;
  }
  if (c->lw->walk.alternative_depth == ALTERNATIVES_DEPTH)
    return fail(UNIMPLEMENTED, "values of several ranks, which depend on more than %d conditions", ALTERNATIVES_DEPTH);
  struct bound *out[2];
  status s[2];
  const char *why[2];
  c->lw->walk.alternative_depth++;
  for (uint32_t k = 0; k < 2; k++) {
    out[k] = ARENA_ARRAY(c->lw->arena, struct bound, c->out_count + 1);
    s[k] = lower_side(c, a, k, out[k]);
    why[k] = s[k] == OK ? NULL : arena_strdup(c->lw->arena, status_text());
  }
  c->lw->walk.alternative_depth--;
  if (s[0] != OK && s[1] != OK)
    return s[0] == UNIMPLEMENTED ? fail(s[0], "%s", why[0]) : fail(s[1], "%s", why[1]);
  if (c->lw->found.wants_feed || c->lw->found.wants_symbol)
    return fail(UNIMPLEMENTED, "%s", why[s[0] == OK]);
  return join_sides(c, a, out, s, why);
}

status lower_any_rank(struct op_call *c, struct bound b, value_id *out) {
  if (lower_variable_has_ranks(c, b)) {
    *out = lower_read_any_rank(c, b);
    return OK;
  }
  if (!b.alternatives)
    return op_read(c, b, out);
  value_id side[2];
  for (uint32_t k = 0; k < 2; k++)
    TRY(lower_any_rank(c, b.alternatives->side[k], &side[k]));
  struct op_call one = *c;
  one.guards = b.guards;
  *out = op_merge(&one, b.alternatives->predicate, side[0], side[1], 0, NULL);
  op_value(c, *out)->any_rank = true;
  return OK;
}

static struct element is_one(struct formula *f, struct element a, struct element b, struct element c) {
  (void)b, (void)c;
  return EQ(a, K(1));
}

status lower_squeezed(struct op_call *c, value_id v, uint32_t late, const bool *drop, struct bound *out) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  int rank = 0, axis = -1;
  for (int d = 0; d < x.rank; d++) {
    if (late >> d & 1)
      axis = d;
    if (!drop[d])
      dims[rank++] = x.dims[d];
  }
  if (axis < 0) {
    *out = (struct bound){.value = op_alias(c, v, x.dtype, rank, dims), .guards = c->guards};
    return OK;
  }
  value_id size = op_dims_value(c, DTYPE_INT64, 0, &x.dims[axis], 1), predicate;
  TRY(op_map(c, &size, 1, DTYPE_BOOL, is_one, &predicate));
  struct bound side[2];
  for (uint32_t k = 0; k < 2; k++) {
    struct op_call one = *c;
    bool dropped[LIMIT_RANK];
    memcpy(dropped, drop, sizeof dropped);
    dropped[axis] = k;
    one.guards = guards_add(c->lw, c->guards, (struct flow_guard){predicate, k});
    TRY(lower_squeezed(&one, v, late & ~(1u << axis), dropped, &side[k]));
  }
  *out = bound_alternatives(c, predicate, side[0], side[1]);
  return OK;
}

static struct element at_most(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return LE(a, b);
}

status lower_ranks(struct op_call *c, value_id whole, value_id rank, rank_set ranks, struct bound *out) {
  int64_t lowest = ranks_lowest(ranks);
  rank_set others = ranks & ~ranks_of((int)lowest);
  struct op_call here = *c;
  value_id is_here = NO_VALUE;
  dim dims[LIMIT_RANK];
  if (others) {
    const value_id in[] = {rank, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &lowest, 1)};
    TRY(op_map(c, in, 2, DTYPE_BOOL, at_most, &is_here));
    here.guards = guards_add(c->lw, c->guards, (struct flow_guard){is_here, true});
  }
  for (int64_t d = 0; d < lowest; d++)
    dims[d] = op_new_symbol(c);
  value_id yes = op_bool(&here, true);
  struct bound side[2] = {{0}, {.value = op_merge(&here, yes, whole, whole, (int)lowest, dims), .guards = here.guards}};
  *out = side[1];
  if (!others)
    return OK;
  here.guards = guards_add(c->lw, c->guards, (struct flow_guard){is_here, false});
  TRY(lower_ranks(&here, whole, rank, others, &side[0]));
  *out = bound_alternatives(c, is_here, side[0], side[1]);
  return OK;
}

/* ---- sizes that decide a rank ---- */

#define SIZE_MOST 8 /* ranks of which only the step knows are no higher */

static bool has_size(struct op_call *c, value_id v, dim size) {
  const struct flow_value *x = op_value(c, v);
  for (int d = 0; d < x->rank; d++)
    if (dim_equal(c->lw->dims, x->dims[d], size) == 1)
      return true;
  return false;
}

bool lower_has_size(struct op_call *c, dim size) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (c->in[i].value && has_size(c, c->in[i].value, size))
      return true;
  return false;
}

/* Predicates: fits[k] says that the size is at most k. A size above all is refused. */
static status compare_size(struct op_call *c, dim size, value_id *fits) {
  struct kb guard;
  kb_begin(&guard, c, DTYPE_INT64);
  guard.effect = true;
  expr_id n = kb_dim(&guard, size);
  kb_check(&guard, expr_binary(guard.k, SCALAR_LE, n, kb_int(&guard, SIZE_MOST)), UNIMPLEMENTED,
           arena_printf(c->lw->arena, "a size of %%d decides a rank: at most %d is possible", SIZE_MOST), n, NO_EXPR);
  TRY(kb_finish(&guard));
  value_id in[2] = {op_dims_value(c, DTYPE_INT64, 0, &size, 1)};
  for (int64_t k = 0; k < SIZE_MOST; k++) {
    in[1] = op_constant_i64s(c, DTYPE_INT64, 0, NULL, &k, 1);
    TRY(op_map(c, in, 2, DTYPE_BOOL, at_most, &fits[k]));
  }
  return OK;
}

/* The value with the number `is` in the place of the size. */
static value_id sized(struct op_call *c, value_id v, dim size, int64_t is) {
  struct flow_value x = *op_value(c, v);
  for (int d = 0; d < x.rank; d++)
    if (dim_equal(c->lw->dims, x.dims[d], size) == 1)
      x.dims[d] = op_dim(c, is);
  return op_alias(c, v, x.dtype, x.rank, x.dims);
}

/* The input for each number from `first` to `last`: a tree of alternatives. */
static struct bound each_size(struct op_call *c, struct bound b, dim size, const value_id *fits, int first, int last) {
  if (first == last) {
    b.value = sized(c, b.value, size, first);
    return b;
  }
  int middle = (first + last) / 2;
  struct bound side[2];
  for (uint32_t k = 0; k < 2; k++) {
    struct op_call here = *c;
    here.guards = guards_add(c->lw, c->guards, (struct flow_guard){fits[middle], k});
    side[k] = each_size(&here, b, size, fits, k ? first : middle + 1, k ? middle : last);
  }
  return bound_alternatives(c, fits[middle], side[0], side[1]);
}

status lower_for_each_size(struct op_call *c, dim size) {
  value_id fits[SIZE_MOST];
  int first = 0;
  TRY(compare_size(c, size, fits));
  while (first < SIZE_MOST && dim_less(c->lw->dims, op_dim(c, first), size) == 1)
    first++;
  struct op_call one = *c;
  one.in = arena_copy(c->lw->arena, c->in, c->in_count * sizeof *c->in);
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (!c->in[i].value || !has_size(c, c->in[i].value, size))
      continue;
    status read = op_input(&one, i, &one.in[i].value);
    op_go_on(c, &one);
    TRY(read);
    one.in[i].shares = 0;
    one.in[i].guards = NULL;
    one.in[i] = each_size(&one, one.in[i], size, fits, first, SIZE_MOST);
  }
  status s = lower_each_alternative(&one);
  op_go_on(c, &one);
  c->keeps_guards = one.keeps_guards && !c->lw->walk.alternative_depth; /* else the refused side has its check */
  return s;
}
