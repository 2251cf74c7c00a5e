/* dataset_file.c: lines, records of one length and TFRecords out of files, one file after the other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "runtime/dataset.h"
#include "runtime/host_path.h"
#include "runtime/inflate.h"

#define RECORD_CHUNK (1 << 20) /* memory is taken as bytes come: a damaged length asks for anything */

struct file_state {
  FILE *file;
  char path[HOST_PATH_MAX];
  int64_t number; /* of the file */
  char *buffer;
  size_t room;
  int64_t left;   /* FIXED: bytes of records still to come */
};

static void file_stop(struct cursor *c) {
  struct file_state *s = c->state;
  if (s->file)
    fclose(s->file);
  free(s->buffer);
}

/* compression_type: the input behind the lengths of records, or behind the names; "" when there is none. */
static struct string_view compression_of(const struct dataset *d) {
  uint32_t at = strncmp(d->kind->op, "FixedLength", 11) == 0 ? 5 : 1;
  bool is_there = at < d->input_count && d->inputs[at]->dtype == DTYPE_STRING && d->inputs[at]->count == 1;
  return is_there ? host_scalar_string(d->inputs[at]) : (struct string_view){ "", 0 };
}

static bool is_word(struct string_view text, const char *word) {
  return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* *end when there is no file left. */
static status file_open(struct cursor *c, bool *end) {
  struct file_state *s = c->state;
  const struct tensor *names = c->dataset->inputs[0];
  *end = !s->file && s->number >= names->count;
  if (s->file || *end)
    return OK;
  TRY(host_path(((const struct string_view *)names->data)[s->number++], s->path, sizeof s->path));
  s->file = fopen(s->path, "rbe");
  if (!s->file)
    return fail(errno == ENOENT ? NOT_FOUND : UNKNOWN, "%s; %s", s->path, strerror(errno));
  struct string_view type = compression_of(c->dataset);
  if (!type.size)
    return OK;
  FILE *inflated = inflated_file(s->file, type.data[0] == 'G');
  if (!inflated)
    return fail(RESOURCE_EXHAUSTED, "no memory to decompress %s", s->path);
  s->file = inflated;
  return OK;
}

static void file_done(struct file_state *s) {
  fclose(s->file);
  s->file = NULL;
}

static status give_text(const char *data, size_t size, struct tensor **out) {
  return tensor_copy_in(DTYPE_STRING, &(struct shape){ 0 }, &(struct string_view){ data, size }, out);
}

static status compression_check(const struct dataset *d) {
  struct string_view type = compression_of(d);
  if (d->input_count < (strncmp(d->kind->op, "FixedLength", 11) == 0 ? 5u : 1u) || d->inputs[0]->dtype != DTYPE_STRING)
    return fail(INVALID_ARGUMENT, "filenames are missing");
  if (d->inputs[0]->shape.rank > 1)
    return fail(INVALID_ARGUMENT, "`filenames` must be a scalar or a vector.");
  return !type.size || is_word(type, "GZIP") || is_word(type, "ZLIB") ? OK : fail(INVALID_ARGUMENT, "Unsupported compression_type.");
}

/* ---- lines ---- */

static status line_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct file_state *s = c->state;
  for (;;) {
    TRY(file_open(c, end));
    if (*end)
      return OK;
    ssize_t size = getline(&s->buffer, &s->room, s->file);
    if (size < 0 && ferror(s->file))
      return fail(DATA_LOSS, "%s: damaged compressed bytes", s->path);
    if (size >= 0) {
      size_t kept = 0;
      for (ssize_t i = 0; i < size; i++)
        if (s->buffer[i] != '\r' && !(s->buffer[i] == '\n' && i == size - 1))
          s->buffer[kept++] = s->buffer[i];
      return give_text(s->buffer, kept, out);
    }
    file_done(s);
  }
}

/* ---- records: length, its checksum, bytes, their checksum ---- */

static status read_exactly(struct file_state *s, size_t size) {
  for (size_t have = 0; have < size;) {
    size_t chunk = size - have < RECORD_CHUNK ? size - have : RECORD_CHUNK;
    if (have + chunk > s->room) {
      size_t room = (have + chunk) * 2;
      char *grown = realloc(s->buffer, room);
      if (!grown)
        return fail(RESOURCE_EXHAUSTED, "%s: no memory for a record of %zu bytes", s->path, size);
      s->buffer = grown;
      s->room = room;
    }
    if (fread(s->buffer + have, 1, chunk, s->file) != chunk)
      return fail(DATA_LOSS, "%s: truncated record", s->path);
    have += chunk;
  }
  return OK;
}

static status read_checksum(struct file_state *s, uint32_t wanted) {
  uint32_t stored;
  if (fread(&stored, 1, 4, s->file) != 4)
    return fail(DATA_LOSS, "%s: truncated record", s->path);
  return stored == crc32c_mask(wanted) ? OK : fail(DATA_LOSS, "%s: corrupted record", s->path);
}

static status record_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct file_state *s = c->state;
  for (;;) {
    TRY(file_open(c, end));
    if (*end)
      return OK;
    uint64_t size;
    size_t got = fread(&size, 1, 8, s->file);
    if (got == 0 && !ferror(s->file)) {
      file_done(s);
      continue;
    }
    if (got != 8)
      return fail(DATA_LOSS, "%s: truncated record", s->path);
    TRY(read_checksum(s, crc32c(&size, 8)));
    TRY(read_exactly(s, (size_t)size));
    TRY(read_checksum(s, crc32c(s->buffer, (size_t)size)));
    return give_text(s->buffer, (size_t)size, out);
  }
}

/* ---- records of one length: inputs 1 .. 3 are the bytes before all, of each, and behind all ---- */

/* A compressed file can only be read forwards: its end is found in a copy. */
static status make_seekable(struct file_state *s) {
  FILE *copy = tmpfile();
  char chunk[4096];
  bool good = copy != NULL;
  for (size_t size; good && (size = fread(chunk, 1, sizeof chunk, s->file)) > 0;)
    good = fwrite(chunk, 1, size, copy) == size;
  if (good && ferror(s->file)) {
    fclose(copy);
    return fail(DATA_LOSS, "%s: damaged compressed bytes", s->path);
  }
  if (!good) {
    if (copy)
      fclose(copy);
    return fail(RESOURCE_EXHAUSTED, "%s: no room to decompress it", s->path);
  }
  fclose(s->file);
  s->file = copy;
  return OK;
}

static status fixed_open(struct cursor *c, int64_t header, int64_t record, int64_t footer) {
  struct file_state *s = c->state;
  if (record < 1 || header < 0 || footer < 0)
    return fail(INVALID_ARGUMENT, "`record_bytes` must be > 0, `header_bytes` and `footer_bytes` >= 0");
  bool compressed = compression_of(c->dataset).size > 0;
  if (compressed)
    TRY(make_seekable(s));
  if (fseek(s->file, 0, SEEK_END) != 0)
    return fail(UNIMPLEMENTED, "%s: a file that has no end", s->path);
  s->left = ftell(s->file) - header - footer;
  if (!compressed && (s->left < 0 || s->left % record))
    return fail(INVALID_ARGUMENT, "Excess bytes in file %s: its body of %lld bytes is no multiple of %lld", s->path,
                (long long)s->left, (long long)record);
  return fseek(s->file, header, SEEK_SET) == 0 ? OK : fail(UNKNOWN, "%s; %s", s->path, strerror(errno));
}

static status fixed_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct file_state *s = c->state;
  int64_t header, record, footer;
  TRY(dataset_int(c->dataset, 1, "header_bytes", &header));
  TRY(dataset_int(c->dataset, 2, "record_bytes", &record));
  TRY(dataset_int(c->dataset, 3, "footer_bytes", &footer));
  for (;;) {
    bool opened = s->file != NULL;
    TRY(file_open(c, end));
    if (*end)
      return OK;
    if (!opened)
      TRY(fixed_open(c, header, record, footer));
    if (s->left > 0 && s->left < record)
      return fail(DATA_LOSS, "%s: the last record has %lld bytes of %lld", s->path, (long long)s->left, (long long)record);
    if (s->left > 0) {
      s->left -= record;
      TRY(read_exactly(s, (size_t)record));
      return give_text(s->buffer, (size_t)record, out);
    }
    file_done(s);
  }
}

const struct dataset_kind dataset_files[] = {
  { "TextLineDataset", sizeof(struct file_state), line_next, file_stop, compression_check },
  { "TFRecordDataset", sizeof(struct file_state), record_next, file_stop, compression_check },
  { "TFRecordDatasetV2", sizeof(struct file_state), record_next, file_stop, compression_check },
  { "FixedLengthRecordDataset", sizeof(struct file_state), fixed_next, file_stop, compression_check },
  { "FixedLengthRecordDatasetV2", sizeof(struct file_state), fixed_next, file_stop, compression_check },
  { NULL, 0, NULL, NULL, NULL },
};
