/* kernel.h: the kernel IR: loops over scalar expressions. ir/README.md specifies it with examples.
 *
 * A kernel is a function over buffers (dense, row-major) and sizes (i64 parameters). Its body is a tree of statements:
 *   for   par: iterations independent, any order; red: may be reordered only as the target documents, carries locals by an
 *         associative `set`; seq: in order
 *   var, set   a mutable local scalar        store   one element of a buffer
 *   if, while  structured control            check   reports an error of the user's data and leaves the kernel
 *   buffer     memory until the block ends   fetch   a hint: an element is read soon
 * A scheduled kernel (schedule.h) is a kernel whose loops carry marks of how they run; a mark changes nothing of what they compute.
 * Expressions are a DAG of pure scalar operations (scalars.def), plus const, size, local (a loop variable or a var) and
 * load. An expression is evaluated by the statement that uses it, at that point.
 *
 * Complex buffers are loaded and stored by parts (part 0 real, 1 imaginary, as dtype_real of the buffer's dtype);
 * there are no complex expressions. Half and bfloat16 expressions exist and round after each operation.
 * Strings and handles can be loaded, stored, selected; strings compared.
 *
 * Owner: the arena given to kernel_create. Not safe for two threads at once.
 */
#ifndef TFC_IR_KERNEL_KERNEL_H
#define TFC_IR_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/vec.h"

typedef uint32_t expr_id; /* index into kernel.exprs; 0 is no expression */
#define NO_EXPR 0u

enum scalar_op {
  SCALAR_NONE,  /* exprs[0] */
  SCALAR_CONST, /* imm holds the bits of the value: integers sign- or zero-extended, floats as their own bits */
  SCALAR_SIZE,  /* i64: size parameter number imm */
  SCALAR_LOCAL, /* local number imm: a loop variable (i64) or a var */
  SCALAR_LOAD,  /* buffer number imm at operands[first .. first+count), one i64 for each dimension; `part` of complex */
#define SCALAR(name, ...) SCALAR_##name,
#include "ir/scalars.def"
#undef SCALAR
  SCALAR_OP_COUNT,
};

struct expr {
  uint8_t op;     /* enum scalar_op */
  uint8_t dtype;  /* enum dtype of the result */
  uint8_t part;   /* of a load from a complex buffer: 0 or 1 */
  uint8_t count;  /* operands */
  uint32_t first; /* into kernel.operands */
  int64_t imm;
};

/* A dimension of a buffer: a constant (>= 0), or DIM_OF_SIZE(k): size parameter k */
typedef int64_t kernel_dim;
#define DIM_OF_SIZE(k) (-(int64_t)(k)-1)
#define DIM_IS_SIZE(d) ((d) < 0)
#define SIZE_OF_DIM(d) ((uint32_t)(-(d)-1))

enum buffer_mode {
  BUFFER_IN,      /* read only */
  BUFFER_OUT,     /* undefined at the start, every element stored; may be loaded after it was stored */
  BUFFER_INOUT,   /* updated in place (a variable) */
  BUFFER_SCRATCH, /* private to the kernel, undefined at the start; only in kernels whose body is not one par loop */
  BUFFER_LOCAL,   /* of a block: there from its STMT_BUFFER to the end of the block, undefined at first; no argument: behind all of them */
};
enum space {
  SPACE_ARGUMENT, /* memory that the caller gives */
  SPACE_REGISTER, /* BUFFER_LOCAL: registers; indexed by constants, unrolled loops and, in the last dimension, a loop over lanes */
  SPACE_STACK,    /* BUFFER_LOCAL: memory of the thread that runs the block */
  SPACE_TASK,     /* BUFFER_LOCAL, in no loop: memory of the call, that all its threads share; what one nest stores the next ones load */
};

struct kernel_buffer {
  const char *name; /* a, b, c ... by position; for the text form */
  enum dtype dtype;
  enum buffer_mode mode;
  enum space space;
  int rank;
  kernel_dim *dims; /* rank of them */
};

/* Whether whoever runs the kernel gives its memory: arguments, scratch, and what blocks of the call share. */
static inline bool buffer_is_given(const struct kernel_buffer *b) { return b->mode != BUFFER_LOCAL || b->space == SPACE_TASK; }

enum loop_kind { LOOP_PAR, LOOP_RED, LOOP_SEQ };
/* How a loop runs, in a scheduled kernel. */
enum loop_run {
  RUN_PLAIN,
  RUN_TASKS,   /* par, outermost in the kernel or under an `if` at its top: its iterations are work for threads; a perfect nest of them */
  RUN_LANES,   /* par: side by side in vectors of `width` elements; the extent is a constant up to it, or the minimum of one and any
                 other: lanes from the extent on are masked */
  RUN_UNROLL,  /* a constant extent up to UNROLL_MAX, written out */
  RUN_VECTORS, /* par, or red without an order that matters: of any extent, in vectors of `width` elements one after the other; what is left
                   at the end runs once more under a mask. A red one's sums are split over so many lanes (over all turns of red loops around
                   it that hold nothing else), which are added up in halves */
  RUN_TOGETHER, /* par, in a nest of par at the top, next to its innermost loop of vectors: `width` turns at a time, so that what they load
                   alike is loaded once. Elsewhere plain */
};
#define UNROLL_MAX 32
#define LANES_MAX 1024
#define TOGETHER_MAX 16
enum stmt_kind { STMT_FOR, STMT_VAR, STMT_SET, STMT_STORE, STMT_IF, STMT_WHILE, STMT_CHECK, STMT_BUFFER, STMT_FETCH };

struct stmt {
  enum stmt_kind kind;
  struct stmt *next;           /* the following statement of the same block */
  struct stmt *body;           /* FOR, IF (then), WHILE */
  struct stmt *otherwise;      /* IF */
  enum loop_kind loop;         /* FOR */
  enum loop_run run;           /* FOR */
  int32_t width;               /* FOR in lanes: how many, 1 .. LANES_MAX; vectors: from 2; together: 2 .. TOGETHER_MAX; else 0 */
  uint32_t local;              /* FOR: its variable, runs 0 .. extent-1; VAR, SET */
  expr_id value;               /* FOR: extent (i64; below 1: no iteration); VAR: initial; SET, STORE: the value;
                             IF, WHILE, CHECK: the condition (CHECK: must hold) */
  uint32_t buffer;             /* STORE; BUFFER: the one that begins; FETCH */
  uint8_t part;                /* STORE to a complex buffer */
  uint8_t index_count;         /* STORE, FETCH: the buffer's rank */
  expr_id *index;              /* STORE; FETCH: any i64 values, out of bounds too: then it does nothing */
  status code;                 /* CHECK: reported when the condition is false */
  const char *text;            /* CHECK: may hold up to STATUS_SHOWN %d (i64 values, in order of `shown`) */
  expr_id shown[STATUS_SHOWN]; /* CHECK: i64 values for the text, NO_EXPR when unused */
};

struct kernel_local {
  enum dtype dtype;
  bool is_loop;
  const char *name; /* of a loop variable, unique where it is alive; NULL: by position (i0, i1 ...) */
};

struct kernel {
  struct arena *arena;
  const char *name; /* a C identifier */
  VEC(struct kernel_buffer) buffers;
  uint32_t size_count;
  const double *usual; /* by size, what is taken for one where its value would decide: products of several; NULL: the same for all */
  uint32_t usual_count;
  VEC(struct kernel_local) locals;
  VEC(struct expr) exprs; /* operands come before users; exprs[0] is SCALAR_NONE */
  VEC(expr_id) operands;
  struct stmt *body;
  /* what may be taken for granted while steps for few rows are applied (ir/schedule): this size is below `known_below`; 0: nothing */
  uint32_t known_size;
  int64_t known_below;
  /* hash-consing of expressions, private to kernel.c */
  uint32_t *cons;
  uint32_t cons_size;
};

struct kernel *kernel_create(struct arena *arena, const char *name);
uint32_t kernel_add_buffer(struct kernel *k, enum dtype dtype, enum buffer_mode mode, int rank, const kernel_dim *dims);
bool buffer_has_dims(const struct kernel_buffer *buffer, int rank, const kernel_dim *dims);
/* A buffer of a block; dims are constants. Add it when the kernel has all its arguments and scratch. */
uint32_t kernel_add_block_buffer(struct kernel *k, enum dtype dtype, enum space space, int rank, const kernel_dim *dims);
uint32_t kernel_add_local(struct kernel *k, enum dtype dtype, bool is_loop);
/* Whether a loop variable may have this name: a letter, then letters, digits and _; none that means something else (n0, i0, v0, inf). */
bool kernel_is_loop_name(const char *text);

/* Expressions: equal ones get the same id; constants are folded and neutral elements dropped where that changes no bit. */
expr_id expr_int(struct kernel *k, enum dtype dtype, int64_t value);  /* any integer dtype or bool */
expr_id expr_float(struct kernel *k, enum dtype dtype, double value); /* half, bfloat16, float, double */
expr_id expr_bits(struct kernel *k, enum dtype dtype, int64_t bits);
expr_id expr_size(struct kernel *k, uint32_t size);
expr_id expr_dim(struct kernel *k, kernel_dim dim); /* const or size as an i64 expression */
expr_id expr_local(struct kernel *k, uint32_t local);
expr_id expr_load(struct kernel *k, uint32_t buffer, int part, const expr_id *index, int count);
expr_id expr_unary(struct kernel *k, enum scalar_op op, expr_id a);
expr_id expr_binary(struct kernel *k, enum scalar_op op, expr_id a, expr_id b);
expr_id expr_select(struct kernel *k, expr_id condition, expr_id then, expr_id otherwise);
expr_id expr_cast(struct kernel *k, enum dtype dtype, expr_id a); /* the identity when the dtype is the same */
expr_id expr_bitcast(struct kernel *k, enum dtype dtype, expr_id a);
/* Any operation with its operands; dtype as SCALAR's result column says, `own` for OWN. */
expr_id expr_make(struct kernel *k, enum scalar_op op, enum dtype own, const expr_id *operands, int count);
static inline const struct expr *expr_get(const struct kernel *k, expr_id e) { return &k->exprs.items[e]; }
static inline expr_id expr_operand(const struct kernel *k, expr_id e, int i) {
  return k->operands.items[k->exprs.items[e].first + (uint32_t)i];
}
/* Whether the value of e depends on the local. */
bool expr_reads_local(const struct kernel *k, expr_id e, uint32_t local);
bool expr_is_local(const struct kernel *k, expr_id e, uint32_t local);                     /* that itself */
bool expr_is_local_from(const struct kernel *k, expr_id e, uint32_t local, int64_t *from); /* or that and a constant; *from: it, or 0 */
bool expr_has_load(const struct kernel *k, expr_id e);
/* The value of a constant; false when e is none. Bits as in struct expr. */
bool expr_is_const(const struct kernel *k, expr_id e, int64_t *bits);
double expr_bits_to_double(enum dtype dtype, int64_t bits);
int64_t expr_double_to_bits(enum dtype dtype, double value);

/* Statements; each appends to *tail and returns the place for the next one: tail = stmt_store(k, tail, ...).
 * The body of a loop is filled through &stmt->body. */
struct stmt *stmt_for(struct kernel *k, struct stmt **tail, enum loop_kind loop, expr_id extent);
struct stmt *stmt_var(struct kernel *k, struct stmt **tail, enum dtype dtype, expr_id initial); /* ->local is the new local */
struct stmt *stmt_set(struct kernel *k, struct stmt **tail, uint32_t local, expr_id value);
struct stmt *stmt_store(struct kernel *k, struct stmt **tail, uint32_t buffer, int part, const expr_id *index, int count, expr_id value);
struct stmt *stmt_if(struct kernel *k, struct stmt **tail, expr_id condition);
struct stmt *stmt_while(struct kernel *k, struct stmt **tail, expr_id condition);
struct stmt *stmt_check(struct kernel *k, struct stmt **tail, expr_id condition, status code, const char *text,
                        const expr_id shown[STATUS_SHOWN]);
struct stmt *stmt_buffer(struct kernel *k, struct stmt **tail, uint32_t buffer);
struct stmt *stmt_fetch(struct kernel *k, struct stmt **tail, uint32_t buffer, const expr_id *index, int count);
/* It, or something in it, was made by steps of a schedule: loops of tasks or lanes, blocks' buffers, hints. */
bool stmt_is_scheduled(const struct stmt *s);
/* The same, or a loop in it has any mark: whoever made it has said how it runs, and which products are fused. */
bool stmt_is_marked(const struct stmt *s);
bool stmts_are_marked(const struct stmt *block); /* one of them is */

#define LOOP_RUNS (RUN_TOGETHER + 1)
extern const char *const loop_run_words[LOOP_RUNS]; /* of texts */
/* Whether a loop's mark has a width; and whether it may have this one. */
static inline bool run_has_width(enum loop_run run) { return run == RUN_LANES || run == RUN_VECTORS || run == RUN_TOGETHER; }
bool run_takes_width(enum loop_run run, int64_t width);

/* kernel_verify.c: INTERNAL with what is wrong (dtype of an operand, a local used outside its loop, a count of indices ...) */
status kernel_verify(const struct kernel *k);

/* kernel_print.c and kernel_parse.c: the text form; print(parse(print(k))) is identity. Expressions are numbered by a walk in
 * post-order from the statements, so that the text does not depend on the order of building. */
char *kernel_print(const struct kernel *k, struct arena *arena);
/* INVALID_ARGUMENT with line and column. */
status kernel_parse(const char *text, struct arena *arena, struct kernel **out);

/* A hash of the text form without the name: kernels with equal text are the same code. */
uint64_t kernel_hash(const struct kernel *k);
char *kernel_hash_text(uint64_t hash, struct arena *arena); /* the key of a map of kernels */

/* kernel_eval.c: the reference evaluator: slow and obvious. buffers[i] points at the elements of buffer i (scratch and blocks' buffers:
 * NULL), sizes at size_count values. Marks on loops change nothing; loading an element of a block's buffer that was not stored is INTERNAL.
 * Returns what a check reported (text in status_text), else OK. Floats are computed in their own precision by libm; denormals are flushed
 * to zero as on the targets. */
status kernel_eval(const struct kernel *k, void *const *buffers, const int64_t *sizes);

/* The C names and text of an operation. */
const char *scalar_text(enum scalar_op op);
int scalar_operands(enum scalar_op op);

#endif
