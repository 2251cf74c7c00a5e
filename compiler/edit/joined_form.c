/* joined_form.c: see joined_form.h. Each part is a nest at the top that copies a whole value. */
#include "compiler/edit/joined_form.h"

#include <string.h>

/* One nest: loops over all of the value, a copy of its element to the same place but for one dimension. */
static bool find_part(const struct flow_node *n, const struct stmt *s, uint32_t out, struct joined *j) {
  const struct kernel *k = n->kernel;
  const struct stmt *loops[LIMIT_RANK];
  int rank = 0;
  for (; s && s->kind == STMT_FOR && s->loop == LOOP_PAR && rank < LIMIT_RANK && !(rank && s->next); s = s->body)
    loops[rank++] = s;
  if (!s || s->kind != STMT_STORE || s->next || s->buffer != out || s->index_count != rank || j->count == JOINED_PARTS)
    return false;
  const struct expr *x = expr_get(k, s->value);
  if (x->op != SCALAR_LOAD || x->part || x->count != rank || k->buffers.items[x->imm].mode != BUFFER_IN || n->args[x->imm].var)
    return false;
  const struct kernel_buffer *from = &k->buffers.items[x->imm], *to = &k->buffers.items[out];
  struct joined_part part = {.value = n->args[x->imm].value, .count = -1};
  for (int d = 0; d < rank; d++) {
    int64_t extent, offset;
    if (!expr_is_local(k, expr_operand(k, s->value, d), loops[d]->local) || !expr_is_local_from(k, s->index[d], loops[d]->local, &offset) ||
        !expr_is_const(k, loops[d]->value, &extent) || extent != from->dims[d])
      return false;
    if (from->dims[d] == to->dims[d] && offset == 0)
      continue;
    if (part.count >= 0 || (j->count && j->dim != d))
      return false;
    j->dim = d;
    part.from = offset;
    part.count = from->dims[d];
  }
  j->parts[j->count++] = part;
  return part.count > 0;
}

static bool are_whole(const struct kernel *k, uint32_t out, const struct joined *j) {
  int64_t at = 0;
  for (int i = 0; i < j->count; i++) {
    if (j->parts[i].from != at)
      return false;
    at += j->parts[i].count;
  }
  return j->count >= 2 && at == k->buffers.items[out].dims[j->dim];
}

bool joined_form(const struct flow_node *n, struct joined *j) {
  memset(j, 0, sizeof *j);
  if (!n || n->op != FLOW_KERNEL || n->stateful || n->outputs.count != 1 || n->kernel->size_count)
    return false;
  uint32_t out = 0;
  while (out < n->kernel->buffers.count && n->args[out].value != n->outputs.items[0])
    out++;
  for (const struct stmt *s = n->kernel->body; s; s = s->next)
    if (!find_part(n, s, out, j))
      return false;
  return are_whole(n->kernel, out, j);
}
