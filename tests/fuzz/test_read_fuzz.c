/* Every reader of untrusted files, fed with damaged ones (damage.h). Nothing may crash or hang, and what is asked of the system stays in
 * proportion. */
#include "base/crc32c.h"
#include "base/npy.h"
#include "compiler/cluster.h"
#include "base/bundle_table.h"
#include "compiler/read/import.h"
#include "compiler/read/read.h"
#include "ir/graph/function.h"
#include "ir/graph/registry.h"
#include "tests/fuzz/damage.h"
#include "tests/support/temp_path.h"

#define MEMORY_MAX (((size_t)512 << 20) + (64 << 20)) /* what repeated values may fill, and some */

/* ---- readers ---- */

static void graph_use(struct model *model, struct arena *arena) {
  struct graph *graph = model->graph;
  if (registry_check(graph) != OK)
    return;
  status ignored = graph_order(graph, ARENA_ARRAY(arena, uint32_t, graph->nodes.count + 1));
  struct attr type = {.name = "T", .value = {.kind = ATTR_TYPE, .i = DTYPE_FLOAT}};
  for (uint32_t i = 0; i < graph->functions.count; i++) {
    struct instance instance;
    if (function_instantiate(graph, &graph->functions.items[i], &type, 1, "call", arena, &instance) != OK)
      continue;
    ignored = graph_order(instance.graph, ARENA_ARRAY(arena, uint32_t, instance.graph->nodes.count + 1));
    instance_deinit(&instance);
  }
  (void)ignored;
}

static bool read_graph(const struct bytes *file) {
  struct arena arena;
  struct model model = {0};
  arena_init(&arena);
  bool good = model_parse(file->data, file->size, &arena, &model) == OK;
  if (good)
    graph_use(&model, &arena);
  assert_true(arena.total < MEMORY_MAX + file->size * 256);
  model_deinit(&model);
  arena_deinit(&arena);
  return good;
}

static bool read_array(const struct bytes *file) {
  struct tensor *tensor;
  bool good = npy_parse(file->data, file->size, "fuzz", &tensor) == OK;
  if (good)
    tensor_release(tensor);
  return good;
}

static bool read_cluster(const struct bytes *file) {
  struct arena arena;
  struct cluster cluster = {0};
  arena_init(&arena);
  bool good = cluster_parse((const char *)file->data, file->size, &arena, &cluster) == OK;
  if (good)
    assert_true(cluster_default_task(&cluster) < cluster.tasks.count);
  vec_free(&cluster.tasks);
  arena_deinit(&arena);
  return good;
}

static char folder[TEMP_PATH_SIZE];

static void file_write(const char *name, const void *data, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  fclose(f);
}

/* Checksums would stop nearly all damage at the door: where the blocks are still in their places (data, 8 bytes of
 * metaindex, index, footer; one byte each for offsets and sizes), they are mended. */
static void checksums_mend(struct bytes *file) {
  const unsigned char *footer = file->data + file->size - 48;
  if (file->size < 48 || footer[0] > 127 || footer[1] > 127 || footer[2] + footer[3] + 5u > file->size - 48)
    return;
  size_t begin[] = {0, footer[0], footer[2]}, size[] = {footer[0] - 5u, footer[1], footer[3]};
  for (int i = 0; i < 3; i++) {
    if (begin[i] + size[i] + 5 > file->size || size[i] > file->size)
      continue;
    uint32_t crc = crc32c_mask(crc32c(file->data + begin[i], size[i] + 1));
    memcpy(file->data + begin[i] + size[i] + 1, &crc, 4);
  }
}

/* The table alone, and the whole with its data. */
static bool read_bundle(const struct bytes *original) {
  static struct bytes mended;
  const struct bytes *file = &mended;
  mended = *original;
  checksums_mend(&mended);
  struct arena arena;
  struct bundle_table table = {0};
  struct bundle *bundle;
  struct constant value;
  char prefix[TEMP_PATH_SIZE + 2];
  arena_init(&arena);
  bool good = bundle_table_parse(file->data, file->size, &arena, &table) == OK;
  if (good) {
    for (uint32_t i = 0; i < table.count; i++)
      assert_non_null(bundle_table_find(&table, table.items[i].key, table.items[i].key_size));
    file_write("v.index", file->data, file->size);
    snprintf(prefix, sizeof prefix, "%s/v", folder);
    status result = bundle_open(prefix, &arena, &bundle);
    good = result == OK && table.count > 1;
    for (uint32_t i = 0; result == OK && i < table.count; i++)
      if (bundle_read(bundle, table.items[i].key, &value) == OK)
        assert_true(value.count >= 0);
      else
        good &= !table.items[i].key_size; /* the header */
  }
  assert_true(arena.total < MEMORY_MAX);
  arena_deinit(&arena);
  return good;
}

/* ---- files ---- */

static const struct corpus_file corpus[] = {
  {"graph.pb", read_graph},       {"meta.meta", read_graph}, {"saved_model.pb", read_graph},   {"functions.pb", read_graph},
  {"function.pbtxt", read_graph}, {"float.npy", read_array}, {"columns.npy", read_array},      {"strings.npy", read_array},
  {"cluster.json", read_cluster}, {"places.pb", read_graph}, {"variables.index", read_bundle},
};
#define CORPUS_COUNT (sizeof corpus / sizeof *corpus)

static int corpus_load_all(void **state) {
  (void)state;
  static struct bytes data;
  corpus_load(corpus, CORPUS_COUNT);
  if (!temp_folder(folder))
    return -1;
  file_load("variables.data-00000-of-00001", &data);
  file_write("v.data-00000-of-00001", data.data, data.size);
  return 0;
}

static int folder_remove(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/v.index", folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/v.data-00000-of-00001", folder);
  unlink(path);
  return rmdir(folder);
}

static void good_files_are_read(void **state) {
  (void)state;
  corpus_read(corpus, CORPUS_COUNT);
}

static void damaged_files_do_no_harm(void **state) {
  (void)state;
  corpus_damage(corpus, CORPUS_COUNT);
}

static void every_beginning_of_a_file_does_no_harm(void **state) {
  (void)state;
  corpus_cut(corpus, CORPUS_COUNT, 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_files_are_read),
    cmocka_unit_test(damaged_files_do_no_harm),
    cmocka_unit_test(every_beginning_of_a_file_does_no_harm),
  };
  return cmocka_run_group_tests(tests, corpus_load_all, folder_remove);
}
