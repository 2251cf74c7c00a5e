/* page.c: the two forms of the same facts. */
#include "runtime/process/page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
  char *to;
  size_t used;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int count = vsnprintf(text->to + text->used, PAGE_BYTES - text->used, format, args);
  va_end(args);
  text->used += count > 0 ? (size_t)count : 0;
  if (text->used > PAGE_BYTES - 1)
    text->used = PAGE_BYTES - 1;
}

void page_write_text(const struct page_facts *facts, char *out) {
  struct text text = {out, 0};
  add(&text, "%s %s\n", facts->task, facts->stage);
  if (facts->phase)
    add(&text, "phase %u of %u: %s", facts->phase, facts->phases, facts->entry);
  if (facts->phase && facts->steps)
    add(&text, ", step %" PRId64 " of %" PRId64, facts->step, facts->steps);
  add(&text, "%s%s\n", facts->phase ? "\n" : "", facts->waits[0] ? facts->waits : "waits for nothing");
  for (uint32_t i = 0; i < facts->driver_count; i++)
    add(&text, "applied: %s %" PRIu64 "%s\n", facts->drivers[i].name, facts->drivers[i].last,
        facts->drivers[i].command > 1 ? " of its latest command" : "");
  if (facts->checkpoint[0])
    add(&text, "checkpoint: %s\n", facts->checkpoint);
  for (uint32_t i = 0; i < facts->peer_count; i++)
    add(&text, "%s at %s %s (%" PRIu64 " s)\n", facts->peers[i].name, facts->peers[i].address, facts->peers[i].state,
        facts->peers[i].since_s);
  if (facts->more_peers)
    add(&text, "and %u more tasks\n", facts->more_peers);
}

/* "...", escaped. */
static void add_string(struct text *text, const char *string) {
  add(text, "\"");
  for (const char *at = string; *at; at++)
    if (*at == '"' || *at == '\\')
      add(text, "\\%c", *at);
    else if ((unsigned char)*at < ' ')
      add(text, "\\u%04x", (unsigned)(unsigned char)*at);
    else
      add(text, "%c", *at);
  add(text, "\"");
}

static void add_field(struct text *text, const char *name, const char *string) {
  add(text, ", \"%s\": ", name);
  add_string(text, string);
}

static void add_lists(struct text *text, const struct page_facts *facts) {
  add(text, ", \"applied\": [");
  for (uint32_t i = 0; i < facts->driver_count; i++) {
    add(text, "%s{\"task\": ", i ? ", " : "");
    add_string(text, facts->drivers[i].name);
    add(text, ", \"command\": %u, \"step\": %" PRIu64 "}", facts->drivers[i].command, facts->drivers[i].last);
  }
  add(text, "], \"peers\": [");
  for (uint32_t i = 0; i < facts->peer_count; i++) {
    add(text, "%s{\"task\": ", i ? ", " : "");
    add_string(text, facts->peers[i].name);
    add_field(text, "address", facts->peers[i].address);
    add_field(text, "state", facts->peers[i].state);
    add(text, ", \"seconds\": %" PRIu64 "}", facts->peers[i].since_s);
  }
  add(text, "], \"more_peers\": %u", facts->more_peers);
}

void page_write_json(const struct page_facts *facts, char *out) {
  struct text text = {out, 0};
  add(&text, "{\"task\": ");
  add_string(&text, facts->task);
  add_field(&text, "stage", facts->stage);
  add(&text, ", \"phase\": %u, \"phases\": %u", facts->phase, facts->phases);
  add_field(&text, "entry", facts->phase ? facts->entry : "");
  add(&text, ", \"step\": %" PRId64 ", \"steps\": %" PRId64, facts->step, facts->steps);
  add_field(&text, "waits", facts->waits);
  add_field(&text, "checkpoint", facts->checkpoint);
  add_lists(&text, facts);
  add(&text, "}\n");
  if (text.used == PAGE_BYTES - 1) /* cut off: no JSON any more */
    snprintf(out, PAGE_BYTES, "{\"task\": \"\", \"stage\": \"has more to say than fits\"}\n");
}
