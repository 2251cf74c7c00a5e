/* summary.c: a few lines of any build: long lists are cut, and say how much was. The command at the end works as it stands: zeros
 * take the place of data that only the user has. */
#include "compiler/summary.h"

#include "compiler/entry_runners.h"

#include <string.h>
#include <sys/stat.h>

#define TASKS_SHOWN 8
#define ENTRIES_SHOWN 12
#define PORTS_SHOWN 6
#define VARS_SHOWN 4
#define SAMPLE_ROWS 2 /* in place of a size that is open */

/* ---- sizes ---- */

static const char *bytes_text(struct arena *arena, double bytes) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
    bytes /= 1000;
  return arena_printf(arena, unit && bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void print_more(FILE *out, uint32_t count, uint32_t shown) {
  if (count > shown)
    fprintf(out, " and %u more", count - shown);
}

static bool port_dim(const struct flow *flow, const struct flow_value *value, int axis, int64_t *out) {
  return dim_is_const(flow->dims, dim_resolve(flow->dims, value->dims[axis]), out);
}

/* "x float[?,784]" */
static void print_port(FILE *out, const struct flow *flow, const struct flow_port *port) {
  const struct flow_value *value = flow_value_get(flow, port->value);
  fprintf(out, "%s %s[", port->name, dtype_name(value->dtype));
  for (int i = 0; i < value->rank && !port->any_rank; i++) {
    int64_t size;
    fputs(i ? "," : "", out);
    if (port_dim(flow, value, i, &size))
      fprintf(out, "%lld", (long long)size);
    else
      fputc('?', out);
  }
  fputs(port->any_rank ? "...]" : "]", out);
}

/* ---- tasks ---- */

static int64_t var_bytes(const struct flow_var *v) {
  int64_t bytes = (int64_t)dtype_size(v->dtype);
  for (int d = 0; d < v->rank && v->has_shape; d++)
    bytes *= v->dims[d];
  return v->has_shape ? bytes : 0;
}

static bool var_is_on(const struct build *b, const struct flow_var *v, uint32_t task) {
  bool own = build_replicated(b) && strcmp(b->cluster.tasks.items[task].job, build_replicated(b)) == 0;
  return !v->zero_initial && (v->task == task || (v->task == TASK_SELF && own)); /* those are counters of random ops */
}

static void print_var(FILE *out, const struct flow_var *v) {
  fprintf(out, "%s %s[", v->name, dtype_name(v->dtype));
  for (int d = 0; d < v->rank && v->has_shape; d++)
    fprintf(out, "%s%lld", d ? "," : "", (long long)v->dims[d]);
  fputs(v->has_shape ? "]" : "...]", out);
}

static void print_vars(FILE *out, struct build *b, uint32_t task) {
  uint32_t count = 0;
  int64_t bytes = 0;
  for (uint32_t i = 0; i < b->vars.count; i++) {
    const struct flow_var *v = &b->vars.items[i];
    if (!var_is_on(b, v, task))
      continue;
    bytes += var_bytes(v);
    if (count < VARS_SHOWN) {
      fputs(count ? ", " : "  keeps ", out);
      print_var(out, v);
    }
    count++;
  }
  print_more(out, count, VARS_SHOWN);
  if (count)
    fprintf(out, ": %s", bytes_text(&b->arena, (double)bytes));
}

static void print_tasks(FILE *out, struct build *b) {
  for (uint32_t i = 0; i < b->cluster.tasks.count && i < TASKS_SHOWN; i++) {
    const struct cluster_task *task = &b->cluster.tasks.items[i];
    const char *file = arena_printf(&b->arena, "%s_%u", task->job, task->index);
    struct stat st = {0};
    if (stat(arena_printf(&b->arena, "%s/%s", b->options.output_dir, file), &st) != 0)
      st.st_size = 0;
    fprintf(out, "  %-12s %7s", file, bytes_text(&b->arena, (double)st.st_size));
    print_vars(out, b, i);
    fputc('\n', out);
  }
  if (b->cluster.tasks.count > TASKS_SHOWN)
    fprintf(out, "  and %u more\n", b->cluster.tasks.count - TASKS_SHOWN);
}

/* ---- entries ---- */

static void print_ports(FILE *out, const struct entry *e, const struct flow_port *ports, uint32_t count) {
  for (uint32_t i = 0; i < count && i < PORTS_SHOWN; i++) {
    fputs(i ? ", " : " ", out);
    print_port(out, e->flow, &ports[i]);
  }
  print_more(out, count, PORTS_SHOWN);
}

static void print_entry(FILE *out, const struct build *b, const struct entry *e) {
  fprintf(out, "  %s", e->name);
  for (uint32_t i = 0; i < b->aliases.count; i++)
    if (strcmp(b->aliases.items[i].entry, e->name) == 0)
      fprintf(out, ", %s", b->aliases.items[i].name);
  fputc(':', out);
  print_ports(out, e, e->feeds.items, e->feeds.count);
  fputs(" ->", out);
  print_ports(out, e, e->fetches.items, e->fetches.count);
  for (uint32_t i = 0; i < e->targets.count && i < PORTS_SHOWN; i++)
    fprintf(out, "%s%s", i ? ", " : " | ", e->targets.items[i]);
  print_more(out, e->targets.count, PORTS_SHOWN);
  fputc('\n', out);
}

static void print_entries(FILE *out, const struct build *b) {
  uint32_t count = 0;
  fputs("entries\n", out);
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (!b->entries.items[i].is_variant && count++ < ENTRIES_SHOWN)
      print_entry(out, b, &b->entries.items[i]);
  if (count > ENTRIES_SHOWN)
    fprintf(out, "  and %u more\n", count - ENTRIES_SHOWN);
  for (uint32_t i = 0; i < b->dropped.count; i++)
    fprintf(out, "  left out %s: %s\n", b->dropped.items[i].entry, b->dropped.items[i].reason);
}

/* ---- the next command ---- */

static const struct entry *find_entry(const struct build *b, const char *name) {
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (strcmp(b->entries.items[i].name, name) == 0)
      return &b->entries.items[i];
  return NULL;
}

static const struct entry *find_named(const struct build *b, const char *name) {
  for (uint32_t i = 0; i < b->aliases.count; i++)
    if (strcmp(b->aliases.items[i].name, name) == 0)
      return find_entry(b, b->aliases.items[i].entry);
  return find_entry(b, name);
}

/* What the graph is for: training, else an answer, else the first thing that does not only initialise. */
static const struct entry *main_entry(const struct build *b, const char **name) {
  static const char *const names[] = {"train", "train_step", "train_op", "main", "serving_default", "serve", "call"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (find_named(b, *name = names[i]))
      return find_named(b, names[i]);
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (!strstr(*name = b->entries.items[i].name, "init") && !strstr(*name, "ready"))
      return &b->entries.items[i];
  *name = b->entries.items[0].name;
  return &b->entries.items[0];
}

/* In quotes where a shell would read it in another way. */
static const char *shell_word(struct arena *arena, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (*word && word[strspn(word, plain)] == 0)
    return word;
  const char *text = "'";
  for (const char *quote; (quote = strchr(word, '\'')); word = quote + 1)
    text = arena_printf(arena, "%s%.*s'\\''", text, (int)(quote - word), word);
  return arena_printf(arena, "%s%s'", text, word);
}

static const char *sample_feed(struct arena *arena, const struct flow *flow, const struct flow_port *port) {
  const struct flow_value *value = flow_value_get(flow, port->value);
  const char *text = arena_printf(arena, "%s=zeros(", port->name);
  for (int i = 0; i < value->rank; i++) {
    int64_t size;
    if (!port_dim(flow, value, i, &size))
      size = SAMPLE_ROWS;
    text = arena_printf(arena, "%s%s%lld", text, i ? "," : "", (long long)size);
  }
  return arena_printf(arena, "%s)", text);
}

/* Nothing gives a value to a variable before the entry runs. */
static bool lacks_init(const struct build *b) {
  uint32_t given = b->initials.count;
  for (uint32_t i = 0; i < b->vars.count; i++)
    given += b->vars.items[i].zero_initial;
  return given < b->vars.count && !find_entry(b, "init");
}

static bool has_part(const struct build *b, uint32_t task) {
  bool own = build_replicated(b) && strcmp(b->cluster.tasks.items[task].job, build_replicated(b)) == 0;
  bool any = own || task == b->default_task;
  for (uint32_t i = 0; i < b->entries.count && !any; i++)
    for (uint32_t p = 0; p < b->entries.items[i].parts.count && !any; p++)
      any = b->entries.items[i].parts.items[p].task == task;
  return any;
}

/* Tasks that would do nothing. */
static void print_idle(FILE *out, const struct build *b) {
  const char *job = b->cluster.tasks.items[b->default_task].job; /* where nodes without a device go */
  uint32_t count = 0;
  bool replicable = false;
  for (uint32_t i = 0; i < b->cluster.tasks.count; i++) {
    if (has_part(b, i))
      continue;
    if (count++ < TASKS_SHOWN)
      fprintf(out, "%s%s_%u", count == 1 ? "note: " : ", ", b->cluster.tasks.items[i].job, b->cluster.tasks.items[i].index);
    replicable = replicable || (!build_replicated(b) && strcmp(b->cluster.tasks.items[i].job, job) == 0);
  }
  print_more(out, count, TASKS_SHOWN);
  if (count)
    fprintf(out, " %s no part of any entry", count == 1 ? "has" : "have");
  if (replicable)
    fprintf(out, " (is the graph one %s's? --replicate %s)", job, job);
  fputs(count ? "\n" : "", out);
}

/* Feeds without a shape make variants, which all have to be compiled. */
static void print_unranked(FILE *out, const struct build *b) {
  for (uint32_t i = 0; i < b->entries.count; i++) {
    const struct entry *e = &b->entries.items[i];
    uint32_t variants = 1, open = 0;
    while (i + variants < b->entries.count && e[variants].is_variant)
      variants++;
    for (uint32_t k = 0; k < e->feeds.count && !e->is_variant && variants > 1; k++)
      if (e->feeds.items[k].any_rank && open++ < PORTS_SHOWN)
        fprintf(out, "%s%s", open == 1 ? "note: " : ", ", e->feeds.items[k].name);
    print_more(out, open, PORTS_SHOWN);
    if (open)
      fprintf(
        out,
        " %s no shape in the graph ([...]): %s is compiled in %u variants, for ranks that are likely; with shapes the build is faster\n",
        open == 1 ? "has" : "have", e->name, variants);
  }
}

/* What the command does not do by itself. */
static void print_notes(FILE *out, const struct build *b) {
  print_idle(out, b);
  print_unranked(out, b);
  if (lacks_init(b))
    fputs("note: no entry 'init' gives the variables their first values: name one (--entry 'init: -> | OPERATION'),"
          " or start from --checkpoint-dir\n",
          out);
}

static void print_command(FILE *out, struct build *b, const char *tfc) {
  const char *name;
  const struct entry *e = main_entry(b, &name);
  bool trains = strstr(name, "train") != NULL;
  for (uint32_t i = 0; i < e->fetches.count; i++)
    trains = trains || (e->targets.count && strcmp(e->fetches.items[i].name, "loss") == 0);
  fprintf(out, "run it%s\n", e->feeds.count ? " (with your FILE.npy in place of zeros)" : "");
  fprintf(out, "  %s run %s --entry %s", shell_word(&b->arena, tfc), shell_word(&b->arena, b->options.output_dir),
          shell_word(&b->arena, name));
  for (uint32_t i = 0; i < e->feeds.count; i++)
    fprintf(out, " --feed %s", shell_word(&b->arena, sample_feed(&b->arena, e->flow, &e->feeds.items[i])));
  fprintf(out, "%s\n", trains ? " --steps 10" : "");
}

void summary_print(FILE *out, struct build *b, const char *tfc, double seconds) {
  uint32_t tasks = b->cluster.tasks.count;
  fprintf(out, "%s: %u task%s in %.1f s\n", b->options.output_dir, tasks, tasks == 1 ? "" : "s", seconds);
  print_tasks(out, b);
  print_entries(out, b);
  entry_runners_print(out, b);
  print_notes(out, b);
  if (b->entries.count)
    print_command(out, b, tfc);
}
