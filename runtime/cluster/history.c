/* history.c: see history.h. No commit record decides what is complete, but that all holders have a synced file of the id: so no crash
 * between two writes can. */
#include "runtime/cluster/history.h"

#define ID_TAG_BITS 16

uint64_t history_next_id(uint64_t newest, uint32_t random) {
  uint64_t number = (newest >> ID_TAG_BITS) + 1;
  return number << ID_TAG_BITS | (random & ((1u << ID_TAG_BITS) - 1));
}

static bool has_file(const struct history_holder *holder, uint64_t id) {
  for (uint32_t i = 0; i < holder->file_count; i++)
    if (holder->files[i] == id)
      return true;
  return false;
}

uint64_t history_newest_common(const struct history_holder *holders, uint32_t count) {
  uint64_t newest = 0;
  for (uint32_t i = 0; count > 0 && i < holders[0].file_count; i++) {
    uint64_t id = holders[0].files[i];
    bool is_common = id > newest;
    for (uint32_t h = 1; h < count && is_common; h++)
      is_common = has_file(&holders[h], id);
    newest = is_common ? id : newest;
  }
  return newest;
}

static struct history_decision decided(enum history_verdict verdict, uint64_t id, uint64_t history) {
  return (struct history_decision){verdict, id, history};
}

struct history_decision history_decide(const struct history_view *view) {
  bool all_fresh = true, all_same = true, all_listed = true;
  for (uint32_t i = 0; i < view->holder_count; i++) {
    const struct history_holder *holder = &view->holders[i];
    if (!holder->is_here)
      return decided(HISTORY_WAIT, 0, 0);
    all_fresh = all_fresh && holder->history == 0;
    all_same = all_same && holder->history == view->holders[0].history;
    all_listed = all_listed && holder->has_files;
  }
  if (view->holder_count > 0 && all_same && !all_fresh)
    return decided(HISTORY_KEEP, 0, view->holders[0].history);
  if (view->is_replicated && (!view->all_have_told || view->others))
    return view->all_have_told ? decided(HISTORY_KEEP, 0, view->others) : decided(HISTORY_WAIT, 0, 0);
  if (view->has_folder ? !all_listed : !view->is_settled)
    return decided(HISTORY_WAIT, 0, 0);
  uint64_t newest = view->has_folder ? history_newest_common(view->holders, view->holder_count) : 0;
  bool is_first = all_fresh && view->others == 0;
  if (newest)
    return decided(HISTORY_RESTORE, newest, 0);
  if (is_first || (!view->has_folder && !view->has_phases && view->has_chief))
    return decided(HISTORY_BEGIN, 0, 0);
  if (!view->has_folder && !view->has_phases)
    return decided(HISTORY_WAIT, 0, 0);
  return decided(view->has_folder && !view->has_left ? HISTORY_AGAIN : HISTORY_LOST, 0, 0);
}
