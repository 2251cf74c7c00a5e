/* record.h: what the last step of a driver has changed, call by call: what makes a step that is repeated half-way
 * change nothing twice.
 *
 * An update is noted that it was made; a call of the host also with what it gave, so that who asks again gets the same:
 * the element that a lost step took from a queue is its successor's. Kept until the driver's next step begins to change
 * something. A step finds the changes of an earlier try in their order: the n-th time it comes to an instruction is the
 * n-th note of it.
 *
 * Threads: any; one step of a driver's lane at a time. Owner: the task (commit.h). */
#ifndef TFC_RUNTIME_STEP_RECORD_H
#define TFC_RUNTIME_STEP_RECORD_H

#include "base/status.h"
#include "base/tensor.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct record_item {
  uint32_t instr; /* of the program */
  uint32_t output_count;
  struct tensor **outputs; /* of a host call; NULL entries where it gave none */
  bool is_used;            /* in this try */
};
struct record {
  struct record *next; /* of the task */
  uint32_t driver, lane, command;
  uint64_t serial;
  pthread_mutex_t lock; /* all below */
  uint32_t count, capacity;
  uint32_t unused; /* items of an earlier try that this one has not come to */
  struct record_item *items;
};

/* RESOURCE_EXHAUSTED. */
status record_create(uint32_t driver, uint32_t lane, struct record **out);
/* Accepts NULL. */
void record_destroy(struct record *record);
/* A try of this step begins: what is noted of an earlier one stays, of any other step goes. */
void record_begin(struct record *record, uint32_t command, uint64_t serial);
void record_clear(struct record *record);
/* Whether this step, or an earlier try of it, has changed anything. */
bool record_is_empty(struct record *record);
/* What an earlier try did at this instruction, the next time this one comes to it; false: nothing. Its outputs are the
 * record's, until the driver's next step. */
bool record_find(struct record *record, uint32_t instr, struct record_item *out);
/* Keeps a reference of each output. RESOURCE_EXHAUSTED: nothing is noted. */
status record_add(struct record *record, uint32_t instr, struct tensor *const *outputs, uint32_t output_count);

#endif
