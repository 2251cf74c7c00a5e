/* graph_builder.h: builds for tests from a graph in text form, a line a node: "name Op device inputs... key=value...".
 * `-` is no device; a key with a word behind it is an element type, shape=4,16 a shape, `_class` a list of one string, output_types=FLOAT a
 * list of types, shared_name=x a string. */
#ifndef TFC_TESTS_SUPPORT_GRAPH_BUILDER_H
#define TFC_TESTS_SUPPORT_GRAPH_BUILDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/build.h"
#include "compiler/read/read.h"
#include "ir/graph/registry.h"

static inline void graph_builder_shape(FILE *out, char *dims) {
  char *rest;
  fprintf(out, "attr { key: \"shape\" value { shape { ");
  for (char *dim = strtok_r(dims, ",", &rest); dim; dim = strtok_r(NULL, ",", &rest))
    fprintf(out, "dim { size: %s } ", dim);
  fprintf(out, "} } } ");
}

/* Types, and for shapes one of unknown rank. */
static inline void graph_builder_list(FILE *out, const char *key, const char *equal) {
  fprintf(out, "attr { key: \"%.*s\" value { list { ", (int)(equal - key), key);
  if (strstr(key, "types"))
    fprintf(out, "type: DT_%s } } } ", equal + 1);
  else
    fputs("shape { unknown_rank: true } } } } ", out);
}

static inline void graph_builder_word(FILE *out, char *word, int index) {
  char *equal = strchr(word, '=');
  if (index == 0)
    fprintf(out, "name: \"%s\" ", word);
  else if (index == 1)
    fprintf(out, "op: \"%s\" ", word);
  else if (index == 2)
    fprintf(out, "device: \"%s\" ", strcmp(word, "-") ? word : "");
  else if (!equal)
    fprintf(out, "input: \"%s\" ", word);
  else if (word[0] == '_')
    fprintf(out, "attr { key: \"%.*s\" value { list { s: \"%s\" } } } ", (int)(equal - word), word, equal + 1);
  else if (!strncmp(word, "shape=", 6))
    graph_builder_shape(out, equal + 1);
  else if (!strncmp(word, "value=", 6))
    fprintf(out, "attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: %s } } } ", equal + 1);
  else if (!strncmp(word, "shared_name=", 12) || !strncmp(word, "frame_name=", 11) || !strncmp(word, "container=", 10))
    fprintf(out, "attr { key: \"%.*s\" value { s: \"%s\" } } ", (int)(equal - word), word, equal + 1);
  else if (!strncmp(word, "output_", 7) || !strncmp(word, "Toutput_", 8))
    graph_builder_list(out, word, equal);
  else if (equal[1] >= '0' && equal[1] <= '9')
    fprintf(out, "attr { key: \"%.*s\" value { i: %s } } ", (int)(equal - word), word, equal + 1);
  else
    fprintf(out, "attr { key: \"%.*s\" value { type: DT_%s } } ", (int)(equal - word), word, equal + 1);
}

/* The caller frees it. */
static inline char *graph_builder_text(const char *lines) {
  char *copy = strdup(lines), *text = NULL, *line_rest;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  for (char *line = strtok_r(copy, "\n", &line_rest); line; line = strtok_r(NULL, "\n", &line_rest)) {
    char *word_rest;
    int index = 0;
    fprintf(out, "node { ");
    for (char *word = strtok_r(line, " ", &word_rest); word; word = strtok_r(NULL, " ", &word_rest))
      graph_builder_word(out, word, index++);
    fprintf(out, "}\n");
  }
  fprintf(out, "versions { producer: 1882 }\n");
  fclose(out);
  free(copy);
  return text;
}

/* Reads and checks the graph; `cluster` is JSON, or NULL for one local task. */
static inline status graph_builder_build(const char *lines, const char *cluster, struct build *out) {
  *out = (struct build){0};
  arena_init(&out->arena);
  if (!cluster)
    cluster_local(&out->arena, &out->cluster);
  else
    TRY(cluster_parse(cluster, strlen(cluster), &out->arena, &out->cluster));
  out->default_task = cluster_default_task(&out->cluster);
  char *text = graph_builder_text(lines);
  status result = model_parse(text, strlen(text), &out->arena, &out->model);
  free(text);
  return result == OK ? registry_check(out->model.graph) : result;
}

static inline void graph_builder_free(struct build *build) {
  if (build->model.graph) {
    vec_free(&build->model.graph->nodes);
    vec_free(&build->model.graph->functions);
    map_deinit(&build->model.graph->names);
    map_deinit(&build->model.graph->function_names);
  }
  for (uint32_t i = 0; i < build->specs.count; i++) {
    struct entry_spec *spec = &build->specs.items[i];
    vec_free(&spec->feeds);
    vec_free(&spec->feed_keys);
    vec_free(&spec->fetches);
    vec_free(&spec->fetch_keys);
    vec_free(&spec->targets);
  }
  vec_free(&build->specs);
  vec_free(&build->aliases);
  vec_free(&build->options.entries);
  vec_free(&build->cluster.tasks);
  arena_deinit(&build->arena);
}

#endif
