/* temp_path.h: files and folders of a test's own under /tmp. */
#ifndef TFC_TESTS_SUPPORT_TEMP_PATH_H
#define TFC_TESTS_SUPPORT_TEMP_PATH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMP_PATH_SIZE 64
#define TEMP_PATH_PATTERN "/tmp/tfc-test-XXXXXX" /* what mkdtemp and mkstemps want */

/* A new, empty folder. */
static inline bool temp_folder(char path[TEMP_PATH_SIZE]) {
  strcpy(path, TEMP_PATH_PATTERN);
  return mkdtemp(path) != NULL;
}

/* With all that is in it; 0, or not, as a group's teardown wants it. */
static inline int temp_folder_remove(const char *path) {
  char command[TEMP_PATH_SIZE + 16];
  snprintf(command, sizeof command, "rm -rf %s", path);
  return system(command) != 0;
}

/* A new file with these bytes, whose name ends with `suffix`. */
static inline bool temp_file(char path[TEMP_PATH_SIZE], const char *suffix, const char *data, size_t size) {
  snprintf(path, TEMP_PATH_SIZE, "%s%s", TEMP_PATH_PATTERN, suffix);
  int file = mkstemps(path, (int)strlen(suffix));
  bool written = file >= 0 && write(file, data, size) == (ssize_t)size;
  return file >= 0 && close(file) == 0 && written;
}

#endif
