/* partial.h: where the feeds of a partial run wait for its step, and its fetches for the client.
 *
 * A step that is given one (struct run_request) begins without feeds: an instruction that needs one waits until it has come.
 * Threads: any.
 */
#ifndef TFC_RUNTIME_STEP_PARTIAL_H
#define TFC_RUNTIME_STEP_PARTIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/host/inbox.h"

struct partial;
status partial_create(uint32_t feed_count, uint32_t fetch_count, struct partial **out);
void partial_destroy(struct partial *partial); /* accepts NULL */

/* ---- the step's side ---- */

/* A reference of the feed; NULL: it has not come, the item will be put into the inbox when it has. */
struct tensor *partial_ask(struct partial *partial, uint32_t feed, struct inbox *inbox, struct inbox_item *item);
/* For a step that needs all feeds at once: waits for them (`out` has room for a reference of each). CANCELLED as below. */
status partial_await_feeds(struct partial *partial, const atomic_bool *cancelled, struct tensor **out);
/* Nobody waits for the feed any more. False: the item has been put. */
bool partial_withdraw(struct partial *partial, uint32_t feed);
/* Takes the reference. */
void partial_give(struct partial *partial, uint32_t fetch, struct tensor *tensor);
/* The step is over. The first end stays. */
void partial_end(struct partial *partial, status code, const char *text);

/* ---- the client's side ---- */

/* Takes the reference; once for each feed. */
void partial_feed(struct partial *partial, uint32_t feed, struct tensor *tensor);
/* Waits until the step has given the fetch, and takes it. CANCELLED when `cancelled` becomes true (looked at every 20 ms); else the
 * step's failure. */
status partial_await(struct partial *partial, uint32_t fetch, const atomic_bool *cancelled, struct tensor **out);
/* Waits for the step's end and returns how it ended. */
status partial_await_end(struct partial *partial, const atomic_bool *cancelled);

#endif
