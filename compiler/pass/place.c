/* place.c: a device for every node, as TensorFlow's placer chooses: the first device, in a fixed order, that a node's
 * colocation group asks for. The local task comes first: the replica's own, or the build's default task. Two preferences
 * apply where a group leaves the choice: a node without inputs goes where all its users are, Shape, Size and Rank go where
 * their input is.
 *
 * Unlike TensorFlow a GPU is only taken when it is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "compiler/pass/colocate.h"
#include "compiler/pass/pass.h"
#include "ir/graph/function.h"
#include "ir/graph/registry.h"

#define GPUS_OF_A_TASK 8 /* which of them exist is known only where the task runs */
#define DEVICES_SHOWN 12 /* in an error */
#define NO_DEVICE UINT32_MAX
#define MANY_DEVICES (UINT32_MAX - 1)

struct device {
  struct device_spec spec;
  uint32_t task;
  const char *name;
};
struct placer {
  struct build *build;
  struct graph *graph;
  struct colocation colocation;
  VEC(struct device) devices; /* the local task's first, then by job and index; a task's CPU first */
  struct map found;           /* text of what is asked for -> device */
  uint32_t *assigned;         /* of each node: its device */
  uint32_t *group_device;     /* of each group, by root, once a member is placed */
};

/* ---- the devices ---- */

static void task_devices_add(struct placer *p, const char *job, uint32_t index, uint32_t task) {
  struct arena *arena = &p->build->arena;
  int gpus = p->build->options.gpu ? GPUS_OF_A_TASK : 0;
  for (int i = 0; i <= gpus; i++) {
    struct device device = {.task = task};
    device.spec = (struct device_spec){job, i ? "GPU" : "CPU", 0, index, i ? i - 1 : 0};
    const char *type = device.spec.type;
    device.name = task == TASK_SELF ? arena_printf(arena, "/job:%s/replica:0/task:*/device:%s:%d", job, type, i ? i - 1 : 0)
                                    : device_text(arena, &device.spec);
    vec_push(&p->devices, device);
  }
}

static bool has_job(const struct cluster *cluster, const char *job) {
  for (uint32_t i = 0; i < cluster->tasks.count; i++)
    if (strcmp(cluster->tasks.items[i].job, job) == 0)
      return true;
  return false;
}

static void offer_jobs(const struct cluster *cluster, const char *job, struct nearest *out) {
  nearest_begin(out, job);
  for (uint32_t i = 0; i < cluster->tasks.count; i++)
    if (i == 0 || strcmp(cluster->tasks.items[i].job, cluster->tasks.items[i - 1].job) != 0)
      nearest_add(out, cluster->tasks.items[i].job);
}

/* Of a job that nodes ask for: rather than the graph the cluster is wrong. */
static const char *cluster_lacks(const struct placer *p, const char *job) {
  const struct cluster *cluster = &p->build->cluster;
  struct arena *arena = &p->build->arena;
  const char *file = p->build->options.cluster_path;
  struct nearest nearest;
  char text[512];
  if (!*cluster->tasks.items[0].address)
    return arena_printf(arena, "no --cluster was given, it has to have a job '%s'", job);
  offer_jobs(cluster, job, &nearest);
  const char *list = nearest_list(&nearest, ", it has: ", text, sizeof text), *meant = nearest_meant(&nearest);
  const char *asks = meant ? arena_printf(arena, "; is '%s' in it a misspelling of '%s'?", meant, job) : "";
  return arena_printf(arena, "%s has no job '%s'%s%s", file ? file : "the cluster", job, list, asks);
}

static status no_such_job(const struct placer *p, const char *job) {
  struct nearest nearest;
  char text[512];
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->graph->nodes.count; i++)
    count += p->colocation.own[i].job && strcmp(p->colocation.own[i].job, job) == 0;
  if (count)
    return fail(INVALID_ARGUMENT, "--replicate %s, on which the graph places %u node%s: %s", job, count, count == 1 ? "" : "s",
                cluster_lacks(p, job));
  offer_jobs(&p->build->cluster, job, &nearest);
  return fail(INVALID_ARGUMENT, "--replicate %s: the cluster has no job of this name%s", job,
              nearest_text(&nearest, ", it has: ", text, sizeof text));
}

static status devices_make(struct placer *p) {
  const struct cluster *cluster = &p->build->cluster;
  const char *replicated = build_replicated(p->build);
  if (replicated && !has_job(cluster, replicated))
    return no_such_job(p, replicated);
  if (replicated)
    task_devices_add(p, replicated, 0, TASK_SELF);
  else
    task_devices_add(p, cluster->tasks.items[p->build->default_task].job, cluster->tasks.items[p->build->default_task].index,
                     p->build->default_task);
  for (uint32_t i = 0; i < cluster->tasks.count; i++) {
    const struct cluster_task *task = &cluster->tasks.items[i];
    bool first = replicated ? !strcmp(task->job, replicated) : i == p->build->default_task;
    if (!first)
      task_devices_add(p, task->job, task->index, i);
  }
  return OK;
}

/* The graph of a replica may only name the replica's own task. */
static status replicas_check(struct placer *p) {
  const char *replicated = build_replicated(p->build);
  for (uint32_t i = 0; replicated && i < p->graph->nodes.count; i++) {
    const struct device_spec *own = &p->colocation.own[i];
    if (own->job && !strcmp(own->job, replicated) && own->task > 0)
      return fail(INVALID_ARGUMENT,
                  "%s (%s): is on '%s', but with --replicate %s the graph is one replica's: it may name "
                  "/job:%s with no task or with task 0",
                  p->graph->nodes.items[i].name, p->graph->nodes.items[i].op, p->graph->nodes.items[i].device, replicated, replicated);
  }
  return OK;
}

/* ---- what cannot be had ---- */

static int device_name_compare(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static const char *devices_text(struct placer *p) {
  struct arena *arena = &p->build->arena;
  uint32_t count = p->devices.count;
  const char **names = ARENA_ARRAY(arena, const char *, count);
  for (uint32_t i = 0; i < count; i++)
    names[i] = p->devices.items[i].name;
  qsort(names, count, sizeof *names, device_name_compare);
  const char *text = "";
  for (uint32_t i = 0; i < count && i < DEVICES_SHOWN; i++)
    text = arena_printf(arena, "%s%s%s", text, i ? ", " : "", names[i]);
  return count > DEVICES_SHOWN ? arena_printf(arena, "%s, ... (%u devices)", text, count) : text;
}

/* In TensorFlow's words, then in ours. */
static status device_missing(struct placer *p, uint32_t node, const struct device_spec *wanted) {
  struct arena *arena = &p->build->arena;
  const struct node *n = &p->graph->nodes.items[node];
  const struct device_spec *own = &p->colocation.own[node];
  bool gpu = own->type && !strcmp(own->type, "GPU");
  const char *lacks = !wanted->job || has_job(&p->build->cluster, wanted->job) ? "" : cluster_lacks(p, wanted->job);
  const char *gap = *lacks ? "; " : "";
  if (device_equal(own, wanted))
    return fail(INVALID_ARGUMENT,
                "Cannot assign a device for operation %s: {{node %s}} was explicitly assigned to %s but available devices are "
                "[ %s ]. Make sure the device specification refers to a valid device.%s [[{{node %s}}]]%s%s",
                n->name, n->name, n->device, devices_text(p),
                gpu && !p->build->options.gpu ? " The requested device appears to be a GPU, but CUDA is not enabled." : "", n->name, gap,
                lacks);
  return fail(INVALID_ARGUMENT,
              "Cannot assign a device for operation %s: Could not satisfy explicit device specification '%s' because the node "
              "{{colocation_node %s}} was colocated with a group of nodes that required incompatible device '%s'. All "
              "available devices [%s]. [[{{node %s}}]]%s%s",
              n->name, n->device, n->name, device_text(arena, wanted), devices_text(p), n->name, gap, lacks);
}

/* ---- choosing ---- */

static uint32_t device_search(const struct placer *p, const struct device_spec *wanted) {
  for (uint32_t i = 0; i < p->devices.count; i++)
    if (device_matches(wanted, &p->devices.items[i].spec))
      return i;
  return NO_DEVICE;
}

/* The first device of that kind; searches are remembered, as a graph asks for few different ones. */
static uint32_t device_choose(struct placer *p, const struct device_spec *wanted) {
  const char *text = device_text(&p->build->arena, wanted);
  uint32_t device;
  if (map_find(&p->found, text, &device))
    return device;
  device = device_search(p, wanted);
  if (device == NO_DEVICE && p->build->options.soft_placement) {
    struct device_spec soft = *wanted;
    soft.type = NULL;
    soft.id = DEVICE_OPEN;
    device = device_search(p, &soft);
  }
  map_insert(&p->found, text, device);
  return device;
}

/* Whether the node's group may go there. */
static bool device_is_allowed(const struct placer *p, uint32_t node, uint32_t device) {
  uint32_t root = colocation_root(&p->colocation, node);
  if (device >= p->devices.count)
    return false;
  if (p->group_device[root] != NO_DEVICE)
    return p->group_device[root] == device;
  return device_matches(&p->colocation.groups[root].requested, &p->devices.items[device].spec);
}

static status node_place(struct placer *p, uint32_t node, uint32_t preferred) {
  uint32_t root = colocation_root(&p->colocation, node), device = p->group_device[root];
  if (device == NO_DEVICE && device_is_allowed(p, node, preferred))
    device = preferred;
  if (device == NO_DEVICE)
    device = device_choose(p, &p->colocation.groups[root].requested);
  if (device == NO_DEVICE)
    return device_missing(p, node, &p->colocation.groups[root].requested);
  p->group_device[root] = device;
  p->assigned[node] = device;
  return OK;
}

/* No inputs, and one output that is no reference: placed after its users. */
static bool is_generator(const struct node *node) {
  return node->input_count == 0 && node->output_count == 1 && node->output_dtypes[0] < DTYPE_REF;
}

static bool is_metadata(const struct node *node) {
  return node->input_count && (!strcmp(node->op, "Shape") || !strcmp(node->op, "Size") || !strcmp(node->op, "Rank"));
}

static void user_note(uint32_t *shared, uint32_t device) {
  if (*shared == NO_DEVICE)
    *shared = device;
  else if (*shared != device)
    *shared = MANY_DEVICES;
}

/* Of each node: the device that all its users are on; NO_DEVICE without users, MANY_DEVICES when they differ. */
static uint32_t *users_devices(const struct placer *p) {
  const struct graph *graph = p->graph;
  uint32_t *shared = ARENA_ARRAY(&p->build->arena, uint32_t, graph->nodes.count + 1);
  memset(shared, 0xff, sizeof *shared * (graph->nodes.count + 1));
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    uint32_t device = p->assigned[i] == NO_DEVICE ? MANY_DEVICES : p->assigned[i];
    for (uint32_t k = 0; k < node->input_count; k++)
      user_note(&shared[node->inputs[k].node], device);
    for (uint32_t k = 0; k < node->control_count; k++)
      user_note(&shared[node->controls[k]], device);
  }
  return shared;
}

static status nodes_place(struct placer *p) {
  for (uint32_t i = 0; i < p->graph->nodes.count; i++) {
    const struct node *node = &p->graph->nodes.items[i];
    if (is_generator(node))
      continue;
    TRY(node_place(p, i, is_metadata(node) ? p->assigned[node->inputs[0].node] : NO_DEVICE));
  }
  const uint32_t *shared = users_devices(p);
  for (uint32_t i = 0; i < p->graph->nodes.count; i++)
    if (p->assigned[i] == NO_DEVICE)
      TRY(node_place(p, i, shared[i]));
  return OK;
}

/* What a batched function is made of is placed like the rest when the function is called. */
static status batched_check(struct placer *p, const struct node *node) {
  const struct attr_value *f = node_attr(node, "f");
  const struct function *function = f && f->kind == ATTR_FUNC ? function_find(p->graph, f->func->name) : NULL;
  for (uint32_t i = 0; function && i < function->body->node_count; i++) {
    const struct function_node *n = &function->body->nodes[i];
    struct device_spec wanted;
    if (!device_parse(&p->build->arena, n->device ? n->device : "", &wanted))
      return fail(INVALID_ARGUMENT, "Malformed device specification '%s' in node: %s (%s)", n->device, n->name, n->op);
    if (device_search(p, &wanted) == NO_DEVICE)
      return fail(INVALID_ARGUMENT,
                  "%s (%s): Cannot assign a device for operation %s: {{node %s}} was explicitly assigned to %s but available "
                  "devices are [ %s ].",
                  node->name, node->op, n->name, n->name, n->device, devices_text(p));
  }
  return OK;
}

static status functions_check(struct placer *p) {
  for (uint32_t i = 0; i < p->graph->nodes.count && !p->build->options.soft_placement; i++)
    if (strcmp(p->graph->nodes.items[i].op, "BatchFunction") == 0)
      TRY(batched_check(p, &p->graph->nodes.items[i]));
  return OK;
}

static void placement_write(struct placer *p) {
  for (uint32_t i = 0; i < p->graph->nodes.count; i++) {
    struct node *node = &p->graph->nodes.items[i];
    node->task = p->devices.items[p->assigned[i]].task;
    node->assigned = p->devices.items[p->assigned[i]].name;
    if (p->build->options.log_device_placement)
      printf("%s: (%s): %s\n", node->name, node->op, node->assigned);
  }
}

status pass_place(struct build *build) {
  struct placer p = {.build = build, .graph = build->model.graph};
  uint32_t count = p.graph->nodes.count;
  p.assigned = ARENA_ARRAY(&build->arena, uint32_t, count + 1);
  p.group_device = ARENA_ARRAY(&build->arena, uint32_t, count + 1);
  memset(p.assigned, 0xff, sizeof(uint32_t) * (count + 1));
  memset(p.group_device, 0xff, sizeof(uint32_t) * (count + 1));
  status result = colocation_make(build, &p.colocation);
  if (result == OK)
    result = devices_make(&p);
  if (result == OK)
    result = replicas_check(&p);
  if (result == OK)
    result = nodes_place(&p);
  if (result == OK)
    result = functions_check(&p);
  if (result == OK)
    placement_write(&p);
  vec_free(&p.devices);
  map_deinit(&p.found);
  return result;
}
