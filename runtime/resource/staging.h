/* staging.h: staging areas: tuples of tensors on their way between steps, in the order they came (Stage, Unstage) or by an
 * integer key (MapStage, OrderedMapStage and their like).
 *
 * An area may be bounded by a number of tuples and by bytes; who puts waits for room, who takes waits for what it asks for.
 * There is no line: whoever can go on does. A waiter is a host call (host.h). Threads: any. Owner: the container.
 */
#ifndef TFC_RUNTIME_RESOURCE_STAGING_H
#define TFC_RUNTIME_RESOURCE_STAGING_H

#include "runtime/host/host.h"
#include "runtime/memory/container.h"

/* Tuples in the order they came, or by keys: without a key that of the latest is taken, or of the smallest. */
enum staging_area { STAGING_LINE, STAGING_MAP, STAGING_ORDERED_MAP };
struct staging_spec {
  enum staging_area area;
  int64_t capacity;     /* tuples; 0: no bound */
  int64_t memory_limit; /* bytes; 0: no bound */
  uint32_t width;       /* keyed: the components of a tuple */
};
struct staging;

enum staging_kind { STAGING_PUT, STAGING_TAKE, STAGING_PEEK };
struct staging_request {
  enum staging_kind kind;
  bool any_key;     /* keyed TAKE: output 0 is the key that was found */
  int64_t key;      /* without keys, PEEK: the place from the front */
  int32_t *indices; /* keyed: which components, ascending */
  uint32_t index_count;
  struct tensor **values; /* PUT: one reference each */
  uint32_t value_count;
};

extern const struct resource_maker staging_makers[]; /* by enum staging_area; argument: const struct staging_spec * */
/* An empty request with room for so many indices and values; NULL without memory. */
struct staging_request *staging_request_create(enum staging_kind kind, uint32_t indices, uint32_t values);
void staging_request_free(struct staging_request *request); /* accepts NULL */
/* Does what the request says, sets outputs, or leaves the call pending. The request goes with the call. INVALID_ARGUMENT,
 * RESOURCE_EXHAUSTED when the values can never fit. */
status staging_run(struct staging *area, struct host_call *call, struct staging_request *request);
void staging_clear(struct staging *area);
/* Complete tuples, or those of which components are missing. */
int64_t staging_size(struct staging *area, bool incomplete);

#endif
