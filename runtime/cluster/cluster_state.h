/* cluster_state.h: what the files of the cluster share; for cluster.c, peer.c, channel.c and dial.c only.
 *
 * A peer is another task; a channel is a connection, accepted or dialled, and the link on it if it has one. A peer is up while
 * it has a channel whose HELLO was accepted. Channels belong to the loop's thread; what other threads see of a peer is
 * under the cluster's lock. Lock order: a connection's lock, then the cluster's; with the cluster's lock held nothing is
 * posted to a connection.
 */
#ifndef TFC_RUNTIME_CLUSTER_CLUSTER_STATE_H
#define TFC_RUNTIME_CLUSTER_CLUSTER_STATE_H

#include <pthread.h>
#include "base/vec.h"
#include "runtime/cluster/admission.h"
#include "runtime/cluster/cluster.h"
#include "runtime/net/address.h"
#include "runtime/net/connection.h"
#include "runtime/net/grpc_server.h"
#include "runtime/net/link.h"

#define CLUSTER_REASON_BYTES 200
#define CLUSTER_TICK_MS 250
#define CLUSTER_LISTENERS (ADDRESS_MAX + 1)

struct channel {
  struct cluster *cluster;
  struct connection *connection;
  struct peer *peer;           /* dialled: from the start; accepted: since its HELLO; NULL when another has replaced it */
  bool is_dialled;
  bool has_link;
  struct guest guest;          /* accepted, and no HELLO yet: admission.h */
  struct link link;
  uint64_t created_ms;
  struct connection_post tick;
  bool tick_is_posted;
  char refusal[CLUSTER_REASON_BYTES]; /* why the link was ended; "" */
  status refusal_code;
  struct channel *next, *previous;
};

struct peer {
  struct cluster *cluster;
  uint32_t task;
  char name[64];               /* "worker_1" */
  char *address;
  /* under the cluster's lock */
  struct channel *channel;     /* up; else NULL */
  struct connection *connection; /* the channel's, counted, while up */
  bool was_up, has_phases, is_finished, said_bye;
  bool is_refused;             /* of another build: waiting is of no use */
  uint64_t incarnation, changed_ms;
  char reason[CLUSTER_REASON_BYTES]; /* why it is not up */
  VEC(uint64_t) started;       /* steps of ours it has not reported yet */
  /* the loop's: dialling */
  struct loop_timer timer;
  struct channel *dialling;
  uint32_t backoff_ms;
  uint64_t dialled_since_ms;
  struct address_list addresses;
  uint32_t next_address;
  bool tried_beside;           /* address_beside was the last way */
};

struct listener {
  struct loop_source source; /* first */
  struct loop_timer pause;   /* out of file descriptors: not accepting for a moment */
  struct cluster *cluster;
  struct address address;
};

struct cluster {
  struct exchange exchange;
  struct exchange_sink sink;
  struct loop *loop;
  struct grpc_server *server;
  uint32_t task, task_count;
  struct peer *peers;        /* task_count of them; the own one too */
  char **jobs;               /* for texts */
  uint32_t *indices;
  uint64_t build_id, incarnation;
  uint8_t key[PROOF_KEY_BYTES]; /* of this build: what HELLOs are proved with */
  struct {
    control_handler *run;
    void *self;
  } controls[CONTROL_TOPICS];
  uint64_t timeout_ms;
  int64_t clients_bytes;
  struct tls_files tls_files;
  bool has_phases, only_addresses, allow_clients, is_started;
  void (*log)(void *self, const char *line);
  void *log_self;
  /* the loop's */
  struct listener listeners[CLUSTER_LISTENERS];
  uint32_t listener_count;
  struct channel *channels;
  uint32_t channel_count;
  struct admission admission;
  struct loop_timer ticker;
  uint64_t ticked_ms;
  struct loop_call closing_call;
  /* under the lock */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_ready, is_finished, is_stopped, is_closing, is_closed;
  struct tls_context *tls;   /* of connections that begin; NULL: none */
  struct cluster_identity identity;
  uint32_t resolving;        /* threads that ask a name server */
};

/* channel.c */
/* Takes the socket. peer: dialled; NULL: accepted. RESOURCE_EXHAUSTED: there is no room, or no memory. */
status channel_create(struct cluster *cluster, int fd, struct peer *peer, struct channel **out);
/* Loop's thread: says good-bye and closes in order. */
void channel_leave(struct channel *channel);
/* Loop's thread, every CLUSTER_TICK_MS. stalled: this process has been held up, silence says nothing. */
void channel_tick(struct channel *channel, uint64_t now_ms, bool is_stalled);

/* dial.c */
status cluster_listen(struct cluster *cluster);
/* Begins to dial the peer. */
void peer_dial(struct peer *peer);
/* A dialled channel has closed before the peer was up. */
void peer_dial_failed(struct peer *peer, const char *reason);

/* cluster.c */
/* Whether clients may run entries here; else fails with words for them. */
status cluster_check_clients(struct cluster *cluster);
void cluster_log(struct cluster *cluster, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* peer.c */
/* The channel's HELLO was accepted; its connection's lock is held. */
void peer_set_up(struct peer *peer, struct channel *channel, const struct message *hello);
/* Under no lock of the cluster's. Tells the sink. */
void peer_set_down(struct peer *peer, struct channel *channel, const char *reason);
/* A message of an open link. */
void peer_message(struct peer *peer, const struct message *message);
void peer_tensor(struct peer *peer, const struct message *message, struct tensor *tensor);
void peer_control(struct peer *peer, const struct message *message, const void *data, size_t size);

/* What is handed over to be sent; what the kind does not need is 0. */
struct parcel {
  enum message_kind kind;
  uint64_t step, serial;
  uint32_t number;             /* entry or transfer */
  uint32_t command;
  status code;
  uint8_t topic;
  const void *data;            /* of a text or a control message; copied */
  size_t size;
  struct tensor *tensor;       /* its reference is taken, also when nothing is sent */
};
/* False: the peer is not up. */
bool peer_send(struct peer *peer, const struct parcel *parcel);

/* The functions of runtime/step/exchange.h; self is the cluster. */
void peer_exchange_init(struct cluster *cluster);

#endif
