/* job.c: graphs as text, through the compiler's passes, into memory. */
#include "tests/simulator/job.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/build.h"
#include "compiler/pipeline.h"
#include "targets/target.h"
#include "tests/support/temp_path.h"

static void must(bool good, const char *what) {
  if (good)
    return;
  fprintf(stderr, "the simulator's jobs cannot be built: %s: %s\n", what, status_text());
  exit(2);
}

/* Kernels of all tasks of a job, each as an object of its own. */
static const void *load_kernels(const struct emitted *emitted, const char *folder, uint32_t task) {
  char object[160], library[160], command[512];
  struct target_unit unit = {.kernels = emitted->kernels.items, .count = emitted->kernels.count};
  struct target_options options = {.cpu = "native"};
  snprintf(object, sizeof object, "%s/k%u.o", folder, task);
  snprintf(library, sizeof library, "%s/k%u.so", folder, task);
  snprintf(command, sizeof command, "cc -shared -o %s -Wl,--whole-archive %s -Wl,--no-whole-archive -lm", library, object);
  must(target_find("cpu")->compile(&options, &unit, object) == OK, "kernels");
  must(system(command) == 0, command);
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  must(handle != NULL, library);
  unlink(object);
  unlink(library);
  return dlsym(handle, "tfc_kernels");
}

static struct job *compile(const char *name, struct build *build, const char *folder) {
  struct job *job = calloc(1, sizeof *job);
  must(job != NULL, "memory");
  job->name = name;
  arena_init(&build->arena);
  must(pipeline_run(build) == OK, name);
  job->task_count = build->cluster.tasks.count;
  must(job->task_count <= JOB_TASKS_MAX, "tasks");
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct cluster_task *task = &build->cluster.tasks.items[i];
    struct emitted emitted = {0};
    struct job_task *out = &job->tasks[i];
    must(build_emit(build, i, &emitted) == OK, name);
    out->program = emitted.program;
    out->kernels = load_kernels(&emitted, folder, i);
    out->is_ps = strcmp(task->job, "ps") == 0;
    job->ps_count += out->is_ps;
    job->worker_count += !out->is_ps;
    snprintf(out->name, sizeof out->name, "%s_%u", task->job, task->index);
  }
  return job;
}

/* ps i is machine mi, worker i is the one behind the last ps. */
static void write_cluster(const char *path, uint32_t ps_count, uint32_t worker_count) {
  FILE *out = fopen(path, "w");
  must(out != NULL, path);
  fprintf(out, "{");
  for (uint32_t i = 0; i < ps_count; i++)
    fprintf(out, "%s\"m%u:%u\"%s", i ? ", " : "\"ps\": [", i, 2000 + i, i + 1 == ps_count ? "], " : "");
  for (uint32_t i = 0; i < worker_count; i++)
    fprintf(out, "%s\"m%u:%u\"", i ? ", " : "\"worker\": [", ps_count + i, 2000 + ps_count + i);
  fprintf(out, "]}");
  fclose(out);
}

/* ---- the counting graph ---- */

#define TYPE(key, type) " attr { key: \"" key "\" value { type: " type " } }"
#define DEVICE_PS " device: \"/job:ps/task:%u\""
#define DEVICE_WORKER " device: \"/job:worker/task:0\""

static void write_assigned(FILE *out, const char *name, uint32_t ps, uint32_t size, const char *first) {
  fprintf(out,
          "node { name: \"%s_%u\" op: \"VarHandleOp\"" DEVICE_PS TYPE(
            "dtype", "DT_FLOAT") " attr { key: \"shape\" value { shape { dim { size: %u } } } } attr { key: \"shared_name\" value { s: "
                                 "\"%s_%u\" } } }\n",
          name, ps, ps, size, name, ps);
  fprintf(out,
          "node { name: \"%s_%u/Assign\" op: \"AssignVariableOp\"" DEVICE_PS
          " input: \"%s_%u\" input: \"%s_%u/%s\"" TYPE("dtype", "DT_FLOAT") " }\n",
          name, ps, ps, name, ps, name, ps, first);
}

static void write_variable(FILE *out, const char *name, uint32_t ps, uint32_t size) {
  fprintf(out,
          "node { name: \"%s_%u/zeros\" op: \"Const\"" DEVICE_PS TYPE(
            "dtype",
            "DT_FLOAT") " attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: %u } } float_val: 0 } } } }\n",
          name, ps, ps, size);
  write_assigned(out, name, ps, size, "zeros");
}

/* Counts k, and adds what `value` names, of which each ps may have its own. */
static void write_ps(FILE *out, uint32_t ps, const char *value) {
  write_variable(out, "hits", ps, JOB_HITS);
  write_variable(out, "sum", ps, 1);
  fprintf(out,
          "node { name: \"one_%u\" op: \"Const\"" DEVICE_PS TYPE(
            "dtype",
            "DT_FLOAT") " attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 1 } } } }\n",
          ps, ps);
  fprintf(out,
          "node { name: \"hit_%u\" op: \"ResourceScatterAdd\"" DEVICE_PS
          " input: \"hits_%u\" input: \"k\" input: \"one_%u\"" TYPE("dtype", "DT_FLOAT") TYPE("Tindices", "DT_INT32") " }\n",
          ps, ps, ps, ps);
  fprintf(out,
          "node { name: \"add_%u\" op: \"AssignAddVariableOp\"" DEVICE_PS
          " input: \"sum_%u\" input: \"%s\"" TYPE("dtype", "DT_FLOAT") " }\n",
          ps, ps, ps, value);
}

/* A float that is drawn, from 1 to 64. */
static void write_draw(FILE *out, const char *name, const char *device, int seed) {
  static const struct {
    const char *name, *value;
  } constants[] = {{"shape", "tensor_shape { dim { size: 1 } } int_val: 1"},
                   {"least", "tensor_shape { } int_val: 1"},
                   {"most", "tensor_shape { } int_val: 65"}};
  for (int i = 0; i < 3; i++)
    fprintf(out,
            "node { name: \"%s/%s\" op: \"Const\" device: \"%s\"" TYPE(
              "dtype", "DT_INT32") " attr { key: \"value\" value { tensor { dtype: DT_INT32 %s } } } }\n",
            name, constants[i].name, device, constants[i].value);
  fprintf(
    out,
    "node { name: \"%s/whole\" op: \"RandomUniformInt\" device: \"%s\" input: \"%s/shape\" input: \"%s/least\" input: \"%s/most\"" TYPE(
      "T", "DT_INT32") TYPE("Tout", "DT_INT32") " attr { key: \"seed\" value { i: %d } } }\n",
    name, device, name, name, name, seed);
  fprintf(out,
          "node { name: \"%s\" op: \"Cast\" device: \"%s\" input: \"%s/whole\"" TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_FLOAT") " }\n",
          name, device, name);
}

/* What begins with a value that the chief draws, and is added to as workers draw; and one that stays as the ps drew it. */
static void write_drawn(FILE *out, uint32_t ps) {
  static const char *const variables[] = {"drawn", "kept"};
  char name[32], device[64];
  snprintf(device, sizeof device, "/job:ps/task:%u", ps);
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, "%s_%u/first", variables[i], ps);
    write_draw(out, name, i == 0 ? "/job:worker/task:0" : device, (int)(11 + 2 * ps) + i);
    write_assigned(out, variables[i], ps, 1, "first");
  }
  fprintf(out,
          "node { name: \"draw_%u\" op: \"AssignAddVariableOp\"" DEVICE_PS
          " input: \"drawn_%u\" input: \"draw\"" TYPE("dtype", "DT_FLOAT") " }\n",
          ps, ps, ps);
}

/* A queue of numbers, of which each step takes the next. */
static void write_tickets(FILE *out, uint32_t ps) {
  fprintf(
    out,
    "node { name: \"tickets_%u\" op: \"FIFOQueueV2\"" DEVICE_PS
    " attr { key: \"component_types\" value { list { type: DT_INT32 } } } attr { key: \"shapes\" value { list { shape { dim { size: 1 } "
    "} } } } attr { key: \"shared_name\" value { s: \"tickets_%u\" } } }\n",
    ps, ps, ps);
  fprintf(
    out,
    "node { name: \"numbers_%u\" op: \"Const\"" DEVICE_PS TYPE(
      "dtype", "DT_INT32") " attr { key: \"value\" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: %u } dim { size: 1 } }",
    ps, ps, JOB_HITS);
  for (uint32_t i = 0; i < JOB_HITS; i++)
    fprintf(out, " int_val: %u", i);
  fprintf(out, " } } } }\n");
  fprintf(out,
          "node { name: \"fill_%u\" op: \"QueueEnqueueManyV2\"" DEVICE_PS
          " input: \"tickets_%u\" input: \"numbers_%u\" attr { key: \"Tcomponents\" value { list { type: DT_INT32 } } } }\n",
          ps, ps, ps, ps);
  fprintf(out,
          "node { name: \"ticket_%u\" op: \"QueueDequeueV2\"" DEVICE_PS
          " input: \"tickets_%u\" attr { key: \"component_types\" value { list { type: DT_INT32 } } } }\n",
          ps, ps, ps);
  write_variable(out, "taken", ps, JOB_HITS);
  fprintf(out,
          "node { name: \"take_%u\" op: \"ResourceScatterAdd\"" DEVICE_PS
          " input: \"taken_%u\" input: \"ticket_%u\" input: \"one_%u\"" TYPE("dtype", "DT_FLOAT") TYPE("Tindices", "DT_INT32") " }\n",
          ps, ps, ps, ps, ps);
}

/* What a ps has counted and taken goes to the worker, whose answer, x, it then adds: it waits amid its changes. */
static void write_asking(FILE *out, uint32_t ps) {
  fprintf(out,
          "node { name: \"seen_%u\" op: \"ResourceGather\"" DEVICE_PS
          " input: \"hits_%u\" input: \"k\" input: \"^hit_%u\"" TYPE("dtype", "DT_FLOAT") TYPE("Tindices", "DT_INT32") " }\n",
          ps, ps, ps, ps);
  write_tickets(out, ps);
  fprintf(out,
          "node { name: \"real_%u\" op: \"Cast\"" DEVICE_WORKER " input: \"ticket_%u\"" TYPE("SrcT", "DT_INT32")
            TYPE("DstT", "DT_FLOAT") " }\n",
          ps, ps);
  fprintf(out, "node { name: \"both_%u\" op: \"AddV2\"" DEVICE_WORKER " input: \"real_%u\" input: \"seen_%u\"" TYPE("T", "DT_FLOAT") " }\n",
          ps, ps, ps);
  fprintf(out, "node { name: \"less_%u\" op: \"Neg\"" DEVICE_WORKER " input: \"both_%u\"" TYPE("T", "DT_FLOAT") " }\n", ps, ps);
  fprintf(out, "node { name: \"later_%u\" op: \"Maximum\"" DEVICE_WORKER " input: \"x\" input: \"less_%u\"" TYPE("T", "DT_FLOAT") " }\n",
          ps, ps);
}

enum counting { COUNTS, DRAWS, ASKS };

static void write_counting(const char *path, uint32_t ps_count, enum counting kind) {
  char value[32] = "x";
  FILE *out = fopen(path, "w");
  must(out != NULL, path);
  fprintf(out, "node { name: \"k\" op: \"Placeholder\"" DEVICE_WORKER TYPE(
                 "dtype", "DT_INT32") " attr { key: \"shape\" value { shape { dim { size: 1 } } } } }\n");
  fprintf(out, "node { name: \"x\" op: \"Placeholder\"" DEVICE_WORKER TYPE(
                 "dtype", "DT_FLOAT") " attr { key: \"shape\" value { shape { dim { size: 1 } } } } }\n");
  fprintf(out, "node { name: \"y\" op: \"AddV2\"" DEVICE_WORKER " input: \"x\" input: \"x\"" TYPE("T", "DT_FLOAT") " }\n");
  if (kind == DRAWS)
    write_draw(out, "draw", "/job:worker/task:0", 7);
  for (uint32_t ps = 0; ps < ps_count; ps++) {
    if (kind == ASKS)
      snprintf(value, sizeof value, "later_%u", ps);
    write_ps(out, ps, value);
    if (kind == ASKS)
      write_asking(out, ps);
    if (kind == DRAWS)
      write_drawn(out, ps);
  }
  fprintf(out, "versions { producer: 1882 }\n");
  fclose(out);
}

/* One of each ps, behind those that are there. */
static const char *add_targets(struct arena *arena, const char *text, const char *name, const char *suffix, uint32_t ps_count) {
  for (uint32_t ps = 0; ps < ps_count; ps++)
    text = arena_printf(arena, "%s%s%s_%u%s", text, text[strlen(text) - 2] == '|' ? "" : ", ", name, ps, suffix);
  return text;
}

static void add_entries(struct build *build, struct arena *arena, uint32_t ps_count, enum counting kind) {
  static const char *const made[][5] = {{"hits", "sum"}, {"hits", "sum", "drawn", "kept"}, {"hits", "sum", "taken"}};
  static const char *const done[][4] = {{"hit", "add"}, {"hit", "add", "draw"}, {"hit", "add", "take"}};
  const char *init = "init: -> | ", *train = "train: k, x -> y | ";
  for (int i = 0; made[kind][i]; i++)
    init = add_targets(arena, init, made[kind][i], "/Assign", ps_count);
  if (kind == ASKS)
    init = add_targets(arena, init, "fill", "", ps_count);
  for (int i = 0; done[kind][i]; i++)
    train = add_targets(arena, train, done[kind][i], "", ps_count);
  vec_push(&build->options.entries, init);
  vec_push(&build->options.entries, train);
}

/* A folder for the files of a build. */
struct place {
  char folder[TEMP_PATH_SIZE], graph[160], cluster[160];
};
static void place_make(struct place *place, uint32_t ps_count, uint32_t worker_count) {
  must(temp_folder(place->folder), "folder");
  snprintf(place->graph, sizeof place->graph, "%s/graph.pbtxt", place->folder);
  snprintf(place->cluster, sizeof place->cluster, "%s/cluster.json", place->folder);
  write_cluster(place->cluster, ps_count, worker_count);
}
static void place_remove(const struct place *place) {
  unlink(place->graph);
  unlink(place->cluster);
  rmdir(place->folder);
}

static struct job *make_counting(const char *name, uint32_t ps_count, uint32_t worker_count, enum counting kind) {
  struct place place;
  struct build build = {0};
  struct arena texts;
  place_make(&place, ps_count, worker_count);
  write_counting(place.graph, ps_count, kind);
  build.options =
    (struct build_options){.graph_path = place.graph, .cluster_path = place.cluster, .replicate = "worker", .cpu = "native", .quiet = true};
  arena_init(&texts);
  add_entries(&build, &texts, ps_count, kind);
  struct job *job = compile(name, &build, place.folder);
  place_remove(&place);
  job->feeds[0] = (struct job_feed){"k", false, 0};
  job->feeds[1] = (struct job_feed){"x", true, 0};
  job->batch = 1;
  job->fetch = "y";
  return job;
}

struct job *job_counting(const char *name, uint32_t ps_count, uint32_t worker_count) {
  return make_counting(name, ps_count, worker_count, COUNTS);
}
struct job *job_drawing(const char *name, uint32_t ps_count, uint32_t worker_count) {
  return make_counting(name, ps_count, worker_count, DRAWS);
}
struct job *job_asking(const char *name, uint32_t ps_count, uint32_t worker_count) {
  return make_counting(name, ps_count, worker_count, ASKS);
}

struct job *job_of_model(const char *name, const char *model, const char *strategy, uint32_t ps_count, uint32_t worker_count) {
  struct place place;
  struct build build = {0};
  char graph[512];
  place_make(&place, ps_count, worker_count);
  snprintf(graph, sizeof graph, SOURCE_DIR "/tests/golden/models/%s/graph.pb", model);
  build.options =
    (struct build_options){.graph_path = graph, .cluster_path = place.cluster, .strategy = strategy, .cpu = "native", .quiet = true};
  vec_push(&build.options.entries, "init: -> | init");
  vec_push(&build.options.entries, "train: x, label -> loss | train_op");
  struct job *job = compile(name, &build, place.folder);
  place_remove(&place);
  job->feeds[0] = (struct job_feed){"x", true, 64};
  job->feeds[1] = (struct job_feed){"label", false, 0};
  job->batch = 2;
  return job;
}

struct job *job_of_tokens(const char *name, const char *model, const char *init, uint32_t ps_count, uint32_t worker_count) {
  struct place place;
  struct build build = {0};
  char graph[512];
  place_make(&place, ps_count, worker_count);
  snprintf(graph, sizeof graph, SOURCE_DIR "/tests/golden/runners/%s/graph.meta", model);
  build.options = (struct build_options){.graph_path = graph, .cluster_path = place.cluster, .cpu = "native", .quiet = true};
  vec_push(&build.options.entries, init);
  vec_push(&build.options.entries, "train: x, y -> loss | Assign_1");
  struct job *job = compile(name, &build, place.folder);
  place_remove(&place);
  job->feeds[0] = (struct job_feed){"x", true, 4};
  job->feeds[1] = (struct job_feed){"y", true, 1};
  job->batch = 2;
  return job;
}
