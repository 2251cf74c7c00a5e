/* master_service.h: a small program behind a master service, and clients of it over a Unix socket. */
#ifndef TFC_TESTS_RUNTIME_MASTER_SERVICE_H
#define TFC_TESTS_RUNTIME_MASTER_SERVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/map.h"
#include "runtime/master/master.h"
#include "runtime/master/master_partial.h"
#include "runtime/net/grpc.h"
#include "runtime/net/http2.h"
#include "runtime/program/program.h"
#include "runtime/step/partial.h"
#include "runtime/value/tensor_message.h"
#include "tests/support/test.h"

/* y = x * w; init; hang waits until it is cancelled. Sorted by name. */
static uint32_t w_attrs[6]; /* dtype: DT_FLOAT, names: ["a"], free: not compared */
static struct master_node nodes[] = {{.name = "hang", .op = "NoOp"},     {.name = "init", .op = "NoOp"},
                                     {.name = "p", .op = "Placeholder"}, {.name = "w", .op = "Const", .attrs = w_attrs, .attr_count = 3},
                                     {.name = "x", .op = "Placeholder"}, {.name = "y", .op = "Mul"},
                                     {.name = "z", .op = "Identity"}};
#define NODE_COUNT 7
static const struct master_port port_x[] = {{.tensor = "x:0"}}, port_y[] = {{.tensor = "y:0"}},
                                port_yz[] = {{.tensor = "y:0"}, {.tensor = "z:0"}}, port_step[] = {{"y:0", true}, {.tensor = "z:0"}};
static const char *const target_init[] = {"init"}, *const target_hang[] = {"hang"};
static const uint32_t task_numbers[] = {0, 1};
static const struct master_entry entries[] = {
  {.name = "init", .targets = target_init, .target_count = 1, .changes_state = true},
  {.name = "both", .feeds = port_x, .feed_count = 1, .fetches = port_yz, .fetch_count = 2},
  {.name = "train",
   .feeds = port_x,
   .feed_count = 1,
   .fetches = port_y,
   .fetch_count = 1,
   .targets = target_init,
   .target_count = 1,
   .changes_state = true,
   .tasks = task_numbers,
   .task_count = 2},
  {.name = "hang", .targets = target_hang, .target_count = 1, .changes_state = true},
  {.name = "step",
   .feeds = port_x,
   .feed_count = 1,
   .fetches = port_step,
   .fetch_count = 2,
   .targets = target_hang,
   .target_count = 1,
   .changes_state = true},
};

/* Waits for x; then both fetches are there. */
static inline status run_in_parts(const struct master_run *call) {
  struct inbox inbox;
  struct inbox_item item;
  inbox_init(&inbox);
  struct tensor *x = partial_ask(call->partial, 0, &inbox, &item);
  while (!x && !atomic_load(call->cancelled)) {
    usleep(1000);
    x = inbox_take(&inbox, false, false) ? partial_ask(call->partial, 0, &inbox, &item) : NULL;
  }
  if (!x)
    partial_withdraw(call->partial, 0);
  for (uint32_t i = 0; x && i < 2; i++)
    partial_give(call->partial, i, tensor_retain(x));
  tensor_release(x);
  inbox_deinit(&inbox);
  return x ? OK : CANCELLED;
}

static inline status run(void *self, const struct master_run *call) {
  (void)self;
  if (call->partial)
    return run_in_parts(call);
  if (call->traces)
    wire_put_text(call->metadata, 1, "recorded");
  if (call->entry == 3) {
    while (!atomic_load(call->cancelled))
      usleep(1000);
    return CANCELLED;
  }
  for (uint32_t i = 0; i < entries[call->entry].fetch_count; i++)
    call->fetches[i] = tensor_retain(call->feeds[0]);
  return OK;
}

static inline void explain(void *self, const atomic_bool *cancelled, char *out, size_t size) {
  (void)self, (void)cancelled;
  snprintf(out, size, "/job:worker/task:0 is in NoOp 'hang'");
}

static inline status needs(void *self, uint32_t entry, uint32_t fetch, uint8_t *out) {
  (void)self, (void)fetch;
  if (entry != 1)
    return UNIMPLEMENTED;
  out[0] = 1;
  return OK;
}

static const char *const devices[] = {"/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:1/device:GPU:3"};
static const char *const addresses[] = {"localhost:2222", "there:2223"};
static const struct master_config config = {.entries = entries,
                                            .entry_count = 5,
                                            .nodes = nodes,
                                            .node_count = NODE_COUNT,
                                            .devices = devices,
                                            .device_count = 2,
                                            .addresses = addresses,
                                            .run = run,
                                            .explain = explain,
                                            .needs = needs};

static inline uint64_t feed(uint64_t hash, int64_t value) { return hash_bytes(&value, sizeof value, hash); }

static inline void hash_nodes(void) {
  w_attrs[0] = (uint32_t)hash_bytes("dtype", 5, 0);
  w_attrs[1] = (uint32_t)feed(feed(0, PROGRAM_ATTR_TYPE), DTYPE_FLOAT);
  w_attrs[2] = (uint32_t)hash_bytes("names", 5, 0);
  w_attrs[3] = (uint32_t)hash_bytes("a", 1, feed(feed(feed(0, PROGRAM_ATTR_LIST), PROGRAM_ATTR_STRING), 1));
  w_attrs[4] = (uint32_t)hash_bytes("free", 4, 0);
  nodes[5].input_hash = program_hash_input(program_hash_input(program_hash_input(0, "x", 0), "w", 0), "init", UINT32_MAX);
  nodes[6].input_hash = program_hash_input(0, "y", 0);
}

static inline void node_put(struct wire_buffer *b, const char *name, const char *op, const char *inputs) {
  size_t node = wire_begin(b, 1);
  char text[128];
  snprintf(text, sizeof text, "%s", inputs);
  wire_put_text(b, 1, name);
  wire_put_text(b, 2, op);
  for (char *save = NULL, *input = strtok_r(text, " ", &save); input; input = strtok_r(NULL, " ", &save))
    wire_put_text(b, 3, input);
  wire_end(b, node);
}

static inline void whole_graph(struct wire_buffer *b) {
  node_put(b, "x", "Placeholder", "");
  node_put(b, "w", "Const", "");
  node_put(b, "init", "NoOp", "");
  node_put(b, "hang", "NoOp", "");
  node_put(b, "y", "Mul", "x w:0 ^init");
  node_put(b, "z", "Identity", "y");
}

/* ---- calls ---- */

struct client {
  int fd;
  struct http2 *http2;
  struct wire_buffer body;
  bool is_closed;
  int grpc_status;
  char message[512];
};

static inline void on_headers(void *self, struct http2_stream *stream) { (void)self, (void)stream; }
static inline void on_data(void *self, struct http2_stream *stream, const uint8_t *data, size_t size) {
  (void)stream;
  wire_put_raw(&((struct client *)self)->body, data, size);
}
static inline void on_end(void *self, struct http2_stream *stream) {
  struct client *client = self;
  client->grpc_status = stream->grpc_status;
  if (stream->grpc_message)
    grpc_percent_decode(stream->grpc_message);
  snprintf(client->message, sizeof client->message, "%s", stream->grpc_message ? stream->grpc_message : "");
}
static inline void on_close(void *self, struct http2_stream *stream, uint32_t error) {
  (void)stream, (void)error;
  ((struct client *)self)->is_closed = true;
}
static inline void on_goaway(void *self, uint32_t error) { (void)self, (void)error; }
static const struct http2_handler handler = {on_headers, on_data, on_end, on_close, on_goaway};

static struct cluster *cluster;
static struct master *master;
static char socket_path[64];

static inline void client_write(struct client *client) {
  const struct iovec *pieces;
  for (int count; (count = http2_output(client->http2, &pieces)) > 0;) {
    ssize_t written = writev(client->fd, pieces, count);
    assert_true(written > 0);
    http2_written(client->http2, (size_t)written);
  }
}

static inline void client_open(struct client *client) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  *client = (struct client){.fd = socket(AF_UNIX, SOCK_STREAM, 0)};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
  assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(http2_create(false, &handler, client, &client->http2), OK);
}

static inline void client_close(struct client *client) {
  close(client->fd);
  http2_destroy(client->http2);
  wire_buffer_free(&client->body);
}

static inline struct http2_stream *call_begin(struct client *client, const char *method, const struct wire_buffer *request) {
  char path[128];
  uint8_t prefix[GRPC_PREFIX_BYTES];
  snprintf(path, sizeof path, "/tensorflow.MasterService/%s", method);
  client->is_closed = false;
  wire_buffer_free(&client->body);
  struct http2_stream *stream = http2_request(client->http2, path, "here", NULL);
  grpc_write_prefix((uint32_t)request->size, prefix);
  assert_int_equal(http2_send_copy(stream, prefix, sizeof prefix), OK);
  assert_int_equal(http2_send_copy(stream, request->data, request->size), OK);
  http2_finish(stream);
  client_write(client);
  return stream;
}

/* The answer's message. */
static inline struct wire call(struct client *client, const char *method, struct wire_buffer *request) {
  uint8_t buffer[4096];
  call_begin(client, method, request);
  wire_buffer_free(request);
  while (!client->is_closed) {
    ssize_t got = read(client->fd, buffer, sizeof buffer);
    assert_true(got > 0);
    assert_int_equal(http2_receive(client->http2, 0, buffer, (size_t)got), OK);
    client_write(client);
  }
  size_t prefix = client->body.size < GRPC_PREFIX_BYTES ? client->body.size : GRPC_PREFIX_BYTES;
  return wire_over(client->body.data + prefix, client->body.size - prefix);
}

static inline void session_open(struct client *client, char handle[17]) {
  struct wire_buffer request = {0};
  struct wire_field field;
  size_t graph = wire_begin(&request, 1);
  whole_graph(&request);
  wire_end(&request, graph);
  struct wire answer = call(client, "CreateSession", &request);
  assert_int_equal(client->grpc_status, 0);
  assert_true(wire_next(&answer, &field) && field.number == 1 && field.size == 16);
  memcpy(handle, field.data, 16);
  handle[16] = 0;
}

static inline void feed_put(struct wire_buffer *request, const char *name, float value) {
  struct tensor *tensor;
  assert_int_equal(tensor_copy_in(DTYPE_FLOAT, &(struct shape){1, {1}}, &value, &tensor), OK);
  tensor_message_write(request, 2, name, tensor);
  tensor_release(tensor);
}

static inline int service_open(void **state) {
  (void)state;
  hash_nodes();
  char address[80];
  snprintf(socket_path, sizeof socket_path, "/tmp/tfc-master-%d", (int)getpid());
  snprintf(address, sizeof address, "unix:%s", socket_path);
  struct cluster_task task = {"worker", 0, address};
  struct cluster_config cluster_config = {.task_count = 1, .tasks = &task, .timeout_s = 5};
  return cluster_create(&cluster_config, &cluster) != OK || master_create(&config, cluster, &master) != OK || cluster_start(cluster) != OK;
}

static inline int service_close(void **state) {
  (void)state;
  master_destroy(master); /* ends the steps that hang */
  cluster_destroy(cluster);
  return 0;
}

#endif
