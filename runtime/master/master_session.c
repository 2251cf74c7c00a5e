/* master_session.c: sessions, and the memory of request ids that makes a client's retry visible. */
#include "runtime/master/master_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "runtime/master/master.h"
#include "runtime/master/master_callable.h"
#include "runtime/net/loop.h"

#define RING_SIZE (sizeof((struct request_ids *)0)->ring / sizeof(uint64_t))
#define SLOT_COUNT (sizeof((struct request_ids *)0)->slots / sizeof(uint32_t))

void session_release(struct session *session) {
  if (!session || --session->references > 0)
    return;
  callables_destroy(session);
  free(session->options.visible);
  free(session->known);
  free(session->seen);
  free(session);
}

void session_close(struct session_list *list, struct session *session) {
  for (struct session **at = &list->first; *at; at = &(*at)->next)
    if (*at == session) {
      *at = session->next;
      list->count--;
      session->is_closed = true;
      session_release(session);
      return;
    }
}

void session_close_all(struct session_list *list) {
  while (list->first)
    session_close(list, list->first);
}

static struct session *oldest_idle(const struct session_list *list) {
  struct session *oldest = NULL;
  for (struct session *session = list->first; session; session = session->next)
    if (session->references == 1 && (!oldest || session->used_ms < oldest->used_ms))
      oldest = session;
  return oldest;
}

status session_create(struct session_list *list, uint32_t node_count, uint32_t task_count, struct session **out) {
  if (list->count >= LIMIT_MASTER_SESSIONS && oldest_idle(list))
    session_close(list, oldest_idle(list));
  if (list->count >= LIMIT_MASTER_SESSIONS)
    return fail(RESOURCE_EXHAUSTED, "%d sessions are in use", LIMIT_MASTER_SESSIONS);
  struct session *session = calloc(1, sizeof *session);
  uint8_t *known = calloc((size_t)node_count + 1, 1);
  atomic_uint_fast64_t *seen = calloc((size_t)task_count + 1, sizeof *seen);
  uint64_t number = 0;
  if (!session || !known || !seen || getrandom(&number, sizeof number, 0) != sizeof number) {
    free(session);
    free(known);
    free(seen);
    return fail(RESOURCE_EXHAUSTED, "no memory for a session");
  }
  snprintf(session->handle, sizeof session->handle, "%016" PRIx64, number);
  session->known = known;
  session->seen = seen;
  session->references = 2;
  session->used_ms = loop_now_ms();
  session->next = list->first;
  list->first = session;
  list->count++;
  *out = session;
  return OK;
}

struct session *session_find(struct session_list *list, const char *handle, uint64_t size) {
  for (struct session *session = list->first; session; session = session->next)
    if (size == strlen(session->handle) && memcmp(session->handle, handle, size) == 0) {
      session->references++;
      session->used_ms = loop_now_ms();
      return session;
    }
  return NULL;
}

/* ---- request ids ---- */

static uint32_t slot_of(uint64_t id) { return (uint32_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOT_COUNT; }

static void slots_rebuild(struct request_ids *ids) {
  memset(ids->slots, 0, sizeof ids->slots);
  for (uint32_t i = 0; i < RING_SIZE; i++)
    if (ids->ring[i]) {
      uint32_t slot = slot_of(ids->ring[i]);
      while (ids->slots[slot])
        slot = (slot + 1) % SLOT_COUNT;
      ids->slots[slot] = i + 1;
    }
}

bool request_ids_add(struct request_ids *ids, uint64_t id) {
  if (id == 0)
    return false;
  uint32_t slot = slot_of(id), probes = 0;
  for (; ids->slots[slot]; slot = (slot + 1) % SLOT_COUNT, probes++)
    if (ids->ring[ids->slots[slot] - 1] == id)
      return true;
  uint32_t place = ids->next % RING_SIZE;
  bool is_reused = ids->ring[place] != 0; /* slots of ids that left the ring stay behind, until they are in the way */
  ids->ring[place] = id;
  ids->next = (place + 1) % (uint32_t)RING_SIZE;
  ids->slots[slot] = place + 1;
  if (is_reused && (probes > 16 || ids->next == 0))
    slots_rebuild(ids);
  return false;
}
