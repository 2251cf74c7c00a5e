/* text_target.c: kernels as text (ir/kernel_print.c): what --emit ir shows of them. */
#include <string.h>

#include "targets/target.h"

static status text_emit(const struct target_options *options, const struct target_unit *unit, const char *kind, struct arena *arena,
                        char **out) {
  (void)options;
  if (strcmp(kind, "ir") != 0)
    return fail(UNIMPLEMENTED, "the text target prints ir, not '%s'", kind);
  size_t size = 1;
  char **texts = ARENA_ARRAY(arena, char *, unit->count + 1);
  for (uint32_t i = 0; i < unit->count; i++) {
    texts[i] = kernel_print(unit->kernels[i], arena);
    size += strlen(texts[i]);
  }
  char *at = *out = arena_alloc(arena, size);
  for (uint32_t i = 0; i < unit->count; i++)
    at = stpcpy(at, texts[i]);
  return OK;
}

const struct target text_target = {"text", text_emit, NULL};
