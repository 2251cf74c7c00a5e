/* seam_stream.c: FILE of stdio over simulated files: the system's stdio with reading and writing of ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/simulator/fiber.h"
#include "tests/simulator/process.h"
#include "tests/simulator/seam.h"

FILE *simulated_stdout, *simulated_stderr; /* of the process that runs */

struct stream {
  FILE *file;
  int fd;
};
static VEC(struct stream) streams; /* of all processes */

static ssize_t stream_read(void *self, char *out, size_t size) { return simulated_read((int)(intptr_t)self, out, size); }
static ssize_t stream_write(void *self, const char *data, size_t size) {
  ssize_t written = simulated_write((int)(intptr_t)self, data, size);
  return written < 0 ? 0 : written;
}
static int stream_seek(void *self, off64_t *at, int from) {
  off_t reached = simulated_lseek((int)(intptr_t)self, *at, from);
  if (reached < 0)
    return -1;
  *at = reached;
  return 0;
}
static int stream_close(void *self) { return simulated_close((int)(intptr_t)self); }

FILE *simulated_fdopen(int fd, const char *mode) {
  FILE *file = fopencookie((void *)(intptr_t)fd, mode, (cookie_io_functions_t){stream_read, stream_write, stream_seek, stream_close});
  if (!file)
    return NULL;
  for (uint32_t i = 0; i < streams.count; i++)
    if (streams.items[i].file == file) {
      streams.items[i].fd = fd;
      return file;
    }
  vec_push(&streams, (struct stream){file, fd});
  return file;
}

FILE *simulated_fopen(const char *path, const char *mode) {
  int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  flags |= mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
  flags |= strchr(mode, 'x') ? O_EXCL : 0;
  int fd = simulated_open(path, flags, 0666);
  return fd < 0 ? NULL : simulated_fdopen(fd, mode);
}

FILE *simulated_tmpfile(void) {
  char path[64];
  static unsigned number;
  snprintf(path, sizeof path, "/tmpfile%u", number++);
  FILE *file = simulated_fopen(path, "w+");
  simulated_unlink(path);
  return file;
}

int simulated_fileno(FILE *file) {
  for (uint32_t i = 0; i < streams.count; i++)
    if (streams.items[i].file == file)
      return streams.items[i].fd;
  return file == simulated_stdout ? 1 : 2;
}

int simulated_printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int size = vfprintf(process_self()->out, format, arguments);
  va_end(arguments);
  return size;
}
int simulated_puts(const char *text) { return fprintf(process_self()->out, "%s\n", text); }
int simulated_putchar(int byte) { return fputc(byte, process_self()->out); }
