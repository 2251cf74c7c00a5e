/* regex_run.c: all threads of a pattern step through the text together; a list keeps them in order of preference, and a thread
 * that comes to an instruction where one of this position already is, ends. */
#include <stdlib.h>
#include <string.h>

#include "runtime/text/regex_code.h"
#include "runtime/text/utf8.h"

#define PLACES (2 * REGEX_GROUPS)

struct thread_list {
  uint32_t *pcs;
  long *saved; /* PLACES each */
  uint32_t count;
};
struct machine {
  const struct regex *regex;
  const char *text;
  size_t size;
  struct thread_list now, next;
  uint32_t *seen; /* per instruction: the round it was last added in */
  uint32_t round;
  struct {
    uint32_t pc;
    int place; /* >= 0: put `old` back there instead */
    long old;
  } * stack;
};

static bool is_word_at(const struct machine *m, size_t at) {
  unsigned char c = (unsigned char)m->text[at];
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool holds(const struct machine *m, uint32_t place, size_t at) {
  bool before = at > 0 && is_word_at(m, at - 1), after = at < m->size && is_word_at(m, at);
  switch ((enum regex_place)place) {
  case PLACE_TEXT_BEGIN: return at == 0;
  case PLACE_TEXT_END: return at == m->size;
  case PLACE_LINE_BEGIN: return at == 0 || m->text[at - 1] == '\n';
  case PLACE_LINE_END: return at == m->size || m->text[at] == '\n';
  case PLACE_WORD: return before != after;
  case PLACE_NO_WORD: return before == after;
  }
  return false;
}

static bool set_has(const struct regex *r, uint32_t set, int32_t code) {
  const struct regex_range *range = r->ranges.items + r->sets.items[set].first;
  for (uint32_t i = 0; i < r->sets.items[set].count; i++)
    if (code >= range[i].low && code <= range[i].high)
      return true;
  return false;
}

/* Follows everything that takes no character. */
static void add_thread(struct machine *m, struct thread_list *list, uint32_t start, size_t at, long *saved) {
  uint32_t top = 0;
  m->stack[top].pc = start;
  m->stack[top++].place = -1;
  while (top) {
    uint32_t pc = m->stack[--top].pc;
    if (m->stack[top].place >= 0) {
      saved[m->stack[top].place] = m->stack[top].old;
      continue;
    }
    if (m->seen[pc] == m->round)
      continue;
    m->seen[pc] = m->round;
    const struct regex_instr *instr = &m->regex->code.items[pc];
    switch (instr->op) {
    case REGEX_JUMP:
      m->stack[top].pc = instr->a;
      m->stack[top++].place = -1;
      break;
    case REGEX_SPLIT:
      m->stack[top].pc = instr->b;
      m->stack[top++].place = -1;
      m->stack[top].pc = instr->a;
      m->stack[top++].place = -1;
      break;
    case REGEX_SAVE:
      m->stack[top].place = (int)instr->a;
      m->stack[top++].old = saved[instr->a];
      saved[instr->a] = (long)at;
      m->stack[top].pc = pc + 1;
      m->stack[top++].place = -1;
      break;
    case REGEX_ASSERT:
      if (holds(m, instr->a, at)) {
        m->stack[top].pc = pc + 1;
        m->stack[top++].place = -1;
      }
      break;
    case REGEX_SET:
    case REGEX_MATCH:
      memcpy(list->saved + (size_t)list->count * PLACES, saved, PLACES * sizeof *saved);
      list->pcs[list->count++] = pc;
      break;
    }
  }
}

static void run(struct machine *m, size_t from, bool full, bool *found, long *best) {
  long fresh[PLACES];
  *found = false;
  m->now.count = 0;
  m->round = 1;
  for (size_t at = from;;) {
    if (!*found && (!full || at == from)) {
      for (int i = 0; i < PLACES; i++)
        fresh[i] = -1;
      add_thread(m, &m->now, 0, at, fresh);
    }
    if (m->now.count == 0 && (full || *found))
      return;
    size_t used = 1;
    int32_t code = at < m->size ? utf8_decode(m->text + at, m->size - at, &used) : UTF8_BAD;
    m->round++;
    m->next.count = 0;
    for (uint32_t i = 0; i < m->now.count; i++) {
      const struct regex_instr *instr = &m->regex->code.items[m->now.pcs[i]];
      long *saved = m->now.saved + (size_t)i * PLACES;
      if (instr->op == REGEX_MATCH) {
        if (full && at != m->size)
          continue;
        memcpy(best, saved, PLACES * sizeof *best);
        *found = true;
        break; /* those behind are less preferred */
      }
      if (code != UTF8_BAD && set_has(m->regex, instr->a, code))
        add_thread(m, &m->next, m->now.pcs[i] + 1, at + used, saved);
    }
    struct thread_list swap = m->now;
    m->now = m->next;
    m->next = swap;
    if (at >= m->size)
      return;
    at += used;
  }
}

status regex_match(const struct regex *regex, const char *text, size_t size, size_t from, bool full, bool *found,
                   struct regex_span *groups) {
  size_t count = regex->code.count;
  struct machine m = {.regex = regex, .text = text, .size = size};
  long best[PLACES];
  m.now.pcs = calloc(count + 1, sizeof *m.now.pcs);
  m.next.pcs = calloc(count + 1, sizeof *m.next.pcs);
  m.now.saved = calloc((count + 1) * PLACES, sizeof *m.now.saved);
  m.next.saved = calloc((count + 1) * PLACES, sizeof *m.next.saved);
  m.seen = calloc(count + 1, sizeof *m.seen);
  m.stack = calloc(2 * count + 4, sizeof *m.stack);
  bool ready = m.now.pcs && m.next.pcs && m.now.saved && m.next.saved && m.seen && m.stack;
  if (ready)
    run(&m, from, full, found, best);
  for (int i = 0; ready && groups && *found && i < REGEX_GROUPS; i++)
    groups[i] = (struct regex_span){best[2 * i], best[2 * i + 1]};
  free(m.now.pcs);
  free(m.next.pcs);
  free(m.now.saved);
  free(m.next.saved);
  free(m.seen);
  free(m.stack);
  return ready ? OK : fail(RESOURCE_EXHAUSTED, "no memory to match a pattern");
}
