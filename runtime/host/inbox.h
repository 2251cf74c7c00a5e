/* inbox.h: where a step's thread hears that something it waits for has happened.
 *
 * Senders: any thread, briefly. Receiver: the one thread that owns it.
 */
#ifndef TFC_RUNTIME_HOST_INBOX_H
#define TFC_RUNTIME_HOST_INBOX_H

#include <pthread.h>
#include <stdbool.h>

struct inbox_item {
  struct inbox_item *next;
};
struct inbox {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct inbox_item *first, **last;
  bool poked;
  struct inbox *next_of_step; /* list of a step's inboxes, kept by the step */
};

void inbox_init(struct inbox *inbox);
void inbox_deinit(struct inbox *inbox);
void inbox_put(struct inbox *inbox, struct inbox_item *item);
/* Wakes the receiver without an item: the step was given up. Stays until inbox_clear. */
void inbox_poke(struct inbox *inbox);
void inbox_clear(struct inbox *inbox);
/* Waits until it is poked, and forgets that: whoever waits so looks for the reason himself. */
void inbox_await_poke(struct inbox *inbox);
/* The oldest item; waits when `wait`. NULL: none, or poked (while waiting, once `heed_poke`). */
struct inbox_item *inbox_take(struct inbox *inbox, bool wait, bool heed_poke);

#endif
