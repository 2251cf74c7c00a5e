/* signals.c: one thread in sigwait, so that stopping is ordinary code and not a handler. */
#include "runtime/process/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static void (*stop_function)(void *), (*report_function)(void *), (*reload_function)(void *);
static void *stop_self;
static atomic_int caught;

static void signal_set(sigset_t *set) {
  sigemptyset(set);
  sigaddset(set, SIGTERM);
  sigaddset(set, SIGINT);
  sigaddset(set, SIGUSR1);
  sigaddset(set, SIGHUP);
}

void signals_block(void) {
  sigset_t set;
  signal_set(&set);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow any more: writing to it says so */
}

static void *signals_main(void *unused) {
  (void)unused;
  sigset_t set;
  signal_set(&set);
  for (;;) {
    int number;
    if (sigwait(&set, &number) != 0)
      continue;
    if (number == SIGUSR1) {
      report_function(stop_self);
      continue;
    }
    if (number == SIGHUP && reload_function) {
      reload_function(stop_self);
      continue;
    }
    if (atomic_exchange(&caught, number))
      _exit(128 + number);
    stop_function(stop_self);
  }
  return NULL;
}

void signals_watch(void (*stop)(void *self), void (*report)(void *self), void *self) {
  pthread_t thread;
  stop_function = stop;
  report_function = report;
  stop_self = self;
  if (pthread_create(&thread, NULL, signals_main, NULL) == 0)
    pthread_detach(thread);
}

void signals_reload_by(void (*reload)(void *self)) {
  reload_function = reload;
  signal(SIGHUP, SIG_DFL); /* also under nohup */
}

int signals_caught(void) { return atomic_load(&caught); }
