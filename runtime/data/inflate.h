/* inflate.h: compressed bytes (zlib, RFC 1950; gzip, RFC 1952). Linked only into executables that may read such (runtime/host/host.def). */
#ifndef TFC_RUNTIME_DATA_INFLATE_H
#define TFC_RUNTIME_DATA_INFLATE_H

#include <stdbool.h>
#include <stdio.h>
#include "base/status.h"
#include "base/wire.h"

/* A stream that reads what is compressed in `file`, from where that stands; closing it closes the file. Damaged bytes are an error of
 * the stream (ferror). NULL without memory: the file stays the caller's. */
__attribute__((weak)) FILE *inflated_file(FILE *file, bool is_gzip);
/* A stream whose bytes are compressed into `file`; closing it writes what is left and closes the file. NULL without memory: the file
 * stays the caller's. */
__attribute__((weak)) FILE *deflated_file(FILE *file, bool is_gzip);
/* Appends what is compressed in `size` bytes. DATA_LOSS when they are damaged. */
status inflate_bytes(const void *data, size_t size, bool is_gzip, struct wire_buffer *out);

#endif
