/* test_layers.c: who includes whom: the folders of the runtime and of the IR from low to high, and which of their headers others may
 * see. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define FOLDER_FILES 60

struct layer {
  const char *folder, *headers; /* for other folders; each between blanks */
};

/* Low to high. A file sees its own folder, and of those above it in this list what is public. */
static const struct layer runtime_layers[] = {
  {"text", " element_number.h element_text.h number_parse.h regex.h string_hash.h string_output.h unicode_case.h unicode_class.h"
           " utf8.h "},
  {"program", " program.h program_check.h cpu.h device_name.h entry_print.h size.h fault.h monotonic.h "},
  {"memory", " buffer.h variable.h container.h arena_plan.h "},
  {"host", " host.h host.def host_path.h inbox.h object.h wait_list.h "},
  {"value",
   " boxed_sparse.h csr_matrix.h element_sum.h object_message.h optional.h sparse_tensor.h tensor_list.h tensor_message.h tensor_proto.h"
   " tensor_summary.h "},
  {"resource", " accumulator.h barrier.h collective.h dense_table.h meeting.h philox_stream.h queue.h staging.h table.h tensor_array.h "},
  {"step", " task.h task_state.h frame.h crew.h pool.h commit.h driver_state.h exchange.h partial.h stall.h step_stats.h trace.h waits.h "},
  {"data", " dataset.h events.h iterator_place.h example_values.h inflate.h record_file.h "},
  {"image", " "},
  {"calls", " "},
  {"net", " address.h connection.h grpc_server.h link.h loop.h net_limits.h receive_pool.h tls.h "},
  {"cluster", " cluster.h control.h cut.h history.h look.h view.h "},
  {"checkpoint", " job.h task_note.h "},
  {"master", " client_service.h "},
  {"process", " progress.h "},
  {NULL, NULL},
};
static const struct layer ir_layers[] = {
  {"size", " dim.h "},
  {"graph", " attr_hash.h feed_ranks.h function.h gradient.h graph.h implementation.h registry.h "},
  {"kernel", " contraction.h formula.h formula_words.h kernel.h kernel_eval.h kernel_lanes.h kernel_nests.h "},
  {"flow", " flow.h "},
  {"schedule", " collapse.h cost.h line_up.h machine.h over_turns.h schedule.h unfold.h vectors.h "},
  {"lower", " host_call.h lower.h lower_frame.h lower_walk.h turns.h unsupported.h "},
  {"ops", " token_attrs.h "},
  {NULL, NULL},
};

/* Folders whose sources lie in folders of one noun. */
static const struct tree {
  const char *name;
  const struct layer *layers;
  const char *outside; /* what the compiler sees of it, each between blanks; NULL: what is public */
} trees[] = {
  {"runtime", runtime_layers, " program/program.h program/program_check.h program/entry_print.h host/host.def process/progress.h "},
  {"ir", ir_layers, NULL},
};
#define TREES (sizeof trees / sizeof *trees)
#define RUNTIME (&trees[0])

/* Those that see what is outside of them; tests see everything. */
static const char *const built_with[] = {"compiler", "targets"};

static bool has_word(const char *words, const char *word) {
  size_t size = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at++)
    if (at > words && at[-1] == ' ' && at[size] == ' ')
      return true;
  return false;
}

/* NULL: the tree has no such folder. */
static const struct layer *layer_of(const struct tree *tree, const char *folder) {
  const struct layer *layer = tree->layers;
  while (layer->folder && strcmp(layer->folder, folder) != 0)
    layer++;
  return layer->folder ? layer : NULL;
}

/* The tree that the path of a header begins with, and the rest behind it; NULL: none. */
static const struct tree *tree_of(const char *path, const char **rest) {
  for (size_t i = 0; i < TREES; i++) {
    size_t size = strlen(trees[i].name);
    *rest = path + size + 1;
    if (strncmp(path, trees[i].name, size) == 0 && path[size] == '/')
      return &trees[i];
  }
  return NULL;
}

/* What is wrong with a line `#include "tree/path"` in a file of tree/<folder>, or with folder NULL outside of it; NULL: nothing. */
static const char *complaint_of_tree(const struct tree *tree, const char *folder, const char *path) {
  char to[64];
  int end = 0;
  if (!folder && tree->outside)
    return has_word(tree->outside, path) ? NULL : "is not for the compiler";
  if (!strchr(path, '/') && strstr(path, ".def"))
    return NULL; /* the tables of all folders */
  const struct layer *layer = sscanf(path, "%63[^/]/%n", to, &end) == 1 && end ? layer_of(tree, to) : NULL;
  if (!layer)
    return "no folder of the table";
  if (folder && strcmp(folder, to) == 0)
    return NULL;
  if (folder && layer > layer_of(tree, folder))
    return "is in a higher folder";
  return has_word(layer->headers, path + end) ? NULL : "is its folder's own";
}

/* The same of any line; tree NULL: in a file of the compiler. */
static const char *complaint(const struct tree *tree, const char *folder, const char *path) {
  const char *rest;
  const struct tree *of = tree_of(path, &rest);
  if (of && of == tree)
    return complaint_of_tree(of, folder, rest);
  if (tree && !of && strncmp(path, "base/", 5) != 0)
    return "is above it";
  if (tree == RUNTIME && of)
    return "is above it";
  return of ? complaint_of_tree(of, NULL, rest) : NULL;
}

static const struct {
  const char *in, *path, *complaint; /* in: a tree's folder, or the compiler */
} includes[] = {
  {"runtime/step/", "base/status.h", NULL},
  {"runtime/step/", "runtime/step/rendezvous.h", NULL},
  {"runtime/step/", "runtime/host/host.h", NULL},
  {"runtime/host/", "runtime/step/frame.h", "is in a higher folder"},
  {"runtime/calls/", "runtime/step/rendezvous.h", "is its folder's own"},
  {"runtime/master/", "runtime/cluster/cluster_state.h", "is its folder's own"},
  {"runtime/master/", "runtime/elsewhere/cluster.h", "no folder of the table"},
  {"runtime/step/", "ir/flow/flow.h", "is above it"},
  {"runtime/step/", "compiler/build.h", "is above it"},
  {"runtime/step/", "runtime/step.h", "no folder of the table"},
  {"ir/flow/", "ir/kernel/kernel.h", NULL},
  {"ir/ops/", "ir/ops.def", NULL},
  {"ir/kernel/", "ir/flow/flow.h", "is in a higher folder"},
  {"ir/lower/", "ir/schedule/schedule_rewrite.h", "is its folder's own"},
  {"ir/size/", "runtime/program/program.h", NULL},
  {"ir/flow/", "runtime/step/task.h", "is not for the compiler"},
  {"ir/flow/", "compiler/build.h", "is above it"},
  {"compiler/", "runtime/program/program.h", NULL},
  {"compiler/", "ir/flow/flow.h", NULL},
  {"compiler/", "ir/schedule/schedule_rewrite.h", "is its folder's own"},
  {"compiler/", "runtime/step/task.h", "is not for the compiler"},
};

static void what_may_not_be_included_is_complained_of(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof includes / sizeof *includes; i++) {
    const char *rest;
    const struct tree *tree = tree_of(includes[i].in, &rest);
    char folder[64] = "";
    if (tree)
      snprintf(folder, sizeof folder, "%.*s", (int)strcspn(rest, "/"), rest);
    const char *said = complaint(tree, tree ? folder : NULL, includes[i].path);
    if (strcmp(said ? said : "", includes[i].complaint ? includes[i].complaint : "") != 0)
      fail_msg("%s: %s: %s", includes[i].in, includes[i].path, said);
  }
}

static struct {
  char seen[65536]; /* the headers that others include, as " tree/folder/name.h " */
  size_t seen_size;
  int complaints;
} found;

static void note(const char *header) {
  if (!has_word(found.seen, header))
    found.seen_size += (size_t)snprintf(found.seen + found.seen_size, sizeof found.seen - found.seen_size, " %s ", header);
  assert_true(found.seen_size < sizeof found.seen);
}

static bool is_of_folder(const struct tree *tree, const char *folder, const char *path) {
  char prefix[128];
  snprintf(prefix, sizeof prefix, "%s/%s/", tree ? tree->name : "", folder ? folder : "");
  return tree && strncmp(path, prefix, strlen(prefix)) == 0;
}

static void look_at(const char *file, const struct tree *tree, const char *folder) {
  char line[4096], path[512];
  const char *rest;
  FILE *in = fopen(file, "r");
  assert_non_null(in);
  for (int number = 1; fgets(line, sizeof line, in); number++) {
    if (sscanf(line, " # include \"%511[^\"]\"", path) != 1)
      continue;
    const char *said = complaint(tree, folder, path);
    if (said)
      print_error("%s:%d: %s %s\n", file, number, path, said);
    found.complaints += said != NULL;
    if (tree_of(path, &rest) && !is_of_folder(tree, folder, path))
      note(path);
  }
  fclose(in);
}

static bool is_folder(const char *path) {
  struct stat at;
  return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

static bool is_source(const char *name) {
  const char *end = strrchr(name, '.');
  return end && (strcmp(end, ".c") == 0 || strcmp(end, ".h") == 0 || strcmp(end, ".def") == 0);
}

/* All sources under the path; folder: of the tree, or NULL. The number of files that lie in it. */
static int look_through(const char *path, const struct tree *tree, const char *folder) {
  DIR *dir = opendir(path);
  assert_non_null(dir);
  int files = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    char at[4096];
    snprintf(at, sizeof at, "%s/%s", path, entry->d_name);
    if (entry->d_name[0] == '.')
      continue;
    if (is_folder(at))
      look_through(at, tree, folder);
    else if (is_source(entry->d_name)) {
      look_at(at, tree, folder);
      files++;
    }
  }
  closedir(dir);
  return files;
}

static void look_through_tree(const struct tree *tree) {
  char at[4096];
  snprintf(at, sizeof at, SOURCE_DIR "/%s", tree->name);
  DIR *dir = opendir(at);
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir));) {
    const char *name = entry->d_name;
    snprintf(at, sizeof at, SOURCE_DIR "/%s/%s", tree->name, name);
    if (name[0] == '.' || (!is_folder(at) && (!is_source(name) || strstr(name, ".def"))))
      continue;
    if (!is_folder(at) || !layer_of(tree, name))
      fail_msg("%s/%s: sources lie in the folders of `trees`", tree->name, name);
    int files = look_through(at, tree, name);
    if (files > FOLDER_FILES)
      fail_msg("%s/%s: %d files are more than one noun", tree->name, name, files);
  }
  closedir(dir);
}

static void every_source_lies_in_a_folder_of_the_table_and_includes_what_is_below_it(void **state) {
  (void)state;
  memset(&found, 0, sizeof found);
  for (size_t i = 0; i < TREES; i++)
    look_through_tree(&trees[i]);
  for (size_t i = 0; i < sizeof built_with / sizeof *built_with; i++) {
    char at[4096];
    snprintf(at, sizeof at, SOURCE_DIR "/%s", built_with[i]);
    look_through(at, NULL, NULL);
  }
  assert_int_equal(found.complaints, 0);
}

/* Runs after the one above, which has collected them. */
static void every_public_header_is_included_by_somebody_else(void **state) {
  (void)state;
  for (size_t i = 0; i < TREES; i++)
    for (const struct layer *layer = trees[i].layers; layer->folder; layer++) {
      char names[512], *rest = names;
      snprintf(names, sizeof names, "%s", layer->headers);
      for (char *name; (name = strsep(&rest, " "));) {
        char header[1024];
        snprintf(header, sizeof header, "%s/%s/%s", trees[i].name, layer->folder, name);
        if (*name && !has_word(found.seen, header))
          fail_msg("%s: nobody outside of its folder includes it: take it out of `trees`", header);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_may_not_be_included_is_complained_of),
    cmocka_unit_test(every_source_lies_in_a_folder_of_the_table_and_includes_what_is_below_it),
    cmocka_unit_test(every_public_header_is_included_by_somebody_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
