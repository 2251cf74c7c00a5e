/* test_layers.c: who includes whom: the folders of the runtime from low to high, and which of their headers others may see. */
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

/* Low to high. A file sees its own folder, and of those above it in this list what is public. */
static const struct layer {
  const char *folder, *headers; /* for other folders; each between blanks */
} layers[] = {
  {"text", " element_number.h element_text.h number_parse.h regex.h string_hash.h string_output.h unicode_class.h utf8.h "},
  {"program", " program.h program_check.h cpu.h entry_print.h size.h fault.h "},
  {"memory", " buffer.h variable.h container.h arena_plan.h "},
  {"host", " host.h host.def host_path.h inbox.h object.h wait_list.h "},
  {"value", " boxed_sparse.h csr_matrix.h element_sum.h fourier.h optional.h sparse_tensor.h tensor_list.h tensor_message.h tensor_proto.h"
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
};
#define LAYERS (sizeof layers / sizeof *layers)

/* Outside of the runtime: tests see everything, the others these. */
static const char *const built_with[] = {"ir", "compiler", "targets"};
static const char *const seen_outside =
  " program/program.h program/program_check.h program/entry_print.h host/host.def process/progress.h ";

static size_t layer_of(const char *folder) {
  size_t i = 0;
  while (i < LAYERS && strcmp(layers[i].folder, folder) != 0)
    i++;
  return i;
}

static bool has_word(const char *words, const char *word) {
  size_t size = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at++)
    if (at > words && at[-1] == ' ' && at[size] == ' ')
      return true;
  return false;
}

/* What is wrong with a line `#include "path"` in a file of runtime/<folder>; NULL: nothing. */
static const char *complaint_inside(const char *folder, const char *path) {
  char to[64];
  int end = 0;
  if (strncmp(path, "base/", 5) == 0)
    return NULL;
  if (sscanf(path, "runtime/%63[^/]/%n", to, &end) != 1 || !end)
    return "the runtime includes base and runtime only";
  if (strcmp(folder, to) == 0)
    return NULL;
  if (layer_of(to) == LAYERS)
    return "no folder of the table";
  if (layer_of(to) > layer_of(folder))
    return "is in a higher folder";
  return has_word(layers[layer_of(to)].headers, path + end) ? NULL : "is its folder's own";
}

static const char *complaint_outside(const char *path) {
  if (strncmp(path, "runtime/", 8) != 0 || has_word(seen_outside, path + 8))
    return NULL;
  return "is not for the compiler";
}

static const struct {
  const char *folder, *path, *complaint; /* folder NULL: the compiler */
} includes[] = {
  {"step", "base/status.h", NULL},
  {"step", "runtime/step/rendezvous.h", NULL},
  {"step", "runtime/host/host.h", NULL},
  {"host", "runtime/step/frame.h", "is in a higher folder"},
  {"calls", "runtime/step/rendezvous.h", "is its folder's own"},
  {"master", "runtime/cluster/cluster_state.h", "is its folder's own"},
  {"master", "runtime/elsewhere/cluster.h", "no folder of the table"},
  {"step", "ir/flow.h", "the runtime includes base and runtime only"},
  {"step", "runtime/step.h", "the runtime includes base and runtime only"},
  {NULL, "runtime/program/program.h", NULL},
  {NULL, "ir/flow.h", NULL},
  {NULL, "runtime/step/task.h", "is not for the compiler"},
};

static void what_may_not_be_included_is_complained_of(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof includes / sizeof *includes; i++) {
    const char *said = includes[i].folder ? complaint_inside(includes[i].folder, includes[i].path) : complaint_outside(includes[i].path);
    if (strcmp(said ? said : "", includes[i].complaint ? includes[i].complaint : "") != 0)
      fail_msg("%s: %s: %s", includes[i].folder, includes[i].path, said);
  }
}

static struct {
  char seen[65536]; /* the headers that others include, as " folder/name.h " */
  size_t seen_size;
  int complaints;
} found;

static void note(const char *header) {
  if (!has_word(found.seen, header))
    found.seen_size += (size_t)snprintf(found.seen + found.seen_size, sizeof found.seen - found.seen_size, " %s ", header);
  assert_true(found.seen_size < sizeof found.seen);
}

static void look_at(const char *file, const char *folder) {
  char line[4096], path[512];
  FILE *in = fopen(file, "r");
  assert_non_null(in);
  for (int number = 1; fgets(line, sizeof line, in); number++) {
    if (sscanf(line, " # include \"%511[^\"]\"", path) != 1)
      continue;
    const char *said = folder ? complaint_inside(folder, path) : complaint_outside(path);
    if (said)
      print_error("%s:%d: %s %s\n", file, number, path, said);
    found.complaints += said != NULL;
    if (strncmp(path, "runtime/", 8) == 0 && !(folder && strncmp(path + 8, folder, strlen(folder)) == 0 && path[8 + strlen(folder)] == '/'))
      note(path + 8);
  }
  fclose(in);
}

static bool is_folder(const char *path) {
  struct stat at;
  return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

/* All sources under the path; folder: of the runtime, or NULL. The number of files that lie in it. */
static int look_through(const char *path, const char *folder) {
  DIR *dir = opendir(path);
  assert_non_null(dir);
  int files = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    char at[4096];
    const char *end = strrchr(entry->d_name, '.');
    snprintf(at, sizeof at, "%s/%s", path, entry->d_name);
    if (entry->d_name[0] == '.')
      continue;
    if (is_folder(at))
      look_through(at, folder);
    else if (end && (strcmp(end, ".c") == 0 || strcmp(end, ".h") == 0 || strcmp(end, ".def") == 0)) {
      look_at(at, folder);
      files++;
    }
  }
  closedir(dir);
  return files;
}

static void every_source_lies_in_a_folder_of_the_table_and_includes_what_is_below_it(void **state) {
  (void)state;
  memset(&found, 0, sizeof found);
  DIR *dir = opendir(SOURCE_DIR "/runtime");
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir));) {
    char at[4096];
    snprintf(at, sizeof at, SOURCE_DIR "/runtime/%s", entry->d_name);
    if (entry->d_name[0] == '.' || strcmp(entry->d_name, "README.md") == 0)
      continue;
    if (!is_folder(at) || layer_of(entry->d_name) == LAYERS)
      fail_msg("runtime/%s: sources lie in the folders of `layers`", entry->d_name);
    int files = look_through(at, entry->d_name);
    if (files > FOLDER_FILES)
      fail_msg("runtime/%s: %d files are more than one noun", entry->d_name, files);
  }
  closedir(dir);
  for (size_t i = 0; i < sizeof built_with / sizeof *built_with; i++) {
    char at[4096];
    snprintf(at, sizeof at, SOURCE_DIR "/%s", built_with[i]);
    look_through(at, NULL);
  }
  assert_int_equal(found.complaints, 0);
}

/* Runs after the one above, which has collected them. */
static void every_public_header_is_included_by_somebody_else(void **state) {
  (void)state;
  for (size_t i = 0; i < LAYERS; i++) {
    char names[512], *rest = names;
    snprintf(names, sizeof names, "%s", layers[i].headers);
    for (char *name; (name = strsep(&rest, " "));) {
      char header[1024];
      snprintf(header, sizeof header, "%s/%s", layers[i].folder, name);
      if (*name && !has_word(found.seen, header))
        fail_msg("runtime/%s: nobody outside of its folder includes it: take it out of `layers`", header);
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
