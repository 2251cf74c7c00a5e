/* master_partial.h: partial runs: one step of an entry whose feeds and fetches come and go in several calls of the client.
 *
 * PartialRunSetup begins the step, on a thread of its own; each RunStep with the handle feeds some and waits for some; the run ends with
 * the call after which everything has been fed and fetched, or with a failure. Texts are those of TensorFlow's sessions.
 * Threads: any.
 */
#ifndef TFC_RUNTIME_MASTER_MASTER_PARTIAL_H
#define TFC_RUNTIME_MASTER_MASTER_PARTIAL_H

#include "runtime/master/master_session.h"
#include "runtime/master/master_step.h"

struct partial_list;
/* The config is kept by reference. */
status partial_list_create(const struct master_config *config, struct partial_list **out);
/* Gives all up and waits for them. Accepts NULL. */
void partial_list_destroy(struct partial_list *list);

#define PARTIAL_HANDLE_BYTES 40
/* Begins a run of the entry in the name of the session. Takes the names. RESOURCE_EXHAUSTED: LIMIT_MASTER_PARTIALS are in use. */
status partial_run_begin(struct partial_list *list, const struct session *session, uint32_t entry, struct step_names *names,
                         char handle[PARTIAL_HANDLE_BYTES]);
/* One call: request->names are fed and fetched now. Writes the fetches of a RunStepResponse. INVALID_ARGUMENT: what TensorFlow refuses,
 * after which the run goes on; any other failure ends it. */
status partial_run_continue(struct partial_list *list, const struct session *session, const struct step_request *request,
                            const atomic_bool *cancelled, struct wire_buffer *out);
/* The session was closed; NULL: all were. */
void partial_runs_end(struct partial_list *list, const struct session *session);

#endif
