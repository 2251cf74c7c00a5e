/* test_program_size.c: how many kernels a program gets, however many a graph asks for. */
#include "compiler/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/support/graph_builder.h"
#include "tests/support/temp_path.h"

struct counts {
  uint32_t all, products; /* products: those that begin with one */
};

static struct counts count_kernels(const char *path, const char *entry) {
  struct build b = {.options = {.graph_path = path, .cpu = "x86-64-v3"}};
  struct emitted emitted = {0};
  struct counts out = {0};
  arena_init(&b.arena);
  vec_push(&b.options.entries, entry);
  if (pipeline_run(&b) != OK)
    fail_msg("%s", status_text());
  assert_int_equal(build_emit(&b, 0, &emitted), OK);
  out.all = emitted.kernels.count;
  for (uint32_t i = 0; i < emitted.kernels.count; i++)
    out.products += strncmp(emitted.kernels.items[i]->name, "MatMul", 6) == 0;
  vec_free(&emitted.kernels);
  model_deinit(&b.model);
  vec_free(&b.options.entries);
  arena_deinit(&b.arena);
  return out;
}

static struct counts count_kernels_of(const char *lines, const char *entry) {
  char path[TEMP_PATH_SIZE], *text = graph_builder_text(lines);
  assert_true(temp_file(path, ".pbtxt", text, strlen(text)));
  free(text);
  struct counts out = count_kernels(path, entry);
  unlink(path);
  return out;
}

/* `number` as a chain of eight ops on `from`, the last of them named `name`. */
static void put_chain(FILE *out, const char *name, const char *from, int number) {
  for (int bit = 0; bit < 8; bit++) {
    fprintf(out, bit < 7 ? "%s_%d" : "%s", name, bit);
    fprintf(out, " %s - ", number >> bit & 1 ? "Tanh" : "Softplus");
    fprintf(out, bit ? "%s_%d T=FLOAT\n" : "%s T=FLOAT\n", bit ? name : from, bit - 1);
  }
}

/* Products in a chain, each followed by other ops than all the others. */
static struct counts count_of_products(int products) {
  char *lines = NULL, entry[64], from[32] = "x", name[32], product[32];
  size_t size;
  FILE *out = open_memstream(&lines, &size);
  fprintf(out, "x Placeholder - dtype=FLOAT shape=4,16\nw Placeholder - dtype=FLOAT shape=16,16\n");
  for (int i = 0; i < products; i++) {
    snprintf(product, sizeof product, "m%d", i);
    snprintf(name, sizeof name, "y%d", i);
    fprintf(out, "%s MatMul - %s w T=FLOAT\n", product, from);
    put_chain(out, name, product, i);
    snprintf(from, sizeof from, "%s", name);
  }
  fclose(out);
  snprintf(entry, sizeof entry, "main: x, w -> %s", from);
  struct counts counts = count_kernels_of(lines, entry);
  free(lines);
  return counts;
}

static void products_beyond_a_limit_are_one_kernel(void **state) {
  (void)state;
  struct counts few = count_of_products(100), many = count_of_products(200);
  assert_int_equal(few.products, 100);
  assert_int_equal(few.all, 100);
  assert_int_equal(many.products, 128 + 1);
  assert_int_equal(many.all, 128 + 1 + 200 - 128);
}

/* Chains of eight ops over vectors of 100 sizes. */
static struct counts count_of_sizes(int chains) {
  char *lines = NULL, *entry = NULL, from[32], name[32];
  size_t size, entry_size;
  FILE *out = open_memstream(&lines, &size), *feeds = open_memstream(&entry, &entry_size);
  for (int width = 0; width < 100; width++)
    fprintf(out, "x%d Placeholder - dtype=FLOAT shape=%d\n", width, width + 8);
  fprintf(feeds, "main: ");
  for (int width = 0; width < 100; width++)
    fprintf(feeds, "%sx%d", width ? ", " : "", width);
  fprintf(feeds, " -> ");
  for (int width = 0; width < 100; width++)
    for (int i = 0; i < chains; i++) {
      snprintf(from, sizeof from, "x%d", width);
      snprintf(name, sizeof name, "y%d_%d", width, i);
      put_chain(out, name, from, i);
      fprintf(feeds, "%s%s", width + i ? ", " : "", name);
    }
  fclose(out);
  fclose(feeds);
  struct counts counts = count_kernels_of(lines, entry);
  free(lines);
  free(entry);
  return counts;
}

static void sums_over_many_widths_become_one(void **state) {
  (void)state;
  /* of 136 widths, twice */
  assert_in_range(count_kernels(SOURCE_DIR "/tests/golden/models/many_sizes/graph.pb", "main: x -> sums").all, 2, 8);
}

/* Of the 100 sizes 56 are short: those that are not are one kernel for each chain. */
static void of_very_many_kernels_fewer_sizes_become_one(void **state) {
  (void)state;
  assert_int_equal(count_of_sizes(17).all, 17 * 57);
  assert_int_equal(count_of_sizes(18).all, 18);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(products_beyond_a_limit_are_one_kernel),
    cmocka_unit_test(sums_over_many_widths_become_one),
    cmocka_unit_test(of_very_many_kernels_fewer_sizes_become_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
