/* regex_run.c: all threads of a pattern step through the text together; a list keeps them in order of preference, and a thread
 * that comes to an instruction where one of this position already is, ends. While there is none, bytes with which no match begins are
 * passed over. */
#include <stdlib.h>
#include <string.h>

#include "runtime/text/regex_code.h"
#include "runtime/text/utf8.h"

#define PLACES (2 * REGEX_GROUPS)
#define ROOM 16384 /* bytes on the stack: most patterns run in them */

struct thread_list {
  uint32_t *pcs;
  long *saved; /* `places` each */
  uint32_t count;
};
struct return_point {
  uint32_t pc;
  int place; /* >= 0: put `old` back there instead */
  long old;
};
struct machine {
  const struct regex *regex;
  const char *text;
  size_t size;
  struct thread_list now, next;
  uint32_t *seen; /* per instruction: the round it was last added in */
  uint32_t round;
  struct return_point *stack;
  size_t places; /* that are kept of a thread: none where nobody asks for groups */
};

int32_t regex_decode(const char *text, size_t size, size_t *used) {
  const unsigned char *p = (const unsigned char *)text;
  int32_t code = utf8_decode(text, size, used);
  if (code != UTF8_BAD)
    return code;
  bool is_surrogate = size >= 3 && p[0] == 0xed && p[1] >= 0xa0 && p[1] < 0xc0 && p[2] >= 0x80 && p[2] < 0xc0;
  *used = is_surrogate ? 3 : 1;
  return is_surrogate ? 0xd000 | (p[1] & 0x3f) << 6 | (p[2] & 0x3f) : UTF8_BAD;
}

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
  return code >= 0 && code < ASCII_CODES ? r->sets.items[set].ascii[code / 8] >> code % 8 & 1 : set_has_range(r, set, code);
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
      if (instr->a >= m->places) {
        m->stack[top].pc = pc + 1;
        m->stack[top++].place = -1;
        break;
      }
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
      memcpy(list->saved + (size_t)list->count * m->places, saved, m->places * sizeof *saved);
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
    while (!full && !*found && m->now.count == 0 && at < m->size && !m->regex->begins[(unsigned char)m->text[at]])
      at++; /* no part of a longer character: those may all begin */
    if (!*found && (!full || at == from)) {
      for (int i = 0; i < PLACES; i++)
        fresh[i] = -1;
      add_thread(m, &m->now, 0, at, fresh);
    }
    if (m->now.count == 0 && (full || *found))
      return;
    size_t used = 1;
    int32_t code = at < m->size ? regex_decode(m->text + at, m->size - at, &used) : UTF8_BAD;
    m->round++;
    m->next.count = 0;
    for (uint32_t i = 0; i < m->now.count; i++) {
      const struct regex_instr *instr = &m->regex->code.items[m->now.pcs[i]];
      long *saved = m->now.saved + (size_t)i * m->places;
      if (instr->op == REGEX_MATCH) {
        if (full && at != m->size)
          continue;
        memcpy(best, saved, m->places * sizeof *best);
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

/* What a machine for so many instructions works in, one behind the other; where `room` is NULL only how many bytes. */
static size_t lay_out(struct machine *m, char *room, size_t count) {
  size_t saved = (count + 1) * m->places * sizeof(long), stack = (2 * count + 4) * sizeof *m->stack, pcs = (count + 1) * sizeof *m->seen;
  if (room) {
    m->now.saved = (long *)(void *)room;
    m->next.saved = (long *)(void *)(room + saved);
    m->stack = (struct return_point *)(void *)(room + 2 * saved);
    m->now.pcs = (uint32_t *)(void *)(room + 2 * saved + stack);
    m->next.pcs = m->now.pcs + count + 1;
    m->seen = m->next.pcs + count + 1;
    memset(m->seen, 0, pcs);
  }
  return 2 * saved + stack + 3 * pcs;
}

status regex_match(const struct regex *regex, const char *text, size_t size, size_t from, bool full, bool *found,
                   struct regex_span *groups) {
  size_t count = regex->code.count;
  struct machine m = {.regex = regex, .text = text, .size = size};
  if (groups)
    m.places = regex->groups < REGEX_GROUPS ? 2 * ((size_t)regex->groups + 1) : PLACES;
  size_t bytes = lay_out(&m, NULL, count);
  long best[PLACES], near[ROOM / sizeof(long)];
  char *room = bytes <= sizeof near ? (char *)near : malloc(bytes);
  if (!room)
    return fail(RESOURCE_EXHAUSTED, "no memory to match a pattern");
  lay_out(&m, room, count);
  run(&m, from, full, found, best);
  for (size_t i = 0; groups && *found && i < REGEX_GROUPS; i++)
    groups[i] = 2 * i < m.places ? (struct regex_span){best[2 * i], best[2 * i + 1]} : (struct regex_span){-1, -1};
  if (room != (char *)near)
    free(room);
  return OK;
}
