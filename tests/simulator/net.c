/* net.c: streams between simulated machines. */
#include "tests/simulator/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>

#include "tests/simulator/fiber.h"
#include "tests/simulator/poll.h"
#include "tests/simulator/world.h"

#define RETRY_NS (200 * WORLD_MS) /* what does not get through is sent again */
#define CONNECT_TRIES 7           /* 1 + 2 + 4 + ... s */

static VEC(struct endpoint *) endpoints; /* all that were ever made */
static struct { uint64_t blocked_until_ns, more_ns, distance_ns; } links[MACHINES_MAX][MACHINES_MAX];
static uint64_t refuses_until_ns[MACHINES_MAX];
static uint16_t next_port = 40000;

/* ---- names ---- */

static uint32_t ip_of(uint32_t machine) { return 0x0a000001u + machine; }

static void name_set(struct name *name, const void *address, socklen_t size) {
  memset(&name->address, 0, sizeof name->address);
  memcpy(&name->address, address, size);
  name->size = size;
}

static bool is_unix(const struct name *name) { return name->address.ss_family == AF_UNIX; }
static uint16_t port_of(const struct name *name) { return ntohs(((const struct sockaddr_in *)&name->address)->sin_port); }

static void name_set_tcp(struct name *name, uint32_t ip, uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
  name_set(name, &address, sizeof address);
}

/* The machine with the name's address; NULL: there is none. */
static struct machine *machine_of(const struct endpoint *endpoint, const struct name *name) {
  if (is_unix(name))
    return endpoint->machine;
  uint32_t ip = ntohl(((const struct sockaddr_in *)&name->address)->sin_addr.s_addr);
  if (ip >> 24 == 127)
    return endpoint->machine;
  return ip - ip_of(0) < MACHINES_MAX ? machine_get(ip - ip_of(0)) : NULL;
}

/* ---- endpoints ---- */

static void changed(const struct endpoint *endpoint) {
  if (!endpoint->is_closed)
    poll_wake(endpoint->file.process);
}

static void close_endpoint(struct file *file, bool was_killed);
const struct file_kind endpoint_kind = {"socket", close_endpoint};

static struct endpoint *make(struct process *process, struct machine *machine, int family) {
  struct endpoint *endpoint = calloc(1, sizeof *endpoint);
  if (!endpoint)
    abort();
  *endpoint = (struct endpoint){.file = {.kind = &endpoint_kind, .process = process}, .machine = machine, .cut_at = UINT64_MAX};
  endpoint->own.address.ss_family = (sa_family_t)family;
  endpoint->own.size = sizeof(sa_family_t);
  vec_push(&endpoints, endpoint);
  return endpoint;
}

struct endpoint *endpoint_create(struct process *process, int family) {
  return make(process, process->machine, family);
}

uint32_t endpoint_events(const struct endpoint *e) {
  bool can_read = e->first < e->arrived || e->is_ended || e->is_reset;
  switch (e->state) {
  case ENDPOINT_NEW: return EPOLLOUT | EPOLLHUP;
  case ENDPOINT_LISTENS: return e->waiting.count ? EPOLLIN : 0;
  case ENDPOINT_CONNECTS: return 0;
  case ENDPOINT_FAILED: return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP;
  case ENDPOINT_CONNECTED: break;
  }
  uint32_t events = can_read ? EPOLLIN : 0;
  events |= e->is_reset ? EPOLLERR | EPOLLHUP | EPOLLOUT | EPOLLRDHUP : 0;
  events |= e->is_ended ? EPOLLRDHUP | (e->is_shut ? EPOLLHUP : 0) : 0;
  return events | (e->is_shut || e->peer->held < world_manner()->socket_room ? EPOLLOUT : 0);
}

/* ---- on its way ---- */

/* Of a connection that is being made. */
static uint64_t way_of(const struct machine *from, const struct machine *to) {
  return world_manner()->latency_ns + links[from->number][to->number].distance_ns;
}

static uint64_t delay_of(const struct endpoint *from, const struct endpoint *to) {
  uint64_t latency = from->machine == to->machine ? 5 * WORLD_US : world_manner()->latency_ns;
  return latency + random_below(world_random(), latency) + links[from->machine->number][to->machine->number].more_ns +
         links[from->machine->number][to->machine->number].distance_ns;
}

static uint64_t blocked_for(const struct machine *a, const struct machine *b) {
  uint64_t until = links[a->number][b->number].blocked_until_ns;
  if (a->is_down || b->is_down)
    return RETRY_NS;
  return until > world_now() ? until - world_now() + random_below(world_random(), RETRY_NS) : 0;
}

static void send_segment(struct endpoint *to, struct segment segment);

/* The next segment has come, unless the way is blocked: then it comes later. */
static void on_arrival(void *self, uint64_t number) {
  struct endpoint *e = self;
  (void)number;
  if (e->arrived == e->segments.count)
    return; /* it was lost with its connection */
  uint64_t wait_ns = e->stuck_until_ns > world_now() ? e->stuck_until_ns - world_now() : 0;
  if (!wait_ns && e->peer)
    wait_ns = blocked_for(e->machine, e->peer->machine);
  if (wait_ns) {
    world_after(wait_ns, on_arrival, e, 0);
    return;
  }
  const struct segment *segment = &e->segments.items[e->arrived];
  if (e->is_closed || e->is_gone) { /* nobody is there: what comes is answered by a reset */
    if (segment->kind == SEGMENT_DATA && e->peer && !e->peer->is_closed)
      send_segment(e->peer, (struct segment){.kind = SEGMENT_RESET});
    e->arrived++;
    return;
  }
  if (e->state == ENDPOINT_CONNECTS)
    e->state = ENDPOINT_CONNECTED;
  e->arrived++;
  e->is_gone |= segment->kind == SEGMENT_RESET;
  if (segment->kind != SEGMENT_DATA && e->first == e->arrived - 1) {
    e->is_ended = true;
    e->is_reset |= segment->kind == SEGMENT_RESET;
    e->first++;
  }
  changed(e);
}

static void send_segment(struct endpoint *to, struct segment segment) {
  uint64_t due = world_now() + (to->peer ? delay_of(to->peer, to) : WORLD_US);
  due = due > to->last_due_ns ? due : to->last_due_ns;
  due += segment.size * WORLD_S / world_manner()->bytes_per_s;
  to->last_due_ns = due;
  to->held += segment.size;
  vec_push(&to->segments, segment);
  world_after(due - world_now(), on_arrival, to, 0);
}

/* ---- listening and connecting ---- */

static struct endpoint *find_listener(const struct machine *machine, const struct name *name) {
  for (uint32_t i = 0; i < endpoints.count; i++) {
    struct endpoint *e = endpoints.items[i];
    if (e->is_closed || !e->has_bound || e->machine != machine || is_unix(&e->own) != is_unix(name))
      continue;
    if (is_unix(name) ? e->own.size == name->size && memcmp(&e->own.address, &name->address, name->size) == 0
                      : port_of(&e->own) == port_of(name))
      return e;
  }
  return NULL;
}

int endpoint_bind(struct endpoint *endpoint, const struct sockaddr *address, socklen_t size) {
  struct name name;
  name_set(&name, address, size);
  if (!is_unix(&name) && address->sa_family != AF_INET)
    return EADDRNOTAVAIL;
  if (!is_unix(&name) && machine_of(endpoint, &name) != endpoint->machine && ((const struct sockaddr_in *)address)->sin_addr.s_addr)
    return EADDRNOTAVAIL;
  if (find_listener(endpoint->machine, &name))
    return EADDRINUSE;
  endpoint->own = name;
  endpoint->has_bound = true;
  return 0;
}

int endpoint_listen(struct endpoint *endpoint) {
  endpoint->state = ENDPOINT_LISTENS;
  return 0;
}

static struct endpoint *pair_with(struct endpoint *client, struct endpoint *listener) {
  struct endpoint *server = make(listener->file.process, listener->machine, client->own.address.ss_family);
  server->state = ENDPOINT_CONNECTED;
  server->own = client->other;
  server->other = client->own;
  server->peer = client;
  client->peer = server;
  vec_push(&listener->waiting, server);
  changed(listener);
  return server;
}

static void fail_connecting(struct endpoint *client, int error) {
  client->state = ENDPOINT_FAILED;
  client->error = error;
  changed(client);
}

static void on_answer(void *self, uint64_t error) {
  struct endpoint *client = self;
  if (client->is_closed) {
    if (client->peer && !client->peer->is_closed)
      send_segment(client->peer, (struct segment){.kind = SEGMENT_RESET});
    return;
  }
  if (error) {
    fail_connecting(client, (int)error);
  } else if (client->state == ENDPOINT_CONNECTS) {
    client->state = ENDPOINT_CONNECTED;
    changed(client);
  }
}

/* Somebody knocks at the other machine. */
static void on_knock(void *self, uint64_t number) {
  struct endpoint *client = self;
  struct machine *machine = machine_of(client, &client->other);
  (void)number;
  if (client->is_closed)
    return;
  if (!machine || blocked_for(client->machine, machine)) {
    if (client->try_count++ == CONNECT_TRIES)
      fail_connecting(client, machine ? ETIMEDOUT : EHOSTUNREACH);
    else
      world_after(WORLD_S << (client->try_count - 1), on_knock, client, 0);
    return;
  }
  struct endpoint *listener = find_listener(machine, &client->other);
  bool refused = !listener || listener->state != ENDPOINT_LISTENS || refuses_until_ns[machine->number] > world_now();
  uint64_t delay = way_of(machine, client->machine);
  if (!refused)
    pair_with(client, listener);
  client->last_due_ns = world_now() + delay;
  world_after(delay, on_answer, client, refused ? ECONNREFUSED : 0);
}

int endpoint_connect(struct endpoint *client, const struct sockaddr *address, socklen_t size) {
  name_set(&client->other, address, size);
  if (is_unix(&client->other)) {
    struct endpoint *listener = find_listener(client->machine, &client->other);
    if (!listener || listener->state != ENDPOINT_LISTENS || refuses_until_ns[client->machine->number] > world_now())
      return ECONNREFUSED;
    client->state = ENDPOINT_CONNECTED;
    pair_with(client, listener);
    return 0;
  }
  if (address->sa_family != AF_INET)
    return ENETUNREACH;
  name_set_tcp(&client->own, ip_of(client->machine->number), next_port++);
  client->state = ENDPOINT_CONNECTS;
  const struct machine *machine = machine_of(client, &client->other);
  world_after(machine ? way_of(client->machine, machine) : world_manner()->latency_ns, on_knock, client, 0);
  return EINPROGRESS;
}

struct endpoint *endpoint_accept(struct endpoint *endpoint) {
  if (endpoint->waiting.count == 0)
    return NULL;
  struct endpoint *first = endpoint->waiting.items[0];
  endpoint->waiting.count--;
  memmove(endpoint->waiting.items, endpoint->waiting.items + 1, endpoint->waiting.count * sizeof first);
  return first;
}

/* ---- streams ---- */

static void break_now(struct endpoint *e, enum net_cut how);

int64_t endpoint_send(struct endpoint *e, const struct iovec *pieces, size_t count) {
  if (e->is_reset || e->is_shut)
    return -EPIPE;
  if (e->state != ENDPOINT_CONNECTED)
    return e->state == ENDPOINT_CONNECTS ? -EAGAIN : -ENOTCONN;
  uint64_t room = world_manner()->socket_room > e->peer->held ? world_manner()->socket_room - e->peer->held : 0, total = 0, size = 0;
  for (size_t i = 0; i < count; i++)
    total += pieces[i].iov_len;
  uint64_t wanted = total < room ? total : room;
  if (wanted == 0)
    return total ? -EAGAIN : 0;
  if (e->cut_at - e->sent < wanted)
    wanted = e->cut_at - e->sent ? e->cut_at - e->sent : 1;
  char *data = malloc(wanted);
  if (!data)
    abort();
  for (size_t i = 0; i < count && size < wanted; i++) {
    uint64_t part = pieces[i].iov_len < wanted - size ? pieces[i].iov_len : wanted - size;
    memcpy(data + size, pieces[i].iov_base, part);
    size += part;
  }
  e->sent += size;
  if (e->is_swallowed) {
    free(data);
    return (int64_t)size;
  }
  send_segment(e->peer, (struct segment){.kind = SEGMENT_DATA, .size = (uint32_t)size, .data = data});
  if (e->sent >= e->cut_at)
    break_now(e, e->cut_how);
  return (int64_t)size;
}

/* Nothing behind a reset: what is sent after the break has lost what was sent before it. */
static uint64_t take(struct endpoint *e, char *to, uint64_t size) {
  uint64_t done = 0;
  while (done < size && !e->is_reset && e->first < e->arrived && e->segments.items[e->first].kind == SEGMENT_DATA) {
    struct segment *segment = &e->segments.items[e->first];
    uint64_t part = segment->size - segment->at < size - done ? segment->size - segment->at : size - done;
    memcpy(to + done, segment->data + segment->at, part);
    done += part;
    segment->at += (uint32_t)part;
    if (segment->at == segment->size) {
      free(segment->data);
      e->first++;
    }
  }
  e->held -= done;
  return done;
}

/* The end, or the reset, that comes behind what was read. */
static void reach_end(struct endpoint *e) {
  for (; e->first < e->arrived && e->segments.items[e->first].kind != SEGMENT_DATA; e->first++) {
    e->is_ended = true;
    e->is_reset |= e->segments.items[e->first].kind == SEGMENT_RESET;
  }
}

int64_t endpoint_receive(struct endpoint *e, const struct iovec *pieces, size_t count, bool peek) {
  int64_t done = 0;
  if (e->state != ENDPOINT_CONNECTED)
    return e->state == ENDPOINT_FAILED && e->error ? -e->error : e->state == ENDPOINT_CONNECTS ? -EAGAIN : -ENOTCONN;
  if (peek)
    return e->first < e->arrived ? 1 : e->is_reset ? -ECONNRESET : e->is_ended ? 0 : -EAGAIN;
  for (size_t i = 0; i < count; i++) {
    uint64_t got = take(e, pieces[i].iov_base, pieces[i].iov_len);
    done += (int64_t)got;
    if (got < pieces[i].iov_len)
      break;
  }
  reach_end(e);
  if (done > 0) {
    changed(e->peer);
    return done;
  }
  return e->is_reset ? -ECONNRESET : e->is_ended ? 0 : -EAGAIN;
}

void endpoint_shut(struct endpoint *e) {
  if (e->is_shut || e->state != ENDPOINT_CONNECTED)
    return;
  e->is_shut = true;
  if (!e->is_swallowed)
    send_segment(e->peer, (struct segment){.kind = SEGMENT_END});
}

uint64_t endpoint_unsent(const struct endpoint *e) {
  uint64_t size = 0;
  for (uint32_t i = e->peer ? e->peer->arrived : 0; e->peer && i < e->peer->segments.count; i++)
    size += e->peer->segments.items[i].size;
  return size;
}

static void close_endpoint(struct file *file, bool was_killed) {
  struct endpoint *e = (struct endpoint *)file;
  (void)was_killed;
  file->process->files[file->number] = NULL;
  e->is_closed = true;
  for (uint32_t i = 0; i < e->waiting.count; i++) {
    e->waiting.items[i]->is_closed = true;
    if (!e->machine->is_down)
      send_segment(e->waiting.items[i]->peer, (struct segment){.kind = SEGMENT_RESET});
  }
  if (e->state != ENDPOINT_CONNECTED || e->is_reset || e->machine->is_down || e->is_swallowed)
    return;
  bool has_unread = e->first < e->arrived;
  if (has_unread)
    send_segment(e->peer, (struct segment){.kind = SEGMENT_RESET});
  else if (!e->is_shut)
    send_segment(e->peer, (struct segment){.kind = SEGMENT_END});
}

/* ---- what goes wrong ---- */

/* Of what is on its way to the endpoint only the first bytes arrive. */
static void lose_tail(struct endpoint *e) {
  uint64_t total = 0;
  for (uint32_t i = e->arrived; i < e->segments.count; i++)
    total += e->segments.items[i].size;
  uint64_t kept = random_below(world_random(), total + 1);
  uint32_t i = e->arrived;
  for (; i < e->segments.count && kept > 0; i++) {
    struct segment *segment = &e->segments.items[i];
    uint32_t size = segment->size < kept ? segment->size : (uint32_t)kept;
    e->held -= segment->size - size;
    segment->size = size;
    kept -= size;
  }
  for (uint32_t lost = i; lost < e->segments.count; lost++)
    e->held -= e->segments.items[lost].size;
  e->segments.count = i;
}

static void break_now(struct endpoint *e, enum net_cut how) {
  struct endpoint *peer = e->peer;
  e->cut_at = peer->cut_at = UINT64_MAX;
  lose_tail(e);
  lose_tail(peer);
  if (how != NET_CUT_SILENT)
    send_segment(e, (struct segment){.kind = how == NET_CUT_END ? SEGMENT_END : SEGMENT_RESET});
  if (how == NET_CUT_RESET || how == NET_CUT_END)
    send_segment(peer, (struct segment){.kind = how == NET_CUT_END ? SEGMENT_END : SEGMENT_RESET});
  e->is_swallowed = true;
  peer->is_swallowed = how != NET_CUT_HALF; /* then it is told when it sends */
}

static bool is_between(const struct endpoint *e, uint32_t a, uint32_t b) {
  return e->state == ENDPOINT_CONNECTED && !e->is_closed && !e->peer->is_closed && !e->is_swallowed && e->machine->number == a &&
         e->peer->machine->number == b;
}

uint32_t net_connections(uint32_t a, uint32_t b) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < endpoints.count; i++)
    count += is_between(endpoints.items[i], a, b);
  return count;
}

/* One of the connections between them, or NULL. */
static struct endpoint *choose(uint32_t a, uint32_t b) {
  uint64_t chosen = random_below(world_random(), net_connections(a, b));
  for (uint32_t i = 0; i < endpoints.count; i++)
    if (is_between(endpoints.items[i], a, b) && chosen-- == 0)
      return endpoints.items[i];
  return NULL;
}

bool net_cut(uint32_t a, uint32_t b, enum net_cut how, uint64_t after) {
  struct endpoint *e = choose(a, b);
  if (e && after == 0) {
    break_now(e, how);
  } else if (e) {
    e->cut_at = e->sent + after;
    e->cut_how = how;
  }
  return e != NULL;
}

bool net_stick(uint32_t a, uint32_t b, uint64_t until_ns) {
  struct endpoint *e = choose(a, b);
  if (e)
    e->stuck_until_ns = e->peer->stuck_until_ns = until_ns;
  return e != NULL;
}

void net_tear(uint32_t machine) {
  for (uint32_t i = 0; i < endpoints.count; i++) {
    struct endpoint *e = endpoints.items[i];
    if (e->machine->number == machine && e->state == ENDPOINT_CONNECTED && !e->is_closed && !e->peer->is_closed && !e->is_swallowed)
      break_now(e, NET_CUT_RESET);
  }
}

void net_block(uint32_t a, uint32_t b, uint64_t until_ns) { links[a][b].blocked_until_ns = links[b][a].blocked_until_ns = until_ns; }
void net_refuse(uint32_t machine, uint64_t until_ns) { refuses_until_ns[machine] = until_ns; }
void net_slow(uint32_t a, uint32_t b, uint64_t more_ns) { links[a][b].more_ns = links[b][a].more_ns = more_ns; }
void net_set_distance(uint32_t a, uint32_t b, uint64_t more_ns) { links[a][b].distance_ns = links[b][a].distance_ns = more_ns; }
