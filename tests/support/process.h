/* process.h: built tasks as processes of a test: started with words, killed, waited for; what they say is in a file of
 * the test's folder. */
#ifndef TFC_TESTS_SUPPORT_PROCESS_H
#define TFC_TESTS_SUPPORT_PROCESS_H

#include "tests/support/temp_path.h"
#include "tests/support/test.h"
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 256

struct process {
  pid_t id;      /* 0: it has been waited for */
  char log[128]; /* its stderr */
};

static char folder[TEMP_PATH_SIZE];
static struct process processes[PROCESSES_MAX];
static int process_count;

/* The program `name` of the folder, or a path from the root; words are separated by blanks. It ends with the test. */
static inline struct process *process_start(const char *name, const char *words) {
  assert_true(process_count < PROCESSES_MAX);
  struct process *p = &processes[process_count++];
  char copy[4096], program[256], *argv[128] = {program};
  int count = 1;
  snprintf(program, sizeof program, "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/", name);
  snprintf(p->log, sizeof p->log, "%s/%d.log", folder, process_count);
  snprintf(copy, sizeof copy, "%s", words);
  for (char *save = NULL, *word = strtok_r(copy, " ", &save); word && count < 127; word = strtok_r(NULL, " ", &save))
    argv[count++] = word;
  unlink(p->log); /* what an earlier one of that name said */
  p->id = fork();
  if (p->id == 0) {
    int log = open(p->log, O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_WRONLY);
    dup2(log, 2);
    dup2(null, 1);
    if (chdir(folder) == 0)
      execv(program, argv);
    _exit(127);
  }
  return p;
}

static inline double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline bool process_has_ended(struct process *p, int *code) {
  int state;
  if (p->id == 0 || waitpid(p->id, &state, WNOHANG) != p->id)
    return false;
  p->id = 0;
  *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return true;
}

static inline bool process_is_alive(struct process *p) {
  int code;
  return p->id > 0 && !process_has_ended(p, &code);
}

/* Waits; the exit code, or 128 + signal; -1 when it has not ended in time. */
static inline int process_end(struct process *p, double seconds) {
  int code = -1;
  for (double until = seconds_now() + seconds; seconds_now() < until && !process_has_ended(p, &code); usleep(2000))
    ;
  return code;
}

/* All that it has said, up to the next call. */
static inline const char *process_text(const struct process *p) {
  static char *text;
  static size_t room;
  size_t size = 0, got = 1;
  FILE *file = fopen(p->log, "r");
  while (file && got) {
    if (size + 4096 > room)
      text = realloc(text, room = (size + 4096) * 2);
    got = text ? fread(text + size, 1, room - 1 - size, file) : 0;
    size += got;
  }
  if (file)
    fclose(file);
  if (!text)
    return "";
  text[size] = 0;
  return text;
}

/* cmocka's own messages end after a kilobyte. */
static inline void process_show(const struct process *p) { fprintf(stderr, "%s says:\n%s\n", p->log, process_text(p)); }

static inline bool process_said(const struct process *p, const char *words) { return strstr(process_text(p), words) != NULL; }

/* The same, with all that it has said where that is not in it. */
static inline bool process_says(const struct process *p, const char *words) {
  if (!process_said(p, words))
    process_show(p);
  return process_said(p, words);
}

/* The same, of one that goes on: within 20 seconds. */
static inline bool process_comes_to_say(const struct process *p, const char *words) {
  for (double until = seconds_now() + 20; seconds_now() < until && !process_said(p, words); usleep(10000))
    ;
  return process_says(p, words);
}

static inline void process_must_end(struct process *p, int code, double seconds) {
  int is = process_end(p, seconds);
  if (is != code)
    process_show(p);
  assert_int_equal(is, code);
}

/* False: it had ended by itself. */
static inline bool process_kill(struct process *p) {
  int status = 0;
  bool was_there = p->id > 0 && kill(p->id, SIGKILL) == 0 && waitpid(p->id, &status, 0) == p->id && WIFSIGNALED(status);
  p->id = 0;
  return was_there;
}

static inline int process_kill_all(void **state) {
  (void)state;
  for (int i = 0; i < process_count; i++)
    process_kill(&processes[i]);
  process_count = 0;
  return 0;
}

#endif
