/* registrar.c: one name, one holder. */
#include "runtime/cluster/registrar.h"

#include "runtime/program/fault.h"
#include "runtime/net/net_limits.h"

static enum registrar_answer grant(struct registrar_name *name, uint64_t incarnation, uint64_t now_ms) {
  name->holder = incarnation;
  name->generation++;
  name->granted_ms = now_ms;
  name->is_linked = false;
  name->gone = name->probes; /* those were about another holder */
  return REGISTRAR_GRANTED;
}

static bool is_silent(const struct registrar_name *name, uint64_t now_ms) {
  return now_ms > name->heard_ms && now_ms - name->heard_ms >= NET_SILENCE_MS;
}

enum registrar_answer registrar_ask(struct registrar_name *name, uint64_t incarnation, uint64_t generation, uint64_t opened_ms,
                                    uint64_t now_ms, uint32_t *probe) {
  if (name->holder == incarnation)
    return REGISTRAR_GRANTED;
  if (FAULT(16))
    return grant(name, incarnation, now_ms);
  if (generation > 0)
    return REGISTRAR_DISPLACED;
  if (!name->holder)
    return grant(name, incarnation, now_ms);
  if (!name->is_linked || is_silent(name, now_ms))
    return opened_ms > name->granted_ms ? grant(name, incarnation, now_ms) : REGISTRAR_LATE;
  if (*probe <= name->gone)
    *probe = ++name->probes;
  return *probe <= name->answered ? REGISTRAR_REFUSED : REGISTRAR_HELD;
}

void registrar_linked(struct registrar_name *name, uint64_t incarnation, uint64_t now_ms) {
  if (name->holder != incarnation)
    return;
  name->is_linked = true;
  name->heard_ms = now_ms;
}

void registrar_unlinked(struct registrar_name *name, uint64_t incarnation) {
  if (name->holder != incarnation)
    return;
  name->is_linked = false;
  name->gone = name->probes;
}

void registrar_heard(struct registrar_name *name, uint64_t now_ms) {
  if (now_ms > name->heard_ms)
    name->heard_ms = now_ms;
}

void registrar_answered(struct registrar_name *name, uint32_t probe, uint64_t now_ms) {
  registrar_heard(name, now_ms);
  if (probe > name->answered && probe <= name->probes)
    name->answered = probe;
}
