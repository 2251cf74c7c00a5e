/* entries.c: reading --entry texts, and checking that what entries name is there. */
#include "compiler/entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "compiler/entry_defaults.h"
#include "compiler/entry_runners.h"

typedef VEC(const char *) name_list;

/* ---- texts ---- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static const char *text_trim(struct arena *arena, const char *from, const char *end) {
  while (from < end && is_blank(*from))
    from++;
  while (end > from && is_blank(end[-1]))
    end--;
  return arena_strndup(arena, from, (size_t)(end - from));
}

static bool list_has(const char *const *items, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(items[i], name))
      return true;
  return false;
}

void entry_add_feed(struct entry_spec *spec, const char *tensor, const char *key) {
  vec_push(&spec->feeds, tensor);
  vec_push(&spec->feed_keys, key);
}

void entry_add_fetch(struct entry_spec *spec, const char *tensor, const char *key) {
  vec_push(&spec->fetches, tensor);
  vec_push(&spec->fetch_keys, key);
}

/* "a, b:1": an empty list is fine, an empty name is not. */
static status list_parse(struct arena *arena, const char *from, const char *end, name_list *out) {
  if (!*text_trim(arena, from, end))
    return OK;
  for (;;) {
    const char *comma = memchr(from, ',', (size_t)(end - from));
    const char *name = text_trim(arena, from, comma ? comma : end);
    if (!*name)
      return fail(INVALID_ARGUMENT, "an empty name between commas");
    if (!list_has(out->items, out->count, name))
      vec_push(out, name);
    if (!comma)
      return OK;
    from = comma + 1;
  }
}

/* "KEY=TENSOR", or a tensor that is called as it is. */
static status tensor_add(struct arena *arena, const char *text, struct entry_spec *out, bool feed) {
  const char *sign = strchr(text, '='), *end = text + strlen(text);
  const char *key = sign ? text_trim(arena, text, sign) : text, *tensor = sign ? text_trim(arena, sign + 1, end) : text;
  if (!*key || !*tensor)
    return fail(INVALID_ARGUMENT, "'%.100s' is neither TENSOR nor KEY=TENSOR", text);
  if (sign && list_has(feed ? out->feed_keys.items : out->fetch_keys.items, feed ? out->feed_keys.count : out->fetch_keys.count, key))
    return fail(INVALID_ARGUMENT, "two %s are called '%.100s'", feed ? "feeds" : "fetches", key);
  if (feed)
    entry_add_feed(out, tensor, key);
  else
    entry_add_fetch(out, tensor, key);
  return OK;
}

static status parts_parse(struct arena *arena, const char *rest, struct entry_spec *out) {
  const char *arrow = strstr(rest, "->"), *end = rest + strlen(rest);
  if (!arrow)
    return fail(INVALID_ARGUMENT, "'->' is missing: an entry is 'NAME: FEEDS -> FETCHES | TARGETS'");
  const char *bar = strchr(arrow, '|');
  name_list feeds = {0}, fetches = {0}, targets = {0};
  status result = list_parse(arena, rest, arrow, &feeds);
  if (result == OK)
    result = list_parse(arena, arrow + 2, bar ? bar : end, &fetches);
  if (result == OK && bar)
    result = list_parse(arena, bar + 1, end, &targets);
  for (uint32_t i = 0; i < feeds.count && result == OK; i++)
    result = tensor_add(arena, feeds.items[i], out, true);
  for (uint32_t i = 0; i < fetches.count && result == OK; i++)
    result = tensor_add(arena, fetches.items[i], out, false);
  for (uint32_t i = 0; i < targets.count; i++)
    vec_push(&out->targets, targets.items[i]);
  vec_free(&feeds);
  vec_free(&fetches);
  vec_free(&targets);
  return result;
}

static bool name_is_plain(const char *name) {
  for (const char *p = name; *p; p++)
    if ((unsigned char)*p <= ' ' || *p == 0x7f || strchr(",|=>", *p))
      return false;
  return *name != 0;
}

/* Parses one text without looking at a graph. */
static status entry_parse(struct arena *arena, const char *text, struct entry_spec *out) {
  *out = (struct entry_spec){0};
  const char *colon = strchr(text, ':');
  if (!colon)
    return fail(INVALID_ARGUMENT,
                "--entry '%.200s': ':' is missing: an entry is 'NAME: FEEDS -> FETCHES | TARGETS' "
                "(tfc show GRAPH lists some to paste)",
                text);
  out->name = text_trim(arena, text, colon);
  if (!name_is_plain(out->name))
    return fail(INVALID_ARGUMENT, "--entry '%.200s': '%.100s' is no name", text, out->name);
  status result = parts_parse(arena, colon + 1, out);
  return result == OK ? OK : status_prefix(result, "--entry '%.200s': ", text);
}

/* ---- checks ---- */

enum offered { OFFER_TENSORS, OFFER_PLACEHOLDERS, OFFER_OPERATIONS };

static bool is_offered(const struct node *node, enum offered kind) {
  if (kind == OFFER_PLACEHOLDERS)
    return strncmp(node->op, "Placeholder", strlen("Placeholder")) == 0;
  return kind == OFFER_OPERATIONS || node->output_count > 0;
}

static void offer(const struct graph *graph, const char *name, enum offered kind, struct nearest *out) {
  nearest_begin(out, name);
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (is_offered(&graph->nodes.items[i], kind))
      nearest_add(out, graph->nodes.items[i].name);
}

/* What of the graph may have been meant: behind the error about a name that is not there. Any tensor can be fed, but who feeds what is
 * near to none is shown the placeholders. */
static status suggest(const struct graph *graph, const char *name, enum offered kind, status code) {
  struct nearest nearest, any;
  char text[1024], *node = strndup(name, strcspn(name, ":"));
  if (code != NOT_FOUND || !node || (kind != OFFER_OPERATIONS && graph_find(graph, node) != NO_NODE)) {
    free(node);
    return code;
  }
  offer(graph, node, kind, &nearest);
  offer(graph, node, kind == OFFER_PLACEHOLDERS ? OFFER_TENSORS : kind, &any);
  if (!nearest.total || (!nearest_meant(&nearest) && nearest_meant(&any)))
    kind = OFFER_TENSORS;
  status_suffix(code, "%s",
                kind == OFFER_PLACEHOLDERS ? nearest_text(&nearest, ", its placeholders are: ", text, sizeof text)
                                           : nearest_text(&any, ", the nearest are: ", text, sizeof text));
  free(node);
  return code;
}

static status tensor_find(const struct graph *graph, const char *name, enum offered kind, struct edge *out) {
  return suggest(graph, name, kind, graph_find_output(graph, name, out));
}

static status spec_check(const struct graph *graph, const struct entry_spec *spec) {
  struct edge edge;
  VEC(struct edge) fed = {0};
  status result = OK;
  for (uint32_t i = 0; i < spec->feeds.count && result == OK; i++) {
    result = tensor_find(graph, spec->feeds.items[i], OFFER_PLACEHOLDERS, &edge);
    for (uint32_t k = 0; k < fed.count && result == OK; k++)
      if (fed.items[k].node == edge.node && fed.items[k].port == edge.port)
        result = fail(INVALID_ARGUMENT, "the tensor '%s' is fed twice", spec->feeds.items[i]);
    vec_push(&fed, edge);
  }
  vec_free(&fed);
  TRY(result);
  for (uint32_t i = 0; i < spec->fetches.count; i++)
    TRY(tensor_find(graph, spec->fetches.items[i], OFFER_TENSORS, &edge));
  for (uint32_t i = 0; i < spec->targets.count; i++)
    if (graph_find(graph, spec->targets.items[i]) == NO_NODE)
      return suggest(graph, spec->targets.items[i], OFFER_OPERATIONS,
                     fail(NOT_FOUND, "the graph has no operation '%s'", spec->targets.items[i]));
  return OK;
}

struct entry_spec *entry_find(struct build *build, const char *name) {
  for (uint32_t i = 0; i < build->specs.count; i++)
    if (!strcmp(build->specs.items[i].name, name))
      return &build->specs.items[i];
  return NULL;
}

static status specs_check(struct build *build) {
  for (uint32_t i = 0; i < build->specs.count; i++) {
    struct entry_spec *spec = &build->specs.items[i];
    if (entry_find(build, spec->name) != spec)
      return fail(INVALID_ARGUMENT, "two entries are named '%s'", spec->name);
    status result = spec_check(build->model.graph, spec);
    if (result != OK)
      return status_prefix(result, "entry '%s': ", spec->name);
  }
  return OK;
}

void entry_spec_deinit(struct entry_spec *spec) {
  vec_free(&spec->feeds);
  vec_free(&spec->feed_keys);
  vec_free(&spec->fetches);
  vec_free(&spec->fetch_keys);
  vec_free(&spec->targets);
}

status entries_resolve(struct build *build) {
  entry_round_find(build);
  for (uint32_t i = 0; i < build->options.entries.count; i++) {
    struct entry_spec spec;
    status result = entry_parse(&build->arena, build->options.entries.items[i], &spec);
    vec_push(&build->specs, spec); /* a half-read one too: whoever frees the build frees it */
    TRY(result);
  }
  bool by_default = !build->specs.count;
  if (by_default)
    TRY(entry_defaults_add(build));
  entry_loaders_add(build);
  TRY(specs_check(build));
  entry_runners_add(build);
  if (by_default)
    entry_session_add(build);
  return OK;
}
