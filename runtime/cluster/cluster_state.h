/* cluster_state.h: what the files of the cluster share; for those in this folder only.
 *
 * A peer is another task; a channel is a connection, accepted or dialled, and the link on it if it has one. A session (session.h) is what
 * a peer and this task have said to each other, over one channel after the other. A peer is there while it has a session, and up while that
 * has a channel. Channels belong to the loop's thread; what other threads see of a peer is under the cluster's lock. Lock order: a
 * connection's lock, then the cluster's; with the cluster's lock held nothing is posted to a connection.
 */
#ifndef TFC_RUNTIME_CLUSTER_CLUSTER_STATE_H
#define TFC_RUNTIME_CLUSTER_CLUSTER_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/vec.h"
#include "runtime/cluster/admission.h"
#include "runtime/cluster/cluster.h"
#include "runtime/cluster/registrar.h"
#include "runtime/cluster/session.h"
#include "runtime/net/address.h"
#include "runtime/net/connection.h"
#include "runtime/net/grpc_server.h"
#include "runtime/net/link.h"

#define CLUSTER_REASON_BYTES 320
#define CLUSTER_TICK_MS 250
#define CLUSTER_LISTENERS (ADDRESS_MAX + 1)

/* What a HELLO said, kept while it waits for a decision. */
struct greeting {
  uint32_t flags, attempt;
  struct session_key key, meant;
  uint64_t received, registrar, generation;
};

/* How far an open link is. */
enum channel_stage {
  CHANNEL_SILENT,  /* no HELLO yet */
  CHANNEL_HELD,    /* it has come; whether it is taken is not decided: we, or the one whose name it is, have to hear of the coordinator */
  CHANNEL_GREETED, /* with the coordinator: both have said HELLO, its grant is on its way */
  CHANNEL_UP,
};

struct channel {
  struct cluster *cluster;
  struct connection *connection;
  struct peer *peer; /* dialled: from the start; accepted: since its HELLO; NULL when another has replaced it */
  bool is_dialled;
  bool has_link;
  struct guest guest; /* accepted, and no HELLO yet: admission.h */
  enum channel_stage stage;
  struct greeting greeting;
  uint32_t probe; /* registrar_ask */
  struct link link;
  uint64_t opened_ms, created_ms; /* created_ms: since when it owes its next word */
  struct connection_post tick;
  atomic_bool tick_is_posted;
  char refusal[CLUSTER_REASON_BYTES]; /* why the link was ended; "" */
  status refusal_code;
  struct channel *next, *previous;
};

struct peer {
  struct cluster *cluster;
  uint32_t task;
  char name[64]; /* "worker_1" */
  char *address;
  /* under the cluster's lock */
  struct session session;
  struct channel *channel;       /* up; else NULL */
  struct connection *connection; /* the channel's, counted, while up */
  bool flush_is_posted;          /* to that connection */
  bool was_up, has_phases, is_finished, said_bye;
  bool gave_up;                   /* it said so with its good-bye: `reason` has why */
  bool is_hurried;                /* it is lost soon when it is cut off */
  bool had_finished;              /* a checkpoint says so: it may have left for good */
  bool owes_bye;                  /* we do: its session began when the others had heard it */
  bool is_refused;                /* of another build: waiting is of no use */
  bool is_broken;                 /* the session cannot go on: what was to be said cannot be, or what came is no conversation */
  bool is_away;                   /* cut, silent or given up, and said so */
  uint64_t incarnation;           /* the last one that joined */
  uint64_t registrar, generation; /* of it */
  uint32_t given_up;              /* sessions with it that we have ended */
  uint32_t attempt;               /* its latest */
  uint64_t changed_ms;
  uint64_t gone_ms;                  /* since when it is cut, or was lost; 0: up, or never here */
  uint64_t awaited_ms;               /* since when somebody here waits for it, first; 0: nobody does */
  char reason[CLUSTER_REASON_BYTES]; /* why it is not up */
  VEC(uint64_t) started;             /* steps of ours it has not reported yet */
  VEC(uint64_t) unsent;              /* steps of ours that could not be sent: `tell` tells their drivers */
  bool tell_is_posted;
  struct loop_call tell;
  /* the loop's: dialling */
  struct loop_timer timer;
  struct channel *dialling;
  uint32_t backoff_ms;
  uint64_t dialled_since_ms;
  struct address_list addresses;
  uint32_t next_address;
  bool is_looking_up; /* a thread asks a name server */
  bool tried_beside;  /* address_beside was the last way */
};

struct listener {
  struct loop_source source; /* first */
  struct loop_timer pause;   /* out of file descriptors: not accepting for a moment */
  struct cluster *cluster;
  struct address address;
  int claim; /* address_claim */
};

struct cluster {
  struct exchange exchange;
  struct exchange_sink sink;
  struct loop *loop;
  struct grpc_server *server;
  uint32_t task, task_count;
  struct peer *peers; /* task_count of them; the own one too */
  char **jobs;        /* for texts */
  uint32_t *indices;
  uint64_t build_id, incarnation;
  uint64_t registrar;           /* the coordinator's incarnation that granted our name; 0: not yet. Under the lock, as identity */
  struct registrar_name *names; /* of each task; but at the coordinator only its own counts. The loop's */
  struct timespec *granted;     /* when */
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
  uint32_t attempts;                /* HELLOs said by dialling */
  struct loop_call reconsider_call; /* held channels */
  bool reconsider_is_posted;
  struct channel *channels;
  uint32_t channel_count;
  struct admission admission;
  struct loop_timer ticker;
  uint64_t ticked_ms;
  struct loop_call closing_call, probe_call;
  /* under the lock */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_ready, is_initialised, is_finished, is_stopped, is_leaving, has_said_bye, is_closing, is_closed, probe_is_posted, has_left_others;
  bool need_not_wait;                  /* for others to finish */
  status given_up_code;                /* the work is left undone; OK: it is not */
  char given_up[CLUSTER_REASON_BYTES]; /* why */
  uint64_t created_ms;
  uint64_t parting_ms, parting_end_ms; /* when all were last asked whether they live, and until when answers are waited for; 0: never */
  uint64_t visited_ms;                 /* when a client, or a stranger, was last here */
  char refusal[CLUSTER_REASON_BYTES + 100]; /* why this process has no place here; "" */
  struct tls_context *tls;                  /* of connections that begin; NULL: none */
  struct cluster_identity identity;
  uint32_t resolving; /* threads that ask a name server */
};

/* channel.c */
/* Takes the socket. peer: dialled; NULL: accepted. RESOURCE_EXHAUSTED: there is no room, or no memory. */
status channel_create(struct cluster *cluster, int fd, struct peer *peer, struct channel **out);
/* Loop's thread: closes in order. */
void channel_leave(struct channel *channel);
/* Loop's thread, every CLUSTER_TICK_MS. stalled: this process has been held up, silence says nothing. */
void channel_tick(struct channel *channel, uint64_t now_ms, bool is_stalled);
/* What came is not what a task says, or what it says cannot be taken: tells it and our user, and ends the link. Under the connection's
 * lock. */
void channel_refuse(struct channel *channel, status code, const char *text);

/* dial.c */
status cluster_listen(struct cluster *cluster);
/* Begins to dial the peer, unless that is under way. */
void peer_dial(struct peer *peer);
/* A dialled channel has closed before the peer was up. */
void peer_dial_failed(struct peer *peer, const char *reason);

/* cluster.c */
/* Whether clients may run entries here; else fails with words for them. */
status cluster_check_clients(struct cluster *cluster);
void cluster_log(struct cluster *cluster, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* wait.c */
/* Until something changes, or until_ms. Under the lock. */
void cluster_wait_changed(struct cluster *cluster, uint64_t until_ms);
/* Some task says that the chief is ready. */
void cluster_hear_ready(struct cluster *cluster, bool by_init);
/* Some task says that another one had finished, and has left. */
void cluster_hear_left(struct cluster *cluster, uint32_t task);
/* This task has heard the good-bye of one that had finished: the coordinator hears of it, and tells all. */
void cluster_pass_on_left(struct cluster *cluster, uint32_t task);
/* The same of all who have, to one that may have come after that. */
void cluster_tell_left(struct peer *peer);

/* greet.c: all on the loop's thread */
/* Of a link: a challenge has come; HELLO has. Not OK: the link is refused. */
status greet_on_challenge(void *channel);
status greet_on_hello(void *channel, const struct message *hello);
/* GRANT, REFUSED, PROBE, ALIVE. */
void greet_on_message(struct channel *channel, const struct message *message);
/* Asks all that are linked whether they live: session.heard_ms says who has answered. Under the cluster's lock. */
void greet_probe_all(struct cluster *cluster);
/* Held channels are looked at again soon. */
void greet_reconsider_soon(struct cluster *cluster);
/* This process has no place in the cluster: it ends. */
void cluster_refuse(struct cluster *cluster, const char *text);

/* parcel.c */
/* What is handed over to be sent; what the kind does not need is 0. */
struct parcel {
  enum message_kind kind;
  uint64_t step, serial;
  uint32_t number; /* entry or transfer */
  uint32_t command;
  status code;
  uint8_t topic;
  const void *data; /* of a text or a control message; copied */
  size_t size;
  struct tensor *tensor; /* its reference is taken, also when nothing is sent */
};
/* Behind what was handed over before; it is repeated until the peer has it, or is lost. False: there is no session, or good-bye was said in
 * it. Any thread. */
bool peer_send(struct peer *peer, const struct parcel *parcel);
/* Sends what the peer's channel has not had yet. Under its connection's lock. */
void peer_flush(struct peer *peer, struct channel *channel);
/* Has peer_flush called. */
void peer_flush_soon(struct peer *peer);
/* A numbered message of the channel has come: false when it does not count, because another channel has taken its place. Under its
 * connection's lock. */
bool peer_take(struct peer *peer, struct channel *channel, uint64_t bytes);
void peer_acknowledged(struct peer *peer, struct channel *channel, uint64_t received);
/* Acknowledges what was not yet. Under the connection's lock. */
void peer_acknowledge(struct peer *peer, struct channel *channel);
/* Gives back what will not be sent again. */
void parcels_let_go(struct cluster *cluster, struct session_item *items);

/* peer.c */
/* Whether who greets so goes on with what this task and it have said to each other. */
bool peer_session_goes_on(const struct peer *peer, const struct greeting *greeting);
/* HELLO was accepted: the session goes on, or a new one begins (the old one is lost). Loop's thread, as what follows. */
status peer_meet(struct peer *peer, struct channel *channel);
/* Both have said all they had to: the channel carries the session. */
void peer_set_up(struct peer *peer, struct channel *channel);
/* The peer's channel has closed, or is to be: the session waits for the next one. */
void peer_cut(struct peer *peer, const char *reason);
/* The session is over: tells the sink. is_ours: we give it up. */
void peer_lose(struct peer *peer, const char *reason, bool is_ours);
/* When the channel's last bytes came; false: another channel carries the session. Any thread. */
bool peer_heard(struct peer *peer, const struct channel *channel, uint64_t received_ms);
/* Every CLUSTER_TICK_MS: is it silent, has it been for too long? */
void peer_watch(struct peer *peer, uint64_t now_ms, bool is_stalled);
/* This task leaves, in order, or because it has given up. Any thread. */
void peer_say_bye(struct peer *peer);
/* The session cannot go on; the connection is closed. Under its lock. */
void peer_break(struct peer *peer, struct channel *channel, const char *reason);
/* A message of an open link. */
void peer_message(struct peer *peer, struct channel *channel, const struct message *message);
void peer_tensor(struct peer *peer, const struct message *message, struct tensor *tensor);
void peer_control(struct peer *peer, const struct message *message, const void *data, size_t size);

/* The functions of runtime/step/exchange.h; self is the cluster. */
void peer_exchange_init(struct cluster *cluster);

#endif
