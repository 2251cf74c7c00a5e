/* link.c: object + runtime -> executable, with LLVM's linker, or else the C compiler as a driver for whatever linker there is.
 *
 * The runtime's archives are part of tfc; the linker reads them from memory files. The executable needs libc and libm.
 * Only functions named link_ touch files or processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/build.h"

extern const unsigned char runtime_archive_data[], nghttp2_archive_data[];
extern const uint64_t runtime_archive_size, nghttp2_archive_size;

#define LINKER_WORDS_MAX 1500 /* of a failing linker: fits a diagnostic */

#if defined(__x86_64__)
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#define TRIPLE "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define LOADER "/lib/ld-linux-aarch64.so.1"
#define TRIPLE "aarch64-linux-gnu"
#endif

struct link_words {
  const char *items[64];
  int count;
};
static void add(struct link_words *words, const char *word) {
  if (words->count < 63)
    words->items[words->count++] = word;
}

/* A file in memory with these bytes; its path is good for child processes. */
static int link_memory_file(const char *name, const void *data, uint64_t size) {
  int fd = memfd_create(name, 0);
  for (uint64_t done = 0; fd >= 0 && done < size;) {
    ssize_t n = write(fd, (const char *)data + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      close(fd);
      return -1;
    }
    done += (uint64_t)n;
  }
  return fd;
}

static const char *const start_folders[] = { "/usr/lib/" TRIPLE, "/usr/lib64", "/usr/lib", "/lib/" TRIPLE, "/lib64" };

/* The folder with the C library's start files, or NULL. */
static const char *link_start_folder(void) {
  for (size_t i = 0; i < sizeof start_folders / sizeof *start_folders; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/crt1.o", start_folders[i]);
    if (access(path, R_OK) == 0)
      return start_folders[i];
  }
  return NULL;
}

/* The compiler's support library (conversions of half and the like); its path in `out`, or false. */
static bool link_find_support(char *out, size_t size) {
  static const char *const patterns[] = { "/usr/lib/gcc/" TRIPLE "/*/libgcc.a", "/usr/lib/gcc/*/*/libgcc.a",
                                          "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.builtins-*.a" };
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    glob_t found;
    bool any = glob(patterns[i], 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (any)
      snprintf(out, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    if (any)
      return true;
  }
  return false;
}

/* The program's path along PATH, or false. */
static bool link_find_program(const char *name, char *out, size_t size) {
  const char *path = getenv("PATH");
  for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
    size_t length = strcspn(at, ":");
    snprintf(out, size, "%.*s/%s", (int)length, at, name);
    if (access(out, X_OK) == 0)
      return true;
    at += length + (at[length] == ':');
  }
  return false;
}

/* Runs a linker; what it says goes into `said`. Returns its exit code, or -1. */
static int link_run(const char *program, const struct link_words *words, char *said, size_t size) {
  int pipe_fds[2];
  said[0] = 0;
  if (pipe2(pipe_fds, O_CLOEXEC) != 0)
    return -1;
  pid_t child = fork();
  if (child == 0) {
    dup2(pipe_fds[1], 1);
    dup2(pipe_fds[1], 2);
    execv(program, (char *const *)words->items);
    _exit(127);
  }
  close(pipe_fds[1]);
  size_t at = 0;
  char rest[256];
  for (ssize_t n; child > 0; at += (size_t)(at + 1 < size ? n : 0)) {
    n = read(pipe_fds[0], at + 1 < size ? said + at : rest, at + 1 < size ? size - at - 1 : sizeof rest);
    if (n < 0 && errno == EINTR)
      n = 0;
    else if (n <= 0)
      break;
  }
  said[at < size ? at : size - 1] = 0;
  close(pipe_fds[0]);
  int state = 0;
  while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR)
    ;
  return child > 0 && WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static status link_with_lld(const char *program, const char *folder, const char *object, const char *runtime,
                            const char *nghttp2, const char *output) {
  char crt1[300], crti[300], crtn[300], search[300], support[512], said[LINKER_WORDS_MAX];
  snprintf(crt1, sizeof crt1, "%s/crt1.o", folder);
  snprintf(crti, sizeof crti, "%s/crti.o", folder);
  snprintf(crtn, sizeof crtn, "%s/crtn.o", folder);
  snprintf(search, sizeof search, "-L%s", folder);
  bool has_support = link_find_support(support, sizeof support);
  struct link_words words = { .count = 0 };
  add(&words, "ld.lld");
  add(&words, "-o");
  add(&words, output);
  add(&words, "--dynamic-linker=" LOADER);
  add(&words, "--gc-sections");
  add(&words, "--strip-debug");
  add(&words, "--build-id=none");
  add(&words, "--eh-frame-hdr");
  add(&words, "-znow");
  add(&words, "-O0"); /* merging strings costs more than it saves here */
  add(&words, search);
  add(&words, "-L/lib/" TRIPLE);
  add(&words, crt1);
  add(&words, crti);
  add(&words, "--whole-archive"); /* where it is one */
  add(&words, object);
  add(&words, "--no-whole-archive");
  add(&words, runtime);
  add(&words, nghttp2);
  if (has_support)
    add(&words, support);
  add(&words, "--as-needed");
  add(&words, "-lm");
  add(&words, "-lc");
  add(&words, crtn);
  add(&words, NULL);
  if (link_run(program, &words, said, sizeof said) != 0)
    return fail(INTERNAL, "linking failed: %s", said);
  return OK;
}

static status link_with_cc(const char *program, const char *object, const char *runtime, const char *nghttp2,
                           const char *output) {
  char said[LINKER_WORDS_MAX];
  struct link_words words = { .count = 0 };
  add(&words, "cc");
  add(&words, "-o");
  add(&words, output);
  add(&words, "-no-pie");
  add(&words, "-Wl,--gc-sections,--strip-debug,--build-id=none");
  add(&words, "-Wl,--whole-archive");
  add(&words, object);
  add(&words, "-Wl,--no-whole-archive");
  add(&words, runtime);
  add(&words, nghttp2);
  add(&words, "-lm");
  add(&words, "-lpthread");
  add(&words, NULL);
  if (link_run(program, &words, said, sizeof said) != 0)
    return fail(INTERNAL, "linking failed: %s", said);
  return OK;
}

static status link_with_any(const char *object, const char *runtime, const char *nghttp2, const char *output) {
  static const char *const linkers[] = { "ld.lld-19", "ld.lld" };
  char program[512];
  const char *folder = link_start_folder();
  for (size_t i = 0; folder && i < sizeof linkers / sizeof *linkers; i++)
    if (link_find_program(linkers[i], program, sizeof program))
      return link_with_lld(program, folder, object, runtime, nghttp2, output);
  if (link_find_program("cc", program, sizeof program))
    return link_with_cc(program, object, runtime, nghttp2, output);
  return fail(FAILED_PRECONDITION, "no linker: neither ld.lld-19, ld.lld nor cc is in PATH");
}

status link_executable(const char *object_path, const char *output_path) {
  int runtime = link_memory_file("libtfcrt.a", runtime_archive_data, runtime_archive_size);
  int nghttp2 = link_memory_file("libnghttp2.a", nghttp2_archive_data, nghttp2_archive_size);
  status result;
  if (runtime < 0 || nghttp2 < 0) {
    result = fail(RESOURCE_EXHAUSTED, "no memory for the runtime's archives");
  } else {
    char runtime_path[64], nghttp2_path[64];
    snprintf(runtime_path, sizeof runtime_path, "/proc/self/fd/%d", runtime);
    snprintf(nghttp2_path, sizeof nghttp2_path, "/proc/self/fd/%d", nghttp2);
    result = link_with_any(object_path, runtime_path, nghttp2_path, output_path);
  }
  if (runtime >= 0)
    close(runtime);
  if (nghttp2 >= 0)
    close(nghttp2);
  return result;
}
