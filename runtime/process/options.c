/* options.c: one table of options; each row says what its value is and where it goes. */
#include "runtime/process/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

struct parser {
  struct task_options *out;
  struct phase_options *phase; /* the one that --entry began last */
};

static status parse_number(const char *option, const char *text, int64_t minimum, int64_t *out) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno || value < minimum)
    return fail(INVALID_ARGUMENT, "%s: '%s' is no number of at least %lld", option, text, (long long)minimum);
  *out = value;
  return OK;
}

static void *grow(void *items, uint32_t count, size_t size) { return realloc(items, ((size_t)count + 1) * size); }

static status add_phase(struct parser *p, const char *value) {
  struct phase_options *phases = grow(p->out->phases, p->out->phase_count, sizeof *phases);
  if (!phases)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  p->out->phases = phases;
  p->phase = &phases[p->out->phase_count++];
  *p->phase = (struct phase_options){.entry = value, .steps = 1};
  return OK;
}

/* NAME=FILE; names of TensorFlow have no `=`. */
static status parse_file(const char *option, char *text, struct named_file *out) {
  char *sign = strchr(text, '=');
  if (!sign || sign == text || !sign[1])
    return fail(INVALID_ARGUMENT, "%s: '%s' is not NAME=FILE.npy", option, text);
  *sign = 0;
  *out = (struct named_file){text, sign + 1};
  return OK;
}

static status add_file(const char *option, char *text, struct named_file **files, uint32_t *count) {
  struct named_file *grown = grow(*files, *count, sizeof *grown);
  if (!grown)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  *files = grown;
  TRY(parse_file(option, text, &grown[*count]));
  for (uint32_t i = 0; i < *count; i++)
    if (strcmp(grown[i].name, grown[*count].name) == 0)
      return fail(INVALID_ARGUMENT, "%s: '%s' is given twice", option, grown[i].name);
  ++*count;
  return OK;
}

static status set_runner(struct parser *p, char *value) {
  const char **runners = grow(p->out->runners, p->out->runner_count, sizeof *runners);
  if (!runners)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  p->out->runners = runners;
  runners[p->out->runner_count++] = value;
  return OK;
}
static status set_entry(struct parser *p, char *value) { return add_phase(p, value); }
static status set_feed(struct parser *p, char *value) { return add_file("--feed", value, &p->phase->feeds, &p->phase->feed_count); }
static status set_fetch(struct parser *p, char *value) { return add_file("--fetch", value, &p->phase->fetches, &p->phase->fetch_count); }
static status set_batch(struct parser *p, char *value) { return parse_number("--batch", value, 1, &p->phase->batch); }
static status set_steps(struct parser *p, char *value) { return parse_number("--steps", value, 1, &p->phase->steps); }

static status set_help(struct parser *p, char *value) {
  (void)value;
  p->out->help = true;
  return OK;
}
static status set_version(struct parser *p, char *value) {
  (void)value;
  p->out->version = true;
  return OK;
}
static status set_elastic(struct parser *p, char *value) {
  (void)value;
  p->out->elastic = true;
  return OK;
}
static status set_no_init(struct parser *p, char *value) {
  (void)value;
  p->out->no_init = true;
  return OK;
}
static status set_timeout(struct parser *p, char *value) {
  char *end;
  p->out->timeout_s = strtod(value, &end);
  if (end == value || *end || !(p->out->timeout_s >= 0) || p->out->timeout_s > 1e9)
    return fail(INVALID_ARGUMENT, "--timeout: '%s' is no number of seconds", value);
  return OK;
}
static status set_threads(struct parser *p, char *value) {
  int64_t number;
  TRY(parse_number("--threads", value, 1, &number));
  p->out->threads = (int)(number > 1024 ? 1024 : number);
  return OK;
}
static status set_address(struct parser *p, char *value) {
  p->out->address = value;
  return OK;
}
static status set_checkpoint_dir(struct parser *p, char *value) {
  p->out->checkpoint_dir = value;
  return *value ? OK : fail(INVALID_ARGUMENT, "--checkpoint-dir: no folder is named");
}
static status set_save_steps(struct parser *p, char *value) { return parse_number("--save-steps", value, 1, &p->out->save_steps); }
static status set_allow_clients(struct parser *p, char *value) {
  (void)value;
  p->out->allow_clients = true;
  return OK;
}
static status set_client_memory(struct parser *p, char *value) {
  TRY(parse_number("--client-memory", value, 1, &p->out->client_memory_mib));
  return p->out->client_memory_mib <= INT64_C(1) << 20 ? OK : fail(INVALID_ARGUMENT, "--client-memory: '%s' MiB are too many", value);
}
static status set_save_seconds(struct parser *p, char *value) {
  char *end;
  p->out->save_seconds = strtod(value, &end);
  if (end == value || *end || !(p->out->save_seconds > 0) || p->out->save_seconds > 1e9)
    return fail(INVALID_ARGUMENT, "--save-seconds: '%s' is no number of seconds above 0", value);
  return OK;
}
static status set_keep(struct parser *p, char *value) { return parse_number("--keep", value, 1, &p->out->keep); }
static status set_restore(struct parser *p, char *value) {
  p->out->restore = value;
  return *value ? OK : fail(INVALID_ARGUMENT, "--restore: no checkpoint is named");
}
static status set_tls_file(const char *name, char *value, const char **out) {
  if (!tls_is_built_in())
    return fail(INVALID_ARGUMENT, "%s: this executable has no TLS in it: build it with `tfc build --tls`", name);
  *out = value;
  return *value ? OK : fail(INVALID_ARGUMENT, "%s: no file is named", name);
}
static status set_tls_cert(struct parser *p, char *value) { return set_tls_file("--tls-cert", value, &p->out->tls.cert); }
static status set_tls_key(struct parser *p, char *value) { return set_tls_file("--tls-key", value, &p->out->tls.key); }
static status set_tls_ca(struct parser *p, char *value) { return set_tls_file("--tls-ca", value, &p->out->tls.ca); }
static status set_log_dir(struct parser *p, char *value) {
  p->out->log_dir = value;
  return *value ? OK : fail(INVALID_ARGUMENT, "--log-dir: no folder is named");
}
static status set_log_every(struct parser *p, char *value) { return parse_number("--log-every", value, 0, &p->out->log_every); }
static status set_trace(struct parser *p, char *value) {
  p->out->trace = value;
  return *value ? OK : fail(INVALID_ARGUMENT, "--trace: no file is named");
}
/* JOB:INDEX=ADDRESS */
static status set_peer(struct parser *p, char *value) {
  char *sign = strchr(value, '='), *colon = sign ? memchr(value, ':', (size_t)(sign - value)) : NULL;
  if (!colon || colon == value || !sign[1])
    return fail(INVALID_ARGUMENT, "--peer: '%s' is not JOB:INDEX=ADDRESS", value);
  *sign = *colon = 0;
  int64_t index;
  TRY(parse_number("--peer", colon + 1, 0, &index));
  struct peer_address *peers = grow(p->out->peers, p->out->peer_count, sizeof *peers);
  if (!peers)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  p->out->peers = peers;
  peers[p->out->peer_count++] = (struct peer_address){value, (uint32_t)index, sign + 1};
  return OK;
}

static const struct option_row {
  const char *name;
  bool has_value, of_phase;
  status (*set)(struct parser *p, char *value); /* NULL: not built yet */
} rows[] = {
  {"--help", false, false, set_help},
  {"-h", false, false, set_help},
  {"--version", false, false, set_version},
  {"--no-init", false, false, set_no_init},
  {"--elastic", false, false, set_elastic},
  {"--timeout", true, false, set_timeout},
  {"--threads", true, false, set_threads},
  {"--address", true, false, set_address},
  {"--peer", true, false, set_peer},
  {"--checkpoint-dir", true, false, set_checkpoint_dir},
  {"--save-steps", true, false, set_save_steps},
  {"--save-seconds", true, false, set_save_seconds},
  {"--keep", true, false, set_keep},
  {"--restore", true, false, set_restore},
  {"--log-dir", true, false, set_log_dir},
  {"--log-every", true, false, set_log_every},
  {"--trace", true, false, set_trace},
  {"--allow-clients", false, false, set_allow_clients},
  {"--client-memory", true, false, set_client_memory},
  {"--tls-cert", true, false, set_tls_cert},
  {"--tls-key", true, false, set_tls_key},
  {"--tls-ca", true, false, set_tls_ca},
  {"--runner", true, false, set_runner},
  {"--entry", true, false, set_entry},
  {"--feed", true, true, set_feed},
  {"--fetch", true, true, set_fetch},
  {"--batch", true, true, set_batch},
  {"--steps", true, true, set_steps},
};

/* The row of `--name` or `--name=value`; *value is then set. */
static const struct option_row *find_row(char *word, char **value) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t length = strlen(rows[i].name);
    if (strncmp(word, rows[i].name, length) != 0)
      continue;
    if (word[length] == '=' && rows[i].has_value)
      *value = word + length + 1;
    if (!word[length] || *value)
      return &rows[i];
  }
  return NULL;
}

static status unknown_option(const char *word) {
  struct nearest nearest;
  char text[512], *name = strndup(word, strcspn(word, "="));
  nearest_begin(&nearest, name ? name : word);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    nearest_add(&nearest, rows[i].name);
  const char *others = nearest_text(&nearest, " (--help lists them), the nearest are: ", text, sizeof text);
  status result = fail(INVALID_ARGUMENT, "there is no option '%s'%s", word, others);
  free(name);
  return result;
}

static status parse_all(struct parser *p, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    char *value = NULL;
    const struct option_row *row = find_row(argv[i], &value);
    if (!row)
      return unknown_option(argv[i]);
    if (row->has_value && !value && ++i == argc)
      return fail(INVALID_ARGUMENT, "%s needs a value", row->name);
    if (row->has_value && !value)
      value = argv[i];
    if (!row->set)
      return fail(UNIMPLEMENTED, "the option %s", row->name);
    if (row->of_phase && !p->phase)
      return fail(INVALID_ARGUMENT, "%s comes before any --entry: it belongs to the phase that --entry NAME begins", row->name);
    TRY(row->set(p, value));
  }
  return OK;
}

status options_parse(int argc, char **argv, struct task_options *out) {
  *out = (struct task_options){.timeout_s = 30, .log_every = 1};
  struct parser parser = {.out = out};
  TRY(parse_all(&parser, argc, argv));
  const struct tls_files *tls = &out->tls;
  if ((tls->cert || tls->key || tls->ca) && !(tls->cert && tls->key && tls->ca))
    return fail(INVALID_ARGUMENT, "%s is missing: TLS needs --tls-cert, --tls-key and --tls-ca",
                !tls->cert  ? "--tls-cert"
                : !tls->key ? "--tls-key"
                            : "--tls-ca");
  if ((out->save_steps || out->save_seconds > 0 || out->keep) && !out->checkpoint_dir)
    return fail(INVALID_ARGUMENT, "%s needs --checkpoint-dir", out->save_steps ? "--save-steps" : out->keep ? "--keep" : "--save-seconds");
  if (out->runner_count && !out->phase_count)
    return fail(INVALID_ARGUMENT, "--runner needs --entry: a runner goes on until the phases end");
  return OK;
}

void options_deinit(struct task_options *options) {
  for (uint32_t i = 0; i < options->phase_count; i++) {
    free(options->phases[i].feeds);
    free(options->phases[i].fetches);
  }
  free(options->phases);
  free(options->runners);
  free(options->peers);
}
