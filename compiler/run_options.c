/* run_options.c: options that concern the job are taken out of the command line, and given to those whom they concern. */
#include "compiler/run_options.h"

#include <stdlib.h>
#include <string.h>

/* The value of `--name VALUE` or `--name=VALUE` at words[*at], which is then behind it; NULL: another word. */
static const char *take_value(const struct run_options *o, int *at, const char *name) {
  const char *word = o->words[*at];
  size_t length = strlen(name);
  if (strncmp(word, name, length) != 0)
    return NULL;
  if (word[length] == '=')
    return word + length + 1;
  return word[length] || *at + 1 == o->count ? NULL : o->words[++*at];
}

/* The value of one of run_checkpoint_options, and which. */
static const char *take_checkpoint_value(const struct run_options *o, int *at, size_t *which) {
  const char *value = NULL;
  for (*which = 0; *which < 4 && !(value = take_value(o, at, run_checkpoint_options[*which])); ++*which)
    continue;
  return value;
}

static bool is_job_option(const struct run_options *o, int *at) {
  size_t which;
  return take_value(o, at, "--trace") || take_value(o, at, "--checkpoint-dir") || take_checkpoint_value(o, at, &which);
}

/* How many words at words[at] belong to an option that every task is given; 0: it is none. */
static int everyones_words(const struct run_options *o, int at) {
  static const char *const names[] = {"--tls-cert", "--tls-key", "--tls-ca", "--client-memory", "--timeout"};
  int end = at;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (take_value(o, &end, names[i]))
      return end - at + 1;
  return strcmp(o->words[at], "--allow-clients") == 0 || strcmp(o->words[at], "--elastic") == 0;
}

void run_options_read(int count, char **words, bool on_terminal, struct run_options *out) {
  *out = (struct run_options){.count = count, .words = words, .log_last = on_terminal};
  for (int i = 0; i < count; i++) {
    const char *value;
    size_t which;
    if ((value = take_value(out, &i, "--trace")))
      out->trace = value;
    else if ((value = take_value(out, &i, "--checkpoint-dir")))
      out->checkpoint_dir = value;
    else if ((value = take_checkpoint_value(out, &i, &which)))
      out->of_checkpoints[which] = value;
    else if (take_value(out, &i, "--log-every"))
      out->log_last = false;
    else
      out->no_init = out->no_init || strcmp(words[i], "--no-init") == 0;
  }
}

const char *run_options_trace(const struct run_options *options, const char *task, struct arena *arena) {
  return arena_printf(arena, "%s.%s", options->trace ? options->trace : "", task);
}

static void add(char **args, int *count, const char *name, const char *value) {
  args[(*count)++] = (char *)(uintptr_t)name;
  args[(*count)++] = (char *)(uintptr_t)value;
}

char **run_options_for(const struct run_options *o, const struct run_task *task, struct arena *arena) {
  char **args = ARENA_ARRAY(arena, char *, o->count + 20);
  int count = 0;
  args[count++] = (char *)(uintptr_t)task->path;
  if (o->checkpoint_dir && task->has_variables)
    add(args, &count, "--checkpoint-dir", o->checkpoint_dir);
  bool keeps = o->checkpoint_dir || o->of_checkpoints[3];
  for (size_t i = 0; i < 4; i++) /* without a folder the task says what is missing */
    if (o->of_checkpoints[i] && (keeps ? task->has_variables : task->has_phases))
      add(args, &count, run_checkpoint_options[i], o->of_checkpoints[i]);
  if (o->trace)
    add(args, &count, "--trace", run_options_trace(o, task->name, arena));
  if (o->log_last && task->has_phases)
    add(args, &count, "--log-every", "0");
  for (int i = 0; i < o->count; i++) {
    int words = everyones_words(o, i);
    for (int j = 0; j < words; j++)
      args[count++] = o->words[i + j];
    i += words > 0 ? words - 1 : 0;
    if (words == 0 && !is_job_option(o, &i) && task->has_phases)
      args[count++] = o->words[i];
  }
  if (task->initialises)
    add(args, &count, "--entry", "init");
  return args;
}
