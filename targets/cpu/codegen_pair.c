/* codegen_pair.c: two products of bfloat16, and a sum of float32 that both are added to, as one instruction (AVX512_BF16's vdpbf16ps). It
 * adds the second product first, each rounded once: that is what the text says where this is used, fma(a0, b0, fma(a1, b1, sum)). The two
 * elements of a factor lie side by side, of all lanes or of each one, and are loaded as a word. */
#include <string.h>

#include "ir/kernel/contraction.h"
#include "targets/cpu/codegen.h"

/* Whether `next` is e + 1: two constants, or sums that differ in one such part. */
static bool is_next(const struct kernel *k, expr_id e, expr_id next) {
  int64_t at, after;
  if (expr_is_const(k, e, &at) && expr_is_const(k, next, &after))
    return after == at + 1;
  if (expr_get(k, next)->op != SCALAR_ADD)
    return false;
  expr_id a = expr_operand(k, next, 0), b = expr_operand(k, next, 1);
  if (a == e && expr_is_const(k, b, &after) && after == 1)
    return true;
  bool is_sum = expr_get(k, e)->op == SCALAR_ADD;
  return is_sum && ((expr_operand(k, e, 0) == a && is_next(k, expr_operand(k, e, 1), b)) ||
                    (expr_operand(k, e, 1) == b && is_next(k, expr_operand(k, e, 0), a)));
}

/* The bfloat16 element in memory that e is the value of; NULL: it is none. */
static const struct expr *element_of(const struct codegen *c, expr_id e) {
  const struct expr *x = expr_get(c->k, e);
  if (x->op != SCALAR_CAST)
    return NULL;
  x = expr_get(c->k, expr_operand(c->k, e, 0));
  return x->op == SCALAR_LOAD && x->dtype == DTYPE_BFLOAT16 && !is_register_access(c, (uint32_t)x->imm) ? x : NULL;
}
static const expr_id *index_of(const struct codegen *c, const struct expr *load) { return &c->k->operands.items[load->first]; }
/* Whether the second element lies behind the first one. */
static bool lie_side_by_side(const struct codegen *c, const struct expr *first, const struct expr *second) {
  if (!first || !second || first->imm != second->imm || first->count == 0)
    return false;
  int last = first->count - 1;
  for (int d = 0; d < last; d++)
    if (index_of(c, first)[d] != index_of(c, second)[d])
      return false;
  return is_next(c->k, index_of(c, first)[last], index_of(c, second)[last]);
}
/* Whether the pairs of the lanes lie side by side, unless they are all the same. */
static bool are_words(const struct codegen *c, const struct expr *first) {
  int64_t stride = lane_stride(&c->view, (uint32_t)first->imm, index_of(c, first));
  return stride == 0 || stride == 2;
}

static const char *instruction_for(uint32_t lanes) {
  return lanes == 16 ? "llvm.x86.avx512bf16.dpbf16ps.512"
       : lanes == 8  ? "llvm.x86.avx512bf16.dpbf16ps.256"
       : lanes == 4  ? "llvm.x86.avx512bf16.dpbf16ps.128"
                     : NULL;
}
static value load_words(struct codegen *c, const struct expr *first) {
  uint32_t buffer = (uint32_t)first->imm;
  int64_t stride = lane_stride(&c->view, buffer, index_of(c, first));
  value word = emit_word_load(c, buffer, index_of(c, first), stride == 0);
  return LLVMBuildBitCast(c->b, splat(c, word, c->lanes), LLVMVectorType(LLVMBFloatTypeInContext(c->m->context), 2 * c->lanes), "");
}

bool find_pair(const struct codegen *c, expr_id e, struct pair *out) {
  const struct kernel *k = c->k;
  if (c->m->cpu->pair_rate == 0 || expr_get(k, e)->op != SCALAR_FMA || expr_get(k, e)->dtype != DTYPE_FLOAT)
    return false;
  expr_id inner = expr_operand(k, e, 2);
  bool is_pair = expr_get(k, inner)->op == SCALAR_FMA;
  for (int f = 0; f < FACTORS && is_pair; f++) {
    out->first[f] = element_of(c, expr_operand(k, e, f));
    is_pair = lie_side_by_side(c, out->first[f], element_of(c, expr_operand(k, inner, f)));
  }
  out->sum = is_pair ? expr_operand(k, inner, 2) : NO_EXPR;
  return is_pair;
}
value emit_pair(struct codegen *c, expr_id e) {
  const char *name = instruction_for(c->lanes);
  struct pair p;
  if (!name || !find_pair(c, e, &p) || !are_words(c, p.first[0]) || !are_words(c, p.first[1]))
    return NULL;
  value sum = splat(c, emit_expr(c, p.sum), c->lanes);
  value f = LLVMGetIntrinsicDeclaration(c->m->module, LLVMLookupIntrinsicID(name, strlen(name)), NULL, 0);
  value args[3] = {sum, load_words(c, p.first[0]), load_words(c, p.first[1])};
  return LLVMBuildCall2(c->b, LLVMGlobalGetValueType(f), f, args, 3, "");
}
