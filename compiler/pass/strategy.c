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

static status parse(const char *text, enum strategy *out) {
  static const struct {
    const char *name;
    enum strategy strategy;
  } names[] = {{"ps-async", STRATEGY_PS_ASYNC}, {"ps-sync", STRATEGY_PS_SYNC}, {"allreduce", STRATEGY_ALLREDUCE}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(text, names[i].name) == 0) {
      *out = names[i].strategy;
      return OK;
    }
  if (strcmp(text, "mirrored") == 0)
    return fail(UNIMPLEMENTED, "--strategy mirrored: several devices in one task");
  return fail(INVALID_ARGUMENT, "--strategy %s: there are ps-async, ps-sync, allreduce and mirrored", text);
}

static status check_cluster(struct build *b) {
  const char *strategy = b->options.strategy;
  if (job_size(b, JOB_WORKERS) == 0)
    return fail(INVALID_ARGUMENT, "--strategy %s needs a job 'worker' in the cluster", strategy);
  if (b->strategy != STRATEGY_ALLREDUCE && job_size(b, JOB_PS) == 0)
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
  TRY(parse(b->options.strategy, &b->strategy));
  TRY(check_cluster(b));
  b->replicated_job = JOB_WORKERS;
  for (uint32_t i = 0; i < b->model.graph->nodes.count; i++)
    TRY(node_move(b, &b->model.graph->nodes.items[i]));
  return OK;
}
