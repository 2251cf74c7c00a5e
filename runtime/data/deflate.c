/* deflate.c: bytes that are compressed while they are written, with zlib. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "runtime/data/inflate.h"

#define CHUNK 65536
#define GZIP_WINDOW (MAX_WBITS + 16)
#define MEMORY_LEVEL 9

struct stream {
  FILE *file;
  z_stream z;
  uint8_t chunk[CHUNK];
};

/* All that the compressor gives for its input; with Z_FINISH also what it held back. */
static bool run(struct stream *s, int flush) {
  int code = Z_OK;
  do {
    s->z.next_out = s->chunk;
    s->z.avail_out = CHUNK;
    code = deflate(&s->z, flush);
    size_t size = CHUNK - s->z.avail_out;
    if (code == Z_STREAM_ERROR || fwrite(s->chunk, 1, size, s->file) != size)
      return false;
  } while (s->z.avail_out == 0 || (flush == Z_FINISH && code != Z_STREAM_END));
  return true;
}

static ssize_t write_stream(void *cookie, const char *data, size_t size) {
  struct stream *s = cookie;
  s->z.next_in = (Bytef *)(uintptr_t)data;
  s->z.avail_in = (uInt)size;
  return run(s, Z_NO_FLUSH) ? (ssize_t)size : 0;
}

static int close_stream(void *cookie) {
  struct stream *s = cookie;
  s->z.avail_in = 0;
  bool good = run(s, Z_FINISH);
  good = fclose(s->file) == 0 && good;
  deflateEnd(&s->z);
  free(s);
  return good ? 0 : EOF;
}

FILE *deflated_file(FILE *file, bool is_gzip) {
  struct stream *s = calloc(1, sizeof *s);
  if (!s ||
      deflateInit2(&s->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, is_gzip ? GZIP_WINDOW : MAX_WBITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
    free(s);
    return NULL;
  }
  s->file = file;
  FILE *out = fopencookie(s, "w", (cookie_io_functions_t){.write = write_stream, .close = close_stream});
  if (!out) {
    deflateEnd(&s->z);
    free(s);
  }
  return out;
}
