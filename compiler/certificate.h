/* certificate.h: a small certification authority, for developing and testing: ECDSA keys (P-256), X.509 certificates in PEM files.
 *
 * Threads: one. Owner: who created it.
 */
#ifndef TFC_COMPILER_CERTIFICATE_H
#define TFC_COMPILER_CERTIFICATE_H

#include "base/status.h"

struct authority;

/* A new one, or the one whose certificate and key are in the files. INVALID_ARGUMENT: they hold none; INTERNAL with OpenSSL's words. */
status authority_create(const char *name, struct authority **out);
status authority_read(const char *cert_path, const char *key_path, struct authority **out);
void authority_destroy(struct authority *authority); /* accepts NULL */
/* Its own certificate and key. The key can be read by its owner only. DATA_LOSS: a file cannot be written. */
status authority_write(const struct authority *authority, const char *cert_path, const char *key_path);

struct certificate_request {
  const char *name;   /* a task's, a DNS subject alternative name: "worker_1" */
  const char *host;   /* another, a DNS name or an IP address; NULL: none */
  int from_day, days; /* it is valid from so many days after now, so long */
};
/* A new key and a certificate for it. */
status authority_issue(const struct authority *authority, const struct certificate_request *request, const char *cert_path,
                       const char *key_path);

#endif
