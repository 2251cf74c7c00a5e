/* cpu_parts.c: an archive in the common format: a magic word, then for each member a header of text and its bytes. No index:
 * the archive is always linked whole. No times or owners: the same input gives the same bytes. */
#include "targets/cpu/cpu_parts.h"

#include <stdbool.h>
#include <stdio.h>

static bool write_member(FILE *file, uint32_t number, LLVMMemoryBufferRef object) {
  size_t size = LLVMGetBufferSize(object);
  char name[32];
  snprintf(name, sizeof name, "kernels%u.o/", number);
  if (fprintf(file, "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", name, 0, 0, 0, 644, size) != 60)
    return false;
  return fwrite(LLVMGetBufferStart(object), 1, size, file) == size && (size % 2 == 0 || fputc('\n', file) == '\n');
}

static bool write_all(FILE *file, const LLVMMemoryBufferRef *objects, uint32_t count) {
  if (count == 1)
    return fwrite(LLVMGetBufferStart(objects[0]), 1, LLVMGetBufferSize(objects[0]), file) == LLVMGetBufferSize(objects[0]);
  bool good = fputs("!<arch>\n", file) >= 0;
  for (uint32_t i = 0; i < count && good; i++)
    good = write_member(file, i, objects[i]);
  return good;
}

status parts_write(const char *path, const LLVMMemoryBufferRef *objects, uint32_t count) {
  FILE *file = fopen(path, "wb");
  if (!file)
    return fail(INTERNAL, "cannot write %s", path);
  bool good = write_all(file, objects, count);
  return fclose(file) == 0 && good ? OK : fail(INTERNAL, "cannot write %s", path);
}
