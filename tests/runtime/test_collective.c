/* test_collective.c: steps that meet, and gradients that are gathered. */
#include <stdlib.h>
#include <string.h>

#include "runtime/resource/accumulator.h"
#include "runtime/resource/collective.h"
#include "tests/support/test.h"

#define CALLS 4

/* Host calls of several drivers at one resource. */
struct meeting {
  struct container *container;
  struct resource *resource;
  struct inbox inbox;
  struct host_call calls[CALLS];
  struct tensor inputs[CALLS], *held[CALLS], *outputs[CALLS][3];
};

static void meet(struct meeting *m, const struct resource_maker *maker, void *spec) {
  bool is_new;
  memset(m, 0, sizeof *m);
  inbox_init(&m->inbox);
  assert_int_equal(container_create(&m->container), OK);
  assert_int_equal(container_get(m->container, "", "r", maker, spec, &is_new, &m->resource), OK);
}

static struct host_call *call_of(struct meeting *m, uint32_t driver, const float *value) {
  struct host_call *call = &m->calls[driver];
  *call = (struct host_call){.inbox = &m->inbox,
                             .driver = driver,
                             .outputs = m->outputs[driver],
                             .output_count = 1,
                             .inputs = &m->inputs[driver],
                             .held = &m->held[driver],
                             .input_count = value ? 1 : 0};
  m->inputs[driver] = (struct tensor){.dtype = DTYPE_FLOAT, .data = (void *)value, .count = 1};
  memset(m->outputs[driver], 0, sizeof m->outputs[driver]);
  return call;
}

static status join(struct collective *c, struct host_call *call) { return collective_meet(c, call, 0, call->input_count > 0, false); }

static int finished(struct meeting *m) {
  int count = 0;
  while (inbox_take(&m->inbox, false, false))
    count++;
  return count;
}

static float result_of(struct meeting *m, uint32_t driver) {
  assert_non_null(m->outputs[driver][0]);
  float value = *(float *)m->outputs[driver][0]->data;
  tensor_release(m->outputs[driver][0]);
  return value;
}

static void part(struct meeting *m) {
  container_destroy(m->container);
  inbox_deinit(&m->inbox);
}

static void all_get_the_mean_whatever_the_order(void **state) {
  (void)state;
  static const uint32_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
  static const float values[] = {1e8f, 1, -1e8f}; /* the sum depends on the order of adding */
  for (int i = 0; i < 3; i++) {
    struct meeting m;
    meet(&m, &collective_maker, &(struct collective_spec){.size = 3, .mean = true});
    for (int turn = 0; turn < 2; turn++) {
      for (int j = 0; j < 3; j++) {
        struct host_call *call = call_of(&m, orders[i][j], &values[orders[i][j]]);
        assert_int_equal(join((struct collective *)m.resource, call), OK);
        assert_int_equal(call->pending, j < 2);
      }
      assert_int_equal(finished(&m), 2);
      for (uint32_t driver = 0; driver < 3; driver++)
        assert_true(result_of(&m, driver) == (1e8f + 1 + -1e8f) / 3);
    }
    part(&m);
  }
}

static void one_of_a_round_leads(void **state) {
  (void)state;
  struct meeting m;
  meet(&m, &collective_maker, &(struct collective_spec){.size = 3});
  int leaders = 0;
  for (uint32_t driver = 0; driver < 3; driver++)
    assert_int_equal(join((struct collective *)m.resource, call_of(&m, driver, NULL)), OK);
  for (uint32_t driver = 0; driver < 3; driver++) {
    leaders += *(bool *)m.outputs[driver][0]->data;
    tensor_release(m.outputs[driver][0]);
  }
  assert_int_equal(leaders, 1);
  finished(&m);
  part(&m);
}

static void a_step_that_gives_up_fails_its_round(void **state) {
  (void)state;
  struct meeting m;
  float one = 1;
  meet(&m, &collective_maker, &(struct collective_spec){.size = 3});
  for (uint32_t driver = 0; driver < 2; driver++)
    assert_int_equal(join((struct collective *)m.resource, call_of(&m, driver, &one)), OK);
  assert_true(m.calls[0].withdraw(&m.calls[0]));
  assert_int_equal(finished(&m), 1);
  assert_int_equal(m.calls[1].code, ABORTED);
  for (uint32_t driver = 0; driver < 3; driver++) /* the next round is complete again */
    assert_int_equal(join((struct collective *)m.resource, call_of(&m, driver, &one)), OK);
  for (uint32_t driver = 0; driver < 3; driver++)
    assert_true(result_of(&m, driver) == 3);
  finished(&m);
  part(&m);
}

static void one_task_cannot_join_twice(void **state) {
  (void)state;
  struct meeting m;
  float one = 1;
  meet(&m, &collective_maker, &(struct collective_spec){.size = 2});
  assert_int_equal(join((struct collective *)m.resource, call_of(&m, 0, &one)), OK);
  struct host_call again = m.calls[0];
  assert_int_equal(join((struct collective *)m.resource, &again), FAILED_PRECONDITION);
  assert_true(m.calls[0].withdraw(&m.calls[0]));
  part(&m);
}

static struct tensor vector(const float *values, int64_t count) {
  return (struct tensor){.dtype = DTYPE_FLOAT, .shape = {1, {count}}, .data = (void *)values, .count = count};
}

static const struct accumulator_round anybody;

static void stale_gradients_are_dropped_and_the_mean_is_taken(void **state) {
  (void)state;
  struct meeting m;
  struct accumulator_spec spec = {.dtype = DTYPE_FLOAT, .mean = true, .has_shape = true, .shape = {1, {2}}};
  static const float a[] = {1, 2}, b[] = {3, 6};
  struct tensor ta = vector(a, 2), tb = vector(b, 2), wrong = vector(a, 1);
  meet(&m, &accumulator_maker, &spec);
  struct accumulator *accumulator = (struct accumulator *)m.resource;
  struct host_call *call = call_of(&m, 0, NULL);
  assert_int_equal(accumulator_apply(accumulator, 0, 0, &wrong), INVALID_ARGUMENT);
  assert_int_equal(accumulator_apply(accumulator, 0, 0, &ta), OK);
  assert_int_equal(accumulator_take(accumulator, call, 2, anybody), OK);
  assert_true(call->pending);
  assert_int_equal(accumulator_apply(accumulator, 0, 0, &tb), OK);
  assert_int_equal(finished(&m), 1);
  assert_memory_equal(m.outputs[0][0]->data, ((float[]){2, 4}), 8);
  tensor_release(m.outputs[0][0]);
  assert_int_equal(accumulator_apply(accumulator, 0, 0, &ta), OK); /* of the step before */
  assert_int_equal(accumulator_count(accumulator), 0);
  assert_int_equal(accumulator_take(accumulator, call_of(&m, 1, NULL), 0, anybody), INVALID_ARGUMENT);
  part(&m);
}

static void a_round_waits_for_no_more_than_those_that_have_not_left_can_give(void **state) {
  (void)state;
  struct meeting m;
  static const float a[] = {1, 2};
  struct tensor ta = vector(a, 2);
  meet(&m, &accumulator_maker, &(struct accumulator_spec){.dtype = DTYPE_FLOAT, .mean = true});
  struct accumulator *accumulator = (struct accumulator *)m.resource;
  const struct accumulator_round round = {.replicas = 3, .each = 1};
  assert_int_equal(accumulator_take(accumulator, call_of(&m, 0, NULL), 2, round), OK);
  assert_int_equal(accumulator_apply(accumulator, 1, 0, &ta), OK);
  accumulator_leave(accumulator, 2);
  assert_int_equal(finished(&m), 0); /* two are left, and one has given */
  accumulator_leave(accumulator, 2);
  assert_int_equal(finished(&m), 0); /* the same one again */
  accumulator_leave(accumulator, 0);
  assert_int_equal(finished(&m), 1);
  tensor_release(m.outputs[0][0]);
  assert_int_equal(accumulator_apply(accumulator, 2, 1, &ta), OK); /* it is back */
  assert_int_equal(accumulator_take(accumulator, call_of(&m, 1, NULL), 2, round), OK);
  assert_true(m.calls[1].pending);
  assert_true(m.calls[1].withdraw(&m.calls[1]));
  part(&m);
}

static void a_missing_replica_ends_a_round_unless_enough_are_left(void **state) {
  (void)state;
  struct meeting m;
  static const float a[] = {1, 2};
  struct tensor ta = vector(a, 2);
  meet(&m, &accumulator_maker, &(struct accumulator_spec){.dtype = DTYPE_FLOAT, .mean = true});
  struct accumulator *accumulator = (struct accumulator *)m.resource;
  const struct accumulator_round round = {.replicas = 3, .each = 1};
  assert_int_equal(accumulator_take(accumulator, call_of(&m, 0, NULL), 2, round), OK);
  assert_true(accumulator_miss(accumulator, 2, false, false, "2 is missing")); /* two are enough */
  assert_false(accumulator_miss(accumulator, 1, false, false, NULL));          /* not late yet */
  assert_int_equal(finished(&m), 0);
  assert_false(accumulator_miss(accumulator, 1, false, false, "1 is missing"));
  assert_int_equal(finished(&m), 1);
  assert_int_equal(m.calls[0].code, DEADLINE_EXCEEDED);
  assert_string_equal(m.calls[0].text, "1 is missing");
  assert_int_equal(accumulator_take(accumulator, call_of(&m, 0, NULL), 2, round), OK);
  assert_int_equal(accumulator_apply(accumulator, 0, 0, &ta), OK);
  assert_false(accumulator_miss(accumulator, 1, false, true, NULL));
  assert_true(accumulator_miss(accumulator, 1, true, false, NULL)); /* elastic: the mean of those that are left */
  assert_int_equal(finished(&m), 1);
  assert_memory_equal(m.outputs[0][0]->data, a, sizeof a);
  tensor_release(m.outputs[0][0]);
  part(&m);
}

static void the_step_of_a_round_only_grows_until_all_is_put_back(void **state) {
  (void)state;
  struct meeting m;
  static const float a[] = {1, 2};
  struct tensor ta = vector(a, 2);
  meet(&m, &accumulator_maker, &(struct accumulator_spec){.dtype = DTYPE_FLOAT});
  struct accumulator *accumulator = (struct accumulator *)m.resource;
  assert_int_equal(accumulator_take(accumulator, call_of(&m, 0, NULL), 2, (struct accumulator_round){.replicas = 2, .each = 1}), OK);
  accumulator_set_step(accumulator, 7);
  accumulator_set_step(accumulator, 6);
  assert_int_equal(accumulator_apply(accumulator, 1, 6, &ta), OK);
  assert_int_equal(accumulator_count(accumulator), 0); /* stale */
  accumulator_reset(accumulator);
  assert_int_equal(finished(&m), 1);
  assert_int_equal(m.calls[0].code, ABORTED);
  assert_int_equal(accumulator_apply(accumulator, 1, 6, &ta), OK);
  assert_int_equal(accumulator_count(accumulator), 1);
  part(&m);
}

static void a_gradient_of_another_shape_is_refused(void **state) {
  (void)state;
  struct meeting m;
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t places[] = {0};
  struct tensor tall = {.dtype = DTYPE_FLOAT, .shape = {2, {3, 2}}, .data = data, .count = 6};
  struct tensor wide = {.dtype = DTYPE_FLOAT, .shape = {2, {2, 3}}, .data = data, .count = 6};
  meet(&m, &accumulator_maker, &(struct accumulator_spec){.dtype = DTYPE_FLOAT});
  assert_int_equal(accumulator_apply((struct accumulator *)m.resource, 0, 0, &tall), OK);
  assert_int_equal(accumulator_apply((struct accumulator *)m.resource, 0, 0, &wide), INVALID_ARGUMENT);
  part(&m);
  struct tensor indices = {.dtype = DTYPE_INT64, .shape = {1, {1}}, .data = places, .count = 1};
  tall.shape = (struct shape){3, {1, 3, 2}};
  wide.shape = (struct shape){3, {1, 2, 3}};
  meet(&m, &accumulator_maker, &(struct accumulator_spec){.dtype = DTYPE_FLOAT, .sparse = true});
  assert_int_equal(accumulator_apply_sparse((struct accumulator *)m.resource, 0, 0, &indices, &tall, NULL), OK);
  assert_int_equal(accumulator_apply_sparse((struct accumulator *)m.resource, 0, 0, &indices, &wide, NULL), INVALID_ARGUMENT);
  part(&m);
}

/* More of them than the dtype can count. */
static void the_mean_of_many_small_numbers(void **state) {
  (void)state;
  struct meeting m;
  uint8_t value = 1;
  struct tensor gradient = {.dtype = DTYPE_UINT8, .data = &value, .count = 1};
  meet(&m, &accumulator_maker, &(struct accumulator_spec){.dtype = DTYPE_UINT8, .mean = true, .has_shape = true});
  for (int i = 0; i < 256; i++)
    assert_int_equal(accumulator_apply((struct accumulator *)m.resource, 0, 0, &gradient), OK);
  assert_int_equal(accumulator_take((struct accumulator *)m.resource, call_of(&m, 0, NULL), 256, anybody), OK);
  assert_int_equal(*(uint8_t *)m.outputs[0][0]->data, 0); /* the sum has wrapped */
  tensor_release(m.outputs[0][0]);
  part(&m);
}

static void rows_are_divided_by_how_many_gave_them(void **state) {
  (void)state;
  struct meeting m;
  struct accumulator_spec spec = {.dtype = DTYPE_FLOAT, .sparse = true, .mean = true, .has_shape = true, .shape = {2, {9, 1}}};
  static const int64_t i1[] = {0, 2}, i2[] = {2, 5};
  static const float v1[] = {1, 2}, v2[] = {4, 8};
  struct tensor indices = {.dtype = DTYPE_INT64, .shape = {1, {2}}, .count = 2};
  struct tensor values = {.dtype = DTYPE_FLOAT, .shape = {2, {2, 1}}, .count = 2};
  meet(&m, &accumulator_maker, &spec);
  struct accumulator *accumulator = (struct accumulator *)m.resource;
  for (int turn = 0; turn < 2; turn++) {
    indices.data = (void *)(turn ? i2 : i1);
    values.data = (void *)(turn ? v2 : v1);
    assert_int_equal(accumulator_apply_sparse(accumulator, 0, 0, &indices, &values, NULL), OK);
  }
  assert_int_equal(accumulator_take(accumulator, call_of(&m, 0, NULL), 2, anybody), OK);
  assert_memory_equal(m.outputs[0][0]->data, ((int64_t[]){0, 2, 5}), 24);
  assert_memory_equal(m.outputs[0][1]->data, ((float[]){1, 3, 8}), 12);
  assert_memory_equal(m.outputs[0][2]->data, ((int64_t[]){9, 1}), 16);
  for (int i = 0; i < 3; i++)
    tensor_release(m.outputs[0][i]);
  part(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_get_the_mean_whatever_the_order),
    cmocka_unit_test(one_of_a_round_leads),
    cmocka_unit_test(a_step_that_gives_up_fails_its_round),
    cmocka_unit_test(one_task_cannot_join_twice),
    cmocka_unit_test(stale_gradients_are_dropped_and_the_mean_is_taken),
    cmocka_unit_test(a_round_waits_for_no_more_than_those_that_have_not_left_can_give),
    cmocka_unit_test(a_missing_replica_ends_a_round_unless_enough_are_left),
    cmocka_unit_test(the_step_of_a_round_only_grows_until_all_is_put_back),
    cmocka_unit_test(a_gradient_of_another_shape_is_refused),
    cmocka_unit_test(the_mean_of_many_small_numbers),
    cmocka_unit_test(rows_are_divided_by_how_many_gave_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
