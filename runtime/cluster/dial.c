/* dial.c: how tasks come together: listening on the own address, dialling the others' until they answer.
 *
 * A peer is dialled in the background from the start, again and again with a backoff that doubles up to a second in the end; whether
 * anybody waits for it is another matter (cluster.c). Names that need a name server are looked up on a thread of their own, so that
 * a slow one does not silence the links.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "runtime/cluster/cluster_state.h"

#define BACKOFF_MS_MIN 10
#define BACKOFF_MS_EARLY 80 /* in the first EARLY_MS: a cluster that is being started is to begin at once */
#define BACKOFF_MS_LATE 1000
#define BACKOFF_MS_FULL 2 /* strangers crowd its door: what counts is to be there when it opens */
#define EARLY_MS 30000
#define PAUSE_MS 100 /* out of file descriptors */

/* ---- listening ---- */

static void listener_resume(struct loop_timer *timer) {
  struct listener *listener = (struct listener *)((char *)timer - offsetof(struct listener, pause));
  loop_change(listener->cluster->loop, &listener->source, EPOLLIN);
}

static void listener_pause(struct listener *listener) {
  loop_change(listener->cluster->loop, &listener->source, 0);
  loop_timer_set(listener->cluster->loop, &listener->pause, loop_now_ms() + PAUSE_MS);
}

static void on_accept(struct loop_source *source, uint32_t events) {
  struct listener *listener = (struct listener *)source;
  struct cluster *cluster = listener->cluster;
  struct channel *channel = NULL;
  uint32_t unsaid;
  (void)events;
  for (int i = 0; i < NET_ACCEPTS; i++) {
    int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
      listener_pause(listener);
    if (fd < 0)
      return;
    address_set_options(fd, &listener->address);
    if (address_is_beside(&listener->address) && !address_peer_is_same_user(fd))
      close(fd);
    else if (cluster->channel_count >= NET_CONNECTIONS)
      close(fd);
    else if (channel_create(cluster, fd, NULL, &channel) != OK &&
             admission_may_say(&cluster->admission, status_text(), loop_now_ms(), &unsaid))
      cluster_log(cluster, "refused a connection: %s", status_text());
  }
}

static status listener_add(struct cluster *cluster, const struct address *address) {
  struct listener *listener = &cluster->listeners[cluster->listener_count];
  const char *text = cluster->peers[cluster->task].address;
  int fd = -1, claim;
  TRY(address_claim(address, text, &claim));
  status code = address_listen(address, text, &fd);
  if (code != OK && claim >= 0)
    close(claim);
  TRY(code);
  *listener = (struct listener){
    .source = {.fd = fd, .on_ready = on_accept}, .pause.on_due = listener_resume, .cluster = cluster, .address = *address, .claim = claim};
  cluster->listener_count++;
  return loop_add(cluster->loop, &listener->source, EPOLLIN);
}

static bool meets_beside(const struct cluster *cluster, const char *text) {
  return !cluster->only_addresses && strncmp(text, "unix:", 5) != 0;
}

/* Who has the name beside the address is the same task of the same build, started before. */
static status is_taken(const struct cluster *cluster, const struct address *beside, status code) {
  const struct peer *self = &cluster->peers[cluster->task];
  char process[32] = "";
  pid_t id;
  if (!address_find_process(beside, &id))
    return code;
  if (id)
    snprintf(process, sizeof process, ", as process %d", (int)id);
  return fail(FAILED_PRECONDITION, "%s is already running at %s%s", self->name, self->address, process);
}

status cluster_listen(struct cluster *cluster) {
  const char *text = cluster->peers[cluster->task].address;
  struct address_list addresses;
  struct address beside;
  status named = OK, code = OK;
  TRY(address_resolve(text, &addresses));
  if (!cluster->only_addresses) { /* first: who finds the address finds this, too */
    address_beside(text, cluster->build_id + cluster->task, &beside);
    named = listener_add(cluster, &beside); /* where it cannot, the address serves */
  }
  uint32_t beside_count = cluster->listener_count;
  for (uint32_t i = 0; i < addresses.count; i++) { /* localhost may have an IPv6 address that the machine has not: one success will do */
    status added = listener_add(cluster, &addresses.items[i]);
    code = added == OK ? code : added;
  }
  if (cluster->listener_count > beside_count)
    return OK;
  return named == ALREADY_EXISTS && code == ALREADY_EXISTS ? is_taken(cluster, &beside, code) : code;
}

/* ---- dialling ---- */

static bool is_closing(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  bool closing = cluster->is_closing || cluster->refusal[0];
  pthread_mutex_unlock(&cluster->lock);
  return closing;
}

void peer_dial_failed(struct peer *peer, const char *reason) {
  struct cluster *cluster = peer->cluster;
  pthread_mutex_lock(&cluster->lock);
  if (!peer->gave_up || peer->is_refused) /* what it said itself is the cause, not that nobody listens any more */
    snprintf(peer->reason, sizeof peer->reason, "%s", reason);
  if (peer->is_refused)
    pthread_cond_broadcast(&cluster->changed);
  bool give_up = cluster->is_closing || cluster->refusal[0];
  pthread_mutex_unlock(&cluster->lock);
  if (give_up)
    return;
  if (peer->next_address >= peer->addresses.count)
    peer->addresses.count = 0; /* ask again: a name may move */
  peer->backoff_ms = peer->backoff_ms ? peer->backoff_ms * 2 : BACKOFF_MS_MIN;
  uint64_t now_ms = loop_now_ms();
  uint32_t backoff_ms_max = now_ms - peer->dialled_since_ms < EARLY_MS ? BACKOFF_MS_EARLY : BACKOFF_MS_LATE;
  if (peer->backoff_ms > backoff_ms_max)
    peer->backoff_ms = backoff_ms_max;
  loop_timer_set(cluster->loop, &peer->timer, now_ms + peer->backoff_ms);
}

/* The same way, at once. */
static void dial_again(struct peer *peer) {
  peer->next_address--;
  peer->tried_beside = peer->next_address == 0;
  loop_timer_set(peer->cluster->loop, &peer->timer, loop_now_ms() + BACKOFF_MS_FULL);
}

/* The faster way, when the peer is on this host: it is tried before the first address, and its failure takes no time. */
static bool dial_beside(struct peer *peer) {
  struct cluster *cluster = peer->cluster;
  struct address beside;
  int fd = -1;
  if (!meets_beside(cluster, peer->address))
    return false;
  address_beside(peer->address, cluster->build_id + peer->task, &beside);
  return address_dial(&beside, &fd) == OK && channel_create(cluster, fd, peer, &peer->dialling) == OK;
}

static void dial_next(struct peer *peer) {
  if (peer->next_address == 0 && !peer->tried_beside && dial_beside(peer)) {
    peer->tried_beside = true; /* should it end badly, the next try goes by the address */
    return;
  }
  peer->tried_beside = false;
  const struct address *address = &peer->addresses.items[peer->next_address++];
  int fd = -1;
  status code = address_dial(address, &fd);
  if (code == OK)
    code = channel_create(peer->cluster, fd, peer, &peer->dialling);
  if (code == RESOURCE_EXHAUSTED && peer->next_address > 0) /* a moment later there may be room */
    dial_again(peer);
  else if (code != OK)
    peer_dial_failed(peer, status_text());
}

/* A question to a name server, on a thread of its own. */
struct lookup {
  struct loop_call call; /* first */
  struct peer *peer;
  status code;
  char text[CLUSTER_REASON_BYTES];
  struct address_list addresses;
};

static void lookup_done(struct loop_call *call) {
  struct lookup *lookup = (struct lookup *)call;
  struct peer *peer = lookup->peer;
  pthread_mutex_lock(&peer->cluster->lock);
  peer->cluster->resolving--;
  pthread_mutex_unlock(&peer->cluster->lock);
  peer->is_looking_up = false;
  peer->next_address = 0;
  peer->addresses = lookup->addresses;
  if (is_closing(peer->cluster))
    peer->addresses.count = 0;
  else if (lookup->code == OK)
    dial_next(peer);
  else
    peer_dial_failed(peer, lookup->text);
  free(lookup);
}

static void *lookup_run(void *self) {
  struct lookup *lookup = self;
  lookup->code = address_resolve(lookup->peer->address, &lookup->addresses);
  if (lookup->code != OK)
    snprintf(lookup->text, sizeof lookup->text, "%s", status_text());
  loop_post(lookup->peer->cluster->loop, &lookup->call);
  return NULL;
}

static void lookup_start(struct peer *peer) {
  struct lookup *lookup = calloc(1, sizeof *lookup);
  pthread_t thread;
  bool started = lookup != NULL;
  if (started) {
    lookup->call.run = lookup_done;
    lookup->peer = peer;
    pthread_mutex_lock(&peer->cluster->lock);
    peer->cluster->resolving++;
    started = pthread_create(&thread, NULL, lookup_run, lookup) == 0;
    peer->is_looking_up = started;
    peer->cluster->resolving -= !started;
    pthread_mutex_unlock(&peer->cluster->lock);
  }
  if (started) {
    pthread_detach(thread);
  } else {
    free(lookup);
    peer_dial_failed(peer, "no thread to look its name up");
  }
}

/* With the others we have nothing to talk about before the coordinator has granted our name. */
static bool may_dial(const struct peer *peer) {
  const struct cluster *cluster = peer->cluster;
  return peer->task == cluster->identity.coordinator || cluster->registrar != 0;
}

static void dial(struct peer *peer) {
  if (peer->channel || peer->dialling || peer->is_looking_up || !may_dial(peer) || is_closing(peer->cluster))
    return;
  if (peer->next_address < peer->addresses.count) {
    dial_next(peer);
    return;
  }
  peer->next_address = 0;
  if (!address_is_literal(peer->address)) {
    lookup_start(peer);
    return;
  }
  if (address_resolve(peer->address, &peer->addresses) == OK)
    dial_next(peer);
  else
    peer_dial_failed(peer, status_text());
}

static void on_dial_due(struct loop_timer *timer) { dial((struct peer *)((char *)timer - offsetof(struct peer, timer))); }

void peer_dial(struct peer *peer) {
  peer->timer.on_due = on_dial_due;
  peer->backoff_ms = 0;
  peer->addresses.count = 0; /* its name may have moved since it was last looked up */
  peer->dialled_since_ms = loop_now_ms();
  loop_timer_set(peer->cluster->loop, &peer->timer, peer->dialled_since_ms);
}
