/* tls.h: one end of a TLS 1.3 connection (OpenSSL), without its socket: bytes in, bytes out.
 *
 * Both sides show a certificate of the same CA: a task one with its own name (`worker_1`) as a DNS subject alternative name, a client any.
 * Whoever dials a task looks for that task's name; whoever listens asks for it when the other has said who it is (tls_is_for). Tickets are
 * not given, so that nothing of a connection is good for another.
 *
 * Only executables that were built with --tls have this file and OpenSSL in them: the functions are weak, and NULL elsewhere
 * (tls_is_built_in).
 *
 * Threads: one at a time for a connection; a context's functions from any. Owner: who created it; contexts are counted.
 */
#ifndef TFC_RUNTIME_NET_TLS_H
#define TFC_RUNTIME_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "base/status.h"

#define TLS_OPTIONAL __attribute__((weak))

struct tls_context; /* certificate, key and CA */
struct tls;

struct tls_files {
  const char *cert, *key, *ca; /* PEM; all NULL: no TLS */
};

/* Reads the files. INVALID_ARGUMENT, naming the file: it is not there or holds nothing of the kind; key and certificate do not belong
 * together; the certificate is not of the CA, not for `name`, or not valid now. */
status tls_context_create(const struct tls_files *files, const char *name, struct tls_context **out) TLS_OPTIONAL;
struct tls_context *tls_context_retain(struct tls_context *context) TLS_OPTIONAL;
void tls_context_release(struct tls_context *context) TLS_OPTIONAL; /* accepts NULL */

static inline bool tls_is_built_in(void) { return tls_context_create != NULL; }

/* dialled: the name of the task that is called; NULL: this is the listener's end. Both texts are kept by copy. */
status tls_create(struct tls_context *context, const char *dialled, struct tls **out) TLS_OPTIONAL;
void tls_destroy(struct tls *tls) TLS_OPTIONAL; /* accepts NULL */

/* Bytes from the peer (none: begins); they stay where they are until tls_read gives nothing more. UNAUTHENTICATED: the other side is not
 * who it should be, or says that we are not; in words. What tls_output still gives tells it. */
status tls_receive(struct tls *tls, const uint8_t *data, size_t size) TLS_OPTIONAL;
/* The next bytes of what the peer has said; *got 0: that was all. */
status tls_read(struct tls *tls, uint8_t *to, size_t size, size_t *got) TLS_OPTIONAL;
/* Each has shown who it is: it may be sent to. */
bool tls_is_open(const struct tls *tls) TLS_OPTIONAL;
/* The peer's certificate has the name. */
bool tls_is_for(const struct tls *tls, const char *name) TLS_OPTIONAL;

/* Seals the pieces, as many bytes as fit into a round of output; *taken of them: the pieces are not needed any more. */
status tls_send(struct tls *tls, const struct iovec *pieces, int count, size_t *taken) TLS_OPTIONAL;
/* No more follows. */
void tls_finish(struct tls *tls) TLS_OPTIONAL;
/* What is to be sent now; valid until the next call of another function. 0: nothing. */
size_t tls_output(const struct tls *tls, const uint8_t **out) TLS_OPTIONAL;
void tls_sent(struct tls *tls, size_t size) TLS_OPTIONAL;

#endif
