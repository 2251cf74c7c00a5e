/* job.h: builds for the simulator: graphs and clusters, compiled in this process as tfc build does. */
#ifndef TFC_TESTS_SIMULATOR_JOB_H
#define TFC_TESTS_SIMULATOR_JOB_H

#include <stdbool.h>
#include <stdint.h>

#define JOB_TASKS_MAX 8

struct job_task {
  char name[32]; /* "worker_0" */
  bool is_ps;
  const void *program; /* struct program */
  const void *kernels; /* struct kernel_code [] */
};
/* What is fed: a .npy file of `rows` for each step and worker, on each worker's disk. */
struct job_feed {
  const char *name;
  bool is_float;
  uint32_t columns; /* 0: no second axis */
};
struct job {
  const char *name;
  uint32_t task_count, ps_count, worker_count;
  struct job_task tasks[JOB_TASKS_MAX];
  struct job_feed feeds[2];
  uint32_t batch;
  const char *fetch; /* NULL, or an output to be kept of each step */
};

/* A job whose steps can be counted: of each step's number, which is fed, each ps keeps how often it came (`hits_P`) and adds up what is fed
 * beside it (`sum_P`); the step's result is twice of that. Lasts as long as the process; ends it with a word where it cannot be built. */
struct job *job_counting(const char *name, uint32_t ps_count, uint32_t worker_count);
/* The same, but a ps adds what the worker answers to what it has counted and has taken from a queue: it waits amid its changes. Of the
 * queue's numbers, 0, 1, 2 ..., it counts which it has taken (`taken_P`). */
struct job *job_asking(const char *name, uint32_t ps_count, uint32_t worker_count);
/* As job_counting; and variables begin with random numbers, those of `drawn_P` the chief's; to them each step adds one that its worker
 * draws. */
struct job *job_drawing(const char *name, uint32_t ps_count, uint32_t worker_count);
/* A graph of tests/golden/models for one machine (x, label -> loss | train_op), spread by --strategy; with it other entries. */
struct job *job_of_model(const char *name, const char *model, const char *strategy, uint32_t ps_count, uint32_t worker_count);
/* A graph of tests/golden/runners whose workers' gradients meet in rounds with tokens, as SyncReplicasOptimizer makes them, and its entry
 * `init`. */
struct job *job_of_tokens(const char *name, const char *model, const char *init, uint32_t ps_count, uint32_t worker_count);

#define JOB_HITS 64    /* numbers of steps: step * workers + worker, as rows are dealt out */
#define JOB_REDRAWN 32 /* where scenarios want it, a worker that was started again feeds numbers that are so much higher */

#endif
