/* message.h: what tasks say to each other on a link: one message, its bytes, and back.
 *
 * Fixed fields, little-endian, no tags: both ends were built together, which HELLO proves. A message is a gRPC message:
 *   CHALLENGE kind, 0 x 7, nonce x 16
 *   HELLO     kind, version, flags, 0, task u32, task_count u32, attempt u32, incarnation u64, meant_incarnation u64, given_up u32,
 *             meant_given_up u32, received u64, registrar u64, generation u64, nonce x 16, proof x 32 (net/proof.h, over all before it)
 *   START     kind, 0 0 0, entry u32 (with START_... of exchange.h), step u64, serial u64, command u32, 0 u32
 *   TENSOR    kind, dtype, rank, 0, transfer u32, step u64, bytes u64, dims i64 each; then the first bytes of the payload
 *   MORE      kind, 0 x 7; then the next bytes of the payload (of tensors above NET_MESSAGE_BYTES)
 *   DONE, RESET   kind, code, 0 0, 0 u32, step u64, text (RESET: no code, no step; the names of containers, one in a line)
 *   CANCEL    kind, 0 0 0, 0 u32, step u64
 *   CONTROL   kind, topic, 0 0, bytes u32; then so many bytes
 *   ACK       kind, 0 0 0, 0 u32, received u64
 *   GRANT     kind, 0 x 7, generation u64, history u64
 *   REFUSED, BYE   as DONE, without a step
 *   PROBE, ALIVE, READY, LEFT   kind, 0 0 0, number u32
 *   FINISHED, PING    kind, 0 x 7
 * The payload of a tensor is its elements; of strings: a length u32 each, then all bytes.
 */
#ifndef TFC_RUNTIME_NET_MESSAGE_H
#define TFC_RUNTIME_NET_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/net/net_limits.h"
#include "runtime/net/proof.h"

enum message_kind {
  MESSAGE_HELLO = 1,
  MESSAGE_START,
  MESSAGE_TENSOR,
  MESSAGE_MORE,
  MESSAGE_DONE,
  MESSAGE_CANCEL,
  MESSAGE_READY,     /* the chief is ready; number 1: it has run `init`, and would again */
  MESSAGE_FINISHED,  /* the sender's phases are done */
  MESSAGE_PING,      /* says that the sender lives; no answer */
  MESSAGE_BYE,       /* the sender leaves in order; UNAVAILABLE: it has given up, and says why */
  MESSAGE_RESET,     /* forget the variables and resources of these containers */
  MESSAGE_CONTROL,   /* of one part of the runtime to the same part of another task: cluster/control.h */
  MESSAGE_CHALLENGE, /* the first that a listener says: what the dialler's proof is made with */
  MESSAGE_ACK,       /* so many messages of the session have been received */
  MESSAGE_GRANT,     /* the coordinator: your name is yours, as this generation */
  MESSAGE_REFUSED,   /* the coordinator, where it dialled: it is not */
  MESSAGE_PROBE,     /* the coordinator: say that you live */
  MESSAGE_ALIVE,     /* the answer */
  MESSAGE_LEFT,      /* the task of this number had finished, and has left in order */
  MESSAGE_KINDS,
};
#define MESSAGE_VERSION 5
enum hello_flag {
  HELLO_HAS_PHASES = 1,  /* started with --entry */
  HELLO_READY = 2,       /* knows that the chief is ready, */
  HELLO_INITIALISED = 8, /* and has run `init` */
  HELLO_FINISHED = 4,
};

struct message {
  enum message_kind kind;
  uint64_t step;
  uint32_t entry;    /* START */
  uint32_t transfer; /* TENSOR */
  enum dtype dtype;
  struct shape shape;
  uint64_t bytes;   /* TENSOR, CONTROL: of the payload */
  uint32_t command; /* START */
  uint64_t serial;
  uint8_t topic;                    /* CONTROL */
  status code;                      /* DONE, REFUSED, BYE */
  char text[NET_TEXT_BYTES];        /* these, and RESET; cut where it is longer */
  uint32_t task, task_count, flags; /* HELLO */
  /* counts what the dialler has tried: a connection with a lower one is an old one; 0: the listener's */
  uint32_t attempt;
  uint64_t incarnation, meant_incarnation; /* the sender's; the receiver's, of the session that it would go on with, 0: of none */
  uint32_t given_up, meant_given_up;       /* how often the sender has given the receiver up, and the other way round */
  uint64_t received;                       /* of that session; ACK */
  uint64_t registrar, generation;          /* the coordinator's incarnation that granted the sender's name, and as which; GRANT; 0: none */
  uint64_t history;                        /* GRANT */
  uint32_t number;                         /* PROBE, ALIVE, READY, LEFT */
  bool is_proved;                          /* HELLO, received: by one of this build, now */
  uint8_t nonce[PROOF_NONCE_BYTES], proof[PROOF_BYTES]; /* CHALLENGE, HELLO */
};

#define MESSAGE_HEAD_BYTES (24 + 8 * LIMIT_RANK) /* the longest head of a TENSOR */
#define MESSAGE_HELLO_BYTES (64 + PROOF_NONCE_BYTES + PROOF_BYTES)
#define MESSAGE_BYTES (16 + NET_TEXT_BYTES) /* the longest message without its payload */

/* Writes the message (TENSOR, MORE, CONTROL: the head) and returns its size. */
size_t message_encode(const struct message *message, uint8_t out[MESSAGE_BYTES]);

/* How many bytes of a message of `size` bytes that begins with these `known` bytes message_decode needs: all, or the
 * head of a TENSOR, MORE or CONTROL. *out 0: give me more (at least 4). DATA_LOSS: it cannot be one; nothing has been allocated. */
status message_head_size(const uint8_t *data, size_t known, uint32_t size, size_t *out);
/* Reads it. DATA_LOSS: fields that cannot be, shapes whose product is too large, a payload of another size than the shape
 * demands. */
status message_decode(const uint8_t *data, size_t size, struct message *out);

/* Bytes of a tensor's payload. INVALID_ARGUMENT: a string of 4 GiB or more, or a type that cannot be sent. */
status message_payload_size(const struct tensor *tensor, uint64_t *out);
/* The payload of strings, in one malloc'ed block. */
status message_pack_strings(const struct tensor *tensor, uint64_t bytes, uint8_t **out);
/* Memory for a payload that will come: *into is where its bytes go. Numbers: the tensor's own (*out); strings: a block, and
 * *out is NULL until message_unpack_strings. RESOURCE_EXHAUSTED without memory. Nothing is touched, so that a claimed
 * size costs address space only. */
status message_tensor_create(const struct message *message, struct tensor **out, uint8_t **into);
/* The string tensor of a complete payload; takes the block, also when it fails. DATA_LOSS when the lengths do not fit. */
status message_unpack_strings(const struct message *message, uint8_t *block, struct tensor **out);

#endif
