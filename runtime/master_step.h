/* master_step.h: RunStep: a request read, matched, run, and its answer written. No sockets here: bytes in, bytes out. */
#ifndef TFC_RUNTIME_MASTER_STEP_H
#define TFC_RUNTIME_MASTER_STEP_H

#include "base/vec.h"
#include "runtime/master.h"
#include "base/wire.h"

struct step_request {
  struct wire_field session;      /* the handle's bytes */
  VEC(char *) feeds, fetches, targets;
  VEC(struct wire) feed_values;   /* TensorProtos, in the message's bytes */
  int64_t timeout_ms;             /* 0: none */
  bool stores_errors;             /* in the answer's body */
  bool is_partial;
  uint64_t request_id;
};

/* INVALID_ARGUMENT: no RunStepRequest; RESOURCE_EXHAUSTED: more than LIMIT_MASTER_NAMES names. deinit in any case. */
status step_request_read(struct wire wire, struct step_request *out);
void step_request_deinit(struct step_request *request);

/* Chooses the entry, reads the feeds, runs it, and writes a RunStepResponse. */
status step_run(const struct master_config *config, const uint8_t *known, const struct step_request *request,
                const atomic_bool *cancelled, struct wire_buffer *out);
/* A RunStepResponse that carries an error. */
void step_write_error(status code, const char *text, struct wire_buffer *out);

#endif
