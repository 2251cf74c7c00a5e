/* test_states.c: the tables of states and events in runtime/README.md against the headers that they are of. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/test.h"

#define SECTION "\n## States and events"
#define HEADING "\n### `"
#define NAMES_MAX 128
#define NAME_SIZE 80

struct names {
  char list[NAMES_MAX][NAME_SIZE];
  int count;
};

static char *read_file(const char *path) {
  char full[512];
  snprintf(full, sizeof full, "%s/%s", SOURCE_DIR, path);
  FILE *file = fopen(full, "r");
  if (!file)
    test_fail("%s: no such file", path);
  char *text = calloc(1, 1 << 20);
  size_t size = fread(text, 1, (1 << 20) - 1, file);
  text[size] = 0;
  fclose(file);
  return text;
}

static void add(struct names *names, const char *name, size_t size) {
  if (size >= NAME_SIZE || names->count == NAMES_MAX)
    return;
  for (int i = 0; i < names->count; i++)
    if (strlen(names->list[i]) == size && memcmp(names->list[i], name, size) == 0)
      return;
  memcpy(names->list[names->count], name, size);
  names->list[names->count++][size] = 0;
}

static bool has(const struct names *names, const char *name) {
  for (int i = 0; i < names->count; i++)
    if (strcmp(names->list[i], name) == 0)
      return true;
  return false;
}

static size_t word_size(const char *at) {
  size_t size = 0;
  while (isalnum((unsigned char)at[size]) || at[size] == '_')
    size++;
  return size;
}

/* Comments, and directives, become blanks. */
static void blank_comments(char *text) {
  for (char *at = text; *at;) {
    char *end = at + 1;
    if (strncmp(at, "/*", 2) == 0)
      end = strstr(at, "*/") ? strstr(at, "*/") + 2 : at + strlen(at);
    else if (*at == '#' && (at == text || at[-1] == '\n'))
      end = at + strcspn(at, "\n");
    if (end > at + 1)
      memset(at, ' ', (size_t)(end - at));
    at = end;
  }
}

static bool is_bookkeeping(const char *name) {
  static const char *const endings[] = {"_init", "_deinit", "_create", "_destroy"};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t size = strlen(name), end = strlen(endings[i]);
    if (size > end && strcmp(name + size - end, endings[i]) == 0)
      return true;
  }
  return false;
}

/* The enumerators of a header, and its functions that begin with its noun. */
static void names_of_header(const char *path, const char *noun, struct names *out) {
  char *text = read_file(path);
  size_t size = strlen(noun);
  bool is_enum = false, is_in_braces = false;
  blank_comments(text);
  for (char *at = text; *at;) {
    size_t word = word_size(at);
    if (word == 0) {
      is_in_braces = *at == '{' ? is_enum : *at == '}' ? false : is_in_braces;
      is_enum = is_enum && *at != '{' && *at != ';' && *at != '(';
      at++;
      continue;
    }
    is_enum = is_enum || (word == 4 && strncmp(at, "enum", 4) == 0);
    const char *after = at + word + strspn(at + word, " ");
    bool is_function = strncmp(at, noun, size) == 0 && at[size] == '_' && *after == '(';
    bool is_state = is_in_braces && isupper((unsigned char)*at) && strchr(",=}\n", *after);
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)word, at);
    if ((is_function && !is_bookkeeping(name)) || is_state)
      add(out, at, word);
    at += word;
  }
  free(text);
}

static bool is_in_capitals(const char *word, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (islower((unsigned char)word[i]))
      return false;
  return memchr(word, '_', size) != NULL;
}

/* The words in backticks of the table below a heading. */
static void names_of_table(const char *begin, const char *end, const char *noun, struct names *out) {
  for (const char *at = begin; at < end; at++) {
    size_t word = *at == '`' ? word_size(at + 1) : 0;
    bool is_function = word && strncmp(at + 1, noun, strlen(noun)) == 0 && at[1 + strlen(noun)] == '_';
    if (word && at[1 + word] == '`' && (is_function || is_in_capitals(at + 1, word)))
      add(out, at + 1, word);
  }
}

static int compare(const char *path, const struct names *a, const struct names *b, const char *text) {
  int wrong = 0;
  for (int i = 0; i < a->count; i++)
    if (!has(b, a->list[i])) {
      print_message("ERROR: %s: %s %s\n", path, a->list[i], text);
      wrong++;
    }
  return wrong;
}

static void the_tables_have_what_the_headers_have(void **state) {
  (void)state;
  char *readme = read_file("runtime/README.md");
  char *section = strstr(readme, SECTION);
  assert_non_null(section);
  char *end_of_section = strstr(section + sizeof SECTION, "\n## ");
  if (end_of_section)
    *end_of_section = 0;
  int tables = 0, wrong = 0;
  for (char *at = strstr(section, HEADING); at; at = strstr(at + 1, HEADING), tables++) {
    static struct names said, coded;
    char path[256], noun[NAME_SIZE];
    said.count = coded.count = 0;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at + strlen(HEADING), "`"), at + strlen(HEADING));
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(noun, sizeof noun, "%.*s", (int)strcspn(name, "."), name);
    const char *next = strstr(at + 1, HEADING);
    names_of_table(at + 1, next ? next : at + strlen(at), noun, &said);
    names_of_header(path, noun, &coded);
    assert_true(coded.count > 0);
    wrong += compare(path, &coded, &said, "stands in no table of runtime/README.md");
    wrong += compare(path, &said, &coded, "stands in runtime/README.md, but not in the header");
  }
  free(readme);
  assert_true(tables >= 3);
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_tables_have_what_the_headers_have)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
