/* fiber.h: the threads of simulated processes. One runs at a time, until it waits or gives way; who is next is drawn by the world. */
#ifndef TFC_TESTS_SIMULATOR_FIBER_H
#define TFC_TESTS_SIMULATOR_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process;
struct fiber;

/* A thread of the process; it runs when its turn comes. */
struct fiber *fiber_start(struct process *process, void *(*run)(void *), void *argument);
/* The one that runs; NULL outside. */
struct fiber *fiber_self(void);
struct process *fiber_process(const struct fiber *fiber);
struct process *process_self(void);
uint32_t fiber_id(const struct fiber *fiber);
struct fiber *fiber_find(const struct process *process, uint32_t id);

/* Others may run now; at every call of the system, by chance. */
void fiber_give_way(void);
void fiber_maybe_give_way(void);
/* Waits until somebody wakes who waits for `what` in this process, or until the time (UINT64_MAX: none). False: the time is over. May wake
 * for nothing. `why`: for the story. */
bool fiber_wait(const void *what, uint64_t until_ns, const char *why);
/* Wakes one of them, drawn, or all. */
void fiber_wake(const struct process *process, const void *what, bool all);

/* The current one ends. Does not return. */
__attribute__((noreturn)) void fiber_exit(void *result);
/* Waits for it to end, and takes what it gave. */
void *fiber_join(struct fiber *fiber);
void fiber_detach(struct fiber *fiber);
/* All fibers of the process end at once, wherever they are. When the current one is among them it does not return. */
void fiber_end_all(struct process *process);

/* One turn: false when nobody can run. */
bool fiber_run_one(void);
/* The stacks of the process's fibers but the current one, and what those were given that have not begun. */
void fiber_each_stack(const struct process *process, void (*see)(void *self, const void *stack, size_t size), void *self);
/* What each fiber of the process waits for. */
void fiber_explain(const struct process *process);

#endif
