/* bundle.c: everything is made in a temporary folder first; only a complete one is moved into place.
 *
 * A folder that is there already is replaced as a whole when it holds nothing but what a build makes; else the new files are
 * moved into it one by one, so that nobody loses what else lies there.
 */
#include "compiler/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/folders.h"
#include "compiler/build_json.h"
#include "targets/target.h"

/* ---- one task ---- */

/* An object for each CPU; the first has the program, too. */
static status compile_variants(struct build *build, const struct emitted *emitted, const char *const *objects) {
  const struct target *cpu = target_find("cpu");
  struct target_unit unit = {.count = emitted->kernels.count, .data = emitted->program, .data_size = emitted->program_size};
  for (uint32_t i = 0; i < build->cpus.count; i++) {
    const struct target_options options = {.cpu = build->cpus.items[i].name, .variant = i, .math = build->options.math};
    unit.kernels = emitted->scheduled[i].items;
    TRY(cpu->compile(&options, &unit, objects[i]));
    unit.data = NULL;
  }
  return OK;
}

static status build_task(struct build *build, uint32_t number, const char *folder) {
  const struct cluster_task *task = &build->cluster.tasks.items[number];
  const char *path = arena_printf(&build->arena, "%s/%s_%u", folder, task->job, task->index);
  const char *objects[PROGRAM_CPUS_MAX];
  struct emitted emitted = {0};
  TRY(build_emit(build, number, &emitted));
  for (uint32_t i = 0; i < build->cpus.count; i++)
    objects[i] = arena_printf(&build->arena, "%s.%u.o", path, i);
  status result = compile_variants(build, &emitted, objects);
  if (result == OK)
    result = link_executable(objects, (int)build->cpus.count, emitted.program, build->options.tls, path);
  for (uint32_t i = 0; i < build->cpus.count; i++)
    unlink(objects[i]);
  return result;
}

/* What a child process says when it has failed. */
struct report {
  int32_t code;
  char text[2048];
};

struct worker {
  pid_t process;
  int report;
};

static status worker_start(struct build *build, uint32_t number, const char *folder, struct worker *out) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0)
    return fail(RESOURCE_EXHAUSTED, "no pipe: %s", strerror(errno));
  fflush(NULL);
  out->process = fork();
  if (out->process < 0) {
    close(fds[0]);
    close(fds[1]);
    return fail(RESOURCE_EXHAUSTED, "no process: %s", strerror(errno));
  }
  if (out->process == 0) {
    struct report report = {.code = (int32_t)build_task(build, number, folder)};
    if (report.code != OK)
      snprintf(report.text, sizeof report.text, "%s", status_text());
    bool told = write(fds[1], &report, sizeof report) == (ssize_t)sizeof report;
    fflush(NULL);
    _exit(told ? 0 : 1);
  }
  close(fds[1]);
  out->report = fds[0];
  return OK;
}

static status worker_wait(const struct build *build, uint32_t number, struct worker *worker) {
  const struct cluster_task *task = &build->cluster.tasks.items[number];
  struct report report;
  ssize_t n;
  while ((n = read(worker->report, &report, sizeof report)) < 0 && errno == EINTR)
    ;
  close(worker->report);
  int state = 0;
  while (waitpid(worker->process, &state, 0) < 0 && errno == EINTR)
    ;
  if (n != (ssize_t)sizeof report)
    return fail(INTERNAL, "%s_%u: the compiler ended by signal %d", task->job, task->index, WIFSIGNALED(state) ? WTERMSIG(state) : 0);
  if (report.code == OK)
    return OK;
  report.text[sizeof report.text - 1] = 0;
  return build->cluster.tasks.count == 1 ? fail((status)report.code, "%s", report.text)
                                         : fail((status)report.code, "%s_%u: %s", task->job, task->index, report.text);
}

static uint32_t worker_count(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

/* All tasks; the first failure, by task, is the result. */
static status build_tasks(struct build *build, const char *folder) {
  uint32_t count = build->cluster.tasks.count, started = 0, at_once = worker_count();
  if (count == 1)
    return build_task(build, 0, folder);
  struct worker *workers = calloc(count, sizeof *workers);
  if (!workers)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  status first = OK;
  char text[2048] = "";
  for (uint32_t done = 0; done < count; done++) {
    status result = OK;
    while (started < count && started < done + at_once && first == OK && result == OK) {
      result = worker_start(build, started, folder, &workers[started]);
      started += result == OK;
    }
    if (done < started && result == OK)
      result = worker_wait(build, done, &workers[done]);
    if (result == OK || first != OK)
      continue;
    first = result;
    snprintf(text, sizeof text, "%s", status_text());
  }
  free(workers);
  return first == OK ? OK : fail(first, "%s", text);
}

/* ---- the folder ---- */

static void folder_remove(const char *path) {
  DIR *folder = opendir(path);
  for (struct dirent *item; folder && (item = readdir(folder));)
    unlinkat(dirfd(folder), item->d_name, 0);
  if (folder)
    closedir(folder);
  rmdir(path);
}

static bool is_build_file(const char *name) {
  if (strcmp(name, "build.json") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    return true;
  const char *line = strrchr(name, '_');
  return line && line[1] && strspn(line + 1, "0123456789") == strlen(line + 1);
}

/* Whether a folder holds a build and nothing else. */
static bool folder_is_build(const char *path) {
  DIR *folder = opendir(path);
  bool only = folder != NULL, any = false;
  for (struct dirent *item; folder && (item = readdir(folder));) {
    only = only && is_build_file(item->d_name);
    any = any || strcmp(item->d_name, "build.json") == 0;
  }
  if (folder)
    closedir(folder);
  return only && any;
}

static status move_files(const char *from, const char *to, struct arena *arena) {
  DIR *folder = opendir(from);
  status result = folder ? OK : fail(DATA_LOSS, "%s: %s", from, strerror(errno));
  for (struct dirent *item; result == OK && (item = readdir(folder));) {
    if (item->d_name[0] == '.')
      continue;
    const char *source = arena_printf(arena, "%s/%s", from, item->d_name);
    const char *target = arena_printf(arena, "%s/%s", to, item->d_name);
    if (rename(source, target) != 0)
      result = fail(DATA_LOSS, "%s: %s", target, strerror(errno));
  }
  if (folder)
    closedir(folder);
  return result;
}

static status folder_replace(const char *made, const char *wanted, struct arena *arena) {
  if (rename(made, wanted) == 0)
    return OK;
  if (errno != EEXIST && errno != ENOTEMPTY)
    return fail(DATA_LOSS, "%s: %s", wanted, strerror(errno));
  if (folder_is_build(wanted) && renameat2(AT_FDCWD, made, AT_FDCWD, wanted, RENAME_EXCHANGE) == 0) {
    folder_remove(made);
    return OK;
  }
  TRY(move_files(made, wanted, arena));
  folder_remove(made);
  return OK;
}

static status write_json(struct build *build, const char *folder) {
  const char *path = arena_printf(&build->arena, "%s/build.json", folder);
  const char *text = build_json_text(build, &build->arena);
  FILE *out = fopen(path, "w");
  bool written = out && fputs(text, out) >= 0;
  if (out && fclose(out) != 0)
    written = false;
  return written ? OK : fail(DATA_LOSS, "%s: %s", path, strerror(errno));
}

/* The path without slashes at its end. */
static const char *trimmed(struct arena *arena, const char *path) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/')
    length--;
  return arena_strndup(arena, path, length);
}

status bundle_write(struct build *build) {
  const char *wanted = trimmed(&build->arena, build->options.output_dir);
  char *made = arena_printf(&build->arena, "%s.XXXXXX", wanted);
  if (strcmp(wanted, ".") == 0 || strcmp(wanted, "..") == 0)
    made = arena_printf(&build->arena, "%s/tfc-build.XXXXXX", wanted);
  folders_make_above(wanted);
  if (!mkdtemp(made))
    return fail(DATA_LOSS, "%s: %s", wanted, strerror(errno));
  mode_t mask = umask(0);
  umask(mask);
  chmod(made, 0777 & ~mask);
  status result = build_tasks(build, made);
  if (result == OK)
    result = write_json(build, made);
  if (result == OK)
    result = folder_replace(made, wanted, &build->arena);
  if (result != OK)
    folder_remove(made);
  return result;
}
