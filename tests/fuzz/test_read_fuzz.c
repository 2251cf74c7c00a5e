/* Every reader of untrusted files, fed with damaged ones: bytes changed, cut out, put in, repeated, joined with another
 * file. The damage is drawn from a fixed seed, so that a failure comes again. Nothing may crash or hang, and what is asked
 * of the system stays in proportion. TFC_FUZZ_ITERATIONS: how many damaged files for each good one (default 2000). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/npy.h"
#include "compiler/cluster.h"
#include "base/bundle_table.h"
#include "compiler/read/import.h"
#include "compiler/read/read.h"
#include "ir/function.h"
#include "ir/registry.h"
#include "tests/fuzz/damage.h"
#include "tests/support/test.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/"
#define SECONDS_MAX 20 /* for one file, under a sanitizer on a busy machine */
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

static void read_graph(const struct bytes *file) {
  struct arena arena;
  struct model model = {0};
  arena_init(&arena);
  if (model_parse(file->data, file->size, &arena, &model) == OK)
    graph_use(&model, &arena);
  assert_true(arena.total < MEMORY_MAX + file->size * 256);
  model_deinit(&model);
  arena_deinit(&arena);
}

static void read_array(const struct bytes *file) {
  struct tensor *tensor;
  if (npy_parse(file->data, file->size, "fuzz", &tensor) == OK)
    tensor_release(tensor);
}

static void read_cluster(const struct bytes *file) {
  struct arena arena;
  struct cluster cluster = {0};
  arena_init(&arena);
  if (cluster_parse((const char *)file->data, file->size, &arena, &cluster) == OK)
    assert_true(cluster_default_task(&cluster) < cluster.tasks.count);
  vec_free(&cluster.tasks);
  arena_deinit(&arena);
}

static char folder[] = "/tmp/test_read_fuzz_XXXXXX";

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
static void read_bundle(const struct bytes *original) {
  static struct bytes mended;
  const struct bytes *file = &mended;
  mended = *original;
  checksums_mend(&mended);
  struct arena arena;
  struct bundle_table table = {0};
  struct bundle *bundle;
  struct constant value;
  char prefix[64];
  arena_init(&arena);
  if (bundle_table_parse(file->data, file->size, &arena, &table) == OK) {
    for (uint32_t i = 0; i < table.count; i++)
      assert_non_null(bundle_table_find(&table, table.items[i].key, table.items[i].key_size));
    file_write("v.index", file->data, file->size);
    snprintf(prefix, sizeof prefix, "%s/v", folder);
    status result = bundle_open(prefix, &arena, &bundle);
    for (uint32_t i = 0; result == OK && i < table.count; i++)
      if (bundle_read(bundle, table.items[i].key, &value) == OK)
        assert_true(value.count >= 0);
  }
  assert_true(arena.total < MEMORY_MAX);
  arena_deinit(&arena);
}

/* ---- files ---- */

static const struct corpus_file {
  const char *name;
  void (*read)(const struct bytes *file);
} corpus[] = {
  {"graph.pb", read_graph},       {"meta.meta", read_graph},     {"saved_model.pb", read_graph},
  {"functions.pb", read_graph},   {"function.pbtxt", read_graph}, {"float.npy", read_array},
  {"columns.npy", read_array},    {"strings.npy", read_array},   {"cluster.json", read_cluster},
  {"variables.index", read_bundle},
};
#define CORPUS_COUNT (sizeof corpus / sizeof *corpus)
static struct bytes originals[CORPUS_COUNT], damaged;

static void corpus_load(size_t i) {
  char path[512];
  snprintf(path, sizeof path, CORPUS "%s", corpus[i].name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  originals[i].size = fread(originals[i].data, 1, FILE_BYTES_MAX, f);
  fclose(f);
  assert_true(originals[i].size > 0);
}

static int corpus_load_all(void **state) {
  (void)state;
  struct bytes data;
  for (size_t i = 0; i < CORPUS_COUNT; i++)
    corpus_load(i);
  if (!mkdtemp(folder))
    return -1;
  FILE *f = fopen(CORPUS "variables.data-00000-of-00001", "rb");
  if (!f)
    return -1;
  data.size = fread(data.data, 1, FILE_BYTES_MAX, f);
  fclose(f);
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
  for (size_t i = 0; i < CORPUS_COUNT; i++)
    corpus[i].read(&originals[i]);
}

static void damaged_files_do_no_harm(void **state) {
  (void)state;
  for (size_t i = 0; i < CORPUS_COUNT; i++) {
    random_state = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
    for (long k = 0; k < iterations(); k++) {
      damaged = originals[i];
      for (size_t n = 1 + random_below(4); n > 0; n--)
        damage_once(&damaged, &originals[random_below(CORPUS_COUNT)]);
      alarm(SECONDS_MAX);
      corpus[i].read(&damaged);
    }
  }
  alarm(0);
}

static void every_beginning_of_a_file_does_no_harm(void **state) {
  (void)state;
  for (size_t i = 0; i < CORPUS_COUNT; i++)
    for (size_t size = 0; size < originals[i].size; size += 1 + originals[i].size / 500) {
      damaged.size = size;
      memcpy(damaged.data, originals[i].data, size);
      alarm(SECONDS_MAX);
      corpus[i].read(&damaged);
    }
  alarm(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_files_are_read),
    cmocka_unit_test(damaged_files_do_no_harm),
    cmocka_unit_test(every_beginning_of_a_file_does_no_harm),
  };
  return cmocka_run_group_tests(tests, corpus_load_all, folder_remove);
}
