/* folders.c: folders for files that are to be written. */
#include "base/folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

status folder_make_above(const char *path) {
  const char *end = strrchr(path, '/');
  char *folder = end && end > path ? strdup(path) : NULL;
  if (folder)
    folder[end - path] = 0;
  int error = folder && mkdir(folder, 0777) != 0 ? errno : 0;
  status result =
    error == ENOENT || error == ENOTDIR ? fail(error == ENOENT ? NOT_FOUND : FAILED_PRECONDITION, "'%s': %s", folder, strerror(error)) : OK;
  free(folder);
  return result;
}

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
