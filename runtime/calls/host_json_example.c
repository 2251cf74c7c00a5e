/* host_json_example.c: DecodeJSONExample: tf.train.Example as JSON (the mapping of proto3) into its bytes.
 *
 * {"features": {"feature": {KEY: {"int64List": {"value": [1, "2"]}}, ...}}}; names may also be those of the proto file (int64_list). What
 * protobuf's reader takes besides JSON is taken, too: names without quotes, single quotes, a comma at the end, one value for a list. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "runtime/data/example_values.h"
#include "runtime/host/host.h"
#include "runtime/text/string_output.h"
#include "runtime/text/utf8.h"

struct json {
  const char *at, *end;
  struct wire_buffer text; /* the last string */
  bool has_list;           /* the feature that is read has one: it may not have two */
};
enum list_kind { LIST_NONE, LIST_BYTES, LIST_FLOAT, LIST_INT64 };

static status bad(const struct json *j, const char *what) {
  return fail(INVALID_ARGUMENT, "Error while parsing JSON: %s at byte %td from the end", what, j->end - j->at);
}

static void skip_spaces(struct json *j) {
  while (j->at < j->end && memchr(" \t\r\n", *j->at, 4))
    j->at++;
}

static bool take(struct json *j, char c) {
  skip_spaces(j);
  bool is_there = j->at < j->end && *j->at == c;
  j->at += is_there;
  return is_there;
}

static bool take_word(struct json *j, const char *word) {
  skip_spaces(j);
  size_t size = strlen(word);
  if ((size_t)(j->end - j->at) < size || memcmp(j->at, word, size) != 0)
    return false;
  j->at += size;
  return true;
}

/* ---- strings ---- */

static bool take_hex(struct json *j, uint32_t *out) {
  char digits[5] = {0};
  if (j->end - j->at < 4)
    return false;
  for (int i = 0; i < 4; i++) {
    if (!isxdigit((unsigned char)j->at[i]))
      return false;
    digits[i] = j->at[i];
  }
  j->at += 4;
  *out = (uint32_t)strtoul(digits, NULL, 16);
  return true;
}

static bool take_escape(struct json *j) {
  static const char from[] = "bfnrtv", to[] = "\b\f\n\r\t\v"; /* others are themselves */
  uint32_t code, low;
  if (j->at == j->end)
    return false;
  char c = *j->at++;
  const char *known = c ? strchr(from, c) : NULL;
  if (c != 'u') {
    wire_put_raw(&j->text, known ? &to[known - from] : &c, 1);
    return true;
  }
  if (!take_hex(j, &code))
    return false;
  if (code >= 0xd800 && code < 0xdc00) { /* the first half of a pair */
    if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
      return false;
    j->at += 2;
    if (!take_hex(j, &low) || low < 0xdc00 || low > 0xdfff)
      return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    return false; /* the second half alone */
  }
  char bytes[4];
  wire_put_raw(&j->text, bytes, utf8_encode((int32_t)code, bytes));
  return true;
}

static status take_string(struct json *j) {
  j->text.size = 0;
  char quote = take(j, '"') ? '"' : '\'';
  if (quote != '"' && !take(j, quote))
    return bad(j, "a string is missing");
  while (j->at < j->end && *j->at != quote) {
    const char *from = j->at;
    if (*j->at == '\\') {
      j->at++;
      if (!take_escape(j))
        return bad(j, "a wrong escape");
      continue;
    }
    while (j->at < j->end && *j->at != quote && *j->at != '\\')
      j->at++;
    wire_put_raw(&j->text, from, (size_t)(j->at - from));
  }
  return take(j, quote) ? OK : bad(j, "a string without end");
}

static bool text_is(const struct json *j, const char *word) {
  return j->text.size == strlen(word) && memcmp(j->text.data, word, j->text.size) == 0;
}

static bool is_name_byte(char c, bool is_first) {
  return c == '_' || c == '$' || (is_first ? isalpha((unsigned char)c) : isalnum((unsigned char)c));
}

/* The name of a member: a string, or a word. */
static status take_name(struct json *j) {
  skip_spaces(j);
  const char *from = j->at;
  if (from == j->end || !is_name_byte(*from, true))
    return take_string(j);
  while (j->at < j->end && is_name_byte(*j->at, false))
    j->at++;
  j->text.size = 0;
  wire_put_raw(&j->text, from, (size_t)(j->at - from));
  return text_is(j, "true") || text_is(j, "false") || text_is(j, "null") ? bad(j, "a name is missing") : OK;
}

/* ---- values ---- */

/* Either alphabet, with all padding or none. */
static bool put_base64(const struct json *j, struct wire_buffer *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t bits = 0, count = 0;
  size_t size = j->text.size;
  bool plain = false, other = false;
  for (int padding = size % 4 == 0 ? 2 : 0; padding > 0 && size && j->text.data[size - 1] == '='; padding--)
    size--;
  for (size_t i = 0; i < size; i++) {
    char c = (char)j->text.data[i];
    plain = plain || c == '+' || c == '/';
    other = other || c == '-' || c == '_';
    c = c == '-' ? '+' : c == '_' ? '/' : c;
    const char *digit = c ? strchr(digits, c) : NULL;
    if (!digit || (plain && other))
      return false;
    bits = bits << 6 | (uint32_t)(digit - digits);
    count += 6;
    if (count >= 8) {
      uint8_t byte = (uint8_t)(bits >> (count -= 8));
      wire_put_raw(out, &byte, 1);
    }
  }
  return size % 4 != 1 && (bits & ((1u << count) - 1)) == 0;
}

static status put_bytes_value(struct json *j, struct wire_buffer *list) {
  struct wire_buffer bytes = {0};
  TRY(take_string(j));
  status result = put_base64(j, &bytes) ? OK : bad(j, "bytes that are no base64");
  wire_put_message(list, 1, &bytes);
  return result;
}

/* The text of a number, also within a string, ends with a zero byte. */
static status end_number(struct json *j) {
  bool begins = j->text.size > 0 && !isspace(j->text.data[0]);
  wire_put_raw(&j->text, "", 1);
  if (j->text.is_bad)
    return fail(RESOURCE_EXHAUSTED, "no memory for an example");
  return begins ? OK : bad(j, "a number is missing");
}

static bool text_ends(const struct json *j, const char *end) { return end == (const char *)j->text.data + j->text.size - 1; }

static status take_number(struct json *j) {
  skip_spaces(j);
  if (j->at < j->end && (*j->at == '"' || *j->at == '\'')) {
    TRY(take_string(j));
    return end_number(j);
  }
  const char *from = j->at;
  while (j->at < j->end && (strchr("+-.eE", *j->at) || (*j->at >= '0' && *j->at <= '9')) && *j->at)
    j->at++;
  bool is_decimal = j->at > from && *from != '+' && *from != '.' && (*from != '0' || j->at - from == 1 || !isdigit((unsigned char)from[1]));
  j->text.size = 0;
  wire_put_raw(&j->text, from, (size_t)(j->at - from));
  return is_decimal ? end_number(j) : bad(j, "a number is missing");
}

static status put_float_value(struct json *j, struct wire_buffer *list) {
  char *end;
  TRY(take_number(j));
  const char *text = (const char *)j->text.data;
  float value = (float)strtod(text, &end);
  bool is_named = strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0;
  if (!text_ends(j, end) || (!isfinite(value) && !is_named))
    return bad(j, "a wrong float");
  uint8_t tag = 1 << 3 | WIRE_FIXED32; /* one field for each value: not packed, as TensorFlow writes them */
  wire_put_raw(list, &tag, 1);
  wire_put_raw(list, &value, 4);
  return OK;
}

static status put_int_value(struct json *j, struct wire_buffer *list) {
  char *end;
  skip_spaces(j);
  bool is_text = j->at < j->end && (*j->at == '"' || *j->at == '\'');
  TRY(take_number(j));
  errno = 0;
  long long value = strtoll((const char *)j->text.data, &end, 10);
  if (errno == ERANGE)
    return bad(j, "an integer that does not fit");
  if (!text_ends(j, end)) { /* 1e3 and 2.0 are integers, too, but not as texts */
    double wide = strtod((const char *)j->text.data, &end);
    if (is_text || !text_ends(j, end) || !(wide >= -0x1p63 && wide < 0x1p63) || wide != floor(wide))
      return bad(j, "a wrong integer");
    value = (long long)wide;
  }
  wire_put_varint(list, 1, (uint64_t)value);
  return OK;
}

/* ---- objects: each key is given to the reader of its message ---- */

typedef status (*member_reader)(struct json *j, struct wire_buffer *out);

static status take_object(struct json *j, member_reader read, struct wire_buffer *out) {
  if (!take(j, '{'))
    return bad(j, "an object is missing");
  do {
    if (take(j, '}'))
      return OK;
    TRY(take_name(j));
    if (!take(j, ':'))
      return bad(j, "a colon is missing");
    TRY(read(j, out));
  } while (take(j, ','));
  return take(j, '}') ? OK : bad(j, "an object without end");
}

static status take_value(struct json *j, enum list_kind kind, struct wire_buffer *out) {
  return kind == LIST_BYTES ? put_bytes_value(j, out) : kind == LIST_FLOAT ? put_float_value(j, out) : put_int_value(j, out);
}

static status take_values(struct json *j, enum list_kind kind, struct wire_buffer *out) {
  if (!text_is(j, "value"))
    return bad(j, "an unknown name of a list");
  if (take_word(j, "null"))
    return OK;
  if (!take(j, '['))
    return take_value(j, kind, out);
  do {
    if (take(j, ']'))
      return OK;
    if (!take_word(j, "null"))
      TRY(take_value(j, kind, out));
  } while (take(j, ','));
  return take(j, ']') ? OK : bad(j, "a list without end");
}

static status read_bytes(struct json *j, struct wire_buffer *out) { return take_values(j, LIST_BYTES, out); }
static status read_floats(struct json *j, struct wire_buffer *out) { return take_values(j, LIST_FLOAT, out); }
static status read_ints(struct json *j, struct wire_buffer *out) { return take_values(j, LIST_INT64, out); }

/* An object as field `number`. */
static status take_message(struct json *j, member_reader read, uint32_t number, struct wire_buffer *out) {
  struct wire_buffer message = {0};
  if (take_word(j, "null"))
    return OK;
  status result = take_object(j, read, &message);
  wire_put_message(out, number, &message);
  return result;
}

static status read_feature(struct json *j, struct wire_buffer *out) {
  enum list_kind kind = text_is(j, "bytesList") || text_is(j, "bytes_list") ? LIST_BYTES
                      : text_is(j, "floatList") || text_is(j, "float_list") ? LIST_FLOAT
                      : text_is(j, "int64List") || text_is(j, "int64_list") ? LIST_INT64
                                                                            : LIST_NONE;
  if (kind == LIST_NONE)
    return bad(j, "an unknown name of a feature");
  if (take_word(j, "null"))
    return OK;
  if (j->has_list)
    return bad(j, "a second list of a feature");
  j->has_list = true;
  return take_message(j, kind == LIST_BYTES ? read_bytes : kind == LIST_FLOAT ? read_floats : read_ints, kind, out);
}

static status read_entry(struct json *j, struct wire_buffer *out) {
  struct wire_buffer entry = {0};
  wire_put_bytes(&entry, 1, j->text.data, j->text.size);
  j->has_list = false;
  status result = take_message(j, read_feature, 2, &entry);
  wire_put_message(out, 1, &entry);
  return result;
}

static bool has_repeated_key(const struct wire_buffer *entries) {
  struct wire wire = wire_over(entries->data, entries->size), value;
  struct wire_field field;
  struct example_keys keys = {0};
  struct string_view key;
  uint32_t count = 1;
  while (wire_next(&wire, &field))
    if (example_entry(wire_inside(&field), &key, &value))
      example_keys_add(&keys, key, 0);
  example_keys_sort(&keys);
  for (uint32_t i = 0; i < keys.list.count && count == 1; i++)
    (void)example_keys_find(&keys, keys.list.items[i].key, &count);
  vec_free(&keys.list);
  return count > 1;
}

static status read_features(struct json *j, struct wire_buffer *out) {
  if (!text_is(j, "feature"))
    return bad(j, "an unknown name of features");
  if (take_word(j, "null"))
    return OK;
  TRY(take_object(j, read_entry, out));
  return has_repeated_key(out) ? bad(j, "a feature that was there before") : OK;
}

static status read_example(struct json *j, struct wire_buffer *out) {
  return text_is(j, "features") ? take_message(j, read_features, 1, out) : bad(j, "an unknown name of an example");
}

static bool is_utf8(struct string_view text) {
  for (size_t at = 0, used; at < text.size; at += used)
    if (utf8_decode(text.data + at, text.size - at, &used) == UTF8_BAD)
      return false;
  return true;
}

static status convert(struct string_view in, struct wire_buffer *out) {
  struct json j = {.at = in.data, .end = in.data + in.size};
  if (!is_utf8(in))
    return bad(&j, "bytes that are no UTF-8");
  status result = take_object(&j, read_example, out);
  skip_spaces(&j);
  if (result == OK && j.at != j.end)
    result = bad(&j, "more than one object");
  if (result == OK && (j.text.is_bad || out->is_bad))
    result = fail(RESOURCE_EXHAUSTED, "no memory for an example");
  wire_buffer_free(&j.text);
  return result;
}

status host_decode_json_example(struct host_call *call) {
  struct string_output out;
  TRY(string_output_begin(&out, &call->inputs[0].shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    struct wire_buffer bytes = {0};
    status result = convert(((const struct string_view *)call->inputs[0].data)[i], &bytes);
    if (result == OK)
      string_output_put(&out, bytes.data, bytes.size);
    wire_buffer_free(&bytes);
    TRY(result);
  }
  return string_output_end(&out);
}
