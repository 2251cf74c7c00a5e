/* main.c: the command line of tfc. The only place that prints and ends the program. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/bundle.h"
#include "compiler/commands.h"
#include "compiler/pipeline.h"

static const char usage[] =
    "tfc compiles a TensorFlow graph for a cluster into one executable for each task.\n"
    "\n"
    "  tfc build GRAPH [--cluster FILE] [-o DIR] [--entry SPEC]... [options]\n"
    "  tfc check GRAPH [--cluster FILE] [--entry SPEC]...   every unsupported op at once, placement, traffic\n"
    "  tfc run DIR [task options]                           start every task of a build on this machine\n"
    "  tfc inspect FILE                                     what a built task holds\n"
    "  tfc ops                                              the ops that tfc has\n"
    "\n"
    "GRAPH is a GraphDef (.pb, .pbtxt), a MetaGraphDef (.meta) or a SavedModel folder.\n"
    "\n"
    "  --cluster FILE        JSON: {\"ps\": [\"host:port\"], \"worker\": [...]}, its sparse form, or a TF_CONFIG\n"
    "  -o DIR                where the executables go (tfc-out)\n"
    "  --entry SPEC          'NAME: FEEDS -> FETCHES | TARGETS': one Session.run call, compiled\n"
    "  --replicate JOB       every task of JOB gets its own copy of the work placed there\n"
    "  --strategy S          ps-async, ps-sync or allreduce: a graph for one machine becomes the cluster's\n"
    "  --soft-placement      ops without a kernel on the wanted device go to the CPU\n"
    "  --log-device-placement\n"
    "  --cpu NAME            native, an LLVM CPU name, or a level like x86-64-v3\n"
    "  --emit KIND           graph, ir, llvm, asm, cuda, ptx or dot: print it instead of building\n"
    "  --dump-phases DIR     one file for each pass\n"
    "  --version, --help\n"
    "\n"
    "A built task: worker_0 [--no-init] [--timeout S] [--entry NAME [--feed X=FILE.npy] [--batch B] [--steps N]\n"
    "              [--fetch Y=FILE.npy]]...   Without --entry it serves other tasks and TensorFlow sessions.\n";

static int report(status s) {
  fflush(stdout);
  fprintf(stderr, "error: %s: %s\n", status_name(s), status_text());
  return status_exit_code(s);
}
static int misused(const char *text, const char *word) {
  fprintf(stderr, "error: INVALID_ARGUMENT: %s%s (see tfc --help)\n", text, word);
  return 64;
}

enum long_option { O_CLUSTER = 256, O_ENTRY, O_REPLICATE, O_STRATEGY, O_SOFT, O_LOG, O_GPU, O_CPU, O_EMIT, O_DUMP };
static const struct option options[] = {
    {"cluster", required_argument, NULL, O_CLUSTER},   {"entry", required_argument, NULL, O_ENTRY},
    {"replicate", required_argument, NULL, O_REPLICATE}, {"strategy", required_argument, NULL, O_STRATEGY},
    {"soft-placement", no_argument, NULL, O_SOFT},     {"log-device-placement", no_argument, NULL, O_LOG},
    {"gpu", required_argument, NULL, O_GPU},           {"cpu", required_argument, NULL, O_CPU},
    {"emit", required_argument, NULL, O_EMIT},         {"dump-phases", required_argument, NULL, O_DUMP},
    {NULL, 0, NULL, 0}};

/* 0, or the exit code of a wrong command line. */
static int parse_options(int argc, char **argv, struct build_options *o) {
  o->output_dir = "tfc-out";
  o->cpu = "native";
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "o:", options, NULL)) != -1;) {
    switch (c) {
    case 'o': o->output_dir = optarg; break;
    case O_CLUSTER: o->cluster_path = optarg; break;
    case O_ENTRY: vec_push(&o->entries, optarg); break;
    case O_REPLICATE: o->replicate = optarg; break;
    case O_STRATEGY: o->strategy = optarg; break;
    case O_SOFT: o->soft_placement = true; break;
    case O_LOG: o->log_device_placement = true; break;
    case O_GPU: o->gpu = strcmp(optarg, "none") == 0 ? NULL : optarg; break;
    case O_CPU: o->cpu = optarg; break;
    case O_EMIT: o->emit = optarg; break;
    case O_DUMP: o->dump_phases = optarg; break;
    default: return misused("unknown option, or one without its value: ", argv[optind - 1]);
    }
  }
  if (optind + 1 != argc)
    return misused(optind == argc ? "no graph is named" : "one graph, please, not also ", optind == argc ? "" : argv[optind + 1]);
  o->graph_path = argv[optind];
  return 0;
}

static status check_options(const struct build_options *o) {
  if (o->gpu && !(o->emit && (strcmp(o->emit, "cuda") == 0 || strcmp(o->emit, "ptx") == 0)))
    return fail(UNIMPLEMENTED, "--gpu %s: running on GPUs (--emit cuda and --emit ptx print the kernels)", o->gpu);
  return OK;
}

static int command_build(int argc, char **argv, bool only_check) {
  struct build build = {0};
  int wrong = parse_options(argc, argv, &build.options);
  if (wrong)
    return wrong;
  arena_init(&build.arena);
  status s = check_options(&build.options);
  if (s == OK && only_check)
    s = command_check(&build);
  else if (s == OK && build.options.emit)
    s = command_emit(&build);
  else if (s == OK && (s = pipeline_run(&build)) == OK)
    s = bundle_write(&build);
  int code = s == OK ? 0 : report(s);
  arena_deinit(&build.arena);
  return code;
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  const char *command = argc > 1 ? argv[1] : "--help";
  if (strcmp(command, "--help") == 0 || strcmp(command, "help") == 0 || strcmp(command, "-h") == 0) {
    fputs(usage, stdout);
    return 0;
  }
  if (strcmp(command, "--version") == 0) {
    puts("tfc " TFC_VERSION);
    return 0;
  }
  if (strcmp(command, "build") == 0 || strcmp(command, "check") == 0)
    return command_build(argc - 1, argv + 1, strcmp(command, "check") == 0);
  if (strcmp(command, "ops") == 0) {
    command_ops();
    return 0;
  }
  if (strcmp(command, "inspect") == 0 && argc == 3) {
    status s = command_inspect(argv[2]);
    return s == OK ? 0 : report(s);
  }
  if (strcmp(command, "run") == 0 && argc >= 3)
    return command_run(argv[2], argc - 3, argv + 3);
  return misused("unknown command, or one without its arguments: ", command);
}
