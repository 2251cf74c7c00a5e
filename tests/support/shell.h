/* shell.h: commands of the shell in a test's folder, and what they say. */
#ifndef TFC_TESTS_SUPPORT_SHELL_H
#define TFC_TESTS_SUPPORT_SHELL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/temp_path.h"
#include "tests/support/test.h"

static char folder[TEMP_PATH_SIZE];
static char said[1 << 20]; /* by the last command, on both outputs */

/* Its exit code; -1: a signal ended it. */
static inline int run(const char *command) {
  char line[4096];
  snprintf(line, sizeof line, "cd %s && { %s; } 2>&1", folder, command);
  FILE *out = popen(line, "r");
  size_t size = fread(said, 1, sizeof said - 1, out);
  said[size] = 0;
  int state = pclose(out);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static inline void must_say(const char *words) {
  if (!strstr(said, words))
    test_fail("'%s' is not in\n%s", words, said);
}

/* Of a group. */
static inline int folder_clean(void **state) {
  (void)state;
  return temp_folder_remove(folder);
}

#endif
