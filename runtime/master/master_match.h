/* master_match.h: which entry serves a client's Session.run. Any thread. */
#ifndef TFC_RUNTIME_MASTER_MASTER_MATCH_H
#define TFC_RUNTIME_MASTER_MASTER_MATCH_H

#include "runtime/master/master.h"

/* The names of one run, as the client sent them: "node:0" for feeds and fetches, operations for targets. */
struct master_request {
  const char *const *feeds, *const *fetches, *const *targets;
  uint32_t feed_count, fetch_count, target_count;
};

/* What TensorFlow refuses before it looks for anything: names the session's graph has not, twice or both fed and fetched,
 * nothing asked for. known: as in master_graph.h. */
status master_request_check(const struct master_config *config, const uint8_t *known, const struct master_request *request);

/* The entry's number (rules in master.h). FAILED_PRECONDITION with the entries. */
status master_match(const struct master_config *config, const struct master_request *request, uint32_t *out);

#endif
