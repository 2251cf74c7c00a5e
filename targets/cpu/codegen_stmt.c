/* codegen_stmt.c: statements: blocks, loops, conditions and checks. */
#include <string.h>

#include "targets/cpu/codegen.h"

#define LONG_STORE 20 /* operations: a function of a number is as many */

LLVMBasicBlockRef new_block(struct codegen *c, const char *name) { return LLVMAppendBasicBlockInContext(c->m->context, c->function, name); }

value emit_alloca(struct codegen *c, LLVMTypeRef type, const char *name) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(c->b);
  value first = LLVMGetFirstInstruction(c->entry);
  if (first)
    LLVMPositionBuilderBefore(c->b, first);
  else
    LLVMPositionBuilderAtEnd(c->b, c->entry);
  value a = LLVMBuildAlloca(c->b, type, name);
  LLVMPositionBuilderAtEnd(c->b, here);
  return a;
}

/* Written with the test at the end and a guard before it, the form that LLVM's loop passes want. */
struct counted_loop loop_begin(struct codegen *c, value begin, value end, value step) {
  struct counted_loop loop = {.head = new_block(c, "loop"), .exit = new_block(c, "done"), .end = end, .step = step};
  LLVMBasicBlockRef before = LLVMGetInsertBlock(c->b);
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, begin, end, ""), loop.head, loop.exit);
  LLVMPositionBuilderAtEnd(c->b, loop.head);
  loop.index = LLVMBuildPhi(c->b, c->m->i64, "i");
  LLVMAddIncoming(loop.index, &begin, &before, 1);
  c->generation++;
  return loop;
}
void loop_end(struct codegen *c, struct counted_loop *loop) {
  value next = LLVMBuildNSWAdd(c->b, loop->index, loop->step, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(c->b);
  LLVMAddIncoming(loop->index, &next, &latch, 1);
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, next, loop->end, ""), loop->head, loop->exit);
  LLVMPositionBuilderAtEnd(c->b, loop->exit);
  c->generation++;
}

static void emit_var(struct codegen *c, const struct stmt *s) {
  struct local_slot *slot = &c->locals[s->local];
  uint32_t copies = slot->jammed ? c->copies : 1;
  slot->in_memory = true;
  slot->type = type_widened(type_of_dtype(c->m, c->k->locals.items[s->local].dtype), slot->varying ? c->lanes : 1);
  for (c->copy = 0; c->copy < copies; c->copy++) {
    slot->at[c->copy] = emit_alloca(c, slot->type, "var");
    value v = emit_expr(c, s->value);
    LLVMBuildStore(c->b, slot->varying ? splat(c, v, c->lanes) : v, slot->at[c->copy]);
  }
  c->copy = 0;
}

static void emit_set(struct codegen *c, const struct stmt *s) {
  struct local_slot *slot = &c->locals[s->local];
  uint32_t copies = slot->jammed ? c->copies : 1;
  for (c->copy = 0; c->copy < copies; c->copy++) {
    value v = emit_expr(c, s->value), at = slot->at[c->copy];
    if (slot->varying) {
      v = splat(c, v, c->lanes);
      if (c->set_mask)
        v = LLVMBuildSelect(c->b, c->set_mask, v, LLVMBuildLoad2(c->b, slot->type, at, ""), "");
    }
    LLVMBuildStore(c->b, v, at);
  }
  c->copy = 0;
}

static bool store_uses(struct codegen *c, const struct stmt *s, uint32_t local) {
  bool uses = expr_uses_local(c, s->value, local);
  for (int i = 0; i < s->index_count && !uses; i++)
    uses = expr_uses_local(c, s->index[i], local);
  return uses;
}

/* A long computation is written once for all copies, as a loop over them: what differs from copy to copy waits in arrays on the stack.
 * Written out for each, what a step does little of would be most of the code. */
static void emit_rolled_stores(struct codegen *c, const struct stmt *s) {
  uint32_t copies = c->copies, count = c->k->locals.count;
  struct local_slot *saved = arena_copy(&c->m->arena, c->locals, sizeof *saved * count);
  value *arrays = ARENA_ARRAY(&c->m->arena, value, count + 1);
  LLVMTypeRef *types = ARENA_ARRAY(&c->m->arena, LLVMTypeRef, count + 1);
  for (uint32_t l = 0; l < count; l++) {
    const struct local_slot *slot = &c->locals[l];
    if (!slot->jammed || !store_uses(c, s, l))
      continue;
    types[l] = slot->in_memory ? slot->type : c->m->i64;
    arrays[l] = emit_alloca(c, LLVMArrayType2(types[l], copies), "copies");
    for (uint32_t i = 0; i < copies; i++) {
      value at = const_i64(c, i), v = slot->in_memory ? LLVMBuildLoad2(c->b, slot->type, slot->at[i], "") : slot->at[i];
      LLVMBuildStore(c->b, v, LLVMBuildInBoundsGEP2(c->b, types[l], arrays[l], &at, 1, ""));
    }
  }
  struct counted_loop loop = loop_begin(c, const_i64(c, 0), const_i64(c, copies), const_i64(c, 1));
  value copy = LLVMBuildNSWSub(c->b, const_i64(c, copies - 1), loop.index, "");
  for (uint32_t l = 0; l < count; l++) {
    c->locals[l].jammed = false;
    if (!arrays[l])
      continue;
    value at = LLVMBuildInBoundsGEP2(c->b, types[l], arrays[l], &copy, 1, "");
    c->locals[l].at[0] = c->locals[l].in_memory ? at : LLVMBuildLoad2(c->b, types[l], at, "");
  }
  c->copies = 1;
  codegen_flags(c);
  emit_store(c, s);
  memcpy(c->locals, saved, sizeof *saved * count);
  c->copies = copies;
  codegen_flags(c);
  loop_end(c, &loop);
}

static void emit_stores(struct codegen *c, const struct stmt *s) {
  if (c->copies > 1 && c->lanes > 1 && stmt_operations(&c->costs, s) > LONG_STORE) {
    emit_rolled_stores(c, s);
    return;
  }
  for (c->copy = 0; c->copy < c->copies; c->copy++)
    emit_store(c, s);
  c->copy = 0;
}

/* Both branches, each for its lanes. */
static void emit_masked_if(struct codegen *c, const struct stmt *s, value condition) {
  value outer = c->mask, outer_set = c->set_mask, inverse = LLVMBuildNot(c->b, condition, "");
  c->mask = c->set_mask = outer ? LLVMBuildAnd(c->b, outer, condition, "") : condition;
  emit_block(c, s->body);
  c->mask = c->set_mask = outer ? LLVMBuildAnd(c->b, outer, inverse, "") : inverse;
  emit_block(c, s->otherwise);
  c->mask = outer;
  c->set_mask = outer_set;
}

static void emit_if(struct codegen *c, const struct stmt *s) {
  value condition = emit_expr(c, s->value);
  if (is_wide(condition)) {
    emit_masked_if(c, s, condition);
    return;
  }
  if (LLVMIsAConstantInt(condition)) { /* as at the edges of an unrolled loop: blocks would hide equal loads from each other */
    emit_block(c, LLVMConstIntGetZExtValue(condition) ? s->body : s->otherwise);
    return;
  }
  LLVMBasicBlockRef then = new_block(c, "then"), otherwise = new_block(c, "else"), done = new_block(c, "endif");
  LLVMBuildCondBr(c->b, condition, then, otherwise);
  LLVMPositionBuilderAtEnd(c->b, then);
  emit_block(c, s->body);
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, otherwise);
  emit_block(c, s->otherwise);
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, done);
}

/* Among lanes: as long as one of them goes on; the others wait. */
static void emit_while(struct codegen *c, const struct stmt *s) {
  LLVMBasicBlockRef test = new_block(c, "test"), body = new_block(c, "while"), done = new_block(c, "endwhile");
  value outer = c->mask, outer_set = c->set_mask;
  LLVMBuildBr(c->b, test);
  LLVMPositionBuilderAtEnd(c->b, test);
  c->generation++;
  value condition = emit_expr(c, s->value), any = condition;
  if (is_wide(condition)) {
    c->mask = c->set_mask = outer ? LLVMBuildAnd(c->b, outer, condition, "") : condition;
    any = call_intrinsic(c, "llvm.vector.reduce.or", LLVMTypeOf(c->mask), &c->mask, 1);
  }
  LLVMBuildCondBr(c->b, any, body, done);
  LLVMPositionBuilderAtEnd(c->b, body);
  emit_block(c, s->body);
  LLVMBuildBr(c->b, test);
  LLVMPositionBuilderAtEnd(c->b, done);
  c->mask = outer;
  c->set_mask = outer_set;
}

static value text_constant(struct codegen *c, const char *text) {
  value data = LLVMConstStringInContext(c->m->context, text, (unsigned)strlen(text), false);
  value global = LLVMAddGlobal(c->m->module, LLVMTypeOf(data), "text");
  LLVMSetInitializer(global, data);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  LLVMSetGlobalConstant(global, true);
  LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
  return global;
}

/* Only the first fault of a call is kept: whoever turns the code from 0 fills in the rest. Readers wait for the tiles. */
static void record_fault(struct codegen *c, const struct stmt *s) {
  struct cpu_module *m = c->m;
  value zero = LLVMConstInt(m->i32, 0, false), code = LLVMConstInt(m->i32, (uint64_t)s->code, false);
  value words[1 + STATUS_SHOWN] = {text_constant(c, s->text ? s->text : "")};
  for (int i = 0; i < STATUS_SHOWN; i++)
    words[1 + i] = s->shown[i] == NO_EXPR ? const_i64(c, 0) : emit_expr(c, s->shown[i]);
  value pair = LLVMBuildAtomicCmpXchg(c->b, c->fault, zero, code, LLVMAtomicOrderingAcquireRelease, LLVMAtomicOrderingAcquire, false);
  LLVMBasicBlockRef first = new_block(c, "first"), leave = new_block(c, "leave");
  LLVMBuildCondBr(c->b, LLVMBuildExtractValue(c->b, pair, 1, ""), first, leave);
  LLVMPositionBuilderAtEnd(c->b, first);
  for (int i = 0; i < 1 + STATUS_SHOWN; i++) {
    value offset = const_i64(c, 8 + 8 * i);
    LLVMBuildStore(c->b, words[i], LLVMBuildGEP2(c->b, m->i8, c->fault, &offset, 1, ""));
  }
  LLVMBuildBr(c->b, leave);
  LLVMPositionBuilderAtEnd(c->b, leave);
  LLVMBuildRetVoid(c->b);
}

static void emit_check(struct codegen *c, const struct stmt *s) {
  LLVMBasicBlockRef good = new_block(c, "holds"), bad = c->bail;
  value holds = emit_expr(c, s->value);
  if (is_wide(holds)) {
    if (c->mask)
      holds = LLVMBuildOr(c->b, holds, LLVMBuildNot(c->b, c->mask, ""), "");
    holds = call_intrinsic(c, "llvm.vector.reduce.and", LLVMTypeOf(holds), &holds, 1);
  }
  if (!bad || c->lanes <= 1)
    bad = new_block(c, "fault");
  LLVMBuildCondBr(c->b, holds, good, bad);
  if (bad != c->bail || c->lanes <= 1) {
    LLVMPositionBuilderAtEnd(c->b, bad);
    record_fault(c, s);
  }
  LLVMPositionBuilderAtEnd(c->b, good);
}

static void emit_stmt(struct codegen *c, const struct stmt *s) {
  switch (s->kind) {
  case STMT_FOR: emit_for(c, s); break;
  case STMT_VAR: emit_var(c, s); break;
  case STMT_SET: emit_set(c, s); break;
  case STMT_STORE: emit_stores(c, s); break;
  case STMT_IF: emit_if(c, s); break;
  case STMT_WHILE: emit_while(c, s); break;
  case STMT_CHECK: emit_check(c, s); break;
  case STMT_BUFFER: emit_buffer(c, s); break;
  case STMT_FETCH: emit_fetch(c, s); break;
  }
}

void emit_block(struct codegen *c, const struct stmt *s) { emit_statements(c, s, NULL); }

/* Values of one statement must not be used by the next: a set or store between them may have changed what they read. */
void emit_statements(struct codegen *c, const struct stmt *s, const struct stmt *end) {
  for (; s != end; s = s->next) {
    c->generation++;
    if (s->next != end && emit_store_of_parts(c, s, s->next))
      s = s->next;
    else
      emit_stmt(c, s);
  }
  c->generation++;
}
