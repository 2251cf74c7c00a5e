/* record_file.c: lines, TFRecords and bytes out of files. */
#include "runtime/data/record_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "runtime/data/inflate.h"

#define CHUNK (1 << 20) /* memory is taken as bytes come: a damaged length asks for anything */

bool record_file_knows(struct string_view compression) {
  return !compression.size || string_is(compression, "GZIP") || string_is(compression, "ZLIB");
}

status record_file_open(struct record_file *f, struct string_view path, struct string_view compression) {
  record_file_close(f);
  TRY(host_path(path, f->path, sizeof f->path));
  f->offset = 0;
  f->file = fopen(f->path, "rbe");
  if (!f->file)
    return host_file_error(f->path);
  if (!compression.size)
    return OK;
  FILE *inflated = inflated_file(f->file, compression.data[0] == 'G');
  if (!inflated)
    return fail(RESOURCE_EXHAUSTED, "no memory to decompress %s", f->path);
  f->file = inflated;
  return OK;
}

void record_file_close(struct record_file *f) {
  if (f->file)
    fclose(f->file);
  f->file = NULL;
}

void record_file_free(struct record_file *f) {
  record_file_close(f);
  free(f->buffer);
  f->buffer = NULL;
  f->room = 0;
}

static status read_error(const struct record_file *f) {
  return errno == EISDIR ? host_file_error(f->path) : fail(DATA_LOSS, "%s: damaged bytes", f->path);
}

status record_file_line(struct record_file *f, struct string_view *out, bool *end) {
  ssize_t size = getline(&f->buffer, &f->room, f->file);
  if (size < 0 && ferror(f->file))
    return read_error(f);
  bool is_whole = size > 0 && f->buffer[size - 1] == '\n';
  size_t kept = 0;
  for (ssize_t i = 0; i < size; i++)
    if (f->buffer[i] != '\r' && !(f->buffer[i] == '\n' && i == size - 1))
      f->buffer[kept++] = f->buffer[i];
  *out = (struct string_view){f->buffer, kept};
  *end = !is_whole && kept == 0;
  return OK;
}

status record_file_bytes(struct record_file *f, size_t size, struct string_view *out) {
  size_t have = 0;
  for (size_t got = 1; have < size && got > 0; have += got) {
    size_t chunk = size - have < CHUNK ? size - have : CHUNK;
    if (have + chunk > f->room) {
      size_t room = (have + chunk) * 2;
      char *grown = realloc(f->buffer, room);
      if (!grown)
        return fail(RESOURCE_EXHAUSTED, "%s: no memory for a record of %zu bytes", f->path, size);
      f->buffer = grown;
      f->room = room;
    }
    got = fread(f->buffer + have, 1, chunk, f->file);
  }
  f->offset += (int64_t)have;
  *out = (struct string_view){f->buffer, have};
  return have < size && ferror(f->file) ? read_error(f) : OK;
}

/* ---- records: length, its checksum, bytes, their checksum ---- */

static status read_checksum(struct record_file *f, uint32_t wanted) {
  uint32_t stored;
  f->offset += 4;
  if (fread(&stored, 1, 4, f->file) != 4)
    return fail(DATA_LOSS, "%s: truncated record", f->path);
  return stored == crc32c_mask(wanted) ? OK : fail(DATA_LOSS, "%s: corrupted record", f->path);
}

status record_file_record(struct record_file *f, struct string_view *out, bool *end) {
  uint64_t size;
  size_t got = fread(&size, 1, 8, f->file);
  *end = got == 0 && !ferror(f->file);
  if (*end)
    return OK;
  if (got == 0)
    return read_error(f);
  if (got != 8)
    return fail(DATA_LOSS, "%s: truncated record", f->path);
  f->offset += 8;
  TRY(read_checksum(f, crc32c(&size, 8)));
  TRY(record_file_bytes(f, (size_t)size, out));
  if (out->size != size)
    return fail(DATA_LOSS, "%s: truncated record", f->path);
  return read_checksum(f, crc32c(out->data, out->size));
}

bool record_file_put(FILE *file, const void *data, size_t size) {
  uint64_t length = size;
  uint32_t sums[2] = {crc32c_mask(crc32c(&length, 8)), crc32c_mask(crc32c(data, size))};
  return fwrite(&length, 8, 1, file) == 1 && fwrite(&sums[0], 4, 1, file) == 1 && fwrite(data, 1, size, file) == size &&
         fwrite(&sums[1], 4, 1, file) == 1;
}
