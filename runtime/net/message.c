/* message.c: messages between tasks as bytes. Sizes are checked before memory is asked for. */
#include "runtime/net/message.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/net/receive_pool.h"

#define SMALL_BYTES 16
#define CHALLENGE_BYTES (8 + PROOF_NONCE_BYTES)
#define START_BYTES 32
#define GRANT_BYTES 24

static void put32(uint8_t *to, uint32_t value) { memcpy(to, &value, 4); } /* the build checks: little-endian hosts only */
static void put64(uint8_t *to, uint64_t value) { memcpy(to, &value, 8); }
static uint32_t get32(const uint8_t *from) {
  uint32_t value;
  memcpy(&value, from, 4);
  return value;
}
static uint64_t get64(const uint8_t *from) {
  uint64_t value;
  memcpy(&value, from, 8);
  return value;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are written as they are in memory");

static size_t hello_encode(const struct message *m, uint8_t *out) {
  out[1] = MESSAGE_VERSION;
  out[2] = (uint8_t)m->flags;
  put32(out + 4, m->task);
  put32(out + 8, m->task_count);
  put32(out + 12, m->attempt);
  put64(out + 16, m->incarnation);
  put64(out + 24, m->meant_incarnation);
  put32(out + 32, m->given_up);
  put32(out + 36, m->meant_given_up);
  put64(out + 40, m->received);
  put64(out + 48, m->registrar);
  put64(out + 56, m->generation);
  memcpy(out + MESSAGE_HELLO_BYTES - PROOF_BYTES - PROOF_NONCE_BYTES, m->nonce, PROOF_NONCE_BYTES);
  memcpy(out + MESSAGE_HELLO_BYTES - PROOF_BYTES, m->proof, PROOF_BYTES);
  return MESSAGE_HELLO_BYTES;
}

static size_t tensor_encode(const struct message *m, uint8_t *out) {
  out[1] = (uint8_t)m->dtype;
  out[2] = (uint8_t)m->shape.rank;
  put32(out + 4, m->transfer);
  put64(out + 8, m->step);
  put64(out + 16, m->bytes);
  for (int i = 0; i < m->shape.rank; i++)
    put64(out + 24 + 8 * i, (uint64_t)m->shape.dims[i]);
  return 24 + 8 * (size_t)m->shape.rank;
}

size_t message_encode(const struct message *m, uint8_t out[MESSAGE_BYTES]) {
  memset(out, 0, 32);
  out[0] = (uint8_t)m->kind;
  switch (m->kind) {
  case MESSAGE_HELLO: return hello_encode(m, out);
  case MESSAGE_CHALLENGE: memcpy(out + 8, m->nonce, PROOF_NONCE_BYTES); return CHALLENGE_BYTES;
  case MESSAGE_TENSOR: return tensor_encode(m, out);
  case MESSAGE_START:
    put32(out + 4, m->entry);
    put64(out + 8, m->step);
    put64(out + 16, m->serial);
    put32(out + 24, m->command);
    return START_BYTES;
  case MESSAGE_CONTROL:
    out[1] = m->topic;
    put32(out + 4, (uint32_t)m->bytes);
    return 8;
  case MESSAGE_ACK: put64(out + 8, m->received); return SMALL_BYTES;
  case MESSAGE_GRANT:
    put64(out + 8, m->generation);
    put64(out + 16, m->history);
    return GRANT_BYTES;
  case MESSAGE_READY:
  case MESSAGE_LEFT:
  case MESSAGE_PROBE:
  case MESSAGE_ALIVE: put32(out + 4, m->number); return 8;
  case MESSAGE_DONE:
  case MESSAGE_REFUSED:
  case MESSAGE_BYE:
  case MESSAGE_RESET: {
    size_t text = strnlen(m->text, NET_TEXT_BYTES - 1);
    out[1] = (uint8_t)m->code;
    put64(out + 8, m->step);
    memcpy(out + SMALL_BYTES, m->text, text);
    return SMALL_BYTES + text;
  }
  case MESSAGE_CANCEL: put64(out + 8, m->step); return SMALL_BYTES;
  default: return 8;
  }
}

status message_head_size(const uint8_t *data, size_t known, uint32_t size, size_t *out) {
  *out = 0;
  if (known < 4 && known < size)
    return OK;
  if (known < 4 || data[0] == 0 || data[0] >= MESSAGE_KINDS)
    return fail(DATA_LOSS, "a message of no known kind");
  switch ((enum message_kind)data[0]) {
  case MESSAGE_TENSOR:
    if (data[2] > LIMIT_RANK)
      return fail(DATA_LOSS, "a tensor of rank %d", data[2]);
    *out = 24 + 8 * (size_t)data[2];
    break;
  case MESSAGE_HELLO: *out = MESSAGE_HELLO_BYTES; break;
  case MESSAGE_CHALLENGE: *out = CHALLENGE_BYTES; break;
  case MESSAGE_DONE:
  case MESSAGE_REFUSED:
  case MESSAGE_BYE:
  case MESSAGE_RESET: *out = size; break;
  case MESSAGE_START: *out = START_BYTES; break;
  case MESSAGE_CANCEL:
  case MESSAGE_ACK: *out = SMALL_BYTES; break;
  case MESSAGE_GRANT: *out = GRANT_BYTES; break;
  default: *out = 8;
  }
  bool has_payload = data[0] == MESSAGE_TENSOR || data[0] == MESSAGE_MORE || data[0] == MESSAGE_CONTROL;
  bool has_text = data[0] == MESSAGE_DONE || data[0] == MESSAGE_RESET || data[0] == MESSAGE_REFUSED || data[0] == MESSAGE_BYE;
  if (size < *out || (!has_payload && size != *out) || (has_text && (size < SMALL_BYTES || size > MESSAGE_BYTES)))
    return fail(DATA_LOSS, "a message of kind %d with %u bytes", data[0], size);
  return OK;
}

static status hello_decode(const uint8_t *data, struct message *out) {
  if (data[1] != MESSAGE_VERSION)
    return fail(FAILED_PRECONDITION, "the peer speaks version %d of the protocol, this is %d", data[1], MESSAGE_VERSION);
  out->flags = data[2];
  out->task = get32(data + 4);
  out->task_count = get32(data + 8);
  out->attempt = get32(data + 12);
  out->incarnation = get64(data + 16);
  out->meant_incarnation = get64(data + 24);
  out->given_up = get32(data + 32);
  out->meant_given_up = get32(data + 36);
  out->received = get64(data + 40);
  out->registrar = get64(data + 48);
  out->generation = get64(data + 56);
  out->is_proved = false;
  memcpy(out->nonce, data + MESSAGE_HELLO_BYTES - PROOF_BYTES - PROOF_NONCE_BYTES, PROOF_NONCE_BYTES);
  memcpy(out->proof, data + MESSAGE_HELLO_BYTES - PROOF_BYTES, PROOF_BYTES);
  return OK;
}

static bool dtype_can_travel(enum dtype dtype) { return dtype != DTYPE_RESOURCE && dtype != DTYPE_VARIANT; }

static status tensor_decode(const uint8_t *data, struct message *out) {
  out->transfer = get32(data + 4);
  out->step = get64(data + 8);
  out->bytes = get64(data + 16);
  out->shape.rank = data[2];
  for (int i = 0; i < out->shape.rank; i++)
    out->shape.dims[i] = (int64_t)get64(data + 24 + 8 * i);
  out->dtype = (enum dtype)data[1];
  int64_t count = shape_count(&out->shape);
  if (!dtype_is_valid(data[1]) || !dtype_can_travel(out->dtype) || count < 0)
    return fail(DATA_LOSS, "a tensor of type %d and a shape that cannot be", data[1]);
  bool fits = out->dtype == DTYPE_STRING ? out->bytes / 4 >= (uint64_t)count : out->bytes == (uint64_t)count * dtype_size(out->dtype);
  if (!fits || out->bytes > NET_TENSOR_BYTES)
    return fail(DATA_LOSS, "a tensor %s%s with %llu bytes", dtype_name(out->dtype), shape_text(&out->shape),
                (unsigned long long)out->bytes);
  return OK;
}

status message_decode(const uint8_t *data, size_t size, struct message *out) {
  out->kind = (enum message_kind)data[0];
  switch (out->kind) {
  case MESSAGE_HELLO: return hello_decode(data, out);
  case MESSAGE_CHALLENGE: memcpy(out->nonce, data + 8, PROOF_NONCE_BYTES); return OK;
  case MESSAGE_TENSOR: return tensor_decode(data, out);
  case MESSAGE_START:
    out->entry = get32(data + 4);
    out->step = get64(data + 8);
    out->serial = get64(data + 16);
    out->command = get32(data + 24);
    return OK;
  case MESSAGE_CONTROL:
    out->topic = data[1];
    out->bytes = get32(data + 4);
    return out->bytes <= NET_CONTROL_BYTES ? OK : fail(DATA_LOSS, "a control message of %llu bytes", (unsigned long long)out->bytes);
  case MESSAGE_ACK: out->received = get64(data + 8); return OK;
  case MESSAGE_GRANT:
    out->generation = get64(data + 8);
    out->history = get64(data + 16);
    return OK;
  case MESSAGE_READY:
  case MESSAGE_LEFT:
  case MESSAGE_PROBE:
  case MESSAGE_ALIVE: out->number = get32(data + 4); return OK;
  case MESSAGE_DONE:
  case MESSAGE_REFUSED:
  case MESSAGE_BYE:
  case MESSAGE_RESET: {
    size_t text = size - SMALL_BYTES < NET_TEXT_BYTES - 1 ? size - SMALL_BYTES : NET_TEXT_BYTES - 1;
    if (data[1] > UNAUTHENTICATED)
      return fail(DATA_LOSS, "an end with code %d", data[1]);
    out->code = (status)data[1];
    out->step = get64(data + 8);
    memcpy(out->text, data + SMALL_BYTES, text);
    out->text[text] = 0;
    return OK;
  }
  case MESSAGE_CANCEL: out->step = get64(data + 8); return OK;
  default: return OK;
  }
}

/* ---- payloads ---- */

status message_payload_size(const struct tensor *tensor, uint64_t *out) {
  if (!dtype_can_travel(tensor->dtype))
    return fail(INVALID_ARGUMENT, "a %s cannot be sent to another task", dtype_name(tensor->dtype));
  *out = (uint64_t)tensor->count * dtype_size(tensor->dtype);
  if (tensor->dtype == DTYPE_STRING) {
    const struct string_view *strings = tensor->data;
    *out = (uint64_t)tensor->count * 4;
    for (int64_t i = 0; i < tensor->count; i++) {
      if (strings[i].size > UINT32_MAX)
        return fail(INVALID_ARGUMENT, "a string of %llu bytes is too long to be sent", (unsigned long long)strings[i].size);
      *out += strings[i].size;
    }
  }
  return *out <= NET_TENSOR_BYTES ? OK : fail(INVALID_ARGUMENT, "a tensor of %llu bytes is too large to be sent", (unsigned long long)*out);
}

status message_pack_strings(const struct tensor *tensor, uint64_t bytes, uint8_t **out) {
  uint8_t *block = malloc(bytes ? bytes : 1);
  if (!block)
    return fail(RESOURCE_EXHAUSTED, "no memory for %llu bytes of strings", (unsigned long long)bytes);
  const struct string_view *strings = tensor->data;
  uint8_t *to = block + 4 * tensor->count;
  for (int64_t i = 0; i < tensor->count; i++) {
    put32(block + 4 * i, (uint32_t)strings[i].size);
    if (strings[i].size)
      memcpy(to, strings[i].data, strings[i].size);
    to += strings[i].size;
  }
  *out = block;
  return OK;
}

status message_tensor_create(const struct message *m, struct tensor **out, uint8_t **into) {
  *out = NULL;
  if (m->dtype == DTYPE_STRING) {
    *into = malloc(m->bytes ? m->bytes : 1);
    return *into ? OK : fail(RESOURCE_EXHAUSTED, "no memory for %llu bytes of strings", (unsigned long long)m->bytes);
  }
  TRY(receive_pool_tensor(m->dtype, &m->shape, out));
  *into = (*out)->data;
  return OK;
}

static status strings_read(struct tensor *tensor, const uint8_t *block, uint64_t bytes) {
  struct string_view *strings = tensor->data;
  uint64_t at = (uint64_t)tensor->count * 4;
  for (int64_t i = 0; i < tensor->count; i++) {
    uint32_t size = get32(block + 4 * i);
    if (size > bytes - at)
      return fail(DATA_LOSS, "strings whose lengths do not fit their bytes");
    strings[i] = (struct string_view){(const char *)block + at, size};
    at += size;
  }
  return at == bytes ? OK : fail(DATA_LOSS, "strings whose lengths do not fit their bytes");
}

status message_unpack_strings(const struct message *m, uint8_t *block, struct tensor **out) {
  struct tensor *tensor = NULL;
  status code = tensor_create(DTYPE_STRING, &m->shape, &tensor);
  if (code != OK) {
    free(block);
    return code;
  }
  tensor->bytes = block;
  code = strings_read(tensor, block, m->bytes);
  if (code == OK)
    *out = tensor;
  else
    tensor_release(tensor);
  return code;
}
