/* link.h: the conversation between two tasks on one gRPC stream (POST /tfc.Task/Link), both ways, for as long as both live.
 *
 * The listener begins with a CHALLENGE, then each side says HELLO, the dialler first, which proves that it is of this build (net/proof.h);
 * until the other's HELLO has been accepted nothing else is taken. Tensors' bytes are sent from
 * where they are and land where they will be used: link_target says where the socket should read to. Liveness is by
 * bytes: who has sent nothing for NET_PING_MS sends a PING; what silence means is for others to judge.
 * There is no I/O and no clock here: bytes, streams and times are handed in.
 *
 * Threads: one at a time (the connection's lock). Owner: the channel (runtime/cluster).
 */
#ifndef TFC_RUNTIME_NET_LINK_H
#define TFC_RUNTIME_NET_LINK_H

#include <stdbool.h>
#include "runtime/net/grpc.h"
#include "runtime/net/http2.h"
#include "runtime/net/message.h"

#define LINK_PATH "/tfc.Task/Link"

struct link_handler {
  /* The peer's HELLO; whether it is_proved is for the handler to judge. Not OK: the link is refused (link_receive returns it). */
  status (*on_hello)(void *self, const struct message *hello);
  /* All but CHALLENGE, HELLO, TENSOR, MORE, CONTROL and PING. */
  void (*on_message)(void *self, const struct message *message);
  /* A complete tensor; the handler owns the reference. */
  void (*on_tensor)(void *self, const struct message *message, struct tensor *tensor);
  /* A complete control message; the bytes are the link's. */
  void (*on_control)(void *self, const struct message *message, const void *data, size_t size);
  /* Dialled: what a HELLO has to answer has come; say it. Not OK: as on_hello. */
  status (*on_challenge)(void *self);
  /* A tensor is about to come, memory has not been reserved. Not OK: the link is over (link_receive returns it). NULL: all are taken. */
  status (*on_head)(void *self, const struct message *message);
};

struct link {
  struct http2_stream *stream;
  const struct link_handler *handler;
  void *self;
  bool is_open;       /* the peer's HELLO was accepted */
  const uint8_t *key; /* of proofs; NULL: none are made */
  enum proof_side side;
  bool has_challenge; /* dialled: it has come */
  bool has_greeted;   /* the own HELLO has been sent */
  struct proof_nonces nonces;
  uint64_t received_ms, sent_ms;
  bool has_sent, has_received; /* since the last link_tick */
  /* receiving */
  struct grpc_reader reader;
  uint8_t head[MESSAGE_BYTES];
  size_t head_used, head_size; /* head_size 0: not known yet */
  struct message message;      /* the last one decoded; of a tensor while its payload comes */
  struct tensor *tensor;       /* numbers that are being received */
  uint8_t *into;               /* their memory, or a block for strings or a control message */
  uint64_t taken;              /* bytes of the payload that are there */
};

void link_init(struct link *link, struct http2_stream *stream, const struct link_handler *handler, void *self, uint64_t now_ms);
/* Before anything is sent or received: HELLOs are proved with the key, which is kept by reference, and this side's nonce. The listener
 * sends its challenge. */
status link_prove(struct link *link, const uint8_t *key, enum proof_side side, const uint8_t nonce[PROOF_NONCE_BYTES]);
/* Gives back a tensor that was half received. */
void link_deinit(struct link *link);

/* Bytes of the stream. DATA_LOSS: what came is no conversation of ours; or what on_hello said. The link is over then. */
status link_receive(struct link *link, const uint8_t *data, size_t size);
/* Where the coming bytes of a tensor belong: read there, hand the bytes to HTTP/2, and link_receive will find them in
 * place. 0: nowhere in particular. */
size_t link_target(const struct link *link, uint8_t **out);

/* Everything but tensors and control messages. */
status link_send(struct link *link, const struct message *message);
status link_send_control(struct link *link, uint8_t topic, const void *data, size_t size);
/* message: kind TENSOR, step, transfer. Takes one reference of the tensor, also when it fails, and gives it back when the
 * bytes have left. */
status link_send_tensor(struct link *link, struct message *message, struct tensor *tensor);

/* To be called every few hundred milliseconds: sends a PING where it is time; before the own HELLO never. received_ms is up to date
 * then. */
status link_tick(struct link *link, uint64_t now_ms);

#endif
