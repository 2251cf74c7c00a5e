/* cut_proxy.h: a middle box between two tasks of a test: it passes bytes on between Unix sockets, and cuts connections when it is told
 * to. */
#ifndef TFC_TESTS_SUPPORT_CUT_PROXY_H
#define TFC_TESTS_SUPPORT_CUT_PROXY_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CUT_PAIRS 16
#define CUT_NEVER (-1L)

struct cut_pair {
  int ends[2];    /* who called; whom we called for it. -1: none */
  long left[2];   /* bytes from that end that pass before both are closed; CUT_NEVER */
  bool is_frozen; /* stands, but nothing passes any more */
};

struct cut_proxy {
  struct sockaddr_un from, to;
  int listener, wake[2];
  pthread_t thread;
  pthread_mutex_t lock; /* of what follows */
  struct cut_pair pairs[CUT_PAIRS];
  long next[2]; /* of the next connection */
  int accepted; /* connections so far */
  bool is_over;
};

static inline void cut_pair_close(struct cut_pair *pair) {
  for (int i = 0; i < 2; i++) {
    if (pair->ends[i] >= 0)
      close(pair->ends[i]);
    pair->ends[i] = -1;
  }
}

static inline void cut_accept(struct cut_proxy *p) {
  int call = accept(p->listener, NULL, NULL), on = socket(AF_UNIX, SOCK_STREAM, 0);
  struct cut_pair *pair = NULL;
  for (int i = 0; i < CUT_PAIRS && !pair; i++)
    if (p->pairs[i].ends[0] < 0)
      pair = &p->pairs[i];
  if (call < 0 || !pair || connect(on, (struct sockaddr *)&p->to, sizeof p->to) != 0) {
    close(call);
    close(on);
    return;
  }
  *pair = (struct cut_pair){.ends = {call, on}, .left = {p->next[0], p->next[1]}};
  p->next[0] = p->next[1] = CUT_NEVER;
  p->accepted++;
}

static inline void cut_pass(struct cut_pair *pair, int from) {
  static char bytes[1 << 16];
  size_t room = sizeof bytes;
  if (pair->left[from] >= 0 && (size_t)pair->left[from] < room)
    room = (size_t)pair->left[from];
  ssize_t got = room ? recv(pair->ends[from], bytes, room, MSG_DONTWAIT) : 0;
  if (got < 0)
    return;
  for (ssize_t sent = 0, more; sent < got; sent += more) {
    more = send(pair->ends[1 - from], bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL);
    if (more < 0) { /* who was to hear it has closed */
      cut_pair_close(pair);
      return;
    }
  }
  if (pair->left[from] >= 0)
    pair->left[from] -= got;
  if (got == 0 || pair->left[from] == 0)
    cut_pair_close(pair);
}

static inline void *cut_run(void *self) {
  struct cut_proxy *p = self;
  for (;;) {
    struct pollfd ready[2 + 2 * CUT_PAIRS] = {{p->wake[0], POLLIN, 0}, {p->listener, POLLIN, 0}};
    pthread_mutex_lock(&p->lock);
    bool is_over = p->is_over;
    for (int i = 0; i < 2 * CUT_PAIRS; i++) /* a negative one is left out */
      ready[2 + i] = (struct pollfd){p->pairs[i / 2].is_frozen ? -1 : p->pairs[i / 2].ends[i % 2], POLLIN, 0};
    pthread_mutex_unlock(&p->lock);
    if (is_over)
      return NULL;
    poll(ready, 2 + 2 * CUT_PAIRS, -1);
    pthread_mutex_lock(&p->lock);
    char byte;
    if (ready[0].revents)
      while (recv(p->wake[0], &byte, 1, MSG_DONTWAIT) > 0)
        ;
    for (int i = 0; i < 2 * CUT_PAIRS; i++)
      if (ready[2 + i].revents && !p->pairs[i / 2].is_frozen && p->pairs[i / 2].ends[i % 2] == ready[2 + i].fd)
        cut_pass(&p->pairs[i / 2], i % 2);
    if (ready[1].revents)
      cut_accept(p);
    pthread_mutex_unlock(&p->lock);
  }
}

/* from: where it listens; to: where it calls; paths. False: it cannot. */
static inline bool cut_proxy_start(struct cut_proxy *p, const char *from, const char *to) {
  *p = (struct cut_proxy){.from.sun_family = AF_UNIX, .to.sun_family = AF_UNIX, .next = {CUT_NEVER, CUT_NEVER}};
  snprintf(p->from.sun_path, sizeof p->from.sun_path, "%s", from);
  snprintf(p->to.sun_path, sizeof p->to.sun_path, "%s", to);
  for (int i = 0; i < CUT_PAIRS; i++)
    p->pairs[i].ends[0] = p->pairs[i].ends[1] = -1;
  pthread_mutex_init(&p->lock, NULL);
  p->listener = socket(AF_UNIX, SOCK_STREAM, 0);
  return socketpair(AF_UNIX, SOCK_STREAM, 0, p->wake) == 0 && bind(p->listener, (struct sockaddr *)&p->from, sizeof p->from) == 0 &&
         listen(p->listener, 64) == 0 && pthread_create(&p->thread, NULL, cut_run, p) == 0;
}

static inline void cut_wake(struct cut_proxy *p) {
  ssize_t sent = send(p->wake[1], "", 1, MSG_NOSIGNAL);
  (void)sent;
}

/* Cuts what stands, and the next connection after so many bytes of its end `from`. */
static inline void cut_proxy_cut(struct cut_proxy *p, int from, long bytes) {
  pthread_mutex_lock(&p->lock);
  p->next[from] = bytes;
  p->next[1 - from] = CUT_NEVER;
  for (int i = 0; i < CUT_PAIRS; i++)
    cut_pair_close(&p->pairs[i]);
  pthread_mutex_unlock(&p->lock);
  cut_wake(p);
}

/* What stands is cut after so many more bytes of its end `from`. */
static inline void cut_proxy_cut_after(struct cut_proxy *p, int from, long bytes) {
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < CUT_PAIRS; i++)
    p->pairs[i].left[from] = bytes;
  pthread_mutex_unlock(&p->lock);
}

/* What stands passes nothing any more, and is not closed; what comes is not concerned. */
static inline void cut_proxy_freeze(struct cut_proxy *p) {
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < CUT_PAIRS; i++)
    p->pairs[i].is_frozen = true;
  pthread_mutex_unlock(&p->lock);
  cut_wake(p);
}

static inline void cut_proxy_stop(struct cut_proxy *p) {
  pthread_mutex_lock(&p->lock);
  p->is_over = true;
  pthread_mutex_unlock(&p->lock);
  cut_wake(p);
  pthread_join(p->thread, NULL);
  for (int i = 0; i < CUT_PAIRS; i++)
    cut_pair_close(&p->pairs[i]);
  close(p->listener);
  close(p->wake[0]);
  close(p->wake[1]);
  unlink(p->from.sun_path);
}

#endif
