/* strategy.c: a single-machine training graph is made one replica's of a cluster (--strategy): every node goes to the worker. What
 * becomes of the variables, of their updates and gradients is decided after lowering (spread.c). */
#include <string.h>

#include "compiler/pass/pass.h"

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

/* The device that a node asks for, on the worker; the graph may name no job. */
static status node_move(struct build *b, struct node *node) {
  if (strstr(node->device, "/job:"))
    return fail(INVALID_ARGUMENT, "%s (%s): is on '%s': --strategy takes graphs of a single machine", node->name, node->op, node->device);
  node->device = arena_printf(&b->arena, "/job:" JOB_WORKERS "%s%s", *node->device && *node->device != '/' ? "/" : "", node->device);
  return OK;
}

status pass_strategy(struct build *b) {
  if (!b->options.strategy)
    return OK;
  TRY(check_cluster(b));
  b->options.replicate = JOB_WORKERS;
  for (uint32_t i = 0; i < b->model.graph->nodes.count; i++)
    TRY(node_move(b, &b->model.graph->nodes.items[i]));
  return OK;
}
