/* monotonic.h: the clock by which tasks wait: it does not jump when somebody sets the machine's. No errors. Any thread. */
#ifndef TFC_RUNTIME_PROGRAM_MONOTONIC_H
#define TFC_RUNTIME_PROGRAM_MONOTONIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t monotonic_ms(void);
/* Of waits by this clock. The caller destroys it. */
void monotonic_cond_init(pthread_cond_t *changed);
/* Under the lock, which is given back meanwhile. False: the time has come. */
bool monotonic_wait(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t until_ms);

#endif
