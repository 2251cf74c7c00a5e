/* dataset_file.c: lines, records of one length and TFRecords out of files, one file after the other. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/dataset.h"
#include "runtime/data/record_file.h"

struct file_state {
  struct record_file file;
  int64_t number; /* of the file */
  int64_t left;   /* FIXED: bytes of records still to come */
};

static void file_stop(struct cursor *c) { record_file_free(&((struct file_state *)c->state)->file); }

/* Which inputs a kind has besides names and compression. */
enum { HAS_LENGTHS = 1, HAS_OFFSETS = 2 };

static bool has(const struct dataset *d, uint32_t trait) { return (d->kind->traits & trait) != 0; }

/* compression_type: the input behind the lengths of records, or behind the names; "" when there is none. */
static struct string_view compression_of(const struct dataset *d) {
  uint32_t at = has(d, HAS_LENGTHS) ? 5 : 1;
  bool is_there = at < d->input_count && d->inputs[at]->dtype == DTYPE_STRING && d->inputs[at]->count == 1;
  return is_there ? host_scalar_string(d->inputs[at]) : (struct string_view){"", 0};
}

/* Where in each file (decompressed) its first record begins: no numbers stand for zeros. */
static status skip_to_offset(struct cursor *c) {
  struct file_state *s = c->state;
  const struct tensor *offsets = c->dataset->inputs[3];
  struct string_view skipped = {"", 1};
  int64_t left = offsets->count ? ((const int64_t *)offsets->data)[s->number - 1] : 0;
  if (left < 0)
    return fail(INVALID_ARGUMENT, "Trying to seek offset: %lld which is less than the current offset: 0", (long long)left);
  for (; left > 0 && skipped.size > 0; left -= (int64_t)skipped.size)
    TRY(record_file_bytes(&s->file, left < 65536 ? (size_t)left : 65536, &skipped));
  return OK;
}

/* The file with the next element. *end when there is no file left. */
static status file_open(struct cursor *c, bool *end) {
  struct file_state *s = c->state;
  const struct tensor *names = c->dataset->inputs[0];
  *end = !s->file.file && s->number >= names->count;
  if (s->file.file || *end)
    return OK;
  TRY(record_file_open(&s->file, ((const struct string_view *)names->data)[s->number++], compression_of(c->dataset)));
  return has(c->dataset, HAS_OFFSETS) ? skip_to_offset(c) : OK;
}

static status give_text(struct string_view text, struct tensor **out) {
  return tensor_copy_in(DTYPE_STRING, &(struct shape){0}, &text, out);
}

static status file_check(const struct dataset *d) {
  if (d->input_count < (has(d, HAS_LENGTHS) ? 5u : 1u) || d->inputs[0]->dtype != DTYPE_STRING)
    return fail(INVALID_ARGUMENT, "filenames are missing");
  if (d->inputs[0]->shape.rank > 1)
    return fail(INVALID_ARGUMENT, "`filenames` must be a scalar or a vector.");
  return record_file_knows(compression_of(d)) ? OK : fail(INVALID_ARGUMENT, "Unsupported compression_type.");
}

/* ---- lines, records ---- */

static status text_next(struct cursor *c, struct tensor **out, bool *end,
                        status (*read)(struct record_file *, struct string_view *, bool *)) {
  struct file_state *s = c->state;
  for (;;) {
    struct string_view text;
    bool is_over;
    TRY(file_open(c, end));
    if (*end)
      return OK;
    status result = read(&s->file, &text, &is_over);
    if (result == OK && !is_over)
      return give_text(text, out);
    record_file_close(&s->file); /* also a damaged one: what is next is in the next */
    TRY(result);
  }
}

static status line_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  return text_next(c, out, end, record_file_line);
}

static status offset_check(const struct dataset *d) {
  TRY(file_check(d));
  const struct tensor *offsets = d->input_count > 3 ? d->inputs[3] : NULL;
  if (!offsets || offsets->dtype != DTYPE_INT64 || offsets->shape.rank > 1)
    return fail(INVALID_ARGUMENT, "`byte_offsets` must be a scalar or a vector.");
  if (offsets->shape.rank != d->inputs[0]->shape.rank || (offsets->count && offsets->count != d->inputs[0]->count))
    return fail(INVALID_ARGUMENT, "`byte_offsets` must be of same size as `filenames`");
  return OK;
}

static status record_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  return text_next(c, out, end, record_file_record);
}

/* ---- records of one length: inputs 1 .. 3 are the bytes before all, of each, and behind all ---- */

/* A compressed file can only be read forwards: its end is found in a copy. */
static status make_seekable(struct record_file *f) {
  FILE *copy = tmpfile();
  char chunk[4096];
  bool good = copy != NULL;
  for (size_t size; good && (size = fread(chunk, 1, sizeof chunk, f->file)) > 0;)
    good = fwrite(chunk, 1, size, copy) == size;
  bool is_damaged = good && ferror(f->file);
  if (good && !is_damaged) {
    fclose(f->file);
    f->file = copy;
    return OK;
  }
  if (copy)
    fclose(copy);
  return is_damaged ? fail(DATA_LOSS, "%s: damaged bytes", f->path) : fail(RESOURCE_EXHAUSTED, "%s: no room to decompress it", f->path);
}

static status fixed_open(struct cursor *c, int64_t header, int64_t record, int64_t footer) {
  struct file_state *s = c->state;
  bool is_compressed = compression_of(c->dataset).size > 0;
  if (is_compressed)
    TRY(make_seekable(&s->file));
  if (fseek(s->file.file, 0, SEEK_END) != 0)
    return fail(UNIMPLEMENTED, "%s: a file that has no end", s->file.path);
  s->left = ftell(s->file.file) - header - footer;
  if (!is_compressed && (s->left < 0 || s->left % record))
    return fail(
      INVALID_ARGUMENT,
      "Excluding the header (%lld bytes) and footer (%lld bytes), input file \"%s\" has body length %lld bytes, which is not an exact multiple of the record length (%lld bytes).",
      (long long)header, (long long)footer, s->file.path, (long long)s->left, (long long)record);
  return fseek(s->file.file, header, SEEK_SET) == 0 ? OK : fail(UNKNOWN, "%s; %s", s->file.path, strerror(errno));
}

static status fixed_check(const struct dataset *d) {
  int64_t header, record, footer;
  TRY(file_check(d));
  TRY(dataset_int(d, 1, "header_bytes", &header));
  TRY(dataset_int(d, 2, "record_bytes", &record));
  TRY(dataset_int(d, 3, "footer_bytes", &footer));
  if (header < 0)
    return fail(INVALID_ARGUMENT, "`header_bytes` must be >= 0");
  if (record <= 0)
    return fail(INVALID_ARGUMENT, "`record_bytes` must be > 0");
  return footer >= 0 ? OK : fail(INVALID_ARGUMENT, "`footer_bytes` must be >= 0");
}

static status read_fixed(struct file_state *s, int64_t record, struct string_view *out) {
  TRY(record_file_bytes(&s->file, (size_t)record, out));
  return s->left >= record && (int64_t)out->size == record
         ? OK
         : fail(DATA_LOSS, "%s: the last record has %lld bytes of %lld", s->file.path, (long long)s->left, (long long)record);
}

static status fixed_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct file_state *s = c->state;
  int64_t header = host_scalar_int(c->dataset->inputs[1]), record = host_scalar_int(c->dataset->inputs[2]),
          footer = host_scalar_int(c->dataset->inputs[3]);
  for (;;) {
    struct string_view text;
    bool opened = s->file.file != NULL;
    TRY(file_open(c, end));
    if (*end)
      return OK;
    status result = opened ? OK : fixed_open(c, header, record, footer);
    if (result == OK && s->left > 0)
      result = read_fixed(s, record, &text);
    if (result == OK && s->left > 0) {
      s->left -= record;
      return give_text(text, out);
    }
    record_file_close(&s->file);
    TRY(result);
  }
}

/* ---- names of files, by patterns ---- */

struct names_state {
  glob_t found;
  bool is_found, any;
  int64_t pattern;
  size_t at;
};

static void names_stop(struct cursor *c) {
  struct names_state *s = c->state;
  if (s->is_found)
    globfree(&s->found);
}

static status names_check(const struct dataset *d) {
  return d->input_count == 1 && d->inputs[0]->dtype == DTYPE_STRING && d->inputs[0]->shape.rank <= 1
         ? OK
         : fail(INVALID_ARGUMENT, "patterns must be a scalar or a vector.");
}

/* Sorted, one pattern after the other. */
static status names_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct names_state *s = c->state;
  const struct tensor *patterns = c->dataset->inputs[0];
  char path[HOST_PATH_MAX];
  while (!s->is_found || s->at >= s->found.gl_pathc) {
    names_stop(c);
    s->is_found = false;
    *end = s->pattern >= patterns->count;
    if (*end)
      return s->any ? OK : fail(NOT_FOUND, "Don't find any matched files");
    TRY(host_path(((const struct string_view *)patterns->data)[s->pattern++], path, sizeof path));
    s->is_found = glob(path, 0, NULL, &s->found) == 0;
    s->at = 0;
  }
  *end = false;
  s->any = true;
  const char *name = s->found.gl_pathv[s->at++];
  return give_text((struct string_view){name, strlen(name)}, out);
}

const struct dataset_kind dataset_files[] = {
  {"MatchingFilesDataset", sizeof(struct names_state), names_next, names_stop, names_check, .size = NULL},
  {"TextLineDataset", sizeof(struct file_state), line_next, file_stop, file_check, .size = NULL},
  {"TFRecordDataset", sizeof(struct file_state), record_next, file_stop, file_check, .size = NULL},
  {"TFRecordDatasetV2", sizeof(struct file_state), record_next, file_stop, offset_check, .size = NULL, .traits = HAS_OFFSETS},
  {"FixedLengthRecordDataset", sizeof(struct file_state), fixed_next, file_stop, fixed_check, .size = NULL, .traits = HAS_LENGTHS},
  {"FixedLengthRecordDatasetV2", sizeof(struct file_state), fixed_next, file_stop, fixed_check, .size = NULL, .traits = HAS_LENGTHS},
  {0},
};
