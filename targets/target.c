/* target.c: the list of targets. */
#include "targets/target.h"

#include <string.h>

#define TARGET(name) extern const struct target name##_target;
#include "targets/targets.def"
#undef TARGET

static const struct target *const targets[] = {
#define TARGET(name) &name##_target,
#include "targets/targets.def"
#undef TARGET
};

const struct target *target_find(const char *name) {
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (strcmp(targets[i]->name, name) == 0)
      return targets[i];
  return NULL;
}

bool math_mode_read(const char *word, enum math_mode *out) {
  static const char *const words[] = {[MATH_DEFAULT] = "default", [MATH_STRICT] = "strict", [MATH_FAST] = "fast"};
  for (int i = MATH_DEFAULT; i <= MATH_FAST; i++)
    if (strcmp(word, words[i]) == 0) {
      *out = (enum math_mode)i;
      return true;
    }
  return false;
}
