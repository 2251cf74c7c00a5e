/* codegen.h: what the files of the CPU target share: one LLVM module, and the state of the function being written.
 *
 * A kernel becomes one internal function for each phase, with the buffers as noalias arguments, and two small ones with
 * the signatures of runtime/program/program.h. Loops are written as they are marked (ir/kernel/kernel.h), and nothing is chosen here: the
 * iterations of one become the lanes of vectors ("lanes"), and a second one may run together with it so that loads are shared ("copies").
 * An expression's value is then a vector where it varies with the lane, and a scalar where it does not.
 *
 * Types of values: bool i1, bfloat16 i16 (its bits), half LLVM's half, strings {ptr, i64}; the rest as expected.
 */
#ifndef TFC_TARGETS_CPU_CODEGEN_H
#define TFC_TARGETS_CPU_CODEGEN_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include "base/arena.h"
#include "ir/kernel/kernel.h"
#include "ir/kernel/kernel_lanes.h"
#include "ir/kernel/kernel_nests.h"
#include "ir/schedule/cost.h"
#include "ir/schedule/vectors.h"
#include "targets/target.h"

typedef LLVMValueRef value;

#define COPIES_MAX TOGETHER_MAX
#define PHASES_MAX NESTS_MAX

struct cpu_module {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMTargetMachineRef machine;
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, none, string;
  const struct machine *cpu;
  enum math_mode math;
  bool has_fma;       /* a multiply-add may round once */
  const char *suffix; /* of the names of functions: "" or "_N" of variant N */
  struct arena arena;
};

/* A local of the kernel: a loop variable is a value, a var lives in an alloca that LLVM promotes. */
struct local_slot {
  value at[COPIES_MAX];
  LLVMTypeRef type;
  bool in_memory;
  bool varying; /* differs from lane to lane */
  bool jammed;  /* differs from copy to copy */
};

/* How many of the iterations of a loop over lanes there are. */
enum lane_extent { EXTENT_OPEN, EXTENT_WHOLE, EXTENT_PART, EXTENT_NONE };
/* A buffer in registers: see codegen_registers.c. */
struct register_block {
  bool is_vector;   /* some loop over lanes runs along its last dimension */
  uint32_t lanes;   /* of each register: 1, or a vector's */
  uint32_t row;     /* registers along the last dimension */
  LLVMTypeRef type; /* of each */
  uint32_t count;
  value *at;    /* allocas */
  value rolled; /* an array of their values in memory, while a loop over them runs; or NULL */
};

struct memo {
  value at[COPIES_MAX];
  uint32_t generation;
};

struct codegen {
  struct cpu_module *m;
  const struct kernel *k;
  LLVMBuilderRef b;
  value function;
  LLVMBasicBlockRef entry; /* allocas go here */
  value *buffers, *sizes;
  value fault; /* struct kernel_fault * */
  struct local_slot *locals;
  /* lanes */
  uint32_t lanes;         /* 1: scalar code */
  value lane_base;        /* its value in lane 0 */
  value mask;             /* <lanes x i1>, or i1 under a condition; NULL: all lanes */
  value set_mask;         /* the same for locals: lanes beyond the end of a par loop may hold anything there */
  LLVMBasicBlockRef bail; /* where a check that fails in some lane goes: scalar code that finds which; or NULL */
  uint32_t copies, copy;  /* copies being written, the one at hand */
  /* scheduled nests: codegen_scheduled.c, codegen_registers.c */
  bool in_rolled;                   /* a loop that was to be unrolled runs over registers in memory */
  struct register_block *registers; /* by buffer */
  uint32_t *lane_widths;            /* by local: of a loop over lanes; else 0 */
  struct {
    expr_id extent; /* of loops over lanes of this width; or NO_EXPR */
    int32_t width;
    enum lane_extent as;
  } known;
  struct memo *memo[2]; /* by expression; [1]: as part of an address, at lane 0, without wrapping */
  uint32_t generation;
  struct kernel_uses uses;
  struct lane_view view; /* of what is being written; of its locals as `locals` says */
  struct vector_costs costs;
};

/* codegen_scalar.c */
LLVMTypeRef type_of_dtype(struct cpu_module *m, enum dtype dtype);  /* of values */
LLVMTypeRef type_in_memory(struct cpu_module *m, enum dtype dtype); /* of elements; a part of complex ones */
LLVMTypeRef type_widened(LLVMTypeRef type, uint32_t lanes);
bool is_wide(value v);
value const_i64(struct codegen *c, int64_t v);
value const_of(struct codegen *c, enum dtype dtype, int64_t bits); /* as in struct expr; codegen_access.c */
value const_like(value like, double v);                            /* a float constant of the same type, splat */
value const_int_like(value like, int64_t v);
value splat(struct codegen *c, value v, uint32_t lanes);
void match_width(struct codegen *c, value *v, int count); /* widens scalars where one is a vector */
value call_intrinsic(struct codegen *c, const char *name, LLVMTypeRef type, value *args, int count);
value call_libm(struct codegen *c, const char *name, value *args, int count);
/* The quotient or remainder of numbers that are not negative; narrow: they fit 31 bits. */
value emit_index_division(struct codegen *c, bool remainder, bool narrow, value a, value b);
/* An operation on values of the dtypes `in`. */
value emit_scalar(struct codegen *c, enum scalar_op op, enum dtype dtype, enum dtype in, value *v);
/* codegen_cast.c */
value emit_cast(struct codegen *c, enum dtype to, enum dtype from, value v);
value float_of(struct codegen *c, enum dtype dtype, value v);   /* half and bfloat16 to float */
value rounded_to(struct codegen *c, enum dtype dtype, value v); /* float to half and bfloat16 */
/* codegen_math.c: functions of float32, and exp, log and tanh of float64, written out; NULL when there is none for the operation. */
value emit_math(struct codegen *c, enum scalar_op op, value *v);
bool has_math(const struct codegen *c, enum scalar_op op, enum dtype dtype);

static inline bool expr_uses_local(const struct codegen *c, expr_id e, uint32_t local) { return uses_local(&c->uses, e, local); }
static inline bool expr_loads_from(const struct codegen *c, expr_id e, uint32_t buffer) { return uses_buffer(&c->uses, e, buffer); }
static inline bool expr_loads(const struct codegen *c, expr_id e) { return uses_loads(&c->uses, e); }
static inline bool expr_of_sizes(const struct codegen *c, expr_id e) { return uses_only_sizes(&c->uses, e); }

/* codegen_access.c */
void codegen_flags(struct codegen *c); /* recomputes the view after locals, lanes or copies have changed */
value emit_expr(struct codegen *c, expr_id e);
void take_for(struct codegen *c, expr_id e, value v); /* for the expression's value, in this statement */
void emit_store(struct codegen *c, const struct stmt *s);
void emit_store_value(struct codegen *c, const struct stmt *s, value v); /* v in place of the statement's own value */
/* Both parts of complex elements at once, where the statements store them and the elements lie side by side; else false, and nothing. */
bool emit_store_of_parts(struct codegen *c, const struct stmt *s, const struct stmt *other);
/* The two turns of an unrolled loop as one store, where elements of all lanes and turns lie side by side; else false, and nothing. */
bool emit_store_of_turns(struct codegen *c, const struct stmt *loop);
/* Two elements side by side as one integer, of each lane or of all: those lie two elements apart. */
void emit_word_store(struct codegen *c, const struct stmt *s, value words); /* for all lanes, whose elements lie so */
value emit_word_load(struct codegen *c, uint32_t buffer, const expr_id *index, bool is_same);
value fetch_address(struct codegen *c, uint32_t buffer, const expr_id *index); /* may lie outside the buffer */
void emit_hint(struct codegen *c, value address);                              /* its line is soon read */
value buffer_dim(struct codegen *c, kernel_dim dim);

value call_masked(struct codegen *c, const char *name, LLVMTypeRef types[2], value *args, int count);

/* codegen_strided.c: lanes at a stride of -2, -1 or 2 elements, of which `parts` each are accessed; address: of lane 0 */
struct stride {
  int32_t lanes;
  uint32_t parts;
};
value emit_strided_load(struct codegen *c, LLVMTypeRef element, value address, uint32_t align, struct stride s, uint32_t part);
void emit_strided_store(struct codegen *c, LLVMTypeRef element, value address, uint32_t align, struct stride s, const value *parts);

/* codegen_lanes.c: loops that are marked as vectors */
/* How a marked loop is written; trips: of it, where it is several that run as one. */
struct vector_plan vectors_plan(struct codegen *c, const struct stmt *loop, double trips);
/* Iterations begin .. end-1 of the loop; exact: their number is a multiple of the lanes. */
void emit_vectors(struct codegen *c, const struct stmt *loop, value begin, value end, const struct vector_plan *plan, bool exact);
/* One of vectors, or one that sums up over one of vectors alone. False: it is none, and nothing was written. */
bool emit_for_vectors(struct codegen *c, const struct stmt *s);
/* From here on the loop's iterations are lanes (lane_base and mask are the caller's), for the locals of body too; and back. */
void lanes_enter(struct codegen *c, uint32_t local, uint32_t lanes, const struct stmt *body);
void lanes_leave(struct codegen *c, uint32_t local, const struct stmt *body);
value mask_of(struct codegen *c, value base, value end, uint32_t lanes); /* the lanes from base on that are before end */

/* codegen_stmt.c */
void emit_block(struct codegen *c, const struct stmt *s);
void emit_statements(struct codegen *c, const struct stmt *s, const struct stmt *end); /* s up to end, without it */
value emit_alloca(struct codegen *c, LLVMTypeRef type, const char *name);
LLVMBasicBlockRef new_block(struct codegen *c, const char *name);
/* for (i = begin; i < end; i += step): leaves the builder in the body; loop_end closes it. */
struct counted_loop {
  LLVMBasicBlockRef head, exit;
  value index, step, end;
};
struct counted_loop loop_begin(struct codegen *c, value begin, value end, value step);
void loop_end(struct codegen *c, struct counted_loop *loop);

/* codegen_pair.c: a multiply-add of another one's result that the machine has an instruction for, where lanes fit */
struct pair {
  const struct expr *first[2]; /* of each factor: the load of the first term's element */
  expr_id sum;                 /* that both are added to */
};
bool find_pair(const struct codegen *c, expr_id e, struct pair *out);
value emit_pair(struct codegen *c, expr_id e); /* NULL: it is none */
/* codegen_square.c: an unrolled loop around one over lanes, all of which are there, that stores a square of what is read transposed */
bool is_square_copy(struct codegen *c, const struct stmt *rows);
void emit_square_copy(struct codegen *c, const struct stmt *rows);
/* codegen_registers.c */
void codegen_registers(struct codegen *c); /* to be called once, before the others */
bool is_register_access(const struct codegen *c, uint32_t buffer);
void emit_buffer(struct codegen *c, const struct stmt *s); /* STMT_BUFFER */
value emit_register_load(struct codegen *c, uint32_t buffer, const expr_id *index);
void emit_register_store(struct codegen *c, const struct stmt *s, value v);
/* Blocks that body loads from are read from memory until registers_from_memory, by any index. */
void registers_to_memory(struct codegen *c, const struct stmt *body);
void registers_from_memory(struct codegen *c);

/* codegen_phase.c: a kernel is cut into phases, each with its tiles. */
struct phase {
  struct kernel_nest nest; /* its chain's iterations are the tile space; is_serial: `body` is all of the kernel's */
  bool is_serial;          /* one tile that runs everything */
  bool has_lanes;          /* the last group is of vectors */
  struct vector_plan plan;
  uint32_t copies; /* > 1: that many iterations of the last group but one are run together */
};
int kernel_phases(struct codegen *c, struct phase *out); /* at most PHASES_MAX */
/* In a function with the sizes at hand, as are those of codegen_cost.c. */
value emit_phase_condition(struct codegen *c, const struct phase *phase); /* i1: whether it has tiles */
void emit_phase_tiles(struct codegen *c, const struct phase *phase, value begin, value end);
/* codegen_cost.c */
value emit_loop_extent(struct codegen *c, const struct phase *p, int loop);
value emit_phase_units(struct codegen *c, const struct phase *p, int loop); /* what is counted of a loop: iterations, or blocks of them */
value emit_phase_elements(struct codegen *c, const struct phase *p);        /* units of all loops */
int64_t phase_chunk(const struct phase *p);                                 /* iterations of the last loop in a unit of copies */
bool phase_has_whole_tiles(const struct phase *p);                          /* tiles of plain loops begin at whole vectors */
value emit_phase_cost(struct codegen *c, const struct phase *phase);        /* nanoseconds, double */
value emit_phase_grain(struct codegen *c, const struct phase *phase);       /* elements in a tile */
value emit_phase_tile_count(struct codegen *c, const struct phase *phase);

void set_phase_loop(struct codegen *c, const struct phase *p, int loop, value index);

/* codegen_scheduled.c */
uint32_t vector_lanes(const struct codegen *c, int64_t width);   /* of the vectors that a loop over lanes is written in */
void emit_for(struct codegen *c, const struct stmt *s);          /* STMT_FOR */
void emit_fetch(struct codegen *c, const struct stmt *s);        /* STMT_FETCH */
value emit_task_count(struct codegen *c, const struct phase *p); /* iterations of the loops of tasks */
void emit_scheduled_tiles(struct codegen *c, const struct phase *p, value begin, value end);

/* codegen_kernel.c */
value emit_buffer_bytes(struct codegen *c, const struct kernel_buffer *b); /* in whole lines of the cache */
/* Writes the kernel's functions; out gets the pair for tfc_kernels. */
void emit_kernel(struct cpu_module *m, const struct kernel *k, value out[2]);

#endif
