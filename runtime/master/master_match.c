/* master_match.c: runs against entries. Sets are small: a few names each, compared by walking. */
#include "runtime/master/master_match.h"

#include <stdio.h>
#include <string.h>
#include "runtime/master/master_graph.h"

static bool list_has(const char *const *list, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(list[i], name) == 0)
      return true;
  return false;
}

static bool ports_have(const struct master_port *ports, uint32_t count, const char *tensor) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(ports[i].tensor, tensor) == 0)
      return true;
  return false;
}

static bool all_in_ports(const char *const *list, uint32_t count, const struct master_port *ports, uint32_t port_count) {
  for (uint32_t i = 0; i < count; i++)
    if (!ports_have(ports, port_count, list[i]))
      return false;
  return true;
}

static bool ports_all_in(const struct master_port *ports, uint32_t port_count, const char *const *list, uint32_t count) {
  for (uint32_t i = 0; i < port_count; i++)
    if (!list_has(list, count, ports[i].tensor))
      return false;
  return true;
}

static bool all_in(const char *const *list, uint32_t count, const char *const *other, uint32_t other_count) {
  for (uint32_t i = 0; i < count; i++)
    if (!list_has(other, other_count, list[i]))
      return false;
  return true;
}

/* ---- checks ---- */

/* "node:2" -> node and 2; false when it is no such name. */
static bool tensor_split(const char *tensor, size_t *node_size) {
  const char *colon = strrchr(tensor, ':');
  *node_size = colon ? (size_t)(colon - tensor) : 0;
  return colon && colon != tensor && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

static bool tensor_is_known(const struct master_config *config, const uint8_t *known, const char *tensor) {
  size_t size;
  uint32_t node = tensor_split(tensor, &size) ? master_node_find(config, tensor, size) : UINT32_MAX;
  return node != UINT32_MAX && known[node];
}

static status targets_check(const struct master_config *config, const uint8_t *known, const struct master_request *r) {
  char missing[1024] = "";
  for (uint32_t i = 0; i < r->target_count; i++) {
    uint32_t node = master_node_find(config, r->targets[i], strlen(r->targets[i]));
    size_t used = strlen(missing);
    if (node == UINT32_MAX || !known[node])
      snprintf(missing + used, sizeof missing - used, "%s ", r->targets[i]);
  }
  return missing[0] ? fail(NOT_FOUND, "PruneForTargets: Some target nodes not found: %s", missing) : OK;
}

status master_request_check(const struct master_config *config, const uint8_t *known, const struct master_request *r) {
  for (uint32_t i = 0; i < r->feed_count; i++) {
    if (!tensor_is_known(config, known, r->feeds[i]))
      return fail(NOT_FOUND, "FeedInputs: unable to find feed output %s", r->feeds[i]);
    if (list_has(r->feeds, i, r->feeds[i]))
      return fail(INVALID_ARGUMENT, "Endpoint \"%s\" fed more than once.", r->feeds[i]);
  }
  for (uint32_t i = 0; i < r->fetch_count; i++) {
    size_t size = 0;
    if (!tensor_is_known(config, known, r->fetches[i]))
      return fail(NOT_FOUND, "FetchOutputs node %.*s: not found", (int)(tensor_split(r->fetches[i], &size) ? size : strlen(r->fetches[i])),
                  r->fetches[i]);
    if (list_has(r->feeds, r->feed_count, r->fetches[i]))
      return fail(INVALID_ARGUMENT, "%s is both fed and fetched.", r->fetches[i]);
  }
  TRY(targets_check(config, known, r));
  if (r->fetch_count + r->target_count == 0)
    return fail(INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
  return OK;
}

/* ---- matching ---- */

/* The fetches of an entry that the client has not asked for are none, or change nothing (`or_optional`). */
static bool fetches_are_wanted(const struct master_entry *entry, const struct master_request *r, bool or_optional) {
  for (uint32_t i = 0; i < entry->fetch_count; i++)
    if (!list_has(r->fetches, r->fetch_count, entry->fetches[i].tensor) && !(or_optional && entry->fetches[i].is_optional))
      return false;
  return true;
}

static bool is_same(const struct master_entry *entry, const struct master_request *r, bool or_optional) {
  return all_in_ports(r->feeds, r->feed_count, entry->feeds, entry->feed_count) &&
         ports_all_in(entry->feeds, entry->feed_count, r->feeds, r->feed_count) &&
         all_in_ports(r->fetches, r->fetch_count, entry->fetches, entry->fetch_count) && fetches_are_wanted(entry, r, or_optional) &&
         all_in(r->targets, r->target_count, entry->targets, entry->target_count) &&
         all_in(entry->targets, entry->target_count, r->targets, r->target_count);
}

/* What the client feeds beyond the entry's feeds must not matter: a placeholder the entry never reads. A fed output of another op would
 * have to take the op's place. */
static bool extra_feeds_do_not_matter(const struct master_config *config, const struct master_entry *entry,
                                      const struct master_request *r) {
  for (uint32_t i = 0; i < r->feed_count; i++) {
    size_t size = 0;
    if (ports_have(entry->feeds, entry->feed_count, r->feeds[i]))
      continue;
    uint32_t node = tensor_split(r->feeds[i], &size) ? master_node_find(config, r->feeds[i], size) : UINT32_MAX;
    if (node == UINT32_MAX || strcmp(config->nodes[node].op, "Placeholder") != 0)
      return false;
  }
  return true;
}

static bool contains(const struct master_config *config, const struct master_entry *entry, const struct master_request *r) {
  return !entry->changes_state && all_in_ports(r->fetches, r->fetch_count, entry->fetches, entry->fetch_count) &&
         all_in(r->targets, r->target_count, entry->targets, entry->target_count) &&
         ports_all_in(entry->feeds, entry->feed_count, r->feeds, r->feed_count) && extra_feeds_do_not_matter(config, entry, r);
}

/* ---- the refusal ---- */

struct words {
  char text[1800];
  size_t used;
};

static void say(struct words *words, const char *before, const char *word) {
  int size = snprintf(words->text + words->used, sizeof words->text - words->used, "%s%s", before, word);
  words->used += (size_t)size;
  if (words->used >= sizeof words->text) {
    words->used = sizeof words->text - 1;
    memcpy(words->text + words->used - 3, "...", 3);
  }
}

static void say_entry(struct words *words, const struct master_entry *entry) {
  say(words, " '", entry->name);
  say(words, ":", "");
  for (uint32_t i = 0; i < entry->feed_count; i++)
    say(words, i ? ", " : " ", entry->feeds[i].tensor);
  say(words, " ->", "");
  for (uint32_t i = 0; i < entry->fetch_count; i++)
    say(words, i ? ", " : " ", entry->fetches[i].tensor);
  for (uint32_t i = 0; i < entry->target_count; i++)
    say(words, i ? ", " : " | ", entry->targets[i]);
  say(words, "'", "");
}

static void say_request(struct words *words, const struct master_request *r) {
  for (uint32_t i = 0; i < r->feed_count; i++)
    say(words, i ? ", " : "", r->feeds[i]);
  say(words, " ->", "");
  for (uint32_t i = 0; i < r->fetch_count; i++)
    say(words, i ? ", " : " ", r->fetches[i]);
  for (uint32_t i = 0; i < r->target_count; i++)
    say(words, i ? ", " : " | ", r->targets[i]);
}

status master_match(const struct master_config *config, const struct master_request *request, uint32_t *out) {
  uint32_t best = UINT32_MAX;
  for (int turn = 0; turn < 2; turn++)
    for (uint32_t i = 0; i < config->entry_count; i++)
      if (is_same(&config->entries[i], request, turn > 0)) {
        *out = i;
        return OK;
      }
  for (uint32_t i = 0; i < config->entry_count; i++) {
    const struct master_entry *entry = &config->entries[i];
    if (contains(config, entry, request) && (best == UINT32_MAX || entry->fetch_count < config->entries[best].fetch_count))
      best = i;
  }
  *out = best;
  if (best != UINT32_MAX)
    return OK;
  struct words words = {.used = 0};
  say(&words, "no entry of this program serves the run '", "");
  say_request(&words, request);
  say(&words, "'; its entries are", config->entry_count ? ":" : " none");
  for (uint32_t i = 0; i < config->entry_count; i++)
    if (i == 0 || strcmp(config->entries[i].name, config->entries[i - 1].name) != 0) /* variants for ranks share a name */
      say_entry(&words, &config->entries[i]);
  return fail(FAILED_PRECONDITION, "%s", words.text);
}
