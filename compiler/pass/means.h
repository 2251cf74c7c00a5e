/* means.h: with --strategy: which values of each step become the means of all workers', and what in it differs from worker to worker. */
#ifndef TFC_COMPILER_PASS_MEANS_H
#define TFC_COMPILER_PASS_MEANS_H

#include "compiler/pass/gradients.h"

/* Of the flows as pass `means` saw them; pass `spread` is the next to change them, and the last that asks. */
struct means {
  struct reach *reaches; /* per entry */
  struct gradients *gradients;
  uint32_t count; /* of entries */
};
void means_deinit(struct means *means);

#endif
