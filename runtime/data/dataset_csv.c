/* dataset_csv.c: records of comma separated values (RFC 4180) out of files, each field a component. A wrong record is an error of its own:
 * the next one can be read. */
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "runtime/data/dataset.h"
#include "runtime/data/record_file.h"
#include "runtime/text/number_parse.h"

enum csv_input { CSV_NAMES, CSV_COMPRESSION, CSV_BUFFER, CSV_HEADER, CSV_DELIMITER, CSV_QUOTES, CSV_MISSING, CSV_SELECTED, CSV_DEFAULTS };

struct csv_state {
  struct record_file file;
  int64_t number;           /* of the file */
  struct wire_buffer field; /* the last one, without its quotes */
  /* the record that is being read */
  int64_t column;
  uint32_t taken;  /* components so far */
  uint32_t passed; /* of the columns that are left out */
  status code;     /* its first error, with its text */
  char text[512];
};

static void csv_stop(struct cursor *c) {
  struct csv_state *s = c->state;
  record_file_free(&s->file);
  wire_buffer_free(&s->field);
}

/* ---- parameters ---- */

static const struct tensor *excluded_of(const struct dataset *d) {
  uint32_t at = CSV_DEFAULTS + d->component_count;
  return at < d->input_count ? d->inputs[at] : NULL;
}

static status check_columns(const struct tensor *columns, const char *name) {
  const int64_t *at = columns->data;
  if (columns->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "`%s` must be a vector.", name);
  for (int64_t i = 0; i < columns->count; i++) {
    if (i && at[i - 1] >= at[i])
      return fail(INVALID_ARGUMENT, "%s should be strictly increasing indices", name);
    if (at[0] < 0)
      return fail(INVALID_ARGUMENT, "%s should be non-negative indices", name);
  }
  return OK;
}

static status csv_check(const struct dataset *d) {
  int64_t buffer;
  if (d->input_count < CSV_DEFAULTS + d->component_count)
    return fail(INVALID_ARGUMENT, "a CSV dataset without a default for each component");
  if (d->inputs[CSV_NAMES]->shape.rank > 1)
    return fail(INVALID_ARGUMENT, "`filenames` must be a scalar or a vector.");
  for (uint32_t i = 0; i < d->component_count; i++) {
    if (d->inputs[CSV_DEFAULTS + i]->shape.rank > 1)
      return fail(INVALID_ARGUMENT, "Each record default should be at most rank 1");
    if (d->inputs[CSV_DEFAULTS + i]->count > 1)
      return fail(INVALID_ARGUMENT, "There should only be 1 default per field but field %u has %lld", i,
                  (long long)d->inputs[CSV_DEFAULTS + i]->count);
  }
  TRY(dataset_int(d, CSV_BUFFER, "buffer_size", &buffer));
  if (buffer <= 0)
    return fail(INVALID_ARGUMENT, "buffer_size should be positive");
  if (host_scalar_string(d->inputs[CSV_DELIMITER]).size != 1)
    return fail(INVALID_ARGUMENT, "field_delim should be only 1 char");
  if (!record_file_knows(host_scalar_string(d->inputs[CSV_COMPRESSION])))
    return fail(INVALID_ARGUMENT, "Unsupported compression_type: %.*s.", (int)host_scalar_string(d->inputs[CSV_COMPRESSION]).size,
                host_scalar_string(d->inputs[CSV_COMPRESSION]).data);
  const struct tensor *selected = d->inputs[CSV_SELECTED], *excluded = excluded_of(d);
  TRY(check_columns(selected, "select_cols"));
  if (selected->count && selected->count != d->component_count)
    return fail(INVALID_ARGUMENT, "select_cols should match output size");
  if (!excluded)
    return OK;
  TRY(check_columns(excluded, "exclude_cols"));
  return selected->count && excluded->count ? fail(INVALID_ARGUMENT, "Either select_cols or exclude_cols should be empty") : OK;
}

/* ---- one field ---- */

static void keep_error(struct csv_state *s, status code, const char *text) {
  if (s->code == OK)
    snprintf(s->text, sizeof s->text, "%s", text);
  s->code = s->code == OK ? code : s->code;
}

static bool is_wanted(const struct dataset *d, struct csv_state *s) {
  const struct tensor *selected = d->inputs[CSV_SELECTED], *excluded = excluded_of(d);
  if (excluded && s->passed < excluded->count && ((const int64_t *)excluded->data)[s->passed] == s->column) {
    s->passed++;
    return false;
  }
  return selected->count == 0 || (s->taken < selected->count && ((const int64_t *)selected->data)[s->taken] == s->column);
}

/* The field as the next component. */
static status take_field(const struct dataset *d, struct csv_state *s, struct tensor **out) {
  struct string_view field = {(const char *)s->field.data, s->field.size}, missing = host_scalar_string(d->inputs[CSV_MISSING]);
  uint32_t i = s->taken;
  if (i >= d->component_count)
    return fail(INVALID_ARGUMENT, "Expect %u fields but have more in record", d->component_count);
  const struct tensor *otherwise = d->inputs[CSV_DEFAULTS + i];
  bool is_missing = !field.size || (field.size == missing.size && memcmp(field.data, missing.data, field.size) == 0);
  if (is_missing && otherwise->count != 1)
    return fail(INVALID_ARGUMENT, "Field %u is required but missing in record!", i);
  if (is_missing || otherwise->dtype == DTYPE_STRING) {
    TRY(tensor_copy_in(otherwise->dtype, &(struct shape){0}, is_missing ? otherwise->data : &field, &out[i]));
    s->taken++;
    return OK;
  }
  TRY(tensor_create(otherwise->dtype, &(struct shape){0}, &out[i]));
  s->taken++;
  return number_parse(field, otherwise->dtype, out[i]->data, 0)
         ? OK
         : fail(INVALID_ARGUMENT, "Field %u in record is not a valid %s: %.*s", i, dtype_name(otherwise->dtype),
                (int)(field.size < 200 ? field.size : 200), field.data);
}

/* The line's end may be two characters. True at the end of the record. */
static bool ends_record(FILE *file, int c) {
  if (c == '\r') {
    int next = getc(file);
    if (next != '\n' && next != EOF)
      ungetc(next, file);
  }
  return c == '\n' || c == '\r' || c == EOF;
}

static bool read_plain(struct csv_state *s, int delimiter, bool quotes) {
  for (;;) {
    int c = getc(s->file.file);
    if (c == delimiter || c == '\n' || c == '\r' || c == EOF)
      return ends_record(s->file.file, c);
    if (quotes && c == '"')
      keep_error(s, INVALID_ARGUMENT, "Unquoted fields cannot have quotes inside");
    wire_put_raw(&s->field, &(char){(char)c}, 1);
  }
}

/* Behind its first quote. */
static bool read_quoted(struct csv_state *s, int delimiter) {
  for (;;) {
    int c = getc(s->file.file);
    if (c == EOF) {
      keep_error(s, INVALID_ARGUMENT, "Reached end of file without closing quoted field in record");
      return true;
    }
    if (c == '"') {
      c = getc(s->file.file);
      if (c == delimiter || c == '\n' || c == '\r' || c == EOF)
        return ends_record(s->file.file, c);
      if (c != '"')
        keep_error(s, INVALID_ARGUMENT, "Quote inside a string has to be escaped by another quote");
    }
    wire_put_raw(&s->field, &(char){(char)c}, 1);
  }
}

/* ---- records ---- */

/* `out`: NULL for the header. *end: the file has no more. */
static status read_record(const struct dataset *d, struct csv_state *s, struct tensor **out, bool *end) {
  int delimiter = (unsigned char)host_scalar_string(d->inputs[CSV_DELIMITER]).data[0], first = getc(s->file.file);
  bool quotes = dataset_bool(d, CSV_QUOTES, true);
  s->column = s->taken = s->passed = 0;
  s->code = OK;
  *end = first == EOF && !ferror(s->file.file);
  if (*end)
    return OK;
  if (first == EOF)
    return fail(DATA_LOSS, "%s: damaged bytes", s->file.path);
  ungetc(first, s->file.file);
  for (bool is_over = false; !is_over; s->column++) {
    int c = getc(s->file.file);
    bool is_quoted = quotes && c == '"';
    s->field.size = 0;
    if (!is_quoted && c != EOF)
      ungetc(c, s->file.file);
    is_over = is_quoted ? read_quoted(s, delimiter) : read_plain(s, delimiter, quotes);
    if (out && is_wanted(d, s) && s->code == OK && take_field(d, s, out) != OK)
      keep_error(s, INVALID_ARGUMENT, status_text());
  }
  if (out && s->code == OK && s->taken != d->component_count)
    return fail(INVALID_ARGUMENT, "Expect %u fields but have %u in record", d->component_count, s->taken);
  return !out || s->code == OK ? OK : fail(s->code, "%s", s->text);
}

static status csv_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct csv_state *s = c->state;
  const struct dataset *d = c->dataset;
  const struct tensor *names = d->inputs[CSV_NAMES];
  for (;;) {
    bool is_over = false;
    *end = !s->file.file && s->number >= names->count;
    if (*end)
      return OK;
    if (!s->file.file) {
      TRY(
        record_file_open(&s->file, ((const struct string_view *)names->data)[s->number++], host_scalar_string(d->inputs[CSV_COMPRESSION])));
      if (dataset_bool(d, CSV_HEADER, false) && (read_record(d, s, NULL, &is_over) != OK || is_over))
        return fail(INVALID_ARGUMENT, "Can't read header of file");
    }
    status result = is_over ? OK : read_record(d, s, out, &is_over);
    if (result != OK)
      element_release(out, s->taken);
    if (result != OK && ferror(s->file.file))
      record_file_close(&s->file); /* the next element is in the next */
    if (result != OK || !is_over)
      return result;
    record_file_close(&s->file);
  }
}

const struct dataset_kind dataset_csv[] = {
  {"CSVDataset", sizeof(struct csv_state), csv_next, csv_stop, csv_check, .size = NULL},
  {"CSVDatasetV2", sizeof(struct csv_state), csv_next, csv_stop, csv_check, .size = NULL},
  {0},
};
