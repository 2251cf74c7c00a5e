/* cut.c: see cut.h. */
#include "runtime/cluster/cut.h"

#include "runtime/program/fault.h"

#define SEAT_STILL_MS (2 * CUT_STILL_MS_MAX) /* a holder that hears nothing: its coordinator has long given up */

/* ---- the coordinator ---- */

enum cut_message cut_begin(struct cut *cut, uint64_t id, uint64_t now_ms) {
  if (cut->id)
    return CUT_NONE;
  *cut = (struct cut){.holder_count = cut->holder_count, .still_ms = cut->still_ms ? cut->still_ms : CUT_STILL_MS};
  cut->id = id;
  cut->began_ms = now_ms;
  return CUT_FREEZE;
}

static bool all(const struct cut *cut, const bool *what) {
  for (uint32_t i = 0; i < cut->holder_count; i++)
    if (!what[i])
      return false;
  return true;
}

static bool is_of(const struct cut *cut, uint32_t holder, uint64_t id) { return cut->id && id == cut->id && holder < cut->holder_count; }

enum cut_message cut_frozen(struct cut *cut, uint32_t holder, uint64_t id) {
  if (!is_of(cut, holder, id) || cut->is_snapped)
    return CUT_NONE;
  cut->frozen[holder] = true;
  cut->is_snapped = all(cut, cut->frozen);
  return cut->is_snapped ? CUT_SNAP : CUT_NONE;
}

enum cut_message cut_taken(struct cut *cut, uint32_t holder, uint64_t id) {
  if (is_of(cut, holder, id))
    cut->taken[holder] = true;
  return CUT_NONE;
}

static enum cut_message give_up(struct cut *cut) {
  bool was_there = cut->id != 0;
  if (was_there && !all(cut, cut->taken) && cut->still_ms < CUT_STILL_MS_MAX)
    cut->still_ms *= 2;
  cut->id = 0;
  return was_there ? CUT_ABORT : CUT_NONE;
}

enum cut_message cut_done(struct cut *cut, uint32_t holder, uint64_t id) {
  if (!is_of(cut, holder, id) || !cut->is_snapped)
    return CUT_NONE;
  cut->taken[holder] = cut->done[holder] = true;
  if (!all(cut, cut->done))
    return CUT_NONE;
  cut->id = 0;
  cut->still_ms = CUT_STILL_MS;
  return CUT_COMMIT;
}

enum cut_message cut_refused(struct cut *cut, uint32_t holder, uint64_t id) { return is_of(cut, holder, id) ? give_up(cut) : CUT_NONE; }
enum cut_message cut_lost(struct cut *cut) { return give_up(cut); }

uint64_t cut_due_ms(const struct cut *cut) { return cut->id && !all(cut, cut->taken) ? cut->began_ms + 2 * (uint64_t)cut->still_ms : 0; }

enum cut_message cut_tick(struct cut *cut, uint64_t now_ms) {
  uint64_t due_ms = cut_due_ms(cut);
  return due_ms && now_ms >= due_ms ? give_up(cut) : CUT_NONE;
}

/* ---- a holder ---- */

/* What is left of an attempt that was given up. */
static struct cut_duty let_go(struct cut_seat *seat) {
  struct cut_duty duty = {.thaw = seat->state == SEAT_FROZEN, .discard = seat->state == SEAT_TAKEN ? seat->id : 0};
  seat->state = SEAT_RUNS;
  return duty;
}

struct cut_duty cut_seat_freeze(struct cut_seat *seat, uint64_t newest) {
  bool is_complete = seat->state == SEAT_TAKEN && seat->id == newest; /* whoever said so is gone */
  struct cut_duty duty = let_go(seat);
  duty.complete = is_complete;
  duty.discard = is_complete ? 0 : duty.discard;
  duty.freeze = true;
  return duty;
}

void cut_seat_froze(struct cut_seat *seat, uint64_t id, uint64_t now_ms) {
  seat->state = SEAT_FROZEN;
  seat->id = id;
  seat->since_ms = now_ms;
}

struct cut_duty cut_seat_snap(struct cut_seat *seat, uint64_t id) {
  if (seat->state != SEAT_FROZEN || seat->id != id)
    return (struct cut_duty){.refuse = true};
  return (struct cut_duty){.take = true};
}

void cut_seat_took(struct cut_seat *seat, bool is_taken) { seat->state = is_taken ? SEAT_TAKEN : SEAT_RUNS; }

struct cut_duty cut_seat_commit(struct cut_seat *seat, uint64_t id) {
  if (seat->state != SEAT_TAKEN || seat->id != id)
    return (struct cut_duty){0};
  seat->state = SEAT_RUNS;
  return (struct cut_duty){.complete = true};
}

struct cut_duty cut_seat_abort(struct cut_seat *seat, uint64_t id) {
  if (seat->state == SEAT_RUNS || seat->id != id || FAULT(22))
    return (struct cut_duty){0};
  return let_go(seat);
}

struct cut_duty cut_seat_tick(struct cut_seat *seat, uint64_t now_ms) {
  if (seat->state != SEAT_FROZEN || now_ms - seat->since_ms < SEAT_STILL_MS || FAULT(22))
    return (struct cut_duty){0};
  return let_go(seat);
}

struct cut_duty cut_seat_restore(struct cut_seat *seat) {
  return let_go(seat);
}
