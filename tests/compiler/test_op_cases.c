/* Every row of ops.def has a value of TensorFlow's to answer to: a conformance case of tests/golden that expects values (not an error)
 * and whose graph holds the op (and that unsupported.txt does not take out), or a row of tests/ir/test_ops_numeric.c. What has none is
 * listed in tests/golden/uncovered.txt, which must not name what has one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/map.h"
#include "ir/lower/lower.h"
#include "ir/graph/registry.h"
#include "tests/support/test.h"

struct seen {
  struct map ops;
  struct map skipped; /* folders below tests/golden */
  struct map listed;  /* ops of uncovered.txt */
  struct arena arena;
  char *numeric; /* the text of the numeric tests */
  uint32_t graphs;
};

static char *file_text(const char *path, struct arena *arena, size_t *size) {
  FILE *file = fopen(path, "rb");
  *size = 0;
  if (!file)
    return arena_strdup(arena, "");
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *text = arena_alloc(arena, *size + 1);
  *size = fread(text, 1, *size, file);
  text[*size] = 0;
  fclose(file);
  return text;
}

/* A node says its op in field 2: a tag of 0x12, a length, the name. Nodes of functions and of SavedModels are found like this too. */
static void take_graph(struct seen *s, const char *path) {
  size_t size;
  const char *bytes = file_text(path, &s->arena, &size);
  s->graphs++;
  for (size_t i = 0; i + 2 < size; i++) {
    size_t length = (unsigned char)bytes[i + 1];
    if (bytes[i] != 0x12 || length > 100 || i + 2 + length > size || (bytes[i + 2] != '_' && (bytes[i + 2] < 'A' || bytes[i + 2] > 'Z')))
      continue;
    const char *name = arena_strndup(&s->arena, bytes + i + 2, length);
    if (op_row_find(name))
      map_insert(&s->ops, name, 1);
  }
}

static bool expects_error(struct seen *s, const char *folder) {
  size_t size;
  return strstr(file_text(arena_printf(&s->arena, "%s/case.json", folder), &s->arena, &size), "\"error\":") != NULL;
}

static void walk(struct seen *s, const char *top, const char *inside) {
  uint32_t found;
  const char *folder = arena_printf(&s->arena, "%s/%s", top, inside);
  DIR *dir = map_find(&s->skipped, inside, &found) || expects_error(s, folder) ? NULL : opendir(folder);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    const char *path = arena_printf(&s->arena, "%s/%s", folder, e->d_name);
    struct stat about;
    if (e->d_name[0] == '.' || stat(path, &about) != 0)
      continue;
    if (strcmp(e->d_name, "graph.pb") == 0 || strcmp(e->d_name, "saved_model.pb") == 0)
      take_graph(s, path);
    else if (S_ISDIR(about.st_mode))
      walk(s, top, *inside ? arena_printf(&s->arena, "%s/%s", inside, e->d_name) : arena_strdup(&s->arena, e->d_name));
  }
  if (dir)
    closedir(dir);
}

static void read_lines(struct seen *s, const char *path, struct map *out) {
  size_t size;
  char *text = file_text(path, &s->arena, &size);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    line[strcspn(line, "# \t")] = 0;
    if (*line)
      map_insert(out, line, 1);
  }
}

static void every_row_answers_to_a_value_of_tensorflow(void **state) {
  (void)state;
  struct seen s = {0};
  uint32_t count, found, bad = 0;
  size_t size;
  arena_init(&s.arena);
  read_lines(&s, SOURCE_DIR "/tests/golden/unsupported.txt", &s.skipped);
  read_lines(&s, SOURCE_DIR "/tests/golden/uncovered.txt", &s.listed);
  walk(&s, SOURCE_DIR "/tests/golden", "");
  s.numeric = file_text(SOURCE_DIR "/tests/ir/test_ops_numeric.c", &s.arena, &size);
  assert_true(s.graphs > 500);
  const struct op_row *rows = op_rows(&count);
  for (uint32_t i = 0; i < count; i++) {
    const char *quoted = arena_printf(&s.arena, "Y(\"%s\"", rows[i].name);
    bool covered = map_find(&s.ops, rows[i].name, &found) || strstr(s.numeric, quoted), listed = map_find(&s.listed, rows[i].name, &found);
    if (!registry_find(rows[i].name) || covered != listed)
      continue;
    fprintf(stderr,
            covered ? "%s has a case: it need not stand in uncovered.txt\n" : "%s is in no conformance case and in no numeric test\n",
            rows[i].name);
    bad++;
  }
  map_deinit(&s.ops);
  map_deinit(&s.skipped);
  map_deinit(&s.listed);
  arena_deinit(&s.arena);
  assert_int_equal(bad, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_answers_to_a_value_of_tensorflow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
