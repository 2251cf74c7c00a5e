/* test_build_fuzz.c: damaged graphs through all passes up to the tasks' programs: each is compiled or refused, none crashes, hangs or
 * fails with INTERNAL.
 *
 * The conformance graphs are unpacked, changed field by field along their descriptors (numbers at the edges of what they may
 * be, names of other nodes and ops, elements lost or repeated) and packed again: the reader takes them, so the passes
 * behind it must stand. Bytes are test_read_fuzz's matter. FUZZ_RUNS sets how many, or FUZZ_SECONDS for how long, FUZZ_SEED where to
 * begin: a run that crashes prints its own, and FUZZ_RUNS=1 with it repeats that run alone. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compiler/entries.h"
#include "compiler/pass/pass.h"
#include "compiler/pipeline.h"
#include "compiler/read/read.h"
#include "ir/graph/registry.h"
#include "tensorflow.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define RUNS 3000
#define SECONDS_MAX 20 /* of a run: the largest graph takes a tenth of one */
#define GRAPH_BYTES_MAX (64 << 10)
#define MEMORY_MAX ((size_t)1 << 30) /* of an arena */

static volatile uint64_t current_seed;

static void say_seed(int number) {
  char text[64];
  int length = snprintf(text, sizeof text, "FUZZ_SEED=%llu\n", (unsigned long long)current_seed);
  if (length > 0 && write(2, text, (size_t)length) < 0)
    _exit(3);
  signal(number, SIG_DFL);
  raise(number == SIGALRM ? SIGABRT : number);
}

static uint64_t next_random(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* ---- corpus ---- */

struct corpus_file {
  char *data;
  size_t size;
};
static struct corpus_file *corpus;
static size_t corpus_count;

static void corpus_add(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return;
  char *data = malloc(GRAPH_BYTES_MAX + 1);
  size_t size = fread(data, 1, GRAPH_BYTES_MAX + 1, file);
  fclose(file);
  if (size > GRAPH_BYTES_MAX) {
    free(data);
    return;
  }
  corpus = realloc(corpus, (corpus_count + 1) * sizeof *corpus);
  corpus[corpus_count++] = (struct corpus_file){data, size};
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void corpus_walk(const char *folder, int depth) {
  struct dirent **names;
  int count = scandir(folder, &names, NULL, by_name);
  for (int i = 0; i < count; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    if (!strcmp(names[i]->d_name, "graph.pb"))
      corpus_add(path);
    else if (names[i]->d_name[0] != '.' && depth < 3 && !strchr(names[i]->d_name, '.'))
      corpus_walk(path, depth + 1);
    free(names[i]);
  }
  if (count >= 0)
    free(names);
}

/* ---- damage ---- */

struct damage {
  uint64_t *random;
  uint64_t left; /* fields still to be passed before the one that changes */
  bool done;
  const Tensorflow__GraphDef *graph;
  struct arena *arena;
};

static int64_t integer_damage(uint64_t *random, int64_t value) {
  static const int64_t edges[] = {
    0, 1, -1, 2, 3, 4, 5, 7, 8, 9, 64, 101, 255, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 40, INT64_C(1) << 31};
  switch (next_random(random) % 4) {
  case 0: return (int64_t)((uint64_t)value + 1);
  case 1: return (int64_t)((uint64_t)value - 1);
  case 2: return (int64_t)(next_random(random) % 24);
  default: return edges[next_random(random) % (sizeof edges / sizeof *edges)];
  }
}

/* Another node's name as an input, another op, another key: names that mean something. */
static char *name_damage(const struct damage *d, const ProtobufCFieldDescriptor *field, char *name) {
  const Tensorflow__GraphDef *g = d->graph;
  const Tensorflow__NodeDef *node = g->n_node ? g->node[next_random(d->random) % g->n_node] : NULL;
  if (node && !strcmp(field->name, "input")) {
    static const char *const forms[] = {"", ":1", ":2", ":7"};
    return arena_printf(d->arena, "%s%s%s", next_random(d->random) % 5 ? "" : "^", node->name, forms[next_random(d->random) % 4]);
  }
  if (!strcmp(field->name, "op"))
    return node && next_random(d->random) % 2
           ? node->op
           : arena_strdup(d->arena, registry_at((uint32_t)(next_random(d->random) % registry_count()))->name);
  if (node && node->n_attr && !strcmp(field->name, "key"))
    return node->attr[next_random(d->random) % node->n_attr]->key;
  return node ? node->name : name;
}

static void element_damage(struct damage *d, const ProtobufCFieldDescriptor *field, void *at) {
  static const double numbers[] = {0, -0.0, 1, -1, 0.5, 1e30, -1e30, 1e-40};
  double number = numbers[next_random(d->random) % (sizeof numbers / sizeof *numbers)];
  ProtobufCBinaryData *bytes = at;
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_ENUM: *(int32_t *)at = (int32_t)integer_damage(d->random, *(int32_t *)at); break;
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_UINT64: *(int64_t *)at = integer_damage(d->random, *(int64_t *)at); break;
  case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *)at = !*(protobuf_c_boolean *)at; break;
  case PROTOBUF_C_TYPE_FLOAT: *(float *)at = (float)number; break;
  case PROTOBUF_C_TYPE_DOUBLE: *(double *)at = number; break;
  case PROTOBUF_C_TYPE_STRING: *(char **)at = name_damage(d, field, *(char **)at); break;
  case PROTOBUF_C_TYPE_BYTES:
    if (bytes->len && next_random(d->random) % 2)
      bytes->data[next_random(d->random) % bytes->len] = (uint8_t)(next_random(d->random) % 9);
    else if (bytes->len)
      bytes->len -= 1 + next_random(d->random) % bytes->len;
    break;
  default: break;
  }
}

static size_t element_bytes(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_DOUBLE: return 8;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
  case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
  default: return 4;
  }
}

static void message_damage(struct damage *d, ProtobufCMessage *message);

/* Counts d->left down over the fields, in order, and changes the one where it ends. */
static void field_damage(struct damage *d, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  char *base = (char *)message;
  bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && *(int *)(void *)(base + field->quantifier_offset) != (int)field->id)
    return;
  size_t *count = (size_t *)(void *)(base + field->quantifier_offset), size = element_bytes(field);
  char *items = repeated ? *(char **)(void *)(base + field->offset) : base + field->offset;
  if (repeated && *count && d->left-- == 0) { /* one less, or one twice */
    size_t k = next_random(d->random) % *count;
    if (next_random(d->random) % 2)
      (*count)--;
    else
      memcpy(items + size * k, items + size * (next_random(d->random) % *count), size);
    d->done = true;
    return;
  }
  for (size_t i = 0; i < (repeated ? *count : 1) && !d->done; i++) {
    void *at = items + size * i;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
      if (*(ProtobufCMessage **)at)
        message_damage(d, *(ProtobufCMessage **)at);
    } else if (d->left-- == 0) {
      element_damage(d, field, at);
      d->done = true;
    }
  }
}

static void message_damage(struct damage *d, ProtobufCMessage *message) {
  for (unsigned i = 0; i < message->descriptor->n_fields && !d->done; i++)
    field_damage(d, message, &message->descriptor->fields[i]);
}

/* Changes one field of one node, or now and then of the rest. */
static void graph_damage(Tensorflow__GraphDef *graph, struct arena *arena, uint64_t *random) {
  struct damage d = {.random = random, .graph = graph, .arena = arena, .left = next_random(random) % 24};
  bool anywhere = !graph->n_node || next_random(random) % 16 == 0;
  if (anywhere)
    d.left = next_random(random) % 400;
  message_damage(&d, anywhere ? &graph->base : &graph->node[next_random(random) % graph->n_node]->base);
}

static void *proto_alloc(void *arena, size_t size) { return arena_alloc(arena, size); }

static void proto_free(void *arena, void *p) { (void)arena, (void)p; }

/* The file's graph, changed in a few places, packed again. */
static char *graph_damaged(const struct corpus_file *file, struct arena *arena, uint64_t *random, size_t *size) {
  ProtobufCAllocator allocator = {proto_alloc, proto_free, arena};
  Tensorflow__GraphDef *graph = tensorflow__graph_def__unpack(&allocator, file->size, (const uint8_t *)file->data);
  if (!graph)
    return NULL; /* a MetaGraphDef */
  for (uint64_t i = 1 + next_random(random) % 3; i > 0; i--)
    graph_damage(graph, arena, random);
  char *data = arena_alloc(arena, tensorflow__graph_def__get_packed_size(graph) + 1);
  *size = tensorflow__graph_def__pack(graph, (uint8_t *)data);
  return data;
}

/* ---- a run ---- */

static const char cluster_text[] = "{\"ps\": [\"a:1\", \"a:2\"], \"worker\": [\"b:1\", \"b:2\"]}";

/* What TensorFlow itself ends with INTERNAL for; each has a recorded case. */
static bool is_tensorflows(void) {
  static const char *const texts[] = {"does not match declared output type", "Currently don't support instantiating functions on device",
                                      "Integer division by zero"};
  bool found = false;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    found = found || strstr(status_text(), texts[i]);
  return found;
}

static unsigned long outcomes[UNAUTHENTICATED + 1]; /* of runs, by status */

static status build_run(struct build *build, const char *data, size_t size) {
  TRY(model_parse(data, size, &build->arena, &build->model));
  TRY(cpus_read("native", false, &build->arena, &build->cpus));
  TRY(pipeline_run_part(build, "datasets", "plan"));
  for (uint32_t task = 0; task < build->cluster.tasks.count; task++) {
    struct emitted emitted = {0};
    status result = build_emit(build, task, &emitted);
    vec_free(&emitted.kernels);
    TRY(result);
  }
  return OK;
}

static void run(uint64_t seed) {
  current_seed = seed;
  uint64_t random = seed;
  struct arena arena;
  size_t size;
  arena_init(&arena);
  const char *data = graph_damaged(&corpus[next_random(&random) % corpus_count], &arena, &random, &size);
  struct build build = {.options = {.cpu = "native"}};
  arena_init(&build.arena);
  if (next_random(&random) % 2) {
    if (cluster_parse(cluster_text, sizeof cluster_text - 1, &build.arena, &build.cluster) != OK)
      abort();
  } else {
    cluster_local(&build.arena, &build.cluster);
  }
  build.default_task = cluster_default_task(&build.cluster);
  alarm(SECONDS_MAX);
  status result = data ? build_run(&build, data, size) : OK;
  alarm(0);
  outcomes[result]++;
  if (result == INTERNAL && !is_tensorflows())
    fail_msg("FUZZ_SEED=%llu: %s", (unsigned long long)seed, status_text());
  if (build.arena.total > MEMORY_MAX)
    fail_msg("FUZZ_SEED=%llu: %zu bytes of memory", (unsigned long long)seed, build.arena.total);
  arena_deinit(&build.arena);
  arena_deinit(&arena);
}

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void damaged_graphs_are_compiled_or_refused(void **state) {
  (void)state;
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGALRM};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    signal(numbers[i], say_seed);
  corpus_walk(SOURCE_DIR "/tests/golden", 0);
  assert_true(corpus_count > 100);
  uint64_t seed = setting("FUZZ_SEED", 1), seconds = setting("FUZZ_SECONDS", 0), runs = seconds ? 0 : setting("FUZZ_RUNS", RUNS), done = 0;
  for (time_t start = time(NULL); done < runs || time(NULL) < start + (time_t)seconds; done++)
    run(seed + done);
  printf("%llu damaged graphs: %lu of them compiled\n", (unsigned long long)done, outcomes[OK]);
  assert_true(done < 100 || outcomes[OK] > done / 10); /* else the damage is too great to reach the passes */
  for (size_t i = 0; i < corpus_count; i++)
    free(corpus[i].data);
  free(corpus);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_graphs_are_compiled_or_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
