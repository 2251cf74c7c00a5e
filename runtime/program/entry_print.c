/* entry_print.c: sizes that feeds decide are `?`. */
#include "runtime/program/entry_print.h"

#include "base/dtype.h"
#include "runtime/program/size.h"

static void print_port(FILE *out, const struct program *program, const struct program_port *port, const char *what) {
  char shape[256];
  const uint32_t *dims = program_operands(program, port->dims);
  fprintf(out, "    %-5s %-24s %s%s\n", what, program_text(program, port->name), dtype_name((enum dtype)port->dtype),
          port->any_rank ? "[...]" : size_shape_text(program, dims, port->rank, NULL, shape, sizeof shape));
}

static void print_names(FILE *out, const struct program *program, struct program_range ports) {
  for (uint32_t i = 0; i < ports.count; i++)
    fprintf(out, "%s%s", i ? ", " : " ", program_text(program, program_port(program, ports.first + i)->name));
}

void entry_print(FILE *out, const struct program *program, const struct program_entry *entry) {
  fprintf(out, "  %s:", program_text(program, entry->name));
  print_names(out, program, entry->feeds);
  fprintf(out, " ->");
  print_names(out, program, entry->fetches);
  for (uint32_t i = 0; i < entry->targets.count; i++)
    fprintf(out, "%s%s", i ? ", " : " | ", program_text(program, program_operands(program, entry->targets.first)[i]));
  fputc('\n', out);
  for (uint32_t i = 0; i < entry->feeds.count; i++)
    print_port(out, program, program_port(program, entry->feeds.first + i), "feed");
  for (uint32_t i = 0; i < entry->fetches.count; i++)
    print_port(out, program, program_port(program, entry->fetches.first + i), "fetch");
}
