/* Conformance of op rows: every MAP row of ops.def is lowered over placeholders of unknown sizes, for each of its
 * dtypes, with equal shapes and with broadcasting; its kernels are compiled for this CPU and run beside the
 * reference evaluator over awkward sizes: 0, 1, prime, large. */
#include "compiler/build.h"
#include "compiler/pass/pass.h"
#include "compiler/read/read.h"
#include "ir/op_rows.h"
#include "tests/support/kernel_runner.h"
#include "tests/support/test.h"

static const enum dtype dtypes[] = {DTYPE_FLOAT, DTYPE_DOUBLE, DTYPE_HALF, DTYPE_BFLOAT16, DTYPE_INT8, DTYPE_UINT8, DTYPE_INT16,
                                    DTYPE_UINT16, DTYPE_INT32, DTYPE_INT64, DTYPE_UINT32, DTYPE_UINT64, DTYPE_BOOL, DTYPE_COMPLEX64};
static const int64_t lengths[] = {0, 1, 2, 7, 31, 1031};

/* One kernel under test and what its sizes are: each symbol takes the same length. */
struct subject {
  struct kernel *kernel;
  const char *op;
  enum dtype dtype;
  const dim *sizes;
  struct dim_table *dims;
};
struct subjects {
  VEC(struct subject) items;
  VEC(struct build *) builds; /* hold the kernels */
  uint32_t rows;
};

/* ---- graphs ---- */

/* The one type attribute of the op on which all its inputs depend; NULL when the op is not plain. */
static const char *plain_type(const struct op_def *def) {
  const char *name = "";
  for (uint32_t i = 0; i < def->input_count; i++) {
    const struct op_arg *a = &def->inputs[i];
    if (a->number_attr || a->list_attr || a->is_ref || !(a->type_attr || dtype_is_integer(a->dtype) || dtype_is_float(a->dtype) || a->dtype == DTYPE_BOOL))
      return NULL;
    if (a->type_attr && *name && strcmp(a->type_attr, name) != 0)
      return NULL;
    if (a->type_attr)
      name = a->type_attr;
  }
  for (uint32_t i = 0; i < def->attr_count; i++)
    if (!def->attrs[i].has_default && strcmp(def->attrs[i].name, name) != 0)
      return NULL;
  return def->input_count ? name : NULL;
}

static bool is_allowed(const struct op_def *def, const char *type, enum dtype dtype) {
  for (uint32_t i = 0; i < def->attr_count; i++)
    if (strcmp(def->attrs[i].name, type) == 0)
      return !def->attrs[i].allowed || strchr((const char *)def->attrs[i].allowed, dtype);
  return dtype == DTYPE_FLOAT; /* fixed types: once */
}

/* Text form: placeholders a, b, c, and the node y. Input `one`, if any, has sizes 1: it is broadcast. */
static char *graph_text(struct arena *arena, const struct op_def *def, const char *type, enum dtype dtype, int rank, int one) {
  char *text = arena_strdup(arena, ""), *inputs = arena_strdup(arena, "");
  for (uint32_t i = 0; i < def->input_count; i++) {
    enum dtype own = def->inputs[i].type_attr ? dtype : (enum dtype)def->inputs[i].dtype;
    char *shape = arena_strdup(arena, "");
    for (int d = 0; d < rank; d++)
      shape = arena_printf(arena, "%sdim { size: %d } ", shape, (int)i == one ? 1 : -1);
    text = arena_printf(arena, "%snode { name: 'in%u' op: 'Placeholder' attr { key: 'dtype' value { type: %d } } attr { key: 'shape' value { shape { %s} } } }\n",
                        text, i, (int)own, shape);
    inputs = arena_printf(arena, "%sinput: 'in%u' ", inputs, i);
  }
  const char *attr = *type ? arena_printf(arena, "attr { key: '%s' value { type: %d } } ", type, (int)dtype) : "";
  return arena_printf(arena, "%snode { name: 'y' op: '%s' %s%s}\n", text, def->name, inputs, attr);
}

/* Lowers the graph into a new build; NULL when the row refuses it. */
static struct build *lower_graph(const struct op_def *def, const char *type, enum dtype dtype, int rank, int one) {
  struct build *b = calloc(1, sizeof *b);
  arena_init(&b->arena);
  cluster_local(&b->arena, &b->cluster);
  b->default_task = 0;
  char *text = graph_text(&b->arena, def, type, dtype, rank, one);
  struct entry_spec spec = {.name = "main"};
  for (uint32_t i = 0; i < def->input_count; i++) {
    vec_push(&spec.feeds, arena_printf(&b->arena, "in%u", i));
    vec_push(&spec.feed_keys, arena_printf(&b->arena, "in%u", i));
  }
  for (uint32_t i = 0; i < def->output_count; i++) {
    vec_push(&spec.fetches, arena_printf(&b->arena, "y:%u", i));
    vec_push(&spec.fetch_keys, arena_printf(&b->arena, "y:%u", i));
  }
  vec_push(&b->specs, spec);
  bool good = def->output_count && model_parse(text, strlen(text), &b->arena, &b->model) == OK && registry_check(b->model.graph) == OK &&
              pass_place(b) == OK && pass_lower(b) == OK && pass_dead(b) == OK && pass_fuse(b) == OK;
  if (good)
    return b;
  arena_deinit(&b->arena);
  free(b);
  return NULL;
}

static void add_kernels(struct subjects *s, struct build *b, const char *op, enum dtype dtype) {
  for (uint32_t e = 0; e < b->entries.count; e++) {
    const struct flow *f = b->entries.items[e].flow;
    for (flow_id id = 1; id < f->nodes.count; id++) {
      const struct flow_node *n = f->nodes.items[id];
      if (!n || n->op != FLOW_KERNEL)
        continue;
      n->kernel->name = arena_printf(&b->arena, "k%u_%s", s->items.count, n->kernel->name);
      vec_push(&s->items, (struct subject){n->kernel, op, dtype, n->sizes, f->dims});
    }
  }
  vec_push(&s->builds, b);
}

static void add_row(struct subjects *s, const struct op_row *row) {
  const struct op_def *def = registry_find(row->name);
  const char *type = def && row->build == build_map ? plain_type(def) : NULL;
  uint32_t before = s->items.count;
  for (size_t t = 0; type && t < sizeof dtypes / sizeof dtypes[0]; t++) {
    if (!is_allowed(def, type, dtypes[t]))
      continue;
    for (int one = -1; one < (def->input_count > 1 ? (int)def->input_count : 0); one++) {
      struct build *b = lower_graph(def, type, dtypes[t], 2, one);
      if (b)
        add_kernels(s, b, row->name, dtypes[t]);
    }
  }
  s->rows += s->items.count > before;
}

/* ---- running ---- */

struct run {
  void *mine[32], *theirs[32];
  int64_t sizes[64];
};

static bool prepare(const struct subject *x, int64_t length, struct run *r, struct sequence *random) {
  const struct kernel *k = x->kernel;
  int64_t symbols[64];
  uint32_t count = dims_symbol_count(x->dims);
  if (count > 64 || k->size_count > 64 || k->buffers.count > 32)
    return false;
  for (uint32_t i = 0; i < count; i++)
    symbols[i] = length;
  for (uint32_t i = 0; i < k->size_count; i++)
    r->sizes[i] = dim_eval(x->dims, x->sizes[i], symbols);
  for (uint32_t b = 0; b < k->buffers.count; b++) {
    int64_t n = buffer_count(k, b, r->sizes);
    size_t bytes = (size_t)n * dtype_size(k->buffers.items[b].dtype);
    r->mine[b] = r->theirs[b] = NULL;
    if (k->buffers.items[b].mode == BUFFER_SCRATCH)
      continue;
    r->mine[b] = aligned_block(bytes);
    r->theirs[b] = aligned_block(bytes);
    fill_random(k->buffers.items[b].dtype, r->mine[b], n, random);
    memcpy(r->theirs[b], r->mine[b], bytes);
  }
  return true;
}

/* 2^-10 steps of half; libm and our polynomials differ in the last places. */
static double tolerance(const struct kernel *k) {
  double worst = 1e-12;
  for (uint32_t b = 0; b < k->buffers.count; b++) {
    enum dtype d = dtype_real(k->buffers.items[b].dtype);
    double t = d == DTYPE_BFLOAT16 ? 2e-2 : d == DTYPE_HALF ? 4e-3 : d == DTYPE_FLOAT ? 2e-5 : 1e-12;
    worst = t > worst ? t : worst;
  }
  return worst;
}

static uint32_t compare(const struct subject *x, const struct kernel_code *code, int64_t length, struct sequence *random) {
  struct run r;
  uint32_t bad = 0;
  if (!prepare(x, length, &r, random))
    return 0;
  struct kernel_fault fault = run_compiled(code, r.mine, r.sizes);
  status expected = kernel_eval(x->kernel, r.theirs, r.sizes);
  if ((status)fault.code != expected) {
    fprintf(stderr, "%s (%s), sizes %lld: reports %s, the evaluator %s\n", x->op, dtype_name(x->dtype), (long long)length,
            status_name((status)fault.code), status_name(expected));
    bad++;
  }
  for (uint32_t b = 0; b < x->kernel->buffers.count; b++) {
    const struct kernel_buffer *buffer = &x->kernel->buffers.items[b];
    if (buffer->mode != BUFFER_IN && buffer->mode != BUFFER_SCRATCH && expected == OK && !bad) {
      double t = tolerance(x->kernel);
      int64_t at = first_difference(buffer->dtype, r.mine[b], r.theirs[b], buffer_count(x->kernel, b, r.sizes), t, t);
      if (at >= 0) {
        fprintf(stderr, "%s (%s), sizes %lld: element %lld of buffer %s differs\n", x->op, dtype_name(x->dtype), (long long)length,
                (long long)at, buffer->name);
        bad++;
      }
    }
    free(r.mine[b]);
    free(r.theirs[b]);
  }
  return bad;
}

static void compiled_rows_agree_with_the_evaluator(void **state) {
  (void)state;
  struct subjects s = {0};
  uint32_t count, bad = 0;
  const struct op_row *rows = op_rows(&count);
  for (uint32_t i = 0; i < count; i++)
    add_row(&s, &rows[i]);
  struct kernel **kernels = calloc(s.items.count, sizeof *kernels);
  for (uint32_t i = 0; i < s.items.count; i++)
    kernels[i] = s.items.items[i].kernel;
  struct compiled c = compile_kernels(kernels, s.items.count, "native");
  struct sequence random = {1};
  for (uint32_t i = 0; i < s.items.count; i++)
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
      if (lengths[l] < 100 || s.items.items[i].dtype == DTYPE_FLOAT) /* two dimensions: a million elements, once */
        bad += compare(&s.items.items[i], &c.code[i], lengths[l] < 100 ? lengths[l] : 211, &random);
  printf("%u rows, %u kernels\n", s.rows, s.items.count);
  assert_true(s.rows > 80); /* that something was compared */
  assert_int_equal(bad, 0);
  free(kernels);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(compiled_rows_agree_with_the_evaluator)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
