/* master_options.h: what a client asks for beside values: RunOptions, ConfigProto. Any thread. */
#ifndef TFC_RUNTIME_MASTER_MASTER_OPTIONS_H
#define TFC_RUNTIME_MASTER_MASTER_OPTIONS_H

#include "base/wire.h"
#include "runtime/master/master.h"

/* RunOptions. Thread pools and debuggers are the builder's matter: such fields are read over. */
struct run_options {
  int64_t timeout_ms; /* 0: none */
  bool traces;        /* trace_level is not NO_TRACE */
  bool wants_graphs, reports_memory;
};
void run_options_read(struct wire wire, struct run_options *out);

/* The part of ConfigProto that concerns a compiled program. */
struct session_options {
  int64_t timeout_ms; /* operation_timeout_in_ms; 0: none */
  uint8_t *visible;   /* a byte for each device: what device_filters and the ClusterDef leave; NULL: all. Owned */
};
/* INVALID_ARGUMENT: pools of the session's own, a filter that is none, a ClusterDef with tasks that the cluster has not;
 * FAILED_PRECONDITION: one that has them elsewhere. */
status session_options_read(const struct master_config *config, struct wire wire, struct session_options *out);

/* INVALID_ARGUMENT, naming the task, when the entry has a part on one that the session does not see. */
status session_sees_entry(const struct master_config *config, const uint8_t *visible, uint32_t entry);

#endif
