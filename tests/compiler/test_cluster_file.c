/* test_cluster_file.c: the three forms of a cluster file, and what is refused. */
#include "compiler/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *tasks_text(const struct cluster *cluster) {
  static char text[1024];
  size_t used = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < cluster->tasks.count; i++) {
    const struct cluster_task *task = &cluster->tasks.items[i];
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s_%u=%s", i ? " " : "", task->job, task->index, task->address);
  }
  return text;
}

static const struct {
  const char *about, *json, *tasks;
} good[] = {
  {"a spec", "{\"worker\": [\"a:1\", \"b:2\"], \"ps\": [\"c:3\"]}", "ps_0=c:3 worker_0=a:1 worker_1=b:2"},
  {"a sparse spec", "{\"worker\": {\"10\": \"a:1\", \"2\": \"b:2\"}}", "worker_2=b:2 worker_10=a:1"},
  {"TF_CONFIG", "{\"cluster\": {\"ps\": [\"c:3\"]}, \"task\": {\"type\": \"ps\", \"index\": 0}}", "ps_0=c:3"},
  {"TF_CONFIG without task", "{\"cluster\": {\"ps\": [\"c:3\"], \"chief\": {\"0\": \"d:4\"}}}", "chief_0=d:4 ps_0=c:3"},
  {"a job named cluster", "{\"cluster\": [\"c:3\"]}", "cluster_0=c:3"},
  {"a sparse job named cluster", "{\"cluster\": {\"1\": \"c:3\"}}", "cluster_1=c:3"},
  {"Unix sockets and IPv6", "{\"w\": [\"unix:/tmp/x y\", \"[::1]:22\"]}", "w_0=unix:/tmp/x y w_1=[::1]:22"},
  {"ports drawn at start", "{\"w\": [\"h:0\", \"h:0\"]}", "w_0=h:0 w_1=h:0"},
  {"a job without tasks", "{\"w\": [\"h:1\"], \"ps\": []}", "w_0=h:1"},
};

static void three_forms_are_read(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct arena arena;
    struct cluster cluster;
    arena_init(&arena);
    status result = cluster_parse(good[i].json, strlen(good[i].json), &arena, &cluster);
    if (result != OK || strcmp(tasks_text(&cluster), good[i].tasks))
      fail_msg("%s: %s %s", good[i].about, result ? status_text() : "", result ? "" : tasks_text(&cluster));
    vec_free(&cluster.tasks);
    arena_deinit(&arena);
  }
}

static const struct {
  const char *json, *text;
} bad[] = {
  {"", "line 1"},
  {"{\"ps\": [\"a:1\"]", "line 1"},
  {"[]", "not a JSON object"},
  {"{}", "no task"},
  {"{\"ps\": []}", "no task"},
  {"{\"ps\": \"a:1\"}", "neither a list"},
  {"{\"ps\": [1]}", "/job:ps/task:0 is not a string"},
  {"{\"ps\": [\"a\"]}", "Could not interpret \"a\" as a host-port pair."},
  {"{\"ps\": [\"a:\"]}", "host-port"},
  {"{\"ps\": [\":1\"]}", "host-port"},
  {"{\"ps\": [\"a:65536\"]}", "host-port"},
  {"{\"ps\": [\"a:-1\"]}", "host-port"},
  {"{\"ps\": [\"a:1x\"]}", "host-port"},
  {"{\"ps\": [\"grpc://a:1\"]}", "host-port"},
  {"{\"ps\": [\"a b:1\"]}", "host-port"},
  {"{\"ps\": [\"unix:\"]}", "no path"},
  {"{\"ps\": {\"x\": \"a:1\"}}", "'x' is no task number"},
  {"{\"ps\": {\"-1\": \"a:1\"}}", "no task number"},
  {"{\"ps\": {\"99999999999\": \"a:1\"}}", "no task number"},
  {"{\"ps\": {\"1\": \"a:1\", \"01\": \"a:2\"}}", "named twice"},
  {"{\"ps\": [\"a:1\"], \"ps\": [\"a:2\"]}", "duplicate"},
  {"{\"ps\": [\"a:1\", \"a:1\"]}", "has the address a:1 of /job:ps/task:0"},
  {"{\"1ps\": [\"a:1\"]}", "no job name"},
  {"{\"../x\": [\"a:1\"]}", "no job name"},
};

static void what_is_no_cluster_is_refused_with_its_reason(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct arena arena;
    struct cluster cluster;
    arena_init(&arena);
    status result = cluster_parse(bad[i].json, strlen(bad[i].json), &arena, &cluster);
    if (result != INVALID_ARGUMENT || !strstr(status_text(), bad[i].text))
      fail_msg("%s: %s: %s", bad[i].json, status_name(result), status_text());
    arena_deinit(&arena);
  }
}

static void too_many_tasks_are_refused(void **state) {
  (void)state;
  size_t used = 0, size = 1 << 20;
  char *text = malloc(size);
  used += (size_t)snprintf(text, size, "{\"w\": [");
  for (int i = 0; i < 4097; i++)
    used += (size_t)snprintf(text + used, size - used, "%s\"h%d:1\"", i ? "," : "", i);
  used += (size_t)snprintf(text + used, size - used, "]}");
  struct arena arena;
  struct cluster cluster;
  arena_init(&arena);
  assert_int_equal(cluster_parse(text, used, &arena, &cluster), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "more than 4096 tasks"));
  arena_deinit(&arena);
  free(text);
}

static void the_chief_is_the_default_task(void **state) {
  (void)state;
  static const struct {
    const char *json;
    const char *job;
  } cases[] = {
    {"{\"ps\": [\"a:1\"], \"worker\": [\"a:2\"], \"chief\": [\"a:3\"]}", "chief"},
    {"{\"ps\": [\"a:1\"], \"worker\": [\"a:2\"]}", "worker"},
    {"{\"ps\": [\"a:1\"], \"trainer\": [\"a:2\"]}", "ps"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct arena arena;
    struct cluster cluster;
    arena_init(&arena);
    assert_int_equal(cluster_parse(cases[i].json, strlen(cases[i].json), &arena, &cluster), OK);
    assert_string_equal(cluster.tasks.items[cluster_default_task(&cluster)].job, cases[i].job);
    vec_free(&cluster.tasks);
    arena_deinit(&arena);
  }
}

static void a_missing_file_is_not_found(void **state) {
  (void)state;
  struct arena arena;
  struct cluster cluster;
  arena_init(&arena);
  assert_int_equal(cluster_read("/nonexistent/cluster.json", &arena, &cluster), NOT_FOUND);
  assert_non_null(strstr(status_text(), "/nonexistent/cluster.json"));
  cluster_local(&arena, &cluster);
  assert_string_equal(tasks_text(&cluster), "localhost_0=");
  vec_free(&cluster.tasks);
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(three_forms_are_read),        cmocka_unit_test(what_is_no_cluster_is_refused_with_its_reason),
    cmocka_unit_test(too_many_tasks_are_refused),  cmocka_unit_test(the_chief_is_the_default_task),
    cmocka_unit_test(a_missing_file_is_not_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
