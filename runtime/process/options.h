/* options.h: the command line of a task (contract, section 2): global options, then phases from left to right. */
#ifndef TFC_RUNTIME_PROCESS_OPTIONS_H
#define TFC_RUNTIME_PROCESS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "runtime/net/tls.h"

struct named_file {
  const char *name, *path; /* NAME=FILE: name ends at the last `=` that has a path behind it */
};
struct phase_options {
  const char *entry;
  struct named_file *feeds, *fetches;
  uint32_t feed_count, fetch_count;
  int64_t batch; /* rows; 0: the whole array in each step */
  int64_t steps;
};
struct peer_address {
  const char *job;
  uint32_t index;
  const char *address;
};
struct task_options {
  bool help, version, no_init;
  bool elastic; /* synchronous rounds go on without members that are lost */
  double timeout_s;
  struct tls_files tls; /* `{task}` in them stands for the task's name; all NULL: no TLS */
  bool allow_clients;
  int64_t client_memory_mib;   /* 0: not given */
  int threads;                 /* 0: one for each core */
  const char *address;         /* NULL: as built */
  const char *checkpoint_dir;  /* NULL: none */
  const char *restore;         /* NULL: none */
  int64_t save_steps;          /* 0: not by steps */
  double save_seconds;         /* 0: not by time */
  int64_t keep;                /* checkpoints */
  const char *log_dir, *trace; /* NULL: none */
  int64_t log_every;           /* prints fetches every so many steps and at the last; 0: only then */
  struct peer_address *peers;
  uint32_t peer_count;
  const char **runners; /* entries that are run beside the phases */
  uint32_t runner_count;
  struct phase_options *phases;
  uint32_t phase_count;
};

/* INVALID_ARGUMENT: a wrong command line (exit code 64); UNIMPLEMENTED: an option of the contract that is not built yet.
 * Texts are kept by reference, lists are allocated; options_deinit frees them. */
status options_parse(int argc, char **argv, struct task_options *out);
void options_deinit(struct task_options *options);

#endif
