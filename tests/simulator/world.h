/* world.h: what a simulated run has one of: its time, its random numbers, what is to happen, and what was said.
 *
 * Time is virtual: it moves when nobody can go on, to the next thing that is to happen. Everything is decided by random numbers of one
 * seed, so a run repeats exactly. One world to a process: each run has a process of its own (run.h).
 */
#ifndef TFC_TESTS_SIMULATOR_WORLD_H
#define TFC_TESTS_SIMULATOR_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_US UINT64_C(1000)
#define WORLD_MS UINT64_C(1000000)
#define WORLD_S UINT64_C(1000000000)

/* A stream of random numbers. */
struct random {
  uint64_t state;
};
uint64_t random_next(struct random *random);
/* 0 .. below - 1; 0 for 0. */
uint64_t random_below(struct random *random, uint64_t below);

/* How a run behaves where nothing breaks; by its seed. */
struct world_manner {
  uint32_t switch_in;   /* a thread gives way at one of so many calls of the system; 0: only where it waits */
  uint32_t stall_in;    /* at one of so many it gets no core for a while, whatever it is at; 0: never */
  uint64_t latency_ns;  /* of a link, one way, at most twice of it */
  uint64_t bytes_per_s; /* of a connection */
  uint32_t socket_room; /* bytes on their way or unread, before a writer has to wait */
  bool is_one_machine;  /* all tasks on one */
};

/* The story goes to `story`. */
void world_begin(uint64_t seed, char *story, size_t story_room);
struct world_manner *world_manner(void);
struct random *world_random(void);

uint64_t world_now(void);
/* Wall clocks differ from it, and jump. */
uint64_t world_turns(void);

/* Runs later, in order of time, then of asking. */
void world_after(uint64_t delay_ns, void (*run)(void *self, uint64_t number), void *self, uint64_t number);
/* The next thing that is to happen, happens; false: there is none, or not before `until_ns`. */
bool world_advance(uint64_t until_ns);
void world_count_turn(void);

/* A line of the run's story: time, who, what. */
void world_say(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
