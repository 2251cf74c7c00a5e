/* tls_option.h: the files of --tls-cert, --tls-key and --tls-ca for one task. */
#ifndef TFC_RUNTIME_PROCESS_TLS_OPTION_H
#define TFC_RUNTIME_PROCESS_TLS_OPTION_H

#include <stdint.h>
#include "base/status.h"
#include "runtime/net/tls.h"

/* `{task}` in a name stands for the task's, so that all tasks of a job can be given the same options. The names last as long as the
 * process. INVALID_ARGUMENT: one is too long. Not for several threads. */
status tls_option_files(const struct tls_files *given, const char *job, uint32_t index, struct tls_files *out);

#endif
