/* command_status.c: tfc status: what a running task is at, asked at its address. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/commands.h"

#define WAIT_MS 5000L          /* a task answers from what it has at hand */
#define ANSWER_BYTES (1 << 20) /* what does not come from a task may have no end */

struct answer {
  char *text;
  size_t size;
};

static size_t take(char *data, size_t unit, size_t count, void *to) {
  struct answer *answer = to;
  size_t size = unit * count;
  if (answer->size + size > ANSWER_BYTES)
    return 0;
  char *grown = realloc(answer->text, answer->size + size + 1);
  if (!grown)
    return 0;
  memcpy(grown + answer->size, data, size);
  answer->text = grown;
  answer->size += size;
  answer->text[answer->size] = 0;
  return size;
}

/* A task's certificate has its own name, not its host's: that one of the same authority answers is what is checked. */
static void use_tls(CURL *curl, const struct status_request *request) {
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
  curl_easy_setopt(curl, CURLOPT_CAINFO, request->tls_ca);
  curl_easy_setopt(curl, CURLOPT_SSLCERT, request->tls_cert);
  curl_easy_setopt(curl, CURLOPT_SSLKEY, request->tls_key);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
}

static status ask(CURL *curl, const struct status_request *request, struct answer *answer) {
  char url[1024], why[CURL_ERROR_SIZE] = "";
  bool is_unix = strncmp(request->address, "unix:", 5) == 0;
  int length = snprintf(url, sizeof url, "%s://%s/status%s", request->tls_ca ? "https" : "http", is_unix ? "task" : request->address,
                        request->is_json ? ".json" : "");
  if (length < 0 || (size_t)length >= sizeof url)
    return fail(INVALID_ARGUMENT, "'%.80s...' is no address", request->address);
  if (is_unix)
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, request->address + 5);
  curl_easy_setopt(curl, CURLOPT_URL, url);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, WAIT_MS);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
  if (request->tls_ca)
    use_tls(curl, request);
  CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK)
    return OK;
  bool may_want_tls = !request->tls_ca && code != CURLE_URL_MALFORMAT && code != CURLE_COULDNT_CONNECT && code != CURLE_OPERATION_TIMEDOUT;
  return fail(code == CURLE_URL_MALFORMAT ? INVALID_ARGUMENT : UNAVAILABLE, "%s: %s%s", request->address,
              why[0] ? why : curl_easy_strerror(code),
              may_want_tls ? "; a task that speaks TLS needs --tls-cert, --tls-key and --tls-ca" : "");
}

status command_status(const struct status_request *request) {
  struct answer answer = {0};
  CURL *curl = curl_global_init(CURL_GLOBAL_DEFAULT) == 0 ? curl_easy_init() : NULL;
  if (!curl)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  status result = ask(curl, request, &answer);
  curl_easy_cleanup(curl);
  curl_global_cleanup();
  if (result == OK)
    fputs(answer.text ? answer.text : "", stdout);
  free(answer.text);
  return result;
}
