/* text_format.c: a recursive reader of `name: value` and `name { ... }`, driven by protobuf-c's descriptors: they say where in
 * the message's struct a field lies. Element types are int32 fields here, so a name such as DT_FLOAT stands for its number. */
#include "compiler/read/text_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/limits.h"
#include "base/vec.h"

#define TEXT_DEPTH (LIMIT_NESTING * 2)
#define WORD_SIZE 128 /* of a name or number: the longest double has 24 characters, the longest field name 32 */

struct text_reader {
  const char *start, *at, *end;
  struct arena *arena;
  int depth;
  VEC(char) bytes; /* of the string being read */
};

/* ---- words ---- */

static status text_fail(const struct text_reader *r, const char *what) {
  long line = 1;
  const char *line_start = r->start;
  for (const char *p = r->start; p < r->at; p++)
    if (*p == '\n') {
      line++;
      line_start = p + 1;
    }
  return fail(INVALID_ARGUMENT, "line %ld, column %ld: %s", line, (long)(r->at - line_start) + 1, what);
}

static void skip_blanks(struct text_reader *r) {
  while (r->at < r->end) {
    if (*r->at == '#')
      while (r->at < r->end && *r->at != '\n')
        r->at++;
    else if (*r->at == ' ' || (*r->at >= '\t' && *r->at <= '\r'))
      r->at++;
    else
      return;
  }
}

/* The next character after blanks; 0 at the end. */
static char peek(struct text_reader *r) {
  skip_blanks(r);
  return r->at < r->end ? *r->at : 0;
}

static bool take(struct text_reader *r, char c) {
  if (peek(r) != c || r->at == r->end)
    return false;
  r->at++;
  return true;
}

/* Fields may be set apart by ',' or ';', and need not be. */
static void skip_separator(struct text_reader *r) {
  if (peek(r) == ',' || peek(r) == ';')
    r->at++;
}

static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/* Letters, digits and '_'; in numbers points and signs of exponents too. */
static status take_word(struct text_reader *r, bool number, char out[WORD_SIZE]) {
  size_t used = 0;
  skip_blanks(r);
  while (r->at < r->end) {
    char c = *r->at;
    bool exponent_sign = (c == '+' || c == '-') && used && (out[used - 1] == 'e' || out[used - 1] == 'E');
    if (!is_word(c) && !(number && (c == '.' || exponent_sign)))
      break;
    if (used + 1 >= WORD_SIZE)
      return text_fail(r, "a word that is too long");
    out[used++] = c;
    r->at++;
  }
  out[used] = 0;
  return used ? OK : text_fail(r, number ? "a value is missing" : "a field's name is missing");
}

/* ---- strings ---- */

static int digit_of(char c, int base) {
  int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
  return value < base ? value : -1;
}

/* Up to `most` digits; -1 without any. */
static long take_digits(struct text_reader *r, int base, int most) {
  long value = 0;
  int count = 0;
  for (; count < most && r->at < r->end && digit_of(*r->at, base) >= 0; count++)
    value = value * base + digit_of(*r->at++, base);
  return count ? value : -1;
}

static void utf8_push(struct text_reader *r, long code) {
  if (code < 0x80) {
    vec_push(&r->bytes, (char)code);
    return;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
  vec_push(&r->bytes, (char)(lead[more] | code >> (6 * more)));
  while (more--)
    vec_push(&r->bytes, (char)(0x80 | ((code >> (6 * more)) & 0x3f)));
}

static status take_escape(struct text_reader *r) {
  static const char letters[] = "abfnrtv\\'\"?", meanings[] = "\a\b\f\n\r\t\v\\'\"?";
  if (r->at == r->end)
    return text_fail(r, "the text ends inside of a string");
  char c = *r->at;
  const char *letter = c ? strchr(letters, c) : NULL;
  long value;
  if (letter) {
    r->at++;
    vec_push(&r->bytes, meanings[letter - letters]);
    return OK;
  }
  if (digit_of(c, 8) >= 0) {
    value = take_digits(r, 8, 3);
  } else if (c == 'x' || c == 'X') {
    r->at++;
    value = take_digits(r, 16, 2);
  } else if (c == 'u' || c == 'U') {
    r->at++;
    value = take_digits(r, 16, c == 'u' ? 4 : 8);
    if (value < 0 || value > 0x10ffff)
      return text_fail(r, "no such character");
    utf8_push(r, value);
    return OK;
  } else {
    return text_fail(r, "an unknown escape in a string");
  }
  if (value < 0 || value > 255)
    return text_fail(r, "an escape that is no byte");
  vec_push(&r->bytes, (char)value);
  return OK;
}

/* Adjacent literals are one string; it is left in r->bytes. */
static status take_string(struct text_reader *r) {
  r->bytes.count = 0;
  char quote = peek(r);
  if (quote != '"' && quote != '\'')
    return text_fail(r, "a string is missing");
  for (; quote == '"' || quote == '\''; quote = peek(r)) {
    r->at++;
    while (r->at < r->end && *r->at != quote) {
      if (*r->at == '\n')
        return text_fail(r, "a string runs over the end of its line");
      if (*r->at != '\\') {
        vec_push(&r->bytes, *r->at++);
        continue;
      }
      r->at++;
      TRY(take_escape(r));
    }
    if (r->at == r->end)
      return text_fail(r, "the text ends inside of a string");
    r->at++;
  }
  return OK;
}

/* ---- numbers ---- */

static status take_integer(struct text_reader *r, bool is_signed, int64_t *out) {
  char word[WORD_SIZE], *end;
  bool minus = take(r, '-');
  TRY(take_word(r, true, word));
  errno = 0;
  unsigned long long value = strtoull(word, &end, 0);
  unsigned long long most = !is_signed ? (minus ? 0 : UINT64_MAX) : (unsigned long long)INT64_MAX + minus;
  if (*end || errno || digit_of(*word, 10) < 0 || value > most)
    return text_fail(r, "no integer, or one out of range");
  *out = (int64_t)(minus ? 0 - value : value);
  return OK;
}

static status take_float(struct text_reader *r, double *out) {
  char word[WORD_SIZE], *end;
  bool minus = take(r, '-');
  TRY(take_word(r, true, word));
  double value = strtod(word, &end);
  if (end != word && (*end == 'f' || *end == 'F') && !end[1])
    end++;
  if (*end || end == word)
    return text_fail(r, "no number");
  *out = minus ? -value : value;
  return OK;
}

static status take_bool(struct text_reader *r, protobuf_c_boolean *out) {
  static const char *const words[] = {"false", "False", "f", "0", "true", "True", "t", "1"};
  char word[WORD_SIZE];
  TRY(take_word(r, false, word));
  for (int i = 0; i < 8; i++)
    if (!strcmp(word, words[i])) {
      *out = i >= 4;
      return OK;
    }
  return text_fail(r, "neither true nor false");
}

/* "DT_FLOAT", "DT_FLOAT_REF", or a number. */
static status take_int32(struct text_reader *r, int32_t *out) {
  int64_t value;
  char c = peek(r);
  if (c != '-' && digit_of(c, 10) < 0) {
    char word[WORD_SIZE];
    TRY(take_word(r, false, word));
    size_t length = strlen(word);
    bool ref = length > 4 && !strcmp(word + length - 4, "_REF");
    if (ref)
      word[length - 4] = 0;
    enum dtype dtype = DTYPE_INVALID;
    bool other = strncmp(word, "DT_", 3); /* of another enumeration, such as `version: V2` of a saver: decides nothing here */
    if (!other && strcmp(word, "DT_INVALID") && !dtype_from_name(word, &dtype))
      return text_fail(r, "no element type");
    *out = ref ? dtype + DTYPE_REF : dtype;
    return OK;
  }
  TRY(take_integer(r, true, &value));
  if (value < INT32_MIN || value > INT32_MAX)
    return text_fail(r, "an integer out of range");
  *out = (int32_t)value;
  return OK;
}

/* ---- fields ---- */

static status take_message(struct text_reader *r, const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **out);

static size_t element_size(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_FLOAT:
  case PROTOBUF_C_TYPE_ENUM: return 4;
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_SFIXED64:
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_DOUBLE: return 8;
  case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
  case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_MESSAGE: break;
  }
  return sizeof(void *);
}

static status take_unsigned32(struct text_reader *r, uint32_t *out) {
  int64_t value;
  TRY(take_integer(r, false, &value));
  if ((uint64_t)value > UINT32_MAX)
    return text_fail(r, "an integer out of range");
  *out = (uint32_t)value;
  return OK;
}

static status take_text(struct text_reader *r, char **out) {
  TRY(take_string(r));
  if (memchr(r->bytes.items ? r->bytes.items : "", 0, r->bytes.count))
    return text_fail(r, "a NUL in a name");
  *out = arena_strndup(r->arena, r->bytes.items ? r->bytes.items : "", r->bytes.count);
  return OK;
}

static status take_bytes(struct text_reader *r, ProtobufCBinaryData *out) {
  TRY(take_string(r));
  out->len = r->bytes.count;
  out->data = arena_copy(r->arena, r->bytes.items ? r->bytes.items : "", r->bytes.count);
  return OK;
}

static status take_element(struct text_reader *r, const ProtobufCFieldDescriptor *field, void *out) {
  double number;
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_ENUM: return take_int32(r, out);
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32: return take_unsigned32(r, out);
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_SFIXED64: return take_integer(r, true, out);
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64: return take_integer(r, false, out);
  case PROTOBUF_C_TYPE_FLOAT:
    TRY(take_float(r, &number));
    *(float *)out = (float)number;
    return OK;
  case PROTOBUF_C_TYPE_DOUBLE: return take_float(r, out);
  case PROTOBUF_C_TYPE_BOOL: return take_bool(r, out);
  case PROTOBUF_C_TYPE_STRING: return take_text(r, out);
  case PROTOBUF_C_TYPE_BYTES: return take_bytes(r, out);
  case PROTOBUF_C_TYPE_MESSAGE: return take_message(r, field->descriptor, out);
  }
  return text_fail(r, "a field of unknown kind");
}

/* Room for one more element: capacities are powers of two, so the count tells when to grow. */
static void *repeated_slot(struct text_reader *r, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  size_t *count = (size_t *)(void *)((char *)message + field->quantifier_offset), size = element_size(field);
  char **items = (char **)(void *)((char *)message + field->offset);
  if ((*count & (*count - 1)) == 0) {
    char *grown = arena_alloc(r->arena, size * (*count ? *count * 2 : 1));
    if (*count)
      memcpy(grown, *items, size * *count);
    *items = grown;
  }
  return *items + size * (*count)++;
}

static status take_list(struct text_reader *r, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  if (take(r, ']'))
    return OK;
  do
    TRY(take_element(r, field, repeated_slot(r, message, field)));
  while (take(r, ','));
  return take(r, ']') ? OK : text_fail(r, "']' is missing");
}

static status take_field(struct text_reader *r, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  if (!take(r, ':') && field->type != PROTOBUF_C_TYPE_MESSAGE)
    return text_fail(r, "':' is missing");
  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return take(r, '[') ? take_list(r, message, field) : take_element(r, field, repeated_slot(r, message, field));
  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
    int *which = (int *)(void *)((char *)message + field->quantifier_offset);
    if (*which)
      return text_fail(r, "a second value where only one can be");
    *which = (int)field->id;
  }
  return take_element(r, field, (char *)message + field->offset);
}

/* ---- what is skipped ---- */

static status skip_fields(struct text_reader *r, char closing);

/* `[type.googleapis.com/a.b]` or a name */
static status skip_name(struct text_reader *r) {
  char word[WORD_SIZE];
  if (!take(r, '['))
    return take_word(r, false, word);
  while (r->at < r->end && *r->at != ']' && *r->at != '\n')
    r->at++;
  return take(r, ']') ? OK : text_fail(r, "']' is missing");
}

static status skip_value(struct text_reader *r) {
  char word[WORD_SIZE], c = peek(r);
  if (take(r, '{'))
    return skip_fields(r, '}');
  if (take(r, '<'))
    return skip_fields(r, '>');
  if (c == '"' || c == '\'')
    return take_string(r);
  take(r, '-');
  return take_word(r, true, word);
}

static status skip_field(struct text_reader *r) {
  if (!take(r, ':') && peek(r) != '{' && peek(r) != '<')
    return text_fail(r, "':' is missing");
  if (!take(r, '['))
    return skip_value(r);
  if (take(r, ']'))
    return OK;
  do
    TRY(skip_value(r));
  while (take(r, ','));
  return take(r, ']') ? OK : text_fail(r, "']' is missing");
}

static status skip_fields(struct text_reader *r, char closing) {
  if (++r->depth > TEXT_DEPTH)
    return text_fail(r, "nested too deeply");
  while (!take(r, closing)) {
    TRY(skip_name(r));
    TRY(skip_field(r));
    skip_separator(r);
  }
  r->depth--;
  return OK;
}

/* ---- messages ---- */

/* Fields up to `closing`, or to the end of the text when that is 0. */
static status take_fields(struct text_reader *r, ProtobufCMessage *message, char closing) {
  if (++r->depth > TEXT_DEPTH)
    return text_fail(r, "nested too deeply");
  while (closing ? !take(r, closing) : (peek(r), r->at < r->end)) {
    char word[WORD_SIZE];
    const ProtobufCFieldDescriptor *field = NULL;
    if (peek(r) == '[') {
      TRY(skip_name(r));
    } else {
      TRY(take_word(r, false, word));
      field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, word);
    }
    TRY(field ? take_field(r, message, field) : skip_field(r));
    skip_separator(r);
  }
  r->depth--;
  return OK;
}

static status take_message(struct text_reader *r, const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **out) {
  bool angle = take(r, '<');
  if (!angle && !take(r, '{'))
    return text_fail(r, "'{' is missing");
  ProtobufCMessage *message = arena_alloc(r->arena, descriptor->sizeof_message);
  protobuf_c_message_init(descriptor, message);
  *out = message;
  return take_fields(r, message, angle ? '>' : '}');
}

status text_parse(const char *text, size_t size, const ProtobufCMessageDescriptor *descriptor, struct arena *arena,
                  ProtobufCMessage **out) {
  struct text_reader r = {.start = text, .at = text, .end = text + size, .arena = arena};
  ProtobufCMessage *message = arena_alloc(arena, descriptor->sizeof_message);
  protobuf_c_message_init(descriptor, message);
  status result = take_fields(&r, message, 0);
  vec_free(&r.bytes);
  *out = message;
  return result;
}
