/* tls_option.c: names of files with the task's name in them. */
#include "runtime/process/tls_option.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES 4096
#define MARK "{task}"

static status own_file(const char *path, const char *job, uint32_t index, char out[PATH_BYTES]) {
  const char *mark = strstr(path, MARK);
  int size = mark ? snprintf(out, PATH_BYTES, "%.*s%s_%u%s", (int)(mark - path), path, job, index, mark + strlen(MARK))
                  : snprintf(out, PATH_BYTES, "%s", path);
  return size < PATH_BYTES ? OK : fail(INVALID_ARGUMENT, "the name of a file is too long: %s", path);
}

status tls_option_files(const struct tls_files *given, const char *job, uint32_t index, struct tls_files *out) {
  static char cert[PATH_BYTES], key[PATH_BYTES], ca[PATH_BYTES]; /* they are read again on SIGHUP */
  if (!given->cert)
    return OK;
  TRY(own_file(given->cert, job, index, cert));
  TRY(own_file(given->key, job, index, key));
  TRY(own_file(given->ca, job, index, ca));
  *out = (struct tls_files){cert, key, ca};
  return OK;
}
