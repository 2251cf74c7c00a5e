/* kernel_clone.c: copies statements and expressions into a new kernel, with buffers and sizes renumbered by what they are
 * bound to, and loads replaced on the way. */
#include "compiler/edit/kernel_clone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One kernel being copied: how its numbers map to the new one. */
struct source {
  struct clone *to;
  const struct flow_node *node;
  uint32_t *buffer;                /* per buffer, in its own shape and in another one: the new one + 1; 0 not yet */
  expr_id *local;                  /* per local: its expression in the new kernel */
  expr_id *memo;                   /* per expression */
  uint32_t replaced;               /* loads from this buffer become ... */
  const struct producer *producer; /* ... this one's expression; */
  expr_id *values;                 /* and by buffer, from those that have one, this value: the caller's; NULL: none */
  const struct producer *map;      /* made in another shape: what it loads at its own element has that one, */
  const expr_id *index;            /* and there this index */
  int rank;
  const kernel_dim *dims;
};

static struct source source_make(struct clone *to, const struct flow_node *node) {
  struct source s = {.to = to, .node = node, .replaced = UINT32_MAX};
  const struct kernel *k = node->kernel;
  s.buffer = calloc(2 * k->buffers.count + 1, sizeof *s.buffer);
  s.local = calloc(k->locals.count + 1, sizeof *s.local);
  s.memo = calloc(k->exprs.count + 1, sizeof *s.memo);
  return s;
}
static void source_free(struct source *s) {
  free(s->buffer);
  free(s->local);
  free(s->memo);
}

/* ---- sizes and buffers ---- */

static uint32_t size_number(struct clone *cl, dim d) {
  for (uint32_t i = 0; i < cl->sizes.count; i++)
    if (cl->sizes.items[i] == d)
      return i;
  vec_push(&cl->sizes, d);
  return cl->sizes.count - 1;
}

static kernel_dim map_dim(struct source *s, kernel_dim d) {
  if (!DIM_IS_SIZE(d))
    return d;
  dim size = dim_resolve(s->to->flow->dims, s->node->sizes[SIZE_OF_DIM(d)]);
  int64_t value;
  return dim_is_const(s->to->flow->dims, size, &value) ? value : DIM_OF_SIZE(size_number(s->to, size));
}

static bool is_old(const struct clone *cl, value_id v) {
  for (uint32_t i = 0; i < cl->old.count; i++)
    if (cl->old.items[i] == v)
      return true;
  return false;
}

/* The buffer in which the new kernel has what is bound to `arg`; UINT32_MAX: none. It may have a value in several shapes. */
static uint32_t find_bound(const struct source *s, uint32_t b, struct flow_arg arg, int rank, const kernel_dim *dims) {
  const struct clone *cl = s->to;
  for (uint32_t i = 0; i < cl->args.count; i++) {
    const struct kernel_buffer *known = &cl->kernel->buffers.items[i];
    bool may_load = arg.value || known->mode == BUFFER_IN || is_old(cl, s->node->args[b].value);
    if (may_load && cl->args.items[i].value == arg.value && cl->args.items[i].var == arg.var &&
        (arg.var || buffer_has_dims(known, rank, dims)))
      return i;
  }
  return UINT32_MAX;
}
static int map_dims(struct source *s, uint32_t b, kernel_dim dims[LIMIT_RANK]) {
  const struct kernel_buffer *from = &s->node->kernel->buffers.items[b];
  for (int i = 0; i < from->rank; i++)
    dims[i] = map_dim(s, from->dims[i]);
  return from->rank;
}
/* The new kernel's buffer for this one, in its own shape, or in that in which the map is made. */
static uint32_t map_buffer_as(struct source *s, uint32_t b, bool reshaped) {
  uint32_t *made = &s->buffer[2 * b + reshaped];
  if (*made)
    return *made - 1;
  struct clone *cl = s->to;
  const struct kernel_buffer *from = &s->node->kernel->buffers.items[b];
  struct flow_arg arg = s->node->args[b];
  kernel_dim dims[LIMIT_RANK];
  uint32_t n = UINT32_MAX;
  int rank = reshaped ? s->rank : map_dims(s, b, dims);
  if (reshaped)
    memcpy(dims, s->dims, sizeof *dims * (size_t)rank);
  if (is_old(cl, arg.value))
    arg = (struct flow_arg){.var = cl->updates};
  if (from->mode == BUFFER_IN) /* a value is bound once for each shape, and an old one where the variable is */
    n = find_bound(s, b, arg, rank, dims);
  if (n == UINT32_MAX) {
    vec_push(&cl->args, arg);
    n = kernel_add_buffer(cl->kernel, from->dtype, from->mode, rank, dims);
  }
  *made = n + 1;
  return n;
}
static uint32_t map_buffer(struct source *s, uint32_t b) { return map_buffer_as(s, b, false); }

/* ---- constants ---- */

bool clone_constant(const struct flow *f, value_id v) {
  const struct flow_value *x = &f->values.items[v];
  if (!x->data || x->dtype == DTYPE_STRING || x->dtype == DTYPE_RESOURCE || x->dtype == DTYPE_VARIANT)
    return false;
  int64_t d;
  for (int i = 0; i < x->rank; i++)
    if (!dim_is_const(f->dims, x->dims[i], &d) || d != 1)
      return false;
  return true;
}

static expr_id constant(struct clone *cl, value_id v, int part) {
  const struct flow_value *x = &cl->flow->values.items[v];
  enum dtype dtype = dtype_real(x->dtype);
  size_t size = dtype_size(dtype);
  int64_t bits = 0;
  memcpy(&bits, (const char *)x->data + (size_t)part * size, size);
  if (dtype_is_signed(dtype) && size < 8) { /* as struct expr holds them */
    int shift = 64 - (int)size * 8;
    bits = (int64_t)((uint64_t)bits << shift) >> shift;
  }
  return expr_bits(cl->kernel, dtype, bits);
}

/* ---- expressions ---- */

static expr_id map_expr(struct source *s, expr_id e);

static expr_id inline_load(struct source *s, const struct expr *load) {
  const struct kernel *k = s->node->kernel;
  const struct producer *p = s->producer;
  struct source inner = source_make(s->to, p->node);
  for (int i = 0; i < load->count && !p->is_uniform; i++) {
    expr_id at = map_expr(s, k->operands.items[load->first + (uint32_t)i]);
    const struct expr *index = expr_get(p->node->kernel, p->index[i]);
    if (index->op == SCALAR_LOCAL)
      inner.local[index->imm] = at;
  }
  expr_id value = map_expr(&inner, p->value[load->part]);
  source_free(&inner);
  return value;
}

static expr_id map_load(struct source *s, expr_id e) {
  const struct kernel *k = s->node->kernel;
  const struct expr load = *expr_get(k, e);
  uint32_t b = (uint32_t)load.imm;
  if (b == s->replaced)
    return inline_load(s, &load);
  if (s->values && s->values[b])
    return s->values[b];
  value_id v = s->node->args[b].value;
  if (v && k->buffers.items[b].mode == BUFFER_IN && clone_constant(s->to->flow, v))
    return constant(s->to, v, load.part);
  if (s->map && producer_load_is_own(s->map, e))
    return expr_load(s->to->kernel, map_buffer_as(s, b, true), load.part, s->index, s->rank);
  expr_id index[LIMIT_RANK];
  for (int i = 0; i < load.count; i++)
    index[i] = map_expr(s, k->operands.items[load.first + (uint32_t)i]);
  return expr_load(s->to->kernel, map_buffer(s, b), load.part, index, load.count);
}

static expr_id map_expr(struct source *s, expr_id e) {
  if (e == NO_EXPR || s->memo[e])
    return e == NO_EXPR ? NO_EXPR : s->memo[e];
  const struct kernel *k = s->node->kernel;
  const struct expr x = *expr_get(k, e);
  struct kernel *to = s->to->kernel;
  expr_id r, operands[3];
  switch (x.op) {
  case SCALAR_CONST: r = expr_bits(to, (enum dtype)x.dtype, x.imm); break;
  case SCALAR_SIZE: r = expr_dim(to, map_dim(s, DIM_OF_SIZE(x.imm))); break;
  case SCALAR_LOCAL: r = s->local[x.imm]; break;
  case SCALAR_LOAD: r = map_load(s, e); break;
  default:
    for (int i = 0; i < x.count; i++)
      operands[i] = map_expr(s, k->operands.items[x.first + (uint32_t)i]);
    r = expr_make(to, (enum scalar_op)x.op, (enum dtype)x.dtype, operands, x.count);
    break;
  }
  return s->memo[e] = r;
}

/* ---- statements ---- */

struct store_hook {
  const struct producer *c; /* the map applied to what is stored */
  const bool *keep;         /* by buffer of what stores: whether it still does */
  expr_id *values;          /* by buffer of c: what it loads there, which is stored here */
};

static void map_block(struct source *s, const struct stmt *from, struct stmt **tail, const struct store_hook *hook);

static uint32_t new_local(struct source *s, const struct stmt *from, struct stmt *made) {
  s->local[from->local] = expr_local(s->to->kernel, made->local);
  return made->local;
}

/* What the map makes of the values that are stored, at the same element: the last of its loops stand for the last of the index. */
static void store_mapped(struct source *s, const struct stmt *from, struct stmt **tail, const expr_id *index,
                         const struct store_hook *hook) {
  const struct producer *c = hook->c;
  struct source map = source_make(s->to, c->node);
  kernel_dim dims[LIMIT_RANK];
  map.values = hook->values;
  map.map = c;
  map.index = index;
  map.rank = map_dims(s, from->buffer, dims);
  map.dims = dims;
  for (int i = c->index_count - 1, j = map.rank - 1; i >= 0 && j >= 0; i--, j--) {
    const struct expr *at = expr_get(c->node->kernel, c->index[i]);
    if (at->op == SCALAR_LOCAL)
      map.local[at->imm] = index[j];
  }
  expr_id mapped = map_expr(&map, c->value[0]);
  stmt_store(s->to->kernel, tail, map_buffer_as(&map, c->buffer, true), 0, index, map.rank, mapped);
  source_free(&map);
}
static void map_store(struct source *s, const struct stmt *from, struct stmt **tail, const struct store_hook *hook) {
  expr_id index[LIMIT_RANK], value = map_expr(s, from->value);
  for (int i = 0; i < from->index_count; i++)
    index[i] = map_expr(s, from->index[i]);
  if (!hook || hook->keep[from->buffer])
    stmt_store(s->to->kernel, tail, map_buffer(s, from->buffer), from->part, index, from->index_count, value);
  if (!hook)
    return;
  const struct flow_node *c = hook->c->node;
  for (uint32_t b = 0; b < c->kernel->buffers.count; b++)
    if (c->kernel->buffers.items[b].mode == BUFFER_IN && c->args[b].value == s->node->args[from->buffer].value)
      hook->values[b] = value;
  if (!from->next)
    store_mapped(s, from, tail, index, hook);
}

static void map_stmt(struct source *s, const struct stmt *from, struct stmt **tail, const struct store_hook *hook) {
  struct kernel *to = s->to->kernel;
  struct stmt *made;
  expr_id shown[STATUS_SHOWN];
  switch (from->kind) {
  case STMT_FOR:
    made = stmt_for(to, tail, from->loop, map_expr(s, from->value));
    made->run = from->run;
    made->width = from->width;
    to->locals.items[new_local(s, from, made)].name = s->node->kernel->locals.items[from->local].name;
    map_block(s, from->body, &made->body, hook);
    break;
  case STMT_VAR:
    made = stmt_var(to, tail, s->node->kernel->locals.items[from->local].dtype, map_expr(s, from->value));
    new_local(s, from, made);
    break;
  case STMT_SET: stmt_set(to, tail, (uint32_t)expr_get(to, s->local[from->local])->imm, map_expr(s, from->value)); break;
  case STMT_STORE: map_store(s, from, tail, hook); break;
  case STMT_IF:
    made = stmt_if(to, tail, map_expr(s, from->value));
    map_block(s, from->body, &made->body, hook);
    map_block(s, from->otherwise, &made->otherwise, hook);
    break;
  case STMT_WHILE:
    made = stmt_while(to, tail, map_expr(s, from->value));
    map_block(s, from->body, &made->body, hook);
    break;
  case STMT_CHECK:
    for (int i = 0; i < STATUS_SHOWN; i++)
      shown[i] = map_expr(s, from->shown[i]);
    stmt_check(to, tail, map_expr(s, from->value), from->code, from->text, shown);
    break;
  case STMT_BUFFER: /* only scheduled kernels have them, and no pass copies those */
  case STMT_FETCH: abort();
  }
}

/* How often the block, or another around it, sets the variable. */
static int count_sets(const struct stmt *s, uint32_t local) {
  int count = 0;
  for (; s; s = s->next)
    count += (s->kind == STMT_SET && s->local == local) + count_sets(s->body, local) + count_sets(s->otherwise, local);
  return count;
}
/* What a term is in the new kernel, where it is one number. */
static bool is_number(struct source *s, expr_id e, double *number) {
  const struct expr *x = expr_get(s->node->kernel, e);
  int64_t bits;
  expr_id made = NO_EXPR;
  if (x->op == SCALAR_CONST)
    made = map_expr(s, e);
  else if (x->op == SCALAR_LOAD && x->imm == (int64_t)s->replaced && s->producer->is_uniform)
    made = inline_load(s, x);
  if (made == NO_EXPR || !expr_is_const(s->to->kernel, made, &bits))
    return false;
  *number = expr_bits_to_double((enum dtype)x->dtype, bits);
  return true;
}
/* The turns of red loops, one in the other, whose extents are known and in which there is nothing but `set`; 0: they are something else. */
static double known_turns(struct source *s, const struct stmt *loop, const struct stmt **set) {
  double turns = 1;
  for (; loop && loop->kind == STMT_FOR && loop->loop == LOOP_RED; loop = loop->body) {
    int64_t extent;
    const struct expr *x = expr_get(s->node->kernel, loop->value);
    bool is_known = (x->op == SCALAR_CONST || x->op == SCALAR_SIZE) && expr_is_const(s->to->kernel, map_expr(s, loop->value), &extent);
    if (!is_known || extent < 1 || !loop->body || loop->body->next)
      return 0;
    turns *= (double)extent;
  }
  *set = loop;
  return loop && loop->kind == STMT_SET ? turns : 0;
}
/* The sum of one whole number over known loops, as of weights that are all 1, is known where no addition would round: by the variable and
 * the loops behind it. */
static bool is_count(struct source *s, const struct stmt *var, double *sum) {
  const struct kernel *k = s->node->kernel;
  enum dtype dtype = k->locals.items[var->local].dtype;
  double most = dtype == DTYPE_FLOAT ? 0x1p24 : dtype == DTYPE_DOUBLE ? 0x1p53 : 0, start, term;
  const struct stmt *set;
  double turns = most > 0 ? known_turns(s, var->next, &set) : 0;
  if (turns == 0 || set == var->next || set->local != var->local || expr_get(k, set->value)->op != SCALAR_ADD ||
      count_sets(k->body, var->local) != 1)
    return false;
  expr_id a = expr_operand(k, set->value, 0), b = expr_operand(k, set->value, 1);
  if (!expr_is_local(k, a, var->local) && !expr_is_local(k, b, var->local))
    return false;
  if (!is_number(s, var->value, &start) || !is_number(s, expr_is_local(k, a, var->local) ? b : a, &term))
    return false;
  *sum = start + turns * term;
  return term == floor(term) && start == floor(start) && fabs(start) + turns * fabs(term) <= most;
}

static void map_block(struct source *s, const struct stmt *from, struct stmt **tail, const struct store_hook *hook) {
  double sum;
  for (; from; from = from->next) {
    if (from->kind == STMT_VAR && is_count(s, from, &sum)) {
      s->local[from->local] = expr_float(s->to->kernel, s->node->kernel->locals.items[from->local].dtype, sum);
      from = from->next;
      continue;
    }
    map_stmt(s, from, tail, hook);
  }
}

/* ---- entry points ---- */

void clone_begin(struct clone *cl, struct flow *flow, const char *name) {
  *cl = (struct clone){.flow = flow, .kernel = kernel_create(flow->arena, name)};
}

/* Outputs keep their place before buffers that come with the producer: scratch ones must exist though nothing loads them. */
static void map_all_buffers(struct source *s) {
  for (uint32_t b = 0; b < s->node->kernel->buffers.count; b++) {
    const struct kernel_buffer *buffer = &s->node->kernel->buffers.items[b];
    if (b != s->replaced && buffer->mode != BUFFER_IN)
      map_buffer(s, b);
  }
}

void clone_inline(struct clone *cl, const struct flow_node *consumer, uint32_t buffer, const struct producer *p) {
  struct source s = source_make(cl, consumer);
  s.replaced = p ? buffer : UINT32_MAX;
  s.producer = p;
  map_all_buffers(&s);
  map_block(&s, consumer->kernel->body, &cl->kernel->body, NULL);
  source_free(&s);
}

void clone_epilogue(struct clone *cl, const struct producer *p, const struct producer *c, const bool *keep) {
  struct source s = source_make(cl, p->node);
  struct store_hook hook = {.c = c, .keep = keep, .values = calloc(c->node->kernel->buffers.count + 1, sizeof *hook.values)};
  map_block(&s, p->node->kernel->body, &cl->kernel->body, &hook);
  free(hook.values);
  source_free(&s);
}

/* Whether all that the node loads of what is made here has the shape in which it is made. */
static bool shapes_fit(struct source *s) {
  const struct clone *cl = s->to;
  for (uint32_t b = 0; b < s->node->kernel->buffers.count; b++) {
    kernel_dim dims[LIMIT_RANK];
    map_dims(s, b, dims);
    for (uint32_t i = 0; i < cl->args.count; i++)
      if (cl->args.items[i].value && cl->args.items[i].value == s->node->args[b].value && cl->kernel->buffers.items[i].mode != BUFFER_IN &&
          !buffer_has_dims(&cl->kernel->buffers.items[i], s->node->kernel->buffers.items[b].rank, dims))
        return false;
  }
  return true;
}
bool clone_append(struct clone *cl, const struct flow_node *node) {
  struct source s = source_make(cl, node);
  struct stmt **tail = &cl->kernel->body;
  bool fits = shapes_fit(&s);
  while (*tail)
    tail = &(*tail)->next;
  if (fits) {
    map_all_buffers(&s);
    map_block(&s, node->kernel->body, tail, NULL);
  }
  source_free(&s);
  return fits;
}

/* The loops of the map around; what its load indexes is where the sum's loops would be. */
static struct stmt **map_loops(struct source *s, const struct stmt *from, int depth, struct stmt **tail) {
  for (; depth > 0; depth--, from = from->body) {
    struct stmt *made = stmt_for(s->to->kernel, tail, from->loop, map_expr(s, from->value));
    new_local(s, from, made);
    tail = &made->body;
  }
  return tail;
}

static void place_sum(struct source *map, struct source *sum, const struct producer *p, uint32_t buffer) {
  const struct kernel *k = map->node->kernel;
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *load = expr_get(k, e);
    if (load->op != SCALAR_LOAD || load->imm != (int64_t)buffer)
      continue;
    for (int i = 0; i < p->index_count; i++) {
      const struct expr *at = expr_get(p->node->kernel, p->index[i]);
      if (at->op == SCALAR_LOCAL)
        sum->local[at->imm] = map_expr(map, expr_operand(k, e, i));
    }
  }
}

void clone_part(struct clone *cl, const struct producer *p, const struct producer *c, uint32_t buffer) {
  struct source map = source_make(cl, c->node), sum = source_make(cl, p->node);
  struct stmt **tail = map_loops(&map, c->node->kernel->body, c->depth, &cl->kernel->body);
  place_sum(&map, &sum, p, buffer);
  const struct stmt *s = p->node->kernel->body;
  for (int d = 0; d < p->depth; d++)
    s = s->body;
  for (; s->next; s = s->next)
    map_stmt(&sum, s, tail, NULL);
  map.values = calloc(c->node->kernel->buffers.count + 1, sizeof *map.values);
  map.values[buffer] = map_expr(&sum, s->value);
  expr_id index[LIMIT_RANK], value = map_expr(&map, c->value[0]);
  for (int i = 0; i < c->index_count; i++)
    index[i] = map_expr(&map, c->index[i]);
  stmt_store(cl->kernel, tail, map_buffer(&map, c->buffer), 0, index, c->index_count, value);
  free(map.values);
  source_free(&map);
  source_free(&sum);
}

void clone_update(struct clone *cl, const struct flow_node *node, uint32_t result) {
  struct source s = source_make(cl, node);
  map_all_buffers(&s);
  uint32_t made = map_buffer(&s, result);
  cl->kernel->buffers.items[made].mode = BUFFER_INOUT;
  cl->args.items[made] = flow_arg_of_variable(cl->flow, cl->updates - 1, node->args[result].value);
  map_block(&s, node->kernel->body, &cl->kernel->body, NULL);
  source_free(&s);
}

static uint32_t add_copy(struct source *s, uint32_t b, value_id v, enum buffer_mode mode) {
  kernel_dim dims[LIMIT_RANK];
  int rank = map_dims(s, b, dims);
  vec_push(&s->to->args, (struct flow_arg){.value = v});
  return kernel_add_buffer(s->to->kernel, s->node->kernel->buffers.items[b].dtype, mode, rank, dims);
}
static void copy_elements(struct kernel *k, uint32_t to, uint32_t from) {
  const struct kernel_buffer b = k->buffers.items[to];
  struct stmt **at = &k->body;
  expr_id index[LIMIT_RANK];
  for (int d = 0; d < b.rank; d++) {
    struct stmt *loop = stmt_for(k, at, LOOP_PAR, expr_dim(k, b.dims[d]));
    index[d] = expr_local(k, loop->local);
    at = &loop->body;
  }
  for (int part = 0; part <= dtype_is_complex(b.dtype); part++)
    stmt_store(k, at, to, part, index, b.rank, expr_load(k, from, part, index, b.rank));
}
void clone_copies(struct clone *cl, const struct flow_node *update, const value_id *old, const value_id *made) {
  struct source s = source_make(cl, update);
  for (uint32_t b = 0; b < update->kernel->buffers.count; b++) {
    if (!made[b])
      continue;
    uint32_t to = add_copy(&s, b, made[b], BUFFER_OUT);
    s.buffer[2 * b] = to + 1;
    copy_elements(cl->kernel, to, add_copy(&s, b, old[b], BUFFER_IN));
  }
  map_block(&s, update->kernel->body, &cl->kernel->body, NULL);
  source_free(&s);
}

void clone_finish(const struct clone *cl, struct flow_node *n) {
  struct arena *a = cl->flow->arena;
  n->kernel = cl->kernel;
  n->kernel->size_count = cl->sizes.count;
  n->args = arena_copy(a, cl->args.items, sizeof *cl->args.items * cl->args.count);
  n->sizes = arena_copy(a, cl->sizes.items, sizeof *cl->sizes.items * cl->sizes.count);
  n->inputs.count = n->outputs.count = 0;
  for (uint32_t i = 0; i < cl->args.count; i++) {
    if (!cl->args.items[i].value)
      continue;
    if (cl->kernel->buffers.items[i].mode == BUFFER_IN)
      vec_push(&n->inputs, cl->args.items[i].value);
    else
      vec_push(&n->outputs, cl->args.items[i].value);
  }
  free(cl->args.items);
  free(cl->sizes.items);
}

void clone_place(const struct clone *cl, struct flow *f, flow_id id) {
  struct flow_node *n = f->nodes.items[id];
  clone_finish(cl, n);
  for (uint32_t i = 0; i < n->outputs.count; i++) {
    f->values.items[n->outputs.items[i]].producer = id;
    f->values.items[n->outputs.items[i]].index = i;
  }
}
void clone_drop(struct clone *cl) {
  vec_free(&cl->args);
  vec_free(&cl->sizes);
}
