/* record_file.h: a file of lines, of TFRecords or of plain bytes, read from its beginning, compressed or not.
 *
 * Threads: one at a time. What a function gives lies in the file's buffer until the next call.
 */
#ifndef TFC_RUNTIME_DATA_RECORD_FILE_H
#define TFC_RUNTIME_DATA_RECORD_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include "runtime/host/host_path.h"

struct record_file {
  FILE *file; /* NULL: none is open */
  char path[HOST_PATH_MAX];
  char *buffer;
  size_t room;
  int64_t offset; /* bytes read so far, of what is not compressed */
};

/* compression: "", GZIP, ZLIB. Errors as of host_file_error. */
status record_file_open(struct record_file *f, struct string_view path, struct string_view compression);
void record_file_close(struct record_file *f); /* accepts one that is not open */
void record_file_free(struct record_file *f);  /* closes it, frees its buffer */
/* All go on where the last one stopped; *end: nothing is left. DATA_LOSS for damaged bytes. */
status record_file_line(struct record_file *f, struct string_view *out, bool *end); /* without its \n, and without any \r */
status record_file_record(struct record_file *f, struct string_view *out, bool *end);
/* Up to `size` bytes: fewer only where the file ends. */
status record_file_bytes(struct record_file *f, size_t size, struct string_view *out);
/* Writes one record; false: errno says why not. */
bool record_file_put(FILE *file, const void *data, size_t size);
bool record_file_knows(struct string_view compression);

#endif
