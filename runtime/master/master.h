/* master.h: serves TensorFlow's clients: tf.compat.v1.Session("grpc://host:port") against a compiled task.
 *
 * All of MasterService. A client sends its graph and then runs feeds, fetches and targets of it: in one call (RunStep), under a number
 * (MakeCallable, RunCallable), or with feeds and fetches that come one by one (PartialRunSetup, RunStep). Nothing is compiled here: each
 * of its nodes must be one of the graph that was built (same name, op, inputs and attributes), and each run is served by an entry:
 *   - the entry with the same feeds, fetches and targets, in any order;
 *   - else one that contains its fetches, needs no other feeds and changes no state (and no targets are asked for);
 *   - else the answer is FAILED_PRECONDITION with the list of entries.
 * Field numbers, texts and rules are those of TensorFlow's master_service.proto and direct sessions.
 *
 * Threads: requests come on the network thread and run on threads of their own (at most LIMIT_MASTER_STEPS at a time).
 */
#ifndef TFC_RUNTIME_MASTER_MASTER_H
#define TFC_RUNTIME_MASTER_MASTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "base/tensor.h"
#include "base/wire.h"
#include "runtime/cluster/cluster.h"

struct partial;

#define LIMIT_MASTER_STEPS 256                      /* threads: queue runners of several clients each hold one for as long as they wait */
#define LIMIT_MASTER_NAMES 4096                     /* feeds, fetches and targets of a run: they are compared with each other */
#define LIMIT_MASTER_NAME_BYTES 65536               /* of one of them */
#define LIMIT_MASTER_CALLABLES 1024                 /* of a session */
#define LIMIT_MASTER_KEPT_BYTES (INT64_C(64) << 20) /* names that all sessions' callables keep */
#define LIMIT_MASTER_PARTIALS 64                    /* partial runs, each with a thread; the one unused for the longest time makes room */
#define LIMIT_MASTER_FED_BYTES (INT64_C(128) << 20) /* what has been fed to all partial runs and is kept for them */
#define LIMIT_MASTER_TRACED 16                      /* runs that are recorded at once: a record is megabytes */
#define LIMIT_MASTER_SESSIONS 1024                  /* clients that go without closing leak one each; the oldest idle one makes room */

/* A feed or fetch as the entry has it. */
struct master_port {
  const char *tensor; /* "x:0" */
  bool is_optional;   /* a fetch: without it the entry would change the same */
};
struct master_entry {
  const char *name;
  const struct master_port *feeds, *fetches;
  const char *const *targets; /* operation names */
  uint32_t feed_count, fetch_count, target_count;
  bool changes_state;    /* assigns variables, moves queues, draws random numbers, writes files ... */
  const uint32_t *tasks; /* numbers of those that have a part in it */
  uint32_t task_count;
};
/* A node of the graph that was built. input_hash: program_hash_input over its inputs: data inputs in order, then controls
 * sorted by name (TensorFlow sorts them when it writes a graph). */
struct master_node {
  const char *name, *op;
  uint64_t input_hash;
  const uint32_t *attrs; /* pairs of name hash and value hash (struct program_node) */
  uint32_t attr_count;   /* pairs */
};

/* One run of an entry, and what its client asks of it beside its values. */
struct master_run {
  uint32_t entry;
  struct tensor *const *feeds; /* in the entry's order, borrowed */
  struct tensor **fetches;     /* out, in its order: a reference each, on OK only */
  /* Becomes true when the client has gone or its time is over: the step should then end with CANCELLED soon. */
  const atomic_bool *cancelled;
  atomic_uint_fast64_t *seen;   /* of each task, the incarnation that the session has met, 0: none yet; or NULL */
  struct partial *partial;      /* not NULL: the feeds come through it, and the fetches go there */
  bool traces;                  /* fill step_stats */
  bool wants_graphs;            /* fill partition_graphs */
  bool reports_memory;          /* out of memory: name the largest tensors */
  struct wire_buffer *metadata; /* out: fields of a RunMetadata */
};

struct master_config {
  const struct master_entry *entries;
  uint32_t entry_count;
  const struct master_node *nodes; /* sorted by name (strcmp) */
  uint32_t node_count;
  const char *const *devices; /* "/job:worker/replica:0/task:0/device:CPU:0", of all tasks */
  uint32_t device_count;
  const char *const *addresses; /* "host:port" of each device's task; NULL: a client's ClusterDef is not compared */
  uint32_t own_device;          /* this task's: no filter hides it */
  void *self;
  /* Runs an entry once. The error's text is status_text(). Called on a thread of its own, several at a time. */
  status (*run)(void *self, const struct master_run *run);
  /* Says where the run with this `cancelled` is ("/job:worker/task:0 is in QueueDequeueV2 'q'"); "" when it is not known. NULL: never. */
  void (*explain)(void *self, const atomic_bool *cancelled, char *out, size_t size);
  /* Partial runs; NULL: there are none. Checks a feed before it is given to the partial run. */
  status (*check_feed)(void *self, uint32_t entry, uint32_t feed, const struct tensor *tensor);
  /* Sets a byte of `out`, one for each feed of the entry, for those without which the fetch cannot be computed. */
  status (*needs)(void *self, uint32_t entry, uint32_t fetch, uint8_t *out);
  /* The last session has been closed. NULL: nobody wants to know. */
  void (*ended)(void *self);
  /* Forgets the variables, queues and tables of these containers (none: all). NULL: Reset only ends the sessions. */
  status (*reset)(void *self, const char *const *containers, uint32_t count);
};

struct master;
/* Everything in config is kept by reference. Registers itself with the cluster. */
status master_create(const struct master_config *config, struct cluster *cluster, struct master **out);
/* Cancels and waits for the running steps. Call it before cluster_destroy. Accepts NULL. */
void master_destroy(struct master *master);

#endif
