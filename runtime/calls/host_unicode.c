/* host_unicode.c: text from one encoding to another, and to code points and back. Bytes that are no text are replaced, dropped or
 * refused, as the attribute `errors` says. */
#include <errno.h>
#include <iconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/host/host.h"
#include "runtime/text/element_number.h"
#include "runtime/text/string_output.h"
#include "runtime/text/unicode_class.h"
#include "runtime/text/utf8.h"

enum encoding { UTF8, UTF16_BE, UTF16_LE, UTF32_BE, UTF32_LE, ASCII, LATIN1, OF_LIBC };

/* What turns bytes into code points. UTF-16 and UTF-32 without an order of bytes are big-endian unless a mark at the
 * beginning of the text says otherwise; encodings that are not known here are the C library's. */
struct decoder {
  enum encoding encoding, now; /* now: of this text */
  bool marked;
  iconv_t table; /* OF_LIBC */
};

static status find_encoding(struct string_view name, enum encoding *out, bool *marked) {
  static const struct {
    const char *name;
    enum encoding encoding;
    bool marked;
  } names[] = {{"UTF-8", UTF8, false},         {"UTF8", UTF8, false},         {"UTF-16-BE", UTF16_BE, false}, {"UTF-16BE", UTF16_BE, false},
               {"UTF-16", UTF16_BE, true},     {"UTF16", UTF16_BE, true},     {"UTF-16-LE", UTF16_LE, false}, {"UTF-16LE", UTF16_LE, false},
               {"UTF-32-BE", UTF32_BE, false}, {"UTF-32BE", UTF32_BE, false}, {"UTF-32", UTF32_BE, true},     {"UTF32", UTF32_BE, true},
               {"UTF-32-LE", UTF32_LE, false}, {"UTF-32LE", UTF32_LE, false}, {"US-ASCII", ASCII, false},     {"ASCII", ASCII, false},
               {"ISO-8859-1", LATIN1, false},  {"LATIN1", LATIN1, false}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].name) == name.size && strncasecmp(names[i].name, name.data, name.size) == 0) {
      *out = names[i].encoding;
      *marked = names[i].marked;
      return OK;
    }
  return fail(INVALID_ARGUMENT, "Could not create converter for encoding: %.*s", (int)(name.size < 80 ? name.size : 80), name.data);
}

/* The encoding that input_encoding names; close it with decoder_close. */
static status decoder_open(const struct host_call *call, struct decoder *out) {
  struct string_view name = host_attr_string(call, "input_encoding", "UTF-8");
  char text[80];
  *out = (struct decoder){.table = (iconv_t)-1};
  if (find_encoding(name, &out->encoding, &out->marked) == OK)
    return OK;
  snprintf(text, sizeof text, "%.*s", (int)(name.size < sizeof text ? name.size : sizeof text - 1), name.data);
  out->encoding = OF_LIBC;
  out->table = iconv_open("UTF-32LE", text);
  for (char *at = text; out->table == (iconv_t)-1 && *at; at++) /* ICU takes euc_kr for EUC-KR */
    *at = *at == '_' ? '-' : *at;
  if (out->table == (iconv_t)-1)
    out->table = iconv_open("UTF-32LE", text);
  return out->table != (iconv_t)-1 ? OK : fail(INVALID_ARGUMENT, "Could not create converter for input encoding: %s", text);
}

static void decoder_close(struct decoder *d) {
  if (d->table != (iconv_t)-1)
    iconv_close(d->table);
}

/* Begins a text: the length of the mark in front of it. */
static size_t decoder_begin(struct decoder *d, struct string_view in) {
  static const struct {
    const char *bytes;
    size_t size;
    enum encoding of, then;
  } marks[] = {{"\xfe\xff", 2, UTF16_BE, UTF16_BE},
               {"\xff\xfe", 2, UTF16_BE, UTF16_LE},
               {"\0\0\xfe\xff", 4, UTF32_BE, UTF32_BE},
               {"\xff\xfe\0\0", 4, UTF32_BE, UTF32_LE}};
  d->now = d->encoding;
  if (d->encoding == OF_LIBC)
    iconv(d->table, NULL, NULL, NULL, NULL);
  for (size_t i = 0; d->marked && i < sizeof marks / sizeof *marks; i++)
    if (marks[i].of == d->encoding && in.size >= marks[i].size && memcmp(in.data, marks[i].bytes, marks[i].size) == 0) {
      d->now = marks[i].then;
      return marks[i].size;
    }
  return 0;
}

#define NO_CHARACTER 0xffff

/* One character of the C library's: as few bytes as give one, and the shifts to other characters before it. Shifts that the text
 * ends with are a noncharacter, as in TensorFlow. */
static int32_t decode_libc(iconv_t table, struct string_view in, size_t *used) {
  size_t at = 0; /* behind the shifts */
  for (size_t n = 1; n <= 8 && at + n <= in.size; n++) {
    uint32_t code;
    const char *first = in.data + at;
    char *from = (char *)(uintptr_t)first, *to = (char *)&code;
    size_t left = n, room = sizeof code;
    bool stopped = iconv(table, &from, &left, &to, &room) == (size_t)-1;
    if (room == 0) {
      bool plain = n - left == 1 && *first >= 32; /* the yen sign for a backslash: ICU keeps ASCII */
      *used = at + n - left;
      return plain ? *first : (int32_t)code;
    }
    if (stopped && errno == EILSEQ)
      break;
    if (left == 0 && !stopped) {
      at += n;
      n = 0;
    }
  }
  *used = at < in.size ? at + 1 : at;
  return at < in.size ? UTF8_BAD : NO_CHARACTER;
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
static int32_t decode(const struct decoder *d, struct string_view in, size_t *used) {
  unsigned char first = (unsigned char)in.data[0];
  *used = 1;
  switch (d->now) {
  case UTF8: return utf8_decode(in.data, in.size, used);
  case ASCII: return first < 128 ? first : UTF8_BAD;
  case LATIN1: return first;
  case OF_LIBC: return decode_libc(d->table, in, used);
  default: return decode_wide(d->now, (const unsigned char *)in.data, in.size, used);
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
  bool control = repair->controls && code >= 0 && code < 32;
  if (code != UTF8_BAD && !control)
    return OK;
  if (code == UTF8_BAD && repair->strict)
    return fail(INVALID_ARGUMENT, "Invalid formatting on input string");
  *out = repair->ignore ? UTF8_BAD : repair->replacement;
  return OK;
}

/* ---- UnicodeTranscode ---- */

static status output_encoding(const struct host_call *call, enum encoding *out) {
  bool marked;
  return find_encoding(host_attr_string(call, "output_encoding", "UTF-8"), out, &marked);
}

static status transcode_all(struct host_call *call, struct decoder *from, struct string_output *out) {
  enum encoding to;
  struct repair repair;
  TRY(output_encoding(call, &to));
  TRY(read_repair(call, &repair));
  for (int64_t i = 0; i < out->tensor->count; i++) {
    struct string_view in = ((const struct string_view *)call->inputs[0].data)[i];
    size_t used = decoder_begin(from, in);
    for (in.data += used, in.size -= used; in.size; in.data += used, in.size -= used) {
      int32_t code;
      TRY(repaired(&repair, decode(from, in, &used), &code));
      if (code != UTF8_BAD)
        put_code(out, to, code);
    }
    string_output_next(out);
  }
  return string_output_end(out);
}

status host_unicode_transcode(struct host_call *call) {
  struct decoder from;
  struct string_output out;
  TRY(decoder_open(call, &from));
  status s = string_output_begin(&out, &call->inputs[0].shape, &call->outputs[0]);
  s = s == OK ? transcode_all(call, &from, &out) : s;
  decoder_close(&from);
  return s;
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

static status decode_all(struct host_call *call, struct decoder *from, struct codes *codes) {
  struct repair repair;
  const struct tensor *in = &call->inputs[0];
  TRY(read_repair(call, &repair));
  enum dtype splits = (enum dtype)host_attr_int(call, "Tsplits", DTYPE_INT64);
  TRY(host_make_output(call, 0, splits, &(struct shape){1, {in->count + 1}}));
  element_put_int(call->outputs[0], 0, 0);
  for (int64_t i = 0; i < in->count; i++) {
    struct string_view view = ((const struct string_view *)in->data)[i];
    size_t used = decoder_begin(from, view);
    int64_t at = 0, mark = (int64_t)used; /* a mark belongs to the first character */
    for (view.data += used, view.size -= used; view.size; view.data += used, view.size -= used) {
      int32_t code;
      TRY(repaired(&repair, decode(from, view, &used), &code));
      if (code != UTF8_BAD)
        TRY(codes_add(codes, code, at));
      at += (int64_t)used + mark;
      mark = 0;
    }
    element_put_int(call->outputs[0], i + 1, codes->count);
  }
  return OK;
}

status host_unicode_decode(struct host_call *call) {
  struct codes codes = {0};
  struct decoder from;
  TRY(decoder_open(call, &from));
  status result = decode_all(call, &from, &codes);
  decoder_close(&from);
  struct shape shape = {1, {codes.count}};
  if (result == OK)
    result = tensor_copy_in(DTYPE_INT32, &shape, codes.codes, &call->outputs[1]);
  if (result == OK && call->output_count > 2)
    result = tensor_copy_in(DTYPE_INT64, &shape, codes.starts, &call->outputs[2]);
  free(codes.codes);
  free(codes.starts);
  return result;
}

/* ---- UnicodeEncode ---- */

static bool is_surrogate(int32_t code) { return code >= 0xd800 && code < 0xe000; }
static bool is_no_character(int32_t code) { return (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe; }

/* What is no character where nothing is to be replaced: only what Unicode has not at all is left out. Two surrogates are what they stand
 * for, one alone cannot be said in UTF-8. The number of code points that it is. */
static int64_t put_loosely(struct string_output *out, enum encoding to, const int32_t *codes, int64_t count) {
  bool is_pair = is_surrogate(codes[0]) && codes[0] < 0xdc00 && count > 1 && is_surrogate(codes[1]) && codes[1] >= 0xdc00;
  if (is_pair)
    put_code(out, to, 0x10000 + ((codes[0] & 0x3ff) << 10) + (codes[1] & 0x3ff));
  else if (codes[0] >= 0 && codes[0] <= 0x10ffff)
    put_code(out, to, is_surrogate(codes[0]) && to == UTF8 ? 0xfffd : codes[0]);
  return is_pair ? 2 : 1;
}

status host_unicode_encode(struct host_call *call) {
  const struct tensor *values = &call->inputs[0], *splits = &call->inputs[1];
  enum encoding to;
  struct repair repair;
  struct string_output out;
  TRY(output_encoding(call, &to));
  TRY(read_repair(call, &repair));
  if (splits->count < 1)
    return fail(INVALID_ARGUMENT, "Splits tensor is empty");
  TRY(string_output_begin(&out, &(struct shape){1, {splits->count - 1}}, &call->outputs[0]));
  int64_t at = 0;
  for (int64_t i = 0; i + 1 < splits->count; i++) {
    int64_t end = element_int(splits, i + 1);
    if (end < at || end > values->count)
      return fail(INVALID_ARGUMENT, "Values in input_splits must be ordered and less than or equal to input_tensor size");
    while (at < end) {
      const int32_t *codes = (const int32_t *)values->data + at;
      bool bad = *codes < 0 || *codes > 0x10ffff || is_surrogate(*codes) || is_no_character(*codes);
      if (bad && repair.strict)
        return fail(INVALID_ARGUMENT, "Code point is out of range for Unicode, or a noncharacter.");
      if (!repair.ignore)
        put_code(&out, to, bad ? repair.replacement : *codes);
      at += repair.ignore ? put_loosely(&out, to, codes, end - at) : 1;
    }
    string_output_next(&out);
  }
  return string_output_end(&out);
}

/* ---- UnicodeScript ---- */

/* The script of each code point as ICU numbers them; -1 for what is none. */
status host_unicode_script(struct host_call *call) {
  const int32_t *codes = call->inputs[0].data;
  TRY(host_make_output(call, 0, DTYPE_INT32, &call->inputs[0].shape));
  for (int64_t i = 0; i < call->inputs[0].count; i++)
    ((int32_t *)call->outputs[0]->data)[i] = unicode_script(codes[i]);
  return OK;
}
