/* meeting_value.c: what comes of the contributions to a round: sums are made without the lock by whoever finds them complete. */
#include "runtime/resource/meeting_state.h"

#include <stdio.h>
#include <stdlib.h>

struct value *meeting_value_find(struct meeting *m, const struct meeting_value_spec *spec) {
  for (struct value *v = m->values; v; v = v->next)
    if (v->spec.key == spec->key)
      return v;
  struct value *v = calloc(1, sizeof *v);
  uint64_t *steps = calloc(m->round.options.seats, sizeof *steps);
  if (!v || !steps) {
    free(v);
    free(steps);
    return NULL;
  }
  *v = (struct value){.next = m->values, .spec = *spec, .steps = steps};
  return m->values = v;
}

struct value_entry *meeting_value_entry(const struct value *v, uint32_t seat, uint64_t step) {
  for (uint32_t i = 0; i < v->entries.count; i++)
    if (v->entries.items[i].seat == seat && v->entries.items[i].step == step)
      return &v->entries.items[i];
  return NULL;
}

/* What no round can take any more, and what the result is of already, when that is decided. */
void meeting_value_sweep(const struct meeting *m, struct value *v) {
  uint32_t kept = 0;
  bool is_made = meeting_value_is_of(m, v, true); /* of exactly those: a sum made ahead may be of one more that has left */
  for (uint32_t i = 0; i < v->entries.count; i++) {
    struct value_entry e = v->entries.items[i];
    bool is_used = is_made && m->round.seats[e.seat].taken == e.step;
    if (round_keeps(&m->round, e.seat, e.step) && !is_used)
      v->entries.items[kept++] = e;
    else
      tensor_release(e.tensor);
  }
  v->entries.count = kept;
}

/* The step of a seat that counts: in the round that was decided last, or in the open one as it stands. */
static uint64_t step_that_counts(const struct meeting *m, uint32_t seat, bool is_decided) {
  const struct round_seat *s = &m->round.seats[seat];
  return is_decided ? s->taken : s->is_member ? (s->given ? s->given : s->entered) : 0;
}

bool meeting_value_is_of(const struct meeting *m, const struct value *v, bool is_decided) {
  for (uint32_t i = 0; i < m->round.options.seats; i++)
    if (v->steps[i] != step_that_counts(m, i, is_decided))
      return false;
  return v->is_known;
}

/* Whether all contributions are here that the result needs. */
bool meeting_value_is_complete(const struct meeting *m, const struct value *v, bool is_decided) {
  bool some = false;
  for (uint32_t i = 0; i < m->round.options.seats; i++) {
    uint64_t step = step_that_counts(m, i, is_decided);
    bool is_wanted = is_decided ? step != 0 : m->round.seats[i].is_member;
    if (is_wanted && (!step || !meeting_value_entry(v, i, step)))
      return false;
    some = some || is_wanted;
  }
  return some;
}

bool meeting_value_is_lost(const struct meeting *m, const struct value *v) {
  bool is = false;
  for (uint32_t i = 0; i < m->round.options.seats && !m->round.options.has_leader; i++) {
    const struct round_seat *seat = &m->round.seats[i];
    is = is || (seat->is_gone && !meeting_value_entry(v, i, seat->taken));
  }
  return is;
}

static bool is_waited_for(const struct meeting *m, const struct value *v) {
  for (const struct wait_entry *e = m->waiting.first; e; e = e->next) {
    const struct hold *h = e->own;
    if (h->kind == HOLD_VALUE && h->value == v && round_given(&m->round, h->seat, h->step) == ROUND_GO)
      return true;
  }
  return false;
}

/* Under the lock, which is given back while it computes. */
void meeting_value_compute(struct meeting *m, struct value *v, bool is_decided) {
  uint32_t seats = m->round.options.seats;
  struct tensor **given = calloc(seats, sizeof *given), *result = NULL;
  struct collective_values values = {v->spec.kind, MERGE_ADD, v->spec.mean, 0, given};
  v->is_known = false;
  for (uint32_t i = 0; i < seats; i++) {
    v->steps[i] = step_that_counts(m, i, is_decided);
    if (given && v->steps[i])
      given[values.count++] = tensor_retain(meeting_value_entry(v, i, v->steps[i])->tensor);
  }
  struct tensor *old = v->result;
  v->result = NULL;
  v->is_busy = true;
  pthread_mutex_unlock(&m->hall->lock);
  tensor_release(old);
  status code = given ? collective_common(&values, &result) : fail(RESOURCE_EXHAUSTED, "no memory");
  char text[sizeof v->text];
  snprintf(text, sizeof text, "%s", code == OK ? "" : status_text());
  for (int64_t i = 0; i < values.count; i++)
    tensor_release(given[i]);
  free(given);
  pthread_mutex_lock(&m->hall->lock);
  v->is_busy = false;
  v->is_known = true;
  v->result = result;
  v->code = code;
  snprintf(v->text, sizeof v->text, "%s", text);
}

/* A value that can be computed now: one that is waited for first, then those of the open round. */
struct value *meeting_value_ready(struct meeting *m, bool *is_decided) {
  *is_decided = true;
  for (struct value *v = m->values; v; v = v->next)
    if (!v->is_busy && !meeting_value_is_of(m, v, true) && is_waited_for(m, v) && meeting_value_is_complete(m, v, true))
      return v;
  *is_decided = false;
  for (struct value *v = m->values; v; v = v->next)
    if (!v->is_busy && m->round.phase == ROUND_OPEN && meeting_value_is_complete(m, v, false) && !meeting_value_is_of(m, v, false) &&
        !is_waited_for(m, v))
      return v;
  return NULL;
}
