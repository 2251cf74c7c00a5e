/* main.c: the command line of tfc. The only place that prints and ends the program. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/nearest.h"
#include "compiler/bundle.h"
#include "base/output.h"
#include "compiler/commands.h"
#include "compiler/pipeline.h"
#include "compiler/summary.h"

static const char usage[] =
  "tfc compiles a TensorFlow graph for a cluster into one executable for each task.\n"
  "\n"
  "  tfc build GRAPH [--cluster FILE] [-o DIR] [--entry SPEC]... [options]\n"
  "  tfc show GRAPH                                       placeholders, variables, signatures, entries to choose from\n"
  "  tfc check GRAPH [--cluster FILE] [--entry SPEC]...   every unsupported op at once, placement, traffic, what a\n"
  "                                                       strategy makes alike\n"
  "  tfc run DIR [task options]                           start every task of a build on this machine\n"
  "  tfc status ADDRESS [--json]                          what the task that listens there (host:port, unix:PATH) is at:\n"
  "                                                       its step, what it waits for, its peers; --tls-cert, --tls-key,\n"
  "                                                       --tls-ca FILE where tasks speak TLS\n"
  "  tfc inspect FILE                                     what a built task holds\n"
  "  tfc ops                                              the ops that tfc has\n"
  "  tfc certs --cluster FILE [-o DIR]                    a CA for developing, certificates for tasks and clients (tfc-certs)\n"
  "\n"
  "GRAPH is a GraphDef (.pb, .pbtxt), a MetaGraphDef (.meta) or a SavedModel folder.\n"
  "\n"
  "  --cluster FILE        JSON: {\"ps\": [\"host:port\"], \"worker\": [...]}, its sparse form, or a TF_CONFIG\n"
  "  -o DIR                where the executables go (tfc-out)\n"
  "  --entry SPEC          'NAME: FEEDS -> FETCHES | TARGETS': one Session.run call, compiled; a feed or fetch is\n"
  "                        TENSOR or KEY=TENSOR; `tfc show GRAPH` lists those that are made without this option\n"
  "  --tags T,T            of a SavedModel of several graphs the one with these tags (serve, else the first)\n"
  "  --replicate JOB       every task of JOB gets its own copy of the work placed there\n"
  "  --strategy S          ps-async, ps-sync or allreduce: a graph for one machine becomes the cluster's\n"
  "  --soft-placement      ops without a kernel on the wanted device go to the CPU\n"
  "  --log-device-placement\n"
  "  --cpu NAMES           native, an LLVM CPU name, or a level like x86-64-v3; several, separated by commas: chosen at start\n"
  "  --math MODE           strict: operations round and sums add up as they are written, the same bits on every CPU\n"
  "                        (but for what the machine's libm computes: functions of float64, and rare ones of float32);\n"
  "                        default: TensorFlow's results, its NaN, infinities and zeros; fast: NaN and infinities may be lost\n"
  "  --emit KIND           graph, ir, layout, order, schedule, candidates, lanes, plan, llvm, asm, cuda, ptx or dot: only printed\n"
  "  --tune SECONDS        measures schedules of kernels on this machine, the longest first, instead of estimating them\n"
  "  --cache DIR           what was measured is kept there, and taken from there\n"
  "  --dump-phases DIR     one file for each pass\n"
  "  --tls                 the executables have TLS in them (OpenSSL), for their options --tls-cert, --tls-key and --tls-ca\n"
  "  --quiet               says nothing of what was built\n"
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

enum long_option {
  O_CLUSTER = 256,
  O_ENTRY,
  O_REPLICATE,
  O_STRATEGY,
  O_TAGS,
  O_SOFT,
  O_LOG,
  O_GPU,
  O_CPU,
  O_EMIT,
  O_DUMP,
  O_QUIET,
  O_TLS,
  O_TUNE,
  O_MATH,
  O_CACHE
};
static const struct option options[] = {{"cluster", required_argument, NULL, O_CLUSTER},
                                        {"entry", required_argument, NULL, O_ENTRY},
                                        {"replicate", required_argument, NULL, O_REPLICATE},
                                        {"strategy", required_argument, NULL, O_STRATEGY},
                                        {"tags", required_argument, NULL, O_TAGS},
                                        {"soft-placement", no_argument, NULL, O_SOFT},
                                        {"log-device-placement", no_argument, NULL, O_LOG},
                                        {"gpu", required_argument, NULL, O_GPU},
                                        {"cpu", required_argument, NULL, O_CPU},
                                        {"math", required_argument, NULL, O_MATH},
                                        {"emit", required_argument, NULL, O_EMIT},
                                        {"dump-phases", required_argument, NULL, O_DUMP},
                                        {"quiet", no_argument, NULL, O_QUIET},
                                        {"tls", no_argument, NULL, O_TLS},
                                        {"tune", required_argument, NULL, O_TUNE},
                                        {"cache", required_argument, NULL, O_CACHE},
                                        {NULL, 0, NULL, 0}};

static int unknown_option(const char *word) {
  struct nearest nearest;
  char text[512], words[sizeof options / sizeof *options][32], *name = strndup(word, strcspn(word, "="));
  nearest_begin(&nearest, name ? name : word);
  nearest_add(&nearest, "-o");
  for (const struct option *o = options; o->name; o++) {
    if (o->val == O_GPU) /* --help does not list it either */
      continue;
    snprintf(words[o - options], sizeof words[0], "--%s", o->name);
    nearest_add(&nearest, words[o - options]);
  }
  nearest_text(&nearest, " (tfc --help lists them), the nearest are: ", text, sizeof text);
  fprintf(stderr, "error: INVALID_ARGUMENT: there is no option '%s'%s\n", word, text);
  free(name);
  return 64;
}

static int unknown_command(const char *word) {
  static const char *const commands[] = {"build", "show", "check", "run", "status", "inspect", "ops", "certs"};
  struct nearest nearest;
  char text[512];
  nearest_begin_words(&nearest, word, commands, sizeof commands / sizeof *commands);
  if (strcmp(nearest.best[0].name, word) == 0)
    return misused("one file or folder, please, after: tfc ", word);
  fprintf(stderr, "error: INVALID_ARGUMENT: tfc has no command '%s'%s\n", word, nearest_text(&nearest, ", it has: ", text, sizeof text));
  return 64;
}

static bool read_seconds(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && !*end && *out > 0 && *out < 1e6;
}

/* 0, or the exit code of a wrong command line. */
static int parse_options(int argc, char **argv, struct build_options *o) {
  o->output_dir = "tfc-out";
  o->cpu = "native";
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":o:", options, NULL)) != -1;) {
    switch (c) {
    case 'o': o->output_dir = optarg; break;
    case O_CLUSTER: o->cluster_path = optarg; break;
    case O_ENTRY: vec_push(&o->entries, optarg); break;
    case O_REPLICATE: o->replicate = optarg; break;
    case O_STRATEGY: o->strategy = optarg; break;
    case O_TAGS: o->tags = optarg; break;
    case O_SOFT: o->soft_placement = true; break;
    case O_LOG: o->log_device_placement = true; break;
    case O_GPU: o->gpu = strcmp(optarg, "none") == 0 ? NULL : optarg; break;
    case O_CPU: o->cpu = optarg; break;
    case O_EMIT: o->emit = optarg; break;
    case O_DUMP: o->dump_phases = optarg; break;
    case O_QUIET: o->quiet = true; break;
    case O_TLS: o->tls = true; break;
    case O_CACHE: o->cache = optarg; break;
    case O_TUNE:
      if (!read_seconds(optarg, &o->tune))
        return misused("--tune takes a number of seconds above 0, not ", optarg);
      break;
    case O_MATH:
      if (!math_mode_read(optarg, &o->math))
        return misused("--math takes strict, default or fast, not ", optarg);
      break;
    case ':': return misused("this option needs a value: ", argv[optind - 1]);
    default: return unknown_option(argv[optind - 1]);
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

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static status build_all(struct build *build, const char *tfc) {
  double start = now_s();
  TRY(pipeline_run(build));
  TRY(bundle_write(build));
  if (!build->options.quiet)
    summary_print(stderr, build, tfc, now_s() - start);
  return OK;
}

static int command_of_graph(int argc, char **argv, const char *tfc) {
  struct build build = {0};
  int wrong = parse_options(argc, argv, &build.options);
  if (wrong)
    return wrong;
  arena_init(&build.arena);
  status s = check_options(&build.options);
  if (s == OK && strcmp(argv[0], "check") == 0)
    s = command_check(&build);
  else if (s == OK && strcmp(argv[0], "show") == 0)
    s = command_show(&build);
  else if (s == OK)
    s = build.options.emit ? command_emit(&build) : build_all(&build, tfc);
  int code = s == OK ? 0 : report(s);
  arena_deinit(&build.arena);
  return code;
}

/* argv: what follows `tfc status`. */
static int command_of_address(int argc, char **argv) {
  struct status_request request = {0};
  for (int i = 0; i < argc; i++) {
    const char **file = strcmp(argv[i], "--tls-cert") == 0 ? &request.tls_cert
                      : strcmp(argv[i], "--tls-key") == 0  ? &request.tls_key
                      : strcmp(argv[i], "--tls-ca") == 0   ? &request.tls_ca
                                                           : NULL;
    if (file && i + 1 == argc)
      return misused("a file is missing after ", argv[i]);
    if (file)
      *file = argv[++i];
    else if (strcmp(argv[i], "--json") == 0)
      request.is_json = true;
    else if (argv[i][0] == '-' || request.address)
      return misused("tfc status: what is meant by ", argv[i]);
    else
      request.address = argv[i];
  }
  int files = (request.tls_cert != NULL) + (request.tls_key != NULL) + (request.tls_ca != NULL);
  if (!request.address)
    return misused("tfc status wants the address of a task", "");
  if (files != 0 && files != 3)
    return misused("--tls-cert, --tls-key and --tls-ca belong together", "");
  status s = command_status(&request);
  return s == OK ? 0 : report(s);
}

static int certs(int argc, char **argv) {
  const char *cluster = NULL, *folder = "tfc-certs";
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":o:", options, NULL)) != -1;) {
    if (c == 'o')
      folder = optarg;
    else if (c == O_CLUSTER)
      cluster = optarg;
    else if (c == ':')
      return misused("this option needs a value: ", argv[optind - 1]);
    else
      return misused("tfc certs takes --cluster FILE and -o DIR, not ", argv[optind - 1]);
  }
  if (optind < argc || !cluster)
    return misused(cluster ? "tfc certs takes --cluster FILE and -o DIR, not " : "tfc certs needs --cluster FILE",
                   cluster ? argv[optind] : "");
  status s = command_certs(cluster, folder);
  return s == OK ? 0 : report(s);
}

static bool is_help(const char *word) { return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0; }

static int run_command(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "--help";
  if (is_help(command) || strcmp(command, "help") == 0 || (argc > 2 && is_help(argv[2]))) {
    fputs(usage, stdout);
    return 0;
  }
  if (strcmp(command, "--version") == 0) {
    puts("tfc " TFC_VERSION);
    return 0;
  }
  if (strcmp(command, "build") == 0 || strcmp(command, "check") == 0 || strcmp(command, "show") == 0)
    return command_of_graph(argc - 1, argv + 1, argv[0]);
  if (strcmp(command, "ops") == 0) {
    command_ops();
    return 0;
  }
  if (strcmp(command, "certs") == 0)
    return certs(argc - 1, argv + 1);
  if (strcmp(command, "inspect") == 0 && argc == 3) {
    status s = command_inspect(argv[2]);
    return s == OK ? 0 : report(s);
  }
  if (strcmp(command, "status") == 0)
    return command_of_address(argc - 2, argv + 2);
  if (strcmp(command, "run") == 0 && argc >= 3)
    return command_run(argv[2], argc - 3, argv + 3);
  return unknown_command(command);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  int code = run_command(argc, argv);
  status written = output_flush();
  return code == 0 && written != OK ? report(written) : code;
}
