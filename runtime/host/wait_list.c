/* wait_list.c: a list under somebody else's lock. */
#include "runtime/host/wait_list.h"

#include <stdio.h>
#include <stdlib.h>

void wait_list_init(struct wait_list *list, pthread_mutex_t *lock) {
  list->first = NULL;
  list->last = &list->first;
  list->lock = lock;
}

static void entry_free(struct wait_entry *entry) {
  if (entry->own)
    entry->free_own(entry->own);
  free(entry);
}

static struct wait_entry *take_out(struct wait_list *list, const struct host_call *call) {
  for (struct wait_entry **at = &list->first; *at; at = &(*at)->next)
    if ((*at)->call == call) {
      struct wait_entry *entry = *at;
      *at = entry->next;
      if (list->last == &entry->next)
        list->last = at;
      return entry;
    }
  return NULL;
}

bool wait_list_drop(struct wait_list *list, const struct host_call *call) {
  struct wait_entry *entry = take_out(list, call);
  if (entry)
    entry_free(entry);
  return entry != NULL;
}

/* The call knows the list, not its entry: another thread may be ending that, and freeing it. */
bool wait_list_has(const struct wait_list *list, const void *call) {
  for (const struct wait_entry *entry = list->first; entry; entry = entry->next)
    if (entry->call == call)
      return true;
  return false;
}

/* host_call.withdraw of a call in a line: takes the lock. */
static bool wait_list_withdraw(struct host_call *call) {
  struct wait_list *list = call->wait;
  pthread_mutex_lock(list->lock);
  struct wait_entry *entry = take_out(list, call);
  pthread_mutex_unlock(list->lock);
  if (entry)
    entry_free(entry);
  return entry != NULL;
}

struct wait_entry *wait_list_add(struct wait_list *list, struct host_call *call, int64_t number) {
  struct wait_entry *entry = calloc(1, sizeof *entry);
  if (!entry)
    return NULL;
  entry->call = call;
  entry->number = number;
  call->wait = list;
  call->withdraw = wait_list_withdraw;
  call->pending = true;
  *list->last = entry;
  list->last = &entry->next;
  return entry;
}

void wait_list_move_first(struct wait_list *list, status code, const char *text, struct wait_entry **over) {
  wait_list_move(list, &list->first, code, text, over);
}

void wait_list_move(struct wait_list *list, struct wait_entry **at, status code, const char *text, struct wait_entry **over) {
  struct wait_entry *entry = *at;
  *at = entry->next;
  if (list->last == &entry->next)
    list->last = at;
  entry->code = code;
  snprintf(entry->text, sizeof entry->text, "%s", text);
  while (*over)
    over = &(*over)->next;
  entry->next = NULL;
  *over = entry;
}

void wait_list_settle(const struct wait_entry *over, struct host_call *own) {
  for (; over; over = over->next)
    if (over->call == own)
      own->pending = false; /* nobody else ends it */
}

status wait_list_finish(struct wait_entry *over, struct host_call *own) {
  status result = OK;
  char text[256] = "";
  while (over) {
    struct wait_entry *next = over->next;
    if (over->call == own) {
      result = over->code;
      snprintf(text, sizeof text, "%s", over->text);
    } else {
      host_finish(over->call, over->code, over->text);
    }
    entry_free(over);
    over = next;
  }
  return result == OK ? OK : fail(result, "%s", text);
}
