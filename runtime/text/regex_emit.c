/* regex_emit.c: code of a pattern's tree. Repeats with counts are copies of their code, so their product is bounded. */
#include <stdlib.h>

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

/* ---- what is known of the text before it is run ---- */

static void note_ascii(struct regex *r) {
  for (uint32_t s = 0; s < r->sets.count; s++)
    for (int code = 0; code < ASCII_CODES; code++)
      if (set_has_range(r, s, code))
        r->sets.items[s].ascii[code / 8] |= (uint8_t)(1 << code % 8);
}
static void begin_with(struct regex *r, int from, int to) {
  for (int byte = from; byte < to; byte++)
    r->begins[byte] = true;
}
/* With which bytes a match may begin, from instruction pc on, by what takes no character. */
static void note_begins(struct regex *r, uint32_t pc, bool *seen) {
  while (!seen[pc]) {
    const struct regex_instr *instr = &r->code.items[pc];
    seen[pc] = true;
    switch (instr->op) {
    case REGEX_JUMP: pc = instr->a; break;
    case REGEX_SPLIT:
      note_begins(r, instr->a, seen);
      pc = instr->b;
      break;
    case REGEX_SAVE:
    case REGEX_ASSERT: pc++; break;
    case REGEX_SET:
      for (int code = 0; code < ASCII_CODES; code++)
        r->begins[code] = r->begins[code] || r->sets.items[instr->a].ascii[code / 8] >> code % 8 & 1;
      begin_with(r, ASCII_CODES, 256);
      return;
    case REGEX_MATCH: begin_with(r, 0, 256); return;
    }
  }
}

status regex_emit(const struct regex_node *nodes, uint32_t root, struct regex *regex) {
  struct emitter e = {nodes, regex};
  emit(regex, REGEX_SAVE, 0, 0);
  TRY(emit_node(&e, root));
  emit(regex, REGEX_SAVE, 1, 0);
  emit(regex, REGEX_MATCH, 0, 0);
  bool *seen = calloc(regex->code.count, sizeof *seen);
  if (!seen)
    return fail(RESOURCE_EXHAUSTED, "no memory to compile a pattern");
  note_ascii(regex);
  note_begins(regex, 0, seen);
  free(seen);
  return OK;
}
