/* kernel_library.c: see kernel_library.h. */
#include "compiler/schedule/kernel_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/build.h"
#include "compiler/schedule/choose.h"
#include "targets/target.h"

static status load(const char *path, struct kernel_library *out) {
  out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  out->code = out->handle ? dlsym(out->handle, "tfc_kernels") : NULL;
  return out->code ? OK : fail(INTERNAL, "loading kernels: %s", dlerror());
}

/* Loops that are plain run as the build's do. */
static status compile(struct kernel *const *kernels, uint32_t count, const char *cpu, const char *object) {
  struct arena arena;
  arena_init(&arena);
  struct kernel **marked = ARENA_ARRAY(&arena, struct kernel *, count + 1);
  for (uint32_t i = 0; i < count; i++)
    marked[i] = vectors_choose(kernels[i], machine_find(cpu), &arena);
  struct target_unit unit = {.kernels = marked, .count = count};
  struct target_options options = {.cpu = cpu};
  status result = target_find("cpu")->compile(&options, &unit, object);
  for (uint32_t i = 0; i < count; i++)
    kernel_free(marked[i]);
  arena_deinit(&arena);
  return result;
}

status kernel_library_open(struct kernel *const *kernels, uint32_t count, const char *cpu, struct kernel_library *out) {
  const char *temporary = getenv("TMPDIR");
  char folder[512], object[540], shared[540];
  *out = (struct kernel_library){0};
  snprintf(folder, sizeof folder, "%s/tfc-kernels-XXXXXX", temporary ? temporary : "/tmp");
  if (!mkdtemp(folder))
    return fail(RESOURCE_EXHAUSTED, "%s: %s", folder, strerror(errno));
  snprintf(object, sizeof object, "%s/k.o", folder);
  snprintf(shared, sizeof shared, "%s/k.so", folder);
  status result = compile(kernels, count, cpu, object);
  if (result == OK)
    result = link_library(object, shared);
  if (result == OK)
    result = load(shared, out);
  if (result != OK)
    kernel_library_close(out);
  unlink(object);
  unlink(shared);
  rmdir(folder);
  return result;
}

void kernel_library_close(struct kernel_library *library) {
  if (library->handle)
    dlclose(library->handle);
  *library = (struct kernel_library){0};
}
