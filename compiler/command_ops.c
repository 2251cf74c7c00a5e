/* command_ops.c: tfc ops: the table of ops with what TensorFlow's registry says of them, and those that have no row. */
#include <stdio.h>

#include "compiler/commands.h"
#include "ir/lower/lower.h"
#include "ir/lower/unsupported.h"

static void print_arg(const struct op_arg *a) {
  printf(" %s:%s%s%s", a->name, a->number_attr ? a->number_attr : "", a->number_attr ? "*" : "",
         a->list_attr   ? a->list_attr
         : a->type_attr ? a->type_attr
                        : dtype_name((enum dtype)a->dtype));
}

static void print_types(const struct op_def *def) {
  for (uint32_t i = 0; i < def->attr_count; i++) {
    if (!def->attrs[i].allowed)
      continue;
    printf("  %s:", def->attrs[i].name);
    for (const uint8_t *t = def->attrs[i].allowed; *t; t++)
      printf(" %s", dtype_short((enum dtype) * t));
  }
}

/* The ops of a family (NULL: of none) that have no row, several on a line; whether there were any. */
static bool print_family(const struct left_out *family) {
  int column = 0;
  for (uint32_t i = 0; i < registry_count(); i++) {
    const char *name = registry_at(i)->name;
    if (op_row_find(name) || left_out_find(name) != family)
      continue;
    if (column > 100) {
      printf("\n");
      column = 0;
    }
    column += printf(column ? " %s" : "- %s", name);
  }
  printf("%s", column ? "\n" : "");
  return column != 0;
}

/* The ops without a row, by what is said of them, so that a user sees what would be refused and why. */
static void print_missing(void) {
  uint32_t count;
  const struct left_out *families = left_out_list(&count);
  for (uint32_t i = 0; i < count; i++) {
    printf("%s:\n", families[i].reason);
    print_family(&families[i]);
  }
  print_family(NULL);
}

void command_ops(void) {
  uint32_t known = 0;
  for (uint32_t i = 0; i < registry_count(); i++) {
    const struct op_def *def = registry_at(i);
    if (!op_row_find(def->name))
      continue;
    known++;
    printf("%s(", def->name);
    for (uint32_t j = 0; j < def->input_count; j++)
      print_arg(&def->inputs[j]);
    printf(" ) ->");
    for (uint32_t j = 0; j < def->output_count; j++)
      print_arg(&def->outputs[j]);
    print_types(def);
    printf("\n");
  }
  printf("\nNot supported, UNIMPLEMENTED in a graph that needs them:\n");
  print_missing();
  printf("\n%u of TensorFlow's %u ops\n", known, registry_count());
}
