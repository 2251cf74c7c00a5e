/* text_graph.h: models for tests from protobuf's text form. */
#ifndef TFC_TESTS_SUPPORT_TEXT_GRAPH_H
#define TFC_TESTS_SUPPORT_TEXT_GRAPH_H

#include <string.h>

#include "compiler/read/read.h"

struct text_graph {
  struct arena arena;
  struct model model;
};

static inline status text_graph_read(struct text_graph *g, const char *text) {
  *g = (struct text_graph){0};
  arena_init(&g->arena);
  return model_parse(text, strlen(text), &g->arena, &g->model);
}

static inline void text_graph_deinit(struct text_graph *g) {
  model_deinit(&g->model);
  arena_deinit(&g->arena);
}

#endif
