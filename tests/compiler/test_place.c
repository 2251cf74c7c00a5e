/* test_place.c: where nodes go: by their device, by what they refer to, by _class, and by what is near. */
#include "compiler/pass/pass.h"
#include "tests/support/graph_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define CLUSTER "{\"ps\": [\"a:1\", \"a:2\"], \"worker\": [\"b:1\", \"b:2\"]}"
#define CHIEF "{\"chief\": [\"c:1\"], \"ps\": [\"a:1\"], \"worker\": [\"b:1\"]}"
#define VARIABLE "v VariableV2 /job:ps/task:1 dtype=FLOAT shape=2\n"
#define X(device) "x Placeholder " device " dtype=FLOAT\n"

struct place_case {
  const char *about, *cluster, *lines;
  const char *node;  /* whose place is asked for */
  const char *place; /* job_index, or `self` */
  const char *error; /* part of the error's text, or NULL */
  const char *replicate;
  bool soft;
};

static const struct place_case cases[] = {
  {"without a cluster all is local", NULL, X("-"), "x", "localhost_0", NULL, NULL, false},
  {"a local device of one task", NULL, X("/cpu:0"), "x", "localhost_0", NULL, NULL, false},
  {"a full name", CLUSTER, X("/job:ps/replica:0/task:1/device:CPU:0"), "x", "ps_1", NULL, NULL, false},
  {"no device is the default task", CLUSTER, X("-"), "x", "worker_0", NULL, NULL, false},
  {"the chief is the default task", CHIEF, X("-"), "x", "chief_0", NULL, NULL, false},
  {"a job alone is its local task", CLUSTER, X("/job:worker"), "x", "worker_0", NULL, NULL, false},
  {"a job without a local task is its first", CLUSTER, X("/job:ps"), "x", "ps_0", NULL, NULL, false},
  {"a task alone is of the first job that has it", CLUSTER, X("/task:1"), "x", "ps_1", NULL, NULL, false},
  {"an update goes to its variable", CLUSTER, VARIABLE X("-") "u Assign - v x T=FLOAT", "u", "ps_1", NULL, NULL, false},
  {"an update's own wish gives way", CLUSTER, VARIABLE X("-") "u Assign /job:worker/task:1 v x T=FLOAT", "u", "ps_1", NULL, NULL, false},
  {"a resource binds like a reference", CLUSTER,
   "h VarHandleOp /job:ps/task:1 dtype=FLOAT shape=2\nr ReadVariableOp /job:worker/task:0 h dtype=FLOAT", "r", "ps_1", NULL, NULL, false},
  {"a plain read of a reference may be elsewhere", CLUSTER, VARIABLE "r Identity /job:worker/task:1 v T=FLOAT", "r", "worker_1", NULL, NULL,
   false},
  {"_class brings nodes together", CLUSTER, VARIABLE "r Identity - v T=FLOAT _class=loc:@v", "r", "ps_1", NULL, NULL, false},
  {"_class of a missing node is a group of its own", CLUSTER, X("-") "y Identity - x T=FLOAT _class=loc:@gone", "y", "worker_0", NULL, NULL,
   false},
  {"a constant goes to its only user", CLUSTER, "c Const - dtype=FLOAT value=1\ny Identity /job:ps/task:1 c T=FLOAT", "c", "ps_1", NULL,
   NULL, false},
  {"a constant of users apart stays local", CLUSTER,
   "c Const - dtype=FLOAT value=1\ny Identity /job:ps/task:1 c T=FLOAT\nz Identity /job:ps/task:0 c T=FLOAT", "c", "worker_0", NULL, NULL,
   false},
  {"Shape goes to its input", CLUSTER, X("-") "y Identity /job:ps/task:1 x T=FLOAT\ns Shape - y T=FLOAT out_type=INT32", "s", "ps_1", NULL,
   NULL, false},
  {"a replica's node is on itself", CLUSTER, X("/job:worker"), "x", "self", NULL, "worker", false},
  {"a replica's task 0 is itself", CLUSTER, X("/job:worker/task:0"), "x", "self", NULL, "worker", false},
  {"a replica's node without a device is on itself", CLUSTER, X("-"), "x", "self", NULL, "worker", false},
  {"what replicas share stays", CLUSTER, X("/job:ps/task:1"), "x", "ps_1", NULL, "worker", false},
  {"soft placement drops the type", CLUSTER, X("/job:ps/task:1/gpu:0"), "x", "ps_1", NULL, NULL, true},
  {"soft placement keeps the task", CLUSTER, X("/job:ps/task:7"), "x", NULL, "explicitly assigned", NULL, true},
  {"soft placement ignores a _class that conflicts", CLUSTER,
   X("/job:ps/task:1") "y Identity /job:worker/task:1 x T=FLOAT "
                       "_class=loc:@x",
   "y", "worker_1", NULL, NULL, true},
  {"a job that is not there", CLUSTER, X("/job:master"), "x", NULL,
   "Cannot assign a device for operation x: {{node x}} was explicitly assigned to /job:master but available devices are [ "
   "/job:ps/replica:0/task:0/device:CPU:0, /job:ps/replica:0/task:1/device:CPU:0, /job:worker/replica:0/task:0/device:CPU:0, "
   "/job:worker/replica:0/task:1/device:CPU:0 ]. Make sure the device specification refers to a valid device. [[{{node x}}]]",
   NULL, false},
  {"a GPU without CUDA", NULL, X("/gpu:0"), "x", NULL, "The requested device appears to be a GPU, but CUDA is not enabled.", NULL, false},
  {"a malformed device", NULL, X("/job:1x"), "x", NULL, "Malformed device specification '/job:1x' in node: x", NULL, false},
  {"_class across tasks", CLUSTER, X("/job:ps/task:1") "y Identity /job:worker/task:1 x T=FLOAT _class=loc:@x", "y", NULL,
   "Cannot colocate nodes {{colocation_node y}} and {{colocation_node x}}: Cannot merge devices with incompatible jobs", NULL, false},
  {"a switch between variables apart", CLUSTER, VARIABLE "w VariableV2 /job:ps/task:0 dtype=FLOAT shape=2\nm RefMerge - v w T=FLOAT N=2",
   "m", NULL,
   "connects colocation groups with incompatible resource devices: /job:ps/task:0 vs /job:ps/task:1. The edge src node is w , "
   "and the dst node is m",
   NULL, false},
  {"another replica's task", CLUSTER, X("/job:worker/task:1"), "x", NULL, "with --replicate worker", "worker", false},
  {"a replicated job that is not there", CLUSTER, X("-"), "x", NULL, "--replicate evaluator: the cluster has no job", "evaluator", false},
  {"a replicated job that is misspelt", CLUSTER, X("-"), "x", NULL, "it has: worker, ps; did you mean 'worker'?", "wroker", false},
  {"a job that the graph asks for too is misspelt in the cluster", "{\"ps\": [\"a:1\"], \"wroker\": [\"b:1\"]}",
   X("/job:worker") "y Identity /job:worker x T=FLOAT", "x", NULL,
   "--replicate worker, on which the graph places 2 nodes: the cluster has no job 'worker', it has: wroker, ps; is 'wroker' in it a "
   "misspelling of 'worker'?",
   "worker", false},
  {"no cluster for a graph that asks for jobs", NULL, VARIABLE X("-") "u Assign - v x T=FLOAT", "u", NULL,
   "[[{{node v}}]]; no --cluster was given, it has to have a job 'ps'", NULL, false},
  {"a job that the cluster lacks", "{\"sp\": [\"a:1\"], \"worker\": [\"b:1\"]}", X("/job:ps"), "x", NULL,
   "[[{{node x}}]]; the cluster has no job 'ps', it has: sp, worker", NULL, false},
};

static const char *place_text(const struct build *build, const char *name) {
  static char text[64];
  uint32_t node = graph_find(build->model.graph, name);
  uint32_t task = build->model.graph->nodes.items[node].task;
  if (task == TASK_SELF)
    return "self";
  snprintf(text, sizeof text, "%s_%u", build->cluster.tasks.items[task].job, build->cluster.tasks.items[task].index);
  return text;
}

static void nodes_go_where_tensorflow_puts_them(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct place_case *c = &cases[i];
    struct build build;
    if (graph_builder_build(c->lines, c->cluster, &build) != OK)
      fail_msg("%s: %s", c->about, status_text());
    build.options.replicate = c->replicate;
    build.options.soft_placement = c->soft;
    status result = pass_place(&build);
    if (c->error ? result != INVALID_ARGUMENT || !strstr(status_text(), c->error) : result != OK)
      fail_msg("%s: %s %s", c->about, status_name(result), status_text());
    if (!c->error && strcmp(place_text(&build, c->node), c->place))
      fail_msg("%s: it is on %s", c->about, place_text(&build, c->node));
    graph_builder_free(&build);
  }
}

static void the_assigned_device_is_a_full_name(void **state) {
  (void)state;
  struct build build;
  assert_int_equal(graph_builder_build(X("/job:ps/task:1") "y Identity /job:worker x T=FLOAT", CLUSTER, &build), OK);
  build.options.replicate = "worker";
  assert_int_equal(pass_place(&build), OK);
  assert_string_equal(build.model.graph->nodes.items[0].assigned, "/job:ps/replica:0/task:1/device:CPU:0");
  assert_string_equal(build.model.graph->nodes.items[1].assigned, "/job:worker/replica:0/task:*/device:CPU:0");
  graph_builder_free(&build);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_go_where_tensorflow_puts_them),
    cmocka_unit_test(the_assigned_device_is_a_full_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
