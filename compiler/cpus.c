#include "compiler/cpus.h"

#include <string.h>

#include "targets/target.h"

static status add_cpu(struct cpu_list *list, bool strict, const char *name) {
  for (uint32_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i].name, name) == 0)
      return fail(INVALID_ARGUMENT, "--cpu names '%s' twice", name);
  if (list->count == PROGRAM_CPUS_MAX)
    return fail(INVALID_ARGUMENT, "--cpu names more than %d CPUs", PROGRAM_CPUS_MAX);
  const struct target_options options = {.cpu = name};
  list->items[list->count].name = name;
  list->items[list->count].machine = strict ? machine_strict(machine_find(name)) : *machine_find(name);
  TRY(target_find("cpu")->level(&options, &list->items[list->count].level));
  list->count++;
  return OK;
}

status cpus_read(const char *text, bool strict, struct arena *arena, struct cpu_list *out) {
  struct cpu_list list = {.count = 0};
  for (const char *at = text;; at++) {
    size_t length = strcspn(at, ",");
    if (length == 0)
      return fail(INVALID_ARGUMENT, "--cpu '%s': a name is missing", text);
    TRY(add_cpu(&list, strict, arena_strndup(arena, at, length)));
    at += length;
    if (!*at)
      break;
  }
  *out = list;
  return OK;
}

const struct machine *cpu_machine(const struct cpu_list *cpus, uint32_t i) { return &cpus->items[i].machine; }
