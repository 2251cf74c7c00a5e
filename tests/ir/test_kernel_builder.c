/* test_kernel_builder.c: what kb_finish refuses of a kernel that a builder has made. */
#include "ir/lower/lower_state.h"
#include "tests/support/test.h"

struct fixture {
  struct arena arena;
  struct lower lower;
  struct node node;
  struct op_call call;
};

static void begin(struct fixture *f, struct kb *kb) {
  *f = (struct fixture){.node = {.name = "n", .op = "Test"}};
  arena_init(&f->arena);
  f->lower.arena = &f->arena;
  f->lower.dims = dims_create(&f->arena);
  f->lower.walk.flow = flow_create(&f->arena, f->lower.dims);
  f->call = (struct op_call){.lw = &f->lower, .node = &f->node};
  kb_begin(kb, &f->call, DTYPE_FLOAT);
}

static void end(struct fixture *f, struct kb *kb) {
  vec_free(&kb->args);
  vec_free(&kb->sizes);
  vec_free(&kb->places);
  arena_deinit(&f->arena);
}

static void an_output_without_a_size_is_a_fault_of_its_builder(void **state) {
  (void)state;
  struct fixture f;
  struct kb kb;
  begin(&f, &kb);
  dim zero = dim_const(f.lower.dims, 0), four = dim_const(f.lower.dims, 4);
  const dim sized[] = {four}, unsized[] = {four, dim_floordiv(f.lower.dims, four, zero)};
  kb_out(&kb, DTYPE_FLOAT, 1, sized);
  kb_out(&kb, DTYPE_FLOAT, 2, unsized);
  assert_int_equal(kb_finish(&kb), INTERNAL);
  assert_string_equal(status_text(), "dimension 1 of output 1 has no size");
  end(&f, &kb);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_output_without_a_size_is_a_fault_of_its_builder)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
