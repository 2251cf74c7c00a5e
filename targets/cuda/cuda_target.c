/* cuda_target.c: the CUDA target: text only; what runs it is not built in yet. */
#include <stdlib.h>
#include <string.h>

#include "targets/cuda/cuda.h"

static status print_all(const struct target_unit *unit, FILE *out) {
  fputs("/* kernels in CUDA C: NAME_PHASE(buffers, sizes, fault) */\n"
        "#ifdef __cplusplus\n#define extern_c extern \"C\"\n#else\n#define extern_c\n#endif\n",
        out);
  cuda_print_prelude(out);
  for (uint32_t i = 0; i < unit->count; i++)
    TRY(cuda_print_kernel(unit->kernels[i], out));
  return OK;
}

static status cuda_emit(const struct target_options *options, const struct target_unit *unit, const char *kind, struct arena *arena,
                        char **out) {
  bool ptx = strcmp(kind, "ptx") == 0;
  if (!ptx && strcmp(kind, "cuda") != 0)
    return fail(UNIMPLEMENTED, "the CUDA target prints cuda and ptx, not '%s'", kind);
  if (options->math != MATH_DEFAULT)
    return fail(UNIMPLEMENTED, "--math strict and --math fast: CUDA kernels have the default's arithmetic alone");
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (!stream)
    return fail(RESOURCE_EXHAUSTED, "no memory for CUDA text");
  status result = print_all(unit, stream);
  fclose(stream);
  if (result == OK && ptx)
    result = nvrtc_compile(text, options->gpu, arena, out);
  else if (result == OK)
    *out = arena_strndup(arena, text, size);
  free(text);
  return result;
}

const struct target cuda_target = {"cuda", cuda_emit, NULL, NULL};
