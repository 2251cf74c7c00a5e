/* test_cluster.c: tasks that find each other over loopback TCP and Unix sockets, and exchange. */
#include "runtime/net/address.h"
#include "tests/runtime/cluster_tasks.h"

static struct tensor *floats(int64_t count) {
  struct tensor *tensor;
  assert_int_equal(tensor_create(DTYPE_FLOAT, &(struct shape){1, {count}}, &tensor), OK);
  for (int64_t i = 0; i < count; i++)
    ((float *)tensor->data)[i] = (float)(i % 1000003);
  return tensor;
}

static void exchange_everything(bool use_unix) {
  choose_addresses(use_unix);
  start_task(1, 2, true); /* the one that dials comes first */
  usleep(30000);
  start_task(0, 2, false);
  need(1, 0);
  need(0, 1);
  struct exchange *worker = cluster_exchange(clusters[1]), *ps = cluster_exchange(clusters[0]);
  worker->start(worker->self, 0, 5, 3, 2, 71);
  assert_true(wait_count(&recorders[0], &recorders[0].starts, 1));
  assert_int_equal(recorders[0].driver, 1);
  assert_int_equal(recorders[0].step, 5);
  assert_int_equal(recorders[0].entry, 3);
  assert_true(recorders[0].command == 2 && recorders[0].serial == 71);
  static const int64_t sizes[] = {0, 1, 500, 600, 100000, 30000001};
  for (int i = 0; i < 6; i++) {
    struct tensor *sent = floats(sizes[i]);
    tensor_retain(sent);
    worker->send(worker->self, 0, 5, (uint32_t)i, sent);
    assert_true(wait_count(&recorders[0], &recorders[0].tensors, i + 1));
    assert_int_equal(recorders[0].transfer, i);
    assert_int_equal(recorders[0].tensor->count, sizes[i]);
    if (sizes[i])
      assert_memory_equal(recorders[0].tensor->data, sent->data, sizes[i] * 4);
    for (int tries = 0; sent->references > 1 && tries < 1000; tries++)
      usleep(1000);
    assert_int_equal(sent->references, 1);
    tensor_release(sent);
  }
  ps->done(ps->self, 1, 5, INVALID_ARGUMENT, "MatMul 'm': no");
  assert_true(wait_count(&recorders[1], &recorders[1].dones, 1));
  assert_int_equal(recorders[1].code, INVALID_ARGUMENT);
  assert_string_equal(recorders[1].text, "MatMul 'm': no");
  worker->cancel(worker->self, 0, 6);
  assert_true(wait_count(&recorders[0], &recorders[0].cancels, 1));
  stop_tasks();
}

static void tasks_of_one_host_meet_beside_their_addresses(void **state) {
  (void)state;
  choose_addresses(false);
  for (uint32_t i = 0; i < 2; i++) {
    struct cluster_config config = config_of(i, 2, true);
    config.only_addresses = false;
    assert_int_equal(cluster_create(&config, &clusters[i]), OK);
    assert_int_equal(cluster_start(clusters[i]), OK);
  }
  need(1, 0);
  need(0, 1);
  char line[256], at[32];
  bool is_over_tcp = false;
  FILE *sockets = fopen("/proc/net/tcp", "r"); /* no connection has the ps's address */
  snprintf(at, sizeof at, "%08X:%04X ", own_host(0).s_addr, (unsigned)atoi(strrchr(addresses[0], ':') + 1));
  while (sockets && fgets(line, sizeof line, sockets))
    is_over_tcp = is_over_tcp || (strstr(line, at) && strstr(line, " 01 "));
  if (sockets)
    fclose(sockets);
  assert_false(is_over_tcp);
  stop_tasks();
}

static void tasks_exchange_over_tcp(void **state) {
  (void)state;
  exchange_everything(false);
}

static void tasks_exchange_over_unix_sockets(void **state) {
  (void)state;
  exchange_everything(true);
}

static void strings_cross(void **state) {
  (void)state;
  choose_addresses(true);
  start_task(0, 2, false);
  start_task(1, 2, true);
  need(1, 0);
  struct string_view views[3] = {{"", 0}, {"a\0b", 3}, {"longer than the others", 22}};
  struct tensor *tensor;
  assert_int_equal(tensor_copy_in(DTYPE_STRING, &(struct shape){2, {3, 1}}, views, &tensor), OK);
  struct exchange *worker = cluster_exchange(clusters[1]);
  worker->send(worker->self, 0, 1, 2, tensor);
  assert_true(wait_count(&recorders[0], &recorders[0].tensors, 1));
  const struct tensor *got = recorders[0].tensor;
  const struct string_view *strings = got->data;
  assert_int_equal(got->shape.rank, 2);
  assert_int_equal(got->shape.dims[0], 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(strings[i].size, views[i].size);
    assert_memory_equal(strings[i].data, views[i].data, views[i].size);
  }
  stop_tasks();
}

static void control_messages_reach_their_topic_in_order(void **state) {
  (void)state;
  choose_addresses(true);
  start_task(0, 2, false);
  assert_false(cluster_send_control(clusters[0], 1, CONTROL_VIEW, "early", 5));
  start_task(1, 2, true);
  need(0, 1);
  need(1, 0);
  assert_true(cluster_send_control(clusters[0], 1, CONTROL_VIEW, "one", 3));
  assert_true(cluster_send_control(clusters[0], 1, CONTROL_STATUS, "nobody hears this", 17));
  assert_true(cluster_send_control(clusters[0], 1, CONTROL_VIEW, "two", 3));
  assert_true(wait_count(&recorders[1], &recorders[1].controls, 2));
  assert_string_equal(recorders[1].control, "two");
  assert_int_equal(recorders[1].from, 0);
  assert_false(cluster_send_control(clusters[0], 1, CONTROL_VIEW, "", NET_CONTROL_BYTES + 1));
  assert_false(cluster_send_control(clusters[0], 0, CONTROL_VIEW, "self", 4));
  stop_tasks();
}

static void the_last_message_before_leaving_arrives(void **state) {
  (void)state;
  for (int round = 0; round < 10; round++) {
    choose_addresses(false);
    start_task(0, 2, false);
    start_task(1, 2, true);
    need(0, 1);
    struct exchange *ps = cluster_exchange(clusters[0]);
    struct tensor *tensor = floats(20000000);
    ps->send(ps->self, 1, 9, 1, tensor);
    ps->done(ps->self, 1, 9, OK, "");
    cluster_destroy(clusters[0]);
    clusters[0] = NULL;
    assert_true(wait_count(&recorders[1], &recorders[1].dones, 1));
    assert_int_equal(recorders[1].tensors, 1);
    assert_int_equal(recorders[1].tensor->count, 20000000);
    stop_tasks();
  }
}

static void a_peer_of_another_build_is_refused_on_both_sides(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 2, false);
  struct cluster_config config = config_of(1, 2, true);
  config.build_id = 78;
  assert_int_equal(cluster_create(&config, &clusters[1]), OK);
  assert_int_equal(cluster_start(clusters[1]), OK);
  uint32_t ps = 0;
  assert_int_equal(cluster_wait_peers(clusters[1], &ps, 1), FAILED_PRECONDITION);
  assert_non_null(strstr(status_text(), "another build"));
  assert_non_null(strstr(status_text(), addresses[0]));
  assert_non_null(strstr(recorders[0].log, "another build"));
  stop_tasks();
}

static void waiting_names_the_task_and_its_address(void **state) {
  (void)state;
  choose_addresses(false);
  struct cluster_config config = config_of(1, 2, true);
  config.timeout_s = 1.3;
  assert_int_equal(cluster_create(&config, &clusters[1]), OK);
  assert_int_equal(cluster_start(clusters[1]), OK);
  uint32_t ps = 0;
  uint64_t began_ms = loop_now_ms();
  assert_int_equal(cluster_wait_peers(clusters[1], &ps, 1), UNAVAILABLE);
  assert_in_range(loop_now_ms() - began_ms, 1250, 3000);
  char line[200];
  snprintf(line, sizeof line, "waiting for /job:ps/task:0 at %s\n", addresses[0]);
  assert_string_equal(recorders[1].log, line);
  assert_non_null(strstr(status_text(), "/job:ps/task:0"));
  assert_non_null(strstr(status_text(), addresses[0]));
  stop_tasks();
}

static void nothing_is_told_before_the_start(void **state) {
  (void)state;
  choose_addresses(false);
  struct cluster_config config = config_of(0, 2, false);
  assert_int_equal(cluster_create(&config, &clusters[0]), OK);
  start_task(1, 2, true);
  usleep(100000);
  struct exchange *worker = cluster_exchange(clusters[1]);
  worker->start(worker->self, 0, 1, 0, 0, 0); /* not connected yet */
  assert_true(wait_count(&recorders[1], &recorders[1].dones, 1));
  assert_int_equal(recorders[1].code, UNAVAILABLE);
  assert_int_equal(cluster_start(clusters[0]), OK);
  need(1, 0);
  stop_tasks();
  choose_addresses(false); /* one that is never started ends as well */
  config = config_of(0, 2, false);
  assert_int_equal(cluster_create(&config, &clusters[0]), OK);
  stop_tasks();
}

static void starting_a_step_on_an_absent_task_reports_unavailable(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(1, 2, true);
  struct exchange *worker = cluster_exchange(clusters[1]);
  worker->start(worker->self, 0, 4, 0, 0, 0);
  assert_true(wait_count(&recorders[1], &recorders[1].dones, 1));
  assert_int_equal(recorders[1].code, UNAVAILABLE);
  assert_int_equal(recorders[1].step, 4);
  assert_non_null(strstr(recorders[1].text, addresses[0]));
  stop_tasks();
}

static void links_of_the_others_outlive_the_coordinator(void **state) {
  (void)state;
  choose_addresses(false);
  for (uint32_t i = 0; i < 3; i++)
    start_task(i, 3, i > 0);
  need(1, 0);
  need(2, 0);
  need(2, 1);
  need(1, 2);
  struct cluster_identity before = cluster_identity(clusters[2]);
  assert_true(before.history != 0 && before.generation != 0 && before.coordinator == 0);
  cluster_destroy(clusters[0]);
  clusters[0] = NULL;
  assert_true(wait_count(&recorders[1], &recorders[1].losses, 1) && wait_count(&recorders[2], &recorders[2].losses, 1));
  assert_true(cluster_send_control(clusters[1], 2, CONTROL_VIEW, "meanwhile", 9));
  assert_true(wait_count(&recorders[2], &recorders[2].controls, 1));
  start_task(0, 3, false);
  assert_true(wait_count(&recorders[1], &recorders[1].joins, 3) && wait_count(&recorders[2], &recorders[2].joins, 3));
  assert_true(cluster_identity(clusters[2]).history == cluster_identity(clusters[0]).history);
  assert_true(cluster_identity(clusters[2]).history != before.history);
  assert_int_equal(recorders[1].losses + recorders[2].losses, 2); /* of the coordinator alone */
  assert_true(cluster_send_control(clusters[2], 1, CONTROL_VIEW, "afterwards", 10));
  assert_true(wait_count(&recorders[1], &recorders[1].controls, 1));
  stop_tasks();
}

/* Here the coordinator has the higher number, so it dials: a second one reaches those whom the first one has. */
static void a_coordinator_that_is_started_twice_is_refused_where_the_first_one_answers(void **state) {
  (void)state;
  choose_addresses(false);
  struct cluster *twin = NULL;
  for (uint32_t i = 0; i < 2; i++) {
    struct cluster_config config = config_of(i, 2, true);
    config.coordinator = 1;
    assert_int_equal(cluster_create(&config, &clusters[i]), OK);
    assert_int_equal(cluster_start(clusters[i]), OK);
  }
  need(0, 1);
  struct cluster_task others[2] = {tasks[0], {"worker", 0, addresses[3]}};
  struct cluster_config config = config_of(1, 2, true);
  config.tasks = others;
  config.coordinator = 1;
  config.sink = (struct exchange_sink){0};
  assert_int_equal(cluster_create(&config, &twin), OK);
  assert_int_equal(cluster_start(twin), OK);
  uint32_t first = 0;
  assert_int_equal(cluster_wait_peers(twin, &first, 1), FAILED_PRECONDITION);
  assert_non_null(strstr(status_text(), "worker_0 is already running at"));
  assert_int_equal(cluster_refusal(twin), FAILED_PRECONDITION);
  assert_int_equal(recorders[0].losses, 0);
  cluster_destroy(twin);
  stop_tasks();
}

static void an_address_in_use_is_named(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 2, false);
  struct cluster *second = NULL;
  struct cluster_config config = config_of(0, 2, false);
  assert_int_equal(cluster_create(&config, &second), ALREADY_EXISTS);
  assert_non_null(strstr(status_text(), addresses[0]));
  tasks[0].address = "nonsense";
  assert_int_equal(cluster_create(&config, &second), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "Could not interpret \"nonsense\" as a host-port pair."));
  stop_tasks();
}

/* On one host it finds the address taken before it can ask anybody. A stranger there is no twin. */
static void a_task_that_finds_itself_at_its_address_says_so(void **state) {
  (void)state;
  char wanted[300];
  for (int use_unix = 0; use_unix < 2; use_unix++) {
    choose_addresses(use_unix);
    struct cluster *second = NULL;
    struct cluster_config config = config_of(1, 2, false);
    config.only_addresses = false;
    assert_int_equal(cluster_create(&config, &clusters[1]), OK);
    assert_int_equal(cluster_create(&config, &second), FAILED_PRECONDITION);
    snprintf(wanted, sizeof wanted, "worker_0 is already running at %s, as process %d", addresses[1], (int)getpid());
    assert_string_equal(status_text(), wanted);
    config.build_id++;
    assert_int_equal(cluster_create(&config, &second), ALREADY_EXISTS);
    assert_non_null(strstr(status_text(), "somebody listens there already"));
    stop_tasks();
  }
}

/* Whose own end of a connection has taken a port that a task is about to listen on. */
static void connect_to(int listener, bool is_tasks, int *out, uint16_t *port) {
  struct address to = {.size = sizeof(struct sockaddr_in)}, own = to;
  getsockname(listener, (struct sockaddr *)&to.storage, &to.size);
  if (is_tasks) {
    assert_int_equal(address_dial(&to, out), OK);
  } else {
    *out = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(*out, (struct sockaddr *)&to.storage, to.size), 0);
  }
  getsockname(*out, (struct sockaddr *)&own.storage, &own.size);
  *port = ntohs(((struct sockaddr_in *)&own.storage)->sin_port);
}

static void a_port_that_a_connection_has_is_listened_on_if_it_is_a_tasks(void **state) {
  struct address_list list;
  struct address any = {.size = sizeof(struct sockaddr_in)};
  char text[32];
  uint16_t port;
  int listener, out, taken;
  (void)state;
  *(struct sockaddr_in *)&any.storage = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  assert_int_equal(address_listen(&any, "any port", &listener), OK);
  for (int is_tasks = 0; is_tasks < 2; is_tasks++) {
    connect_to(listener, is_tasks, &out, &port);
    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_int_equal(address_resolve(text, &list), OK);
    assert_int_equal(address_listen(&list.items[0], text, &taken), is_tasks ? OK : ALREADY_EXISTS);
    if (is_tasks)
      close(taken);
    else
      assert_non_null(strstr(status_text(), "a connection of another program has this port"));
    close(out);
  }
  close(listener);
}

static void *send_some(void *self) {
  uint32_t from = (uint32_t)(uintptr_t)self % 4;
  struct exchange *exchange = cluster_exchange(clusters[from]);
  for (uint32_t i = 0; i < 300; i++)
    for (uint32_t to = 0; to < 4; to++)
      if (to != from)
        exchange->send(exchange->self, to, i, from, floats(i % 7 == 0 ? 20000 : i % 50));
  return NULL;
}

static void four_tasks_send_to_each_other_from_many_threads(void **state) {
  (void)state;
  choose_addresses(true);
  for (uint32_t i = 0; i < 4; i++)
    start_task(3 - i, 4, true);
  uint32_t all[] = {0, 1, 2, 3};
  for (uint32_t i = 0; i < 4; i++)
    assert_int_equal(cluster_wait_peers(clusters[i], all, 4), OK);
  pthread_t threads[8];
  for (uintptr_t i = 0; i < 8; i++)
    pthread_create(&threads[i], NULL, send_some, (void *)i);
  for (int i = 0; i < 8; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++)
    assert_true(wait_count(&recorders[i], &recorders[i].tensors, 3 * 2 * 300));
  stop_tasks();
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_exchange_over_tcp),
    cmocka_unit_test(tasks_of_one_host_meet_beside_their_addresses),
    cmocka_unit_test(tasks_exchange_over_unix_sockets),
    cmocka_unit_test(strings_cross),
    cmocka_unit_test(control_messages_reach_their_topic_in_order),
    cmocka_unit_test(the_last_message_before_leaving_arrives),
    cmocka_unit_test(a_peer_of_another_build_is_refused_on_both_sides),
    cmocka_unit_test(waiting_names_the_task_and_its_address),
    cmocka_unit_test(nothing_is_told_before_the_start),
    cmocka_unit_test(starting_a_step_on_an_absent_task_reports_unavailable),
    cmocka_unit_test(links_of_the_others_outlive_the_coordinator),
    cmocka_unit_test(a_coordinator_that_is_started_twice_is_refused_where_the_first_one_answers),
    cmocka_unit_test(an_address_in_use_is_named),
    cmocka_unit_test(a_task_that_finds_itself_at_its_address_says_so),
    cmocka_unit_test(a_port_that_a_connection_has_is_listened_on_if_it_is_a_tasks),
    cmocka_unit_test(four_tasks_send_to_each_other_from_many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
