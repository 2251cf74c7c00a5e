/* npy.h: numpy's array files, versions 1.0 and 2.0: feeds come from them, fetches go to them.
 *
 * Little-endian and big-endian, C and Fortran order are read; C order, little-endian is written. Strings are `S<n>`
 * arrays: NULs at an element's end are padding and dropped; `U<n>` arrays are read as UTF-8. bfloat16 has no numpy type:
 * it is written as `<V2` and read from it. The file is untrusted: its header is checked against its size before memory is taken. One
 * thread.
 */
#ifndef TFC_BASE_NPY_H
#define TFC_BASE_NPY_H

#include "base/tensor.h"

/* Reads a whole file. NOT_FOUND: cannot be opened; INVALID_ARGUMENT: not such a file, or of a type TensorFlow has not. */
status npy_read(const char *path, struct tensor **out);
/* The same from bytes; `name` is for errors. */
status npy_parse(const void *data, size_t size, const char *name, struct tensor **out);
/* Writes one tensor: through a temporary file that is renamed when complete. What is no plain file is written to instead; `-` is standard
 * output. DATA_LOSS with the system's words. */
status npy_write(const char *path, const struct tensor *tensor);

/* Writes values one after another, stacked on a new axis 0. Nothing is at `path` before npy_writer_close succeeds; whether it can be
 * written is known before.
 * Values must agree in dtype and shape (INVALID_ARGUMENT). Strings wait in memory: their width is known at the end. */
struct npy_writer;
status npy_writer_create(const char *path, struct npy_writer **out);
status npy_writer_add(struct npy_writer *writer, const struct tensor *value);
/* Forgets all values but the first ones: they are written again. */
status npy_writer_rewind(struct npy_writer *writer, int64_t values);
/* Completes the file and gives it its name; INVALID_ARGUMENT when nothing was added. Destroys the writer in any case. */
status npy_writer_close(struct npy_writer *writer, bool is_stacked); /* false: the one value that was added, without the new axis */
/* Gives up: removes what was written. Accepts NULL. */
void npy_writer_destroy(struct npy_writer *writer);

#endif
