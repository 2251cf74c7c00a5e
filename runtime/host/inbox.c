/* inbox.c: a list under a lock. */
#include "runtime/host/inbox.h"

#include <stddef.h>

void inbox_init(struct inbox *inbox) {
  pthread_mutex_init(&inbox->lock, NULL);
  pthread_cond_init(&inbox->changed, NULL);
  inbox_clear(inbox);
}

void inbox_deinit(struct inbox *inbox) {
  pthread_cond_destroy(&inbox->changed);
  pthread_mutex_destroy(&inbox->lock);
}

void inbox_clear(struct inbox *inbox) {
  inbox->first = NULL;
  inbox->last = &inbox->first;
  inbox->poked = false;
}

void inbox_put(struct inbox *inbox, struct inbox_item *item) {
  pthread_mutex_lock(&inbox->lock);
  item->next = NULL;
  *inbox->last = item;
  inbox->last = &item->next;
  pthread_cond_signal(&inbox->changed);
  pthread_mutex_unlock(&inbox->lock);
}

void inbox_poke(struct inbox *inbox) {
  pthread_mutex_lock(&inbox->lock);
  inbox->poked = true;
  pthread_cond_signal(&inbox->changed);
  pthread_mutex_unlock(&inbox->lock);
}

void inbox_await_poke(struct inbox *inbox) {
  pthread_mutex_lock(&inbox->lock);
  while (!inbox->poked)
    pthread_cond_wait(&inbox->changed, &inbox->lock);
  inbox->poked = false;
  pthread_mutex_unlock(&inbox->lock);
}

struct inbox_item *inbox_take(struct inbox *inbox, bool wait, bool heed_poke) {
  pthread_mutex_lock(&inbox->lock);
  while (wait && !inbox->first && !(heed_poke && inbox->poked))
    pthread_cond_wait(&inbox->changed, &inbox->lock);
  struct inbox_item *item = inbox->first;
  if (item) {
    inbox->first = item->next;
    if (!inbox->first)
      inbox->last = &inbox->first;
  }
  pthread_mutex_unlock(&inbox->lock);
  return item;
}
