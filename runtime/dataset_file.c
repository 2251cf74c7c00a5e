/* dataset_file.c: lines, records of one length and TFRecords out of files, one file after the other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "runtime/dataset.h"
#include "runtime/host_path.h"

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

/* *end when there is no file left. */
static status file_open(struct cursor *c, bool *end) {
  struct file_state *s = c->state;
  const struct tensor *names = c->dataset->inputs[0];
  *end = !s->file && s->number >= names->count;
  if (s->file || *end)
    return OK;
  TRY(host_path(((const struct string_view *)names->data)[s->number++], s->path, sizeof s->path));
  s->file = fopen(s->path, "rbe");
  return s->file ? OK : fail(errno == ENOENT ? NOT_FOUND : UNKNOWN, "%s; %s", s->path, strerror(errno));
}

static void file_done(struct file_state *s) {
  fclose(s->file);
  s->file = NULL;
}

static status give_text(const char *data, size_t size, struct tensor **out) {
  return tensor_copy_in(DTYPE_STRING, &(struct shape){ 0 }, &(struct string_view){ data, size }, out);
}

static status compression_check(const struct dataset *d) {
  bool lengths = strncmp(d->kind->op, "FixedLength", 11) == 0;
  uint32_t at = lengths ? 5 : 1;
  if (d->input_count < (lengths ? 5u : 1u) || d->inputs[0]->dtype != DTYPE_STRING)
    return fail(INVALID_ARGUMENT, "filenames are missing");
  if (at < d->input_count && d->inputs[at]->dtype == DTYPE_STRING && host_scalar_string(d->inputs[at]).size)
    return fail(UNIMPLEMENTED, "compressed files (%.*s)", (int)host_scalar_string(d->inputs[at]).size, host_scalar_string(d->inputs[at]).data);
  return OK;
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
    if (got == 0) {
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

static status fixed_open(struct cursor *c, int64_t header, int64_t record, int64_t footer) {
  struct file_state *s = c->state;
  if (record < 1 || header < 0 || footer < 0)
    return fail(INVALID_ARGUMENT, "`record_bytes` must be > 0, `header_bytes` and `footer_bytes` >= 0");
  if (fseek(s->file, 0, SEEK_END) != 0)
    return fail(UNIMPLEMENTED, "%s: a file that has no end", s->path);
  s->left = ftell(s->file) - header - footer;
  if (s->left < 0 || s->left % record)
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
