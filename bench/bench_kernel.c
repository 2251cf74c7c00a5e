/* bench_kernel: the kernels of text files on one core, beside that core's measured peak.
 *
 *   ninja bench_kernel && ./bench_kernel [--threads N] [--sizes A,B,..] [--schedule STEPS] FILE...
 *
 * A file holds kernels as `tfc build --emit ir` or `--emit schedule` prints them, each beginning on a line of its own; a schedule
 * (ir/schedule/schedule.h) is applied to all of them. Multiply-adds are counted by walking the loops: what lies beyond a border or a mask
 * is not counted. Buffers hold random floats; threads share the phases' tiles.
 * `said`: what the kernel itself says that it costs on one core; `tiles`: of the phase with most of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernel_timer.h"
#include "ir/schedule/schedule.h"

#define KERNELS_MAX 400
#define SIZES_MAX 16

/* ---- counting ---- */

struct counter {
  const struct kernel *k;
  const int64_t *sizes;
  int64_t *locals;
};
/* An i64 of sizes and loop variables; what is anything else counts as 0. */
static int64_t value_of(const struct counter *c, expr_id e) {
  const struct expr *x = expr_get(c->k, e);
  int64_t v[3] = {0};
  if (x->op == SCALAR_LOAD)
    return 0;
  for (int i = 0; i < x->count && i < 3; i++)
    v[i] = value_of(c, expr_operand(c->k, e, i));
  switch (x->op) {
  case SCALAR_CONST: return x->imm;
  case SCALAR_SIZE: return c->sizes[x->imm];
  case SCALAR_LOCAL: return c->locals[x->imm];
  case SCALAR_ADD: return v[0] + v[1];
  case SCALAR_SUB: return v[0] - v[1];
  case SCALAR_MUL: return v[0] * v[1];
  case SCALAR_MIN: return v[0] < v[1] ? v[0] : v[1];
  case SCALAR_MAX: return v[0] > v[1] ? v[0] : v[1];
  case SCALAR_FLOORDIV:
  case SCALAR_DIV: return v[1] ? v[0] / v[1] : 0;
  case SCALAR_FLOORMOD:
  case SCALAR_REM: return v[1] ? v[0] % v[1] : 0;
  case SCALAR_SELECT: return v[0] ? v[1] : v[2];
  case SCALAR_LT: return v[0] < v[1];
  case SCALAR_LE: return v[0] <= v[1];
  case SCALAR_EQ: return v[0] == v[1];
  case SCALAR_NE: return v[0] != v[1];
  case SCALAR_AND: return v[0] & v[1];
  case SCALAR_OR: return v[0] | v[1];
  default: return 0;
  }
}
static bool control_uses(const struct kernel *k, const struct stmt *s, uint32_t local) {
  for (; s; s = s->next)
    if (((s->kind == STMT_FOR || s->kind == STMT_IF) && expr_reads_local(k, s->value, local)) || control_uses(k, s->body, local) ||
        control_uses(k, s->otherwise, local))
      return true;
  return false;
}
/* Multiply-adds of floats in a stored value. */
static double terms_of(const struct counter *c, expr_id e) {
  const struct expr *x = expr_get(c->k, e);
  if (x->op == SCALAR_FMA)
    return 1 + terms_of(c, expr_operand(c->k, e, 2)); /* of a pair the second is a term of the first */
  bool adds = x->op == SCALAR_ADD && dtype_is_float(x->dtype);
  return adds && (expr_get(c->k, expr_operand(c->k, e, 0))->op == SCALAR_MUL || expr_get(c->k, expr_operand(c->k, e, 1))->op == SCALAR_MUL);
}
static double count_terms(const struct counter *c, const struct stmt *s) {
  double sum = 0;
  for (; s; s = s->next) {
    if (s->kind == STMT_SET || s->kind == STMT_STORE)
      sum += terms_of(c, s->value);
    if (s->kind == STMT_IF)
      sum += count_terms(c, value_of(c, s->value) ? s->body : s->otherwise);
    if (s->kind != STMT_FOR)
      continue;
    int64_t trips = value_of(c, s->value);
    bool alike = !control_uses(c->k, s->body, s->local);
    c->locals[s->local] = 0;
    if (trips > 0 && alike)
      sum += (double)trips * count_terms(c, s->body);
    for (int64_t i = 0; i < trips && !alike; i++) {
      c->locals[s->local] = i;
      sum += count_terms(c, s->body);
    }
  }
  return sum;
}
static double flops_of(const struct kernel *k, const int64_t *sizes) {
  struct counter c = {k, sizes, calloc(k->locals.count + 1, sizeof(int64_t))};
  double terms = c.locals ? count_terms(&c, k->body) : 0;
  free(c.locals);
  return 2 * terms;
}

/* ---- files ---- */

static char *read_file(const char *path, struct arena *arena) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = arena_alloc(arena, (size_t)size + 1);
  size_t got = fread(text, 1, (size_t)size, file);
  fclose(file);
  return got == (size_t)size ? text : NULL;
}
/* Kernels get distinct names; what is above the first one is left out. */
static uint32_t parse_file(const char *path, struct arena *arena, struct kernel **kernels, const char **names, uint32_t count) {
  char *text = read_file(path, arena), *at = text ? strstr(text, "kernel ") : NULL;
  if (!text)
    fprintf(stderr, "cannot read %s\n", path);
  while (at && count < KERNELS_MAX) {
    char *next = strstr(at, "\nkernel ");
    if (next)
      *next = '\0';
    if (kernel_parse(at, arena, &kernels[count]) != OK || kernel_verify(kernels[count]) != OK) {
      fprintf(stderr, "%s: %s\n", path, status_text());
      exit(1);
    }
    names[count] = kernels[count]->name;
    kernels[count]->name = arena_printf(arena, "k%u_%s", count, names[count]);
    count++;
    at = next ? next + 1 : NULL;
  }
  return count;
}

/* The kernels with the schedule of this text. */
static status schedule_all(const char *text, struct arena *arena, struct kernel **kernels, uint32_t count) {
  struct schedule schedule;
  TRY(schedule_parse(text, arena, &schedule));
  for (uint32_t i = 0; i < count; i++)
    TRY(schedule_apply(kernels[i], &schedule, arena, &kernels[i]));
  return OK;
}
/* Of the phase with most of them. */
static long long most_tiles(const struct kernel_code *code, const int64_t *sizes) {
  int64_t most = 0;
  for (int64_t phase = 0; phase < code->query(sizes, KERNEL_PHASES); phase++)
    most = code->query(sizes, phase) > most ? code->query(sizes, phase) : most;
  return most;
}

struct arguments {
  struct kernel *kernels[KERNELS_MAX];
  const char *names[KERNELS_MAX], *schedule;
  uint32_t count;
  int64_t sizes[SIZES_MAX];
  int threads;
};

static void read_arguments(int argc, char **argv, struct arena *arena, struct arguments *out) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      out->threads = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--schedule") == 0 && i + 1 < argc) {
      out->schedule = argv[++i];
    } else if (strcmp(argv[i], "--sizes") == 0 && i + 1 < argc) {
      char *at = argv[++i];
      for (int n = 0; n < SIZES_MAX && *at; n++, at += *at == ',')
        out->sizes[n] = strtoll(at, &at, 10);
    } else {
      out->count = parse_file(argv[i], arena, out->kernels, out->names, out->count);
    }
  }
}

static void print_table(const struct arguments *a, const struct kernel_code *code) {
  double peak = measure_peak();
  printf("peak of one core: %.0f GFLOP/s\n\n%-44s %12s %10s %8s %12s %6s\n", peak, "kernel", "us", "GFLOP/s", "of peak", "said us",
         "tiles");
  for (uint32_t i = 0; i < a->count; i++) {
    double seconds;
    best_seconds(a->kernels[i], &code[i], 1, a->sizes, a->threads, 0.3, &seconds);
    double rate = flops_of(a->kernels[i], a->sizes) / seconds * 1e-9;
    printf("%-44s %12.1f %10.1f %7.0f%% %12.1f %6lld\n", a->names[i], seconds * 1e6, rate, 100 * rate / peak / a->threads,
           1e-3 * (double)code[i].query(a->sizes, KERNEL_COST), most_tiles(&code[i], a->sizes));
  }
}

int main(int argc, char **argv) {
  struct arena arena;
  struct arguments a = {.threads = 1};
  arena_init(&arena);
  read_arguments(argc, argv, &arena, &a);
  if (a.schedule && schedule_all(a.schedule, &arena, a.kernels, a.count) != OK) {
    fprintf(stderr, "%s\n", status_text());
    return 1;
  }
  double start = seconds_now();
  bool is_right = a.count && a.threads >= 1 && a.threads <= THREADS_MAX;
  const struct kernel_code *code = is_right ? compile_kernels(a.kernels, a.count) : NULL;
  if (!code)
    return 1;
  printf("%u kernels compiled in %.2f s\n", a.count, seconds_now() - start);
  print_table(&a, code);
  arena_deinit(&arena);
  return 0;
}
