/* inflate.c: compressed bytes, with zlib. Members of a gzip file may follow one another; bytes that end early are as many as there are. */
#include "runtime/data/inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK 65536
#define GZIP_WINDOW (MAX_WBITS + 16)

static int begin(z_stream *z, bool is_gzip) {
  memset(z, 0, sizeof *z);
  return inflateInit2(z, is_gzip ? GZIP_WINDOW : MAX_WBITS);
}

/* One call of inflate; the next member of a gzip file begins by itself. */
static int step(z_stream *z, bool is_gzip) {
  int code = inflate(z, Z_NO_FLUSH);
  if (code == Z_STREAM_END && is_gzip)
    return inflateReset(z);
  return code == Z_BUF_ERROR ? Z_OK : code; /* nothing to do: not an error */
}

status inflate_bytes(const void *data, size_t size, bool is_gzip, struct wire_buffer *out) {
  z_stream z;
  uint8_t *chunk = malloc(CHUNK);
  if (!chunk || begin(&z, is_gzip) != Z_OK) {
    free(chunk);
    return fail(RESOURCE_EXHAUSTED, "no memory to decompress");
  }
  const uint8_t *at = data;
  int code = Z_OK;
  do {
    size_t now = z.avail_in ? 0 : size < CHUNK ? size : CHUNK;
    if (now) {
      z.next_in = (Bytef *)(uintptr_t)at;
      z.avail_in = (uInt)now;
      at += now;
      size -= now;
    }
    z.next_out = chunk;
    z.avail_out = CHUNK;
    code = step(&z, is_gzip);
    wire_put_raw(out, chunk, CHUNK - z.avail_out);
  } while (code == Z_OK && (z.avail_in || size || !z.avail_out));
  inflateEnd(&z);
  free(chunk);
  if (out->is_bad)
    return fail(RESOURCE_EXHAUSTED, "no memory to decompress");
  return code == Z_OK || code == Z_STREAM_END ? OK : fail(DATA_LOSS, "inflate() failed with error %d", code);
}

/* ---- as a stream ---- */

struct stream {
  FILE *file;
  z_stream z;
  bool is_gzip, is_over;
  uint8_t chunk[CHUNK];
};

static ssize_t read_stream(void *cookie, char *to, size_t size) {
  struct stream *s = cookie;
  s->z.next_out = (Bytef *)to;
  s->z.avail_out = size < CHUNK ? (uInt)size : CHUNK;
  uInt room = s->z.avail_out;
  while (!s->is_over && s->z.avail_out == room) {
    if (s->z.avail_in == 0) {
      s->z.next_in = s->chunk;
      s->z.avail_in = (uInt)fread(s->chunk, 1, CHUNK, s->file);
      if (s->z.avail_in == 0)
        break;
    }
    int code = step(&s->z, s->is_gzip);
    s->is_over = code == Z_STREAM_END;
    if (code != Z_OK && code != Z_STREAM_END) {
      errno = EILSEQ;
      return -1;
    }
  }
  return (ssize_t)(room - s->z.avail_out);
}

static int close_stream(void *cookie) {
  struct stream *s = cookie;
  int code = fclose(s->file);
  inflateEnd(&s->z);
  free(s);
  return code;
}

FILE *inflated_file(FILE *file, bool is_gzip) {
  struct stream *s = calloc(1, sizeof *s);
  if (!s || begin(&s->z, is_gzip) != Z_OK) {
    free(s);
    return NULL;
  }
  s->file = file;
  s->is_gzip = is_gzip;
  FILE *out = fopencookie(s, "r", (cookie_io_functions_t){.read = read_stream, .close = close_stream});
  if (!out) {
    inflateEnd(&s->z);
    free(s);
  }
  return out;
}
