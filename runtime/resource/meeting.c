/* meeting.c: who holds in a meeting: steps that hold in a list are asked again after every change. */
#include "runtime/resource/meeting_state.h"

#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALL_MESSAGES 256 /* of one post */

/* The key of a meeting in messages. */
static uint64_t name_key(const char *name) {
  uint64_t key = UINT64_C(1469598103934665603);
  for (; *name; name++)
    key = (key ^ (uint8_t)*name) * UINT64_C(1099511628211);
  return key;
}

/* ---- holding ---- */

static void hold_free(void *own) {
  tensor_release(((struct hold *)own)->own);
  free(own);
}

static status hold(struct meeting *m, const struct meeting_step *s, struct hold h) {
  struct hold *own = malloc(sizeof *own);
  struct wait_entry *entry = own ? wait_list_add(&m->waiting, s->call, h.kind) : NULL;
  if (!entry) {
    tensor_release(h.own);
    free(own);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  *own = h;
  entry->own = own;
  entry->free_own = hold_free;
  return OK;
}

static status give_flag(struct host_call *call, bool value) {
  return tensor_copy_in(DTYPE_BOOL, &(struct shape){0}, &value, &call->outputs[0]);
}

/* A step that repeats what is over, and what came of it is not kept: a task was started again since. */
static bool is_forgotten(const struct meeting *m, const struct hold *h) {
  return m->round.phase == ROUND_OPEN && h->own && !meeting_value_is_complete(m, h->value, true);
}

/* It changes nothing where updates have a leader: any value will do for what it still computes. Else it needs the right one. */
static enum round_answer repeat_alone(const struct meeting *m, const struct hold *h, struct host_call *call, status *code,
                                      const char **text) {
  if (!m->round.options.has_leader) {
    *code = ABORTED;
    *text = "what the round gave is not kept";
    return ROUND_GO;
  }
  call->outputs[0] = tensor_retain(h->own);
  return ROUND_GO;
}

/* A value of the last round that is not there: of its first values all have brought their share before it was decided, of those that are
 * behind them not yet. Where a share is lost nobody has ended the step, and all do it again. */
static enum round_answer ask_for_missing(struct meeting *m, const struct hold *h, struct host_call *call, status *code, const char **text) {
  if (is_forgotten(m, h))
    return repeat_alone(m, h, call, code, text);
  if (!meeting_value_is_lost(m, h->value) || FAULT(56))
    return ROUND_HOLD;
  meeting_undo(m);
  *code = ABORTED;
  *text = "a task of the group was lost in the middle of the round, which is met again";
  return ROUND_GO;
}

/* HOLD: it waits on. */
static enum round_answer ask_again(struct meeting *m, const struct hold *h, struct host_call *call, status *code, const char **text) {
  struct round *r = &m->round;
  enum round_answer answer = ROUND_GO;
  switch (h->kind) {
  case HOLD_ENTER: return round_enter(r, h->seat, h->step, h->is_committed);
  case HOLD_GIVE: return round_given(r, h->seat, h->step);
  case HOLD_END: return round_end(r, h->seat, h->step);
  case HOLD_LEAD:
    answer = round_lead(r, h->seat, h->step);
    if (answer != ROUND_HOLD)
      *code = give_flag(call, answer == ROUND_LEADS);
    return answer;
  case HOLD_VALUE: break;
  }
  answer = round_given(r, h->seat, h->step);
  bool is_coming = answer == ROUND_STALE && r->seats[h->seat].entered == h->step; /* it has not given all yet */
  if (answer != ROUND_GO)
    return is_coming ? ROUND_HOLD : answer;
  if (h->value->is_busy)
    return ROUND_HOLD;
  if (!meeting_value_is_of(m, h->value, true))
    return ask_for_missing(m, h, call, code, text);
  *code = h->value->code;
  *text = h->value->text;
  if (*code == OK)
    call->outputs[0] = tensor_retain(h->value->result);
  return ROUND_GO;
}

#define STALE_TEXT "the round went on without this step"

static bool settle_once(struct meeting *m, struct wait_entry **over) {
  bool moved = false;
  for (struct wait_entry **at = &m->waiting.first; *at;) {
    status code = OK;
    const char *text = "";
    enum round_answer answer = ask_again(m, (*at)->own, (*at)->call, &code, &text);
    if (answer == ROUND_HOLD) {
      at = &(*at)->next;
      continue;
    }
    bool is_stale = answer == ROUND_STALE;
    wait_list_move(&m->waiting, at, is_stale ? ABORTED : code, is_stale ? STALE_TEXT : text, over);
    moved = true;
  }
  return moved;
}

/* What was given with the contributions that the round has taken. */
void meeting_note_numbers(struct meeting *m) {
  if (m->numbered == m->round.number)
    return;
  m->numbered = m->round.number;
  for (uint32_t i = 0; i < m->round.options.seats; i++)
    m->taken[i] = m->round.seats[i].taken ? m->given[i] : (struct seat_numbers){0};
}

void meeting_undo(struct meeting *m) {
  meeting_note_numbers(m);
  memset(m->taken, 0, m->round.options.seats * sizeof *m->taken);
}

static void post(struct meeting *m) {
  struct round *r = &m->round;
  struct wire_message wire[HALL_MESSAGES];
  for (uint32_t h = 0; h < r->options.holders && r->out.count; h++) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->out.count; i++) {
      struct round_message *o = &r->out.items[i];
      if (o->holder == h)
        wire[count++] = (struct wire_message){m->key, o->step, o->number, o->word, r->options.holder, o->seat, 0};
      bool is_last = i + 1 == r->out.count || count == HALL_MESSAGES;
      if (count && is_last && !m->hall->peers.send(m->hall->peers.self, m->holders[h], wire, count * sizeof *wire))
        r->is_torn = true;
      count = is_last ? 0 : count;
    }
  }
  r->out.count = 0;
}

struct wait_entry *meeting_fail_all(struct meeting *m, status code, const char *text) {
  struct wait_entry *over = NULL;
  while (m->waiting.first)
    wait_list_move_first(&m->waiting, code, text, &over);
  return over;
}

void meeting_append_over(struct wait_entry **over, struct wait_entry *more) {
  while (*over)
    over = &(*over)->next;
  *over = more;
}

/* Under the lock: everything that follows from a change. */
void meeting_follow_up(struct meeting *m, struct wait_entry **over) {
  struct value *v;
  bool is_decided;
  for (;;) {
    meeting_note_numbers(m);
    post(m);
    if (m->round.is_torn) {
      meeting_append_over(over, meeting_fail_all(m, UNAVAILABLE, "the other tasks that hold the variables of the round were lost"));
      return;
    }
    if (settle_once(m, over))
      continue;
    for (v = m->values; v; v = v->next)
      meeting_value_sweep(m, v);
    v = meeting_value_ready(m, &is_decided);
    if (!v)
      return;
    meeting_value_compute(m, v, is_decided);
  }
}

/* ---- who is missing ---- */

static const char *waiting_for(const struct meeting *m) { return m->resource.name; }

static void describe(const struct meeting *m, uint32_t task, char *out, size_t size) {
  if (m->hall->has_peers)
    m->hall->peers.describe(m->hall->peers.self, task, out, size);
  else
    snprintf(out, size, "task %u", task);
}

/* OK: those that wait may go on waiting. DEADLINE_EXCEEDED: waiting once more is of no use. */
static status missing_too_long(const struct meeting *m, uint64_t now) {
  char who[400];
  const struct round *r = &m->round;
  uint32_t seat = round_late(r, now);
  if (seat == ROUND_NOBODY)
    return OK;
  describe(m, m->seats[seat], who, sizeof who);
  return fail(DEADLINE_EXCEEDED, "round %llu of '%s' waits for %s, which was not there for %.3g s",
              (unsigned long long)r->number + (r->phase == ROUND_OPEN), waiting_for(m), who, (double)r->options.timeout_ms / 1000);
}

static status finished_early(const struct meeting *m) {
  char who[400];
  uint32_t seat = round_finished_without(&m->round);
  if (seat == ROUND_NOBODY)
    return OK;
  describe(m, m->seats[seat], who, sizeof who);
  return fail(FAILED_PRECONDITION, "round %llu of '%s' cannot be complete: another task of the group has finished its steps: %s",
              (unsigned long long)m->round.number + 1, waiting_for(m), who);
}

static status coordinator_missing(const struct meeting *m) {
  char who[400];
  bool was_up;
  const struct round *r = &m->round;
  for (uint32_t h = 0; h < r->options.holders; h++) {
    if (h == r->options.holder || (r->options.holder != 0 && h != 0))
      continue;
    uint64_t ms = m->hall->peers.missing_ms(m->hall->peers.self, m->holders[h], &was_up);
    if (ms < r->options.timeout_ms || !was_up)
      continue;
    describe(m, m->holders[h], who, sizeof who);
    return fail(DEADLINE_EXCEEDED, "round %llu of '%s' waits for %s, which was not there for %.3g s", (unsigned long long)r->number + 1,
                waiting_for(m), who, (double)r->options.timeout_ms / 1000);
  }
  return OK;
}

static void look_for_members(struct meeting *m, uint64_t now) {
  const struct hall_peers *peers = &m->hall->peers;
  for (uint32_t i = 0; i < m->round.options.seats && m->hall->has_peers; i++) {
    bool was_up = true;
    uint64_t ms = peers->missing_ms(peers->self, m->seats[i], &was_up);
    if (!ms)
      round_up(&m->round, i);
    else
      round_down(&m->round, i, was_up && ms < now ? now - ms : now);
  }
  uint32_t late;
  while (m->round.options.is_elastic && m->round.phase == ROUND_OPEN && (late = round_late(&m->round, now)) != ROUND_NOBODY)
    round_leave(&m->round, late);
}

/* Under the lock. */
void meeting_look(struct meeting *m, struct wait_entry **over) {
  uint64_t now = monotonic_ms();
  if (!m->waiting.first)
    return;
  look_for_members(m, now);
  meeting_follow_up(m, over);
  if (!m->waiting.first || m->round.phase == ROUND_LED)
    return;
  status code = finished_early(m);
  if (code == OK)
    code = missing_too_long(m, now);
  if (code == OK && m->hall->has_peers)
    code = coordinator_missing(m);
  if (code != OK)
    meeting_append_over(over, meeting_fail_all(m, code, status_text()));
}

/* ---- the steps' side ---- */

static status find_seat(const struct meeting *m, uint32_t driver, uint32_t *seat) {
  for (*seat = 0; *seat < m->round.options.seats; ++*seat)
    if (m->seats[*seat] == driver)
      return OK;
  return fail(FAILED_PRECONDITION, "task %u takes no part in the rounds of '%s'", driver, m->resource.name);
}

/* After a change, and the call's own wait, if any. Gives the lock back. */
static status leave_hall(struct meeting *m, struct host_call *call) {
  struct wait_entry *over = NULL;
  meeting_follow_up(m, &over);
  if (finished_early(m) != OK)
    meeting_append_over(&over, meeting_fail_all(m, FAILED_PRECONDITION, status_text()));
  wait_list_settle(over, call);
  pthread_mutex_unlock(&m->hall->lock);
  return wait_list_finish(over, call);
}

static status answer_or_hold(struct meeting *m, const struct meeting_step *s, enum round_answer answer, struct hold h) {
  status code = answer == ROUND_STALE ? fail(ABORTED, STALE_TEXT) : answer == ROUND_HOLD ? hold(m, s, h) : OK;
  if (code == OK)
    return leave_hall(m, s->call);
  pthread_mutex_unlock(&m->hall->lock);
  return code;
}

status meeting_enter(struct meeting *m, const struct meeting_step *s) {
  struct hold h = {.kind = HOLD_ENTER, .step = s->id};
  TRY(find_seat(m, s->call->driver, &h.seat));
  pthread_mutex_lock(&m->hall->lock);
  if (m->hall->admitted && !m->hall->admitted[s->call->driver] && !FAULT(29)) {
    pthread_mutex_unlock(&m->hall->lock);
    return fail(ABORTED, "this replica has to tell its state before it takes part");
  }
  round_up(&m->round, h.seat);
  h.is_committed = s->is_committed && s->is_committed(s);
  return answer_or_hold(m, s, round_enter(&m->round, h.seat, s->id, h.is_committed), h);
}

status meeting_give(struct meeting *m, const struct meeting_step *s) {
  struct hold h = {.kind = HOLD_GIVE, .step = s->id};
  TRY(find_seat(m, s->call->driver, &h.seat));
  pthread_mutex_lock(&m->hall->lock);
  m->given[h.seat] = (struct seat_numbers){s->serial, s->command};
  return answer_or_hold(m, s, round_give(&m->round, h.seat, s->id), h);
}

status meeting_lead(struct meeting *m, const struct meeting_step *s) {
  struct hold h = {.kind = HOLD_LEAD, .step = s->id};
  TRY(find_seat(m, s->call->driver, &h.seat));
  pthread_mutex_lock(&m->hall->lock);
  enum round_answer answer = round_lead(&m->round, h.seat, s->id);
  status code = answer == ROUND_HOLD ? OK : give_flag(s->call, answer == ROUND_LEADS);
  if (code == OK)
    return answer_or_hold(m, s, answer, h);
  pthread_mutex_unlock(&m->hall->lock);
  return code;
}

status meeting_end(struct meeting *m, const struct meeting_step *s) {
  struct hold h = {.kind = HOLD_END, .step = s->id};
  TRY(find_seat(m, s->call->driver, &h.seat));
  pthread_mutex_lock(&m->hall->lock);
  return answer_or_hold(m, s, round_end(&m->round, h.seat, s->id), h);
}

status meeting_value(struct meeting *m, const struct meeting_step *s, const struct meeting_value_spec *spec) {
  struct hold h = {.kind = HOLD_VALUE, .step = s->id};
  struct tensor *tensor;
  TRY(find_seat(m, s->call->driver, &h.seat));
  TRY(host_keep_input(s->call, 0, &tensor));
  pthread_mutex_lock(&m->hall->lock);
  h.value = meeting_value_find(m, spec);
  bool repeats = round_repeats(&m->round, h.seat, s->id);
  uint64_t for_step = repeats ? m->round.seats[h.seat].taken : s->id; /* the first may have been lost before */
  h.own = repeats && h.value ? tensor_retain(tensor) : NULL;
  status code = h.value ? hold(m, s, h) : fail(RESOURCE_EXHAUSTED, "no memory");
  bool is_new = code == OK && for_step && !meeting_value_entry(h.value, h.seat, for_step) &&
                !(for_step != s->id && meeting_value_is_of(m, h.value, true));
  if (is_new)
    vec_push(&h.value->entries, (struct value_entry){h.seat, for_step, tensor});
  if (code == OK)
    code = leave_hall(m, s->call);
  else
    pthread_mutex_unlock(&m->hall->lock);
  if (!is_new)
    tensor_release(tensor);
  return code;
}

uint32_t meeting_taken(struct meeting *m, uint64_t leader, struct meeting_taken *out, uint32_t room) {
  uint32_t count = 0;
  pthread_mutex_lock(&m->hall->lock);
  meeting_note_numbers(m);
  bool leads = m->round.phase == ROUND_LED && m->round.leader == leader;
  for (uint32_t i = 0; i < m->round.options.seats && count < room && leads; i++)
    if (m->round.seats[i].taken)
      out[count++] = (struct meeting_taken){m->seats[i], m->taken[i].command, m->taken[i].serial};
  pthread_mutex_unlock(&m->hall->lock);
  return count;
}

/* ---- life ---- */

static uint32_t *copy_tasks(const uint32_t *tasks, uint32_t count) {
  uint32_t *copy = calloc((size_t)count + 1, sizeof *copy);
  if (copy && count)
    memcpy(copy, tasks, count * sizeof *copy);
  return copy;
}

void meeting_hear(struct meeting *m, const struct wire_message *w) {
  struct round_message message = {w->word, w->holder, w->seat, w->step, w->number};
  round_hear(&m->round, &message);
}

/* What others have said before this task's first step came here. */
static void hear_early(struct meeting *m) {
  struct hall *hall = m->hall;
  struct early **at = &hall->early;
  while (*at) {
    struct early *e = *at;
    if (e->message.key != m->key) {
      at = &e->next;
      continue;
    }
    meeting_hear(m, &e->message);
    *at = e->next;
    hall->early_count--;
    free(e);
  }
  hall->early_end = at;
}

/* Who had finished before this task's first step came here. */
static void finish_early(struct meeting *m) {
  for (uint32_t i = 0; i < m->hall->finished.count; i++)
    for (uint32_t seat = 0; seat < m->round.options.seats; seat++)
      if (m->seats[seat] == m->hall->finished.items[i])
        round_finish(&m->round, seat);
}

static uint32_t own_holder(const struct meeting_spec *spec) {
  for (uint32_t h = 0; h < spec->holder_count; h++)
    if (spec->holders[h] == spec->hall->peers.task)
      return h;
  return 0;
}

/* Who has given, or is past that: the others hold the round up. */
static bool meeting_explain(struct resource *resource, const void *call, struct resource_wait *out) {
  struct meeting *m = (struct meeting *)resource;
  const struct round *r = &m->round;
  pthread_mutex_lock(&m->hall->lock);
  bool waits = wait_list_has(&m->waiting, call);
  uint32_t members = 0, come = 0;
  for (uint32_t i = 0; i < r->options.seats && waits; i++) {
    const struct round_seat *seat = &r->seats[i];
    bool has_come = r->phase == ROUND_OPEN ? seat->given != 0 : r->phase == ROUND_DECIDED ? seat->ready != 0 : r->leader != seat->taken;
    members += r->phase == ROUND_OPEN ? seat->is_member : seat->taken != 0;
    come += has_come;
    if (has_come && out->driver_count < RESOURCE_WAIT_DRIVERS)
      out->drivers[out->driver_count++] = m->seats[i];
  }
  static const char *const what[] = {"have come", "have all that the updates need", "wait for the updates"};
  snprintf(out->text, sizeof out->text, "round %llu of '%.40s': %u of %u %s", (unsigned long long)r->number + (r->phase == ROUND_OPEN),
           resource->name, come, members, what[r->phase]);
  out->is_round = true;
  pthread_mutex_unlock(&m->hall->lock);
  return waits;
}

static status meeting_init(struct resource *resource, void *argument) {
  struct meeting *m = (struct meeting *)resource;
  const struct meeting_spec *spec = argument;
  const struct hall_peers *peers = &spec->hall->peers;
  struct round_options options = {.seats = spec->seat_count,
                                  .holders = spec->holder_count,
                                  .holder = own_holder(spec),
                                  .has_leader = spec->has_leader,
                                  .has_turns = spec->has_turns,
                                  .is_elastic = peers->is_elastic,
                                  .is_closed = spec->hall->admitted != NULL,
                                  .timeout_ms = peers->timeout_ms};
  if (spec->holder_count > 1 && !spec->hall->has_peers)
    return fail(INTERNAL, "a round of several tasks in a task that is alone");
  m->hall = spec->hall;
  resource->explain = meeting_explain;
  m->seats = copy_tasks(spec->seats, spec->seat_count);
  m->holders = copy_tasks(spec->holders, spec->holder_count);
  m->given = calloc(spec->seat_count, sizeof *m->given);
  m->taken = calloc(spec->seat_count, sizeof *m->taken);
  bool made = round_init(&m->round, &options);
  if (!made || !m->seats || !m->holders || !m->given || !m->taken)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  m->key = name_key(resource->name);
  wait_list_init(&m->waiting, &m->hall->lock);
  pthread_mutex_lock(&m->hall->lock);
  m->next = m->hall->meetings;
  m->hall->meetings = m;
  finish_early(m);
  hear_early(m);
  pthread_mutex_unlock(&m->hall->lock);
  return OK;
}

static void meeting_destroy(struct resource *resource) {
  struct meeting *m = (struct meeting *)resource;
  for (struct value *v = m->values, *next; v; v = next) {
    next = v->next;
    for (uint32_t i = 0; i < v->entries.count; i++)
      tensor_release(v->entries.items[i].tensor);
    vec_free(&v->entries);
    tensor_release(v->result);
    free(v->steps);
    free(v);
  }
  for (struct meeting **at = m->hall ? &m->hall->meetings : NULL; at && *at; at = &(*at)->next)
    if (*at == m) {
      *at = m->next;
      break;
    }
  round_deinit(&m->round);
  free(m->seats);
  free(m->holders);
  free(m->given);
  free(m->taken);
}

const struct resource_maker meeting_maker = {"meeting", sizeof(struct meeting), meeting_init, meeting_destroy};
