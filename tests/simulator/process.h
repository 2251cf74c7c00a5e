/* process.h: simulated machines and the processes on them: each with its own copy of the runtime's variables, its open files, its memory.
 *
 * A machine has an address, a disk and a wall clock. A process is one start of a task; it ends by itself, by exit, or killed.
 */
#ifndef TFC_TESTS_SIMULATOR_PROCESS_H
#define TFC_TESTS_SIMULATOR_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/map.h"
#include "base/vec.h"

struct disk;
struct task;

#define PROCESS_FILES 256
#define MACHINES_MAX 16

struct machine {
  uint32_t number;
  struct disk *disk;
  int64_t wall_offset_ns; /* of its wall clock */
  bool is_down;           /* it answers nobody */
  uint64_t copies_ns;     /* from when on it has memory for copies of variables */
};

/* What an open file is; the functions may be NULL. */
struct file;
struct file_kind {
  const char *name;
  void (*close)(struct file *file, bool was_killed);
};
struct file {
  const struct file_kind *kind;
  struct process *process; /* that has it open */
  int number;
  bool waits; /* reading and writing wait: no O_NONBLOCK */
};

struct memory;
struct observed;

struct process {
  const char *name; /* "worker_0" */
  struct machine *machine;
  uint32_t id;
  int argc;
  char **argv;
  const void *program;
  const void *kernels;
  void (*on_end)(struct process *process);
  void *user; /* of whoever started it */
  bool has_ended, is_paused;
  int exit_code;      /* 128 + signal when it was killed */
  int signal_waiting; /* 0: none */
  struct file *files[PROCESS_FILES];
  unsigned char *data; /* the runtime's variables while another process runs */
  FILE *out, *err;
  struct task *task; /* between task_create and task_destroy */
  bool is_leaving;   /* its work is over, good or bad, and it says good-bye */
  struct memory *memory;
  VEC(struct observed *) kept; /* observe.h */
  uint64_t ended_ns;
  uint64_t told_ns; /* when it got its first signal; 0: none */
};

struct machine *machine_get(uint32_t number);
/* Its power goes, or comes back: what was not synced is lost, as chance has it; its processes were killed before. */
void machine_stop(struct machine *machine);
void machine_resume(struct machine *machine);

/* Starts program and kernels with arguments; argv[0] is the name. It runs in world time. on_end: once, whatever the end. */
struct process *process_start(const char *name, struct machine *machine, const void *program, const void *kernels, char **argv,
                              void (*on_end)(struct process *process), void *user);
/* SIGKILL. */
void process_kill(struct process *process);
/* SIGSTOP and SIGCONT. */
void process_pause(struct process *process, bool is_paused);
/* SIGTERM and the like, to who waits for signals. */
void process_signal(struct process *process, int number);
/* From one of its fibers; does not return. */
__attribute__((noreturn)) void process_exit(int code);

bool process_is_paused(const struct process *process);
const char *process_name(const struct process *process);
/* Of its task, in the build. */
uint32_t process_number(const struct process *process);
/* Puts the runtime's variables of this process in place. */
void process_load(struct process *process);
/* Where they are now, and how many bytes: for the search for what is still used. */
const unsigned char *process_data(const struct process *process, size_t *size);

/* The lowest free number; -1 with errno. */
int process_add_file(struct process *process, struct file *file);
/* NULL with EBADF when it is none, or of another kind (NULL: any). */
struct file *process_file(int number, const struct file_kind *kind);
uint32_t process_count_files(const struct process *process);

#endif
