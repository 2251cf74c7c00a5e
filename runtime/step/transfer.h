/* transfer.h: which values may come from which task: those that the program receives, with what is known of their sizes.
 *
 * Pure: it is made of the program once, and asked before memory is reserved for a value. Threads: any may ask. Owner: the task.
 */
#ifndef TFC_RUNTIME_STEP_TRANSFER_H
#define TFC_RUNTIME_STEP_TRANSFER_H

#include "base/status.h"
#include "base/tensor.h"
#include "runtime/program/program.h"

struct transfer_table;

status transfer_table_create(const struct program *program, struct transfer_table **out);
void transfer_table_destroy(struct transfer_table *table); /* accepts NULL */

/* A value of a step, as its sender announces it. */
struct transfer_claim {
  uint32_t from, transfer;
  uint64_t step; /* the upper 16 bits: its driver */
  enum dtype dtype;
  struct shape shape;
};
/* DATA_LOSS: no entry receives such a value from that task. */
status transfer_check(const struct transfer_table *table, const struct transfer_claim *claim);

#endif
