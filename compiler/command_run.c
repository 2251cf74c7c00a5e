/* command_run.c: tfc run DIR: every task of a build on this machine, their output in one log with a prefix for each line.
 *
 * The options go to every task of the replicated job, or to the chief alone where nothing is replicated; a chief beside the replicas runs
 * `init`. The other tasks only serve, and are ended when those with phases are done (what run_options.c says goes to others too). The first
 * failure is said last, its code is the exit code. On a terminal the last line says how far it is, and fetches are printed once. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compiler/commands.h"
#include "compiler/run_options.h"
#include "compiler/run_progress.h"
#include "compiler/run_trace.h"
#include "compiler/task_file.h"
#include "runtime/process/progress.h"

struct child {
  struct run_task task;
  pid_t pid;
  int out;     /* its stdout and stderr */
  int says;    /* where it says how far it is; -1: nowhere */
  char **args; /* argv, ends with NULL */
  bool ended;
  int code;
  char line[4096], last[4096];
  size_t used;
  char news[512]; /* the last line that it said there, as far as it has come */
  size_t news_used;
};
struct crew {
  struct arena arena;
  struct run_progress *progress; /* of each child; NULL: nobody looks */
  char shown[512];               /* the line on the terminal, "" when it is erased */
  VEC(struct child) children;
  const char *replicated;
  bool has_init;     /* an entry `init` that needs no feeds */
  int first_failure; /* index of a child, -1: none */
  bool told;         /* to leave, by SIGTERM */
};

static volatile sig_atomic_t stop_signals, stop_signal, asked;
static void on_signal(int number) {
  stop_signal = number;
  stop_signals++;
}
static void on_question(int number) { asked = number; } /* SIGUSR1: the tasks say what they are at */

static void catch_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct sigaction action = {.sa_handler = on_signal}, before;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i] != SIGHUP || (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)) /* nohup */
      sigaction(numbers[i], &action, NULL);
  action.sa_handler = on_question;
  sigaction(SIGUSR1, &action, NULL);
}

/* ---- the build ---- */

static bool has_init(const json_t *root) {
  size_t i;
  json_t *entry;
  json_array_foreach(json_object_get(root, "entries"), i, entry) {
    const char *name = json_string_value(json_object_get(entry, "name"));
    if (name && strcmp(name, "init") == 0)
      return json_array_size(json_object_get(entry, "feeds")) == 0;
  }
  return false;
}

static status load_build(struct crew *crew, const char *dir) {
  const char *path = arena_printf(&crew->arena, "%s/build.json", dir);
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (!root)
    return fail(NOT_FOUND, "%s: %s (tfc run takes the folder that tfc build has made)", path,
                error.line < 0 ? strerror(errno) : error.text); /* without a line: it cannot be opened */
  size_t i;
  json_t *task;
  json_array_foreach(json_object_get(root, "tasks"), i, task) {
    const char *job = json_string_value(json_object_get(task, "job")), *file = json_string_value(json_object_get(task, "file"));
    if (!job || !file)
      continue;
    struct child c = {.out = -1, .says = -1};
    c.task.name = arena_printf(&crew->arena, "%s_%d", job, (int)json_integer_value(json_object_get(task, "index")));
    c.task.path = arena_printf(&crew->arena, "%s/%s", dir, file);
    vec_push(&crew->children, c);
  }
  const char *replicated = json_string_value(json_object_get(root, "replicated"));
  crew->replicated = replicated ? arena_strdup(&crew->arena, replicated) : "";
  crew->has_init = has_init(root);
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
      if (strcmp(crew->children.items[i].task.name, names[n]) == 0)
        return i;
  return 0;
}

/* ---- processes ---- */

/* In the child: its two ends, and what it runs. */
static void become_task(const struct child *c, int out, int says, pid_t parent) {
  char number[16];
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* also when we are killed at once: they end in order */
  if (getppid() != parent)
    _exit(128 + SIGTERM);
  setpgid(0, 0); /* a Ctrl-C reaches us alone: we end the tasks in order */
  dup2(out, 1);
  dup2(out, 2);
  snprintf(number, sizeof number, "%d", says);
  if (says >= 0)
    setenv(PROGRESS_VARIABLE, number, 1);
  else
    unsetenv(PROGRESS_VARIABLE);
  execv(c->task.path, c->args);
  fprintf(stderr, "error: NOT_FOUND: %s: %s\n", c->task.path, strerror(errno));
  _exit(65);
}

static status start(struct child *c, bool watched) {
  int out[2], says[2] = {-1, -1};
  if (pipe2(out, O_CLOEXEC) != 0 || (watched && c->task.has_phases && pipe2(says, O_NONBLOCK) != 0))
    return fail(RESOURCE_EXHAUSTED, "%s: %s", c->task.name, strerror(errno));
  pid_t self = getpid();
  c->pid = fork();
  if (c->pid == 0) {
    close(says[0]);
    become_task(c, out[1], says[1], self);
  }
  close(out[1]);
  if (says[1] >= 0) {
    close(says[1]);
    fcntl(says[0], F_SETFD, FD_CLOEXEC);
  }
  c->out = out[0];
  c->says = says[0];
  fcntl(c->out, F_SETFL, O_NONBLOCK);
  return c->pid > 0 ? OK : fail(RESOURCE_EXHAUSTED, "%s: %s", c->task.name, strerror(errno));
}

/* ---- the screen ---- */

static void erase_progress(struct crew *crew) {
  if (*crew->shown)
    fputs("\r\033[K", stdout);
  *crew->shown = 0;
}

static void draw_progress(struct crew *crew) {
  struct winsize window = {0};
  char text[512];
  if (!crew->progress)
    return;
  size_t width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col - 1u : 79;
  run_progress_text(crew->progress, crew->children.count, width, text, sizeof text);
  if (strcmp(text, crew->shown) == 0)
    return;
  erase_progress(crew);
  fputs(text, stdout);
  fflush(stdout);
  memcpy(crew->shown, text, sizeof crew->shown);
}

static void print_line(struct crew *crew, struct child *c) {
  c->line[c->used] = 0;
  erase_progress(crew);
  printf("%s: %s\n", c->task.name, c->line);
  memcpy(c->last, c->line, c->used + 1);
  c->used = 0;
}

static void read_output(struct crew *crew, struct child *c) {
  char buffer[4096];
  ssize_t n = read(c->out, buffer, sizeof buffer);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    if (c->used)
      print_line(crew, c);
    close(c->out);
    c->out = -1;
  }
  for (ssize_t i = 0; i < n; i++) {
    if (buffer[i] == '\n' || c->used + 1 == sizeof c->line)
      print_line(crew, c);
    if (buffer[i] != '\n')
      c->line[c->used++] = buffer[i];
  }
  fflush(stdout);
}

static void read_news(struct child *c, struct run_progress *progress) {
  char buffer[4096];
  ssize_t n = read(c->says, buffer, sizeof buffer);
  if (n == 0) {
    close(c->says);
    c->says = -1;
  }
  for (ssize_t i = 0; i < n; i++) {
    if (buffer[i] == '\n') {
      c->news[c->news_used] = 0;
      run_progress_read(c->news, progress);
      c->news_used = 0;
    } else if (c->news_used + 1 < sizeof c->news) {
      c->news[c->news_used++] = buffer[i];
    }
  }
}

static void read_all(struct crew *crew) {
  bool news = false;
  for (uint32_t i = 0; i < crew->children.count; i++) {
    struct child *c = &crew->children.items[i];
    if (c->out >= 0)
      read_output(crew, c);
    if (c->says >= 0) {
      read_news(c, &crew->progress[i]);
      news = true;
    }
  }
  if (news)
    draw_progress(crew);
}

/* ---- ends ---- */

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
    if ((crew->children.items[i].task.has_phases || crew->children.items[i].task.initialises) && !crew->children.items[i].ended)
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
    read_all(crew);
    reap(crew);
    if (asked) {
      asked = 0;
      signal_all(crew, SIGUSR1);
    }
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
  erase_progress(crew);
  fflush(stdout);
}

/* A served task that was told to leave reports the signal: that is no failure. */
static int conclude(const struct crew *crew) {
  if (crew->first_failure >= 0) {
    const struct child *c = &crew->children.items[crew->first_failure];
    fflush(stdout);
    fprintf(stderr, "tfc run: %s failed with code %d\n", c->task.name, c->code);
    if (strncmp(c->last, "error: ", 7) == 0)
      fprintf(stderr, "%s\n", c->last);
    else if (c->code > 128)
      fprintf(stderr, "error: ABORTED: %s was ended by signal %d (%s)\n", c->task.name, c->code - 128, strsignal(c->code - 128));
    else
      fprintf(stderr, "error: INTERNAL: %s ended without saying why; its last line was: %s\n", c->task.name, *c->last ? c->last : "none");
    return c->code;
  }
  return stop_signals ? 128 + stop_signal : 0;
}

static void report(status code) { fprintf(stderr, "error: %s: %s\n", status_name(code), status_text()); }

/* What a checkpoint would hold: states of generators are a task's own matter (runtime/checkpoint/keeper.c). */
static status find_variables(struct crew *crew) {
  bool any = false;
  for (uint32_t i = 0; i < crew->children.count; i++) {
    struct run_task *task = &crew->children.items[i].task;
    struct task_file file;
    TRY(task_file_open(task->path, &file));
    for (uint32_t v = 0; v < file.program->tables[PROGRAM_VARIABLES].count; v++)
      if (strcmp(program_text(file.program, program_variable(file.program, v)->container), "tfc-random") != 0)
        any = task->has_variables = true;
    task_file_close(&file);
  }
  return any ? OK : fail(INVALID_ARGUMENT, "--checkpoint-dir, --restore: no task of this build has variables");
}

static status start_all(struct crew *crew, const struct run_options *options) {
  if (options->checkpoint_dir || options->of_checkpoints[3])
    TRY(find_variables(crew));
  for (uint32_t i = 0; i < crew->children.count; i++) {
    struct child *c = &crew->children.items[i];
    c->task.has_phases = options->count > 0 && (*crew->replicated ? is_of_job(c->task.name, crew->replicated) : i == chief_of(crew));
    c->task.initialises = options->count > 0 && !c->task.has_phases && i == chief_of(crew) && crew->has_init && !options->no_init;
    c->args = run_options_for(options, &c->task, &crew->arena);
    TRY(start(c, crew->progress != NULL));
  }
  return OK;
}

static status join_traces(struct crew *crew, const struct run_options *options) {
  const char **parts = ARENA_ARRAY(&crew->arena, const char *, crew->children.count + 1);
  for (uint32_t i = 0; i < crew->children.count; i++)
    parts[i] = run_options_trace(options, crew->children.items[i].task.name, &crew->arena);
  return options->trace ? run_trace_join(options->trace, parts, crew->children.count) : OK;
}

int command_run(const char *dir, int argc, char **argv) {
  struct crew crew = {.first_failure = -1};
  struct run_options options = {0};
  arena_init(&crew.arena);
  status s = load_build(&crew, dir);
  catch_signals();
  if (isatty(STDOUT_FILENO))
    crew.progress = ARENA_ARRAY(&crew.arena, struct run_progress, crew.children.count + 1);
  run_options_read(argc, argv, crew.progress != NULL, &options);
  if (s == OK)
    s = start_all(&crew, &options);
  if (s != OK) {
    signal_all(&crew, SIGKILL);
    report(s);
    return status_exit_code(s);
  }
  wait_all(&crew);
  int code = conclude(&crew);
  s = join_traces(&crew, &options);
  if (s != OK && code == 0) {
    report(s);
    code = status_exit_code(s);
  }
  vec_free(&crew.children);
  arena_deinit(&crew.arena);
  return code;
}
