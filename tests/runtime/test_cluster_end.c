/* test_cluster_end.c: tasks that leave: who stays until the others have finished, who is given up, and who ends with them. */
#include "runtime/program/monotonic.h"
#include "tests/runtime/cluster_tasks.h"

static void a_peer_that_leaves_ends_the_steps_it_owes(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 2, false);
  start_task(1, 2, true);
  need(1, 0);
  struct exchange *worker = cluster_exchange(clusters[1]);
  worker->start(worker->self, 0, 4, 0, 0, 0);
  assert_true(wait_count(&recorders[0], &recorders[0].starts, 1));
  cluster_destroy(clusters[0]);
  clusters[0] = NULL;
  assert_true(wait_count(&recorders[1], &recorders[1].dones, 1));
  assert_int_equal(recorders[1].losses, 1);
  assert_int_equal(recorders[1].lost, 0);
  assert_string_equal(recorders[1].reason, "it has left");
  assert_int_equal(recorders[1].code, UNAVAILABLE);
  stop_tasks();
}

static void a_task_that_comes_back_is_connected_again(void **state) {
  (void)state;
  choose_addresses(false);
  for (int round = 0; round < 3; round++) {
    start_task(0, 2, false);
    if (round == 0)
      start_task(1, 2, true);
    need(1, 0);
    need(0, 1);
    cluster_destroy(clusters[0]);
    clusters[0] = NULL;
    assert_true(wait_count(&recorders[1], &recorders[1].losses, round + 1));
    assert_int_equal(recorders[1].joins, round + 1);
    assert_int_equal(recorders[1].new_joins, round + 1);
  }
  stop_tasks();
}

static void take_long(void *self, uint32_t from, const void *data, size_t size) {
  (void)self, (void)from, (void)data, (void)size;
  usleep(500000);
}

/* It leaves only when worker_1 has listened, too: meanwhile worker_0 finds its door open. */
static void who_has_heard_the_good_bye_does_not_come_again(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 3, false);
  start_task(1, 3, true);
  struct cluster_config config = config_of(2, 3, true);
  assert_int_equal(cluster_create(&config, &clusters[2]), OK);
  cluster_on_control(clusters[2], CONTROL_STATUS, take_long, NULL);
  assert_int_equal(cluster_start(clusters[2]), OK);
  need(0, 1);
  need(0, 2);
  need(1, 0);
  need(1, 2);
  assert_true(cluster_send_control(clusters[0], 2, CONTROL_STATUS, "", 0));
  cluster_destroy(clusters[0]);
  clusters[0] = NULL;
  assert_true(wait_count(&recorders[2], &recorders[2].losses, 1));
  assert_int_equal(recorders[1].losses, 1);
  assert_int_equal(recorders[1].joins, 2);
  stop_tasks();
}

/* It has let the conversation go with the good-bye: who waited for it to acknowledge more would wait in vain. */
static void nothing_is_said_behind_a_good_bye(void **state) {
  (void)state;
  choose_addresses(false);
  for (uint32_t task = 0; task < 3; task++)
    start_task(task, 3, true);
  need(2, 0);
  need(2, 1);
  cluster_leave_others(clusters[2]);
  assert_false(cluster_send_control(clusters[2], 1, CONTROL_STATUS, "", 0));
  assert_true(cluster_send_control(clusters[2], 0, CONTROL_STATUS, "", 0));
  uint64_t began_ms = monotonic_ms();
  cluster_destroy(clusters[2]);
  clusters[2] = NULL;
  assert_true(monotonic_ms() - began_ms < 3000);
  stop_tasks();
}

static void ready_reaches_those_who_come_after_the_chief_has_left(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 3, false);
  start_task(1, 3, true);
  need(1, 0);
  cluster_announce_ready(clusters[1], true);
  assert_int_equal(cluster_wait_ready(clusters[0], 1), OK);
  cluster_announce_finished(clusters[1]);
  cluster_destroy(clusters[1]);
  clusters[1] = NULL;
  start_task(2, 3, true);
  assert_int_equal(cluster_wait_ready(clusters[2], 1), OK);
  stop_tasks();
}

static void *announce_late(void *cluster) {
  usleep(900000);
  cluster_announce_ready(cluster, true);
  return NULL;
}

static void waiting_for_a_chief_that_is_there_has_no_end(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 3, false);
  start_task(1, 3, true);
  struct cluster_config config = config_of(2, 3, true);
  config.timeout_s = 0.3;
  assert_int_equal(cluster_create(&config, &clusters[2]), OK);
  assert_int_equal(cluster_start(clusters[2]), OK);
  usleep(100000);
  pthread_t thread;
  pthread_create(&thread, NULL, announce_late, clusters[1]);
  assert_int_equal(cluster_wait_ready(clusters[2], 1), OK);
  pthread_join(thread, NULL);
  stop_tasks();
}

static void *wait_all(void *cluster) { return (void *)(intptr_t)cluster_wait_all_finished(cluster); }

static void a_ps_leaves_when_all_with_phases_have_finished(void **state) {
  (void)state;
  choose_addresses(false);
  pthread_t thread;
  void *result;
  start_task(0, 4, false);
  pthread_create(&thread, NULL, wait_all, clusters[0]);
  start_task(1, 4, true);
  start_task(2, 4, false); /* only serves: nobody waits for it */
  need(2, 0);
  need(1, 0);
  cluster_announce_finished(clusters[1]);
  cluster_destroy(clusters[1]);
  clusters[1] = NULL;
  usleep(200000);
  start_task(3, 4, true); /* late, but before the time-out */
  need(3, 0);
  assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
  cluster_announce_finished(clusters[3]);
  usleep(100000);
  assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY); /* killed at this moment, it would come back */
  cluster_destroy(clusters[3]);
  clusters[3] = NULL;
  pthread_join(thread, &result);
  assert_int_equal((intptr_t)result, OK);
  stop_tasks();
}

static void *wait_dependents(void *cluster) { return (void *)(intptr_t)cluster_wait_dependents(cluster); }

static void a_task_with_parts_stays_while_others_work(void **state) {
  (void)state;
  choose_addresses(false);
  pthread_t thread;
  void *result;
  start_task(0, 4, false); /* only serves, as the last */
  start_task(1, 4, true);
  start_task(2, 4, true);
  start_task(3, 4, false);
  need(2, 1);
  need(1, 2);
  need(1, 3);
  cluster_announce_finished(clusters[1]);
  pthread_create(&thread, NULL, wait_dependents, clusters[1]);
  usleep(100000);
  assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
  cluster_announce_finished(clusters[2]);
  assert_int_equal(cluster_wait_dependents(clusters[2]), OK); /* nobody waits for the other's leaving */
  pthread_join(thread, &result);
  assert_int_equal((intptr_t)result, OK);
  stop_tasks();
}

static void a_ps_stays_while_nobody_with_phases_came(void **state) {
  (void)state;
  choose_addresses(false);
  pthread_t thread;
  void *result;
  start_task(0, 2, false);
  start_task(1, 2, false);
  need(0, 1);
  pthread_create(&thread, NULL, wait_all, clusters[0]);
  usleep(200000);
  assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
  cluster_stop(clusters[0]);
  pthread_join(thread, &result);
  assert_int_equal((intptr_t)result, CANCELLED);
  stop_tasks();
}

static void a_ps_gives_up_a_worker_that_left_before_it_finished(void **state) {
  (void)state;
  choose_addresses(false);
  struct cluster_config config = config_of(0, 2, false);
  config.timeout_s = 0.5;
  assert_int_equal(cluster_create(&config, &clusters[0]), OK);
  assert_int_equal(cluster_start(clusters[0]), OK);
  start_task(1, 2, true);
  need(1, 0);
  cluster_destroy(clusters[1]);
  clusters[1] = NULL;
  assert_int_equal(cluster_wait_all_finished(clusters[0]), UNAVAILABLE);
  assert_non_null(strstr(status_text(), "/job:worker/task:0"));
  stop_tasks();
}

static void a_ps_gives_up_with_those_who_left_for_the_loss_of_another(void **state) {
  (void)state;
  choose_addresses(false);
  tasks[1] = (struct cluster_task){"ps", 1, addresses[1]};
  start_task(0, 3, false);
  start_task(1, 3, false);
  start_task(2, 3, true);
  need(1, 0);
  need(1, 2);
  cluster_destroy(clusters[0]);
  clusters[0] = NULL;
  cluster_give_up(clusters[2], UNAVAILABLE, "/job:ps/task:0 did not come back");
  cluster_destroy(clusters[2]);
  clusters[2] = NULL;
  assert_int_equal(cluster_wait_all_finished(clusters[1]), UNAVAILABLE); /* not another time-out for the worker */
  assert_non_null(strstr(status_text(), "it has given up: /job:ps/task:0 did not come back"));
  stop_tasks();
}

/* The first is away and may be back, the second will not: there is nothing to wait for. */
static void who_waits_for_several_hears_of_one_that_has_given_up(void **state) {
  (void)state;
  static const uint32_t both[] = {0, 1};
  choose_addresses(false);
  tasks[1] = (struct cluster_task){"ps", 1, addresses[1]};
  start_task(0, 3, false);
  start_task(1, 3, false);
  start_task(2, 3, true);
  need(2, 0);
  need(2, 1);
  cluster_destroy(clusters[0]);
  clusters[0] = NULL;
  cluster_give_up(clusters[1], UNAVAILABLE, "/job:ps/task:0 came back without its variables");
  cluster_destroy(clusters[1]);
  clusters[1] = NULL;
  uint64_t began_ms = monotonic_ms();
  assert_int_equal(cluster_wait_peers(clusters[2], both, 2), UNAVAILABLE);
  assert_non_null(strstr(status_text(), "it has given up: /job:ps/task:0 came back without its variables"));
  assert_in_range(monotonic_ms() - began_ms, 0, 8000); /* of a time-out of 10 s */
  stop_tasks();
}

static void a_ps_waits_the_time_out_for_who_never_comes(void **state) {
  (void)state;
  choose_addresses(false);
  struct cluster_config config = config_of(0, 2, false);
  config.timeout_s = 0.5;
  assert_int_equal(cluster_create(&config, &clusters[0]), OK);
  assert_int_equal(cluster_start(clusters[0]), OK);
  assert_int_equal(cluster_wait_all_finished(clusters[0]), UNAVAILABLE);
  assert_non_null(strstr(status_text(), "/job:worker/task:0"));
  cluster_note_finished(clusters[0], 1, true); /* a checkpoint says so: it may have left before */
  assert_int_equal(cluster_wait_all_finished(clusters[0]), OK);
  stop_tasks();
}

static void who_never_came_is_waited_for_once(void **state) {
  (void)state;
  choose_addresses(false);
  struct cluster_config config = config_of(1, 2, true);
  config.timeout_s = 0.5;
  assert_int_equal(cluster_create(&config, &clusters[1]), OK);
  assert_int_equal(cluster_start(clusters[1]), OK);
  for (int i = 0; i < 8; i++) /* not 0.5 s each: the wait before has not ended well */
    assert_int_equal(cluster_wait_peers(clusters[1], &(uint32_t){0}, 1), UNAVAILABLE);
  bool was_up;
  assert_in_range(cluster_missing_ms(clusters[1], 0, &was_up), 500, 3500);
  assert_false(was_up);
  stop_tasks();
}

/* It has said that it had finished, was told to stop before that was sure, and comes back: as one that was killed there. */
static void who_is_stopped_as_it_leaves_is_waited_for(void **state) {
  (void)state;
  choose_addresses(false);
  struct cluster_config config = config_of(0, 2, false);
  config.timeout_s = 0.5;
  assert_int_equal(cluster_create(&config, &clusters[0]), OK);
  assert_int_equal(cluster_start(clusters[0]), OK);
  start_task(1, 2, true);
  need(1, 0);
  cluster_announce_finished(clusters[1]);
  cluster_stop(clusters[1]);
  assert_int_equal(cluster_wait_dependents(clusters[1]), OK); /* nobody is left to be waited for: no matter that it was stopped */
  cluster_give_up(clusters[1], CANCELLED, "it was stopped");
  cluster_destroy(clusters[1]);
  clusters[1] = NULL;
  assert_false(cluster_had_finished(clusters[0], 1));
  assert_int_equal(cluster_wait_all_finished(clusters[0]), UNAVAILABLE);
  assert_non_null(strstr(status_text(), "did not come back"));
  stop_tasks();
}

static void who_comes_late_hears_who_had_finished_and_left(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 3, false); /* a ps */
  start_task(1, 3, true);
  need(1, 0);
  cluster_announce_finished(clusters[1]);
  cluster_destroy(clusters[1]);
  clusters[1] = NULL;
  start_task(2, 3, true);
  need(2, 0);
  cluster_announce_finished(clusters[2]);
  assert_int_equal(cluster_wait_all_finished(clusters[2]), OK); /* it has met task 1 never */
  assert_int_equal(cluster_wait_peers(clusters[2], &(uint32_t){1}, 1), UNAVAILABLE);
  assert_non_null(strstr(status_text(), "has finished and left"));
  stop_tasks();
}

static void nobody_stays_behind_a_coordinator_that_waited_for_all(void **state) {
  (void)state;
  choose_addresses(false);
  start_task(0, 3, true);
  start_task(1, 3, true); /* task 2 had come and gone: it has not met that */
  need(1, 0);
  cluster_announce_finished(clusters[0]);
  cluster_announce_finished(clusters[1]);
  cluster_destroy(clusters[0]);
  clusters[0] = NULL;
  assert_int_equal(cluster_wait_all_finished(clusters[1]), OK);
  stop_tasks();
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_peer_that_leaves_ends_the_steps_it_owes),
    cmocka_unit_test(a_task_that_comes_back_is_connected_again),
    cmocka_unit_test(who_has_heard_the_good_bye_does_not_come_again),
    cmocka_unit_test(nothing_is_said_behind_a_good_bye),
    cmocka_unit_test(ready_reaches_those_who_come_after_the_chief_has_left),
    cmocka_unit_test(waiting_for_a_chief_that_is_there_has_no_end),
    cmocka_unit_test(a_ps_leaves_when_all_with_phases_have_finished),
    cmocka_unit_test(a_task_with_parts_stays_while_others_work),
    cmocka_unit_test(a_ps_stays_while_nobody_with_phases_came),
    cmocka_unit_test(a_ps_gives_up_a_worker_that_left_before_it_finished),
    cmocka_unit_test(a_ps_gives_up_with_those_who_left_for_the_loss_of_another),
    cmocka_unit_test(who_waits_for_several_hears_of_one_that_has_given_up),
    cmocka_unit_test(a_ps_waits_the_time_out_for_who_never_comes),
    cmocka_unit_test(who_never_came_is_waited_for_once),
    cmocka_unit_test(who_is_stopped_as_it_leaves_is_waited_for),
    cmocka_unit_test(who_comes_late_hears_who_had_finished_and_left),
    cmocka_unit_test(nobody_stays_behind_a_coordinator_that_waited_for_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
