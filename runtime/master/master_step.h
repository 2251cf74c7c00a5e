/* master_step.h: one run of a client: its names, its values, the entry that serves it, and what comes back. No sockets here: bytes in,
 * bytes out. Any thread. */
#ifndef TFC_RUNTIME_MASTER_MASTER_STEP_H
#define TFC_RUNTIME_MASTER_MASTER_STEP_H

#include "base/vec.h"
#include "base/wire.h"
#include "runtime/master/master.h"
#include "runtime/master/master_options.h"

typedef VEC(char *) name_list;
/* Feeds, fetches and targets; owned. */
struct step_names {
  name_list feeds, fetches, targets;
};
/* INVALID_ARGUMENT: no name; RESOURCE_EXHAUSTED: more than LIMIT_MASTER_NAMES of them, or one beyond LIMIT_MASTER_NAME_BYTES. */
status step_name_add(struct step_names *names, name_list *list, const struct wire_field *field);
void step_names_deinit(struct step_names *names);
size_t step_names_bytes(const struct step_names *names);
uint32_t name_list_find(const name_list *list, const char *name); /* UINT32_MAX: it is not there */

struct step_request {
  struct wire_field session; /* the handle's bytes */
  struct step_names names;
  VEC(struct wire) feed_values; /* TensorProtos, in the message's bytes */
  struct run_options options;
  bool stores_errors;        /* in the answer's body */
  struct wire_field partial; /* the handle of a partial run; empty: none */
  uint64_t request_id;
};
/* INVALID_ARGUMENT: no RunStepRequest. deinit in any case. */
status step_request_read(struct wire wire, struct step_request *out);
void step_request_deinit(struct step_request *request);

/* What a session can run. */
struct session_view {
  uint8_t *known;         /* as in master_graph.h */
  const uint8_t *visible; /* as in master_options.h */
};
/* The entry that serves a run. */
status step_match(const struct master_config *config, const struct session_view *view, const struct step_names *names, uint32_t *entry);
/* The number of a name among an entry's ports; UINT32_MAX. */
uint32_t entry_port(const struct master_port *ports, uint32_t count, const char *tensor);

/* A matched run, and its results. */
struct step_run {
  uint32_t entry;
  const struct step_names *names;
  const struct wire *feed_values; /* in the order of names->feeds */
  const struct run_options *options;
  const atomic_bool *cancelled;
  atomic_uint_fast64_t *seen;  /* the session's: master.h */
  struct tensor **fetches;     /* out: in the order of names->fetches */
  struct wire_buffer metadata; /* out: a RunMetadata's bytes */
};
/* deinit in any case. */
status step_run(const struct master_config *config, struct step_run *run);
void step_run_deinit(struct step_run *run);

/* A RunStepResponse. */
status step_write(struct step_run *run, struct wire_buffer *out);
/* One that carries an error. */
void step_write_error(status code, const char *text, struct wire_buffer *out);

#endif
