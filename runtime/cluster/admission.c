/* admission.c: places and times of strangers and clients. */
#include "runtime/cluster/admission.h"

#include <stddef.h>
#include <string.h>
#include "base/map.h"
#include "runtime/net/net_limits.h"

#define SAID_MS 10000

static void guest_unlink(struct admission *a, struct guest *guest) {
  *(guest->newer ? &guest->newer->older : &a->newest) = guest->older;
  *(guest->older ? &guest->older->newer : &a->oldest) = guest->newer;
  guest->newer = guest->older = NULL;
}

/* The lower, the less is lost with it. */
enum worth { WORTH_NOTHING, WORTH_GREETING, WORTH_CLIENT, WORTH_AT_WORK };

static enum worth worth(const struct guest *guest) {
  if (atomic_load(&guest->grpc.has_session))
    return atomic_load(&guest->grpc.calls) > 0 ? WORTH_AT_WORK : WORTH_CLIENT;
  return guest->is_greeting ? WORTH_GREETING : WORTH_NOTHING;
}

/* The oldest of those that are worth least; where all are clients at work, the newest. */
static struct guest *victim_find(const struct admission *a) {
  struct guest *least = NULL;
  for (struct guest *guest = a->oldest; guest; guest = guest->newer)
    if (!guest->is_going && (!least || worth(guest) < worth(least) || worth(guest) == WORTH_AT_WORK))
      least = guest;
  return least;
}

struct guest *admission_enter(struct admission *a, struct guest *guest, uint64_t now_ms) {
  struct guest *leaves = a->count >= NET_STRANGERS ? victim_find(a) : NULL;
  if (leaves) {
    leaves->is_going = true;
    a->count--;
  }
  guest->is_in = true;
  guest->useful_ms = now_ms;
  guest->older = a->newest;
  *(a->newest ? &a->newest->newer : &a->oldest) = guest;
  a->newest = guest;
  a->count++;
  return leaves;
}

void admission_leave(struct admission *a, struct guest *guest) {
  if (!guest->is_in)
    return;
  guest_unlink(a, guest);
  guest->is_in = false;
  a->count -= !guest->is_going;
}

/* In the middle of a request or an answer, and nothing moves. */
static bool has_stalled(struct guest *guest, const struct guest_state *state, uint64_t now_ms) {
  bool is_client = atomic_load(&guest->grpc.has_session);
  if (!state->is_waiting) {
    guest->waiting_since_ms = 0;
  } else if (guest->waiting_since_ms == 0 || state->bytes - guest->waiting_bytes >= NET_STALL_BYTES) {
    guest->waiting_since_ms = now_ms;
    guest->waiting_bytes = state->bytes;
  }
  return guest->waiting_since_ms && now_ms - guest->waiting_since_ms > (is_client ? NET_STALL_MS : NET_STRANGER_MS);
}

const char *admission_check(struct guest *guest, const struct guest_state *state, uint64_t now_ms) {
  bool is_client = atomic_load(&guest->grpc.has_session);
  if (!guest->is_in || guest->is_going)
    return NULL;
  if (state->has_calls && !guest->is_greeting)
    guest->useful_ms = now_ms;
  if (!is_client && now_ms - guest->useful_ms > NET_STRANGER_MS)
    return guest->is_greeting ? "it has not said which task it is" : "it says nothing";
  return has_stalled(guest, state, now_ms) ? "the client has stalled" : NULL;
}

bool admission_may_say(struct admission *a, const char *text, uint64_t now_ms, uint32_t *unsaid) {
  uint64_t hash = hash_bytes(text, strlen(text), 0);
  *unsaid = 0;
  if (now_ms - a->log_since_ms >= SAID_MS) {
    *unsaid = a->unsaid;
    a->log_since_ms = now_ms;
    a->said = a->unsaid = 0;
  }
  bool is_new = a->said < ADMISSION_SAID_MAX;
  for (uint32_t i = 0; i < a->said; i++)
    is_new = is_new && a->said_hashes[i] != hash;
  if (is_new)
    a->said_hashes[a->said++] = hash;
  else
    a->unsaid++;
  return is_new;
}
