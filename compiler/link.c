/* link.c: object + runtime -> executable, with LLVM's linker, or else the C compiler as a driver for whatever linker there is.
 *
 * The runtime's archives are part of tfc; the linker reads them from memory files. The executable needs libc and libm. Parts of the
 * runtime that not every program needs (runtime/host/host.def) are asked for by symbol; the libraries behind them come along.
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
#include "runtime/program/program.h"

#define ARCHIVE(name)                               \
  extern const unsigned char name##_archive_data[]; \
  extern const uint64_t name##_archive_size
ARCHIVE(runtime);
ARCHIVE(nghttp2);
ARCHIVE(png);
ARCHIVE(jpeg);
ARCHIVE(z);
ARCHIVE(ssl);
ARCHIVE(crypto);
#undef ARCHIVE

/* In the linker's order: what needs another comes first. */
static const struct {
  const char *name;
  const unsigned char *data;
  const uint64_t *size;
  enum { ALWAYS, FOR_PARTS, FOR_TLS } need; /* FOR_PARTS: only parts of the runtime need it */
} archives[] = {
  {"libtfcrt.a", runtime_archive_data, &runtime_archive_size, ALWAYS},
  {"libnghttp2.a", nghttp2_archive_data, &nghttp2_archive_size, ALWAYS},
  {"libpng.a", png_archive_data, &png_archive_size, FOR_PARTS},
  {"libjpeg.a", jpeg_archive_data, &jpeg_archive_size, FOR_PARTS},
  {"libz.a", z_archive_data, &z_archive_size, FOR_PARTS},
  {"libssl.a", ssl_archive_data, &ssl_archive_size, FOR_TLS},
  {"libcrypto.a", crypto_archive_data, &crypto_archive_size, FOR_TLS},
};
#define TLS_SYMBOL "tls_context_create" /* runtime/net/tls.h: weak elsewhere */
#define ARCHIVE_COUNT ((int)(sizeof archives / sizeof *archives))

/* The optional parts of the runtime: a symbol of each, and the host calls that need it. */
static const struct {
  const char *host, *symbol;
} parts[] = {
#define HOST(name, function)
#define ROUND(name, function)
#define PART(name, function) {#name, #function},
#define USES(name, part) {#name, #part},
#include "runtime/host/host.def"
#undef HOST
#undef ROUND
#undef PART
#undef USES
};
#define PART_COUNT ((int)(sizeof parts / sizeof *parts))

#define LINKER_WORDS_MAX 1500 /* of a failing linker: fits a diagnostic */

#if defined(__x86_64__)
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#define TRIPLE "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define LOADER "/lib/ld-linux-aarch64.so.1"
#define TRIPLE "aarch64-linux-gnu"
#endif

struct link_words {
  const char *items[66 + ARCHIVE_COUNT + 2 * PART_COUNT];
  int count;
};
static void add(struct link_words *words, const char *word) {
  if (words->count < 65 + ARCHIVE_COUNT + 2 * PART_COUNT)
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

/* What is linked together. */
struct link_job {
  const char *const *objects; /* one for each CPU, the first with the program */
  const char *output;
  const char *archives[ARCHIVE_COUNT]; /* paths */
  const char *symbols[PART_COUNT + 1]; /* of parts, and of TLS; each once */
  int object_count, archive_count, symbol_count;
};

static const char *const start_folders[] = {"/usr/lib/" TRIPLE, "/usr/lib64", "/usr/lib", "/lib/" TRIPLE, "/lib64"};

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
  static const char *const patterns[] = {"/usr/lib/gcc/" TRIPLE "/*/libgcc.a", "/usr/lib/gcc/*/*/libgcc.a",
                                         "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.builtins-*.a"};
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

static status link_with_lld(const char *program, const char *folder, const struct link_job *job) {
  char crt1[300], crti[300], crtn[300], search[300], support[512], said[LINKER_WORDS_MAX];
  snprintf(crt1, sizeof crt1, "%s/crt1.o", folder);
  snprintf(crti, sizeof crti, "%s/crti.o", folder);
  snprintf(crtn, sizeof crtn, "%s/crtn.o", folder);
  snprintf(search, sizeof search, "-L%s", folder);
  bool has_support = link_find_support(support, sizeof support);
  struct link_words words = {.count = 0};
  add(&words, "ld.lld");
  add(&words, "-o");
  add(&words, job->output);
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
  for (int i = 0; i < job->symbol_count; i++) {
    add(&words, "-u");
    add(&words, job->symbols[i]);
  }
  add(&words, "--whole-archive"); /* where it is one */
  for (int i = 0; i < job->object_count; i++)
    add(&words, job->objects[i]);
  add(&words, "--no-whole-archive");
  for (int i = 0; i < job->archive_count; i++)
    add(&words, job->archives[i]);
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

/* Of the runtime's code, where tfc is built to watch its own tasks: the C compiler knows what it needs. */
#ifdef TFC_LINK_SANITIZER
static const char *const sanitizer = TFC_LINK_SANITIZER;
#else
static const char *const sanitizer = NULL;
#endif

static status link_with_cc(const char *program, const struct link_job *job) {
  char said[LINKER_WORDS_MAX];
  struct link_words words = {.count = 0};
  add(&words, "cc");
  if (sanitizer)
    add(&words, sanitizer);
  add(&words, "-o");
  add(&words, job->output);
  add(&words, "-no-pie");
  for (int i = 0; i < job->symbol_count; i++) {
    add(&words, "-u");
    add(&words, job->symbols[i]);
  }
  add(&words, sanitizer ? "-Wl,--gc-sections,--build-id=none" : "-Wl,--gc-sections,--strip-debug,--build-id=none");
  add(&words, "-Wl,--whole-archive");
  for (int i = 0; i < job->object_count; i++)
    add(&words, job->objects[i]);
  add(&words, "-Wl,--no-whole-archive");
  for (int i = 0; i < job->archive_count; i++)
    add(&words, job->archives[i]);
  add(&words, "-lm");
  add(&words, "-lpthread");
  add(&words, NULL);
  if (link_run(program, &words, said, sizeof said) != 0)
    return fail(INTERNAL, "linking failed: %s", said);
  return OK;
}

static bool link_find_lld(char *out, size_t size) {
  return link_find_program("ld.lld-19", out, size) || link_find_program("ld.lld", out, size);
}
static status link_without_linker(void) { return fail(FAILED_PRECONDITION, "no linker: neither ld.lld-19, ld.lld nor cc is in PATH"); }

static status link_with_any(const struct link_job *job) {
  char program[512];
  const char *folder = link_start_folder();
  if (folder && !sanitizer && link_find_lld(program, sizeof program))
    return link_with_lld(program, folder, job);
  if (link_find_program("cc", program, sizeof program))
    return link_with_cc(program, job);
  return link_without_linker();
}

status link_library(const char *object, const char *output_path) {
  char program[512], said[LINKER_WORDS_MAX];
  bool is_lld = link_find_lld(program, sizeof program);
  if (!is_lld && !link_find_program("cc", program, sizeof program))
    return link_without_linker();
  struct link_words words = {.count = 0};
  add(&words, is_lld ? "ld.lld" : "cc");
  add(&words, "-shared");
  add(&words, "-o");
  add(&words, output_path);
  add(&words, is_lld ? "--whole-archive" : "-Wl,--whole-archive");
  add(&words, object);
  add(&words, is_lld ? "--no-whole-archive" : "-Wl,--no-whole-archive");
  add(&words, NULL);
  if (link_run(program, &words, said, sizeof said) != 0)
    return fail(INTERNAL, "linking failed: %s", said);
  return OK;
}

static void add_symbol(struct link_job *job, const char *symbol) {
  for (int i = 0; i < job->symbol_count; i++)
    if (strcmp(job->symbols[i], symbol) == 0)
      return;
  job->symbols[job->symbol_count++] = symbol;
}

/* The parts that the program's calls need. */
static void find_parts(const struct program *program, struct link_job *job) {
  for (uint32_t i = 0; i < program->tables[PROGRAM_INSTRS].count; i++) {
    const struct program_instr *instr = program_instr(program, i);
    for (int part = 0; instr->op == INSTR_HOST && part < PART_COUNT; part++)
      if (strcmp(parts[part].host, program_text(program, instr->number)) == 0)
        add_symbol(job, parts[part].symbol);
  }
}

status link_executable(const char *const *objects, int object_count, const void *program, bool with_tls, const char *output_path) {
  struct link_job job = {.objects = objects, .object_count = object_count, .output = output_path};
  int files[ARCHIVE_COUNT];
  char paths[ARCHIVE_COUNT][64];
  status result = OK;
  find_parts(program, &job);
  bool has_parts = job.symbol_count > 0;
  if (with_tls)
    add_symbol(&job, TLS_SYMBOL);
  for (int i = 0; i < ARCHIVE_COUNT && result == OK; i++) {
    if ((archives[i].need == FOR_PARTS && !has_parts) || (archives[i].need == FOR_TLS && !with_tls))
      continue;
    int at = job.archive_count, file = link_memory_file(archives[i].name, archives[i].data, *archives[i].size);
    if (file < 0) {
      result = fail(RESOURCE_EXHAUSTED, "no memory for the runtime's archives");
      break;
    }
    files[at] = file;
    snprintf(paths[at], sizeof paths[at], "/proc/self/fd/%d", file);
    job.archives[at] = paths[at];
    job.archive_count++;
  }
  if (result == OK)
    result = link_with_any(&job);
  for (int i = 0; i < job.archive_count; i++)
    close(files[i]);
  return result;
}
