/* cluster.h: this task among the others: who is there, who is ready, who has finished, and the exchange between them.
 *
 * A task listens on its own address and on no other (tasks of one host also meet at a Unix socket without a file, which is
 * faster; other users are refused there), and holds one link (net/link.h) to every other task: the task with
 * the higher number dials the one with the lower, in whatever order they start, and dials again when the connection is cut. A link outlives
 * its connections (session.h): above it nobody notices a cut. A task is lost when it says good-bye, is started again, or has not been heard
 * for --timeout. Nothing waits for a task that is not needed, but all for the coordinator, which grants their names (registrar.h). All
 * sockets belong to one thread.
 *
 * Two kinds of tasks: one with phases (started with --entry) says so in its HELLO and announces when it has finished; one
 * without phases serves the others until it is stopped, and nobody waits for its end. A ps leaves (cluster_wait_all_finished
 * returns OK) when at least one task had phases, and each task outside the job `ps` and each ps with phases has either
 * announced that it finished, and said good-bye or was lost after that, or said that it only serves.
 *
 * Who leaves says good-bye, and whether it has given up: then the work cannot be done any more, and whoever waits for it ends, too.
 *
 * Threads: all functions from any thread, but for create, start and destroy. Owner: the task's main.
 */
#ifndef TFC_RUNTIME_CLUSTER_CLUSTER_H
#define TFC_RUNTIME_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "runtime/cluster/control.h"
#include "runtime/net/tls.h"
#include "runtime/step/exchange.h"

struct cluster_task {
  const char *job;
  uint32_t index;
  const char *address; /* "host:port", "[v6]:port", "unix:PATH" */
};

struct cluster_config {
  uint32_t task;                    /* this one's number in tasks */
  uint32_t task_count;              /* 1 is allowed: then it only serves clients */
  const struct cluster_task *tasks; /* copied */
  uint64_t build_id;        /* program.build_id, build_key: equal in all tasks of one build; a peer that cannot prove them is refused */
  const uint8_t *build_key; /* 32 bytes; NULL: none; copied */
  double timeout_s;         /* --timeout: how long to wait for a peer */
  bool has_phases;          /* started with --entry */
  uint32_t coordinator;     /* who decides which incarnation of a task counts: ps 0, without ps the chief */
  struct tls_files tls;     /* every connection is TLS; kept by reference */
  bool allow_clients;       /* TensorFlow's clients may run entries while tasks run phases */
  int64_t clients_bytes;    /* what their requests and answers may hold together; 0: NET_CLIENTS_BYTES */
  bool only_addresses;      /* tasks of one host use their addresses as well, for measuring and testing */
  struct exchange_sink sink;
  void (*log)(void *self, const char *line); /* a line for people, without the end of line; NULL: stderr */
  void *log_self;
};

struct cluster;

/* Takes the task's address; whoever connects waits there until cluster_start. INVALID_ARGUMENT for an address that is none,
 * ALREADY_EXISTS when somebody listens on the own one, UNAVAILABLE when it cannot be listened on; all name it. */
status cluster_create(const struct cluster_config *config, struct cluster **out);

/* Reads the certificate's files again, for connections that begin from now on; those that stand go on. As tls_context_create; what was
 * stays then. Without TLS nothing happens. */
status cluster_reload_tls(struct cluster *cluster);

/* Begins to connect and to serve: from now on the sink and the service are called. RESOURCE_EXHAUSTED: no thread. */
status cluster_start(struct cluster *cluster);

/* Sends what has been handed over until the others have it (for at most 5 s), says good-bye to each, ends the thread. The sink is not
 * called after it returned. Accepts NULL. */
void cluster_destroy(struct cluster *cluster);

/* The exchange of runtime/step/exchange.h. It lives as long as the cluster. `start` for a task that is not there, or lost
 * before it reported, ends in sink.on_done with UNAVAILABLE and the reason; `send`, `done` and `cancel` to such a task
 * do nothing (the tensor is released). */
struct exchange *cluster_exchange(struct cluster *cluster);

/* Waits until all these tasks are connected; after 1 s a line says whom it waits for and where.
 * UNAVAILABLE after the time-out, naming task and address; FAILED_PRECONDITION when the peer is of another build;
 * CANCELLED after cluster_stop. The own number is allowed. */
status cluster_wait_peers(struct cluster *cluster, const uint32_t *tasks, uint32_t count);

/* The chief is ready: tells everybody, also those who come later (through any task that knows). by_init: because it has run `init`. */
void cluster_announce_ready(struct cluster *cluster, bool by_init);
/* The chief was ready because it had run `init`: a task that `init` concerns, and that says it is not initialised, has lost its variables
 * since, and the chief does it again. */
bool cluster_is_initialised(struct cluster *cluster);
/* Waits until the chief's announcement has come. The time-out runs while the chief is not connected; while it is, it may
 * take as long as it needs. UNAVAILABLE, CANCELLED as above. */
status cluster_wait_ready(struct cluster *cluster, uint32_t chief);

/* This task's phases are done. */
void cluster_announce_finished(struct cluster *cluster);
/* Waits until those have heard it who may wait for it and are not lost: each ps, the coordinator, and
 * `other` (a number that is none: nobody else). CANCELLED after cluster_stop. */
status cluster_wait_heard(struct cluster *cluster, uint32_t other);
/* Waits until every task that is linked has answered (a few seconds for one that is silent), and one that is cut off is back (for a
 * moment): who says after that that it has done all is through in a moment. For whoever is killed then is taken for finished. All calls
 * together wait for the silent once. Not from two threads. */
void cluster_wait_answers(struct cluster *cluster);
/* For a task that has finished, and on which entries of other tasks have parts: waits while any task with phases is connected
 * and has not finished. CANCELLED after cluster_stop. */
status cluster_wait_dependents(struct cluster *cluster);
/* For a ps without phases, and for whoever is needed by others until all have finished: waits until the work is done (above), or a
 * coordinator with phases has left, which waits itself, or had words for it. When one of the tasks waited for was lost, or never came, and
 * nobody is at work, it waits the time-out for that task, since it went, or since the last that anybody was here. Then UNAVAILABLE naming
 * it; OK when a checkpoint says of all of them that they had finished (cluster_note_finished). UNAVAILABLE at once when somebody has given
 * up. While only tasks and clients are there that have no phases it waits for ever. CANCELLED after cluster_stop. */
status cluster_wait_all_finished(struct cluster *cluster);

/* For a task that serves until it is stopped: CANCELLED after cluster_stop, FAILED_PRECONDITION as below. */
status cluster_wait_stopped(struct cluster *cluster);
/* OK, or FAILED_PRECONDITION: the coordinator refused this process, because another one has its name; the sink's on_refused was called, and
 * all waits end with this. */
status cluster_refusal(struct cluster *cluster);
/* The task is connected now. */
bool cluster_is_linked(struct cluster *cluster, uint32_t task);
/* Some of these tasks have said that they leave, and have not come back. */
bool cluster_has_left(struct cluster *cluster, const uint32_t *tasks, uint32_t count);
/* Ends cluster_wait_all_finished, now and later, with OK: nobody needs this task any more. */
void cluster_need_not_wait(struct cluster *cluster);
/* Whether a checkpoint says that the task had done its work, and may have left for good; until another process has its name. Any thread. */
void cluster_note_finished(struct cluster *cluster, uint32_t task, bool had_finished);
/* Good-bye to all but the coordinator, which is left by cluster_destroy: waits until they have heard it, or cannot. */
void cluster_leave_others(struct cluster *cluster);
/* A checkpoint says so, or the task itself when it left. */
bool cluster_had_finished(struct cluster *cluster, uint32_t task);
/* It had, and has said good-bye: it is not there any more, and does not come back as it was. */
bool cluster_has_left_well(struct cluster *cluster, uint32_t task);
/* Good-bye will say that this task leaves its work undone, and why. UNAVAILABLE: for good, and others who work for the same end end, too;
 * CANCELLED: it was told to stop, and may be started again, whether it has said before that it had finished or not. Any thread; before
 * cluster_destroy. */
void cluster_give_up(struct cluster *cluster, status code, const char *why);

/* This task or a connected one has phases that have not finished. */
bool cluster_is_at_work(struct cluster *cluster);
/* What the task may be waiting for: the chief, peers that are not connected and why; "" when nothing is missing. */
void cluster_explain(struct cluster *cluster, char *out, size_t size);

/* For how long the task has not been reached, or not been heard after 5 s of silence, in milliseconds; 0: it is there, or it is this one;
 * of one that never came: since the start. *was_up: it was here before. */
uint64_t cluster_missing_ms(struct cluster *cluster, uint32_t task, bool *was_up);
/* As long as this is the same, everything that was sent to the task comes to the same process; 0: it is not there. */
uint64_t cluster_session(struct cluster *cluster, uint32_t task);
/* Whether the task is there, and has done all its steps. */
bool cluster_has_finished(struct cluster *cluster, uint32_t task);
/* "/job:worker/task:1 at host:port (why it is not there)" */
void cluster_describe(struct cluster *cluster, uint32_t task, char *out, size_t size);

/* Wakes all waiters with CANCELLED; for signals (call it from a thread, not from a handler). */
void cluster_stop(struct cluster *cluster);

/* Which run of which task this is. An incarnation is a process under a task's name, from its first word to its end; a history is what
 * follows one restore (or one start from nothing), in all tasks. */
struct cluster_identity {
  uint64_t history;     /* 0: not known yet */
  uint64_t generation;  /* of this task's incarnations, counted by the coordinator; 0: not granted yet */
  uint32_t coordinator; /* task number */
};
struct cluster_identity cluster_identity(struct cluster *cluster);
/* A number that tells the incarnations of a task apart, of the one that was last here; 0: none was, or it is this task. */
uint64_t cluster_task_incarnation(struct cluster *cluster, uint32_t task);
/* The job goes on in another history; what others are told from now on. */
void cluster_set_history(struct cluster *cluster, uint64_t history);

/* Where a task is; valid as long as the cluster. */
const char *cluster_task_address(const struct cluster *cluster, uint32_t task);
/* "worker_1"; of a number that is none: "task N" in a buffer of the calling thread. */
const char *cluster_task_name(const struct cluster *cluster, uint32_t task);

/* ---- unary calls from clients, on the same address (master.c) ---- */

struct grpc_service; /* net/grpc_server.h */
/* Requests whose path begins with "/tensorflow." go there. NULL: none (UNIMPLEMENTED is answered). While this task or another has phases to
 * run, they are refused (PERMISSION_DENIED), unless config.allow_clients. */
void cluster_set_service(struct cluster *cluster, const struct grpc_service *service);

#endif
