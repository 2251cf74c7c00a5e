/* queue.c: lines of attempts over a ring of tuples.
 *
 * Whoever changes something lets the first attempts of both lines proceed until neither can. Attempts that ended are
 * collected under the lock and told after it, so that nothing is called back under it.
 */
#include "runtime/resource/queue_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/text/element_number.h"

static const char *const kind_names[] = {"FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"};
const char *queue_kind_name(enum queue_kind kind) { return kind_names[kind]; }

/* ---- attempts ---- */

static void attempt_free(struct queue *q, struct attempt *a) {
  for (int64_t i = 0; a->tuples && i < a->count; i++)
    queue_tuple_free(a->tuples[i], q->spec.component_count);
  free(a->tuples);
  free(a);
}

static void line_add(struct line *line, struct attempt *a) {
  a->next = NULL;
  *line->last = a;
  line->last = &a->next;
}

static struct attempt *line_remove_first(struct line *line) {
  struct attempt *a = line->first;
  line->first = a->next;
  if (!line->first)
    line->last = &line->first;
  return a;
}

/* The attempt of a call, taken out of the line; NULL when it is not there. */
static struct attempt *line_remove(struct line *line, const struct host_call *call) {
  for (struct attempt **at = &line->first; *at; at = &(*at)->next)
    if ((*at)->call == call) {
      struct attempt *a = *at;
      *at = a->next;
      if (line->last == &a->next)
        line->last = at;
      return a;
    }
  return NULL;
}

static void attempt_fail(struct attempt *a, status code, const char *format, const char *name) {
  a->code = code;
  snprintf(a->text, sizeof a->text, format, name);
}

/* What was taken goes back to the front, in its order. */
static void put_back(struct queue *q, struct attempt *a) {
  for (int64_t i = a->done - 1; i >= 0; i--) {
    if (!queue_ring_push_front(q, a->tuples[i]))
      queue_tuple_free(a->tuples[i], q->spec.component_count);
    a->tuples[i] = NULL;
  }
  a->done = 0;
}

/* ---- proceeding: true when the attempt is over; *progress when anything changed ---- */

static bool proceed_enqueue(struct queue *q, struct attempt *a, bool *progress) {
  if (a->kind == ATTEMPT_CLOSE) {
    if (q->closed)
      attempt_fail(a, CANCELLED, "Queue '%s' is already closed.", q->resource.name);
    q->closed = true;
    return *progress = true;
  }
  if (q->closed) {
    a->code = CANCELLED;
    snprintf(a->text, sizeof a->text, "%s '%s' is closed.", kind_names[q->spec.kind], q->resource.name);
    return *progress = true;
  }
  while (a->done < a->count && q->size < q->spec.capacity) {
    if (!queue_ring_push(q, a->tuples[a->done])) {
      attempt_fail(a, RESOURCE_EXHAUSTED, "no memory in queue '%s'", q->resource.name);
      return *progress = true;
    }
    a->tuples[a->done++] = NULL;
    *progress = true;
  }
  return a->done == a->count;
}

static int64_t available(const struct queue *q) {
  int64_t kept = q->spec.kind == QUEUE_SHUFFLE && !q->closed ? q->spec.min_after_dequeue : 0;
  return q->size > kept ? q->size - kept : 0;
}

/* A closed queue with too few: the rest for up_to, else the end. True when the attempt is over. */
static bool proceed_at_end(struct queue *q, struct attempt *a) {
  int64_t left = a->count - a->done, size = q->size;
  put_back(q, a);
  if (a->up_to && q->size > 0) {
    a->count = q->size;
    return false;
  }
  a->code = OUT_OF_RANGE;
  snprintf(a->text, sizeof a->text, "%s '%s' is closed and has insufficient elements (requested %lld, current size %lld)",
           kind_names[q->spec.kind], q->resource.name, (long long)left, (long long)size);
  return true;
}

static bool proceed_dequeue(struct queue *q, struct attempt *a, bool *progress) {
  if (q->closed && q->size < a->count - a->done && proceed_at_end(q, a))
    return *progress = true;
  while (a->done < a->count && available(q) > 0) {
    a->tuples[a->done++] = queue_ring_take(q);
    *progress = true;
  }
  return a->done == a->count;
}

/* The newest token, which is the last; those of older rounds are for nobody any more. */
static struct tensor **take_token(struct queue *q) {
  struct tensor **token = *queue_ring_at(q, --q->size);
  int64_t value = element_int(token[0], 0);
  while (q->size > 0 && element_int((*queue_ring_at(q, 0))[0], 0) < value) {
    queue_tuple_free(*queue_ring_at(q, 0), q->spec.component_count);
    q->start = (q->start + 1) % q->room;
    q->size--;
  }
  return token;
}

/* True when the attempt is over. */
static bool proceed_token(struct queue *q, struct attempt *a) {
  if (q->size == 0)
    return q->closed && proceed_at_end(q, a);
  uint32_t driver = a->call->driver;
  int64_t value = element_int((*queue_ring_at(q, q->size - 1))[0], 0);
  if (!token_share_allows(&q->shares, driver, value, a->each))
    return false;
  if (!token_share_note(&q->shares, driver, value)) {
    attempt_fail(a, RESOURCE_EXHAUSTED, "no memory in queue '%s'", q->resource.name);
    return true;
  }
  a->tuples[a->done++] = take_token(q);
  return true;
}

/* Whoever waits for a token does not keep back those behind: there may be one for them. */
static void proceed_tokens(struct queue *q, struct attempt ***end, bool *progress) {
  for (struct attempt **at = &q->token_takers.first; *at;) {
    struct attempt *a = *at;
    if (!proceed_token(q, a)) {
      at = &a->next;
      continue;
    }
    line_remove(&q->token_takers, a->call);
    a->next = NULL;
    **end = a;
    *end = &a->next;
    *progress = true;
  }
}

/* Lets the lines proceed; returns the attempts that are over, as a list. */
static struct attempt *queue_proceed(struct queue *q) {
  struct attempt *over = NULL, **end = &over;
  for (bool progress = true; progress;) {
    progress = false;
    proceed_tokens(q, &end, &progress);
    struct line *lines[] = {&q->givers, &q->takers};
    for (int i = 0; i < 2; i++)
      while (lines[i]->first && (i == 0 ? proceed_enqueue : proceed_dequeue)(q, lines[i]->first, &progress)) {
        struct attempt *a = line_remove_first(lines[i]);
        a->next = NULL;
        *end = a;
        end = &a->next;
      }
  }
  return over;
}

/* ---- results ---- */

/* The result of an attempt that is over; frees it. */
static status attempt_result(struct queue *q, struct attempt *a) {
  status result = a->code == OK ? OK : fail(a->code, "%s", a->text);
  if (result == OK && a->kind == ATTEMPT_DEQUEUE)
    result = queue_attempt_outputs(q, a);
  attempt_free(q, a);
  return result;
}

/* Tells those who waited; the result is that of `own`, when it is among them. */
static status tell(struct queue *q, struct attempt *over, struct attempt *own) {
  status result = OK;
  char text[512] = "";
  while (over) {
    struct attempt *next = over->next;
    struct host_call *call = over->call;
    bool is_own = over == own;
    status code = attempt_result(q, over);
    if (is_own) {
      result = code;
      snprintf(text, sizeof text, "%s", code == OK ? "" : status_text());
    } else {
      host_finish(call, code, code == OK ? "" : status_text());
    }
    over = next;
  }
  return result == OK ? OK : fail(result, "%s", text);
}

/* The call knows the queue, not its attempt: another thread may be ending that, and freeing it. */
static bool attempt_withdraw(struct host_call *call) {
  struct queue *q = call->wait;
  pthread_mutex_lock(&q->lock);
  struct attempt *a = line_remove(&q->takers, call);
  if (a)
    put_back(q, a);
  else
    a = line_remove(&q->givers, call);
  if (!a)
    a = line_remove(&q->token_takers, call);
  struct attempt *over = a ? queue_proceed(q) : NULL;
  pthread_mutex_unlock(&q->lock);
  if (a)
    attempt_free(q, a);
  (void)tell(q, over, NULL); /* none of them is ours */
  return a != NULL;
}

static void note_driver(struct seen *seen, uint32_t driver) {
  for (uint32_t i = 0; i < seen->count; i++)
    if (seen->drivers[i] == driver)
      return;
  if (seen->count < RESOURCE_WAIT_DRIVERS)
    seen->drivers[seen->count++] = driver;
}

static bool line_has(const struct line *line, const void *call) {
  for (const struct attempt *a = line->first; a; a = a->next)
    if (a->call == call)
      return true;
  return false;
}

static bool queue_explain(struct resource *resource, const void *call, struct resource_wait *out) {
  struct queue *q = (struct queue *)resource;
  pthread_mutex_lock(&q->lock);
  bool takes = line_has(&q->takers, call) || line_has(&q->token_takers, call), gives = !takes && line_has(&q->givers, call);
  if (takes)
    snprintf(out->text, sizeof out->text, "queue '%.60s' has %lld elements", resource->name, (long long)q->size);
  else if (gives)
    snprintf(out->text, sizeof out->text, "queue '%.60s' is full with %lld elements", resource->name, (long long)q->size);
  const struct seen *seen = takes ? &q->filled_by : &q->emptied_by;
  memcpy(out->drivers, seen->drivers, sizeof seen->drivers);
  out->driver_count = seen->count;
  pthread_mutex_unlock(&q->lock);
  return takes || gives;
}

static status run_attempt(struct queue *q, struct attempt *a) {
  a->call->wait = q;
  a->call->withdraw = attempt_withdraw;
  pthread_mutex_lock(&q->lock);
  line_add(a->kind != ATTEMPT_DEQUEUE ? &q->givers : a->each ? &q->token_takers : &q->takers, a);
  note_driver(a->kind == ATTEMPT_DEQUEUE ? &q->emptied_by : &q->filled_by, a->call->driver);
  struct attempt *over = queue_proceed(q);
  bool ended = false;
  for (struct attempt *o = over; o; o = o->next)
    ended = ended || o == a;
  a->call->pending = !ended; /* before the lock is given up: another thread may end it right after */
  pthread_mutex_unlock(&q->lock);
  return tell(q, over, a);
}

/* ---- the interface ---- */

static struct attempt *attempt_create(struct host_call *call, int kind, int64_t count) {
  struct attempt *a = calloc(1, sizeof *a);
  if (!a)
    return NULL;
  a->call = call;
  a->kind = kind;
  a->count = count;
  a->tuples = calloc((size_t)count + 1, sizeof *a->tuples);
  if (a->tuples)
    return a;
  free(a);
  return NULL;
}

status queue_enqueue(struct queue *q, struct host_call *call, struct tensor **tensors, int64_t count) {
  uint32_t n = q->spec.component_count;
  struct attempt *a = attempt_create(call, ATTEMPT_ENQUEUE, count);
  bool complete = a != NULL;
  for (int64_t i = 0; i < count; i++) {
    struct tensor **tuple = complete ? malloc((n + 1) * sizeof *tuple) : NULL;
    complete = tuple != NULL;
    for (uint32_t j = 0; j < n; j++)
      if (tuple)
        tuple[j] = tensors[i * n + j];
      else
        tensor_release(tensors[i * n + j]);
    if (a)
      a->tuples[i] = tuple;
  }
  if (complete)
    return run_attempt(q, a);
  if (a)
    attempt_free(q, a);
  return fail(RESOURCE_EXHAUSTED, "no memory for %lld elements of queue '%s'", (long long)count, q->resource.name);
}

status queue_dequeue(struct queue *q, struct host_call *call) {
  struct attempt *a = attempt_create(call, ATTEMPT_DEQUEUE, 1);
  return a ? run_attempt(q, a) : fail(RESOURCE_EXHAUSTED, "no memory");
}

static bool is_of_tokens(const struct queue *q) {
  return q->spec.kind == QUEUE_FIFO && q->spec.component_count == 1 && q->spec.components[0].has_shape &&
         q->spec.components[0].shape.rank == 0 &&
         (q->spec.components[0].dtype == DTYPE_INT64 || q->spec.components[0].dtype == DTYPE_INT32);
}

status queue_dequeue_token(struct queue *q, struct host_call *call, int64_t each) {
  if (each < 1 || !is_of_tokens(q))
    return fail(INVALID_ARGUMENT, "queue '%s' holds no tokens: they are whole numbers in a FIFOQueue", q->resource.name);
  struct attempt *a = attempt_create(call, ATTEMPT_DEQUEUE, 1);
  if (!a)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  a->each = each;
  return run_attempt(q, a);
}

status queue_dequeue_many(struct queue *q, struct host_call *call, int64_t count, bool up_to) {
  if (count < 0)
    return fail(INVALID_ARGUMENT, "%s requested %lld < 0 elements", up_to ? "DequeueUpTo" : "DequeueMany", (long long)count);
  for (uint32_t i = 0; i < q->spec.component_count; i++)
    if (!q->spec.components[i].has_shape)
      return fail(INVALID_ARGUMENT, "%s's DequeueMany and DequeueUpTo require the components to have specified shapes.",
                  kind_names[q->spec.kind]);
  if (count > q->spec.capacity && q->spec.capacity != INT64_MAX && count > (INT64_C(1) << 32))
    return fail(RESOURCE_EXHAUSTED, "%lld elements", (long long)count);
  struct attempt *a = attempt_create(call, ATTEMPT_DEQUEUE, count);
  if (!a)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld elements of queue '%s'", (long long)count, q->resource.name);
  a->many = true;
  a->up_to = up_to;
  return run_attempt(q, a);
}

static void cancel_givers(struct queue *q, struct attempt **over) {
  while (q->givers.first) {
    struct attempt *a = line_remove_first(&q->givers);
    if (a->kind == ATTEMPT_ENQUEUE)
      attempt_fail(a, CANCELLED, "Enqueue operation was cancelled", NULL);
    a->next = *over;
    *over = a;
  }
}

status queue_close(struct queue *q, struct host_call *call, bool cancel_pending) {
  struct attempt *a = attempt_create(call, ATTEMPT_CLOSE, 0);
  if (!a)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  if (!cancel_pending)
    return run_attempt(q, a);
  struct attempt *cancelled = NULL;
  pthread_mutex_lock(&q->lock);
  if (q->closed)
    attempt_fail(a, CANCELLED, "Queue '%s' is already closed.", q->resource.name);
  q->closed = true;
  cancel_givers(q, &cancelled);
  a->next = cancelled;
  struct attempt *over = queue_proceed(q);
  pthread_mutex_unlock(&q->lock);
  TRY(tell(q, over, NULL));
  return tell(q, a, a);
}

/* Under the lock. */
static struct attempt *fail_tokens(struct queue *q, status code, const char *text) {
  struct attempt *over = NULL;
  while (q->token_takers.first) {
    struct attempt *a = line_remove_first(&q->token_takers);
    attempt_fail(a, code, "%s", text);
    a->next = over;
    over = a;
  }
  return over;
}

void queue_fail_tokens(struct queue *q, status code, const char *text) {
  pthread_mutex_lock(&q->lock);
  struct attempt *over = fail_tokens(q, code, text);
  pthread_mutex_unlock(&q->lock);
  (void)tell(q, over, NULL); /* none of them is the caller's */
}

void queue_reset_tokens(struct queue *q) {
  struct attempt *over = NULL;
  pthread_mutex_lock(&q->lock);
  if (q->shares.count > 0 || q->token_takers.first) {
    for (; q->size > 0; q->size--)
      queue_tuple_free(*queue_ring_at(q, q->size - 1), q->spec.component_count);
    token_shares_deinit(&q->shares);
    over = fail_tokens(q, ABORTED, "variables were restored");
  }
  pthread_mutex_unlock(&q->lock);
  (void)tell(q, over, NULL);
}

int64_t queue_size(struct queue *q) {
  pthread_mutex_lock(&q->lock);
  int64_t size = q->size;
  pthread_mutex_unlock(&q->lock);
  return size;
}

bool queue_is_closed(struct queue *q) {
  pthread_mutex_lock(&q->lock);
  bool closed = q->closed;
  pthread_mutex_unlock(&q->lock);
  return closed;
}

const struct queue_spec *queue_get_spec(const struct queue *q) { return &q->spec; }
/* ---- the resource ---- */

static status queue_init(struct resource *resource, void *argument) {
  struct queue *q = (struct queue *)resource;
  q->spec = *(const struct queue_spec *)argument;
  pthread_mutex_init(&q->lock, NULL);
  q->givers.last = &q->givers.first;
  q->takers.last = &q->takers.first;
  q->token_takers.last = &q->token_takers.first;
  resource->explain = queue_explain;
  philox_seed(&q->random, (uint64_t)q->spec.seed, (uint64_t)q->spec.seed2);
  return OK;
}

static void queue_destroy(struct resource *resource) {
  struct queue *q = (struct queue *)resource;
  for (int64_t i = 0; i < q->size; i++)
    queue_tuple_free(*queue_ring_at(q, i), q->spec.component_count);
  free(q->tuples);
  token_shares_deinit(&q->shares);
  pthread_mutex_destroy(&q->lock);
}

const struct resource_maker queue_maker = {"queue", sizeof(struct queue), queue_init, queue_destroy};

static bool components_match(const struct queue_spec *a, const struct queue_spec *b, bool shapes) {
  if (a->component_count != b->component_count)
    return false;
  for (uint32_t i = 0; i < a->component_count; i++) {
    const struct queue_component *x = &a->components[i], *y = &b->components[i];
    if (x->dtype != y->dtype)
      return false;
    if (!shapes)
      continue;
    if (x->has_shape != y->has_shape || (x->has_shape && !shape_equal(&x->shape, &y->shape)))
      return false;
  }
  return true;
}

static long long shown(int64_t capacity) { return capacity == INT64_MAX ? -1 : (long long)capacity; }

status queue_match(const struct queue *q, const struct queue_spec *wanted) {
  const char *name = q->resource.name;
  const struct queue_spec *is = &q->spec;
  if (is->kind != wanted->kind)
    return fail(INVALID_ARGUMENT, "Shared queue '%s' is a %s, not a %s", name, kind_names[is->kind], kind_names[wanted->kind]);
  if (is->capacity != wanted->capacity)
    return fail(INVALID_ARGUMENT, "Shared queue '%s' has capacity %lld but requested capacity was %lld", name, shown(is->capacity),
                shown(wanted->capacity));
  if (is->min_after_dequeue != wanted->min_after_dequeue)
    return fail(INVALID_ARGUMENT, "Shared queue '%s' has min_after_dequeue %lld but requested min_after_dequeue was %lld", name,
                (long long)is->min_after_dequeue, (long long)wanted->min_after_dequeue);
  if (is->seed != wanted->seed || is->seed2 != wanted->seed2)
    return fail(INVALID_ARGUMENT, "Shared queue '%s' has random seeds (%lld, %lld) but requested seeds are (%lld, %lld).", name,
                (long long)is->seed, (long long)is->seed2, (long long)wanted->seed, (long long)wanted->seed2);
  if (!components_match(is, wanted, false))
    return fail(INVALID_ARGUMENT, "Shared queue '%s' has component types that differ from the requested ones", name);
  if (!components_match(is, wanted, true))
    return fail(INVALID_ARGUMENT, "Shared queue '%s' has component shapes that differ from the requested ones", name);
  return OK;
}
