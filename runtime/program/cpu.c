#include "runtime/program/cpu.h"

#include <stdbool.h>

uint32_t cpu_level(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    return 4;
  if (__builtin_cpu_supports("x86-64-v3"))
    return 3;
  return __builtin_cpu_supports("x86-64-v2") ? 2 : 1;
}

/* As `--cpu` takes it; the lowest has no number. */
static const char *level_suffix(uint32_t level) {
  static const char *const suffixes[] = {"", "", "-v2", "-v3", "-v4"};
  return suffixes[level <= 4 ? level : 4];
}

status cpu_choose(const struct program *program, uint32_t level, uint32_t *out) {
  bool found = false;
  uint32_t least = 0;
  for (uint32_t i = 0; i < program->cpu_count; i++) {
    uint32_t needs = program->cpus[i].level;
    if (needs < program->cpus[least].level)
      least = i;
    if (needs > level || (found && needs <= program->cpus[*out].level))
      continue;
    *out = i;
    found = true;
  }
  if (found)
    return OK;
  const struct program_cpu *cpu = &program->cpus[least];
  return fail(
    FAILED_PRECONDITION,
    "built for --cpu %s, which needs an x86-64%s machine; this one is x86-64%s: build it with --cpu x86-64%s, or with both, separated "
    "by a comma",
    program_text(program, cpu->name), level_suffix(cpu->level), level_suffix(level), level_suffix(level));
}
