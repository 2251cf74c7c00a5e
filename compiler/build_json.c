/* build_json.c: printed by hand: the order of keys is fixed, and nothing depends on a library's version. */
#include "compiler/build_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_string(FILE *out, const char *text) {
  fputc('"', out);
  for (const unsigned char *p = (const unsigned char *)(text ? text : ""); *p; p++)
    if (*p == '"' || *p == '\\')
      fprintf(out, "\\%c", *p);
    else if (*p < 0x20)
      fprintf(out, "\\u%04x", *p);
    else
      fputc(*p, out);
  fputc('"', out);
}

static void print_task(FILE *out, const struct cluster_task *task) {
  fprintf(out, "{\"job\": ");
  print_string(out, task->job);
  fprintf(out, ", \"index\": %u, \"address\": ", task->index);
  print_string(out, task->address);
  fprintf(out, ", \"file\": \"%s_%u\", \"devices\": [\"/job:%s/replica:0/task:%u/device:CPU:0\"]}", task->job, task->index, task->job,
          task->index);
}

static void print_port(FILE *out, const struct flow *flow, const struct flow_port *port) {
  const struct flow_value *value = flow_value_get(flow, port->value);
  fprintf(out, "{\"name\": ");
  print_string(out, port->name);
  fprintf(out, ", \"dtype\": \"%s\", \"shape\": ", dtype_name(value->dtype));
  if (port->any_rank) {
    fprintf(out, "null}");
    return;
  }
  fputc('[', out);
  for (int i = 0; i < value->rank; i++) {
    int64_t size;
    if (!dim_is_const(flow->dims, dim_resolve(flow->dims, value->dims[i]), &size))
      size = -1;
    fprintf(out, "%s%lld", i ? ", " : "", (long long)size);
  }
  fprintf(out, "]}");
}

static void print_entry(FILE *out, const struct entry *entry, const char *name) {
  fprintf(out, "{\"name\": ");
  print_string(out, name);
  fprintf(out, ", \"feeds\": [");
  for (uint32_t i = 0; i < entry->feeds.count; i++) {
    fputs(i ? ", " : "", out);
    print_port(out, entry->flow, &entry->feeds.items[i]);
  }
  fprintf(out, "], \"fetches\": [");
  for (uint32_t i = 0; i < entry->fetches.count; i++) {
    fputs(i ? ", " : "", out);
    print_port(out, entry->flow, &entry->fetches.items[i]);
  }
  fprintf(out, "], \"targets\": [");
  for (uint32_t i = 0; i < entry->targets.count; i++) {
    fputs(i ? ", " : "", out);
    print_string(out, entry->targets.items[i]);
  }
  fprintf(out, "]}");
}

const char *build_json_text(const struct build *build, struct arena *arena) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out)
    return "";
  fprintf(out, "{\"tfc\": \"%s\",\n \"graph\": ", TFC_VERSION);
  print_string(out, build->model.sha256);
  fprintf(out, ",\n \"tasks\": [");
  for (uint32_t i = 0; i < build->cluster.tasks.count; i++) {
    fputs(i ? ",\n  " : "\n  ", out);
    print_task(out, &build->cluster.tasks.items[i]);
  }
  fputs("]", out);
  if (build_replicated(build)) {
    fputs(",\n \"replicated\": ", out);
    print_string(out, build_replicated(build));
  }
  fprintf(out, ",\n \"entries\": [");
  for (uint32_t i = 0; i < build->entries.count; i++) {
    if (build->entries.items[i].is_variant)
      continue;
    fputs(i ? ",\n  " : "\n  ", out);
    print_entry(out, &build->entries.items[i], build->entries.items[i].name);
    for (uint32_t a = 0; a < build->aliases.count; a++)
      if (strcmp(build->aliases.items[a].entry, build->entries.items[i].name) == 0) {
        fputs(",\n  ", out);
        print_entry(out, &build->entries.items[i], build->aliases.items[a].name);
      }
  }
  fprintf(out, "]}\n");
  fclose(out);
  const char *copy = arena_strndup(arena, text, size);
  free(text);
  return copy;
}
