/* link.c: messages and tensors on a stream.
 *
 * A tensor's bytes are not copied on either side. Sending hands its memory to the stream, with a reference that is given back when
 * the last byte has left. Receiving allocates when the head has come and its sizes have been checked, and tells the
 * connection to read straight into that memory; bytes that came elsewhere, behind other messages, are moved there.
 */
#include "runtime/net/link.h"

#include <stdlib.h>
#include <string.h>

void link_init(struct link *link, struct http2_stream *stream, const struct link_handler *handler, void *self, uint64_t now_ms) {
  *link = (struct link){.stream = stream, .handler = handler, .self = self, .received_ms = now_ms, .sent_ms = now_ms};
}

status link_prove(struct link *link, const uint8_t *key, enum proof_side side, const uint8_t nonce[PROOF_NONCE_BYTES]) {
  struct message challenge = {.kind = MESSAGE_CHALLENGE};
  link->key = key;
  link->side = side;
  memcpy(side == PROOF_DIALLER ? link->nonces.dialler : link->nonces.listener, nonce, PROOF_NONCE_BYTES);
  memcpy(challenge.nonce, nonce, PROOF_NONCE_BYTES);
  return side == PROOF_LISTENER ? link_send(link, &challenge) : OK;
}

static void payload_drop(struct link *link) {
  if (link->tensor)
    tensor_release(link->tensor);
  else
    free(link->into);
  link->tensor = NULL;
  link->into = NULL;
}

void link_deinit(struct link *link) {
  payload_drop(link);
  link->stream = NULL;
}

/* ---- receiving ---- */

static bool payload_is_pending(const struct link *link) { return link->into || link->tensor; }

static status payload_finish(struct link *link) {
  struct tensor *tensor = link->tensor;
  uint8_t *block = link->into;
  link->tensor = NULL;
  link->into = NULL;
  if (link->message.kind == MESSAGE_CONTROL) {
    link->handler->on_control(link->self, &link->message, block, link->message.bytes);
    free(block);
    return OK;
  }
  if (!tensor)
    TRY(message_unpack_strings(&link->message, block, &tensor));
  link->handler->on_tensor(link->self, &link->message, tensor);
  return OK;
}

static enum proof_side other_side(enum proof_side side) { return side == PROOF_DIALLER ? PROOF_LISTENER : PROOF_DIALLER; }

static uint8_t *nonce_of(struct link *link, enum proof_side side) {
  return side == PROOF_DIALLER ? link->nonces.dialler : link->nonces.listener;
}

/* The raw head is what was proved. The listener's own nonce was in its challenge, both are in its HELLO. */
static void hello_verify(struct link *link) {
  struct message *m = &link->message;
  uint8_t proof[PROOF_BYTES];
  if (!link->key)
    return;
  enum proof_side side = other_side(link->side);
  if (side == PROOF_DIALLER)
    memcpy(link->nonces.dialler, m->nonce, PROOF_NONCE_BYTES);
  proof_make(link->key, side, &link->nonces, link->head, link->head_size - PROOF_BYTES, proof);
  m->is_proved = proof_equal(proof, m->proof) && memcmp(m->nonce, nonce_of(link, side), PROOF_NONCE_BYTES) == 0;
}

static status challenge_take(struct link *link) {
  if (link->has_challenge || link->side != PROOF_DIALLER || !link->key)
    return fail(DATA_LOSS, "a challenge that nobody waits for");
  link->has_challenge = true;
  memcpy(link->nonces.listener, link->message.nonce, PROOF_NONCE_BYTES);
  return link->handler->on_challenge(link->self);
}

/* The kinds whose message ends with its head. */
static status message_deliver(struct link *link) {
  const struct message *m = &link->message;
  if (m->kind == MESSAGE_CHALLENGE)
    return challenge_take(link);
  if (m->kind == MESSAGE_HELLO) {
    if (link->is_open)
      return fail(DATA_LOSS, "a second HELLO");
    hello_verify(link);
    TRY(link->handler->on_hello(link->self, m));
    link->is_open = true;
    return OK;
  }
  if (m->kind != MESSAGE_PING)
    link->handler->on_message(link->self, m);
  return OK;
}

static status control_begin(struct link *link, uint64_t payload) {
  if (payload != link->message.bytes)
    return fail(DATA_LOSS, "a control message of %llu bytes in one of %llu", (unsigned long long)link->message.bytes,
                (unsigned long long)payload);
  link->into = malloc(payload + 1);
  return link->into ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a control message");
}

/* The head is complete: what follows of the message, if anything, is a tensor's payload. */
static status head_take(struct link *link) {
  bool is_more = link->head[0] == MESSAGE_MORE;
  uint64_t payload = link->reader.size - link->head_size;
  if (is_more != payload_is_pending(link))
    return fail(DATA_LOSS, "a message in the middle of a tensor, or a continuation of none");
  if (is_more)
    return payload <= link->message.bytes - link->taken ? OK : fail(DATA_LOSS, "more bytes than the tensor has");
  TRY(message_decode(link->head, link->head_size, &link->message));
  link->taken = 0;
  if (link->message.kind == MESSAGE_CONTROL)
    return control_begin(link, payload);
  if (link->message.kind != MESSAGE_TENSOR)
    return message_deliver(link);
  if (payload > link->message.bytes || (payload < link->message.bytes && payload < NET_MESSAGE_BYTES / 2))
    return fail(DATA_LOSS, "a tensor of %llu bytes in a message of %llu", (unsigned long long)link->message.bytes,
                (unsigned long long)payload);
  if (link->handler->on_head)
    TRY(link->handler->on_head(link->self, &link->message));
  return message_tensor_create(&link->message, &link->tensor, &link->into);
}

static status head_collect(struct link *link, const uint8_t **piece, size_t *size) {
  while (*size > 0) {
    size_t wanted = (link->head_size ? link->head_size : 4) - link->head_used;
    size_t bytes = *size < wanted ? *size : wanted;
    memcpy(link->head + link->head_used, *piece, bytes);
    link->head_used += bytes;
    *piece += bytes;
    *size -= bytes;
    if (!link->head_size)
      TRY(message_head_size(link->head, link->head_used, link->reader.size, &link->head_size));
    if (link->head_size && link->head_used == link->head_size)
      return head_take(link);
  }
  return OK;
}

static status payload_take(struct link *link, const uint8_t *piece, size_t size) {
  if (size == 0)
    return OK;
  if (!payload_is_pending(link) || size > link->message.bytes - link->taken)
    return fail(DATA_LOSS, "more bytes than the message has");
  if (link->into + link->taken != piece)
    memmove(link->into + link->taken, piece, size);
  link->taken += size;
  return OK;
}

static status begin_check(const struct link *link) {
  if (!link->is_open && link->reader.size > NET_HELLO_BYTES)
    return fail(DATA_LOSS, "a message of %u bytes before HELLO", link->reader.size);
  return link->reader.size >= 8 ? OK : fail(DATA_LOSS, "a message of %u bytes", link->reader.size);
}

static bool head_is_complete(const struct link *link) { return link->head_size && link->head_used == link->head_size; }

status link_receive(struct link *link, const uint8_t *data, size_t size) {
  const uint8_t *piece = NULL;
  size_t bytes = 0;
  link->has_received = true;
  for (;;) {
    switch (grpc_read(&link->reader, &data, &size, &piece, &bytes)) {
    case GRPC_NEED_MORE: return OK;
    case GRPC_COMPRESSED: return fail(DATA_LOSS, "bytes that are no gRPC message");
    case GRPC_BEGIN:
      TRY(begin_check(link));
      link->head_used = link->head_size = 0;
      break;
    case GRPC_BYTES:
      if (!head_is_complete(link)) {
        if (link->head_used == 0 && !link->is_open && piece[0] != MESSAGE_HELLO && piece[0] != MESSAGE_CHALLENGE)
          return fail(DATA_LOSS, "a message before HELLO");
        TRY(head_collect(link, &piece, &bytes));
      }
      TRY(payload_take(link, piece, bytes));
      break;
    case GRPC_END:
      if (payload_is_pending(link) && link->taken == link->message.bytes)
        TRY(payload_finish(link));
      break;
    }
  }
}

size_t link_target(const struct link *link, uint8_t **out) {
  if (!payload_is_pending(link) || !link->reader.in_message || !head_is_complete(link) || link->reader.left == 0)
    return 0;
  *out = link->into + link->taken;
  return link->reader.left;
}

/* ---- sending ---- */

/* The own nonce and the proof are the end of an encoded HELLO. */
static void hello_prove(struct link *link, uint8_t *bytes, size_t size) {
  uint8_t *proof = bytes + size - PROOF_BYTES;
  memcpy(proof - PROOF_NONCE_BYTES, nonce_of(link, link->side), PROOF_NONCE_BYTES);
  proof_make(link->key, link->side, &link->nonces, bytes, size - PROOF_BYTES, proof);
}

status link_send(struct link *link, const struct message *message) {
  uint8_t bytes[GRPC_PREFIX_BYTES + MESSAGE_BYTES];
  size_t size = message_encode(message, bytes + GRPC_PREFIX_BYTES);
  if (message->kind == MESSAGE_HELLO && link->key)
    hello_prove(link, bytes + GRPC_PREFIX_BYTES, size);
  if (!link->stream)
    return fail(CANCELLED, "the link is closed");
  grpc_write_prefix((uint32_t)size, bytes);
  link->has_sent = true;
  link->has_greeted = link->has_greeted || message->kind == MESSAGE_HELLO;
  return http2_send_copy(link->stream, bytes, GRPC_PREFIX_BYTES + size);
}

status link_send_control(struct link *link, uint8_t topic, const void *data, size_t size) {
  uint8_t head[GRPC_PREFIX_BYTES + MESSAGE_BYTES];
  size_t head_size = message_encode(&(struct message){.kind = MESSAGE_CONTROL, .topic = topic, .bytes = size}, head + GRPC_PREFIX_BYTES);
  if (!link->stream)
    return fail(CANCELLED, "the link is closed");
  grpc_write_prefix((uint32_t)(head_size + size), head);
  link->has_sent = true;
  TRY(http2_send_copy(link->stream, head, GRPC_PREFIX_BYTES + head_size));
  return size > 0 ? http2_send_copy(link->stream, data, size) : OK;
}

static void release_tensor(void *tensor) { tensor_release(tensor); }

/* The payload in messages of at most NET_MESSAGE_BYTES; release(owner) with the last of them. */
static status payload_send(struct link *link, const struct message *m, const uint8_t *data, void (*release)(void *), void *owner) {
  uint8_t head[GRPC_PREFIX_BYTES + MESSAGE_BYTES];
  uint64_t at = 0;
  struct message more = {.kind = MESSAGE_MORE};
  do {
    size_t size = message_encode(at == 0 ? m : &more, head + GRPC_PREFIX_BYTES);
    uint64_t bytes = m->bytes - at < NET_MESSAGE_BYTES ? m->bytes - at : NET_MESSAGE_BYTES;
    bool is_last = at + bytes == m->bytes;
    grpc_write_prefix((uint32_t)(size + bytes), head);
    status code = http2_send_copy(link->stream, head, GRPC_PREFIX_BYTES + size);
    if (code != OK || (bytes <= NET_SMALL_TENSOR_BYTES && is_last)) {
      if (code == OK && bytes > 0)
        code = http2_send_copy(link->stream, data + at, bytes);
      release(owner);
      return code;
    }
    code = http2_send(link->stream, data + at, bytes, is_last ? release : NULL, owner);
    if (code != OK && !is_last) {
      release(owner);
      return code;
    }
    TRY(code);
    at += bytes;
  } while (at < m->bytes);
  return OK;
}

status link_send_tensor(struct link *link, struct message *message, struct tensor *tensor) {
  uint8_t *strings = NULL;
  message->kind = MESSAGE_TENSOR;
  message->dtype = tensor->dtype;
  message->shape = tensor->shape;
  status code = link->stream ? message_payload_size(tensor, &message->bytes) : fail(CANCELLED, "the link is closed");
  if (code == OK && tensor->dtype == DTYPE_STRING)
    code = message_pack_strings(tensor, message->bytes, &strings);
  if (code != OK || strings)
    tensor_release(tensor);
  TRY(code);
  link->has_sent = true;
  if (strings)
    return payload_send(link, message, strings, free, strings);
  return payload_send(link, message, tensor->data, release_tensor, tensor);
}

/* ---- liveness ---- */

status link_tick(struct link *link, uint64_t now_ms) {
  if (link->has_received)
    link->received_ms = now_ms;
  if (link->has_sent)
    link->sent_ms = now_ms;
  link->has_received = link->has_sent = false;
  if (link->has_greeted && now_ms - link->sent_ms >= NET_PING_MS) /* HELLO is first, however far the other is */
    TRY(link_send(link, &(struct message){.kind = MESSAGE_PING}));
  return OK;
}
