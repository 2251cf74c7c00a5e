/* lowered_text.h: an entry that fetches "y" of a graph in protobuf's text form, lowered. */
#ifndef TFC_TESTS_SUPPORT_LOWERED_TEXT_H
#define TFC_TESTS_SUPPORT_LOWERED_TEXT_H

#include <string.h>

#include "compiler/build.h"
#include "compiler/pass/pass.h"
#include "compiler/read/read.h"
#include "ir/graph/registry.h"

/* Whatever it returns, lowered_text_deinit follows. */
static inline status lowered_text_read(struct build *b, const char *text) {
  struct entry_spec spec = {.name = "main"};
  *b = (struct build){0};
  arena_init(&b->arena);
  cluster_local(&b->arena, &b->cluster);
  vec_push(&spec.fetches, "y:0");
  vec_push(&spec.fetch_keys, "y");
  vec_push(&b->specs, spec);
  TRY(model_parse(text, strlen(text), &b->arena, &b->model));
  TRY(registry_check(b->model.graph));
  return pass_lower(b);
}

/* What became of y. */
static inline const struct flow_value *lowered_text_value(const struct build *b) {
  const struct entry *e = &b->entries.items[0];
  return flow_value_get(e->flow, e->fetches.items[0].value);
}

static inline void lowered_text_deinit(struct build *b) {
  vec_free(&b->specs.items[0].fetches);
  vec_free(&b->specs.items[0].fetch_keys);
  vec_free(&b->specs);
  vec_free(&b->entries);
  model_deinit(&b->model);
  arena_deinit(&b->arena);
}

#endif
