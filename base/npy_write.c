/* npy_write.c: writing. The header has a fixed size, so that it can be written again when the count is known; the file
 * has a temporary name until it is complete. What is no plain file (a device, a pipe, standard output) is written to, not replaced: the
 * bytes wait in a file without a name until the header is known. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/npy.h"
#include "base/vec.h"

#define HEADER_BYTES 640 /* LIMIT_RANK + 1 sizes of 14 characters fit, and it is a multiple of 64 */

struct npy_writer {
  char *path, *temporary; /* no temporary name: the bytes go to `stream` when they are complete */
  FILE *file;
  int stream; /* -1: none */
  enum dtype dtype;
  struct shape shape; /* of one value */
  int64_t values;
  VEC(struct tensor *) strings; /* held until the width is known */
};

static status failed(const char *path) { return fail(DATA_LOSS, "'%s' cannot be written: %s", path, strerror(errno)); }

void npy_writer_destroy(struct npy_writer *writer) {
  if (!writer)
    return;
  if (writer->file)
    fclose(writer->file);
  if (writer->temporary)
    unlink(writer->temporary);
  if (writer->stream > STDERR_FILENO)
    close(writer->stream);
  for (uint32_t i = 0; i < writer->strings.count; i++)
    tensor_release(writer->strings.items[i]);
  vec_free(&writer->strings);
  free(writer->path);
  free(writer->temporary);
  free(writer);
}

/* Where a path leads that is no plain file: a descriptor; -1: it is one, or will be; -2: it cannot be written (errno). */
static int stream_open(const char *path) {
  struct stat is;
  if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
    return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0)
    return STDERR_FILENO;
  if (stat(path, &is) != 0 || S_ISREG(is.st_mode))
    return -1;
  int stream = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
  return stream < 0 ? -2 : stream;
}

/* A file beside the one that a link leads to: the link stays. */
static status temporary_open(struct npy_writer *writer, const char *path) {
  static atomic_uint number; /* two writers of one process may have the same path */
  char *target = realpath(path, NULL);
  free(writer->path);
  writer->path = target ? target : strdup(path);
  if (!writer->path || asprintf(&writer->temporary, "%s.%d.%u.tmp", writer->path, (int)getpid(), atomic_fetch_add(&number, 1)) < 0) {
    writer->temporary = NULL;
    return fail(RESOURCE_EXHAUSTED, "no memory to write '%s'", path);
  }
  writer->file = fopen(writer->temporary, "wbe");
  return writer->file ? OK : failed(path);
}

static status files_open(struct npy_writer *writer, const char *path) {
  writer->stream = stream_open(path);
  if (writer->stream == -1)
    return temporary_open(writer, path);
  if (writer->stream < 0)
    return failed(path);
  writer->file = tmpfile();
  return writer->file ? OK : failed(path);
}

status npy_writer_create(const char *path, struct npy_writer **out) {
  struct npy_writer *writer = calloc(1, sizeof *writer);
  if (!writer)
    return fail(RESOURCE_EXHAUSTED, "no memory to write '%s'", path);
  writer->stream = -1;
  writer->path = strdup(path);
  status result = writer->path ? files_open(writer, path) : fail(RESOURCE_EXHAUSTED, "no memory to write '%s'", path);
  if (result == OK)
    *out = writer;
  else
    npy_writer_destroy(writer);
  return result;
}

/* `leading` < 0: the value alone, without the new axis. */
static status header_write(struct npy_writer *w, int64_t leading, size_t width) {
  char descr[32], header[HEADER_BYTES];
  if (w->dtype == DTYPE_STRING)
    snprintf(descr, sizeof descr, "|S%zu", width ? width : 1);
  else
    snprintf(descr, sizeof descr, "%s", w->dtype == DTYPE_BFLOAT16 ? "<V2" : dtype_npy(w->dtype));
  size_t used = 10;
  used += (size_t)snprintf(header + used, sizeof header - used, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  if (leading >= 0)
    used += (size_t)snprintf(header + used, sizeof header - used, "%lld, ", (long long)leading);
  for (int i = 0; i < w->shape.rank; i++)
    used += (size_t)snprintf(header + used, sizeof header - used, "%lld, ", (long long)w->shape.dims[i]);
  if (header[used - 1] == ' ') /* (2, 3, ) -> (2, 3,) */
    used--;
  used += (size_t)snprintf(header + used, sizeof header - used, "), }");
  memset(header + used, ' ', sizeof header - used);
  header[HEADER_BYTES - 1] = '\n';
  memcpy(header, "\x93NUMPY\x01\x00", 8);
  header[8] = (char)((HEADER_BYTES - 10) & 255);
  header[9] = (char)((HEADER_BYTES - 10) >> 8);
  return fwrite(header, 1, sizeof header, w->file) == sizeof header ? OK : failed(w->path);
}

status npy_writer_add(struct npy_writer *w, const struct tensor *value) {
  if (!*dtype_npy(value->dtype) && value->dtype != DTYPE_BFLOAT16)
    return fail(INVALID_ARGUMENT, "'%s': a %s tensor has no numpy form", w->path, dtype_name(value->dtype));
  if (!w->values) {
    w->dtype = value->dtype;
    w->shape = value->shape;
    TRY(header_write(w, 0, 1));
  }
  bool same = value->dtype == w->dtype && value->shape.rank == w->shape.rank &&
              !memcmp(value->shape.dims, w->shape.dims, (size_t)w->shape.rank * sizeof *w->shape.dims);
  if (!same)
    return fail(INVALID_ARGUMENT, "'%s': cannot stack a %s%s on values of %s%s", w->path, dtype_name(value->dtype),
                shape_text(&value->shape), dtype_name(w->dtype), shape_text(&w->shape));
  if (w->dtype == DTYPE_STRING) {
    struct tensor *copy;
    TRY(tensor_clone(value, &copy));
    vec_push(&w->strings, copy);
  } else {
    size_t size = (size_t)tensor_byte_size(value);
    if (size && fwrite(value->data, 1, size, w->file) != size)
      return failed(w->path);
  }
  w->values++;
  return OK;
}

status npy_writer_rewind(struct npy_writer *w, int64_t values) {
  if (values >= w->values)
    return OK;
  while (w->strings.count > (uint32_t)values)
    tensor_release(w->strings.items[--w->strings.count]);
  int64_t bytes = w->dtype == DTYPE_STRING ? 0 : shape_count(&w->shape) * (int64_t)dtype_size(w->dtype);
  off_t end = values ? HEADER_BYTES + values * bytes : 0;
  if (fflush(w->file) != 0 || ftruncate(fileno(w->file), end) != 0 || fseeko(w->file, end, SEEK_SET) != 0)
    return failed(w->path);
  w->values = values;
  return OK;
}

static size_t strings_width(const struct npy_writer *w) {
  size_t width = 1;
  for (uint32_t t = 0; t < w->strings.count; t++) {
    const struct string_view *views = w->strings.items[t]->data;
    for (int64_t i = 0; i < w->strings.items[t]->count; i++)
      if (views[i].size > width)
        width = views[i].size;
  }
  return width;
}

static status strings_write(struct npy_writer *w, size_t width) {
  char *padded = malloc(width);
  if (!padded)
    return fail(RESOURCE_EXHAUSTED, "no memory to write '%s'", w->path);
  bool good = true;
  for (uint32_t t = 0; good && t < w->strings.count; t++) {
    const struct string_view *views = w->strings.items[t]->data;
    for (int64_t i = 0; good && i < w->strings.items[t]->count; i++) {
      memset(padded, 0, width);
      if (views[i].size)
        memcpy(padded, views[i].data, views[i].size);
      good = fwrite(padded, 1, width, w->file) == width;
    }
  }
  free(padded);
  return good ? OK : failed(w->path);
}

static bool write_all(int stream, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(stream, bytes, size);
    if (written < 0 && errno != EINTR)
      return false;
    bytes += written > 0 ? written : 0;
    size -= written > 0 ? (size_t)written : 0;
  }
  return true;
}

/* What was gathered goes where it belongs. */
static status stream_write(struct npy_writer *w) {
  char bytes[1 << 16];
  size_t size;
  if (fflush(stdout) != 0 || fflush(w->file) != 0 || fseek(w->file, 0, SEEK_SET) != 0)
    return failed(w->path);
  while ((size = fread(bytes, 1, sizeof bytes, w->file)) > 0)
    if (!write_all(w->stream, bytes, size))
      return failed(w->path);
  if (ferror(w->file) || (w->stream > STDERR_FILENO && close(w->stream) != 0)) {
    w->stream = -1;
    return failed(w->path);
  }
  w->stream = -1;
  return OK;
}

static status complete(struct npy_writer *w, int64_t leading) {
  if (!w->values)
    return fail(INVALID_ARGUMENT, "'%s': no value was written", w->path);
  size_t width = 1;
  if (w->dtype == DTYPE_STRING) {
    width = strings_width(w);
    TRY(strings_write(w, width));
  }
  if (fseek(w->file, 0, SEEK_SET))
    return failed(w->path);
  TRY(header_write(w, leading, width));
  if (w->stream >= 0)
    return stream_write(w);
  int closed = fclose(w->file);
  w->file = NULL;
  if (closed || rename(w->temporary, w->path))
    return failed(w->path);
  free(w->temporary);
  w->temporary = NULL;
  return OK;
}

status npy_writer_close(struct npy_writer *writer, bool is_stacked) {
  status result = complete(writer, is_stacked ? writer->values : -1);
  npy_writer_destroy(writer);
  return result;
}

status npy_write(const char *path, const struct tensor *tensor) {
  struct npy_writer *writer;
  TRY(npy_writer_create(path, &writer));
  status result = npy_writer_add(writer, tensor);
  if (result == OK)
    result = complete(writer, -1);
  npy_writer_destroy(writer);
  return result;
}
