/* view.c: the table of view.h. */
#include "runtime/cluster/view.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/program/fault.h"

bool view_init(struct view *v, uint32_t seats, uint32_t self, bool is_elastic) {
  *v = (struct view){.seats = seats, .self = self, .source = VIEW_NOBODY, .is_elastic = is_elastic, .phase = VIEW_GATHERS};
  v->seat = calloc(seats, sizeof *v->seat);
  return v->seat != NULL;
}

void view_deinit(struct view *v) { free(v->seat); }

void view_tell(struct view *v, uint32_t seat, uint64_t session, uint64_t request, uint64_t step, const struct view_state *state) {
  v->seat[seat] = (struct view_seat){.has_told = true, .session = session, .request = request, .step = step, .state = *state};
}

bool view_ask(struct view *v, uint32_t seat, uint64_t session) {
  struct view_seat *s = &v->seat[seat];
  if (s->session == session && (s->is_asked || s->has_finished))
    return false;
  *s = (struct view_seat){.is_asked = true, .session = session};
  return true;
}

void view_finish(struct view *v, uint32_t seat, uint64_t session, const struct view_state *state) {
  v->seat[seat] = (struct view_seat){.has_finished = true, .session = session, .state = *state};
}

void view_leave(struct view *v, uint32_t seat) { v->seat[seat] = (struct view_seat){.has_left = true}; }

void view_forget(struct view *v, uint32_t seat) { v->seat[seat] = (struct view_seat){0}; }

/* One that has, and has all there is; VIEW_NOBODY: none. */
static uint32_t somebody_finished(const struct view *v) {
  for (uint32_t i = 0; i < v->seats && !v->is_elastic; i++)
    if (v->seat[i].has_finished)
      return i;
  return VIEW_NOBODY;
}

uint32_t view_waits_for(const struct view *v) {
  if (somebody_finished(v) != VIEW_NOBODY)
    return VIEW_NOBODY;
  for (uint32_t i = 0; i < v->seats && v->phase == VIEW_GATHERS && !FAULT(34); i++)
    if (i != v->self && !v->seat[i].has_told && !v->seat[i].has_finished && !v->seat[i].has_left)
      return i;
  return VIEW_NOBODY;
}

static bool is_higher(const struct view_state *a, const struct view_state *b) {
  if (a->view != b->view)
    return a->view > b->view;
  return a->round > b->round;
}

static uint32_t highest(const struct view *v) {
  uint32_t source = VIEW_NOBODY;
  for (uint32_t i = 0; i < v->seats; i++)
    if ((v->seat[i].has_told || v->seat[i].has_finished) && v->seat[i].state.has_state &&
        (source == VIEW_NOBODY || is_higher(&v->seat[i].state, &v->seat[source].state)))
      source = i;
  return source;
}

void view_settle(struct view *v) {
  v->source = somebody_finished(v);
  if (v->source == VIEW_NOBODY)
    v->source = highest(v);
  for (uint32_t i = 0; i < v->seats; i++)
    v->number = v->seat[i].state.view > v->number ? v->seat[i].state.view : v->number;
  v->phase = v->source == VIEW_NOBODY ? VIEW_SERVES : VIEW_FETCHES;
  v->number++;
}

bool view_is_lost(const struct view *v, uint64_t rounds) {
  bool has_left = false;
  for (uint32_t i = 0; i < v->seats; i++)
    has_left = has_left || v->seat[i].has_left;
  return has_left && (v->phase == VIEW_SERVES || (v->phase == VIEW_FETCHES && v->seat[v->source].state.round < rounds));
}

void view_fetched(struct view *v, bool is_here, uint64_t number) {
  v->phase = is_here ? VIEW_SERVES : VIEW_GATHERS;
  v->number = is_here && v->number <= number ? number + 1 : v->number;
}

uint64_t view_begin(struct view *v) { return ++v->number; }

uint32_t view_next(const struct view *v) {
  for (uint32_t i = 0; i < v->seats && v->phase == VIEW_SERVES; i++)
    if (v->seat[i].has_told)
      return i;
  return VIEW_NOBODY;
}

bool view_serve(struct view *v, uint32_t seat, uint64_t round) {
  const struct view_state *s = &v->seat[seat].state;
  bool is_even = s->has_state && s->view == v->number && s->round == round;
  v->seat[seat].has_told = false;
  if (FAULT(28) || (FAULT(30) && s->has_state) || (FAULT(33) && s->has_state))
    return false;
  return !is_even;
}
