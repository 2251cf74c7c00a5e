/* session.c: numbers, a list, and two times. */
#include "runtime/cluster/session.h"

#include <stddef.h>
#include "runtime/program/fault.h"
#include "runtime/net/net_limits.h"

void session_begin(struct session *s, struct session_key other, uint64_t now_ms) {
  *s = (struct session){.is_alive = true, .other = other, .heard_ms = now_ms};
}

struct session_item *session_end(struct session *s) {
  struct session_item *items = s->first;
  s->first = s->last = s->unsent = NULL;
  s->is_alive = s->is_suspected = false;
  return items;
}

/* ---- sending ---- */

void session_push(struct session *s, struct session_item *item) {
  item->number = ++s->queued;
  item->next = NULL;
  if (s->last)
    s->last->next = item;
  else
    s->first = item;
  s->last = item;
  if (!s->unsent)
    s->unsent = item;
}

struct session_item *session_next(struct session *s) {
  struct session_item *item = s->unsent;
  if (item)
    s->unsent = item->next;
  return item;
}

bool session_acknowledged(struct session *s, uint64_t received, struct session_item **freed) {
  *freed = NULL;
  uint64_t sent = s->unsent ? s->unsent->number - 1 : s->queued;
  if (received < s->acknowledged || received > sent)
    return false;
  if (received == s->acknowledged)
    return true;
  struct session_item *last = s->first;
  while (last->number < received)
    last = last->next;
  *freed = s->first;
  s->first = last->next;
  last->next = NULL;
  if (!s->first)
    s->last = NULL;
  s->acknowledged = received;
  return true;
}

bool session_is_drained(const struct session *s) { return !s->first; }

bool session_has_heard_goodbye(const struct session *s) { return s->goodbye && s->acknowledged >= s->goodbye; }

/* ---- receiving ---- */

void session_take(struct session *s, uint64_t bytes) {
  s->received++;
  s->untold_bytes += bytes;
}

bool session_owes_ack(const struct session *s, bool along) {
  uint64_t messages = s->received - s->told;
  return messages >= (along ? SESSION_ACK_ALONG : SESSION_ACK_MESSAGES) || s->untold_bytes >= SESSION_ACK_BYTES;
}

uint64_t session_ack(struct session *s) {
  s->told = s->received;
  s->untold_bytes = 0;
  return s->received;
}

/* ---- connections ---- */

static bool is_same(struct session_key a, struct session_key b) { return a.incarnation == b.incarnation && a.given_up == b.given_up; }

bool session_continues(const struct session *s, struct session_key other, struct session_key own, struct session_key meant) {
  return s->is_alive && is_same(s->other, other) && (meant.incarnation == 0 || is_same(meant, own));
}

bool session_resume(struct session *s, uint64_t received, uint64_t now_ms, struct session_item **freed) {
  if (!session_acknowledged(s, received, freed))
    return false;
  if (!FAULT(21))
    s->unsent = s->first;
  s->told = s->received; /* our HELLO says so */
  s->untold_bytes = 0;
  session_heard(s, now_ms);
  return true;
}

/* ---- liveness ---- */

void session_heard(struct session *s, uint64_t now_ms) {
  if (now_ms > s->heard_ms)
    s->heard_ms = now_ms;
}

enum session_health session_health(const struct session *s, bool is_up, uint64_t now_ms, uint64_t timeout_ms) {
  uint64_t silence_ms = now_ms > s->heard_ms ? now_ms - s->heard_ms : 0;
  uint64_t patience_ms = is_up && timeout_ms < NET_SILENCE_MS ? NET_SILENCE_MS : timeout_ms;
  if (silence_ms >= patience_ms)
    return SESSION_LOST;
  return is_up && silence_ms >= NET_SILENCE_MS ? SESSION_SUSPECTED : SESSION_WELL;
}
