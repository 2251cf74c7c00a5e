/* command_run.c: tfc run DIR: every task of a build on this machine, their output in one log with a prefix for each line.
 *
 * The options go to every task of the replicated job, or to the chief alone where nothing is replicated; the other tasks only
 * serve, and are ended when those with phases are done. The first failure is said last, its code is the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compiler/commands.h"

struct child {
  const char *name, *path;
  pid_t pid;
  int out;             /* its stdout and stderr */
  bool has_phases, ended;
  int code;
  char line[4096], last[4096];
  size_t used;
};
struct crew {
  struct arena arena;
  VEC(struct child) children;
  const char *replicated;
  int first_failure;   /* index of a child, -1: none */
  bool told;           /* to leave, by SIGTERM */
};

static volatile sig_atomic_t stop_signals;
static void on_signal(int number) {
  (void)number;
  stop_signals++;
}

/* ---- the build ---- */

static status load_build(struct crew *crew, const char *dir) {
  const char *path = arena_printf(&crew->arena, "%s/build.json", dir);
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (!root)
    return fail(NOT_FOUND, "%s: %s", path, error.text);
  size_t i;
  json_t *task;
  json_array_foreach(json_object_get(root, "tasks"), i, task) {
    const char *job = json_string_value(json_object_get(task, "job")), *file = json_string_value(json_object_get(task, "file"));
    if (!job || !file)
      continue;
    struct child c = {.out = -1};
    c.name = arena_printf(&crew->arena, "%s_%d", job, (int)json_integer_value(json_object_get(task, "index")));
    c.path = arena_printf(&crew->arena, "%s/%s", dir, file);
    vec_push(&crew->children, c);
  }
  const char *replicated = json_string_value(json_object_get(root, "replicated"));
  crew->replicated = replicated ? arena_strdup(&crew->arena, replicated) : "";
  json_decref(root);
  return crew->children.count ? OK : fail(INVALID_ARGUMENT, "%s: names no task", path);
}

static bool is_of_job(const char *name, const char *job) {
  size_t n = strlen(job);
  return strncmp(name, job, n) == 0 && name[n] == '_';
}

static uint32_t chief_of(const struct crew *crew) {
  static const char *const names[] = {"chief_0", "worker_0"};
  for (size_t n = 0; n < 2; n++)
    for (uint32_t i = 0; i < crew->children.count; i++)
      if (strcmp(crew->children.items[i].name, names[n]) == 0)
        return i;
  return 0;
}

/* ---- processes ---- */

static status start(struct child *c, int argc, char **argv) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0)
    return fail(RESOURCE_EXHAUSTED, "%s: %s", c->name, strerror(errno));
  c->pid = fork();
  if (c->pid == 0) {
    setpgid(0, 0); /* a Ctrl-C reaches us alone: we end the tasks in order */
    dup2(pipe_ends[1], 1);
    dup2(pipe_ends[1], 2);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    char **args = calloc((size_t)argc + 2, sizeof *args);
    args[0] = (char *)(uintptr_t)c->path;
    for (int i = 0; i < argc && c->has_phases; i++)
      args[i + 1] = argv[i];
    execv(c->path, args);
    fprintf(stderr, "error: NOT_FOUND: %s: %s\n", c->path, strerror(errno));
    _exit(65);
  }
  close(pipe_ends[1]);
  c->out = pipe_ends[0];
  fcntl(c->out, F_SETFL, O_NONBLOCK);
  fcntl(c->out, F_SETFD, FD_CLOEXEC);
  return c->pid > 0 ? OK : fail(RESOURCE_EXHAUSTED, "%s: %s", c->name, strerror(errno));
}

static void print_line(struct child *c) {
  c->line[c->used] = 0;
  printf("%s: %s\n", c->name, c->line);
  memcpy(c->last, c->line, c->used + 1);
  c->used = 0;
}

static void read_output(struct child *c) {
  char buffer[4096];
  ssize_t n = read(c->out, buffer, sizeof buffer);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    if (c->used)
      print_line(c);
    close(c->out);
    c->out = -1;
  }
  for (ssize_t i = 0; i < n; i++) {
    if (buffer[i] == '\n' || c->used + 1 == sizeof c->line)
      print_line(c);
    if (buffer[i] != '\n')
      c->line[c->used++] = buffer[i];
  }
  fflush(stdout);
}

static void reap(struct crew *crew) {
  int code;
  for (uint32_t i = 0; i < crew->children.count; i++) {
    struct child *c = &crew->children.items[i];
    if (c->ended || c->out >= 0 || waitpid(c->pid, &code, WNOHANG) != c->pid)
      continue;
    c->ended = true;
    c->code = WIFSIGNALED(code) ? 128 + WTERMSIG(code) : WEXITSTATUS(code);
    bool obeyed = crew->told && c->code == 128 + SIGTERM;
    if (c->code && crew->first_failure < 0 && !stop_signals && !obeyed)
      crew->first_failure = (int)i;
  }
}

static void signal_all(const struct crew *crew, int number) {
  for (uint32_t i = 0; i < crew->children.count; i++)
    if (!crew->children.items[i].ended && crew->children.items[i].pid > 0)
      kill(crew->children.items[i].pid, number);
}

static bool phases_done(const struct crew *crew) {
  for (uint32_t i = 0; i < crew->children.count; i++)
    if (crew->children.items[i].has_phases && !crew->children.items[i].ended)
      return false;
  return true;
}
static bool all_ended(const struct crew *crew) {
  for (uint32_t i = 0; i < crew->children.count; i++)
    if (!crew->children.items[i].ended)
      return false;
  return true;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define ORDERLY_S 5.0 /* how long tasks have to leave by themselves, then after SIGTERM */

static void wait_all(struct crew *crew) {
  double done_at = -1;
  int sent = 0;
  while (!all_ended(crew)) {
    struct pollfd fds[256];
    nfds_t n = 0;
    for (uint32_t i = 0; i < crew->children.count && n < 256; i++)
      if (crew->children.items[i].out >= 0)
        fds[n++] = (struct pollfd){.fd = crew->children.items[i].out, .events = POLLIN};
    poll(fds, n, 20);
    for (uint32_t i = 0; i < crew->children.count; i++)
      if (crew->children.items[i].out >= 0)
        read_output(&crew->children.items[i]);
    reap(crew);
    bool end = phases_done(crew) || crew->first_failure >= 0 || stop_signals;
    if (!end)
      continue;
    if (done_at < 0)
      done_at = now();
    double waited = now() - done_at;
    bool hurry = crew->first_failure >= 0 || stop_signals;
    if (sent == 0 && (hurry || waited > 0.5)) /* a ps leaves by itself; what only serves is told to */
      signal_all(crew, SIGTERM), crew->told = true, sent = 1;
    if (sent == 1 && (waited > ORDERLY_S || stop_signals > 1))
      signal_all(crew, SIGKILL), sent = 2;
  }
}

/* A served task that was told to leave reports the signal: that is no failure. */
static int conclude(const struct crew *crew) {
  if (crew->first_failure >= 0) {
    const struct child *c = &crew->children.items[crew->first_failure];
    fflush(stdout);
    fprintf(stderr, "tfc run: %s failed with code %d\n%s\n", c->name, c->code, c->last);
    return c->code;
  }
  return stop_signals ? 128 + SIGTERM : 0;
}

int command_run(const char *dir, int argc, char **argv) {
  struct crew crew = {.first_failure = -1};
  arena_init(&crew.arena);
  status s = load_build(&crew, dir);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  for (uint32_t i = 0; s == OK && i < crew.children.count; i++) {
    struct child *c = &crew.children.items[i];
    c->has_phases = argc > 0 && (*crew.replicated ? is_of_job(c->name, crew.replicated) : i == chief_of(&crew));
    s = start(c, argc, argv);
  }
  if (s != OK) {
    signal_all(&crew, SIGKILL);
    fprintf(stderr, "error: %s: %s\n", status_name(s), status_text());
    return status_exit_code(s);
  }
  wait_all(&crew);
  int code = conclude(&crew);
  vec_free(&crew.children);
  arena_deinit(&crew.arena);
  return code;
}
