/* memory.h: the heap of a simulated process: which blocks it has, so that what is left at its end can be told. */
#ifndef TFC_TESTS_SIMULATOR_MEMORY_H
#define TFC_TESTS_SIMULATOR_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct memory;
struct process;

/* Once, before there is a process: what blank large blocks are copied from when they are written. */
void memory_prepare(void);
struct memory *memory_create(void);
/* Bytes in use, now and at most. */
uint64_t memory_bytes(const struct memory *memory);
uint64_t memory_bytes_most(const struct memory *memory);
/* Blocks that nothing refers to any more, from the process's variables and its other threads on: at its end. The largest goes to `largest`,
 * who asked for it to `caller`. */
uint32_t memory_lost(const struct process *process, size_t *largest, void **caller);

#endif
