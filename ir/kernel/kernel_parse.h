/* kernel_parse.h: what the parsers of kernels' text share; for kernel_parse*.c only. Mistakes are INVALID_ARGUMENT. */
#ifndef TFC_IR_KERNEL_KERNEL_PARSE_H
#define TFC_IR_KERNEL_KERNEL_PARSE_H

#include "ir/kernel/kernel.h"

#define DEPTH_LIMIT 100 /* of expressions and of statements, one in another */

struct parser {
  const char *start, *at;
  struct kernel *k;
  VEC(uint32_t) loops, vars; /* number in the text -> local; UINT32_MAX where out of scope */
  VEC(uint32_t) named;       /* the locals of the loops with names that are open here, outermost first */
  VEC(expr_id) shared;       /* %N */
  int depth;
};

/* ---- words; blanks in front of them are passed over ---- */

/* With line and column. */
status parser_wrong(struct parser *p, const char *what);
void parser_skip(struct parser *p);
/* Takes the token, if it stands here and is no part of a longer word. */
bool parser_accept(struct parser *p, const char *token);
status parser_expect(struct parser *p, const char *token);
/* A name. */
status parser_word(struct parser *p, char *out, size_t size);
status parser_number(struct parser *p, int64_t *out);
/* N of a word like n3, i0, v7; false when the word is another. */
bool parser_numbered(const char *text, char letter, uint32_t *out);
status parser_dtype(struct parser *p, enum dtype *out);

/* ---- expressions ---- */

/* a, b, ... z, b26: by position. */
bool parser_find_buffer(const struct parser *p, const char *text, uint32_t *out);
/* The innermost open loop with this name: its local. */
bool parser_find_loop(const struct parser *p, const char *text, uint32_t *out);
/* `.re` or `.im` where there are parts, and the indices. */
status parse_element(struct parser *p, uint32_t buffer, int *part, expr_id *index, int *count);
status parse_expr(struct parser *p, expr_id *out);
/* One of this dtype. */
status parse_typed(struct parser *p, enum dtype dtype, expr_id *out);

#endif
