/* master_state.h: the inside of the master service, for the files that serve its methods. */
#ifndef TFC_RUNTIME_MASTER_MASTER_STATE_H
#define TFC_RUNTIME_MASTER_MASTER_STATE_H

#include <pthread.h>
#include "runtime/master/master_callable.h"
#include "runtime/master/master_partial.h"
#include "runtime/master/master_session.h"
#include "runtime/master/master_step.h"
#include "runtime/net/grpc_server.h"

struct job {
  struct master *master;
  struct grpc_call *call; /* held */
  bool is_answered;       /* under the lock */
  atomic_bool cancelled;
  struct session *session;   /* of a run, held */
  struct callable *callable; /* RunCallable's, held */
  uint64_t deadline_ms;      /* UINT64_MAX: none */
  int64_t timeout_ms;        /* what the deadline was made from */
  bool stores_errors;
  struct job *next; /* queue, or the list of those in progress */
};

struct master {
  struct master_config config;
  struct cluster *cluster;
  uint64_t incarnation;
  pthread_mutex_t lock;
  pthread_cond_t has_work, has_ended, has_begun, has_limit;
  struct session_list sessions;
  struct partial_list *partials;
  struct request_ids ids;
  struct job *queue, **queue_end;
  struct job *in_progress;
  uint32_t thread_count, idle_count, queued_count;
  bool is_stopping;
  pthread_t watcher;
};

/* What a method returns: OK and a message, or an error for the trailers. */
typedef status master_method(struct master *master, struct job *job, struct wire request, struct wire_buffer *out);
master_method *master_method_find(const char *path); /* NULL: none */

/* The job is answered with DEADLINE_EXCEEDED after so long, unless it has an earlier deadline. Under the lock; negative: no limit. */
void job_limit(struct job *job, int64_t timeout_ms);

#endif
