/* host_file.c: files as strings, and names of files. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folders.h"
#include "runtime/host/host.h"
#include "runtime/host/host_path.h"
#include "runtime/text/string_output.h"

/* ---- paths ---- */

status host_path(struct string_view view, char *out, size_t size) {
  if (view.size > 7 && memcmp(view.data, "file://", 7) == 0) {
    view.data += 7;
    view.size -= 7;
  }
  if (view.size >= size || (view.size && memchr(view.data, 0, view.size)))
    return fail(INVALID_ARGUMENT, "a path of %zu bytes that is none", (size_t)view.size);
  if (view.size)
    memcpy(out, view.data, view.size);
  out[view.size] = 0;
  if (strstr(out, "://"))
    return fail(UNIMPLEMENTED, "File system scheme of '%s' not implemented", out);
  return OK;
}

status host_scalar_path(const struct host_call *call, uint32_t i, const char *what, char *out, size_t size) {
  if (call->inputs[i].count != 1)
    return fail(INVALID_ARGUMENT, "%s must be a scalar: %s", what, shape_text(&call->inputs[i].shape));
  return host_path(host_scalar_string(&call->inputs[i]), out, size);
}

static status code_of_errno(void) {
  switch (errno) {
  case ENOENT: return NOT_FOUND;
  case EACCES:
  case EPERM:
  case EROFS: return PERMISSION_DENIED;
  case EISDIR:
  case ENOTDIR: return FAILED_PRECONDITION;
  case EINVAL:
  case ENAMETOOLONG: return INVALID_ARGUMENT;
  case ENOSPC:
  case EDQUOT:
  case EMFILE:
  case ENFILE:
  case ENOMEM: return RESOURCE_EXHAUSTED;
  default: return UNKNOWN;
  }
}

status host_file_error(const char *path) { return fail(code_of_errno(), "%s; %s", path, strerror(errno)); }

/* ---- reading ---- */

/* Grows with what really comes: a size may lie (pipes, /proc). */
status host_read_file(const char *path, char **data, size_t *size) {
  FILE *file = fopen(path, "rbe");
  if (!file)
    return host_file_error(path);
  size_t room = 0, used = 0, got = 0;
  char *bytes = NULL;
  do {
    if (room - used < 65536) {
      room = room * 2 + 131072;
      char *grown = realloc(bytes, room);
      if (!grown) {
        free(bytes);
        fclose(file);
        return fail(RESOURCE_EXHAUSTED, "%s: no memory for a file of more than %zu bytes", path, used);
      }
      bytes = grown;
    }
    got = fread(bytes + used, 1, room - used, file);
    used += got;
  } while (got > 0);
  bool bad = ferror(file) != 0;
  fclose(file);
  if (bad) {
    free(bytes);
    return host_file_error(path);
  }
  *data = bytes;
  *size = used;
  return OK;
}

status host_file_read(struct host_call *call) {
  char path[HOST_PATH_MAX], *data;
  size_t size;
  TRY(host_scalar_path(call, 0, "Input filename tensor", path, sizeof path));
  TRY(host_read_file(path, &data, &size));
  struct string_output out;
  status result = string_output_begin(&out, &(struct shape){0}, &call->outputs[0]);
  if (result == OK) {
    string_output_put(&out, data, size);
    result = string_output_end(&out);
  }
  free(data);
  return result;
}

/* ---- writing ---- */

status host_file_write(struct host_call *call) {
  char path[HOST_PATH_MAX];
  TRY(host_scalar_path(call, 0, "Input filename tensor", path, sizeof path));
  if (call->inputs[1].count != 1)
    return fail(INVALID_ARGUMENT, "Contents tensor must be scalar, but had shape: %s", shape_text(&call->inputs[1].shape));
  struct string_view text = host_scalar_string(&call->inputs[1]);
  folders_make_above(path);
  FILE *file = fopen(path, "wbe");
  if (!file)
    return host_file_error(path);
  bool good = fwrite(text.data, 1, text.size, file) == text.size;
  good = fclose(file) == 0 && good;
  return good ? OK : host_file_error(path);
}

/* ---- names ---- */

static int name_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static status put_matches(struct host_call *call, const glob_t *found) {
  struct string_output out;
  TRY(string_output_begin(&out, &(struct shape){1, {(int64_t)found->gl_pathc}}, &call->outputs[0]));
  if (found->gl_pathc)
    qsort(found->gl_pathv, found->gl_pathc, sizeof *found->gl_pathv, name_order);
  for (size_t i = 0; i < found->gl_pathc; i++)
    string_output_put(&out, found->gl_pathv[i], strlen(found->gl_pathv[i]));
  return string_output_end(&out);
}

status host_matching_files(struct host_call *call) {
  glob_t found = {0};
  for (int64_t i = 0; i < call->inputs[0].count; i++) {
    char given[HOST_PATH_MAX], pattern[HOST_PATH_MAX + 2];
    status result = host_path(((const struct string_view *)call->inputs[0].data)[i], given, sizeof given);
    size_t fixed = result == OK ? strcspn(given, "*?[\\") : 0;
    bool here = result == OK && given[fixed] && !memchr(given, '/', fixed); /* TensorFlow then names the folder */
    snprintf(pattern, sizeof pattern, "%s%s", here ? "./" : "", result == OK ? given : "");
    int code = result == OK ? glob(pattern, (i ? GLOB_APPEND : 0) | GLOB_NOSORT, NULL, &found) : GLOB_NOMATCH;
    if (code == GLOB_NOSPACE)
      result = fail(RESOURCE_EXHAUSTED, "no memory for the files of '%s'", pattern);
    if (result != OK) {
      globfree(&found);
      return result;
    }
  }
  status result = put_matches(call, &found);
  globfree(&found);
  return result;
}

static status put_sharded(struct host_call *call, const char *text, int size) {
  struct string_output out;
  TRY(string_output_begin(&out, &(struct shape){0}, &call->outputs[0]));
  string_output_put(&out, text, (size_t)size);
  return string_output_end(&out);
}

static status check_scalars(const struct host_call *call, const char *const *names) {
  for (uint32_t i = 0; i < call->input_count; i++)
    if (call->inputs[i].shape.rank != 0)
      return fail(INVALID_ARGUMENT, "%s must be a scalar, got shape %s", names[i], shape_text(&call->inputs[i].shape));
  return OK;
}

status host_sharded_filename(struct host_call *call) {
  TRY(check_scalars(call, (const char *[]){"basename", "shard", "num_shards"}));
  char path[HOST_PATH_MAX], text[HOST_PATH_MAX + 64];
  TRY(host_path(host_scalar_string(&call->inputs[0]), path, sizeof path));
  return put_sharded(
    call, text,
    snprintf(text, sizeof text, "%s-%05d-of-%05d", path, (int)host_scalar_int(&call->inputs[1]), (int)host_scalar_int(&call->inputs[2])));
}
status host_sharded_filespec(struct host_call *call) {
  TRY(check_scalars(call, (const char *[]){"basename", "num_shards"}));
  char path[HOST_PATH_MAX], text[HOST_PATH_MAX + 64];
  TRY(host_path(host_scalar_string(&call->inputs[0]), path, sizeof path));
  return put_sharded(call, text, snprintf(text, sizeof text, "%s-%s-of-%05d", path, "?????", (int)host_scalar_int(&call->inputs[1])));
}
