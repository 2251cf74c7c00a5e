/* master_partial.c: partial runs in a list, each with the thread that runs its step. */
#include "runtime/master/master_partial.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/net/loop.h"
#include "runtime/step/partial.h"
#include "runtime/value/tensor_message.h"

struct partial_run {
  struct partial_run *next;
  struct partial_list *list;
  char handle[PARTIAL_HANDLE_BYTES];
  char session[17]; /* its handle */
  uint32_t entry;
  struct step_names names;   /* of the setup */
  bool *is_fed, *is_fetched; /* per feed and fetch of the entry */
  int64_t fed_bytes;
  atomic_bool cancelled;
  bool is_busy; /* a call goes on */
  uint64_t used_ms;
  uint32_t references; /* the list's, the thread's, the call's; under the list's lock */
  struct partial *partial;
};
struct partial_list {
  const struct master_config *config;
  pthread_mutex_t lock;
  pthread_cond_t thread_ended;
  struct partial_run *first;
  uint32_t count, thread_count;
  int64_t fed_bytes;
  uint64_t next_number;
};

status partial_list_create(const struct master_config *config, struct partial_list **out) {
  struct partial_list *list = calloc(1, sizeof *list);
  if (!list)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  list->config = config;
  pthread_mutex_init(&list->lock, NULL);
  pthread_cond_init(&list->thread_ended, NULL);
  *out = list;
  return OK;
}

/* Under the list's lock. */
static void run_release(struct partial_run *run) {
  if (!run || --run->references > 0)
    return;
  run->list->fed_bytes -= run->fed_bytes;
  step_names_deinit(&run->names);
  partial_destroy(run->partial);
  free(run->is_fed);
  free(run->is_fetched);
  free(run);
}

/* Takes it off the list; its step is told to stop when it has not ended. Under the list's lock. */
static void run_close(struct partial_run *run) {
  for (struct partial_run **at = &run->list->first; *at; at = &(*at)->next)
    if (*at == run) {
      *at = run->next;
      run->list->count--;
      atomic_store(&run->cancelled, true);
      run_release(run);
      return;
    }
}

void partial_runs_end(struct partial_list *list, const struct session *session) {
  pthread_mutex_lock(&list->lock);
  for (struct partial_run *run = list->first, *next; run; run = next) {
    next = run->next;
    if (!session || strcmp(run->session, session->handle) == 0)
      run_close(run);
  }
  pthread_mutex_unlock(&list->lock);
}

void partial_list_destroy(struct partial_list *list) {
  if (!list)
    return;
  partial_runs_end(list, NULL);
  pthread_mutex_lock(&list->lock);
  while (list->thread_count > 0)
    pthread_cond_wait(&list->thread_ended, &list->lock);
  pthread_mutex_unlock(&list->lock);
  pthread_mutex_destroy(&list->lock);
  pthread_cond_destroy(&list->thread_ended);
  free(list);
}

/* ---- beginning ---- */

static void *run_thread(void *self) {
  struct partial_run *run = self;
  struct partial_list *list = run->list;
  const struct master_run call = {.entry = run->entry, .cancelled = &run->cancelled, .partial = run->partial};
  status code = list->config->run(list->config->self, &call);
  partial_end(run->partial, code, code == OK ? "" : status_text());
  pthread_mutex_lock(&list->lock);
  run_release(run);
  list->thread_count--;
  pthread_cond_broadcast(&list->thread_ended);
  pthread_mutex_unlock(&list->lock);
  return NULL;
}

/* Under the list's lock. */
static status make_room(struct partial_list *list) {
  struct partial_run *oldest = NULL;
  for (struct partial_run *run = list->first; run; run = run->next)
    if (!run->is_busy && (!oldest || run->used_ms < oldest->used_ms))
      oldest = run;
  if (list->count >= LIMIT_MASTER_PARTIALS && oldest)
    run_close(oldest);
  return list->count < LIMIT_MASTER_PARTIALS && list->thread_count < 2 * LIMIT_MASTER_PARTIALS
         ? OK
         : fail(RESOURCE_EXHAUSTED, "%d partial runs are going on", LIMIT_MASTER_PARTIALS);
}

static status run_create(struct partial_list *list, const struct session *session, uint32_t number, struct partial_run **out) {
  const struct master_entry *entry = &list->config->entries[number];
  struct partial_run *run = calloc(1, sizeof *run);
  if (!run)
    return fail(RESOURCE_EXHAUSTED, "no memory for a partial run");
  run->list = list;
  memcpy(run->session, session->handle, sizeof run->session);
  run->entry = number;
  run->references = 1;
  run->used_ms = loop_now_ms();
  run->is_fed = calloc((size_t)entry->feed_count + 1, sizeof *run->is_fed);
  run->is_fetched = calloc((size_t)entry->fetch_count + 1, sizeof *run->is_fetched);
  status code = run->is_fed && run->is_fetched ? partial_create(entry->feed_count, entry->fetch_count, &run->partial)
                                               : fail(RESOURCE_EXHAUSTED, "no memory for a partial run");
  if (code == OK) {
    *out = run;
    return OK;
  }
  pthread_mutex_lock(&list->lock);
  run_release(run);
  pthread_mutex_unlock(&list->lock);
  return code;
}

/* Under the list's lock. */
static status run_enter(struct partial_list *list, struct partial_run *run) {
  pthread_t thread;
  TRY(make_room(list));
  run->references++; /* the thread's */
  if (pthread_create(&thread, NULL, run_thread, run) != 0) {
    run->references--;
    return fail(RESOURCE_EXHAUSTED, "no thread for a partial run");
  }
  pthread_detach(thread);
  list->thread_count++;
  list->count++;
  run->next = list->first;
  list->first = run;
  snprintf(run->handle, sizeof run->handle, "%s;%" PRIu64, run->session, list->next_number++);
  return OK;
}

status partial_run_begin(struct partial_list *list, const struct session *session, uint32_t entry, struct step_names *names,
                         char handle[PARTIAL_HANDLE_BYTES]) {
  struct partial_run *run = NULL;
  if (!list->config->needs)
    return fail(UNIMPLEMENTED, "partial runs are not supported");
  TRY(run_create(list, session, entry, &run));
  run->names = *names;
  *names = (struct step_names){.feeds = {0}};
  pthread_mutex_lock(&list->lock);
  status code = run_enter(list, run);
  if (code == OK)
    memcpy(handle, run->handle, PARTIAL_HANDLE_BYTES);
  else
    run_release(run);
  pthread_mutex_unlock(&list->lock);
  return code;
}

/* ---- going on ---- */

/* The feeds and fetches of one call, as numbers of the entry's. */
struct turn {
  struct partial_run *run;
  const struct master_entry *entry;
  const struct step_request *request;
  struct tensor **feeds; /* per feed of the entry: given now */
  uint8_t *needs;
};

static status turn_check_names(const struct turn *turn) {
  const struct step_names *asked = &turn->request->names;
  for (uint32_t i = 0; i < asked->feeds.count; i++) {
    const char *name = asked->feeds.items[i];
    uint32_t feed = entry_port(turn->entry->feeds, turn->entry->feed_count, name);
    if (name_list_find(&turn->run->names.feeds, name) == UINT32_MAX)
      return fail(INVALID_ARGUMENT, "The feed %s was not specified in partial_run_setup.", name);
    if (feed != UINT32_MAX && turn->run->is_fed[feed])
      return fail(INVALID_ARGUMENT, "The feed %s has already been fed.", name);
  }
  for (uint32_t i = 0; i < asked->fetches.count; i++) {
    const char *name = asked->fetches.items[i];
    if (name_list_find(&turn->run->names.fetches, name) == UINT32_MAX)
      return fail(INVALID_ARGUMENT, "The fetch %s was not specified in partial_run_setup.", name);
    uint32_t fetch = entry_port(turn->entry->fetches, turn->entry->fetch_count, name);
    if (turn->run->is_fetched[fetch] || name_list_find(&asked->fetches, name) != i)
      return fail(INVALID_ARGUMENT, "The fetch %s has already been fetched.", name);
  }
  return asked->targets.count == 0 ? OK : fail(INVALID_ARGUMENT, "a partial run takes its targets in partial_run_setup");
}

/* What is fed now, read and checked. */
static status turn_read_feeds(struct turn *turn) {
  const struct master_config *config = turn->run->list->config;
  const struct step_request *request = turn->request;
  for (uint32_t i = 0; i < request->names.feeds.count; i++) {
    uint32_t feed = entry_port(turn->entry->feeds, turn->entry->feed_count, request->names.feeds.items[i]);
    if (feed == UINT32_MAX)
      continue; /* a placeholder that the entry never reads */
    if (turn->feeds[feed])
      return fail(INVALID_ARGUMENT, "Endpoint \"%s\" fed more than once.", request->names.feeds.items[i]);
    status code = tensor_message_read(request->feed_values.items[i], &turn->feeds[feed]);
    if (code != OK)
      return status_prefix(code, "the feed of %s: ", request->names.feeds.items[i]);
    if (config->check_feed)
      TRY(config->check_feed(config->self, turn->run->entry, feed, turn->feeds[feed]));
  }
  return OK;
}

static status turn_check_fetches(struct turn *turn) {
  const struct master_config *config = turn->run->list->config;
  const name_list *asked = &turn->request->names.fetches;
  for (uint32_t i = 0; i < asked->count; i++) {
    memset(turn->needs, 0, turn->entry->feed_count);
    TRY(config->needs(config->self, turn->run->entry, entry_port(turn->entry->fetches, turn->entry->fetch_count, asked->items[i]),
                      turn->needs));
    for (uint32_t feed = 0; feed < turn->entry->feed_count; feed++)
      if (turn->needs[feed] && !turn->run->is_fed[feed] && !turn->feeds[feed])
        return fail(INVALID_ARGUMENT, "Fetch %s can't be computed from the feeds that have been fed so far.", asked->items[i]);
  }
  return OK;
}

/* What comes is kept until the run ends: all of it together is bounded. */
static status turn_claim(struct turn *turn) {
  struct partial_list *list = turn->run->list;
  int64_t bytes = 0;
  for (uint32_t i = 0; i < turn->entry->feed_count; i++)
    bytes += turn->feeds[i] ? tensor_byte_size(turn->feeds[i]) : 0;
  pthread_mutex_lock(&list->lock);
  bool fits = list->fed_bytes + bytes <= LIMIT_MASTER_FED_BYTES;
  list->fed_bytes += fits ? bytes : 0;
  turn->run->fed_bytes += fits ? bytes : 0;
  pthread_mutex_unlock(&list->lock);
  return fits ? OK : fail(RESOURCE_EXHAUSTED, "partial runs keep at most %lld bytes of feeds", (long long)LIMIT_MASTER_FED_BYTES);
}

static void turn_feed(struct turn *turn) {
  for (uint32_t i = 0; i < turn->entry->feed_count; i++)
    if (turn->feeds[i]) {
      partial_feed(turn->run->partial, i, turn->feeds[i]);
      turn->run->is_fed[i] = true;
      turn->feeds[i] = NULL;
    }
}

/* Nothing more can be asked of it: the step ends by itself. */
static bool run_is_complete(const struct partial_run *run, const struct master_entry *entry) {
  for (uint32_t i = 0; i < entry->feed_count; i++)
    if (!run->is_fed[i])
      return false;
  for (uint32_t i = 0; i < run->names.fetches.count; i++)
    if (!run->is_fetched[entry_port(entry->fetches, entry->fetch_count, run->names.fetches.items[i])])
      return false;
  return true;
}

static status turn_fetch(struct turn *turn, const atomic_bool *cancelled, struct wire_buffer *out) {
  const name_list *asked = &turn->request->names.fetches;
  for (uint32_t i = 0; i < asked->count; i++) {
    uint32_t fetch = entry_port(turn->entry->fetches, turn->entry->fetch_count, asked->items[i]);
    struct tensor *tensor;
    TRY(partial_await(turn->run->partial, fetch, cancelled, &tensor));
    turn->run->is_fetched[fetch] = true;
    tensor_message_write(out, 1, asked->items[i], tensor);
    tensor_release(tensor);
  }
  return OK;
}

/* Sets *is_over when the run ends with this call. */
static status turn_take(struct turn *turn, const atomic_bool *cancelled, struct wire_buffer *out, bool *is_over) {
  turn->feeds = calloc((size_t)turn->entry->feed_count + 1, sizeof *turn->feeds);
  turn->needs = calloc((size_t)turn->entry->feed_count + 1, 1);
  if (!turn->feeds || !turn->needs)
    return fail(RESOURCE_EXHAUSTED, "no memory for a step");
  TRY(turn_check_names(turn));
  TRY(turn_read_feeds(turn));
  TRY(turn_check_fetches(turn));
  TRY(turn_claim(turn));
  *is_over = true; /* from here on, unless it goes well */
  turn_feed(turn);
  TRY(turn_fetch(turn, cancelled, out));
  *is_over = run_is_complete(turn->run, turn->entry);
  return *is_over ? partial_await_end(turn->run->partial, cancelled) : OK;
}

static void turn_deinit(struct turn *turn) {
  for (uint32_t i = 0; turn->feeds && i < turn->entry->feed_count; i++)
    tensor_release(turn->feeds[i]);
  free(turn->feeds);
  free(turn->needs);
}

/* Under the list's lock. */
static status run_hold(struct partial_list *list, const struct session *session, const struct wire_field *handle,
                       struct partial_run **out) {
  for (struct partial_run *run = list->first; run; run = run->next) {
    bool is_named = handle->size == strlen(run->handle) && memcmp(run->handle, handle->data, handle->size) == 0;
    if (!is_named || strcmp(run->session, session->handle) != 0)
      continue;
    if (run->is_busy)
      return fail(FAILED_PRECONDITION, "another call of this partial run has not ended");
    run->is_busy = true;
    run->references++;
    run->used_ms = loop_now_ms();
    *out = run;
    return OK;
  }
  return fail(INVALID_ARGUMENT, "Must run PartialRunSetup before performing partial runs");
}

status partial_run_continue(struct partial_list *list, const struct session *session, const struct step_request *request,
                            const atomic_bool *cancelled, struct wire_buffer *out) {
  struct partial_run *run = NULL;
  bool is_over = false;
  pthread_mutex_lock(&list->lock);
  status held = run_hold(list, session, &request->partial, &run);
  pthread_mutex_unlock(&list->lock);
  TRY(held);
  struct turn turn = {.run = run, .entry = &list->config->entries[run->entry], .request = request};
  status code = turn_take(&turn, cancelled, out, &is_over);
  turn_deinit(&turn);
  pthread_mutex_lock(&list->lock);
  run->is_busy = false;
  run->used_ms = loop_now_ms();
  if (is_over)
    run_close(run);
  run_release(run);
  pthread_mutex_unlock(&list->lock);
  return code;
}
