/* test_queue.c: scenarios of queues, one line each.
 *
 * A step of a scenario is a text: "put 3", "take", "take 2", "upto 4", "close", "cancel" and what must follow after "->": "ok"
 * (at once; for a take the values), "waits", a failure's code and text, or what earlier calls, numbered from 1, are told:
 * "#2 ok 5". "drop 3" withdraws call 3; "token 7" takes a token for task 7, one of each value.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/resource/queue.h"
#include "tests/support/test.h"

#define STEPS_MAX 10
#define CALLS_MAX 10

static const struct queue_case {
  const char *name;
  enum queue_kind kind;
  int64_t capacity, min_after;
  const char *steps[STEPS_MAX];
} cases[] = {
  {"what goes in first comes out first", QUEUE_FIFO, 3, 0, {"put 1 -> ok", "put 2 -> ok", "take -> ok 1", "take -> ok 2"}},
  {"a full queue makes the next enqueuer wait", QUEUE_FIFO, 1, 0, {"put 1 -> ok", "put 2 -> waits", "take -> ok 1; #2 ok", "take -> ok 2"}},
  {"an empty queue makes a dequeuer wait", QUEUE_FIFO, 1, 0, {"take -> waits", "put 4 -> ok; #1 ok 4"}},
  {"dequeuers are served in their order",
   QUEUE_FIFO,
   9,
   0,
   {"take 2 -> waits", "take -> waits", "put 1 -> ok", "put 2 -> ok; #1 ok 1 2", "put 3 -> ok; #2 ok 3"}},
  {"close lets dequeuers drain what is left",
   QUEUE_FIFO,
   3,
   0,
   {"put 1 -> ok", "close -> ok", "take -> ok 1",
    "take -> OUT_OF_RANGE FIFOQueue 'Q' is closed and has insufficient elements (requested 1, current size 0)"}},
  {"close waits behind pending enqueuers",
   QUEUE_FIFO,
   1,
   0,
   {"put 1 -> ok", "put 2 -> waits", "close -> waits", "put 3 -> waits",
    "take -> ok 1; #2 ok; #3 ok; #4 CANCELLED FIFOQueue 'Q' is closed.", "take -> ok 2"}},
  {"a cancelling close fails waiting enqueuers at once",
   QUEUE_FIFO,
   1,
   0,
   {"put 1 -> ok", "put 2 -> waits", "cancel -> ok; #2 CANCELLED Enqueue operation was cancelled", "take -> ok 1"}},
  {"a second close is an error", QUEUE_FIFO, 1, 0, {"close -> ok", "close -> CANCELLED Queue 'Q' is already closed."}},
  {"enqueuing after close is an error", QUEUE_FIFO, 1, 0, {"close -> ok", "put 1 -> CANCELLED FIFOQueue 'Q' is closed."}},
  {"close fails a dequeuer that cannot get enough, and puts back what it had",
   QUEUE_FIFO,
   9,
   0,
   {"take 3 -> waits", "put 1 -> ok", "put 2 -> ok",
    "close -> ok; #1 OUT_OF_RANGE FIFOQueue 'Q' is closed and has insufficient elements (requested 1, current size 0)", "take -> ok 1",
    "take -> ok 2"}},
  {"up to takes what is left of a closed queue",
   QUEUE_FIFO,
   9,
   0,
   {"upto 3 -> waits", "put 1 -> ok", "put 2 -> ok", "close -> ok; #1 ok 1 2"}},
  {"a batch of nothing is there at once", QUEUE_FIFO, 9, 0, {"take 0 -> ok"}},
  {"a batch larger than the queue is collected as it comes",
   QUEUE_FIFO,
   1,
   0,
   {"take 3 -> waits", "put 1 -> ok", "put 2 -> ok", "put 3 -> ok; #1 ok 1 2 3"}},
  {"a withdrawn dequeuer leaves what it had taken", QUEUE_FIFO, 9, 0, {"take 3 -> waits", "put 1 -> ok", "drop 1", "take -> ok 1"}},
  {"withdrawing the first lets the next proceed",
   QUEUE_FIFO,
   9,
   0,
   {"take 2 -> waits", "take -> waits", "put 1 -> ok", "drop 1 -> #2 ok 1"}},
  {"a driver gets one token of a value, and the others theirs",
   QUEUE_FIFO,
   9,
   0,
   {"put 1 -> ok", "put 1 -> ok", "token 7 -> ok 1", "token 7 -> waits", "token 8 -> ok 1", "put 2 -> ok; #4 ok 2"}},
  {"who waits for a token keeps nobody back",
   QUEUE_FIFO,
   9,
   0,
   {"put 1 -> ok", "token 7 -> ok 1", "token 7 -> waits", "token 8 -> waits", "put 1 -> ok; #4 ok 1", "put 2 -> ok; #3 ok 2"}},
  {"a driver that was slow gets the newest token, and older ones are gone",
   QUEUE_FIFO,
   9,
   0,
   {"put 1 -> ok", "put 2 -> ok", "put 3 -> ok", "token 7 -> ok 3", "token 8 -> waits", "drop 5", "take -> waits"}},
  {"a closed queue gives its tokens, then ends",
   QUEUE_FIFO,
   9,
   0,
   {"put 1 -> ok", "close -> ok", "token 7 -> ok 1",
    "token 8 -> OUT_OF_RANGE FIFOQueue 'Q' is closed and has insufficient elements (requested 1, current size 0)"}},
  {"a token that is withdrawn takes nothing", QUEUE_FIFO, 9, 0, {"token 7 -> waits", "drop 1", "put 1 -> ok", "token 8 -> ok 1"}},
  {"shuffling keeps its minimum while it is open",
   QUEUE_SHUFFLE,
   9,
   1,
   {"put 1 -> ok", "take -> waits", "put 1 -> ok; #2 ok 1", "take -> waits", "close -> ok; #4 ok 1"}},
};

struct scenario {
  struct container *container;
  struct queue *queue;
  struct inbox inbox;
  struct host_call calls[CALLS_MAX];
  struct tensor *outputs[CALLS_MAX];
  int count;
  char said[512];
};

static void say(struct scenario *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct scenario *s, const char *format, ...) {
  size_t at = strlen(s->said);
  va_list list;
  va_start(list, format);
  vsnprintf(s->said + at, sizeof s->said - at, format, list);
  va_end(list);
}

static void say_values(struct scenario *s, struct tensor **output) {
  for (int64_t i = 0; *output && i < (*output)->count; i++)
    say(s, " %d", ((int32_t *)(*output)->data)[i]);
  tensor_release(*output);
  *output = NULL;
}

static status start(struct scenario *s, struct host_call *call, const char *step) {
  int number = 1;
  bool many = sscanf(step, "%*s %d", &number) == 1;
  if (strncmp(step, "put", 3) == 0) {
    struct tensor *tensor;
    assert_int_equal(tensor_copy_in(DTYPE_INT32, &(struct shape){0}, &number, &tensor), OK);
    return queue_enqueue(s->queue, call, &tensor, 1);
  }
  call->output_count = 1;
  if (strncmp(step, "take", 4) == 0)
    return many ? queue_dequeue_many(s->queue, call, number, false) : queue_dequeue(s->queue, call);
  if (strncmp(step, "token", 5) == 0) {
    call->driver = (uint32_t)number;
    return queue_dequeue_token(s->queue, call, 1);
  }
  if (strncmp(step, "upto", 4) == 0)
    return queue_dequeue_many(s->queue, call, number, true);
  return queue_close(s->queue, call, strncmp(step, "cancel", 6) == 0);
}

static void run_call(struct scenario *s, const char *step) {
  struct host_call *call = &s->calls[s->count];
  *call = (struct host_call){.inbox = &s->inbox, .outputs = &s->outputs[s->count]};
  s->count++;
  status result = start(s, call, step);
  if (result != OK)
    say(s, "%s %s", status_name(result), status_text());
  else
    say(s, call->pending ? "waits" : "ok");
  if (result == OK && !call->pending)
    say_values(s, call->outputs);
}

static void run_drop(struct scenario *s, const char *step) {
  struct host_call *call = &s->calls[atoi(step + 5) - 1];
  assert_true(call->withdraw(call));
}

/* Finished calls, in the order of their numbers. */
static void say_finished(struct scenario *s) {
  bool finished[CALLS_MAX] = {false};
  struct host_call *call;
  while ((call = (struct host_call *)inbox_take(&s->inbox, false, false)))
    finished[call - s->calls] = true;
  for (int i = 0; i < s->count; i++) {
    if (!finished[i])
      continue;
    call = &s->calls[i];
    say(s, "%s#%d %s%s%s", *s->said ? "; " : "", i + 1, call->code == OK ? "ok" : status_name(call->code), call->code == OK ? "" : " ",
        call->text);
    say_values(s, call->outputs);
  }
}

static void run_case(const struct queue_case *c) {
  static const struct queue_component element = {.dtype = DTYPE_INT32, .has_shape = true};
  struct queue_spec spec = {
    .kind = c->kind, .component_count = 1, .components = {element}, .capacity = c->capacity, .min_after_dequeue = c->min_after, .seed = 1};
  struct scenario *s = calloc(1, sizeof *s);
  bool is_new;
  inbox_init(&s->inbox);
  assert_int_equal(container_create(&s->container), OK);
  assert_int_equal(container_get(s->container, "localhost", "Q", &queue_maker, &spec, &is_new, (struct resource **)&s->queue), OK);
  for (int i = 0; i < STEPS_MAX && c->steps[i]; i++) {
    const char *arrow = strstr(c->steps[i], "-> ");
    s->said[0] = 0;
    if (strncmp(c->steps[i], "drop", 4) == 0)
      run_drop(s, c->steps[i]);
    else
      run_call(s, c->steps[i]);
    say_finished(s);
    if (strcmp(s->said, arrow ? arrow + 3 : "") != 0)
      test_fail("%s: %s: but it is: %s", c->name, c->steps[i], s->said);
  }
  for (int i = 0; i < s->count; i++)
    if (s->calls[i].pending && s->calls[i].withdraw && s->calls[i].code == OK && strstr(c->name, "nobody"))
      s->calls[i].withdraw(&s->calls[i]);
  container_destroy(s->container);
  inbox_deinit(&s->inbox);
  free(s);
}

static void queues_keep_their_promises(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    run_case(&cases[i]);
}

static void sharing_needs_equal_queues(void **state) {
  (void)state;
  struct queue_spec spec = {.kind = QUEUE_FIFO, .component_count = 1, .capacity = 3}, other = spec;
  spec.components[0].dtype = other.components[0].dtype = DTYPE_INT32;
  struct container *container;
  struct queue *queue;
  bool is_new;
  assert_int_equal(container_create(&container), OK);
  assert_int_equal(container_get(container, "", "Q", &queue_maker, &spec, &is_new, (struct resource **)&queue), OK);
  assert_true(is_new);
  assert_int_equal(container_get(container, "", "Q", &queue_maker, &spec, &is_new, (struct resource **)&queue), OK);
  assert_false(is_new);
  assert_int_equal(queue_match(queue, &other), OK);
  other.capacity = 4;
  assert_int_equal(queue_match(queue, &other), INVALID_ARGUMENT);
  assert_string_equal(status_text(), "Shared queue 'Q' has capacity 3 but requested capacity was 4");
  other = spec;
  other.components[0].dtype = DTYPE_FLOAT;
  assert_int_equal(queue_match(queue, &other), INVALID_ARGUMENT);
  container_destroy(container);
}

static void padding_fills_a_batch_with_zeros(void **state) {
  (void)state;
  struct queue_spec spec = {.kind = QUEUE_PADDING, .component_count = 1, .capacity = 9};
  spec.components[0] = (struct queue_component){.dtype = DTYPE_INT32, .has_shape = true, .shape = {1, {-1}}};
  struct container *container;
  struct queue *queue;
  struct inbox inbox;
  bool is_new;
  inbox_init(&inbox);
  assert_int_equal(container_create(&container), OK);
  assert_int_equal(container_get(container, "", "Q", &queue_maker, &spec, &is_new, (struct resource **)&queue), OK);
  static const int32_t rows[] = {1, 2, 3};
  for (int64_t length = 1; length <= 3; length += 2) {
    struct host_call call = {.inbox = &inbox};
    struct tensor *row;
    assert_int_equal(tensor_copy_in(DTYPE_INT32, &(struct shape){1, {length}}, rows, &row), OK);
    assert_int_equal(queue_enqueue(queue, &call, &row, 1), OK);
  }
  struct tensor *batch = NULL;
  struct host_call call = {.inbox = &inbox, .outputs = &batch, .output_count = 1};
  assert_int_equal(queue_dequeue_many(queue, &call, 2, false), OK);
  assert_int_equal(batch->shape.rank, 2);
  assert_int_equal(batch->shape.dims[1], 3);
  assert_memory_equal(batch->data, ((int32_t[]){1, 0, 0, 1, 2, 3}), 24);
  tensor_release(batch);
  container_destroy(container);
  inbox_deinit(&inbox);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(queues_keep_their_promises),
    cmocka_unit_test(sharing_needs_equal_queues),
    cmocka_unit_test(padding_fills_a_batch_with_zeros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
