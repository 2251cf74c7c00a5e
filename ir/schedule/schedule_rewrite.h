/* schedule_rewrite.h: what the steps of schedules are made of: copies of statements in which names stand for something else. Private to
 * this folder. Nothing here frees: what a rewrite leaves behind lies in the kernel's arena. */
#ifndef TFC_IR_SCHEDULE_SCHEDULE_REWRITE_H
#define TFC_IR_SCHEDULE_SCHEDULE_REWRITE_H

#include "ir/schedule/schedule.h"

/* An element that a var became. */
struct element {
  uint32_t buffer;
  int count;
  expr_id index[LIMIT_RANK];
  expr_id started, start; /* reading it where `started` is false gives `start`; NO_EXPR: always the element */
};

expr_id element_value(struct kernel *k, const struct element *e);

/* Statements of `from` on their way into `to`, which is the same kernel or one with equal arguments. Locals and blocks' buffers that begin
 * in what is copied become new ones, under the old names. */
struct copy {
  const struct kernel *from;
  struct kernel *to;
  uint32_t locals, buffers; /* of `from` when the copy began */
  expr_id *local;           /* by local: what stands for it; NO_EXPR: itself */
  struct element **element; /* by local: the element that it became; NULL: none */
  uint32_t *buffer;         /* by buffer: the new one + 1; 0: itself */
  expr_id *memo;            /* by expression */
  uint32_t exprs;
};
void copy_begin(struct copy *c, const struct kernel *from, struct kernel *to);
void copy_end(struct copy *c);
expr_id copy_expr(struct copy *c, expr_id e);
/* The statements from s to `end` (not with it); appends to *tail. */
void copy_stmts(struct copy *c, const struct stmt *s, const struct stmt *end, struct stmt **tail);
/* The same statements with what c->memo and c->local say for their expressions. */
void replace_exprs(struct copy *c, struct stmt *s);
/* The header of a loop, with a new variable that stands for the old one from here on; gives the place for its body. */
struct stmt **copy_loop(struct copy *c, const struct stmt *loop, struct stmt **tail);

/* A kernel with the arguments of k, and nothing in it. */
struct kernel *kernel_empty(const struct kernel *k, struct arena *arena);
/* The statements of k behind those at *tail of `to`, which has k's arguments. */
void kernel_append(const struct kernel *k, struct kernel *to, struct stmt **tail);
/* Of two loops in one perfect nest, each takes the other's place. */
void loops_swap(struct stmt *a, struct stmt *b);
/* `pieces`, at least one, stand where the loop stood; its statement becomes the first of them. */
void replace_loop(struct stmt *loop, struct stmt *pieces);

/* A loop like `like`, without marks, with another extent and name; its body is filled through ->body. */
struct stmt *loop_make(struct kernel *k, struct stmt **tail, const struct stmt *like, expr_id extent, const char *name);
/* The body of a loop with `value` for its variable. */
void copy_body(struct kernel *k, const struct stmt *loop, expr_id value, struct stmt **tail);

/* All loops of this name, in the order of the text. */
typedef VEC(struct stmt *) loops_found;
void find_loops(struct stmt *block, const struct kernel *k, const char *name, loops_found *out);
/* Calls `act` for each loop of the name that is there before, the last first; refuses where there is none. */
typedef status loop_act(struct kernel *k, const struct step *s, struct stmt *loop);
status each_loop(struct kernel *k, const struct step *s, const char *name, loop_act *act);
status loop_check_plain(const struct kernel *k, const struct stmt *loop); /* refuses one that is marked */
status step_check_buffer(const struct kernel *k, const struct step *s);   /* refuses one whose buffer is not there, or a block's */
const char *loop_name(const struct kernel *k, const struct stmt *loop);
bool loop_is(const struct kernel *k, const struct stmt *s, const char *name); /* s is a loop with this name */
int name_count(const char *const *names);
bool name_listed(const char *const *names, const char *name);

/* i64 expressions */
static inline expr_id number(struct kernel *k, int64_t value) { return expr_int(k, DTYPE_INT64, value); }
static inline expr_id add(struct kernel *k, expr_id a, expr_id b) { return expr_binary(k, SCALAR_ADD, a, b); }
static inline expr_id sub(struct kernel *k, expr_id a, expr_id b) { return expr_binary(k, SCALAR_SUB, a, b); }
static inline expr_id mul(struct kernel *k, expr_id a, int64_t b) { return expr_binary(k, SCALAR_MUL, a, number(k, b)); }
static inline expr_id floordiv(struct kernel *k, expr_id a, int64_t b) { return expr_binary(k, SCALAR_FLOORDIV, a, number(k, b)); }
static inline expr_id floormod(struct kernel *k, expr_id a, int64_t b) { return expr_binary(k, SCALAR_FLOORMOD, a, number(k, b)); }
/* A constant that e never exceeds: of constants, minima with them, and of a loop's turns over parts of such:
 * floordiv(max(min(64, ..), 0) + 15, 16). */
bool expr_at_most(const struct kernel *k, expr_id e, int64_t *most);
bool expr_never_negative(const struct kernel *k, expr_id e);
bool expr_divides(const struct kernel *k, expr_id e, int64_t by); /* e is provably a multiple */
/* The statement's expressions: index, value, shown. At most LIMIT_RANK + 4. */
int stmt_exprs(const struct stmt *s, expr_id *out);
bool stmts_read_local(const struct kernel *k, const struct stmt *s, const struct stmt *end, uint32_t local);
bool stmts_set_local(const struct stmt *s, const struct stmt *end, uint32_t local);
bool stmts_have(const struct stmt *s, const struct stmt *end, enum stmt_kind kind);

#define REFUSED(...) fail(FAILED_PRECONDITION, __VA_ARGS__)

/* Drops what the ranges of loops decide: comparisons, minima, maxima, quotients, remainders of integers. Whether there was any. */
bool kernel_simplify(struct kernel *k);

/* The steps: split, fuse, order and run are in schedule_loops.c, fma is in schedule_fetch.c, others in the file that is named for them. */
status step_split(struct kernel *k, const struct step *s);
status step_fuse(struct kernel *k, const struct step *s);
status step_order(struct kernel *k, const struct step *s);
status step_run(struct kernel *k, const struct step *s);
status step_sink(struct kernel *k, const struct step *s);
status step_fetch(struct kernel *k, const struct step *s);
status step_fma(struct kernel *k, const struct step *s);
status step_cut(struct kernel *k, const struct step *s);
status step_stage(struct kernel *k, const struct step *s);
status step_part(struct kernel *k, const struct step *s);
status step_join(struct kernel *k, const struct step *s);
status step_pair(struct kernel *k, const struct step *s);

#endif
