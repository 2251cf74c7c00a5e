/* command_inspect.c: tfc inspect: what a built task holds. */
#include <stdio.h>

#include "compiler/commands.h"
#include "compiler/task_file.h"
#include "runtime/program/entry_print.h"

static void print_program(const struct program *p) {
  const struct program_task *self = program_task(p, p->task);
  const char *address = program_text(p, self->address); /* "": it has no cluster */
  printf("task /job:%s/task:%u%s%s, build %016llx\n", program_text(p, self->job), self->index, *address ? " at " : "", address,
         (unsigned long long)p->build_id);
  printf("%u kernels, %llu instructions, %llu bytes of program\n", p->kernel_count, (unsigned long long)p->tables[PROGRAM_INSTRS].count,
         (unsigned long long)p->size);
  for (uint32_t i = 0; i < p->tables[PROGRAM_VARIABLES].count; i++) {
    const struct program_variable *v = program_variable(p, i);
    printf("  variable %s: %s[", program_text(p, v->name), dtype_name((enum dtype)v->dtype));
    for (int d = 0; d < v->rank && v->has_shape; d++)
      printf("%s%lld", d ? "," : "", (long long)program_words(p, v->dims)[d]);
    printf("%s]%s\n", v->has_shape ? "" : "?", v->has_initial ? ", with a value" : "");
  }
  printf("entries\n");
  for (uint32_t i = 0; i < p->tables[PROGRAM_ENTRIES].count; i++)
    if (!program_entry(p, i)->is_variant)
      entry_print(stdout, p, program_entry(p, i));
}

status command_inspect(const char *path) {
  struct task_file file;
  TRY(task_file_open(path, &file));
  print_program(file.program);
  task_file_close(&file);
  return OK;
}
