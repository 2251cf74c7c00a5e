/* test_tls.c: real processes under TLS: a ps and two workers, their certificates, and those that are refused. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "compiler/certificate.h"
#include "tests/cluster/async_job.h"

/* ---- certificates ---- */

static const char *file(const char *name) {
  static char paths[8][160];
  static int turn;
  char *path = paths[turn++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static status issue(const struct authority *authority, const char *as, const char *name, int from_day) {
  char cert[64], key[64];
  snprintf(cert, sizeof cert, "%s.crt", as);
  snprintf(key, sizeof key, "%s.key", as);
  return authority_issue(authority, &(struct certificate_request){.name = name, .from_day = from_day, .days = 2}, file(cert), file(key));
}

/* Of the cluster's CA: ps_0, worker_0, worker_1, client, old (worker_0's, expired), young; of another: other (worker_0's). */
static bool certificates_make(void) {
  struct authority *authority = NULL, *other = NULL;
  bool made = authority_create("test", &authority) == OK && authority_create("test", &other) == OK &&
              authority_write(authority, file("ca.crt"), file("ca.key")) == OK &&
              authority_write(other, file("other_ca.crt"), file("other_ca.key")) == OK && issue(authority, "ps_0", "ps_0", 0) == OK &&
              issue(authority, "worker_0", "worker_0", 0) == OK && issue(authority, "worker_1", "worker_1", 0) == OK &&
              issue(authority, "client", "client", 0) == OK && issue(authority, "old", "worker_0", -10) == OK &&
              issue(authority, "young", "worker_0", 10) == OK && issue(other, "other", "worker_0", 0) == OK;
  authority_destroy(authority);
  authority_destroy(other);
  return made;
}

#define OWN "--tls-cert {task}.crt --tls-key {task}.key --tls-ca ca.crt"

/* A client's end: what TLS says in the end, or the answer to the first bytes of HTTP/2 ("" when it was a SETTINGS frame). */
struct caller {
  char text[200];
  char names[32]; /* the key of the certificate that was shown */
};

static int call_socket(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  struct timeval patience = {.tv_sec = 10};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
  for (int i = 0; i < 500 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0; i++)
    usleep(10000);
  return fd;
}

static struct caller call(const char *cert) {
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
  struct caller caller = {{0}, {0}};
  char path[64], bytes[9];
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (cert) {
    snprintf(path, sizeof path, "%s.crt", cert);
    SSL_CTX_use_certificate_chain_file(context, file(path));
    snprintf(path, sizeof path, "%s.key", cert);
    SSL_CTX_use_PrivateKey_file(context, file(path), SSL_FILETYPE_PEM);
  }
  SSL *ssl = SSL_new(context);
  int fd = call_socket("p");
  SSL_set_fd(ssl, fd);
  ERR_clear_error();
  bool is_answered = SSL_connect(ssl) == 1 && SSL_write(ssl, preface, sizeof preface - 1) > 0 && SSL_read(ssl, bytes, sizeof bytes) == 9;
  if (!is_answered)
    ERR_error_string_n(ERR_get_error(), caller.text, sizeof caller.text);
  X509 *shown = SSL_get1_peer_certificate(ssl);
  if (shown)
    snprintf(caller.names, sizeof caller.names, "%lx",
             (unsigned long)X509_NAME_hash_ex(X509_get_subject_name(shown), NULL, NULL, NULL) ^
               (unsigned long)ASN1_INTEGER_get(X509_get_serialNumber(shown)));
  X509_free(shown);
  SSL_free(ssl);
  SSL_CTX_free(context);
  close(fd);
  return caller;
}

/* ---- tests ---- */

static void a_cluster_trains_under_tls(void **state) {
  (void)state;
  struct process *ps = task("ps_0", OWN), *w1 = task("worker_1", with(OWN, train("200"))), *w0 = task("worker_0", with(OWN, train("200")));
  assert_int_equal(process_end(w0, 30), 0);
  assert_int_equal(process_end(w1, 30), 0);
  assert_int_equal(process_end(ps, 30), 0);
}

static void nothing_is_said_to_who_does_not_speak_tls(void **state) {
  (void)state;
  struct process *ps = task("ps_0", OWN), *plain = task("worker_0", with("--timeout 2", train("5")));
  char byte = 0;
  int fd = call_socket("p");
  assert_int_equal(send(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24, MSG_NOSIGNAL), 24);
  assert_int_equal(recv(fd, &byte, 1, 0), 1);
  assert_int_equal(byte, 21); /* an alert */
  close(fd);
  assert_int_equal(process_end(plain, 20), 69);
  assert_true(process_comes_to_say(plain, "it speaks TLS only"));
  assert_true(process_comes_to_say(ps, "refused a connection: the other side does not speak TLS"));
  struct process *w0 = task("worker_0", with("--timeout 2 " OWN, train("5")));
  process_kill(ps);
  ps = task("ps_0", "");
  assert_int_equal(process_end(w0, 20), 69);
  assert_true(process_comes_to_say(w0, "does not speak TLS"));
}

static void another_ca_is_refused_on_both_sides(void **state) {
  (void)state;
  struct process *ps = task("ps_0", OWN);
  struct process *w0 = task("worker_0", with("--timeout 2 --tls-cert other.crt --tls-key other.key --tls-ca other_ca.crt", train("5")));
  assert_int_equal(process_end(w0, 20), 69);
  assert_true(process_comes_to_say(w0, "the certificate that was shown is of another CA"));
  assert_true(process_comes_to_say(ps, "refused a connection: the other side refuses this task's certificate: it is of another CA"));
}

static void a_certificate_that_others_would_refuse_is_refused_at_the_start(void **state) {
  (void)state;
  static const struct {
    const char *cert, *key, *ca, *words;
  } rows[] = {
    {"worker_1.crt", "worker_1.key", "ca.crt", "worker_1.crt is not for worker_0: it names worker_1"},
    {"old.crt", "old.key", "ca.crt", "old.crt has expired"},
    {"young.crt", "young.key", "ca.crt", "young.crt is not valid yet"},
    {"other.crt", "other.key", "ca.crt", "other.crt is of another CA"},
    {"worker_0.crt", "ps_0.key", "ca.crt", "--tls-key ps_0.key"},
    {"none.crt", "worker_0.key", "ca.crt", "--tls-cert none.crt: No such file or directory"},
    {"worker_0.crt", "worker_0.key", "x.npy", "--tls-ca x.npy"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char options[256];
    snprintf(options, sizeof options, "--tls-cert %s --tls-key %s --tls-ca %s", rows[i].cert, rows[i].key, rows[i].ca);
    struct process *w0 = task("worker_0", with(options, train("5")));
    assert_int_equal(process_end(w0, 20), 65);
    assert_true(process_comes_to_say(w0, rows[i].words));
    process_kill_all(state);
  }
}

static void a_client_shows_a_certificate_of_the_ca(void **state) {
  (void)state;
  struct process *ps = task("ps_0", OWN);
  assert_string_equal(call("client").text, "");
  assert_non_null(strstr(call(NULL).text, "certificate required"));
  assert_non_null(strstr(call("other").text, "unknown ca"));
  assert_non_null(strstr(call("old").text, "expired"));
  assert_true(process_comes_to_say(ps, "refused a connection: no certificate was shown"));
  assert_true(process_comes_to_say(ps, "refused a connection: the certificate that was shown is of another CA"));
  assert_true(process_comes_to_say(ps, "refused a connection: the certificate that was shown has expired"));
}

static void the_status_is_told_to_who_shows_a_certificate(void **state) {
  (void)state;
  task("ps_0", OWN);
  close(call_socket("p")); /* it listens */
  struct process *shown = process_start(BINARY_DIR "/tfc", "status unix:p --tls-cert client.crt --tls-key client.key --tls-ca ca.crt");
  assert_int_equal(process_end(shown, 20), 0);
  struct process *other = process_start(BINARY_DIR "/tfc", "status unix:p --tls-cert other.crt --tls-key other.key --tls-ca ca.crt");
  assert_int_equal(process_end(other, 20), 69);
  struct process *plain = process_start(BINARY_DIR "/tfc", "status unix:p");
  assert_int_equal(process_end(plain, 20), 69);
  assert_true(process_comes_to_say(plain, "a task that speaks TLS needs --tls-cert, --tls-key and --tls-ca"));
}

static void a_new_certificate_is_taken_on_sighup(void **state) {
  (void)state;
  struct authority *authority = NULL;
  struct process *ps = task("ps_0", OWN), *w0 = task("worker_0", with(OWN, train(LONG)));
  struct caller before = call("client");
  assert_string_equal(before.text, "");
  assert_int_equal(authority_read(file("ca.crt"), file("ca.key"), &authority), OK);
  assert_int_equal(issue(authority, "ps_0", "worker_1", 0), OK); /* not for it */
  kill(ps->id, SIGHUP);
  assert_true(process_comes_to_say(ps, "the certificate stays as it was"));
  assert_string_equal(call("client").names, before.names);
  assert_int_equal(issue(authority, "ps_0", "ps_0", 0), OK);
  kill(ps->id, SIGHUP);
  for (int i = 0; i < 500 && strcmp(call("client").names, before.names) == 0; i++)
    usleep(10000);
  assert_string_not_equal(call("client").names, before.names);
  authority_destroy(authority);
  struct process *w1 = task("worker_1", with(OWN, train("20"))); /* and the job goes on */
  assert_int_equal(process_end(w1, 20), 0);
  assert_true(process_is_alive(w0));
}

static void an_executable_without_tls_refuses_the_options(void **state) {
  (void)state;
  struct process *w0 = process_start("plain/worker_0", with("--tls-cert worker_0.crt", train("5")));
  assert_int_equal(process_end(w0, 20), 64);
  assert_true(process_comes_to_say(w0, "tfc build --tls"));
}

/* Between a worker and the ps: what goes to the ps is kept. */
struct tap {
  int listener;
  char bytes[1 << 20];
  size_t size;
};

static void *tap_run(void *self) {
  struct tap *tap = self;
  static char piece[65536];
  int from = accept(tap->listener, NULL, NULL), to = call_socket("p");
  struct pollfd ends[] = {{from, POLLIN, 0}, {to, POLLIN, 0}};
  for (bool is_open = true; is_open && poll(ends, 2, -1) > 0;)
    for (int i = 0; i < 2 && is_open; i++) {
      ssize_t got = ends[i].revents ? recv(ends[i].fd, piece, sizeof piece, 0) : -1;
      is_open = !ends[i].revents || (got > 0 && send(ends[!i].fd, piece, (size_t)got, MSG_NOSIGNAL) == got);
      if (i == 0 && got > 0 && tap->size + (size_t)got <= sizeof tap->bytes) {
        memcpy(tap->bytes + tap->size, piece, (size_t)got);
        tap->size += (size_t)got;
      }
    }
  close(from);
  close(to);
  return NULL;
}

static void recorded_bytes_change_nothing(const char *options, const char *refusal) {
  static struct tap tap;
  pthread_t thread;
  char reply[4096], peer[128];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  tap = (struct tap){.listener = socket(AF_UNIX, SOCK_STREAM, 0)};
  snprintf(address.sun_path, sizeof address.sun_path, "%s/tap", folder);
  unlink(address.sun_path);
  assert_int_equal(bind(tap.listener, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(tap.listener, 4), 0);
  struct process *ps = task("ps_0", options), *w1 = task("worker_1", with(options, train(LONG)));
  assert_int_equal(pthread_create(&thread, NULL, tap_run, &tap), 0);
  snprintf(peer, sizeof peer, "%s --peer ps:0=unix:%s/tap", options, folder);
  struct process *w0 = task("worker_0", with(peer, train("30")));
  assert_int_equal(process_end(w0, 30), 0);
  pthread_join(thread, NULL);
  close(tap.listener);
  assert_true(tap.size > 1000);
  for (int i = 0; i < 3; i++) {
    int fd = call_socket("p");
    (void)!send(fd, tap.bytes, tap.size, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    while (recv(fd, reply, sizeof reply, 0) > 0)
      ;
    close(fd);
  }
  assert_true(process_comes_to_say(ps, refusal));
  assert_true(process_is_alive(w1));
}

static void bytes_that_are_sent_again_change_nothing(void **state) {
  (void)state;
  recorded_bytes_change_nothing("", "another build");
}

static void sealed_bytes_that_are_sent_again_change_nothing(void **state) {
  (void)state;
  recorded_bytes_change_nothing(OWN, "refused a connection: TLS: ");
}

/* ---- the build ---- */

static bool build_into(const char *out, const char *tls) {
  static const char tfc[] = BINARY_DIR "/tfc";
  pid_t id = fork();
  if (id == 0) {
    if (chdir(folder) == 0)
      execl(tfc, tfc, "build", MODEL, "--quiet", "--cluster", "cluster.json", "-o", out, "--replicate", "worker", "--entry",
            "init: -> | init", "--entry", "train: x, label -> loss | train_op", tls, (char *)NULL);
    _exit(127);
  }
  int result = 0;
  return waitpid(id, &result, 0) == id && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static int build(void **state) {
  (void)state;
  if (!job_folder())
    return 1;
  return !certificates_make() || !build_into("out", "--tls") || !build_into("plain", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_cluster_trains_under_tls, process_kill_all),
    cmocka_unit_test_teardown(nothing_is_said_to_who_does_not_speak_tls, process_kill_all),
    cmocka_unit_test_teardown(another_ca_is_refused_on_both_sides, process_kill_all),
    cmocka_unit_test_teardown(a_certificate_that_others_would_refuse_is_refused_at_the_start, process_kill_all),
    cmocka_unit_test_teardown(a_client_shows_a_certificate_of_the_ca, process_kill_all),
    cmocka_unit_test_teardown(the_status_is_told_to_who_shows_a_certificate, process_kill_all),
    cmocka_unit_test_teardown(a_new_certificate_is_taken_on_sighup, process_kill_all),
    cmocka_unit_test_teardown(an_executable_without_tls_refuses_the_options, process_kill_all),
    cmocka_unit_test_teardown(bytes_that_are_sent_again_change_nothing, process_kill_all),
    cmocka_unit_test_teardown(sealed_bytes_that_are_sent_again_change_nothing, process_kill_all),
  };
  return cmocka_run_group_tests(tests, build, job_clean);
}
