/* certificate.c: X.509 with libcrypto. */
#include "compiler/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUTHORITY_DAYS 3650
#define DAY_S (24 * 60 * 60)

struct authority {
  EVP_PKEY *key;
  X509 *certificate;
};

static status refuse(const char *what) {
  char text[160];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return fail(INTERNAL, "%s: %s", what, text);
}

/* ---- certificates ---- */

static bool extension_add(X509 *certificate, X509 *issuer, int kind, const char *text) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, text);
  bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

static bool subject_set(X509 *certificate, const char *name) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) == 1;
}

static bool serial_set(X509 *certificate) {
  uint64_t serial = 0;
  return RAND_bytes((unsigned char *)&serial, sizeof serial) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1;
}

/* Without its extensions. */
static X509 *certificate_begin(const char *name, EVP_PKEY *key, const X509 *issuer, int from_day, int days) {
  X509 *certificate = X509_new();
  long from_s = from_day * (long)DAY_S - 60 * 60; /* clocks differ */
  bool made = certificate && X509_set_version(certificate, 2) == 1 && serial_set(certificate) && subject_set(certificate, name) &&
              X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : X509_get_subject_name(certificate)) == 1 &&
              X509_gmtime_adj(X509_getm_notBefore(certificate), from_s) &&
              X509_gmtime_adj(X509_getm_notAfter(certificate), from_s + days * (long)DAY_S) && X509_set_pubkey(certificate, key) == 1;
  if (made)
    return certificate;
  X509_free(certificate);
  return NULL;
}

static bool is_number_address(const char *host) {
  ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);
  ASN1_OCTET_STRING_free(address);
  ERR_clear_error();
  return address != NULL;
}

static bool certificate_finish(X509 *certificate, const struct authority *issuer, const struct certificate_request *request) {
  char names[600];
  int size = request->host
             ? snprintf(names, sizeof names, "DNS:%s,%s:%s", request->name, is_number_address(request->host) ? "IP" : "DNS", request->host)
             : snprintf(names, sizeof names, "DNS:%s", request->name);
  return size < (int)sizeof names && extension_add(certificate, issuer->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         extension_add(certificate, issuer->certificate, NID_key_usage, "critical,digitalSignature") &&
         extension_add(certificate, issuer->certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
         extension_add(certificate, issuer->certificate, NID_subject_key_identifier, "hash") &&
         extension_add(certificate, issuer->certificate, NID_authority_key_identifier, "keyid") &&
         extension_add(certificate, issuer->certificate, NID_subject_alt_name, names) &&
         X509_sign(certificate, issuer->key, EVP_sha256()) > 0;
}

/* ---- files ---- */

static status file_refuse(const char *path, FILE *file) {
  status code = fail(DATA_LOSS, "%s cannot be written: %s", path, errno ? strerror(errno) : "its text cannot be made");
  if (file)
    fclose(file);
  ERR_clear_error();
  return code;
}

static status pair_write(X509 *certificate, EVP_PKEY *key, const char *cert_path, const char *key_path) {
  errno = 0;
  FILE *file = fopen(cert_path, "w");
  if (!file || PEM_write_X509(file, certificate) != 1)
    return file_refuse(cert_path, file);
  if (fclose(file) != 0)
    return file_refuse(cert_path, NULL);
  unlink(key_path); /* the mode is that of a new file */
  errno = 0;
  int fd = open(key_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  file = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (!file || PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) != 1)
    return file_refuse(key_path, file);
  return fclose(file) == 0 ? OK : file_refuse(key_path, NULL);
}

/* ---- the authority ---- */

status authority_create(const char *name, struct authority **out) {
  struct authority *a = calloc(1, sizeof *a);
  if (!a)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  a->key = EVP_EC_gen("P-256");
  a->certificate = a->key ? certificate_begin(name, a->key, NULL, 0, AUTHORITY_DAYS) : NULL;
  if (!a->certificate || !extension_add(a->certificate, a->certificate, NID_basic_constraints, "critical,CA:TRUE") ||
      !extension_add(a->certificate, a->certificate, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !extension_add(a->certificate, a->certificate, NID_subject_key_identifier, "hash") ||
      X509_sign(a->certificate, a->key, EVP_sha256()) <= 0) {
    authority_destroy(a);
    return refuse("no CA can be made");
  }
  *out = a;
  return OK;
}

status authority_read(const char *cert_path, const char *key_path, struct authority **out) {
  struct authority *a = calloc(1, sizeof *a);
  FILE *cert = fopen(cert_path, "r"), *key = fopen(key_path, "r");
  if (a && cert && key) {
    a->certificate = PEM_read_X509(cert, NULL, NULL, NULL);
    a->key = PEM_read_PrivateKey(key, NULL, NULL, NULL);
  }
  if (cert)
    fclose(cert);
  if (key)
    fclose(key);
  ERR_clear_error();
  if (!a || !a->certificate || !a->key || X509_check_private_key(a->certificate, a->key) != 1) {
    authority_destroy(a);
    return fail(INVALID_ARGUMENT, "%s and %s are no certificate of a CA and its key", cert_path, key_path);
  }
  *out = a;
  return OK;
}

void authority_destroy(struct authority *a) {
  if (!a)
    return;
  X509_free(a->certificate);
  EVP_PKEY_free(a->key);
  free(a);
}

status authority_write(const struct authority *a, const char *cert_path, const char *key_path) {
  return pair_write(a->certificate, a->key, cert_path, key_path);
}

status authority_issue(const struct authority *a, const struct certificate_request *request, const char *cert_path, const char *key_path) {
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = key ? certificate_begin(request->name, key, a->certificate, request->from_day, request->days) : NULL;
  status code = certificate && certificate_finish(certificate, a, request) ? OK : refuse("no certificate can be made");
  if (code == OK)
    code = pair_write(certificate, key, cert_path, key_path);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return code;
}
