/* process.c: starts and ends of simulated processes. */
#include "tests/simulator/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/program/program.h"
#include "tests/simulator/disk.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/memory.h"
#include "tests/simulator/net.h"
#include "tests/simulator/seam.h"
#include "tests/simulator/world.h"

/* The runtime's own variables, all in one section of the library that is simulated. */
extern unsigned char __start_process_data[], __stop_process_data[];
/* runtime/process/task_main.c, as the library has it. */
int task_main(const struct program *program, const struct kernel_code *kernels, int argc, char **argv);

static struct process *loaded;
static unsigned char *fresh_data; /* as a process finds its variables when it starts */
static uint32_t process_count;
static struct machine machines[MACHINES_MAX];

struct machine *machine_get(uint32_t number) {
  struct machine *machine = &machines[number];
  if (!machine->disk) {
    machine->number = number;
    machine->disk = disk_create();
    machine->wall_offset_ns = (int64_t)(1700000000 * WORLD_S);
  }
  return machine;
}

void machine_stop(struct machine *machine) {
  machine->is_down = true;
  disk_lose_power(machine->disk);
}
void machine_resume(struct machine *machine) { machine->is_down = false; }

uint32_t process_number(const struct process *process) { return ((const struct program *)process->program)->task; }
const char *process_name(const struct process *process) { return process->name; }
bool process_is_paused(const struct process *process) { return process->is_paused; }

/* ---- variables ---- */

static size_t data_size(void) { return (size_t)(__stop_process_data - __start_process_data); }

static void keep_fresh_data(void) {
  if (fresh_data)
    return;
  fresh_data = malloc(data_size());
  if (!fresh_data)
    abort();
  memcpy(fresh_data, __start_process_data, data_size());
}

void process_load(struct process *process) {
  if (loaded == process)
    return;
  simulated_stdout = process->out;
  simulated_stderr = process->err;
  if (loaded)
    memcpy(loaded->data, __start_process_data, data_size());
  memcpy(__start_process_data, process->data, data_size());
  loaded = process;
}

const unsigned char *process_data(const struct process *process, size_t *size) {
  *size = data_size();
  return loaded == process ? __start_process_data : process->data;
}

/* ---- what it says ---- */

struct voice {
  struct process *process;
  char line[2048];
  size_t size;
};

static ssize_t voice_write(void *self, const char *data, size_t size) {
  struct voice *voice = self;
  for (size_t i = 0; i < size; i++) {
    if (data[i] != '\n' && voice->size < sizeof voice->line - 1) {
      voice->line[voice->size++] = data[i];
      continue;
    }
    voice->line[voice->size] = 0;
    world_say(voice->process->name, "%s", voice->line);
    voice->size = 0;
  }
  return (ssize_t)size;
}

static FILE *voice_open(struct process *process) {
  struct voice *voice = calloc(1, sizeof *voice);
  if (!voice)
    abort();
  voice->process = process;
  FILE *file = fopencookie(voice, "w", (cookie_io_functions_t){.write = voice_write});
  setvbuf(file, NULL, _IOLBF, BUFSIZ);
  return file;
}

/* ---- start and end ---- */

static void *run_main(void *self) {
  struct process *process = self;
  process_exit(task_main(process->program, process->kernels, process->argc, process->argv));
}

struct process *process_start(const char *name, struct machine *machine, const void *program, const void *kernels, char **argv,
                              void (*on_end)(struct process *process), void *user) {
  struct process *process = calloc(1, sizeof *process);
  if (!process)
    abort();
  keep_fresh_data();
  *process = (struct process){.name = name,
                              .machine = machine,
                              .id = 100 + process_count++,
                              .argv = argv,
                              .program = program,
                              .kernels = kernels,
                              .user = user,
                              .on_end = on_end,
                              .data = malloc(data_size())};
  for (; argv[process->argc]; process->argc++)
    ;
  process->argv = calloc((size_t)process->argc + 1, sizeof *process->argv);
  for (int i = 0; i < process->argc; i++)
    process->argv[i] = strdup(argv[i]); /* it may write there */
  memcpy(process->data, fresh_data, data_size());
  process->memory = memory_create();
  process->out = voice_open(process);
  process->err = voice_open(process);
  fiber_detach(fiber_start(process, run_main, process));
  return process;
}

static void end(struct process *process, int code, bool was_killed) {
  process->has_ended = true;
  process->exit_code = code;
  process->ended_ns = world_now();
  for (int i = 0; i < PROCESS_FILES; i++)
    if (process->files[i])
      process->files[i]->kind->close(process->files[i], was_killed);
  process->on_end(process);
}

void process_exit(int code) {
  struct process *process = process_self();
  fflush(process->out);
  fflush(process->err);
  end(process, code, false);
  fiber_end_all(process);
  abort();
}

void process_kill(struct process *process) {
  if (process->has_ended)
    return;
  process->task = NULL;
  end(process, 128 + SIGKILL, true);
  fiber_end_all(process);
}

void process_pause(struct process *process, bool is_paused) { process->is_paused = is_paused; }

void process_signal(struct process *process, int number) {
  process->signal_waiting = number;
  process->told_ns = process->told_ns ? process->told_ns : world_now();
  fiber_wake(process, &process->signal_waiting, true);
}

/* ---- open files ---- */

int process_add_file(struct process *process, struct file *file) {
  for (int i = 3; i < PROCESS_FILES; i++)
    if (!process->files[i]) {
      process->files[i] = file;
      file->process = process;
      file->number = i;
      return i;
    }
  errno = EMFILE;
  return -1;
}

struct file *process_file(int number, const struct file_kind *kind) {
  struct process *process = process_self();
  struct file *file = number >= 0 && number < PROCESS_FILES ? process->files[number] : NULL;
  if (!file || (kind && file->kind != kind))
    errno = EBADF;
  return file && (!kind || file->kind == kind) ? file : NULL;
}

uint32_t process_count_files(const struct process *process) {
  uint32_t count = 0;
  for (int i = 0; i < PROCESS_FILES; i++)
    count += process->files[i] != NULL;
  return count;
}
