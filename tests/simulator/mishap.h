/* mishap.h: what goes wrong in a run: drawn from its seed before it begins, told in a line each, left out one by one when a run that failed
 * is to be understood. */
#ifndef TFC_TESTS_SIMULATOR_MISHAP_H
#define TFC_TESTS_SIMULATOR_MISHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simulator/moment.h"
#include "tests/simulator/world.h"

enum mishap_kind {
  MISHAP_CUT,     /* a connection between two tasks' machines breaks, after some more bytes */
  MISHAP_BLOCK,   /* nothing passes between two machines for a while */
  MISHAP_REFUSE,  /* a machine refuses connections for a while */
  MISHAP_SLOW,    /* a link gets slow */
  MISHAP_PAUSE,   /* a task is stopped for a while */
  MISHAP_CLOCK,   /* a machine's wall clock jumps */
  MISHAP_KILL,    /* a worker is killed and started again */
  MISHAP_KILL_PS, /* a ps is */
  MISHAP_POWER,   /* a machine loses its power, and what was not synced; its task is started again */
  MISHAP_POWER_PS,
  MISHAP_FULL,     /* a disk is full for a while */
  MISHAP_WIPE,     /* a ps is killed and comes back without its disk */
  MISHAP_LOSE,     /* a worker is killed and does not come back */
  MISHAP_TWIN,     /* a worker is started a second time */
  MISHAP_TEAR,     /* a worker is killed, and what it has said last does not arrive everywhere */
  MISHAP_TERM,     /* a task gets SIGTERM, and is started again */
  MISHAP_KILL_ALL, /* all tasks are killed at once, and started again */
  MISHAP_STICK,    /* a connection between two tasks' machines gets stuck for a while; others pass */
  MISHAP_LATE,     /* a worker is killed, and what it has said last to one task arrives late */
  MISHAP_MEMORY,   /* a task has no memory for copies of its variables for a while */
  MISHAP_KINDS
};
#define MISHAP(kind) (1u << (kind))

struct mishap {
  enum mishap_kind kind;
  uint64_t at_turn;   /* turns of threads since the start: what a run does most often is where it is hit most often */
  enum moment moment; /* not MOMENT_NONE: instead of a turn, when it has come so often */
  uint32_t moment_count;
  uint64_t after_ns; /* that: so that it is also hit while everybody waits */
  uint32_t a, b;     /* numbers of tasks */
  uint32_t how;
  uint64_t amount;  /* bytes, or ns */
  uint64_t back_ns; /* how long it lasts, or until a task is started again */
  bool is_due, has_happened;
};

#define MISHAPS_MAX 8

/* Draws up to MISHAPS_MAX of the allowed kinds over about so many turns. tasks: first the ps. */
uint32_t mishaps_draw(struct random *random, uint32_t allowed, uint32_t ps_count, uint32_t task_count, uint64_t turns, struct mishap *out);
/* Moves most of them to moments. */
void mishaps_aim(struct random *random, uint32_t moments, struct mishap *mishaps, uint32_t count);
/* Whether it is one that tells ps, or workers, apart. */
bool mishap_is_of_ps(enum mishap_kind kind);
bool mishap_is_of_worker(enum mishap_kind kind);
/* A line. */
void mishap_text(const struct mishap *mishap, char *out, size_t size);

#endif
