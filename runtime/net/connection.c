/* connection.c: reading, writing and closing one socket.
 *
 * The lock guards the HTTP/2 end and the writing side of the socket. The list of posts has a lock of its own, held for a
 * few instructions. Whoever gives the lock back looks at the list once more, so that a post whose owner found the lock
 * taken is never left behind.
 */
#include "runtime/net/connection.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REASON_BYTES 160
#define TARGET_BYTES_MIN 4096     /* below, one read into the buffer is cheaper than two pieces */
#define BUFFER_BYTES_BESIDE 16384 /* beside a target: the next frame's header and a little */
#define TLS_ALERT 21              /* RFC 8446, 5.1: how a record begins that refuses us */
#define TLS_MAJOR 3
#define DRAIN_MS 5000 /* for the last bytes to leave, and the peer to close after us */

struct connection {
  struct loop_source source; /* first: the loop gives it back */
  struct loop_timer drain;
  struct loop_call call;
  atomic_bool call_is_posted;
  struct loop *loop;
  const struct connection_handler *handler;
  void *user;
  atomic_int references;
  size_t round_bytes;
  bool is_connecting;
  bool is_shut;        /* connection_shutdown was called */
  bool is_written_off; /* our half of the socket is closed */
  bool is_closed;      /* loop's thread */

  pthread_mutex_t lock;
  struct http2 *http2;
  struct tls *tls;   /* NULL: none */
  bool has_received; /* bytes of the peer */
  bool is_refused;   /* by TLS, and what it has to say about it is sent */
  bool is_broken;
  bool cannot_write; /* the socket refuses; what the peer has said before may still be read */
  char reason[REASON_BYTES];

  pthread_mutex_t posts_lock;
  struct connection_post *first, *last;
};

struct connection *connection_retain(struct connection *c) {
  atomic_fetch_add(&c->references, 1);
  return c;
}

void connection_release(struct connection *c) {
  if (!c || atomic_fetch_sub(&c->references, 1) != 1)
    return;
  pthread_mutex_destroy(&c->lock);
  pthread_mutex_destroy(&c->posts_lock);
  free(c);
}

void *connection_user(const struct connection *c) { return c->user; }
void connection_set_round(struct connection *c, size_t bytes) { c->round_bytes = bytes; }
struct http2 *connection_http2(const struct connection *c) {
  return c->http2;
}

bool connection_is_for(const struct connection *c, const char *name) { return !c->tls || tls_is_for(c->tls, name); }
bool connection_is_refused(const struct connection *c) { return c->is_refused; }

static void break_off(struct connection *c, const char *reason) { /* under the lock */
  if (c->is_broken)
    return;
  c->is_broken = true;
  if (!c->cannot_write && !c->is_refused) /* else it has the reason */
    snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* ---- writing: under the lock, any thread ---- */

/* What is to be sent now, sealed where there is TLS (*sealed is room for it). 0: nothing. */
static int output(struct connection *c, struct iovec *sealed, const struct iovec **out) {
  const uint8_t *bytes;
  size_t taken = 0;
  if (!c->tls)
    return http2_output(c->http2, out);
  if (tls_output(c->tls, &bytes) == 0 && tls_is_open(c->tls) && !c->is_refused) {
    int count = http2_output(c->http2, out);
    if (count > 0 && tls_send(c->tls, *out, count, &taken) != OK)
      break_off(c, status_text());
    if (taken > 0)
      http2_written(c->http2, taken);
  }
  *sealed = (struct iovec){.iov_len = tls_output(c->tls, &bytes)};
  sealed->iov_base = (void *)bytes;
  *out = sealed;
  return sealed->iov_len > 0;
}

static void output_sent(struct connection *c, size_t size) {
  if (c->tls)
    tls_sent(c->tls, size);
  else
    http2_written(c->http2, size);
}

static void write_off(struct connection *c) {
  const uint8_t *bytes;
  if (!(c->is_shut || c->is_refused) || c->is_written_off || (!c->is_refused && http2_has_queued(c->http2)))
    return;
  c->is_written_off = true;
  if (c->tls) {
    tls_finish(c->tls);
    struct iovec end = {.iov_len = tls_output(c->tls, &bytes)};
    end.iov_base = (void *)bytes;
    ssize_t sent = sendmsg(c->source.fd, &(struct msghdr){.msg_iov = &end, .msg_iovlen = 1}, MSG_NOSIGNAL | MSG_DONTWAIT); /* a few bytes */
    (void)sent;
  }
  shutdown(c->source.fd, SHUT_WR); /* the peer still reads all that was sent; close() alone could take it back */
}

/* Writes until the socket is full, nothing is left, or about `budget` bytes have gone; asks the loop to go on. */
static void pump(struct connection *c, size_t budget) {
  const struct iovec *pieces;
  struct iovec sealed;
  bool is_full = false;
  while (!c->is_broken && !c->cannot_write && !c->is_connecting && !c->is_written_off && !is_full && budget > 0) {
    int count = output(c, &sealed, &pieces);
    if (count == 0)
      break;
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    ssize_t written = sendmsg(c->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      is_full = true;
    } else if (written < 0) {
      c->cannot_write = true;
      if (!c->is_refused)
        snprintf(c->reason, sizeof c->reason, "%s", strerror(errno));
    } else {
      output_sent(c, (size_t)written);
      budget = (size_t)written < budget ? budget - (size_t)written : 0;
    }
  }
  bool can_write = !c->is_broken && !c->cannot_write && !c->is_written_off;
  bool has_more = can_write && (c->is_connecting || is_full || output(c, &sealed, &pieces) > 0);
  loop_change(c->loop, &c->source, has_more ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (can_write && !has_more)
    write_off(c);
}

static void posts_run(struct connection *c) {
  for (;;) {
    pthread_mutex_lock(&c->posts_lock);
    struct connection_post *post = c->first;
    c->first = c->last = NULL;
    pthread_mutex_unlock(&c->posts_lock);
    if (!post)
      return;
    while (post) {
      struct connection_post *next = post->next;
      post->run(post, c->http2);
      post = next;
    }
  }
}

static bool posts_are_pending(struct connection *c) {
  pthread_mutex_lock(&c->posts_lock);
  bool pending = c->first != NULL;
  pthread_mutex_unlock(&c->posts_lock);
  return pending;
}

/* Lets the loop look at the connection: it broke on another thread. */
static void loop_notify(struct connection *c) {
  if (!atomic_exchange(&c->call_is_posted, true)) {
    connection_retain(c);
    loop_post(c->loop, &c->call);
  }
}

static void posts_try(struct connection *c, size_t budget) {
  while (posts_are_pending(c) && pthread_mutex_trylock(&c->lock) == 0) {
    posts_run(c);
    bool broke = false;
    if (c->http2) {
      pump(c, budget);
      broke = c->is_broken || c->cannot_write;
    }
    pthread_mutex_unlock(&c->lock);
    if (broke)
      loop_notify(c);
  }
}

void connection_post(struct connection *c, struct connection_post *post) {
  post->next = NULL;
  pthread_mutex_lock(&c->posts_lock);
  if (c->last)
    c->last->next = post;
  else
    c->first = post;
  c->last = post;
  pthread_mutex_unlock(&c->posts_lock);
  posts_try(c, NET_DIRECT_BYTES);
}

/* ---- reading: the loop's thread, under the lock ---- */

static void feed(struct connection *c, const uint8_t *data, size_t size) {
  if (size > 0 && !c->is_broken && http2_receive(c->http2, loop_now_ms(), data, size) != OK) {
    pump(c, SIZE_MAX); /* the GOAWAY */
    break_off(c, status_text());
  }
}

/* TLS has refused the peer, or it us: no more than that is said, and the peer's close is waited for, as closing with unread bytes would
 * take it back. */
static void refuse(struct connection *c, const char *reason) {
  if (c->is_refused)
    return;
  c->is_refused = true;
  snprintf(c->reason, sizeof c->reason, "%s", reason);
  pump(c, SIZE_MAX);
}

/* What was received, opened: into the coming tensor's memory where there is one. */
static void open_sealed(struct connection *c, const uint8_t *data, size_t size) {
  uint8_t plain[BUFFER_BYTES_BESIDE];
  size_t got = 1;
  status code = tls_receive(c->tls, data, size);
  while (code == OK && got > 0 && !c->is_broken) {
    uint8_t *target = NULL;
    size_t target_size = c->handler->target ? c->handler->target(c, &target) : 0, frame_left = http2_frame_left(c->http2);
    if (target_size > frame_left)
      target_size = frame_left;
    bool direct = target_size >= TARGET_BYTES_MIN;
    code = tls_read(c->tls, direct ? target : plain, direct ? target_size : sizeof plain, &got);
    feed(c, direct ? target : plain, got);
  }
  if (code != OK)
    refuse(c, status_text());
}

/* The socket has ended or failed, or has nothing now. */
static void read_none(struct connection *c, ssize_t got) {
  if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    break_off(c, strerror(errno));
  if (got == 0)
    break_off(c, c->is_shut ? "" : "the peer has closed the connection");
}

/* With TLS: at once what is there, opened record by record. */
static size_t read_sealed(struct connection *c, bool *is_empty) {
  uint8_t *buffer = loop_buffer(c->loop);
  ssize_t got = recv(c->source.fd, buffer, NET_READ_BYTES, MSG_DONTWAIT);
  *is_empty = got < NET_READ_BYTES;
  if (got <= 0)
    read_none(c, got);
  else if (!c->is_refused)
    open_sealed(c, buffer, (size_t)got);
  return got > 0 ? (size_t)got : 0;
}

/* Returns the bytes read; less than could have been: the socket is empty. */
static size_t read_some(struct connection *c, bool *is_empty) {
  if (c->tls)
    return read_sealed(c, is_empty);
  uint8_t *target = NULL, *buffer = loop_buffer(c->loop);
  size_t target_size = c->handler->target ? c->handler->target(c, &target) : 0;
  size_t frame_left = http2_frame_left(c->http2);
  if (target_size > frame_left)
    target_size = frame_left; /* beyond, a frame's header is in the way */
  bool direct = target_size >= TARGET_BYTES_MIN;
  struct iovec pieces[2] = {{target, target_size}, {buffer, direct ? BUFFER_BYTES_BESIDE : NET_READ_BYTES}};
  struct msghdr message = {.msg_iov = direct ? pieces : pieces + 1, .msg_iovlen = direct ? 2 : 1};
  ssize_t got = recvmsg(c->source.fd, &message, MSG_DONTWAIT);
  *is_empty = true;
  if (got <= 0) {
    read_none(c, got);
    return 0;
  }
  if (!c->has_received && !direct && got > 1 && buffer[0] == TLS_ALERT && buffer[1] == TLS_MAJOR)
    break_off(c, "it speaks TLS only: start this task with --tls-cert, --tls-key and --tls-ca");
  c->has_received = true;
  size_t in_target = !direct ? 0 : (size_t)got < target_size ? (size_t)got : target_size;
  *is_empty = (size_t)got < in_target + pieces[1].iov_len;
  feed(c, target, in_target);
  feed(c, buffer, (size_t)got - in_target);
  return (size_t)got;
}

static void read_all(struct connection *c) {
  bool is_empty = false;
  for (size_t bytes = 0; !is_empty && bytes < c->round_bytes && !c->is_broken;)
    bytes += read_some(c, &is_empty);
}

/* ---- life ---- */

static void teardown(struct connection *c) {
  c->is_closed = true;
  pthread_mutex_lock(&c->lock);
  int fd = c->source.fd;
  loop_remove(c->loop, &c->source);
  loop_timer_clear(c->loop, &c->drain);
  close(fd);
  http2_destroy(c->http2);
  c->http2 = NULL;
  if (c->tls)
    tls_destroy(c->tls);
  c->tls = NULL;
  posts_run(c);
  pthread_mutex_unlock(&c->lock);
  posts_try(c, 0);
  c->handler->on_closed(c, c->reason);
}

static void run_release(struct loop_call *call) {
  struct connection *c = (struct connection *)((char *)call - offsetof(struct connection, call));
  connection_release(c);
}

/* The loop's thread, without the lock: ends what has broken. */
static void check_broken(struct connection *c) {
  if (c->is_closed)
    return;
  pthread_mutex_lock(&c->lock);
  if (c->cannot_write && !c->is_broken) {
    read_all(c);
    break_off(c, "");
  }
  pthread_mutex_unlock(&c->lock);
  if (!c->is_broken)
    return;
  teardown(c);
  /* the loop's reference: later, because this round's events may still point here */
  if (!atomic_exchange(&c->call_is_posted, true)) {
    c->call.run = run_release;
    loop_post(c->loop, &c->call);
  } else {
    connection_release(c); /* run_notified still holds one */
  }
}

static void run_notified(struct loop_call *call) {
  struct connection *c = (struct connection *)((char *)call - offsetof(struct connection, call));
  atomic_store(&c->call_is_posted, false);
  check_broken(c);
  connection_release(c);
}

static bool is_own_end(int fd) { /* TCP can connect a port to itself when nobody listens there */
  struct sockaddr_storage own = {0}, peer = {0};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 && own.ss_family != AF_UNIX &&
         getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 && own_size == peer_size && memcmp(&own, &peer, own_size) == 0;
}

static void finish_connecting(struct connection *c) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(c->source.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0 && is_own_end(c->source.fd))
    error = ECONNREFUSED;
  c->is_connecting = false;
  if (error != 0)
    break_off(c, strerror(error));
  else if (c->tls && tls_receive(c->tls, NULL, 0) != OK) /* it speaks first */
    refuse(c, status_text());
  if (error == 0 && c->handler->on_connected)
    c->handler->on_connected(c);
}

static void on_ready(struct loop_source *source, uint32_t events) {
  struct connection *c = (struct connection *)source;
  pthread_mutex_lock(&c->lock);
  if (c->is_connecting && events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
    finish_connecting(c);
  if (!c->is_broken && !c->is_connecting && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
    read_all(c);
  posts_run(c);
  pump(c, NET_ROUND_BYTES);
  bool is_over = !c->is_broken && !c->is_shut && http2_is_over(c->http2);
  if (is_over) {
    c->is_shut = true;
    write_off(c);
  }
  is_over |= c->is_refused && c->drain.due_ms == 0;
  pthread_mutex_unlock(&c->lock);
  if (is_over)
    loop_timer_set(c->loop, &c->drain, loop_now_ms() + DRAIN_MS);
  check_broken(c);
  if (!c->is_closed)
    posts_try(c, NET_DIRECT_BYTES);
}

void connection_visit(struct connection *c, void (*visit)(struct connection *connection)) {
  if (c->is_closed)
    return;
  pthread_mutex_lock(&c->lock);
  if (!c->is_broken && !c->is_connecting)
    visit(c);
  posts_run(c);
  pump(c, NET_ROUND_BYTES);
  pthread_mutex_unlock(&c->lock);
  check_broken(c);
  if (!c->is_closed)
    posts_try(c, NET_DIRECT_BYTES);
}

static void on_drained(struct loop_timer *timer) {
  struct connection *c = (struct connection *)((char *)timer - offsetof(struct connection, drain));
  connection_abort(c, "");
}

status connection_create(struct loop *loop, int fd, struct tls *tls, bool is_server, bool is_connecting,
                         const struct connection_handler *handler, void *user, struct connection **out) {
  struct connection *c = calloc(1, sizeof *c);
  status code = c ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a connection");
  if (code == OK) {
    c->source = (struct loop_source){.fd = fd, .on_ready = on_ready};
    c->tls = tls;
    c->drain.on_due = on_drained;
    c->call.run = run_notified;
    c->loop = loop;
    c->handler = handler;
    c->user = user;
    c->references = 1;
    c->round_bytes = NET_ROUND_BYTES;
    c->is_connecting = is_connecting;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->posts_lock, NULL);
    code = http2_create(is_server, &handler->http2, c, &c->http2);
  }
  if (code == OK)
    code = loop_add(loop, &c->source, EPOLLIN | EPOLLOUT);
  if (code != OK) {
    close(fd);
    if (tls)
      tls_destroy(tls);
    if (c)
      http2_destroy(c->http2);
    connection_release(c);
    return code;
  }
  *out = c;
  return OK;
}

struct close_post {
  struct connection_post post;
  struct connection *connection;
  const char *reason;
};

/* The loop may be in a handler, under the lock already: then a post is the way, and it runs before the lock goes. */
static void run_shutdown(struct connection_post *post, struct http2 *http2) {
  struct connection *c = ((struct close_post *)post)->connection;
  free(post);
  if (!http2)
    return;
  c->is_shut = true;
  http2_goaway(http2);
}

static void run_abort(struct connection_post *post, struct http2 *http2) {
  struct close_post *closing = (struct close_post *)post;
  if (http2) {
    break_off(closing->connection, closing->reason);
    loop_notify(closing->connection);
  }
  free(closing);
}

static void close_post_send(struct connection *c, const char *reason, void (*run)(struct connection_post *, struct http2 *)) {
  size_t size = reason ? strlen(reason) + 1 : 0;
  struct close_post *closing = malloc(sizeof *closing + size);
  if (!closing)
    return;
  char *text = (char *)(closing + 1);
  if (reason)
    memcpy(text, reason, size);
  *closing = (struct close_post){.post.run = run, .connection = c, .reason = text};
  connection_post(c, &closing->post);
}

void connection_shutdown(struct connection *c) {
  if (c->is_closed)
    return;
  loop_timer_set(c->loop, &c->drain, loop_now_ms() + DRAIN_MS);
  close_post_send(c, NULL, run_shutdown);
}

void connection_abort(struct connection *c, const char *reason) {
  if (!c->is_closed)
    close_post_send(c, reason, run_abort);
}
