/* round.c: the tables of round.h. */
#include "runtime/resource/round.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/program/fault.h"

static bool decides(const struct round *r) { return r->options.holder == 0; }
static uint64_t *have_of(const struct round *r, uint32_t holder, uint32_t seat) {
  return &r->have[(size_t)holder * r->options.seats + seat];
}
static uint8_t *awaits_of(const struct round *r, uint32_t holder, uint32_t seat) {
  return &r->awaits[(size_t)holder * r->options.seats + seat];
}

bool round_init(struct round *r, const struct round_options *options) {
  memset(r, 0, sizeof *r);
  r->options = *options;
  r->seats = calloc(options->seats, sizeof *r->seats);
  r->have = calloc((size_t)options->seats * options->holders, sizeof *r->have);
  r->awaits = calloc((size_t)options->seats * options->holders, sizeof *r->awaits);
  r->brought = calloc(options->holders, sizeof *r->brought);
  for (uint32_t i = 0; r->seats && i < options->seats; i++)
    r->seats[i].is_member = true;
  return r->seats && r->have && r->awaits && r->brought;
}

void round_deinit(struct round *r) {
  free(r->seats);
  free(r->have);
  free(r->awaits);
  free(r->brought);
  vec_free(&r->out);
}

static void say(struct round *r, enum round_word word, uint32_t holder, uint32_t seat, uint64_t step) {
  vec_push(&r->out, (struct round_message){word, holder, seat, step, r->number});
}
static void tell_holders(struct round *r, enum round_word word, uint32_t seat, uint64_t step) {
  for (uint32_t h = 1; h < r->options.holders; h++)
    say(r, word, h, seat, step);
}

/* ---- what comes behind the decision ---- */

/* The coordinator. */
static void note_brought(struct round *r, uint32_t holder) {
  r->brought[holder] = r->is_whole = true;
  for (uint32_t h = 0; h < r->options.holders; h++)
    r->is_whole = r->is_whole && r->brought[h];
  if (r->is_whole)
    tell_holders(r, ROUND_WHOLE, 0, 0);
}

static void bring(struct round *r) {
  if (r->brought[r->options.holder])
    return;
  r->brought[r->options.holder] = true;
  if (decides(r))
    note_brought(r, 0);
  else
    say(r, ROUND_BROUGHT, 0, 0, 0);
}

/* Who has no updates does not say when all is there: nobody is waited for there. */
static void begin_turns(struct round *r) {
  r->is_whole = !r->options.has_turns || r->options.holders == 1;
  memset(r->brought, 0, r->options.holders * sizeof *r->brought);
  if (!r->is_whole && !r->options.has_leader)
    bring(r);
}

/* ---- deciding ---- */

static void round_over(struct round *r) {
  r->phase = ROUND_OPEN;
  r->leader = 0;
  for (uint32_t i = 0; i < r->options.seats; i++) {
    struct round_seat *seat = &r->seats[i];
    if (seat->taken && seat->entered && seat->entered != seat->taken)
      seat->echo = seat->entered;
    seat->echo = seat->held ? seat->held : seat->echo;
    seat->entered = seat->taken ? 0 : seat->entered;
    seat->held = 0;
  }
}

/* The contributions in `named` are taken, all others of the round are too late. */
static void decide(struct round *r) {
  r->number++;
  for (uint32_t i = 0; i < r->options.seats; i++) {
    struct round_seat *seat = &r->seats[i];
    r->is_torn = r->is_torn || (seat->named && seat->named != seat->given);
    seat->taken = seat->named;
    seat->is_member = r->options.is_elastic ? seat->taken != 0 : true;
    seat->entered = seat->entered == seat->taken ? seat->entered : 0;
    seat->given = seat->named = seat->echo = seat->ready = 0;
    seat->is_dead = seat->is_gone = false;
    for (uint32_t h = 0; h < r->options.holders; h++)
      *have_of(r, h, i) = 0;
  }
  r->phase = ROUND_DECIDED;
  begin_turns(r);
  if (!r->options.has_leader)
    round_over(r);
}

/* The contribution that all holders have of the seat; 0: not all have the same. */
static uint64_t common(const struct round *r, uint32_t seat) {
  uint64_t step = *have_of(r, 0, seat);
  for (uint32_t h = 1; h < r->options.holders; h++)
    step = *have_of(r, h, seat) == step ? step : 0;
  return step;
}

static void decide_if_complete(struct round *r) {
  bool some = false;
  if (!decides(r) || r->phase != ROUND_OPEN)
    return;
  for (uint32_t i = 0; i < r->options.seats; i++) {
    if (r->seats[i].is_member && !common(r, i))
      return;
    some = some || r->seats[i].is_member;
  }
  for (uint32_t i = 0; i < r->options.seats && some; i++) {
    r->seats[i].named = r->seats[i].is_member ? common(r, i) : 0;
    if (r->seats[i].named)
      tell_holders(r, ROUND_TAKE, i, r->seats[i].named);
  }
  if (!some)
    return;
  tell_holders(r, ROUND_APPLY, 0, 0);
  decide(r);
}

/* Nobody asks the coordinator: what the planted faults 23 and 24 do. */
static void decide_alone(struct round *r) {
  for (uint32_t i = 0; i < r->options.seats; i++)
    if (r->seats[i].is_member && !r->seats[i].given)
      return;
  for (uint32_t i = 0; i < r->options.seats; i++)
    r->seats[i].named = r->seats[i].given;
  decide(r);
}

/* ---- steps ---- */

static void join(struct round *r, uint32_t i) {
  r->seats[i].is_member = true;
  tell_holders(r, ROUND_JOIN, i, 0);
}

bool round_repeats(const struct round *r, uint32_t i, uint64_t step) {
  const struct round_seat *seat = &r->seats[i];
  return seat->echo == step || (r->phase != ROUND_OPEN && seat->taken && seat->taken != step && seat->entered == step);
}

/* It may have left after its step had entered there: that one is too late then, and asks nobody else. */
static enum round_answer ask_to_join(struct round *r, uint32_t i, uint64_t step) {
  if (r->seats[i].asks != step)
    say(r, ROUND_ASKS, 0, i, step);
  r->seats[i].asks = step;
  return ROUND_HOLD;
}

static enum round_answer hold_repetition(struct round_seat *seat, uint64_t step) {
  if (seat->taken)
    seat->held = step;
  return ROUND_HOLD;
}

enum round_answer round_enter(struct round *r, uint32_t i, uint64_t step, bool is_committed) {
  struct round_seat *seat = &r->seats[i];
  if (is_committed)
    seat->echo = step;
  if (seat->echo == step || FAULT(26))
    return ROUND_GO;
  if (r->phase == ROUND_LED || (r->phase == ROUND_DECIDED && !seat->taken))
    return hold_repetition(seat, step);
  if (r->phase == ROUND_OPEN) {
    if (seat->given && seat->given != step) /* its earlier step is given up, or soon will be */
      return ROUND_HOLD;
    if (!seat->is_member && r->options.is_closed && !FAULT(29))
      return ROUND_STALE;
    if (!seat->is_member && !decides(r))
      return ask_to_join(r, i, step);
    if (!seat->is_member)
      join(r, i);
  }
  seat->echo = 0;
  seat->entered = step;
  return ROUND_GO;
}

enum round_answer round_given(const struct round *r, uint32_t i, uint64_t step) {
  const struct round_seat *seat = &r->seats[i];
  if (seat->taken == step || round_repeats(r, i, step))
    return ROUND_GO;
  return seat->given == step ? ROUND_HOLD : ROUND_STALE;
}

enum round_answer round_give(struct round *r, uint32_t i, uint64_t step) {
  struct round_seat *seat = &r->seats[i];
  if (seat->taken == step || round_repeats(r, i, step))
    return ROUND_GO;
  if (seat->entered != step || r->phase != ROUND_OPEN)
    return ROUND_STALE;
  seat->given = step;
  seat->is_dead = false;
  if (!decides(r))
    say(r, ROUND_GIVEN, 0, i, step);
  else if (!*awaits_of(r, 0, i))
    *have_of(r, 0, i) = step;
  if (r->options.holders > 1 && (FAULT(23) || FAULT(24)))
    decide_alone(r);
  else
    decide_if_complete(r);
  return round_given(r, i, step);
}

/* Whether the updates have to wait for a step of the round: it may still read what they change. */
static bool is_awaited(const struct round *r, const struct round_seat *seat) {
  return seat->taken && seat->entered && seat->ready != seat->entered && !(r->options.is_elastic && seat->is_missing);
}

enum round_answer round_lead(struct round *r, uint32_t i, uint64_t step) {
  struct round_seat *seat = &r->seats[i];
  if (r->phase != ROUND_DECIDED || seat->echo == step || (seat->taken != step && seat->entered != step))
    return ROUND_GO;
  seat->ready = step;
  if (!r->is_whole)
    bring(r);
  if (!r->is_whole && !FAULT(57))
    return ROUND_HOLD;
  for (uint32_t k = 0; k < r->options.seats; k++)
    if (is_awaited(r, &r->seats[k]))
      return ROUND_HOLD;
  r->leader = step;
  r->phase = ROUND_LED;
  return ROUND_LEADS;
}

void round_abdicate(struct round *r, uint32_t i, uint64_t step) {
  if (r->phase != ROUND_LED || r->leader != step)
    return;
  r->phase = ROUND_DECIDED;
  r->leader = 0;
  r->seats[i].entered = 0;
}

enum round_answer round_end(struct round *r, uint32_t i, uint64_t step) {
  const struct round_seat *seat = &r->seats[i];
  if (r->phase == ROUND_OPEN || seat->echo == step || (seat->taken != step && seat->entered != step))
    return ROUND_GO;
  if (r->phase == ROUND_DECIDED || r->leader != step)
    return ROUND_HOLD;
  round_over(r);
  return ROUND_GO;
}

/* ---- dropping ---- */

/* The coordinator: no holder applies what the seat has given so far, unless its step lives there and says so again. */
static void drop_everywhere(struct round *r, uint32_t i) {
  struct round_seat *seat = &r->seats[i];
  for (uint32_t h = 1; h < r->options.holders; h++) {
    *have_of(r, h, i) = 0;
    ++*awaits_of(r, h, i);
    say(r, ROUND_DROP, h, i, 0);
  }
  if (seat->is_dead)
    seat->given = 0;
  seat->is_dead = false;
  *have_of(r, 0, i) = seat->given;
}

bool round_withdraw(struct round *r, uint32_t i, uint64_t step) {
  struct round_seat *seat = &r->seats[i];
  seat->held = seat->held == step ? 0 : seat->held;
  seat->echo = seat->echo == step ? 0 : seat->echo;
  if (r->phase == ROUND_LED && r->leader == step) {
    round_over(r);
    return false;
  }
  seat->entered = seat->entered == step ? 0 : seat->entered;
  seat->is_gone = seat->is_gone || (seat->taken && seat->taken == step);
  if (seat->given != step || seat->is_dead)
    return true;
  seat->is_dead = true;
  if (decides(r))
    drop_everywhere(r, i);
  else
    say(r, ROUND_DEAD, 0, i, step);
  return true;
}

bool round_keeps(const struct round *r, uint32_t i, uint64_t step) {
  const struct round_seat *seat = &r->seats[i];
  return seat->entered == step || seat->given == step || seat->taken == step;
}

/* ---- what is known of the tasks ---- */

/* The coordinator: the others go on without it. */
static void leave(struct round *r, uint32_t i) {
  struct round_seat *seat = &r->seats[i];
  if (!seat->is_member)
    return;
  seat->is_member = false;
  if (r->phase == ROUND_OPEN) {
    bool has_given = false;
    seat->entered = 0;
    for (uint32_t h = 0; h < r->options.holders; h++)
      has_given = has_given || *have_of(r, h, i);
    seat->is_dead = seat->given != 0;
    if (has_given)
      drop_everywhere(r, i);
  }
  decide_if_complete(r);
}

void round_up(struct round *r, uint32_t i) {
  r->seats[i].was_up = true;
  r->seats[i].is_missing = r->seats[i].is_told = false;
}

void round_begin(struct round *r, uint32_t i) { r->seats[i].has_finished = false; }

void round_join(struct round *r, uint32_t i) {
  round_up(r, i);
  if (decides(r) && !r->seats[i].is_member)
    join(r, i);
}

void round_leave(struct round *r, uint32_t i) {
  struct round_seat *seat = &r->seats[i];
  if (decides(r)) {
    leave(r, i);
  } else if (seat->is_member && !seat->is_told) {
    say(r, ROUND_MISSES, 0, i, 0);
    seat->is_told = true;
  }
}

void round_down(struct round *r, uint32_t i, uint64_t since_ms) {
  struct round_seat *seat = &r->seats[i];
  if (!seat->is_missing)
    seat->missing_since_ms = since_ms;
  seat->is_missing = true;
  if (r->options.is_elastic && seat->was_up)
    round_leave(r, i);
}

void round_finish(struct round *r, uint32_t i) {
  r->seats[i].has_finished = true;
  if (r->options.is_elastic && decides(r))
    leave(r, i);
}

static void hear_as_holder(struct round *r, const struct round_message *m) {
  struct round_seat *seat = &r->seats[m->seat];
  switch (m->word) {
  case ROUND_JOIN:
    seat->is_member = true;
    seat->is_told = false;
    seat->asks = 0;
    break;
  case ROUND_DROP:
    if (seat->is_dead)
      seat->given = 0;
    seat->is_dead = false;
    say(r, ROUND_DROPPED, 0, m->seat, 0);
    if (seat->given)
      say(r, ROUND_GIVEN, 0, m->seat, seat->given);
    break;
  case ROUND_TAKE: seat->named = m->step; break;
  case ROUND_APPLY:
    for (uint32_t i = 0; i < r->options.seats && FAULT(25); i++)
      r->seats[i].named = r->seats[i].given;
    decide(r);
    break;
  case ROUND_WHOLE: r->is_whole = r->is_whole || m->number == r->number; break;
  }
}

static void hear_as_coordinator(struct round *r, const struct round_message *m) {
  uint8_t *awaits = awaits_of(r, m->holder, m->seat);
  uint64_t *have = have_of(r, m->holder, m->seat);
  if (m->word == ROUND_MISSES)
    leave(r, m->seat);
  else if (m->word == ROUND_ASKS && !r->seats[m->seat].has_finished)
    join(r, m->seat);
  else if (m->word == ROUND_BROUGHT && m->number == r->number)
    note_brought(r, m->holder);
  else if (m->word == ROUND_DROPPED && *awaits)
    --*awaits;
  else if (m->word == ROUND_DEAD && !*awaits && *have == m->step && m->step)
    drop_everywhere(r, m->seat);
  else if (m->word == ROUND_GIVEN && !*awaits && (m->number == r->number || FAULT(27))) /* else its round went on without it */
    *have = m->step;
  decide_if_complete(r);
}

void round_hear(struct round *r, const struct round_message *m) {
  if (m->seat >= r->options.seats || m->holder >= r->options.holders)
    return;
  if (decides(r))
    hear_as_coordinator(r, m);
  else
    hear_as_holder(r, m);
}

/* ---- who is waited for ---- */

uint32_t round_finished_without(const struct round *r) {
  for (uint32_t i = 0; i < r->options.seats && r->phase == ROUND_OPEN && !r->options.is_elastic; i++)
    if (r->seats[i].is_member && r->seats[i].has_finished && !r->seats[i].given)
      return i;
  return ROUND_NOBODY;
}

uint32_t round_late(const struct round *r, uint64_t now_ms) {
  for (uint32_t i = 0; i < r->options.seats; i++) {
    const struct round_seat *seat = &r->seats[i];
    bool is_needed = r->phase == ROUND_OPEN ? seat->is_member && !seat->is_told : r->phase == ROUND_DECIDED && seat->taken;
    if (is_needed && seat->is_missing && now_ms >= seat->missing_since_ms + r->options.timeout_ms)
      return i;
  }
  return ROUND_NOBODY;
}
