/* master_callable.h: runs that a client has described once (MakeCallable) and then calls by number (RunCallable). They belong to their
 * session. All under the master's lock. */
#ifndef TFC_RUNTIME_MASTER_MASTER_CALLABLE_H
#define TFC_RUNTIME_MASTER_MASTER_CALLABLE_H

#include "runtime/master/master_session.h"
#include "runtime/master/master_step.h"

struct callable {
  struct callable *next;
  int64_t handle;
  uint32_t entry;
  struct step_names names;
  struct run_options options;
  size_t bytes;        /* kept for it */
  uint32_t references; /* the session's, and one for each call in progress */
};

/* CallableOptions. INVALID_ARGUMENT: they are none; UNIMPLEMENTED: connections of tensors, which would be another graph, and (as TensorFlow
 * says of remote sessions) feeds and fetches in a device's memory. The names are the caller's to deinit in any case. */
status callable_options_read(struct wire wire, struct step_names *names, struct run_options *options);
/* Takes the names. RESOURCE_EXHAUSTED: LIMIT_MASTER_CALLABLES, LIMIT_MASTER_KEPT_BYTES over all sessions. */
status callable_create(struct session *session, uint32_t entry, struct step_names *names, const struct run_options *options,
                       int64_t *handle);
/* Retains it. INVALID_ARGUMENT: no such callable. */
status callable_find(struct session *session, int64_t handle, struct callable **out);
void callable_release(struct callable *callable); /* accepts NULL */
/* Nothing happens when there is no such callable. */
void callable_close(struct session *session, int64_t handle);
void callables_destroy(struct session *session);

#endif
