/* exchange_local.c: a single task's parts talk through its rendezvous, so nothing ever comes here. */
#include "runtime/step/exchange_local.h"

static void local_start(void *self, uint32_t task, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  (void)self, (void)task, (void)step, (void)entry, (void)command, (void)serial;
}
static void local_send(void *self, uint32_t task, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  (void)self, (void)task, (void)step, (void)transfer;
  tensor_release(tensor);
}
static void local_done(void *self, uint32_t task, uint64_t step, status code, const char *text) {
  (void)self, (void)task, (void)step, (void)code, (void)text;
}
static void local_cancel(void *self, uint32_t task, uint64_t step) { (void)self, (void)task, (void)step; }

const struct exchange exchange_local = {.start = local_start, .send = local_send, .done = local_done, .cancel = local_cancel};
