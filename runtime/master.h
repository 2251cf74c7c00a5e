/* master.h: serves TensorFlow's clients: tf.compat.v1.Session("grpc://host:port") against a compiled task.
 *
 * MasterService's CreateSession, ExtendSession, RunStep, CloseSession, ListDevices and Reset; the other methods answer
 * UNIMPLEMENTED. A client sends its graph and then runs feeds, fetches and targets of it. Nothing is compiled here: each
 * of its nodes must be one of the graph that was built (same name, op, inputs and attributes), and each Session.run is served by an entry:
 *   - the entry with the same feeds, fetches and targets, in any order;
 *   - else one that contains its fetches, needs no other feeds and changes no state (and no targets are asked for);
 *   - else the answer is FAILED_PRECONDITION with the list of entries.
 * Field numbers, texts and rules are those of TensorFlow's master_service.proto and direct sessions.
 *
 * Threads: requests come on the network thread and run on threads of their own (at most LIMIT_MASTER_STEPS at a time).
 */
#ifndef TFC_RUNTIME_MASTER_H
#define TFC_RUNTIME_MASTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/cluster.h"

#define LIMIT_MASTER_STEPS 256     /* threads: queue runners of several clients each hold one for as long as they wait */
#define LIMIT_MASTER_NAMES 4096    /* feeds, fetches and targets of a run: they are compared with each other */
#define LIMIT_MASTER_SESSIONS 1024 /* clients that go without closing leak one each; the oldest idle one makes room */

/* A feed or fetch as the entry has it. */
struct master_port {
  const char *tensor;      /* "x:0" */
};
struct master_entry {
  const char *name;
  const struct master_port *feeds, *fetches;
  const char *const *targets; /* operation names */
  uint32_t feed_count, fetch_count, target_count;
  bool changes_state;      /* assigns variables, moves queues, draws random numbers, writes files ... */
};
/* A node of the graph that was built. input_hash: program_hash_input over its inputs: data inputs in order, then controls
 * sorted by name (TensorFlow sorts them when it writes a graph). */
struct master_node {
  const char *name, *op;
  uint64_t input_hash;
  const uint32_t *attrs;   /* pairs of name hash and value hash (struct program_node) */
  uint32_t attr_count;     /* pairs */
};

struct master_config {
  const struct master_entry *entries;
  uint32_t entry_count;
  const struct master_node *nodes;  /* sorted by name (strcmp) */
  uint32_t node_count;
  const char *const *devices;       /* "/job:worker/replica:0/task:0/device:CPU:0", of all tasks */
  uint32_t device_count;
  void *self;
  /* Runs an entry once: feeds in the entry's order (borrowed), fetches out in its order (a reference each, on OK only).
   * The error's text is status_text(). `*cancelled` becomes true when the client has gone or its time is over: the
   * step should then end with CANCELLED soon. Called on a thread of its own, several at a time. */
  status (*run)(void *self, uint32_t entry, struct tensor *const *feeds, struct tensor **fetches, const atomic_bool *cancelled);
  /* Forgets the variables, queues and tables of these containers (none: all). NULL: Reset only ends the sessions. */
  status (*reset)(void *self, const char *const *containers, uint32_t count);
};

struct master;
/* Everything in config is kept by reference. Registers itself with the cluster. */
status master_create(const struct master_config *config, struct cluster *cluster, struct master **out);
/* Cancels and waits for the running steps. Call it before cluster_destroy. Accepts NULL. */
void master_destroy(struct master *master);

#endif
