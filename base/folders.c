/* folders.c: folders for files that are to be written. */
#include "base/folders.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void folders_make_above(const char *path) {
  char *copy = strdup(path);
  for (char *p = copy; p && *p; p++)
    if (*p == '/' && p > copy) {
      *p = 0;
      mkdir(copy, 0777);
      *p = '/';
    }
  free(copy);
}
