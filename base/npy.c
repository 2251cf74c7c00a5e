/* npy.c: reading. The header is a Python dict with three known keys; a small scanner takes exactly that and no more. */
#include "base/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ITEM_BYTES_MAX (1 << 28) /* of an S array: no string of a feed is longer */

struct npy_header {
  char kind; /* the letter of descr */
  bool big_endian, fortran;
  int64_t item_size; /* bytes */
  struct shape shape;
  size_t data_at;
};

struct scanner {
  const char *at, *end;
};

static void skip_blanks(struct scanner *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
    s->at++;
}

static bool take(struct scanner *s, char c) {
  skip_blanks(s);
  if (s->at == s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

static bool take_word(struct scanner *s, const char *word) {
  skip_blanks(s);
  size_t length = strlen(word);
  if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length))
    return false;
  s->at += length;
  return true;
}

/* 'text' in either kind of quotes, without escapes. */
static bool take_string(struct scanner *s, char *out, size_t size) {
  skip_blanks(s);
  if (s->at == s->end || (*s->at != '\'' && *s->at != '"'))
    return false;
  char quote = *s->at++;
  size_t used = 0;
  while (s->at < s->end && *s->at != quote) {
    if (used + 1 >= size || *s->at == '\\')
      return false;
    out[used++] = *s->at++;
  }
  out[used] = 0;
  return s->at++ < s->end;
}

static bool take_number(struct scanner *s, int64_t *out) {
  skip_blanks(s);
  int64_t value = 0;
  const char *start = s->at;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
    if (value > LIMIT_ELEMENTS)
      return false;
    value = value * 10 + (*s->at - '0');
  }
  *out = value;
  return s->at > start && (take(s, 'L') || true); /* Python 2 wrote 3L */
}

static bool take_shape(struct scanner *s, struct shape *out) {
  if (!take(s, '('))
    return false;
  out->rank = 0;
  while (!take(s, ')')) {
    if (out->rank == LIMIT_RANK || !take_number(s, &out->dims[out->rank]))
      return false;
    out->rank++;
    if (!take(s, ',')) {
      if (!take(s, ')'))
        return false;
      break;
    }
  }
  return true;
}

static bool take_descr(struct scanner *s, struct npy_header *h) {
  char text[32];
  if (!take_string(s, text, sizeof text) || strlen(text) < 2)
    return false;
  if (!strchr("<>|=", text[0]))
    return false;
  h->big_endian = text[0] == '>';
  h->kind = text[1];
  struct scanner digits = {text + 2, text + strlen(text)};
  if (h->kind == 'O') /* has no size, or that of a pointer */
    return true;
  if (!take_number(&digits, &h->item_size) || digits.at != digits.end || h->item_size > ITEM_BYTES_MAX)
    return false;
  h->item_size *= h->kind == 'U' ? 4 : 1; /* counted in characters */
  return true;
}

static bool take_dict(struct scanner *s, struct npy_header *h) {
  unsigned seen = 0;
  if (!take(s, '{'))
    return false;
  while (!take(s, '}')) {
    char key[32];
    if (!take_string(s, key, sizeof key) || !take(s, ':'))
      return false;
    if (!strcmp(key, "descr") && take_descr(s, h))
      seen |= 1;
    else if (!strcmp(key, "fortran_order") && (take_word(s, "True") ? (h->fortran = true) : take_word(s, "False")))
      seen |= 2;
    else if (!strcmp(key, "shape") && take_shape(s, &h->shape))
      seen |= 4;
    else
      return false;
    if (!take(s, ',')) {
      if (!take(s, '}'))
        return false;
      break;
    }
  }
  return seen == 7;
}

static status header_parse(const unsigned char *data, size_t size, const char *name, struct npy_header *out) {
  if (size < 10 || memcmp(data, "\x93NUMPY", 6))
    return fail(INVALID_ARGUMENT, "'%s' is not a .npy file", name);
  size_t at = data[6] == 1 ? 10 : 12, length = data[8] | (size_t)data[9] << 8;
  if (data[6] < 1 || data[6] > 3 || size < at)
    return fail(INVALID_ARGUMENT, "'%s' is a .npy file of version %d.%d, which is unknown", name, data[6], data[7]);
  if (data[6] > 1)
    length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
  if (length > size - at)
    return fail(INVALID_ARGUMENT, "'%s' is cut off in its header", name);
  *out = (struct npy_header){.data_at = at + length};
  struct scanner s = {(const char *)data + at, (const char *)data + at + length};
  if (!take_dict(&s, out))
    return fail(INVALID_ARGUMENT, "'%s' has a .npy header that cannot be read", name);
  return OK;
}

static enum dtype dtype_of(const struct npy_header *h) {
  if (h->kind == 'S' || h->kind == 'U')
    return DTYPE_STRING;
  if (h->kind == 'V' && h->item_size == 2)
    return DTYPE_BFLOAT16;
  char descr[16];
  snprintf(descr, sizeof descr, "%c%d", h->kind, (int)h->item_size);
  for (int i = 1; i < DTYPE_COUNT; i++) { /* plain integers come before the quantised ones or are told apart here */
    enum dtype dtype = (enum dtype)i;
    bool quantised = dtype >= DTYPE_QINT8 && dtype <= DTYPE_QUINT16 && dtype != DTYPE_BFLOAT16;
    if (!quantised && dtype != DTYPE_STRING && *dtype_npy(dtype) && !strcmp(dtype_npy(dtype) + 1, descr))
      return dtype;
  }
  return DTYPE_INVALID;
}

/* Copies `count` items from Fortran order to C order. */
static void items_transpose(const struct shape *shape, int64_t count, size_t item, const unsigned char *from, unsigned char *to) {
  int64_t stride[LIMIT_RANK], index[LIMIT_RANK] = {0}, place = 0, step = 1;
  for (int i = 0; i < shape->rank; i++) {
    stride[i] = step;
    step *= shape->dims[i];
  }
  for (int64_t k = 0; k < count; k++) {
    memcpy(to + (size_t)k * item, from + (size_t)place * item, item);
    for (int i = shape->rank - 1; i >= 0; i--) {
      place += stride[i];
      if (++index[i] < shape->dims[i])
        break;
      place -= stride[i] * shape->dims[i];
      index[i] = 0;
    }
  }
}

static void bytes_swap(unsigned char *data, int64_t count, size_t word) {
  for (int64_t k = 0; k < count; k++, data += word)
    for (size_t i = 0; i < word / 2; i++) {
      unsigned char c = data[i];
      data[i] = data[word - 1 - i];
      data[word - 1 - i] = c;
    }
}

static size_t utf8_put(uint32_t code, char *out) {
  if (code < 0x80)
    return *out = (char)code, 1;
  size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out[0] = (char)((0xff00 >> (more + 1) & 0xff) | code >> (6 * more));
  for (size_t i = 1; i <= more; i++)
    out[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3f));
  return more + 1;
}

/* U arrays have 4 bytes for each character: their UTF-8 is never longer, and takes their place. */
static status unicode_read(const struct npy_header *h, struct tensor *tensor) {
  struct string_view *views = tensor->data;
  size_t item = (size_t)h->item_size;
  for (int64_t i = 0; i < tensor->count; i++) {
    char *text = tensor->bytes + (size_t)i * item;
    size_t used = 0;
    for (size_t at = 0; at < views[i].size; at += 4) {
      uint32_t code;
      memcpy(&code, text + at, 4);
      code = h->big_endian ? __builtin_bswap32(code) : code;
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return fail(INVALID_ARGUMENT, "element %lld holds U+%X, which is no character", (long long)i, code);
      used += utf8_put(code, text + used);
    }
    views[i].size = used;
  }
  return OK;
}

static status strings_read(const struct npy_header *h, const unsigned char *items, struct tensor *tensor) {
  size_t item = (size_t)h->item_size, total = (size_t)tensor->count * item;
  char *bytes = malloc(total ? total : 1);
  if (!bytes)
    return fail(RESOURCE_EXHAUSTED, "no memory for %zu bytes of strings", total);
  tensor->bytes = bytes;
  if (h->fortran)
    items_transpose(&h->shape, tensor->count, item, items, (unsigned char *)bytes);
  else if (total)
    memcpy(bytes, items, total);
  struct string_view *views = tensor->data;
  for (int64_t i = 0; i < tensor->count; i++) {
    size_t length = item;
    while (length && !bytes[(size_t)i * item + length - 1])
      length--;
    length = h->kind == 'U' ? (length + 3) / 4 * 4 : length;
    views[i] = (struct string_view){bytes + (size_t)i * item, length};
  }
  return h->kind == 'U' ? unicode_read(h, tensor) : OK;
}

static void numbers_read(const struct npy_header *h, const unsigned char *items, struct tensor *tensor) {
  size_t item = (size_t)h->item_size;
  if (h->fortran)
    items_transpose(&h->shape, tensor->count, item, items, tensor->data);
  else if (tensor->count)
    memcpy(tensor->data, items, (size_t)tensor->count * item);
  bool halves = h->kind == 'c';
  if (h->big_endian)
    bytes_swap(tensor->data, tensor->count * (halves ? 2 : 1), halves ? item / 2 : item);
  if (tensor->dtype == DTYPE_BOOL)
    for (int64_t i = 0; i < tensor->count; i++)
      ((uint8_t *)tensor->data)[i] = ((uint8_t *)tensor->data)[i] != 0;
}

status npy_parse(const void *data, size_t size, const char *name, struct tensor **out) {
  struct npy_header h;
  TRY(header_parse(data, size, name, &h));
  enum dtype dtype = dtype_of(&h);
  if (h.kind == 'O')
    return fail(INVALID_ARGUMENT,
                "'%s' holds Python objects (dtype=object): save strings with .astype('S') or .astype('U'), "
                "numbers with .astype(float)",
                name);
  if (!dtype)
    return fail(INVALID_ARGUMENT, "'%s' holds elements of numpy's type '%c%d', which TensorFlow has not", name, h.kind, (int)h.item_size);
  int64_t count = shape_count(&h.shape);
  if (count < 0)
    return fail(INVALID_ARGUMENT, "'%s' has shape %s, which no tensor can have", name, shape_text(&h.shape));
  size_t rest = size - h.data_at;
  if (h.item_size && count > (int64_t)(rest / (size_t)h.item_size))
    return fail(INVALID_ARGUMENT, "'%s' is cut off: shape %s of %d-byte elements needs more than its %zu bytes", name, shape_text(&h.shape),
                (int)h.item_size, rest);
  if (!h.item_size && count > (int64_t)size * 64)
    return fail(INVALID_ARGUMENT, "'%s' has %lld empty strings: too many for its size", name, (long long)count);
  struct tensor *tensor;
  TRY(tensor_create(dtype, &h.shape, &tensor));
  status result = OK;
  const unsigned char *items = (const unsigned char *)data + h.data_at;
  if (dtype == DTYPE_STRING)
    result = strings_read(&h, items, tensor);
  else
    numbers_read(&h, items, tensor);
  if (result != OK) {
    tensor_release(tensor);
    return result;
  }
  *out = tensor;
  return OK;
}

status npy_read(const char *path, struct tensor **out) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0)
    return fail(NOT_FOUND, "'%s': %s", path, strerror(errno));
  if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < 10) {
    close(fd);
    return fail(INVALID_ARGUMENT, "'%s' is not a .npy file", path);
  }
  size_t size = (size_t)st.st_size;
  void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (data == MAP_FAILED)
    return fail(RESOURCE_EXHAUSTED, "'%s': %s", path, strerror(errno));
  status result = npy_parse(data, size, path, out);
  munmap(data, size);
  return result;
}
