/* parcel.c: what is said to a peer, from any thread, and kept until the peer has it.
 *
 * A parcel goes to the end of the session's list; then whoever can have the connection's lock sends what the channel has not had yet. While
 * there is no channel parcels only gather; when there is one again, those that the peer lacks are sent again. Tensors are held by
 * reference: nothing is copied for the sake of repeating. A parcel is freed when it is acknowledged, or the peer is lost, and nobody is
 * sending it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/cluster/cluster_state.h"
#include "runtime/program/fault.h"

struct outgoing {
  struct session_item item; /* first */
  struct parcel parcel;
  uint32_t holders; /* the session; who is sending it. Under the cluster's lock */
  char data[];
};

static void outgoing_free(struct outgoing *out) {
  tensor_release(out->parcel.tensor);
  free(out);
}

static status outgoing_send(struct link *link, const struct parcel *parcel) {
  struct message message;
  message.kind = parcel->kind;
  message.step = parcel->step;
  message.entry = message.transfer = message.number = parcel->number;
  message.command = parcel->command;
  message.serial = parcel->serial;
  message.code = parcel->code;
  if (parcel->kind == MESSAGE_TENSOR)
    return link_send_tensor(link, &message, tensor_retain(parcel->tensor));
  if (parcel->kind == MESSAGE_CONTROL)
    return link_send_control(link, parcel->topic, parcel->data, parcel->size);
  if (parcel->kind == MESSAGE_DONE || parcel->kind == MESSAGE_RESET || parcel->kind == MESSAGE_BYE)
    snprintf(message.text, sizeof message.text, "%.*s", (int)parcel->size, (const char *)parcel->data);
  return link_send(link, &message);
}

static void ack_send(struct channel *channel, uint64_t received) {
  status sent = link_send(&channel->link, &(struct message){.kind = MESSAGE_ACK, .received = received});
  (void)sent; /* the connection is gone: the next HELLO says it */
}

/* What happens under the cluster's lock between two parcels: gives `sent` back, takes the next. */
struct turn {
  struct outgoing *next, *garbage;
  uint64_t ack; /* 0: none is owed */
};

static struct turn turn_take(struct peer *peer, struct channel *channel, struct outgoing *sent) {
  struct turn turn = {0};
  pthread_mutex_lock(&peer->cluster->lock);
  if (sent && --sent->holders == 0)
    turn.garbage = sent;
  if (peer->channel == channel && channel->has_link) {
    peer->flush_is_posted = false;
    turn.next = (struct outgoing *)session_next(&peer->session);
    if (turn.next)
      turn.next->holders++;
    if (turn.next && session_owes_ack(&peer->session, true))
      turn.ack = session_ack(&peer->session);
  }
  pthread_mutex_unlock(&peer->cluster->lock);
  return turn;
}

void peer_flush(struct peer *peer, struct channel *channel) {
  struct outgoing *sent = NULL;
  for (;;) {
    struct turn turn = turn_take(peer, channel, sent);
    if (turn.garbage)
      outgoing_free(turn.garbage);
    if (turn.ack)
      ack_send(channel, turn.ack);
    if (!turn.next)
      return;
    sent = turn.next;
    status code = outgoing_send(&channel->link, &sent->parcel);
    if (code == CANCELLED)
      connection_abort(channel->connection, status_text()); /* it is closing already */
    else if (code != OK)                                    /* the other side waits for what cannot be sent */
      peer_break(peer, channel, status_text());
  }
}

struct flush {
  struct connection_post post; /* first */
  struct peer *peer;
  struct channel *channel; /* alive as long as post.run gets an HTTP/2 end */
};

static void run_flush(struct connection_post *post, struct http2 *http2) {
  struct flush *flush = (struct flush *)post;
  if (http2)
    peer_flush(flush->peer, flush->channel);
  free(flush);
}

/* Under the cluster's lock: the connection to post the flush to, counted; NULL: none, or that is done already. */
static struct connection *flush_prepare(struct peer *peer, struct flush **out) {
  struct flush *flush = peer->connection && !peer->flush_is_posted ? malloc(sizeof *flush) : NULL;
  *out = flush;
  if (!flush)
    return NULL; /* without memory the next tick does it */
  *flush = (struct flush){.post.run = run_flush, .peer = peer, .channel = peer->channel};
  peer->flush_is_posted = true;
  return connection_retain(peer->connection);
}

static void flush_post(struct connection *connection, struct flush *flush) {
  if (!connection)
    return;
  connection_post(connection, &flush->post);
  connection_release(connection);
}

void peer_flush_soon(struct peer *peer) {
  struct flush *flush;
  pthread_mutex_lock(&peer->cluster->lock);
  struct connection *connection = flush_prepare(peer, &flush);
  pthread_mutex_unlock(&peer->cluster->lock);
  flush_post(connection, flush);
}

bool peer_send(struct peer *peer, const struct parcel *parcel) {
  struct outgoing *out = malloc(sizeof *out + parcel->size);
  struct connection *connection = NULL;
  struct flush *flush = NULL;
  if (out) {
    *out = (struct outgoing){.parcel = *parcel, .holders = 1};
    if (parcel->size > 0)
      memcpy(out->data, parcel->data, parcel->size);
    out->parcel.data = out->data;
  }
  pthread_mutex_lock(&peer->cluster->lock);
  bool is_there = out && peer->session.is_alive && !peer->session.goodbye; /* behind it the peer hears nothing, and acknowledges nothing */
  if (is_there) {
    session_push(&peer->session, &out->item);
    if (parcel->kind == MESSAGE_BYE)
      peer->session.goodbye = out->item.number;
    if (parcel->kind == MESSAGE_START)
      vec_push(&peer->started, parcel->step);
    connection = flush_prepare(peer, &flush);
  }
  pthread_mutex_unlock(&peer->cluster->lock);
  if (!is_there) {
    tensor_release(parcel->tensor);
    free(out);
    return false;
  }
  flush_post(connection, flush);
  return true;
}

/* ---- receiving ---- */

bool peer_take(struct peer *peer, struct channel *channel, uint64_t bytes) {
  uint64_t ack = 0;
  pthread_mutex_lock(&peer->cluster->lock);
  bool is_present = peer->channel == channel;
  if (is_present) {
    session_take(&peer->session, bytes);
    if (session_owes_ack(&peer->session, false))
      ack = session_ack(&peer->session);
  }
  pthread_mutex_unlock(&peer->cluster->lock);
  if (ack)
    ack_send(channel, ack);
  return is_present || FAULT(4) || FAULT(5);
}

void peer_acknowledge(struct peer *peer, struct channel *channel) {
  uint64_t ack = 0;
  pthread_mutex_lock(&peer->cluster->lock);
  if (peer->channel == channel && peer->session.received > peer->session.told)
    ack = session_ack(&peer->session);
  pthread_mutex_unlock(&peer->cluster->lock);
  if (ack)
    ack_send(channel, ack);
}

static void parcels_free(struct session_item *items) {
  while (items) {
    struct outgoing *out = (struct outgoing *)items;
    items = items->next;
    outgoing_free(out);
  }
}

/* Takes those out that somebody is sending at this moment: he frees them. Under the cluster's lock. */
static struct session_item *items_let_go(struct session_item *items) {
  struct session_item *free_now = NULL;
  while (items) {
    struct outgoing *out = (struct outgoing *)items;
    items = items->next;
    if (--out->holders > 0)
      continue;
    out->item.next = free_now;
    free_now = &out->item;
  }
  return free_now;
}

void parcels_let_go(struct cluster *cluster, struct session_item *items) {
  pthread_mutex_lock(&cluster->lock);
  items = items_let_go(items);
  pthread_mutex_unlock(&cluster->lock);
  parcels_free(items);
}

void peer_acknowledged(struct peer *peer, struct channel *channel, uint64_t received) {
  struct session_item *freed = NULL;
  struct cluster *cluster = peer->cluster;
  pthread_mutex_lock(&cluster->lock);
  bool fits = peer->channel != channel || session_acknowledged(&peer->session, received, &freed);
  freed = items_let_go(freed);
  if ((cluster->is_leaving || cluster->is_finished) && session_is_drained(&peer->session))
    pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  parcels_free(freed);
  if (!fits)
    peer_break(peer, channel, "it acknowledges what was not sent");
}
