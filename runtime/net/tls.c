/* tls.c: OpenSSL over memory: its socket is a pair of buffers of ours.
 *
 * What comes is read by OpenSSL from where the connection has received it; what is to go is sealed record by record, 16 KiB each, into
 * one buffer, so that many records leave in one call of the system. Large pieces are sealed from where they are, small ones are gathered
 * to a record first.
 */
#include "runtime/net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES (16 << 10)         /* TLS: a record holds so much */
#define ROUND_BYTES (512 << 10)         /* sealed before the socket is asked to take it: fits the second-level cache */
#define HANDSHAKE_BYTES_MAX (128 << 10) /* before it is open: certificates are a few KiB */
#define NAMES_BYTES 200

struct tls_context {
  SSL_CTX *ssl;
  atomic_int references;
};

struct tls {
  SSL *ssl;
  struct tls_context *context;
  char *dialled;
  bool is_open, is_finished;
  const uint8_t *input;
  size_t input_size, received;
  uint8_t *output;
  size_t output_first, output_size, output_room;
  uint8_t record[RECORD_BYTES];
  char shown_names[NAMES_BYTES]; /* of a certificate that was refused: OpenSSL does not keep it */
};

/* ---- words ---- */

/* The DNS names of a certificate, for people: "worker_0, localhost". */
static const char *names_of(X509 *certificate, char out[NAMES_BYTES]) {
  size_t used = 0;
  GENERAL_NAMES *names = certificate ? X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL) : NULL;
  out[0] = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS && used < NAMES_BYTES - 1)
      used += (size_t)snprintf(out + used, NAMES_BYTES - used, "%s%.*s", used ? ", " : "", ASN1_STRING_length(name->d.dNSName),
                               (const char *)ASN1_STRING_get0_data(name->d.dNSName));
  }
  GENERAL_NAMES_free(names);
  return out[0] ? out : "no task";
}

static bool has_name(X509 *certificate, const char *name) {
  return certificate &&
         X509_check_host(certificate, name, 0, X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
}

/* What is wrong with a certificate, to follow "the certificate ... ". */
static const char *fault_text(long fault) {
  switch (fault) {
  case X509_V_ERR_CERT_HAS_EXPIRED: return "has expired";
  case X509_V_ERR_CERT_NOT_YET_VALID: return "is not valid yet";
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE: return "is of another CA";
  default: return NULL;
  }
}

static status certificate_refuse(status code, const char *whose, long fault, const char *names, const char *name) {
  if (fault == X509_V_ERR_HOSTNAME_MISMATCH)
    return fail(code, "the certificate%s is not for %s: it names %s", whose, name, names);
  const char *text = fault_text(fault);
  return text ? fail(code, "the certificate%s %s", whose, text)
              : fail(code, "the certificate%s is refused: %s", whose, X509_verify_cert_error_string(fault));
}

/* The alert with which the other side refuses ours: what it is called, or NULL when the failure is another. */
static const char *alert_text(int reason) {
  switch (reason) {
  case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return "it is of another CA";
  case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED: return "it has expired";
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return "it was not shown";
  case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
  case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
  case SSL_R_TLSV1_ALERT_DECRYPT_ERROR: return "it is bad";
  default: return NULL;
  }
}

static bool output_reserve(struct tls *tls, size_t more) {
  if (tls->output_first > 0 && tls->output_first == tls->output_size)
    tls->output_first = tls->output_size = 0;
  if (tls->output_size + more <= tls->output_room)
    return true;
  size_t room =
    tls->output_size + more + RECORD_BYTES > 2 * tls->output_room ? tls->output_size + more + RECORD_BYTES : 2 * tls->output_room;
  uint8_t *output = realloc(tls->output, room);
  if (!output)
    return false;
  tls->output = output;
  tls->output_room = room;
  return true;
}

/* OpenSSL says nothing to who does not begin with TLS; a task that was started without it knows this record (connection.c). */
static void alert_send(struct tls *tls) {
  static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 70}; /* RFC 8446, 6: protocol_version */
  if (tls->output_size == 0 && output_reserve(tls, sizeof alert)) {
    memcpy(tls->output, alert, sizeof alert);
    tls->output_size = sizeof alert;
  }
}

/* Why the last call of OpenSSL failed. */
static status failure_say(struct tls *tls) {
  char text[160];
  unsigned long error = ERR_peek_error();
  int reason = ERR_GET_REASON(error);
  long fault = SSL_get_verify_result(tls->ssl);
  const char *alert = alert_text(reason);
  ERR_error_string_n(error, text, sizeof text);
  ERR_clear_error();
  if (fault != X509_V_OK && reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return certificate_refuse(UNAUTHENTICATED, " that was shown", fault, tls->shown_names, tls->dialled ? tls->dialled : "a task");
  if (alert)
    return fail(UNAUTHENTICATED, "the other side refuses this task's certificate: %s", alert);
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return fail(UNAUTHENTICATED, "no certificate was shown");
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG) {
    alert_send(tls);
    return fail(UNAUTHENTICATED, "the other side does not speak TLS: was it started without --tls-cert?");
  }
  if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION)
    return fail(UNAUTHENTICATED, "the other side does not speak TLS 1.3");
  return fail(UNAUTHENTICATED, "TLS: %s", error ? text : "the other side has ended it");
}

/* ---- the buffers as OpenSSL's socket ---- */

static int socket_read(BIO *bio, char *to, int size) {
  struct tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (size <= 0 || tls->input_size == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  size_t bytes = (size_t)size < tls->input_size ? (size_t)size : tls->input_size;
  memcpy(to, tls->input, bytes);
  tls->input += bytes;
  tls->input_size -= bytes;
  return (int)bytes;
}

static int socket_write(BIO *bio, const char *from, int size) {
  struct tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (size <= 0 || !output_reserve(tls, (size_t)size))
    return -1;
  memcpy(tls->output + tls->output_size, from, (size_t)size);
  tls->output_size += (size_t)size;
  return size;
}

static long socket_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *socket_method(void) {
  static _Atomic(BIO_METHOD *) made;
  BIO_METHOD *method = atomic_load(&made), *none = NULL;
  if (method)
    return method;
  method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tfc");
  if (!method)
    return NULL;
  BIO_meth_set_read(method, socket_read);
  BIO_meth_set_write(method, socket_write);
  BIO_meth_set_ctrl(method, socket_control);
  if (atomic_compare_exchange_strong(&made, &none, method))
    return method;
  BIO_meth_free(method);
  return none;
}

/* ---- contexts ---- */

/* HTTP/2 is all that is spoken here (RFC 7540, 3.3). */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *offered,
                           unsigned int offered_size, void *self) {
  static const unsigned char protocols[] = {2, 'h', '2'};
  (void)ssl, (void)self;
  int found = SSL_select_next_proto((unsigned char **)out, size, protocols, sizeof protocols, offered, offered_size);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static status file_refuse(const char *option, const char *path, const char *what) {
  unsigned long error = ERR_peek_error();
  const char *reason = ERR_GET_LIB(error) == ERR_LIB_SYS ? strerror(ERR_GET_REASON(error)) : what;
  ERR_clear_error();
  return fail(INVALID_ARGUMENT, "%s %s: %s", option, path, reason);
}

static status context_load(struct tls_context *context, const struct tls_files *files) {
  if (SSL_CTX_load_verify_file(context->ssl, files->ca) != 1)
    return file_refuse("--tls-ca", files->ca, "it holds no certificate");
  if (SSL_CTX_use_certificate_chain_file(context->ssl, files->cert) != 1)
    return file_refuse("--tls-cert", files->cert, "it holds no certificate");
  if (SSL_CTX_use_PrivateKey_file(context->ssl, files->key, SSL_FILETYPE_PEM) != 1)
    return file_refuse("--tls-key", files->key, "it holds no key for the certificate");
  if (SSL_CTX_check_private_key(context->ssl) != 1)
    return file_refuse("--tls-key", files->key, "it is not the key of the certificate");
  return OK;
}

/* What the others would refuse is said here first. */
static status context_check(struct tls_context *context, const struct tls_files *files, const char *name) {
  X509 *own = SSL_CTX_get0_certificate(context->ssl);
  STACK_OF(X509) *chain = NULL;
  char whose[300], names[NAMES_BYTES];
  snprintf(whose, sizeof whose, " %s", files->cert);
  names_of(own, names);
  if (!has_name(own, name))
    return certificate_refuse(INVALID_ARGUMENT, whose, X509_V_ERR_HOSTNAME_MISMATCH, names, name);
  SSL_CTX_get0_chain_certs(context->ssl, &chain);
  X509_STORE_CTX *check = X509_STORE_CTX_new();
  long fault = X509_V_ERR_OUT_OF_MEM;
  if (check && X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(context->ssl), own, chain) == 1)
    fault = X509_verify_cert(check) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(check);
  X509_STORE_CTX_free(check);
  ERR_clear_error();
  return fault == X509_V_OK ? OK : certificate_refuse(INVALID_ARGUMENT, whose, fault, names, name);
}

/* Notes what a certificate names that is refused. */
static int on_verified(int is_good, X509_STORE_CTX *check) {
  SSL *ssl = is_good ? NULL : X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx());
  struct tls *tls = ssl ? SSL_get_app_data(ssl) : NULL;
  if (tls)
    names_of(X509_STORE_CTX_get0_cert(check), tls->shown_names);
  return is_good;
}

static void context_set(struct tls_context *context) {
  SSL_CTX_set_min_proto_version(context->ssl, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context->ssl, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_options(context->ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context->ssl, 0);
  SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_verified);
  SSL_CTX_set_alpn_select_cb(context->ssl, choose_protocol, NULL);
}

status tls_context_create(const struct tls_files *files, const char *name, struct tls_context **out) {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_NO_ATEXIT, NULL);
  struct tls_context *context = calloc(1, sizeof *context);
  if (context)
    context->ssl = SSL_CTX_new(TLS_method());
  if (!context || !context->ssl) {
    free(context);
    return fail(RESOURCE_EXHAUSTED, "no memory for TLS");
  }
  context->references = 1;
  context_set(context);
  status code = context_load(context, files);
  if (code == OK)
    code = context_check(context, files, name);
  if (code == OK)
    *out = context;
  else
    tls_context_release(context);
  return code;
}

struct tls_context *tls_context_retain(struct tls_context *context) {
  atomic_fetch_add(&context->references, 1);
  return context;
}

void tls_context_release(struct tls_context *context) {
  if (!context || atomic_fetch_sub(&context->references, 1) != 1)
    return;
  SSL_CTX_free(context->ssl);
  free(context);
}

/* ---- connections ---- */

static bool connection_set(struct tls *tls, const char *dialled) {
  BIO *bio = BIO_new(socket_method());
  tls->ssl = bio ? SSL_new(tls->context->ssl) : NULL;
  if (!tls->ssl) {
    BIO_free(bio);
    return false;
  }
  BIO_set_data(bio, tls);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls->ssl, bio, bio);
  SSL_set_app_data(tls->ssl, tls);
  if (!dialled) {
    SSL_set_accept_state(tls->ssl);
    return true;
  }
  static const unsigned char protocols[] = {2, 'h', '2'};
  SSL_set_connect_state(tls->ssl);
  SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return SSL_set1_host(tls->ssl, dialled) == 1 && SSL_set_alpn_protos(tls->ssl, protocols, sizeof protocols) == 0;
}

status tls_create(struct tls_context *context, const char *dialled, struct tls **out) {
  struct tls *tls = calloc(1, sizeof *tls);
  if (!tls)
    return fail(RESOURCE_EXHAUSTED, "no memory for TLS");
  tls->context = tls_context_retain(context);
  tls->dialled = dialled ? strdup(dialled) : NULL;
  if ((dialled && !tls->dialled) || !connection_set(tls, dialled)) {
    ERR_clear_error();
    tls_destroy(tls);
    return fail(RESOURCE_EXHAUSTED, "no memory for TLS");
  }
  *out = tls;
  return OK;
}

void tls_destroy(struct tls *tls) {
  if (!tls)
    return;
  SSL_free(tls->ssl);
  tls_context_release(tls->context);
  free(tls->dialled);
  free(tls->output);
  free(tls);
}

bool tls_is_open(const struct tls *tls) { return tls->is_open; }

bool tls_is_for(const struct tls *tls, const char *name) { return has_name(SSL_get0_peer_certificate(tls->ssl), name); }

status tls_receive(struct tls *tls, const uint8_t *data, size_t size) {
  tls->input = data;
  tls->input_size = size;
  if (tls->is_open)
    return OK;
  tls->received += size;
  int done = SSL_do_handshake(tls->ssl);
  if (done == 1) {
    tls->is_open = true;
    return OK;
  }
  if (SSL_get_error(tls->ssl, done) != SSL_ERROR_WANT_READ)
    return failure_say(tls);
  return tls->received <= HANDSHAKE_BYTES_MAX ? OK : fail(UNAUTHENTICATED, "TLS: it says too much before it has begun");
}

status tls_read(struct tls *tls, uint8_t *to, size_t size, size_t *got) {
  *got = 0;
  if (!tls->is_open || SSL_read_ex(tls->ssl, to, size, got) == 1)
    return OK;
  int error = SSL_get_error(tls->ssl, 0);
  *got = 0;
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN ? OK : failure_say(tls);
}

/* ---- sending ---- */

static status seal(struct tls *tls, const void *data, size_t size) {
  size_t written = 0;
  for (size_t at = 0; at < size; at += written)
    if (SSL_write_ex(tls->ssl, (const uint8_t *)data + at, size - at, &written) != 1)
      return failure_say(tls);
  return OK;
}

status tls_send(struct tls *tls, const struct iovec *pieces, int count, size_t *taken) {
  size_t gathered = 0;
  *taken = 0;
  for (int i = 0; i < count && tls->output_size - tls->output_first < ROUND_BYTES; i++) {
    const uint8_t *data = pieces[i].iov_base;
    for (size_t left = pieces[i].iov_len, bytes; left > 0 && tls->output_size - tls->output_first < ROUND_BYTES; left -= bytes) {
      bool is_whole = gathered == 0 && left >= RECORD_BYTES;
      bytes = left < RECORD_BYTES - gathered ? left : RECORD_BYTES - gathered;
      if (!is_whole)
        memcpy(tls->record + gathered, data, bytes);
      gathered = is_whole ? 0 : gathered + bytes;
      if (is_whole || gathered == RECORD_BYTES)
        TRY(seal(tls, is_whole ? data : tls->record, RECORD_BYTES));
      gathered %= RECORD_BYTES;
      data += bytes;
      *taken += bytes;
    }
  }
  return seal(tls, tls->record, gathered);
}

void tls_finish(struct tls *tls) {
  if (!tls->is_open || tls->is_finished)
    return;
  tls->is_finished = true;
  SSL_shutdown(tls->ssl);
  ERR_clear_error();
}

size_t tls_output(const struct tls *tls, const uint8_t **out) {
  *out = tls->output + tls->output_first;
  return tls->output_size - tls->output_first;
}

void tls_sent(struct tls *tls, size_t size) {
  tls->output_first += size;
  if (tls->output_first == tls->output_size)
    tls->output_first = tls->output_size = 0;
}
