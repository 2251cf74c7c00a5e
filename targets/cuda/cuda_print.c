/* cuda_print.c: a kernel as CUDA C.
 *
 * The par loops at the top that are perfectly nested become one loop over all their iterations, shared by the threads of the
 * grid; what is inside, and kernels that begin otherwise (one thread runs them), are plain loops. Every operation is a
 * line of its own, so that what is shared is computed once and no line is long. Buffers of blocks, which schedules make, are
 * arrays of the thread; `--emit cuda` shows kernels without: the schedules that there are are a CPU's. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "targets/cuda/cuda.h"

#define CHAIN_MAX 12

struct cuda_printer {
  const struct kernel *k;
  FILE *out;
  uint32_t *temporary; /* by expression: number + 1, of the statement at hand */
  uint32_t next;
  int checks, indent;
  bool in_schedule; /* of a nest that says itself which products are fused */
};

static const char *c_type(enum dtype dtype) {
  switch (dtype_real(dtype)) {
  case DTYPE_FLOAT: return "float";
  case DTYPE_DOUBLE: return "double";
  case DTYPE_HALF: return "f16";
  case DTYPE_BFLOAT16: return "bf16";
  case DTYPE_BOOL: return "bool";
  case DTYPE_INT8:
  case DTYPE_QINT8: return "signed char";
  case DTYPE_UINT8:
  case DTYPE_QUINT8: return "unsigned char";
  case DTYPE_INT16:
  case DTYPE_QINT16: return "short";
  case DTYPE_UINT16:
  case DTYPE_QUINT16: return "unsigned short";
  case DTYPE_INT32:
  case DTYPE_QINT32: return "int";
  case DTYPE_UINT32: return "unsigned";
  case DTYPE_INT64: return "long long";
  default: return "unsigned long long"; /* u64 and handles */
  }
}
/* The dtype whose operations do: of quantised ones and handles the plain integers'. */
static const char *op_suffix(enum dtype dtype) {
  switch (dtype) {
  case DTYPE_QINT8: return "i8";
  case DTYPE_QUINT8: return "u8";
  case DTYPE_QINT16: return "i16";
  case DTYPE_QUINT16: return "u16";
  case DTYPE_QINT32: return "i32";
  case DTYPE_RESOURCE:
  case DTYPE_VARIANT: return "u64";
  default: return dtype_short(dtype);
  }
}

static void line(struct cuda_printer *p) { fprintf(p->out, "%*s", 2 * p->indent, ""); }

/* ---- expressions ---- */

static void print_const(struct cuda_printer *p, const struct expr *x) {
  double v = dtype_is_float(x->dtype) ? expr_bits_to_double(x->dtype, x->imm) : 0;
  if (x->dtype == DTYPE_HALF || x->dtype == DTYPE_BFLOAT16)
    fprintf(p->out, "%s_bits(0x%xu)", dtype_short(x->dtype), (unsigned)x->imm & 0xffff);
  else if (x->dtype == DTYPE_FLOAT && (isnan(v) || isinf(v)))
    fprintf(p->out, "f32_bits(0x%xu)", (unsigned)x->imm);
  else if (x->dtype == DTYPE_DOUBLE && (isnan(v) || isinf(v)))
    fprintf(p->out, "f64_bits(0x%" PRIx64 "ULL)", (uint64_t)x->imm);
  else if (dtype_is_float(x->dtype))
    fprintf(p->out, "%a%s", v, x->dtype == DTYPE_FLOAT ? "f" : "");
  else if (x->imm == INT64_MIN)
    fprintf(p->out, "(-9223372036854775807LL - 1)");
  else if (x->dtype == DTYPE_INT64)
    fprintf(p->out, "%" PRId64 "LL", x->imm);
  else
    fprintf(p->out, "(%s)%" PRId64 "LL", c_type(x->dtype), x->imm);
}

static void print_operand(struct cuda_printer *p, expr_id e) {
  const struct expr *x = expr_get(p->k, e);
  if (x->op == SCALAR_CONST)
    print_const(p, x);
  else if (x->op == SCALAR_SIZE)
    fprintf(p->out, "n%" PRId64, x->imm);
  else if (x->op == SCALAR_LOCAL)
    fprintf(p->out, "%c%" PRId64, p->k->locals.items[x->imm].is_loop ? 'i' : 'v', x->imm);
  else
    fprintf(p->out, "t%u", p->temporary[e] - 1);
}
static void print_element(struct cuda_printer *p, uint32_t buffer, int part, const expr_id *index) {
  const struct kernel_buffer *b = &p->k->buffers.items[buffer];
  bool is_complex = dtype_is_complex(b->dtype);
  fprintf(p->out, "b%u[", buffer);
  if (is_complex)
    fprintf(p->out, "2 * (");
  for (int d = 1; d < b->rank; d++)
    fputc('(', p->out);
  for (int d = 0; d < b->rank; d++) {
    if (d && DIM_IS_SIZE(b->dims[d]))
      fprintf(p->out, ") * n%u + ", SIZE_OF_DIM(b->dims[d]));
    else if (d)
      fprintf(p->out, ") * %" PRId64 "LL + ", b->dims[d]);
    print_operand(p, index[d]);
  }
  if (b->rank == 0)
    fputc('0', p->out);
  if (is_complex)
    fprintf(p->out, ") + %d", part);
  fputc(']', p->out);
}

static void print_cast(struct cuda_printer *p, enum dtype to, enum dtype from, expr_id e) {
  bool to_half = to == DTYPE_HALF || to == DTYPE_BFLOAT16, from_half = from == DTYPE_HALF || from == DTYPE_BFLOAT16;
  const char *close = "";
  if (to == DTYPE_BOOL) {
    fprintf(p->out, "(");
    close = " != 0)";
  } else if (to_half) {
    fprintf(p->out, "%s_of_f32((float)", dtype_short(to));
    close = ")";
  } else if (dtype_is_float(from) && !dtype_is_float(to)) {
    const char *via = to == DTYPE_INT64 ? "i64" : to == DTYPE_UINT64 ? "u64" : to == DTYPE_UINT32 ? "u32" : "i32";
    fprintf(p->out, "(%s)%s_of_f64(", c_type(to), via);
    close = ")";
  } else {
    fprintf(p->out, "(%s)", c_type(to));
  }
  if (from_half)
    fprintf(p->out, "f32_of_%s(", dtype_short(from));
  print_operand(p, e);
  fprintf(p->out, "%s%s", from_half ? ")" : "", close);
}
static void print_bitcast(struct cuda_printer *p, enum dtype to, enum dtype from, expr_id e) {
  const char *close = "";
  if (dtype_is_float(to)) {
    fprintf(p->out, "%s_bits(", dtype_short(to));
    close = ")";
  } else {
    fprintf(p->out, "(%s)", c_type(to));
  }
  bool from_half = from == DTYPE_HALF || from == DTYPE_BFLOAT16;
  if (from == DTYPE_FLOAT || from == DTYPE_DOUBLE)
    fprintf(p->out, "bits_%s(", dtype_short(from));
  else if (dtype_is_float(to)) /* of signed integers the bits alone */
    fprintf(p->out, "(%s)(", dtype_size(to) == 8 ? "unsigned long long" : dtype_size(to) == 4 ? "unsigned" : "unsigned short");
  else
    fprintf(p->out, "(");
  print_operand(p, e);
  fprintf(p->out, "%s)%s", from_half ? ".bits" : "", close);
}

static void print_operation(struct cuda_printer *p, const struct expr *x) {
  const expr_id *operands = &p->k->operands.items[x->first];
  enum dtype in = expr_get(p->k, operands[0])->dtype;
  if (x->op == SCALAR_CAST) {
    print_cast(p, x->dtype, in, operands[0]);
    return;
  }
  if (x->op == SCALAR_BITCAST) {
    print_bitcast(p, x->dtype, in, operands[0]);
    return;
  }
  if (x->op == SCALAR_SELECT) {
    print_operand(p, operands[0]);
    fprintf(p->out, " ? ");
    print_operand(p, operands[1]);
    fprintf(p->out, " : ");
    print_operand(p, operands[2]);
    return;
  }
  fprintf(p->out, "%s_%s(", scalar_text(x->op), op_suffix(in));
  for (int i = 0; i < x->count; i++) {
    fprintf(p->out, "%s", i ? ", " : "");
    print_operand(p, operands[i]);
  }
  fprintf(p->out, ")");
}

/* A line for each operation that e needs and that has none yet. */
static void print_lines(struct cuda_printer *p, expr_id e) {
  const struct expr *x = expr_get(p->k, e);
  if (e == NO_EXPR || x->op == SCALAR_CONST || x->op == SCALAR_SIZE || x->op == SCALAR_LOCAL || p->temporary[e])
    return;
  for (int i = 0; i < x->count; i++)
    print_lines(p, expr_operand(p->k, e, i));
  p->temporary[e] = ++p->next;
  line(p);
  fprintf(p->out, "const %s t%u = ", c_type(x->dtype), p->next - 1);
  if (x->op == SCALAR_LOAD)
    print_element(p, (uint32_t)x->imm, x->part, &p->k->operands.items[x->first]);
  else
    print_operation(p, x);
  fprintf(p->out, ";\n");
}

/* ---- statements ---- */

static void print_block(struct cuda_printer *p, const struct stmt *s);

static void print_body(struct cuda_printer *p, const struct stmt *s) {
  fprintf(p->out, " {\n");
  p->indent++;
  print_block(p, s);
  p->indent--;
  line(p);
  fprintf(p->out, "}\n");
}

/* sum = sum + x * y is rounded once, as on the CPU. */
static bool print_sum_of_products(struct cuda_printer *p, const struct stmt *s) {
  const struct kernel *k = p->k;
  const struct expr *x = expr_get(k, s->value);
  for (int i = 0; !p->in_schedule && x->op == SCALAR_ADD && (x->dtype == DTYPE_FLOAT || x->dtype == DTYPE_DOUBLE) && i < 2; i++) {
    expr_id self = expr_operand(k, s->value, i), product = expr_operand(k, s->value, 1 - i);
    if (expr_get(k, self)->op != SCALAR_LOCAL || expr_get(k, self)->imm != s->local || expr_get(k, product)->op != SCALAR_MUL)
      continue;
    print_lines(p, expr_operand(k, product, 0));
    print_lines(p, expr_operand(k, product, 1));
    line(p);
    fprintf(p->out, "v%u = fma_%s(", s->local, dtype_short(x->dtype));
    print_operand(p, expr_operand(k, product, 0));
    fprintf(p->out, ", ");
    print_operand(p, expr_operand(k, product, 1));
    fprintf(p->out, ", v%u);\n", s->local);
    return true;
  }
  return false;
}

static void print_check(struct cuda_printer *p, const struct stmt *s) {
  line(p);
  fprintf(p->out, "if (!");
  print_operand(p, s->value);
  fprintf(p->out, ") {\n");
  p->indent++;
  for (int i = 0; i < STATUS_SHOWN; i++)
    print_lines(p, s->shown[i]);
  line(p);
  fprintf(p->out, "tfc_fail(fault, %d, %d, ", (int)s->code, p->checks++);
  for (int i = 0; i < STATUS_SHOWN; i++) {
    if (s->shown[i] != NO_EXPR)
      print_operand(p, s->shown[i]);
    else
      fputc('0', p->out);
    fprintf(p->out, "%s", i + 1 < STATUS_SHOWN ? ", " : ");\n");
  }
  line(p);
  fprintf(p->out, "return;\n");
  p->indent--;
  line(p);
  fprintf(p->out, "}\n");
}

static void print_while(struct cuda_printer *p, const struct stmt *s) {
  line(p);
  fprintf(p->out, "for (;;) {\n");
  p->indent++;
  print_lines(p, s->value);
  line(p);
  fprintf(p->out, "if (!");
  print_operand(p, s->value);
  fprintf(p->out, ") break;\n");
  print_block(p, s->body);
  p->indent--;
  line(p);
  fprintf(p->out, "}\n");
}

static void print_value(struct cuda_printer *p, const struct stmt *s) {
  print_operand(p, s->value);
  fprintf(p->out, ";\n");
}

/* Of a block: an array of the thread. */
static void print_buffer(struct cuda_printer *p, uint32_t buffer) {
  const struct kernel_buffer *b = &p->k->buffers.items[buffer];
  if (buffer_is_given(b))
    return;
  int64_t count = dtype_is_complex(b->dtype) ? 2 : 1;
  for (int d = 0; d < b->rank; d++)
    count *= b->dims[d];
  line(p);
  fprintf(p->out, "%s b%u[%" PRId64 "];\n", c_type(b->dtype), buffer, count > 0 ? count : 1);
}
static void print_loop(struct cuda_printer *p, const struct stmt *s) {
  bool around = p->in_schedule;
  p->in_schedule = around || stmt_is_marked(s);
  if (s->run == RUN_UNROLL || s->run == RUN_LANES) { /* so that what they index may be registers */
    line(p);
    fprintf(p->out, "#pragma unroll\n");
  }
  line(p);
  fprintf(p->out, "for (long long i%u = 0; i%u < ", s->local, s->local);
  print_operand(p, s->value);
  fprintf(p->out, "; i%u++)", s->local);
  print_body(p, s->body);
  p->in_schedule = around;
}

static void print_stmt(struct cuda_printer *p, const struct stmt *s) {
  memset(p->temporary, 0, sizeof *p->temporary * p->k->exprs.count);
  if (s->kind == STMT_WHILE) {
    print_while(p, s);
    return;
  }
  if (s->kind == STMT_SET && print_sum_of_products(p, s))
    return;
  print_lines(p, s->value);
  for (int i = 0; s->kind == STMT_STORE && i < s->index_count; i++)
    print_lines(p, s->index[i]);
  switch (s->kind) {
  case STMT_FOR: print_loop(p, s); break;
  case STMT_VAR:
    line(p);
    fprintf(p->out, "%s v%u = ", c_type(p->k->locals.items[s->local].dtype), s->local);
    print_value(p, s);
    break;
  case STMT_SET:
    line(p);
    fprintf(p->out, "v%u = ", s->local);
    print_value(p, s);
    break;
  case STMT_STORE:
    line(p);
    print_element(p, s->buffer, s->part, s->index);
    fprintf(p->out, " = ");
    print_value(p, s);
    break;
  case STMT_IF:
    line(p);
    fprintf(p->out, "if (");
    print_operand(p, s->value);
    fprintf(p->out, ")");
    print_body(p, s->body);
    if (s->otherwise) {
      line(p);
      fprintf(p->out, "else");
      print_body(p, s->otherwise);
    }
    break;
  case STMT_CHECK: print_check(p, s); break;
  case STMT_BUFFER: print_buffer(p, s->buffer); break;
  case STMT_WHILE:
  case STMT_FETCH: break; /* a hint */
  }
}
static void print_block(struct cuda_printer *p, const struct stmt *s) {
  for (; s; s = s->next)
    print_stmt(p, s);
}

/* ---- functions ---- */

static void print_head(struct cuda_printer *p, int phase) {
  fprintf(p->out, "\nextern_c __global__ void %s_%d(", p->k->name, phase);
  for (uint32_t i = 0; i < p->k->buffers.count; i++) {
    const struct kernel_buffer *b = &p->k->buffers.items[i];
    if (!buffer_is_given(b))
      continue;
    const char *quality = b->mode == BUFFER_IN ? "const " : "";
    fprintf(p->out, "%s%s *__restrict__ b%u, ", quality, b->dtype == DTYPE_BOOL ? "bool" : c_type(b->dtype), i);
  }
  for (uint32_t i = 0; i < p->k->size_count; i++)
    fprintf(p->out, "long long n%u, ", i);
  fprintf(p->out, "struct tfc_fault *fault) {\n");
}

static bool expr_uses_any(const struct kernel *k, expr_id e, const struct stmt *const *chain, int count) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOAD)
    return true;
  for (int i = 0; x->op == SCALAR_LOCAL && i < count; i++)
    if (x->imm == chain[i]->local)
      return true;
  for (int i = 0; i < x->count; i++)
    if (expr_uses_any(k, expr_operand(k, e, i), chain, count))
      return true;
  return false;
}
static int find_chain(const struct kernel *k, const struct stmt *s, const struct stmt **chain) {
  int count = 0;
  for (; s && s->kind == STMT_FOR && s->loop == LOOP_PAR && count < CHAIN_MAX; s = s->body) {
    if (count && chain[count - 1]->body->next)
      break;
    if (expr_uses_any(k, s->value, chain, count))
      break;
    chain[count++] = s;
  }
  return count;
}

/* The loop that the threads share, and the chain's variables from its count, innermost first. */
static void print_grid(struct cuda_printer *p, const struct stmt *s) {
  const struct stmt *chain[CHAIN_MAX];
  int count = find_chain(p->k, s, chain);
  p->in_schedule = stmt_is_marked(s);
  memset(p->temporary, 0, sizeof *p->temporary * p->k->exprs.count);
  for (int i = 0; i < count; i++) {
    print_lines(p, chain[i]->value);
    line(p);
    fprintf(p->out, "const long long e%d = max_i64(0, ", i);
    print_operand(p, chain[i]->value);
    fprintf(p->out, ");\n");
  }
  line(p);
  fprintf(p->out, "const long long total = 1");
  for (int i = 0; i < count; i++)
    fprintf(p->out, " * e%d", i);
  fprintf(p->out, ";\n");
  line(p);
  fprintf(p->out,
          "for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += (long long)gridDim.x * blockDim.x) {\n");
  p->indent++;
  line(p);
  fprintf(p->out, "long long rest = at;\n");
  for (int i = count - 1; i >= 0; i--) {
    line(p);
    fprintf(p->out, "const long long i%u = rest %% e%d; rest /= e%d;\n", chain[i]->local, i, i);
  }
  print_block(p, chain[count - 1]->body);
  p->indent--;
  line(p);
  fprintf(p->out, "}\n");
}

/* Buffers of the call, which stand in front of the nests, are parameters. */
static const struct stmt *next_nest(const struct kernel *k, const struct stmt *s) {
  while (s && s->kind == STMT_BUFFER && k->buffers.items[s->buffer].space == SPACE_TASK)
    s = s->next;
  return s;
}
static bool all_par(const struct kernel *k) {
  const struct stmt *chain[CHAIN_MAX];
  for (const struct stmt *s = k->body; (s = next_nest(k, s)); s = s->next)
    if (find_chain(k, s, chain) == 0)
      return false;
  return k->body != NULL;
}

static status check_dtypes(const struct kernel *k) {
  for (uint32_t i = 0; i < k->buffers.count; i++)
    if (k->buffers.items[i].dtype == DTYPE_STRING)
      return fail(UNIMPLEMENTED, "kernel %s: strings on a GPU", k->name);
  return OK;
}
/* A sum that is split over lanes is one of the CPU's schedules. */
static bool splits_sums(const struct stmt *s) {
  for (; s; s = s->next)
    if ((s->kind == STMT_FOR && s->loop == LOOP_RED && s->run == RUN_VECTORS) || splits_sums(s->body) || splits_sums(s->otherwise))
      return true;
  return false;
}
static status check_loops(const struct kernel *k) {
  return splits_sums(k->body) ? fail(UNIMPLEMENTED, "kernel %s: sums over lanes of vectors on a GPU", k->name) : OK;
}

status cuda_print_kernel(const struct kernel *k, FILE *out) {
  TRY(check_dtypes(k));
  TRY(check_loops(k));
  struct cuda_printer p = {.k = k, .out = out, .indent = 1};
  p.temporary = calloc(k->exprs.count + 1, sizeof *p.temporary);
  if (!p.temporary)
    return fail(RESOURCE_EXHAUSTED, "no memory to print a kernel");
  if (all_par(k)) {
    int phase = 0;
    for (const struct stmt *s = k->body; (s = next_nest(k, s)); s = s->next) {
      print_head(&p, phase++);
      print_grid(&p, s);
      fprintf(out, "}\n");
    }
  } else {
    print_head(&p, 0);
    fprintf(out, "  if (blockIdx.x != 0 || threadIdx.x != 0)\n    return;\n");
    print_block(&p, k->body);
    fprintf(out, "}\n");
  }
  free(p.temporary);
  return OK;
}
