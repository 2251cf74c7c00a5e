/* test_master.c: TensorFlow's master service: graphs and runs against a small program, and whole calls over a Unix socket. */
#include "runtime/master/master_graph.h"
#include "runtime/master/master_match.h"
#include "runtime/master/master_session.h"
#include "tests/runtime/master_service.h"

/* ---- graphs ---- */

static status add(struct wire_buffer *b, uint8_t *known) {
  status code = master_graph_add(&config, wire_over(b->data, b->size), known);
  wire_buffer_free(b);
  return code;
}

static void parts_of_the_graph_are_accepted_in_any_order(void **state) {
  (void)state;
  struct wire_buffer b = {0};
  uint8_t known[NODE_COUNT] = {0};
  node_put(&b, "z", "Identity", "y:0");
  node_put(&b, "y", "Mul", "x w ^init");
  assert_int_equal(add(&b, known), OK);
  assert_int_equal(known[5], 1);
  assert_int_equal(known[4], 0);
  node_put(&b, "x", "Placeholder", "");
  assert_int_equal(add(&b, known), OK);
  assert_int_equal(add(&b, known), OK); /* nothing */
}

static void nodes_that_were_not_built_are_named(void **state) {
  (void)state;
  static const struct {
    const char *name, *op, *inputs, *words;
  } cases[] = {{"new", "Add", "x", "'new' (Add)"},
               {"y", "Add", "x w ^init", "of another op"},
               {"y", "Mul", "w x ^init", "other inputs"},
               {"y", "Mul", "x w", "other inputs"},
               {"y", "Mul", "x w:1 ^init", "other inputs"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct wire_buffer b = {0};
    uint8_t known[NODE_COUNT] = {0};
    node_put(&b, "x", "Placeholder", "");
    node_put(&b, cases[i].name, cases[i].op, cases[i].inputs);
    assert_int_equal(add(&b, known), FAILED_PRECONDITION);
    assert_non_null(strstr(status_text(), cases[i].words));
    assert_int_equal(known[4], 0); /* all or nothing */
  }
}

static void attributes_of_both_sides_have_to_agree(void **state) {
  (void)state;
  static const struct {
    const char *name, *value; /* an AttrValue's bytes */
    size_t size;
    status code;
  } cases[] = {
    {"dtype", "\x30\x01", 2, OK},
    {"dtype", "\x30\x02", 2, FAILED_PRECONDITION},
    {"dtype", "\x18\x01", 2, FAILED_PRECONDITION}, /* the number 1 */
    {"dtype", "\x30", 1, OK},                      /* no message: nothing to compare */
    {"names",
     "\x0a\x03\x12\x01"
     "a",
     5, OK},
    {"names",
     "\x0a\x03\x12\x01"
     "b",
     5, FAILED_PRECONDITION},
    {"names",
     "\x0a\x06\x12\x01"
     "a\x12\x01"
     "a",
     8, FAILED_PRECONDITION},
    {"names", "\x0a\x00", 2, FAILED_PRECONDITION},
    {"free", "\x18\x07", 2, OK},
    {"new", "\x18\x07", 2, OK}, /* a default that the client wrote out */
    {"_class", "\x18\x07", 2, OK},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct wire_buffer b = {0};
    uint8_t known[NODE_COUNT] = {0};
    size_t node = wire_begin(&b, 1);
    wire_put_text(&b, 1, "w");
    wire_put_text(&b, 2, "Const");
    size_t attr = wire_begin(&b, 5);
    wire_put_text(&b, 1, cases[i].name);
    wire_put_bytes(&b, 2, cases[i].value, cases[i].size);
    wire_end(&b, attr);
    wire_end(&b, node);
    assert_int_equal(add(&b, known), cases[i].code);
  }
}

static void a_node_may_come_once(void **state) {
  (void)state;
  struct wire_buffer b = {0};
  uint8_t known[NODE_COUNT] = {0};
  node_put(&b, "x", "Placeholder", "");
  node_put(&b, "x", "Placeholder", "");
  assert_int_equal(add(&b, known), INVALID_ARGUMENT);
  node_put(&b, "x", "Placeholder", "");
  assert_int_equal(add(&b, known), OK);
  node_put(&b, "x", "Placeholder", "");
  assert_int_equal(add(&b, known), INVALID_ARGUMENT);
  assert_string_equal(status_text(), "GraphDef argument to Extend includes node 'x', which was created by a previous call to Create or "
                                     "Extend in this session.");
}

/* ---- runs ---- */

static uint32_t split_names(char *text, const char **out) {
  uint32_t count = 0;
  for (char *save = NULL, *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save))
    out[count++] = name;
  return count;
}

static status match(const char *feeds, const char *fetches, const char *targets, uint32_t *out) {
  char texts[3][128];
  const char *names[3][8];
  uint8_t known[NODE_COUNT];
  memset(known, 1, sizeof known);
  snprintf(texts[0], sizeof texts[0], "%s", feeds);
  snprintf(texts[1], sizeof texts[1], "%s", fetches);
  snprintf(texts[2], sizeof texts[2], "%s", targets);
  struct master_request r = {.feeds = names[0], .fetches = names[1], .targets = names[2]};
  r.feed_count = split_names(texts[0], names[0]);
  r.fetch_count = split_names(texts[1], names[1]);
  r.target_count = split_names(texts[2], names[2]);
  TRY(master_request_check(&config, known, &r));
  return master_match(&config, &r, out);
}

static void runs_find_their_entry(void **state) {
  (void)state;
  static const struct {
    const char *feeds, *fetches, *targets;
    int entry; /* -1: none */
  } cases[] = {
    {"", "", "init", 0},        {"x:0", "y:0 z:0", "", 1},
    {"x:0", "z:0 y:0", "", 1},  {"x:0", "y:0", "", 1},     /* contained in `both`, which changes nothing */
    {"x:0", "y:0", "init", 2},  {"p:0 x:0", "z:0", "", 1}, /* a placeholder that is not read does not matter */
    {"w:0 x:0", "z:0", "", -1},                            /* a fed constant would */
    {"", "y:0", "", -1},                                   /* needs x */
    {"x:0", "", "init", -1},                               /* part of `train`, which changes state */
    {"x:0", "z:0", "hang", 4},                             /* y changes nothing */
    {"x:0", "y:0", "hang", -1},                            /* z might */
    {"x:0", "y:0 w:0", "", -1}, {"", "", "init hang", -1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t entry = 99;
    status code = match(cases[i].feeds, cases[i].fetches, cases[i].targets, &entry);
    assert_int_equal(code, cases[i].entry < 0 ? FAILED_PRECONDITION : OK);
    if (cases[i].entry >= 0)
      assert_int_equal(entry, cases[i].entry);
    else
      assert_non_null(strstr(status_text(), " 'train: x:0 -> y:0 | init'"));
  }
}

static void runs_that_make_no_sense_are_refused_in_tensorflows_words(void **state) {
  (void)state;
  static const struct {
    const char *feeds, *fetches, *targets;
    status code;
    const char *text;
  } cases[] = {
    {"", "", "", INVALID_ARGUMENT, "Must specify at least one target to fetch or execute."},
    {"q:0", "y:0", "", NOT_FOUND, "FeedInputs: unable to find feed output q:0"},
    {"x:0", "q:0", "", NOT_FOUND, "FetchOutputs node q: not found"},
    {"x:0", "", "a init b", NOT_FOUND, "PruneForTargets: Some target nodes not found: a b "},
    {"x:0 x:0", "y:0", "", INVALID_ARGUMENT, "Endpoint \"x:0\" fed more than once."},
    {"x:0", "x:0", "", INVALID_ARGUMENT, "x:0 is both fed and fetched."},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t entry;
    assert_int_equal(match(cases[i].feeds, cases[i].fetches, cases[i].targets, &entry), cases[i].code);
    assert_string_equal(status_text(), cases[i].text);
  }
}

/* ---- sessions ---- */

static void the_oldest_idle_session_makes_room(void **state) {
  (void)state;
  struct session_list list = {0};
  struct session *first = NULL, *session = NULL;
  char handle[17];
  assert_int_equal(session_create(&list, 3, 1, &first), OK);
  strcpy(handle, first->handle);
  for (int i = 1; i < LIMIT_MASTER_SESSIONS; i++) {
    assert_int_equal(session_create(&list, 3, 1, &session), OK);
    session_release(session);
  }
  assert_int_equal(session_create(&list, 3, 1, &session), OK); /* not the first: it is in use */
  session_release(session);
  assert_ptr_equal(session_find(&list, handle, 16), first);
  session_release(first);
  session_release(first);
  session_close_all(&list);
  assert_int_equal(list.count, 0);
}

static void a_request_id_is_remembered_for_ten_thousand_others(void **state) {
  (void)state;
  struct request_ids *ids = calloc(1, sizeof *ids);
  assert_false(request_ids_add(ids, 0) || request_ids_add(ids, 0));
  for (uint64_t i = 1; i <= 100000; i++) {
    assert_false(request_ids_add(ids, i * UINT64_C(0x123456789abcdef)));
    if (i > 9999)
      assert_true(request_ids_add(ids, (i - 9999) * UINT64_C(0x123456789abcdef)));
  }
  assert_false(request_ids_add(ids, UINT64_C(0x123456789abcdef)));
  free(ids);
}

/* ---- whole calls ---- */

static void a_session_is_made_run_and_closed(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  struct wire_field field, named;
  struct tensor *tensor;
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  wire_put_text(&request, 1, handle);
  feed_put(&request, "x:0", 2.5f);
  wire_put_text(&request, 3, "z:0");
  wire_put_text(&request, 3, "y:0");
  struct wire answer = call(&client, "RunStep", &request);
  assert_int_equal(client.grpc_status, 0);
  for (int i = 0; i < 2; i++) {
    assert_true(wire_next(&answer, &field) && field.number == 1);
    struct wire inside = wire_inside(&field);
    assert_true(wire_next(&inside, &named) && named.size == 3 && memcmp(named.data, i ? "y:0" : "z:0", 3) == 0);
    assert_true(wire_next(&inside, &named));
    assert_int_equal(tensor_message_read(wire_inside(&named), &tensor), OK);
    assert_true(*(float *)tensor->data == 2.5f);
    tensor_release(tensor);
  }
  wire_put_text(&request, 1, handle);
  call(&client, "CloseSession", &request);
  assert_int_equal(client.grpc_status, 0);
  wire_put_text(&request, 1, handle);
  wire_put_text(&request, 4, "init");
  call(&client, "RunStep", &request);
  assert_int_equal(client.grpc_status, ABORTED);
  assert_non_null(strstr(client.message, "is not found."));
  client_close(&client);
}

static void errors_go_into_the_body_when_the_client_asks(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  struct wire_field field;
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  for (int in_body = 0; in_body < 2; in_body++) {
    wire_put_text(&request, 1, handle);
    wire_put_text(&request, 3, "q:0");
    wire_put_varint(&request, 7, (uint64_t)in_body);
    struct wire answer = call(&client, "RunStep", &request);
    assert_int_equal(client.grpc_status, in_body ? OK : NOT_FOUND);
    if (in_body)
      assert_true(wire_next(&answer, &field) && field.number == 3 && field.value == NOT_FOUND);
  }
  client_close(&client);
}

static void a_step_that_takes_too_long_is_answered(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  wire_put_text(&request, 1, handle);
  wire_put_text(&request, 4, "hang");
  size_t options = wire_begin(&request, 5);
  wire_put_varint(&request, 2, 100);
  wire_end(&request, options);
  call(&client, "RunStep", &request);
  assert_int_equal(client.grpc_status, DEADLINE_EXCEEDED);
  assert_string_equal(client.message, "the run took longer than its 100 ms: /job:worker/task:0 is in NoOp 'hang'");
  client_close(&client);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A client does not wait longer than it says either: what is late by a round of the watcher does not reach it. */
static void the_answer_to_a_late_step_leaves_in_time(void **state) {
  (void)state;
  struct client client;
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  for (int64_t timeout_ms = 120; timeout_ms <= 480; timeout_ms += 90) {
    struct wire_buffer request = {0};
    wire_put_text(&request, 1, handle);
    wire_put_text(&request, 4, "hang");
    size_t options = wire_begin(&request, 5);
    wire_put_varint(&request, 2, (uint64_t)timeout_ms);
    wire_end(&request, options);
    int64_t begin = now_ms();
    call(&client, "RunStep", &request);
    assert_int_equal(client.grpc_status, DEADLINE_EXCEEDED);
    assert_true(now_ms() - begin >= timeout_ms - 25);
  }
  client_close(&client);
}

static void a_repeated_request_is_refused(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  for (int i = 0; i < 2; i++) {
    wire_put_text(&request, 1, handle);
    wire_put_text(&request, 4, "init");
    wire_put_varint(&request, 8, 4711);
    call(&client, "RunStep", &request);
    assert_int_equal(client.grpc_status, i ? ABORTED : OK);
  }
  client_close(&client);
}

static void extend_counts_versions(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  struct wire_field field;
  char handle[17];
  client_open(&client);
  struct wire answer = call(&client, "CreateSession", &request); /* an empty graph: list_devices does that */
  assert_true(wire_next(&answer, &field));
  snprintf(handle, sizeof handle, "%.*s", (int)field.size, (const char *)field.data);
  for (uint64_t version = 0; version < 2; version++) {
    wire_put_text(&request, 1, handle);
    size_t graph = wire_begin(&request, 2);
    node_put(&request, version ? "w" : "x", version ? "Const" : "Placeholder", "");
    wire_end(&request, graph);
    wire_put_varint(&request, 3, version);
    answer = call(&client, "ExtendSession", &request);
    assert_true(wire_next(&answer, &field) && field.number == 4 && field.value == version + 1);
  }
  wire_put_text(&request, 1, handle);
  wire_put_varint(&request, 3, 7);
  call(&client, "ExtendSession", &request);
  assert_int_equal(client.grpc_status, ABORTED);
  assert_string_equal(client.message, "Current version is 2 but caller expected 7.");
  client_close(&client);
}

static void devices_are_listed(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  struct wire_field device, field;
  client_open(&client);
  struct wire answer = call(&client, "ListDevices", &request);
  for (int i = 0; i < 2; i++) {
    assert_true(wire_next(&answer, &device) && device.number == 1);
    struct wire inside = wire_inside(&device);
    assert_true(wire_next(&inside, &field) && field.number == 1 && field.size == strlen(devices[i]));
    assert_true(wire_next(&inside, &field) && field.number == 2 && memcmp(field.data, i ? "GPU" : "CPU", 3) == 0);
    while (field.number != 6)
      assert_true(wire_next(&inside, &field));
    assert_true(field.type == WIRE_FIXED64 && field.value != 0);
  }
  client_close(&client);
}

static void other_methods_and_garbage_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *method, *bytes;
    status code;
  } cases[] = {{"MakeCallable", "", ABORTED},
               {"PartialRunSetup", "", ABORTED},
               {"Nonsense", "", UNIMPLEMENTED},
               {"RunCallable", "\x0a\x01q", ABORTED},
               {"ReleaseCallable", "\x0a\x7f", INVALID_ARGUMENT},
               {"PartialRunSetup", "\x12\x7f", INVALID_ARGUMENT},
               {"CreateSession", "\x12\x01\x72", INVALID_ARGUMENT},
               {"CreateSession", "\x0b", INVALID_ARGUMENT},
               {"RunStep", "\x0a\x7f", INVALID_ARGUMENT},
               {"CloseSession", "\x0a\x01q", ABORTED},
               {"ListDevices", "\x0a\x01q", INVALID_ARGUMENT},
               {"CreateSession", "\x0a\x03\x0a\x01\xff", INVALID_ARGUMENT}};
  struct client client;
  client_open(&client);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct wire_buffer request = {0};
    wire_put_raw(&request, cases[i].bytes, strlen(cases[i].bytes));
    call(&client, cases[i].method, &request);
    assert_int_equal(client.grpc_status, cases[i].code);
  }
  client_close(&client);
}

static void a_client_that_goes_does_not_leave_its_step_behind(void **state) {
  (void)state;
  struct client client;
  struct wire_buffer request = {0};
  char handle[17];
  client_open(&client);
  session_open(&client, handle);
  for (int i = 0; i < 20; i++) { /* each would hold a thread for ever */
    wire_put_text(&request, 1, handle);
    wire_put_text(&request, 4, "hang");
    call_begin(&client, "RunStep", &request);
    wire_buffer_free(&request);
  }
  client_close(&client);
  client_open(&client);
  session_open(&client, handle);
  client_close(&client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_of_the_graph_are_accepted_in_any_order),
    cmocka_unit_test(nodes_that_were_not_built_are_named),
    cmocka_unit_test(attributes_of_both_sides_have_to_agree),
    cmocka_unit_test(a_node_may_come_once),
    cmocka_unit_test(runs_find_their_entry),
    cmocka_unit_test(runs_that_make_no_sense_are_refused_in_tensorflows_words),
    cmocka_unit_test(the_oldest_idle_session_makes_room),
    cmocka_unit_test(a_request_id_is_remembered_for_ten_thousand_others),
    cmocka_unit_test(a_session_is_made_run_and_closed),
    cmocka_unit_test(errors_go_into_the_body_when_the_client_asks),
    cmocka_unit_test(a_step_that_takes_too_long_is_answered),
    cmocka_unit_test(the_answer_to_a_late_step_leaves_in_time),
    cmocka_unit_test(a_repeated_request_is_refused),
    cmocka_unit_test(extend_counts_versions),
    cmocka_unit_test(devices_are_listed),
    cmocka_unit_test(other_methods_and_garbage_are_refused),
    cmocka_unit_test(a_client_that_goes_does_not_leave_its_step_behind),
  };
  return cmocka_run_group_tests(tests, service_open, service_close);
}
