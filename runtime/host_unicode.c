/* host_unicode.c: text from one encoding to another, and to code points and back. Bytes that are no text are replaced, dropped or
 * refused, as the attribute `errors` says. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/host.h"
#include "runtime/string_output.h"
#include "runtime/utf8.h"

enum encoding { UTF8, UTF16_BE, UTF16_LE, UTF32_BE, UTF32_LE, ASCII, LATIN1 };

static status find_encoding(struct string_view name, enum encoding *out) {
  static const struct {
    const char *name;
    enum encoding encoding;
  } names[] = { { "UTF-8", UTF8 }, { "UTF8", UTF8 }, { "UTF-16-BE", UTF16_BE }, { "UTF-16BE", UTF16_BE }, { "UTF-16", UTF16_BE },
                { "UTF-16-LE", UTF16_LE }, { "UTF-16LE", UTF16_LE }, { "UTF-32-BE", UTF32_BE }, { "UTF-32BE", UTF32_BE },
                { "UTF-32", UTF32_BE }, { "UTF-32-LE", UTF32_LE }, { "UTF-32LE", UTF32_LE }, { "US-ASCII", ASCII },
                { "ASCII", ASCII }, { "ISO-8859-1", LATIN1 }, { "LATIN1", LATIN1 } };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].name) == name.size && strncasecmp(names[i].name, name.data, name.size) == 0) {
      *out = names[i].encoding;
      return OK;
    }
  return fail(UNIMPLEMENTED, "the encoding %.*s", (int)(name.size < 80 ? name.size : 80), name.data);
}

static uint32_t unit_at(const unsigned char *p, int bytes, bool little) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; i++)
    v = v << 8 | p[little ? bytes - 1 - i : i];
  return v;
}

static int32_t decode_wide(enum encoding encoding, const unsigned char *p, size_t size, size_t *used) {
  bool little = encoding == UTF16_LE || encoding == UTF32_LE;
  size_t width = encoding == UTF32_BE || encoding == UTF32_LE ? 4 : 2;
  *used = size < width ? size : width;
  if (size < width)
    return UTF8_BAD;
  uint32_t unit = unit_at(p, (int)width, little);
  if (width == 4)
    return unit > 0x10ffff || (unit >= 0xd800 && unit < 0xe000) ? UTF8_BAD : (int32_t)unit;
  if (unit < 0xd800 || unit >= 0xe000)
    return (int32_t)unit;
  uint32_t second = unit < 0xdc00 && size >= 4 ? unit_at(p + 2, 2, little) : 0;
  if (second < 0xdc00 || second >= 0xe000)
    return UTF8_BAD;
  *used = 4;
  return (int32_t)(0x10000 + ((unit & 0x3ff) << 10) + (second & 0x3ff));
}

/* The code point at the front; UTF8_BAD. *used is at least 1. */
static int32_t decode(enum encoding encoding, struct string_view in, size_t *used) {
  unsigned char first = (unsigned char)in.data[0];
  *used = 1;
  switch (encoding) {
  case UTF8: return utf8_decode(in.data, in.size, used);
  case ASCII: return first < 128 ? first : UTF8_BAD;
  case LATIN1: return first;
  default: return decode_wide(encoding, (const unsigned char *)in.data, in.size, used);
  }
}

static void put_code(struct string_output *out, enum encoding encoding, int32_t code) {
  char bytes[4];
  if (encoding == UTF8) {
    string_output_add(out, bytes, utf8_encode(code, bytes));
    return;
  }
  uint32_t v = (uint32_t)code;
  if (encoding == UTF16_BE && v >= 0x10000) {
    uint32_t high = 0xd800 | ((v - 0x10000) >> 10), low = 0xdc00 | ((v - 0x10000) & 0x3ff);
    v = high << 16 | low;
  } else if (encoding == UTF16_BE) {
    bytes[0] = (char)(v >> 8);
    bytes[1] = (char)v;
    string_output_add(out, bytes, 2);
    return;
  }
  for (int i = 0; i < 4; i++)
    bytes[i] = (char)(v >> (24 - 8 * i));
  string_output_add(out, bytes, 4);
}

/* ---- what to do with damaged text ---- */

struct repair {
  bool strict, ignore, controls; /* controls: replace control characters too */
  int32_t replacement;
};

static status read_repair(const struct host_call *call, struct repair *out) {
  struct string_view errors = host_attr_string(call, "errors", "replace");
  out->strict = errors.size == 6 && memcmp(errors.data, "strict", 6) == 0;
  out->ignore = errors.size == 6 && memcmp(errors.data, "ignore", 6) == 0;
  out->controls = host_attr_int(call, "replace_control_characters", 0) != 0;
  int64_t code = host_attr_int(call, "replacement_char", 0xfffd);
  if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return fail(INVALID_ARGUMENT, "replacement_char out of unicode codepoint range");
  out->replacement = (int32_t)code;
  return OK;
}

/* The code point to keep; UTF8_BAD: none. */
static status repaired(const struct repair *repair, int32_t code, int32_t *out) {
  *out = code;
  bool control = repair->controls && code >= 0 && (code < 32 || (code >= 127 && code < 160));
  if (code != UTF8_BAD && !control)
    return OK;
  if (code == UTF8_BAD && repair->strict)
    return fail(INVALID_ARGUMENT, "Invalid formatting on input string");
  *out = repair->ignore ? UTF8_BAD : repair->replacement;
  return OK;
}

/* ---- UnicodeTranscode ---- */

status host_unicode_transcode(struct host_call *call) {
  enum encoding from, to;
  struct repair repair;
  struct string_output out;
  TRY(find_encoding(host_attr_string(call, "input_encoding", "UTF-8"), &from));
  TRY(find_encoding(host_attr_string(call, "output_encoding", "UTF-8"), &to));
  TRY(read_repair(call, &repair));
  TRY(string_output_begin(&out, &call->inputs[0].shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    struct string_view in = ((const struct string_view *)call->inputs[0].data)[i];
    for (size_t used; in.size; in.data += used, in.size -= used) {
      int32_t code;
      TRY(repaired(&repair, decode(from, in, &used), &code));
      if (code != UTF8_BAD)
        put_code(&out, to, code);
    }
    string_output_next(&out);
  }
  return string_output_end(&out);
}

/* ---- UnicodeDecode, UnicodeDecodeWithOffsets: row splits, code points, first bytes ---- */

struct codes {
  int32_t *codes;
  int64_t *starts;
  int64_t count, capacity;
};

static status codes_add(struct codes *codes, int32_t code, int64_t start) {
  if (codes->count == codes->capacity) {
    int64_t capacity = codes->capacity * 2 + 256;
    int32_t *grown = realloc(codes->codes, (size_t)capacity * sizeof *grown);
    codes->codes = grown ? grown : codes->codes;
    int64_t *starts = grown ? realloc(codes->starts, (size_t)capacity * sizeof *starts) : NULL;
    codes->starts = starts ? starts : codes->starts;
    if (!grown || !starts)
      return fail(RESOURCE_EXHAUSTED, "no memory for %lld code points", (long long)capacity);
    codes->capacity = capacity;
  }
  codes->codes[codes->count] = code;
  codes->starts[codes->count++] = start;
  return OK;
}

static void put_split(struct tensor *splits, int64_t i, int64_t value) {
  if (splits->dtype == DTYPE_INT64)
    ((int64_t *)splits->data)[i] = value;
  else
    ((int32_t *)splits->data)[i] = (int32_t)value;
}

static status decode_all(struct host_call *call, struct codes *codes) {
  enum encoding from;
  struct repair repair;
  const struct tensor *in = &call->inputs[0];
  TRY(find_encoding(host_attr_string(call, "input_encoding", "UTF-8"), &from));
  TRY(read_repair(call, &repair));
  enum dtype splits = (enum dtype)host_attr_int(call, "Tsplits", DTYPE_INT64);
  TRY(host_make_output(call, 0, splits, &(struct shape){ 1, { in->count + 1 } }));
  put_split(call->outputs[0], 0, 0);
  for (int64_t i = 0; i < in->count; i++) {
    struct string_view view = ((const struct string_view *)in->data)[i];
    int64_t at = 0;
    for (size_t used; view.size; view.data += used, view.size -= used, at += (int64_t)used) {
      int32_t code;
      TRY(repaired(&repair, decode(from, view, &used), &code));
      if (code != UTF8_BAD)
        TRY(codes_add(codes, code, at));
    }
    put_split(call->outputs[0], i + 1, codes->count);
  }
  return OK;
}

status host_unicode_decode(struct host_call *call) {
  struct codes codes = { 0 };
  status result = decode_all(call, &codes);
  struct shape shape = { 1, { codes.count } };
  if (result == OK)
    result = tensor_copy_in(DTYPE_INT32, &shape, codes.codes, &call->outputs[1]);
  if (result == OK && call->output_count > 2)
    result = tensor_copy_in(DTYPE_INT64, &shape, codes.starts, &call->outputs[2]);
  free(codes.codes);
  free(codes.starts);
  return result;
}

/* ---- UnicodeEncode ---- */

status host_unicode_encode(struct host_call *call) {
  const struct tensor *values = &call->inputs[0], *splits = &call->inputs[1];
  enum encoding to;
  struct repair repair;
  struct string_output out;
  TRY(find_encoding(host_attr_string(call, "output_encoding", "UTF-8"), &to));
  TRY(read_repair(call, &repair));
  if (splits->count < 1)
    return fail(INVALID_ARGUMENT, "Splits tensor is empty");
  TRY(string_output_begin(&out, &(struct shape){ 1, { splits->count - 1 } }, &call->outputs[0]));
  int64_t at = 0;
  for (int64_t i = 0; i + 1 < splits->count; i++) {
    int64_t end = splits->dtype == DTYPE_INT64 ? ((const int64_t *)splits->data)[i + 1] : ((const int32_t *)splits->data)[i + 1];
    if (end < at || end > values->count)
      return fail(INVALID_ARGUMENT, "Values in input_splits must be ordered and less than or equal to input_tensor size");
    for (; at < end; at++) {
      int32_t code = ((const int32_t *)values->data)[at];
      bool bad = code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000);
      if (bad && repair.strict)
        return fail(INVALID_ARGUMENT, "Code point is out of range for Unicode, or a noncharacter.");
      if (!bad || !repair.ignore)
        put_code(&out, to, bad ? repair.replacement : code);
    }
    string_output_next(&out);
  }
  return string_output_end(&out);
}
