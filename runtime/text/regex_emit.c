/* regex_emit.c: code of a pattern's tree. Repeats with counts are copies of their code, so their product is bounded. */
#include "runtime/text/regex_tree.h"

#define CODE_MAX 100000 /* instructions */

struct emitter {
  const struct regex_node *nodes;
  struct regex *regex;
};

static uint32_t emit(struct regex *r, enum regex_op op, uint32_t a, uint32_t b) {
  vec_push(&r->code, (struct regex_instr){op, a, b});
  return r->code.count - 1;
}

static void set_split(struct regex *r, uint32_t at, uint32_t stay, uint32_t leave, bool lazy) {
  r->code.items[at].a = lazy ? leave : stay;
  r->code.items[at].b = lazy ? stay : leave;
}

static status emit_node(struct emitter *e, uint32_t node);

static status emit_repeat(struct emitter *e, const struct regex_node *n) {
  struct regex *r = e->regex;
  uint32_t before = r->code.count;
  for (int i = 0; i < n->min; i++) {
    TRY(emit_node(e, n->left));
    if (r->code.count == before)
      return OK; /* nothing, however often */
  }
  if (n->max < 0) {
    uint32_t split = emit(r, REGEX_SPLIT, 0, 0);
    TRY(emit_node(e, n->left));
    emit(r, REGEX_JUMP, split, 0);
    set_split(r, split, split + 1, r->code.count, n->lazy);
    return OK;
  }
  VEC(uint32_t) splits = {0};
  status result = OK;
  for (int i = n->min; i < n->max && result == OK; i++) {
    vec_push(&splits, emit(r, REGEX_SPLIT, 0, 0));
    result = emit_node(e, n->left);
  }
  for (uint32_t i = 0; i < splits.count; i++)
    set_split(r, splits.items[i], splits.items[i] + 1, r->code.count, n->lazy);
  vec_free(&splits);
  return result;
}

/* Sequences lean to the left: walked in a loop, not by recursion. */
static status emit_sequence(struct emitter *e, uint32_t node) {
  VEC(uint32_t) parts = {0};
  while (e->nodes[node].kind == NODE_CAT) {
    vec_push(&parts, e->nodes[node].right);
    node = e->nodes[node].left;
  }
  status result = emit_node(e, node);
  while (parts.count && result == OK)
    result = emit_node(e, parts.items[--parts.count]);
  vec_free(&parts);
  return result;
}

static status emit_alternatives(struct emitter *e, uint32_t node) {
  struct regex *r = e->regex;
  VEC(uint32_t) parts = {0};
  VEC(uint32_t) ends = {0};
  while (e->nodes[node].kind == NODE_ALT) {
    vec_push(&parts, e->nodes[node].right);
    node = e->nodes[node].left;
  }
  vec_push(&parts, node);
  status result = OK;
  while (parts.count && result == OK) {
    bool last = parts.count == 1;
    uint32_t split = last ? 0 : emit(r, REGEX_SPLIT, 0, 0);
    result = emit_node(e, parts.items[--parts.count]);
    if (last)
      break;
    vec_push(&ends, emit(r, REGEX_JUMP, 0, 0));
    set_split(r, split, split + 1, r->code.count, false);
  }
  for (uint32_t i = 0; i < ends.count; i++)
    r->code.items[ends.items[i]].a = r->code.count;
  vec_free(&parts);
  vec_free(&ends);
  return result;
}

static status emit_node(struct emitter *e, uint32_t node) {
  const struct regex_node n = e->nodes[node];
  struct regex *r = e->regex;
  if (r->code.count > CODE_MAX)
    return fail(INVALID_ARGUMENT, "Invalid pattern: pattern too large - compile failed");
  switch (n.kind) {
  case NODE_EMPTY: return OK;
  case NODE_SET: emit(r, REGEX_SET, n.left, 0); return OK;
  case NODE_ASSERT: emit(r, REGEX_ASSERT, n.left, 0); return OK;
  case NODE_CAT: return emit_sequence(e, node);
  case NODE_ALT: return emit_alternatives(e, node);
  case NODE_REPEAT: return emit_repeat(e, &n);
  case NODE_GROUP: break;
  }
  if (n.right < REGEX_GROUPS)
    emit(r, REGEX_SAVE, n.right * 2, 0);
  TRY(emit_node(e, n.left));
  if (n.right < REGEX_GROUPS)
    emit(r, REGEX_SAVE, n.right * 2 + 1, 0);
  return OK;
}

status regex_emit(const struct regex_node *nodes, uint32_t root, struct regex *regex) {
  struct emitter e = {nodes, regex};
  emit(regex, REGEX_SAVE, 0, 0);
  TRY(emit_node(&e, root));
  emit(regex, REGEX_SAVE, 1, 0);
  emit(regex, REGEX_MATCH, 0, 0);
  return OK;
}
