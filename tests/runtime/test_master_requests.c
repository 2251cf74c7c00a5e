/* test_master_requests.c: TensorFlow's master service: ConfigProto, damaged requests, callables and partial runs. */
#include "runtime/master/master_callable.h"
#include "tests/runtime/master_service.h"

/* ---- what a session's ConfigProto says ---- */

static status session_with(struct client *client, const struct wire_buffer *config_proto, char handle[17]) {
  struct wire_buffer request = {0};
  struct wire_field field;
  size_t graph = wire_begin(&request, 1);
  whole_graph(&request);
  wire_end(&request, graph);
  wire_put_bytes(&request, 2, config_proto->data, config_proto->size);
  struct wire answer = call(client, "CreateSession", &request);
  if (client->grpc_status == OK) {
    assert_true(wire_next(&answer, &field) && field.size == 16);
    memcpy(handle, field.data, 16);
    handle[16] = 0;
  }
  return (status)client->grpc_status;
}

static void an_operation_time_out_holds_for_runs_without_one(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer proto = {0}, request = {0};
  char handle[17];
  client_open(&client);
  wire_put_varint(&proto, 11, 80);
  assert_int_equal(session_with(&client, &proto, handle), OK);
  wire_put_text(&request, 1, handle);
  wire_put_text(&request, 4, "hang");
  call(&client, "RunStep", &request);
  assert_int_equal(client.grpc_status, DEADLINE_EXCEEDED);
  assert_non_null(strstr(client.message, "80 ms"));
  wire_buffer_free(&proto);
  client_close(&client);
}

static void job_put(struct wire_buffer *proto, const char *job, int index, const char *address) {
  size_t cluster_def = wire_begin(proto, 14), one = wire_begin(proto, 1);
  wire_put_text(proto, 1, job);
  size_t task = wire_begin(proto, 2);
  wire_put_varint(proto, 1, (uint64_t)index);
  wire_put_text(proto, 2, address);
  wire_end(proto, task);
  wire_end(proto, one);
  wire_end(proto, cluster_def);
}

static void filters_and_a_cluster_def_leave_tasks_out(void **state) {
  (void)state;
  static const struct {
    const char *filters, *job, *address;
    int index;
    status code;
    int seen;         /* devices; the own one always */
    const char *text; /* of the refusal; of the run that needs both tasks where it is left out */
  } cases[] = {
    {"/job:ps", NULL, NULL, 0, OK, 2, NULL},
    {"/job:worker/task:0", NULL, NULL, 0, OK, 1, "/job:ps/replica:0/task:1/device:GPU:3"},
    {"/device:GPU:*", NULL, NULL, 0, OK, 2, NULL},
    {"/gpu:4", NULL, NULL, 0, OK, 1, "leave out"},
    {"/job:worker /job:ps/replica:0/task:1/gpu:3", NULL, NULL, 0, OK, 2, NULL},
    {"rubbish", NULL, NULL, 0, INVALID_ARGUMENT, 0, "the device filter 'rubbish' is no device name"},
    {"/job:ps/task:one", NULL, NULL, 0, INVALID_ARGUMENT, 0, "is no device name"},
    {"/job:", NULL, NULL, 0, INVALID_ARGUMENT, 0, "is no device name"},
    {"", "worker", "127.0.0.1:2222", 0, OK, 1, "leave out"},
    {"", "ps", "there:2223", 1, OK, 2, NULL},
    {"", "ps", "elsewhere:2223", 1, FAILED_PRECONDITION, 0, "/job:ps/task:1 at elsewhere:2223, here it is at there:2223"},
    {"", "worker", "localhost:1", 0, FAILED_PRECONDITION, 0, "localhost:2222"},
    {"", "worker", "x:1", 7, INVALID_ARGUMENT, 0, "/job:worker/task:7"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct client client;
    struct wire_buffer proto = {0}, request = {0};
    struct wire_field field;
    char handle[17], filters[128];
    client_open(&client);
    snprintf(filters, sizeof filters, "%s", cases[i].filters);
    for (char *save = NULL, *one = strtok_r(filters, " ", &save); one; one = strtok_r(NULL, " ", &save))
      wire_put_text(&proto, 4, one);
    if (cases[i].job)
      job_put(&proto, cases[i].job, cases[i].index, cases[i].address);
    assert_int_equal(session_with(&client, &proto, handle), cases[i].code);
    wire_buffer_free(&proto);
    if (cases[i].code == OK) {
      int seen = 0;
      wire_put_text(&request, 1, handle);
      for (struct wire answer = call(&client, "ListDevices", &request); wire_next(&answer, &field);)
        seen++;
      assert_int_equal(seen, cases[i].seen);
      wire_put_text(&request, 1, handle);
      feed_put(&request, "x:0", 1);
      wire_put_text(&request, 3, "y:0");
      wire_put_text(&request, 4, "init"); /* the entry 'train', on both tasks */
      call(&client, "RunStep", &request);
      assert_int_equal(client.grpc_status, cases[i].text ? INVALID_ARGUMENT : OK);
    }
    if (cases[i].text)
      assert_non_null(strstr(client.message, cases[i].text));
    client_close(&client);
  }
}

/* Valid requests with bytes changed, cut and doubled: whatever a client sends is read without harm, and forgotten. */
static void damaged_requests_are_read_without_harm(void **state) {
  (void)state;
  struct wire_buffer valid = {0};
  uint32_t seed = 1;
  wire_put_text(&valid, 4, "/job:worker/task:0/device:CPU:0");
  wire_put_varint(&valid, 11, 80);
  job_put(&valid, "ps", 1, "there:2223");
  size_t named = wire_begin(&valid, 2);
  wire_put_text(&valid, 1, "x:0");
  wire_end(&valid, named);
  wire_put_text(&valid, 1, "x:0");
  wire_put_text(&valid, 3, "y:0");
  for (int i = 0; i < 20000; i++) {
    uint8_t bytes[512];
    size_t size = valid.size < sizeof bytes ? valid.size : sizeof bytes;
    memcpy(bytes, valid.data, size);
    for (int change = 0; change < 3; change++) {
      seed = seed * 1664525 + 1013904223;
      bytes[(seed >> 8) % size] = (uint8_t)(seed >> 24);
    }
    size = i % 3 ? size : (seed >> 4) % size;
    struct wire wire = wire_over(bytes, size);
    struct session_options session = {.timeout_ms = 0};
    struct step_names names = {.feeds = {0}};
    struct run_options options = {.timeout_ms = 0};
    struct step_request request;
    (void)!session_options_read(&config, wire, &session);
    free(session.visible);
    (void)!callable_options_read(wire, &names, &options);
    step_names_deinit(&names);
    (void)!step_request_read(wire, &request);
    step_request_deinit(&request);
  }
  wire_buffer_free(&valid);
}

/* ---- callables ---- */

static int callable_make(struct client *client, const char *handle, const char *feed, const char *fetch, bool traces) {
  struct wire_buffer request = {0};
  struct wire_field field;
  wire_put_text(&request, 1, handle);
  size_t options = wire_begin(&request, 2);
  if (*feed)
    wire_put_text(&request, 1, feed);
  if (*fetch)
    wire_put_text(&request, 2, fetch);
  if (traces) {
    size_t run_options = wire_begin(&request, 4);
    wire_put_varint(&request, 1, 3);
    wire_end(&request, run_options);
  }
  wire_end(&request, options);
  struct wire answer = call(client, "MakeCallable", &request);
  return client->grpc_status == OK && wire_next(&answer, &field) ? (int)field.value : 0;
}

static struct wire callable_call(struct client *client, const char *handle, int callable, int values) {
  struct wire_buffer request = {0};
  float value = 1.5f;
  wire_put_text(&request, 1, handle);
  wire_put_varint(&request, 2, (uint64_t)callable);
  for (int i = 0; i < values; i++) {
    struct tensor *tensor;
    assert_int_equal(tensor_copy_in(DTYPE_FLOAT, &(struct shape){1, {1}}, &value, &tensor), OK);
    tensor_message_write(&request, 3, NULL, tensor);
    tensor_release(tensor);
  }
  return call(client, "RunCallable", &request);
}

static void a_callable_is_made_called_and_released(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  struct wire_field field;
  struct tensor *tensor;
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  int first = callable_make(&client, handle, "x:0", "y:0", false), second = callable_make(&client, handle, "x:0", "z:0", true);
  assert_true(first != second);
  for (int turn = 0; turn < 2; turn++) {
    struct wire answer = callable_call(&client, handle, turn ? second : first, 1);
    assert_int_equal(client.grpc_status, OK);
    assert_true(wire_next(&answer, &field) && field.number == 1);
    assert_int_equal(tensor_message_read(wire_inside(&field), &tensor), OK);
    assert_true(*(float *)tensor->data == 1.5f);
    tensor_release(tensor);
    assert_int_equal(wire_next(&answer, &field) && field.number == 2, turn); /* metadata where it was asked for */
  }
  callable_call(&client, handle, first, 2);
  assert_int_equal(client.grpc_status, INVALID_ARGUMENT);
  assert_string_equal(client.message, "Expected 1 feeds, but got 2");
  wire_put_text(&request, 1, handle);
  wire_put_varint(&request, 2, (uint64_t)first);
  call(&client, "ReleaseCallable", &request);
  assert_int_equal(client.grpc_status, OK);
  callable_call(&client, handle, first, 1);
  assert_int_equal(client.grpc_status, INVALID_ARGUMENT);
  client_close(&client);
}

static void callables_of_a_session_are_bounded(void **state) {
  (void)state;
  struct client client;
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  for (int i = 0; i < LIMIT_MASTER_CALLABLES; i++) {
    callable_make(&client, handle, "x:0", "y:0", false);
    assert_int_equal(client.grpc_status, OK);
  }
  callable_make(&client, handle, "x:0", "y:0", false);
  assert_int_equal(client.grpc_status, RESOURCE_EXHAUSTED);
  callable_make(&client, handle, "x:0", "q:0", false);
  assert_int_equal(client.grpc_status, NOT_FOUND);
  client_close(&client);
}

/* ---- partial runs ---- */

static void fetches_put(struct wire_buffer *request, const char *fetches) {
  char text[64];
  snprintf(text, sizeof text, "%s", fetches);
  for (char *save = NULL, *one = strtok_r(text, " ", &save); one; one = strtok_r(NULL, " ", &save))
    wire_put_text(request, 3, one);
}

static status partial_open(struct client *client, const char *handle, const char *fetches, char out[PARTIAL_HANDLE_BYTES]) {
  struct wire_buffer request = {0};
  struct wire_field field;
  wire_put_text(&request, 1, handle);
  wire_put_text(&request, 2, "x:0");
  fetches_put(&request, fetches);
  struct wire answer = call(client, "PartialRunSetup", &request);
  if (client->grpc_status == OK) {
    assert_true(wire_next(&answer, &field) && field.size > 0 && field.size < PARTIAL_HANDLE_BYTES);
    memcpy(out, field.data, field.size);
    out[field.size] = 0;
  }
  return (status)client->grpc_status;
}

static status partial_go_on(struct client *client, const char *handle, const char *partial, bool feeds, const char *fetches) {
  struct wire_buffer request = {0};
  wire_put_text(&request, 1, handle);
  if (feeds)
    feed_put(&request, "x:0", 4);
  fetches_put(&request, fetches);
  wire_put_text(&request, 6, partial);
  call(client, "RunStep", &request);
  return (status)client->grpc_status;
}

static void a_partial_run_takes_feeds_and_gives_fetches_call_by_call(void **state) {
  (void)state;
  static const struct {
    bool feeds;
    const char *fetch;
    status code;
    const char *text;
  } calls[] = {
    {false, "y:0", INVALID_ARGUMENT, "Fetch y:0 can't be computed from the feeds that have been fed so far."},
    {false, "", OK, ""},
    {true, "w:0", INVALID_ARGUMENT, "The fetch w:0 was not specified in partial_run_setup."},
    {true, "y:0 y:0", INVALID_ARGUMENT, "The fetch y:0 has already been fetched."},
    {true, "z:0", OK, ""},
    {true, "y:0", INVALID_ARGUMENT, "The feed x:0 has already been fed."},
    {false, "z:0", INVALID_ARGUMENT, "The fetch z:0 has already been fetched."},
    {false, "y:0", OK, ""},
    {false, "y:0", INVALID_ARGUMENT, "Must run PartialRunSetup before performing partial runs"},
  };
  struct client client;
  char handle[17], partial[PARTIAL_HANDLE_BYTES];
  client_open(&client);
  session_open(&client, handle);
  assert_int_equal(partial_open(&client, handle, "y:0 z:0", partial), OK);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    assert_int_equal(partial_go_on(&client, handle, partial, calls[i].feeds, calls[i].fetch), calls[i].code);
    assert_string_equal(client.message, calls[i].text);
  }
  client_close(&client);
}

static void partial_runs_are_bounded_and_end_with_their_session(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  char handle[17], other[17], first[PARTIAL_HANDLE_BYTES], last[PARTIAL_HANDLE_BYTES];
  client_open(&client);
  session_open(&client, handle);
  session_open(&client, other);
  assert_int_equal(partial_open(&client, handle, "y:0 z:0", first), OK);
  assert_int_equal(partial_go_on(&client, other, first, true, ""), INVALID_ARGUMENT); /* of another session */
  for (int i = 0; i < LIMIT_MASTER_PARTIALS; i++) {
    usleep(2000);
    assert_int_equal(partial_open(&client, handle, "y:0 z:0", last), OK);
  }
  assert_int_equal(partial_go_on(&client, handle, first, true, "y:0"), INVALID_ARGUMENT); /* made room */
  assert_int_equal(partial_go_on(&client, handle, last, true, "y:0"), OK);
  wire_put_text(&request, 1, handle);
  call(&client, "CloseSession", &request);
  assert_int_equal(partial_go_on(&client, handle, last, false, "z:0"), ABORTED);
  client_close(&client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_operation_time_out_holds_for_runs_without_one),
    cmocka_unit_test(filters_and_a_cluster_def_leave_tasks_out),
    cmocka_unit_test(damaged_requests_are_read_without_harm),
    cmocka_unit_test(a_callable_is_made_called_and_released),
    cmocka_unit_test(callables_of_a_session_are_bounded),
    cmocka_unit_test(a_partial_run_takes_feeds_and_gives_fetches_call_by_call),
    cmocka_unit_test(partial_runs_are_bounded_and_end_with_their_session),
  };
  return cmocka_run_group_tests(tests, service_open, service_close);
}
