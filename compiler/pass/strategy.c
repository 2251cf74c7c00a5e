/* strategy.c: a single-machine training graph is made one replica's of a cluster (--strategy).
 *
 *   ps-async    variables go round the tasks of job ps, everything else to each worker; workers do not wait for each other
 *   ps-sync     the same, but each gradient is the mean of all workers' (CollectiveReduce on the variable's task), and is applied
 *               once for all (sync.c)
 *   allreduce   each worker has its own copy of everything; gradients are the mean of all workers'
 * The mean is put in front of every op that applies a dense gradient. This pass rewrites the graph before placement, so that
 * placement, lowering and partitioning need not know of strategies.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/pass/pass.h"
#include "ir/registry.h"

#define JOB_WORKERS "worker"
#define JOB_PS "ps"

static uint32_t job_size(const struct build *b, const char *job) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->cluster.tasks.count; i++)
    count += strcmp(b->cluster.tasks.items[i].job, job) == 0;
  return count;
}

static bool uses_ps(const struct build *b) { return strncmp(b->options.strategy, "ps-", 3) == 0; }

static status check_cluster(struct build *b) {
  const char *strategy = b->options.strategy;
  if (strcmp(strategy, "mirrored") == 0)
    return fail(UNIMPLEMENTED, "--strategy mirrored: several devices in one task");
  if (strcmp(strategy, "ps-async") != 0 && strcmp(strategy, "ps-sync") != 0 && strcmp(strategy, "allreduce") != 0)
    return fail(INVALID_ARGUMENT, "--strategy %s: there are ps-async, ps-sync, allreduce and mirrored", strategy);
  if (job_size(b, JOB_WORKERS) == 0)
    return fail(INVALID_ARGUMENT, "--strategy %s needs a job 'worker' in the cluster", strategy);
  if (uses_ps(b) && job_size(b, JOB_PS) == 0)
    return fail(INVALID_ARGUMENT, "--strategy %s needs a job 'ps' in the cluster", strategy);
  if (b->options.replicate && strcmp(b->options.replicate, JOB_WORKERS) != 0)
    return fail(INVALID_ARGUMENT, "--strategy %s replicates the job 'worker', not '%s'", strategy, b->options.replicate);
  return OK;
}

/* ---- devices ---- */

static bool is_variable(const char *op) {
  return strcmp(op, "VarHandleOp") == 0 || strcmp(op, "VariableV2") == 0 || strcmp(op, "Variable") == 0;
}

/* Asked to be where another node is: variables often name themselves. */
static bool is_colocated(const struct node *node) {
  const struct attr_value *class = attr_find(node->attrs, node->attr_count, "_class");
  for (uint32_t i = 0; class && class->kind == ATTR_LIST && i < class->list.count; i++) {
    const char *text = class->list.items[i].kind == ATTR_STRING ? class->list.items[i].s.data : "";
    if (strncmp(text, "loc:@", 5) == 0 && strcmp(text + 5, node->name) != 0)
      return true;
  }
  return false;
}

/* The device that a node asks for, on a task of the strategy's choice; the graph may name no job. */
static status node_move(struct build *b, struct node *node, const char *where) {
  if (strstr(node->device, "/job:"))
    return fail(INVALID_ARGUMENT, "%s (%s): is on '%s': --strategy takes graphs of a single machine", node->name, node->op,
                node->device);
  node->device = arena_printf(&b->arena, "%s%s%s", where, *node->device && *node->device != '/' ? "/" : "", node->device);
  return OK;
}

/* Takes a variable, or another resource: placement keeps the two together. */
static bool takes_resource(const struct node *node) {
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->input_dtypes && (node->input_dtypes[i] > DTYPE_REF || node->input_dtypes[i] == DTYPE_RESOURCE))
      return true;
  return false;
}

static status move_nodes(struct build *b) {
  uint32_t ps = uses_ps(b) ? job_size(b, JOB_PS) : 0, turn = 0;
  for (uint32_t i = 0; i < b->model.graph->nodes.count; i++) {
    struct node *node = &b->model.graph->nodes.items[i];
    const char *where = "/job:" JOB_WORKERS;
    if (ps && is_variable(node->op)) {
      if (is_colocated(node))
        continue; /* goes where its fellow goes */
      where = arena_printf(&b->arena, "/job:" JOB_PS "/task:%u", turn++ % ps);
    } else if (ps && (is_colocated(node) || takes_resource(node))) {
      continue;
    }
    TRY(node_move(b, node, where));
  }
  return OK;
}

/* ---- means ---- */

/* The number of the input that is the gradient; UINT32_MAX when the op applies none. */
static uint32_t gradient_input(const struct node *node) {
  if (!node->def || (strncmp(node->op, "Apply", 5) != 0 && strncmp(node->op, "ResourceApply", 13) != 0))
    return UINT32_MAX;
  for (uint32_t i = 0; i < node->def->input_count; i++)
    if (strcmp(node->def->inputs[i].name, "grad") == 0 || strcmp(node->def->inputs[i].name, "delta") == 0)
      return i;
  return UINT32_MAX;
}

static bool applies_rows(const struct node *node) {
  return strncmp(node->op, "SparseApply", 11) == 0 || strncmp(node->op, "ResourceSparseApply", 19) == 0;
}

static struct attr text_attr(struct arena *arena, const char *name, const char *text) {
  struct attr attr = {.name = name, .value = {.kind = ATTR_STRING}};
  attr.value.s.data = arena_strdup(arena, text);
  attr.value.s.size = strlen(text);
  return attr;
}

/* A list of one string: the node goes where that one goes. */
static struct attr class_attr(struct arena *arena, const char *node) {
  struct attr_value *item = ARENA_NEW(arena, struct attr_value);
  *item = text_attr(arena, "", arena_printf(arena, "loc:@%s", node)).value;
  struct attr attr = {.name = "_class", .value = {.kind = ATTR_LIST}};
  attr.value.list.items = item;
  attr.value.list.count = 1;
  return attr;
}

/* A node that gives the mean of an edge over all workers, beside `apply`. */
static uint32_t add_mean(struct build *b, uint32_t apply, struct edge gradient, uint32_t number) {
  struct arena *a = &b->arena;
  struct graph *graph = b->model.graph;
  struct node *at = &graph->nodes.items[apply];
  uint8_t *dtype = ARENA_ARRAY(a, uint8_t, 1);
  struct edge *input = ARENA_NEW(a, struct edge);
  struct attr *attrs = ARENA_ARRAY(a, struct attr, 8);
  *dtype = graph->nodes.items[gradient.node].output_dtypes[gradient.port];
  *input = gradient;
  attrs[0] = attr_of_type("T", dtype_base(*dtype));
  attrs[1] = class_attr(a, at->name);
  attrs[2] = text_attr(a, "final_op", "Div");
  attrs[3] = attr_of_int("group_key", 0);
  attrs[4] = attr_of_int("group_size", job_size(b, JOB_WORKERS));
  attrs[5] = attr_of_int("instance_key", number);
  attrs[6] = text_attr(a, "merge_op", "Add");
  attrs[7] = (struct attr){.name = "subdiv_offsets", .value = {.kind = ATTR_LIST}};
  struct node mean = {.name = arena_printf(a, "%s/mean_gradient", at->name), .op = "CollectiveReduce", .device = "", .attrs = attrs,
                      .attr_count = 8, .inputs = input, .input_count = 1, .def = registry_find("CollectiveReduce"),
                      .output_dtypes = dtype, .input_dtypes = dtype, .output_count = 1};
  if (!uses_ps(b))
    mean.device = "/job:" JOB_WORKERS;
  vec_push(&graph->nodes, mean);
  map_insert(&graph->names, mean.name, graph->nodes.count - 1);
  return graph->nodes.count - 1;
}

static status add_means(struct build *b) {
  struct graph *graph = b->model.graph;
  uint32_t count = graph->nodes.count, means = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct node *node = &graph->nodes.items[i];
    if (applies_rows(node))
      return fail(UNIMPLEMENTED, "%s (%s): --strategy %s with gradients of single rows", node->name, node->op, b->options.strategy);
    uint32_t at = gradient_input(node);
    if (at == UINT32_MAX || at >= node->input_count)
      continue;
    struct edge *inputs = arena_copy(&b->arena, node->inputs, sizeof *inputs * node->input_count);
    inputs[at] = (struct edge){add_mean(b, i, inputs[at], means++), 0};
    graph->nodes.items[i].inputs = inputs;
  }
  return OK;
}

status pass_strategy(struct build *b) {
  if (!b->options.strategy)
    return OK;
  TRY(check_cluster(b));
  b->options.replicate = JOB_WORKERS;
  TRY(move_nodes(b));
  return strcmp(b->options.strategy, "ps-async") == 0 ? OK : add_means(b);
}
