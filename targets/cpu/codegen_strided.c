/* codegen_strided.c: lanes that lie at a short stride, two apart or backwards, as vectors of all elements between the first and the last,
 * of which those at the stride are picked. Elements between them may be another's, and one behind the last may not be there: they are
 * read and written only where they are parts of the same complex elements. */
#include "targets/cpu/codegen.h"

/* Where lane i is among the elements. */
static uint32_t place_of(const struct codegen *c, struct stride s, uint32_t i) {
  return s.lanes < 0 ? (uint32_t)-s.lanes * (c->lanes - 1 - i) : (uint32_t)s.lanes * i;
}
static uint32_t element_count(const struct codegen *c, struct stride s) { return c->lanes * (uint32_t)(s.lanes < 0 ? -s.lanes : s.lanes); }

static value shuffled(struct codegen *c, value a, value b, const uint32_t *places, uint32_t count) {
  value at[2048];
  for (uint32_t i = 0; i < count; i++)
    at[i] = places[i] == UINT32_MAX ? LLVMGetPoison(c->m->i32) : LLVMConstInt(c->m->i32, places[i], false);
  return LLVMBuildShuffleVector(c->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)), LLVMConstVector(at, count), "");
}
/* The elements of lanes that are in the mask, all of them when there is none: those at the stride, and the parts behind them. */
static value element_mask(struct codegen *c, struct stride s) {
  uint32_t places[2048], count = element_count(c, s), none = c->lanes;
  value all = LLVMConstAllOnes(LLVMVectorType(c->m->i1, c->lanes)), nothing = LLVMConstNull(LLVMVectorType(c->m->i1, c->lanes));
  for (uint32_t i = 0; i < count; i++)
    places[i] = none;
  for (uint32_t i = 0; i < c->lanes; i++)
    for (uint32_t part = 0; part < s.parts; part++)
      places[place_of(c, s, i) + part] = i;
  return shuffled(c, c->mask ? c->mask : all, nothing, places, count);
}
/* The address of the first element from that of lane 0; of lanes that the mask leaves out it may lie in front of the buffer. */
static value first_address(struct codegen *c, struct stride s, LLVMTypeRef element, value address) {
  value back = const_i64(c, -(int64_t)place_of(c, s, 0));
  return s.lanes < 0 ? LLVMBuildGEP2(c->b, element, address, &back, 1, "") : address;
}

value emit_strided_load(struct codegen *c, LLVMTypeRef element, value address, uint32_t align, struct stride s, uint32_t part) {
  uint32_t places[1024], count = element_count(c, s);
  LLVMTypeRef wide = LLVMVectorType(element, count);
  bool is_whole = !c->mask && count == c->lanes * s.parts;
  address = first_address(c, s, element, address);
  value v;
  if (is_whole) {
    v = LLVMBuildLoad2(c->b, wide, address, "");
    LLVMSetAlignment(v, align);
  } else {
    value args[4] = {address, LLVMConstInt(c->m->i32, align, false), element_mask(c, s), LLVMConstNull(wide)};
    v = call_masked(c, "llvm.masked.load", (LLVMTypeRef[]){wide, LLVMTypeOf(address)}, args, 4);
  }
  for (uint32_t i = 0; i < c->lanes; i++)
    places[i] = place_of(c, s, i) + part;
  return shuffled(c, v, NULL, places, c->lanes);
}

void emit_strided_store(struct codegen *c, LLVMTypeRef element, value address, uint32_t align, struct stride s, const value *parts) {
  uint32_t places[2048], count = element_count(c, s);
  address = first_address(c, s, element, address);
  for (uint32_t i = 0; i < count; i++)
    places[i] = UINT32_MAX;
  for (uint32_t i = 0; i < c->lanes; i++)
    for (uint32_t part = 0; part < s.parts; part++)
      places[place_of(c, s, i) + part] = i + part * c->lanes;
  value v = shuffled(c, parts[0], s.parts > 1 ? parts[1] : NULL, places, count);
  if (!c->mask && count == c->lanes * s.parts) {
    LLVMSetAlignment(LLVMBuildStore(c->b, v, address), align);
    return;
  }
  value args[4] = {v, address, LLVMConstInt(c->m->i32, align, false), element_mask(c, s)};
  call_masked(c, "llvm.masked.store", (LLVMTypeRef[]){LLVMTypeOf(v), LLVMTypeOf(address)}, args, 4);
}
