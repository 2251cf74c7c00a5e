/* producer_form.c: see producer_form.h. */
#include "compiler/edit/producer_form.h"

#include <stdlib.h>
#include <string.h>

/* The chain of par loops from the top; *inner is the block inside. */
static int par_nest(const struct kernel *k, uint32_t *locals, const struct stmt **inner) {
  const struct stmt *s = k->body;
  int depth = 0;
  while (s && !s->next && s->kind == STMT_FOR && s->loop == LOOP_PAR && depth < LIMIT_RANK) {
    locals[depth++] = s->local;
    s = s->body;
  }
  *inner = s;
  return depth;
}

/* Whether a store goes to the element that the par loops stand for: its index is their variables in order; a dimension of
 * size 1 may have no loop. */
static bool stores_at_loops(const struct kernel *k, const struct stmt *s, const uint32_t *locals, int depth) {
  const struct kernel_buffer *b = &k->buffers.items[s->buffer];
  int loop = 0;
  for (int i = 0; i < s->index_count; i++) {
    int64_t zero;
    if (loop < depth && expr_is_local(k, s->index[i], locals[loop]))
      loop++;
    else if (b->dims[i] != 1 || !expr_is_const(k, s->index[i], &zero) || zero != 0)
      return false;
  }
  return loop == depth;
}

/* Sums and the like in front of a store: no checks; *store is the first one. */
static bool sums_are_plain(const struct stmt *s, const struct stmt **store) {
  for (; s && s->kind != STMT_STORE; s = s->next) {
    if (s->kind == STMT_FOR && s->loop == LOOP_RED) {
      for (const struct stmt *t = s->body; t; t = t->next)
        if (t->kind == STMT_STORE || t->kind == STMT_CHECK || t->kind == STMT_IF || t->kind == STMT_WHILE ||
            (t->kind == STMT_FOR && t->loop != LOOP_RED))
          return false;
    } else if (s->kind != STMT_VAR && s->kind != STMT_SET) {
      return false;
    }
  }
  *store = s;
  return s != NULL;
}
static bool block_is_plain(const struct stmt *s) { return sums_are_plain(s, &s) && !s->next; }

static uint32_t count_outputs(const struct flow_node *n, uint32_t *buffer) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++) {
    if (n->args[i].var || n->kernel->buffers.items[i].mode == BUFFER_INOUT || n->kernel->buffers.items[i].mode == BUFFER_SCRATCH)
      return 0;
    if (n->kernel->buffers.items[i].mode == BUFFER_OUT)
      count++, *buffer = i;
  }
  return count;
}

#define UNIFORM_DEPTH 3 /* of the expressions that are looked into: a constant, a cast of one, an element at a constant place */

static bool is_uniform(const struct kernel *k, expr_id e, int depth) {
  const struct expr *x = expr_get(k, e);
  bool same = depth > 0 && x->op != SCALAR_LOCAL;
  for (int i = 0; same && i < x->count; i++)
    same = is_uniform(k, expr_operand(k, e, i), depth - 1);
  return same;
}
static bool form_of(const struct flow_node *n, struct producer *out) {
  const struct kernel *k = n->kernel;
  const struct stmt *s;
  out->node = n;
  out->depth = par_nest(k, out->locals, &s);
  bool complex = dtype_is_complex(k->buffers.items[out->buffer].dtype);
  if (s && s->kind == STMT_STORE && s->buffer == out->buffer && stores_at_loops(k, s, out->locals, out->depth)) {
    const struct stmt *second = s->next;
    if (complex ? !second || second->next || second->kind != STMT_STORE || second->part != 1 || s->part != 0 : second != NULL)
      return false;
    out->is_map = true;
    out->index = s->index;
    out->index_count = s->index_count;
    out->value[0] = s->value;
    out->value[1] = complex ? second->value : NO_EXPR;
    out->is_uniform = is_uniform(k, s->value, UNIFORM_DEPTH) && (!complex || is_uniform(k, second->value, UNIFORM_DEPTH));
    return true;
  }
  if (!block_is_plain(s) || complex)
    return false;
  while (s->next)
    s = s->next;
  out->index = s->index;
  out->index_count = s->index_count;
  out->value[0] = s->value;
  out->is_reduction = s->buffer == out->buffer && stores_at_loops(k, s, out->locals, out->depth);
  return out->is_reduction;
}

bool producer_loads_own(const struct producer *p, uint32_t buffer) {
  const struct kernel *k = p->node->kernel;
  const struct kernel_buffer *from = &k->buffers.items[buffer], *to = &k->buffers.items[p->buffer];
  if (from->rank != to->rank)
    return false;
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *load = expr_get(k, e);
    if (load->op != SCALAR_LOAD || load->imm != (int64_t)buffer)
      continue;
    for (int i = 0; i < load->count; i++) {
      int64_t zero;
      expr_id at = expr_operand(k, e, i);
      bool one = from->dims[i] == 1 && expr_is_const(k, at, &zero) && zero == 0;
      if (!one && (at != p->index[i] || from->dims[i] != to->dims[i]))
        return false;
    }
  }
  return true;
}

bool producer_load_is_own(const struct producer *p, expr_id load) {
  const struct kernel *k = p->node->kernel;
  const struct expr *x = expr_get(k, load);
  const struct kernel_buffer *from = &k->buffers.items[x->imm], *to = &k->buffers.items[p->buffer];
  bool own = from->mode == BUFFER_IN && buffer_has_dims(from, to->rank, to->dims);
  for (int i = 0; i < x->count && own; i++)
    own = expr_operand(k, load, i) == p->index[i];
  return own && to->rank > 0;
}
/* Whether e uses no loop but those of the last dimensions, except in loads of its own element. */
static bool reshapes(const struct producer *p, expr_id e, int common, bool *seen) {
  const struct kernel *k = p->node->kernel;
  const struct expr *x = expr_get(k, e);
  if (seen[e] || (x->op == SCALAR_LOAD && producer_load_is_own(p, e)))
    return true;
  seen[e] = true;
  for (int i = 0; x->op == SCALAR_LOCAL && i < p->index_count - common; i++)
    if (e == p->index[i])
      return false;
  for (int i = 0; i < x->count; i++)
    if (!reshapes(p, expr_operand(k, e, i), common, seen))
      return false;
  return true;
}
bool producer_reshapes(const struct producer *p, int common) {
  bool *seen = calloc(p->node->kernel->exprs.count, 1), fits = p->is_map && !p->value[1] && reshapes(p, p->value[0], common, seen);
  free(seen);
  return fits;
}

bool producer_form(const struct flow_node *n, struct producer *out) {
  memset(out, 0, sizeof *out);
  return n && n->op == FLOW_KERNEL && !n->stateful && count_outputs(n, &out->buffer) == 1 && form_of(n, out);
}

/* Results at the end of a block of sums, all of one shape, each at the element that the loops stand for. */
static bool ends_with_results(const struct producer *p, const struct stmt *s) {
  const struct kernel *k = p->node->kernel;
  const struct kernel_buffer *first = &k->buffers.items[s->buffer];
  for (; s; s = s->next) {
    const struct kernel_buffer *b = &k->buffers.items[s->buffer];
    bool fits = s->kind == STMT_STORE && b->mode == BUFFER_OUT && buffer_has_dims(b, first->rank, first->dims) &&
                stores_at_loops(k, s, p->locals, p->depth);
    if (!fits || dtype_is_complex(b->dtype))
      return false;
  }
  return true;
}
bool producer_form_of(const struct flow_node *n, value_id v, struct producer *out) {
  if (producer_form(n, out))
    return true;
  if (!n || n->op != FLOW_KERNEL || n->stateful || !count_outputs(n, &out->buffer))
    return false;
  const struct stmt *s, *first;
  out->node = n;
  out->depth = par_nest(n->kernel, out->locals, &s);
  if (!sums_are_plain(s, &first) || first == s || !ends_with_results(out, first))
    return false;
  for (; first; first = first->next)
    if (n->args[first->buffer].value == v) {
      out->buffer = first->buffer;
      out->index = first->index;
      out->index_count = first->index_count;
      out->value[0] = first->value;
      out->is_reduction = true;
    }
  return out->is_reduction;
}

static uint32_t count_written(const struct flow_node *n, uint32_t *buffer) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++)
    if (n->kernel->buffers.items[i].mode != BUFFER_IN)
      count++, *buffer = i;
  return count;
}

bool update_form(const struct flow_node *n, struct producer *out) {
  memset(out, 0, sizeof *out);
  return n && n->op == FLOW_KERNEL && count_written(n, &out->buffer) == 1 && n->args[out->buffer].var && form_of(n, out);
}
