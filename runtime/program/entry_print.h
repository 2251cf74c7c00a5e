/* entry_print.h: an entry for people: what it is fed and gives, with types and shapes. */
#ifndef TFC_RUNTIME_PROGRAM_ENTRY_PRINT_H
#define TFC_RUNTIME_PROGRAM_ENTRY_PRINT_H

#include <stdio.h>
#include "runtime/program/program.h"

/* The entry's line, as for --entry, and a line for each feed and fetch: "feed x  float[?,784]". */
void entry_print(FILE *out, const struct program *program, const struct program_entry *entry);

#endif
