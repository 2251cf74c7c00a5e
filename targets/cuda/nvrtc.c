/* nvrtc.c: CUDA C to PTX by NVIDIA's runtime compiler, which is loaded when it is needed: nothing of CUDA is linked in, and a
 * machine without it gets told what is missing. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "targets/cuda/cuda.h"

struct nvrtc {
  int (*create)(void **program, const char *source, const char *name, int headers, const char *const *texts, const char *const *names);
  int (*compile)(void *program, int count, const char *const *options);
  int (*ptx_size)(void *program, size_t *size);
  int (*ptx)(void *program, char *out);
  int (*log_size)(void *program, size_t *size);
  int (*log)(void *program, char *out);
  int (*destroy)(void **program);
};

static void *open_library(void) {
  static const char *const places[] = {"libnvrtc.so",
                                       "libnvrtc.so.13",
                                       "libnvrtc.so.12",
                                       "/usr/local/cuda/lib64/libnvrtc.so",
                                       "/usr/local/cuda/lib/libnvrtc.so",
                                       "/opt/cuda/lib64/libnvrtc.so"};
  const char *home = getenv("CUDA_HOME");
  void *library = NULL;
  for (int i = 0; home && !library && i < 2; i++) {
    char path[512];
    if (snprintf(path, sizeof path, "%s/%s/libnvrtc.so", home, i ? "lib" : "lib64") < (int)sizeof path)
      library = dlopen(path, RTLD_NOW);
  }
  for (size_t i = 0; !library && i < sizeof places / sizeof *places; i++)
    library = dlopen(places[i], RTLD_NOW);
  return library;
}

static status load_nvrtc(struct nvrtc *out) {
  static const char *const names[] = {"nvrtcCreateProgram",     "nvrtcCompileProgram", "nvrtcGetPTXSize",    "nvrtcGetPTX",
                                      "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",  "nvrtcDestroyProgram"};
  void **slots = (void **)out, *library = open_library();
  if (!library)
    return fail(FAILED_PRECONDITION, "PTX needs libnvrtc.so of the CUDA toolkit, found neither in CUDA_HOME nor in the usual places");
  for (int i = 0; i < 7; i++)
    if (!(slots[i] = dlsym(library, names[i])))
      return fail(FAILED_PRECONDITION, "libnvrtc.so has no %s", names[i]);
  return OK;
}

static status take_text(const struct nvrtc *n, void *program, int result, struct arena *arena, char **out) {
  size_t size = 0;
  if (result != 0) {
    char *log = n->log_size(program, &size) == 0 ? arena_alloc(arena, size + 1) : NULL;
    if (log)
      n->log(program, log);
    return fail(INTERNAL, "NVRTC refuses the kernels: %s", log ? log : "without a word");
  }
  if (n->ptx_size(program, &size) != 0)
    return fail(INTERNAL, "NVRTC gives no PTX");
  *out = arena_alloc(arena, size + 1);
  return n->ptx(program, *out) == 0 ? OK : fail(INTERNAL, "NVRTC gives no PTX");
}

status nvrtc_compile(const char *source, const char *gpu, struct arena *arena, char **out) {
  struct nvrtc n;
  void *program;
  TRY(load_nvrtc(&n));
  if (gpu && strncmp(gpu, "sm_", 3) != 0)
    return fail(INVALID_ARGUMENT, "--gpu %s: expected sm_ and a number, such as sm_90", gpu);
  const char *const options[] = {"--std=c++17", "--fmad=false", "--ftz=true",
                                 arena_printf(arena, "--gpu-architecture=compute_%s", gpu ? gpu + 3 : "75")};
  if (n.create(&program, source, "tfc.cu", 0, NULL, NULL) != 0)
    return fail(INTERNAL, "NVRTC makes no program");
  status result = take_text(&n, program, n.compile(program, 4, options), arena, out);
  n.destroy(&program);
  return result;
}
