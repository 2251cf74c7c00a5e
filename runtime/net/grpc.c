/* grpc.c: gRPC's framing: 1 byte "compressed", 4 bytes big-endian length, the message. */
#include "runtime/net/grpc.h"

#include <string.h>

static enum grpc_event prefix_read(struct grpc_reader *r, const uint8_t **data, size_t *size) {
  while (r->prefix_used<GRPC_PREFIX_BYTES && * size> 0) {
    r->prefix[r->prefix_used++] = *(*data)++;
    --*size;
  }
  if (r->prefix_used < GRPC_PREFIX_BYTES)
    return GRPC_NEED_MORE;
  if (r->prefix[0] != 0)
    return GRPC_COMPRESSED;
  r->size = (uint32_t)r->prefix[1] << 24 | (uint32_t)r->prefix[2] << 16 | (uint32_t)r->prefix[3] << 8 | r->prefix[4];
  r->left = r->size;
  r->prefix_used = 0;
  r->in_message = true;
  return GRPC_BEGIN;
}

enum grpc_event grpc_read(struct grpc_reader *r, const uint8_t **data, size_t *size, const uint8_t **piece, size_t *piece_size) {
  if (!r->in_message)
    return prefix_read(r, data, size);
  if (r->left == 0) {
    r->in_message = false;
    return GRPC_END;
  }
  if (*size == 0)
    return GRPC_NEED_MORE;
  *piece = *data;
  *piece_size = *size < r->left ? *size : r->left;
  *data += *piece_size;
  *size -= *piece_size;
  r->left -= (uint32_t)*piece_size;
  return GRPC_BYTES;
}

bool grpc_reader_is_between(const struct grpc_reader *r) { return !r->in_message && r->prefix_used == 0; }

void grpc_write_prefix(uint32_t size, uint8_t out[GRPC_PREFIX_BYTES]) {
  out[0] = 0;
  out[1] = (uint8_t)(size >> 24);
  out[2] = (uint8_t)(size >> 16);
  out[3] = (uint8_t)(size >> 8);
  out[4] = (uint8_t)size;
}

int64_t grpc_parse_timeout(const char *text) {
  static const struct {
    char unit;
    int64_t numerator, denominator;
  } units[] = {{'H', 3600000, 1}, {'M', 60000, 1}, {'S', 1000, 1}, {'m', 1, 1}, {'u', 1, 1000}, {'n', 1, 1000000}};
  int64_t number = 0;
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 8 || text[digits] == 0 || text[digits + 1] != 0)
    return -1;
  for (size_t i = 0; i < digits; i++)
    number = number * 10 + (text[i] - '0');
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (units[i].unit == text[digits])
      return (number * units[i].numerator + units[i].denominator - 1) / units[i].denominator;
  return -1;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_percent_decode(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    int high = *from == '%' ? hex_digit(from[1]) : -1;
    int low = high >= 0 ? hex_digit(from[2]) : -1;
    if (low >= 0 && (high | low) != 0) {
      *to++ = (char)(high << 4 | low);
      from += 2;
    } else {
      *to++ = *from;
    }
  }
  *to = 0;
}

bool grpc_is_content_type(const char *content_type) {
  static const char grpc[] = "application/grpc";
  size_t size = sizeof grpc - 1;
  return strncmp(content_type, grpc, size) == 0 && (content_type[size] == 0 || content_type[size] == '+' || content_type[size] == ';');
}

status grpc_status_from_http(int http_status) {
  switch (http_status) {
  case 400: return INTERNAL;
  case 401: return UNAUTHENTICATED;
  case 403: return PERMISSION_DENIED;
  case 404: return UNIMPLEMENTED;
  case 429:
  case 502:
  case 503:
  case 504: return UNAVAILABLE;
  default: return UNKNOWN;
  }
}
