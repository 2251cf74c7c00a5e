/* host_path.h: paths and files for host functions. */
#ifndef TFC_RUNTIME_HOST_HOST_PATH_H
#define TFC_RUNTIME_HOST_HOST_PATH_H

#include <stddef.h>
#include "runtime/host/host.h"

#define HOST_PATH_MAX 4096 /* of the system */

/* A string as a path, NUL-terminated. INVALID_ARGUMENT: too long or with a NUL; UNIMPLEMENTED: on another file system. */
status host_path(struct string_view view, char *out, size_t size);
/* The same of input i, which must be one string. */
status host_scalar_path(const struct host_call *call, uint32_t i, const char *what, char *out, size_t size);
/* What the system says (errno) of a file, with the code that TensorFlow has for it. */
status host_file_error(const char *path);
/* A whole file; the caller frees it. */
status host_read_file(const char *path, char **data, size_t *size);

#endif
