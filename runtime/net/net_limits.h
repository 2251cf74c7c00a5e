/* net_limits.h: every cap of the network code, each with its reason. */
#ifndef TFC_RUNTIME_NET_NET_LIMITS_H
#define TFC_RUNTIME_NET_NET_LIMITS_H

#include <stdint.h>

/* HTTP/2 */
#define NET_FRAME_BYTES (1 << 20)         /* DATA frames both ways: with 1 MiB HTTP/2 moves what the raw socket does */
#define NET_WINDOW_BYTES (64 << 20)       /* larger than any bandwidth-delay product here; TCP itself gives back-pressure */
#define NET_STREAMS 256                   /* open at once on a connection: queue runners of one client hold one each */
#define NET_HEADER_COUNT 64               /* decoded fields of a block: one indexed byte on the wire may be kilobytes decoded */
#define NET_HEADER_BYTES (16 << 10)       /* decoded bytes of a block: gRPC's own hard limit */
#define NET_HEADER_FRAME_BYTES (16 << 10) /* a HEADERS or CONTINUATION frame: the big size is meant for DATA; no block decodes to more */
#define NET_IDLE_FRAMES 4096              /* frames without use (empty DATA, PRIORITY, resets ...) in a second */
#define NET_PATH_BYTES 256                /* a path that is longer names nothing here */
#define NET_GRPC_TEXT_BYTES 3072          /* grpc-message: TensorFlow cuts there as well */
#define NET_OUTPUT_BYTES (4 << 20)        /* handed to one round of sendmsg */
#define NET_OUTPUT_PIECES 256             /* pieces of a round: a quarter of Linux's IOV_MAX */
#define NET_FRAME_PIECES 64               /* pieces of one frame: small tensors that share it */
#define NET_COPY_CHUNK (8 << 10)          /* small messages are gathered in chunks of this size */

/* connections */
#define NET_CONNECTIONS 4096                 /* accepted at once: one for each other task, and clients */
#define NET_STRANGERS 256                    /* of them those that are no task's link: cluster/admission.h */
#define NET_STRANGER_MS 10000                /* one that says nothing sensible, or stops in the middle, for so long is closed */
#define NET_ACCEPTS 16                       /* at once, before those that are there have their turn */
#define NET_STRANGER_ROUND_BYTES (128 << 10) /* read from one before the others have their turn */
#define NET_STALL_MS 60000                   /* a client that neither takes its answer nor sends its request for so long is ... */
#define NET_STALL_BYTES (64 << 10)           /* ... cut off, unless so many bytes of them moved meanwhile */
#define NET_READ_BYTES (256 << 10)           /* read at once: stays in the second-level cache */
#define NET_DIRECT_BYTES (512 << 10)         /* a thread that sends writes so much itself; the loop does the rest */
#define NET_ROUND_BYTES (8 << 20)            /* read from one connection before the others have their turn */

/* messages between tasks */
#define NET_HELLO_BYTES 4096                  /* before a HELLO nobody is known: nothing larger is taken */
#define NET_TEXT_BYTES 4096                   /* an error's text */
#define NET_CONTROL_BYTES (64 << 10)          /* a control message: what is larger travels as a tensor */
#define NET_MESSAGE_BYTES (UINT32_C(1) << 30) /* one gRPC message; larger tensors continue in further ones */
#define NET_TENSOR_BYTES (INT64_C(1) << 38)   /* 256 GiB: no machine sends more at once */
#define NET_SMALL_TENSOR_BYTES 2048           /* copied into the message: cheaper than a piece of its own */
#define NET_POOL_TENSOR_BYTES (64 << 10)      /* smaller tensors come from malloc, which keeps their memory itself */
#define NET_POOL_BYTES (UINT64_C(16) << 20)   /* memory for received tensors that may be kept in any case */
#define NET_PING_MS 1000                      /* a link that has sent nothing for so long sends a PING */
#define NET_SILENCE_MS 5000                   /* a peer that has sent nothing for so long is suspected; after --timeout it is given up */

/* unary calls from clients */
#define NET_STRANGERS_BYTES (32 << 20)         /* requests of those who are no clients yet, together; HTTP/2 takes as much again */
#define NET_CLIENTS_BYTES (INT64_C(256) << 20) /* requests and answers of clients together, unless --client-memory says otherwise */

#endif
