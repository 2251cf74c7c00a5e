/* test_panels.c: second factors in panels: what is brought there, how it lies, and that kernels which read it give the same bits. */
#include "compiler/edit/panels.h"

#include <string.h>

#include "compiler/schedule/choose.h"
#include "tests/support/kernel_runner.h"
#include "tests/support/test.h"

struct panel_case {
  const char *name, *kernel;
  int64_t width;
  const char *panels; /* of buffer b; NULL: it stays as it is */
};

#define PRODUCT(rows, depth, columns, b, place, sizes)                                                                    \
  "kernel k(in a: f32[" rows "," depth "], in b: f32[" b "], out c: f32[" rows "," columns "])" sizes " { par i0 < " rows \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(a[i0,i2], b[" place "])) } c[i0,i1] = v0 } } }"

static const struct panel_case cases[] = {
  {"a product", PRODUCT("9", "20", "48", "20,48", "i2,i1", ""), 16, "[1/16][0][1%16]"},
  {"columns that fill no panel", PRODUCT("7", "5", "41", "5,41", "i2,i1", ""), 16, "[1/16][0][1%16]"},
  {"fewer columns than a panel has", PRODUCT("3", "6", "10", "6,10", "i2,i1", ""), 16, "[1/16][0][1%16]"},
  {"wider panels", PRODUCT("25", "33", "70", "33,70", "i2,i1", ""), 32, "[1/32][0][1%32]"},
  {"a factor that lies along the sum", PRODUCT("8", "12", "40", "40,12", "i1,i2", ""), 16, "[0/16][1][0%16]"},
  {"an open number of rows", PRODUCT("n0", "20", "40", "20,40", "i2,i1", " sizes 1"), 16, "[1/16][0][1%16]"},
  {"an open depth", PRODUCT("4", "n0", "40", "n0,40", "i2,i1", " sizes 1"), 16, NULL},
  {"a part of the columns", PRODUCT("8", "12", "24", "12,60", "i2,add(i1, 30)", ""), 16, "[(1-30)/16][0][(1-30)%16]"},
  {"columns that move by two", PRODUCT("8", "12", "24", "12,60", "i2,mul(i1, 2)", ""), 16, NULL},
  {"a vector",
   "kernel k(in a: f32[30], in b: f32[30,40], out c: f32[40]) { par i0 < 40 { var v0: f32 = 0:f32 red i1 < 30 { v0 = "
   "add(v0, mul(a[i1], b[i1,i0])) } c[i0] = v0 } }",
   16, "[1/16][0][1%16]"},
  {"in batches",
   "kernel k(in a: f32[3,5,6], in b: f32[3,6,20], out c: f32[3,5,20]) { par i0 < 3 { par i1 < 5 { par i2 < 20 { var v0: f32 "
   "= 0:f32 red i3 < 6 { v0 = add(v0, mul(a[i0,i1,i3], b[i0,i3,i2])) } c[i0,i1,i2] = v0 } } } }",
   16, "[0][2/16][1][2%16]"},
  {"rows of two axes, what is made of the sum",
   "kernel k(in a: f32[4,5,6], in b: f32[6,20], in c: f32[20], out d: f32[4,5,20]) { par i0 < 4 { par i1 < 5 { par i2 < 20 { var v0: f32 = "
   "0:f32 red i3 < 6 { v0 = add(v0, mul(a[i0,i1,i3], b[i3,i2])) } d[i0,i1,i2] = max(add(v0, c[i2]), 0:f32) } } } }",
   16, "[1/16][0][1%16]"},
  {"a convolution",
   "kernel k(in a: f32[2,9,27], in b: f32[3,9,20], out c: f32[2,4,4,20]) { par i0 < 2 { par i1 < 4 { par i2 < 4 { par i3 < "
   "20 { var v0: f32 = 0:f32 red i4 < 3 { red i5 < 9 { v0 = add(v0, mul(a[i0,add(mul(i1, 2), i4),add(mul(i2, 6), i5)], "
   "b[i4,i5,i3])) } } c[i0,i1,i2,i3] = v0 } } } } }",
   16, "[2/16][0][1][2%16]"},
  {"read at two places",
   "kernel k(in a: f32[4,6], in b: f32[6,20], out c: f32[4,20]) { par i0 < 4 { par i1 < 20 { var v0: f32 = 0:f32 red i2 < 6 { v0 = add(v0, "
   "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = add(v0, b[0,i1]) } } }",
   16, NULL},
  {"no sum",
   "kernel k(in a: f32[4,20], in b: f32[6,20], out c: f32[4,20]) { par i0 < 4 { par i1 < 20 { c[i0,i1] = mul(a[i0,i1], "
   "b[0,i1]) } } }",
   16, NULL},
};
#define OPEN_ROWS 23

struct fixture {
  struct arena arena;
  struct flow *flow;
  struct flow_node node;
  struct kernel *kernel;
  struct panels panels;
  bool is_found;
};

static void set_up(struct fixture *f, const struct panel_case *c) {
  struct kernel_uses uses;
  struct contraction x;
  memset(f, 0, sizeof *f);
  arena_init(&f->arena);
  if (kernel_parse(c->kernel, &f->arena, &f->kernel) != OK)
    test_fail("%s: %s", c->name, status_text());
  kernel_uses_find(f->kernel, &f->arena, &uses);
  f->is_found = contraction_find(&uses, f->kernel->body, &x) && panels_of(&x, c->width, &f->panels);
}
static void tear_down(struct fixture *f) {
  vec_free(&f->node.inputs);
  vec_free(&f->node.outputs);
  arena_deinit(&f->arena);
}

/* A flow whose node has the kernel; open sizes are the rows. */
static void make_flow(struct fixture *f) {
  struct dim_table *dims = dims_create(&f->arena);
  f->flow = flow_create(&f->arena, dims);
  f->node = (struct flow_node){.op = FLOW_KERNEL, .kernel = f->kernel, .name = "k", .tf_op = "MatMul"};
  f->node.args = ARENA_ARRAY(&f->arena, struct flow_arg, f->kernel->buffers.count);
  f->node.sizes = ARENA_ARRAY(&f->arena, dim, 1);
  f->node.sizes[0] = dim_symbol(dims, "n");
  for (uint32_t i = 0; i < f->kernel->buffers.count; i++) {
    const struct kernel_buffer *b = &f->kernel->buffers.items[i];
    dim sizes[LIMIT_RANK];
    for (int d = 0; d < b->rank; d++)
      sizes[d] = DIM_IS_SIZE(b->dims[d]) ? f->node.sizes[0] : dim_const(dims, b->dims[d]);
    f->node.args[i].value = flow_add_value(f->flow, b->dtype, b->rank, sizes);
  }
}
static value_id add_packed(struct fixture *f) {
  int64_t sizes[LIMIT_RANK + 1];
  dim dims[LIMIT_RANK + 1];
  panels_sizes(&f->panels, sizes);
  for (int i = 0; i <= f->panels.rank; i++)
    dims[i] = dim_const(f->flow->dims, sizes[i]);
  return flow_add_value(f->flow, DTYPE_FLOAT, f->panels.rank + 1, dims);
}

static void factors_that_stay_alike_are_brought_into_panels(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct fixture f;
    set_up(&f, &cases[i]);
    const char *text = f.is_found ? panels_text(&f.panels, &f.arena) : "none";
    if (strcmp(text, cases[i].panels ? cases[i].panels : "none") != 0)
      test_fail("%s: %s", cases[i].name, text);
    tear_down(&f);
  }
}

static float *random_floats(struct arena *arena, int64_t count, uint64_t seed) {
  struct sequence random = {seed};
  float *data = arena_alloc(arena, (size_t)count * sizeof *data);
  fill_random(DTYPE_FLOAT, data, count, &random);
  return data;
}

static float *pack(struct fixture *f, const float *dense) {
  int64_t sizes[LIMIT_RANK + 1];
  float *packed = arena_alloc(&f->arena, (size_t)panels_sizes(&f->panels, sizes) * sizeof *packed);
  panels_pack(&f->panels, dense, sizeof *dense, packed);
  return packed;
}
/* Of the dense value only what is in panels comes back. */
static void check_back(struct fixture *f, const char *name, const float *dense, const float *packed) {
  struct kernel *back = panels_back_kernel(&f->panels, DTYPE_FLOAT, &f->arena);
  int64_t count = buffer_count(back, 1, NULL);
  float *made = arena_alloc(&f->arena, (size_t)count * sizeof *made), *unpacked = arena_alloc(&f->arena, (size_t)count * sizeof *made);
  assert_int_equal(kernel_verify(back), OK);
  assert_int_equal(kernel_eval(back, (void *[]){(void *)(uintptr_t)packed, made}, NULL), OK);
  panels_unpack(&f->panels, packed, sizeof *packed, unpacked);
  if (memcmp(made, dense, (size_t)count * sizeof *made) != 0 || memcmp(unpacked, dense, (size_t)count * sizeof *made) != 0)
    test_fail("%s: other elements come back from panels", name);
}
static void the_kernels_pack_as_constants_are_packed_and_back(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct fixture f;
    int64_t sizes[LIMIT_RANK + 1];
    set_up(&f, &cases[i]);
    if (f.is_found) {
      struct kernel *k = panels_kernel(&f.panels, DTYPE_FLOAT, &f.arena);
      int64_t count = panels_sizes(&f.panels, sizes);
      float *dense = random_floats(&f.arena, buffer_count(k, 0, NULL), 3), *made = random_floats(&f.arena, count, 5);
      assert_int_equal(kernel_verify(k), OK);
      assert_int_equal(kernel_eval(k, (void *[]){dense, made}, NULL), OK);
      if (memcmp(made, pack(&f, dense), (size_t)count * sizeof *made) != 0)
        test_fail("%s: the kernel packs otherwise", cases[i].name);
      if (f.panels.count == f.panels.dims[f.panels.lanes])
        check_back(&f, cases[i].name, dense, made);
    }
    tear_down(&f);
  }
}

/* ---- reading ---- */

/* Buffers of the rewritten kernel, which has the values in another order. */
static void bind(const struct fixture *f, const value_id *values, void *const *of_values, void **buffers) {
  for (uint32_t i = 0; i < f->node.kernel->buffers.count; i++)
    for (uint32_t j = 0; values[j]; j++)
      if (f->node.args[i].value == values[j])
        buffers[i] = of_values[j];
}
static void check_bits(const char *name, const char *what, const float *a, const float *b, int64_t count, double tolerance) {
  for (int64_t i = 0; i < count; i++)
    if (tolerance > 0 ? fabs((double)a[i] - (double)b[i]) > tolerance : memcmp(&a[i], &b[i], sizeof *a) != 0)
      test_fail("%s: %s: element %d is %a, not %a", name, what, (int)i, (double)a[i], (double)b[i]);
}
/* As the machine of this name would run it; `bits`: what the plain kernel gives without fused multiply-adds. */
static void check_scheduled(const struct fixture *f, const char *name, const char *cpu, void **buffers, float *result, const float *bits,
                            int64_t count) {
  struct schedule s = {0};
  struct kernel *out;
  struct arena *arena = (struct arena *)&f->arena;
  const char *steps;
  const int64_t rows = OPEN_ROWS;
  assert_int_equal(schedule_choose(f->node.kernel, machine_find(cpu), NULL, arena, &steps), OK);
  if (!steps || !strstr(steps, " in register; run"))
    test_fail("%s on %s: %s", name, cpu, steps ? steps : "plain loops");
  if (schedule_parse(steps, arena, &s) != OK || schedule_apply(f->node.kernel, &s, arena, &out) != OK)
    test_fail("%s on %s: %s", name, cpu, status_text());
  if (strstr(kernel_print(out, arena), ",floormod(")) /* the last index: others have a blank before them */
    test_fail("%s on %s: an index is still divided: %s", name, cpu, kernel_print(out, arena));
  assert_int_equal(kernel_eval(out, buffers, &rows), OK);
  check_bits(name, cpu, result, bits, count, 1e-4);
  if (strcmp(cpu, "native") != 0)
    return;
  struct compiled made = compile_kernels(&out, 1, cpu);
  char what[200];
  if (!agree(out, made.code, &rows, 0, 0, what, sizeof what))
    test_fail("%s: %s", name, what);
  dlclose(made.handle);
}
static void check_reading(struct fixture *f, const char *name) {
  const int64_t rows = OPEN_ROWS;
  uint32_t last = f->kernel->buffers.count - 1;
  value_id values[8] = {0};
  void *of_values[8], *buffers[8];
  int64_t count = buffer_count(f->kernel, last, &rows);
  for (uint32_t i = 0; i <= last; i++)
    of_values[i] = random_floats(&f->arena, buffer_count(f->kernel, i, &rows), i + 1);
  assert_int_equal(kernel_eval(f->kernel, of_values, &rows), OK);
  float *wanted = of_values[last], *result = of_values[last] = random_floats(&f->arena, count, 9);
  make_flow(f);
  for (uint32_t i = 0; i <= last; i++)
    values[i] = f->node.args[i].value;
  values[1] = add_packed(f);
  of_values[1] = pack(f, of_values[1]);
  panels_read(f->flow, &f->node, 1, &f->panels, values[1]);
  bind(f, values, of_values, buffers);
  assert_int_equal(kernel_verify(f->node.kernel), OK);
  assert_int_equal(kernel_eval(f->node.kernel, buffers, &rows), OK);
  check_bits(name, "read in panels", result, wanted, count, 0);
  check_scheduled(f, name, "x86-64-v4", buffers, result, wanted, count);
  check_scheduled(f, name, "x86-64-v3", buffers, result, wanted, count);
  if (machine_find("native")->has_fma)
    check_scheduled(f, name, "native", buffers, result, wanted, count);
}
static void who_reads_panels_gives_the_same_bits(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct fixture f;
    set_up(&f, &cases[i]);
    f.panels.width = 32; /* that all machines can read */
    if (f.is_found)
      check_reading(&f, cases[i].name);
    tear_down(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(factors_that_stay_alike_are_brought_into_panels),
    cmocka_unit_test(the_kernels_pack_as_constants_are_packed_and_back),
    cmocka_unit_test(who_reads_panels_gives_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
