/* schedule_text.c: the text form of schedules, read and written. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/schedule/schedule.h"

static const char *const ops[] = {
  [STEP_NAME] = "name", [STEP_SPLIT] = "split", [STEP_FUSE] = "fuse", [STEP_ORDER] = "order", [STEP_RUN] = "run",
  [STEP_SINK] = "sink", [STEP_FETCH] = "fetch", [STEP_FMA] = "fma",   [STEP_CUT] = "cut",     [STEP_STAGE] = "stage",
  [STEP_PART] = "part", [STEP_JOIN] = "join",   [STEP_PAIR] = "pair",
};
#define OPS (int)(sizeof ops / sizeof *ops)
static const char *const spaces[] = {[IN_REGISTER] = "register", [IN_STACK] = "stack", [IN_RESULT] = "result"};

/* ---- reading ---- */

struct reader {
  const char *start, *at;
  struct arena *arena;
};

static status wrong(const struct reader *r, const char *what) {
  return fail(INVALID_ARGUMENT, "schedule, character %d: %s", (int)(r->at - r->start), what);
}

static void skip(struct reader *r) {
  while (isspace((unsigned char)*r->at))
    r->at++;
}
static size_t word_length(struct reader *r) {
  skip(r);
  size_t n = 0;
  while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')
    n++;
  return n;
}
static bool accept(struct reader *r, const char *token) {
  size_t n = strlen(token), length = word_length(r);
  bool is_word = isalnum((unsigned char)token[0]);
  if (is_word ? length != n || strncmp(r->at, token, n) != 0 : strncmp(r->at, token, n) != 0)
    return false;
  r->at += n;
  return true;
}
static status expect(struct reader *r, const char *token) {
  return accept(r, token) ? OK : wrong(r, arena_printf(r->arena, "expected '%s'", token));
}
static bool is_number(struct reader *r) {
  skip(r);
  return isdigit((unsigned char)*r->at);
}
static status number(struct reader *r, int64_t *out) {
  if (!is_number(r) || word_length(r) > 15)
    return wrong(r, "expected a number");
  char *end;
  *out = strtoll(r->at, &end, 10);
  r->at = end;
  return OK;
}
static status name(struct reader *r, const char **out) {
  size_t n = word_length(r);
  if (n == 0 || n > 31 || isdigit((unsigned char)*r->at))
    return wrong(r, "expected the name of a loop");
  *out = arena_strndup(r->arena, r->at, n);
  r->at += n;
  return OK;
}

/* One of `words`. */
static status choice(struct reader *r, const char *const *words, int count, int *out) {
  for (*out = 0; *out < count; ++*out)
    if (accept(r, words[*out]))
      return OK;
  return wrong(r, "none of the words that may stand here");
}

static bool ends(struct reader *r) {
  skip(r);
  return !*r->at || *r->at == ';' || (word_length(r) == 4 && strncmp(r->at, "else", 4) == 0);
}
/* Names up to `word` (a word, ->) or the end of the step. */
static status names(struct reader *r, const char *const *words, int count, const char **out) {
  for (int n = 0;; n++) {
    for (int i = 0; i < count; i++) {
      const char *at = r->at;
      bool found = accept(r, words[i]);
      r->at = at;
      if (found)
        return OK;
    }
    if (ends(r) || is_number(r))
      return OK;
    if (n == STEP_LOOPS)
      return wrong(r, "too many loops");
    TRY(name(r, &out[n]));
  }
}
static status numbers(struct reader *r, int64_t *out, int first) {
  for (int n = first; is_number(r); n++) {
    if (n == STEP_NUMBERS)
      return wrong(r, "too many numbers");
    TRY(number(r, &out[n]));
    if (out[n] < 1)
      return wrong(r, "expected a number above 0");
  }
  return OK;
}
static status made(struct reader *r, struct step *s) {
  TRY(expect(r, "->"));
  return names(r, NULL, 0, s->made);
}

static status read_split(struct reader *r, struct step *s) {
  TRY(name(r, &s->on[0]));
  if (!is_number(r))
    return wrong(r, "expected the size of the inner loop");
  TRY(numbers(r, s->n, 0));
  if (s->n[1])
    return wrong(r, "one size, the others behind 'tail cut'");
  TRY(expect(r, "->"));
  TRY(name(r, &s->made[0]));
  TRY(name(r, &s->made[1]));
  if (!accept(r, "tail"))
    return OK;
  if (!accept(r, "cut")) {
    TRY(name(r, &s->made[2]));
    TRY(expect(r, "cut"));
  }
  return numbers(r, s->n, 1);
}

static status read_run(struct reader *r, struct step *s) {
  int run;
  TRY(names(r, loop_run_words, LOOP_RUNS, s->on));
  TRY(choice(r, loop_run_words, LOOP_RUNS, &run));
  s->run = (enum loop_run)run;
  return run_has_width(s->run) ? numbers(r, s->n, 0) : OK;
}

static status read_sink(struct reader *r, struct step *s) {
  int space;
  TRY(names(r, (const char *const[]){"under"}, 1, s->on));
  TRY(expect(r, "under"));
  TRY(names(r, (const char *const[]){"in"}, 1, s->at));
  TRY(expect(r, "in"));
  TRY(choice(r, spaces, 3, &space));
  s->space = (enum step_space)space;
  s->first = accept(r, "first");
  return OK;
}

/* Where `at` does not stand there. */
static status read_dtype(struct reader *r, enum dtype *out) {
  const char *at = r->at, *word;
  TRY(name(r, &word));
  if (strcmp(word, "at") != 0)
    return dtype_from_name(word, out) ? OK : wrong(r, "expected a dtype");
  r->at = at;
  return OK;
}
static status read_buffer(struct reader *r, struct step *s) {
  const char *buffer;
  TRY(name(r, &buffer));
  bool letter = strlen(buffer) == 1 && islower((unsigned char)*buffer);
  s->buffer = letter ? (uint32_t)(*buffer - 'a') : *buffer == 'b' ? (uint32_t)strtoul(buffer + 1, NULL, 10) : 0;
  if (!letter && s->buffer < 26)
    return wrong(r, "expected a buffer");
  s->computed = s->op == STEP_STAGE && accept(r, "computed");
  if (s->computed)
    TRY(read_dtype(r, &s->as));
  TRY(expect(r, "at"));
  return name(r, &s->at[0]);
}
/* The number of a dimension, behind its point. */
static status dimension(struct reader *r, const char **out) {
  size_t n = strspn(r->at + 1, "0123456789");
  if (n < 1 || n > 2)
    return wrong(r, "expected the number of a dimension");
  *out = arena_strndup(r->arena, r->at, n + 1);
  r->at += n + 1;
  return OK;
}
static status read_stage(struct reader *r, struct step *s) {
  TRY(read_buffer(r, s));
  TRY(expect(r, "by"));
  for (int n = 0; !accept(r, "->"); n++) {
    if (n == STEP_LOOPS)
      return wrong(r, "too many loops");
    TRY(*r->at == '.' ? dimension(r, &s->on[n]) : name(r, &s->on[n]));
  }
  return names(r, NULL, 0, s->made);
}
static status read_fetch(struct reader *r, struct step *s) {
  TRY(read_buffer(r, s));
  TRY(expect(r, "ahead"));
  TRY(number(r, &s->n[0]));
  if (s->n[0] < 1)
    return wrong(r, "a distance above 0");
  if (!accept(r, "over"))
    return OK;
  TRY(names(r, NULL, 0, s->on));
  return s->on[0] ? OK : wrong(r, "over which loops");
}

static status read_cut(struct reader *r, struct step *s) {
  TRY(name(r, &s->on[0]));
  if (!accept(r, "at"))
    return OK;
  if (!is_number(r))
    return wrong(r, "expected where to cut");
  TRY(numbers(r, s->n, 0));
  return made(r, s);
}

static status read_part(struct reader *r, struct step *s) {
  TRY(name(r, &s->on[0]));
  TRY(number(r, &s->n[0]));
  return s->n[0] > 1 ? made(r, s) : wrong(r, "two parts or more");
}

static status read_join(struct reader *r, struct step *s) {
  TRY(number(r, &s->n[0]));
  return s->n[0] > 0 ? OK : wrong(r, "one loop or more");
}

static status read_operands(struct reader *r, struct step *s) {
  switch (s->op) {
  case STEP_NAME:
  case STEP_FUSE: TRY(names(r, (const char *const[]){"->"}, 1, s->on)); return made(r, s);
  case STEP_SPLIT: return read_split(r, s);
  case STEP_ORDER: TRY(names(r, (const char *const[]){"regroup"}, 1, s->on)); return s->regroup = accept(r, "regroup"), OK;
  case STEP_RUN: return read_run(r, s);
  case STEP_SINK: return read_sink(r, s);
  case STEP_FETCH: return read_fetch(r, s);
  case STEP_FMA: return OK;
  case STEP_CUT: return read_cut(r, s);
  case STEP_STAGE: return read_stage(r, s);
  case STEP_PART: return read_part(r, s);
  case STEP_JOIN: return read_join(r, s);
  case STEP_PAIR: return name(r, &s->on[0]);
  }
  return OK;
}

/* How many loops a step names and makes. */
static status check_counts(struct reader *r, const struct step *s) {
  int on = 0, makes = 0;
  while (on < STEP_LOOPS && s->on[on])
    on++;
  while (makes < STEP_LOOPS && s->made[makes])
    makes++;
  int cuts = 0;
  while (cuts < STEP_NUMBERS && s->n[cuts])
    cuts++;
  switch (s->op) {
  case STEP_NAME:
  case STEP_STAGE: return on && on == makes ? OK : wrong(r, "as many words as loops");
  case STEP_SPLIT: return makes == 2 || s->n[1] ? OK : wrong(r, "a split makes two loops");
  case STEP_FUSE: return on > 1 && makes == 1 ? OK : wrong(r, "fuse makes one loop of several");
  case STEP_CUT: return makes == cuts + (cuts > 0) ? OK : wrong(r, "a cut makes one loop more than it has points");
  case STEP_PART: return makes == 3 ? OK : wrong(r, "part makes three loops");
  case STEP_SINK: return on && s->at[0] ? OK : wrong(r, "sink takes loops under loops");
  case STEP_FETCH:
  case STEP_JOIN:
  case STEP_FMA: return OK;
  default: return on ? OK : wrong(r, "expected the name of a loop");
  }
}

static status read_steps(struct reader *r, struct variant *v) {
  while (accept(r, ";"))
    ;
  while (!ends(r)) {
    struct step s = {0};
    int op;
    TRY(choice(r, ops, OPS, &op));
    s.op = (enum step_op)op;
    TRY(read_operands(r, &s));
    TRY(check_counts(r, &s));
    vec_push(&v->steps, s);
    if (!ends(r))
      return wrong(r, "expected ';'");
    while (accept(r, ";"))
      ;
  }
  return OK;
}

/* when n0 < 64: */
static status read_when(struct reader *r, struct variant *v) {
  const char *size;
  int64_t below;
  TRY(name(r, &size));
  if (size[0] != 'n' || !isdigit((unsigned char)size[1]) || strlen(size) > 6)
    return wrong(r, "expected a size");
  v->size = (uint32_t)strtoul(size + 1, NULL, 10);
  TRY(expect(r, "<"));
  TRY(number(r, &below));
  v->below = below;
  return below > 0 ? expect(r, ":") : wrong(r, "a bound above 0");
}

status schedule_parse(const char *text, struct arena *arena, struct schedule *out) {
  struct reader r = {.start = text, .at = text, .arena = arena};
  struct schedule s = {0};
  struct variant v = {0};
  while (accept(&r, "when")) {
    TRY(read_when(&r, &v));
    TRY(read_steps(&r, &v));
    vec_push(&s.variants, v);
    v = (struct variant){0};
    TRY(expect(&r, "else"));
    TRY(expect(&r, ":"));
  }
  TRY(read_steps(&r, &v));
  vec_push(&s.variants, v);
  if (*r.at)
    return wrong(&r, "something behind the schedule");
  *out = s;
  return OK;
}

/* ---- writing ---- */

struct writer {
  struct arena *arena;
  const char *text;
};

static void put(struct writer *w, const char *text) { w->text = arena_printf(w->arena, "%s%s", w->text, text); }
static void put_names(struct writer *w, const char *const *list) {
  for (int i = 0; i < STEP_LOOPS && list[i]; i++)
    w->text = arena_printf(w->arena, "%s %s", w->text, list[i]);
}
static void put_numbers(struct writer *w, const int64_t *n, int count) {
  for (int i = 0; i < count && n[i]; i++)
    w->text = arena_printf(w->arena, "%s %" PRId64, w->text, n[i]);
}

static void put_buffer(struct writer *w, const struct step *s) {
  const char *buffer = s->buffer < 26 ? arena_printf(w->arena, "%c", 'a' + (int)s->buffer) : arena_printf(w->arena, "b%u", s->buffer);
  const char *as = s->as == DTYPE_INVALID ? "" : arena_printf(w->arena, " %s", dtype_short(s->as));
  w->text = arena_printf(w->arena, "%s %s%s%s at", w->text, buffer, s->computed ? " computed" : "", as);
  put_names(w, s->at);
}

static void put_operands(struct writer *w, const struct step *s) {
  switch (s->op) {
  case STEP_SPLIT:
  case STEP_JOIN:
  case STEP_PART: put_numbers(w, s->n, 1); break;
  case STEP_ORDER: put(w, s->regroup ? " regroup" : ""); break;
  case STEP_RUN:
    w->text = arena_printf(w->arena, "%s %s", w->text, loop_run_words[s->run]);
    put_numbers(w, s->n, 1);
    break;
  case STEP_SINK:
    put(w, " under");
    put_names(w, s->at);
    w->text = arena_printf(w->arena, "%s in %s%s", w->text, spaces[s->space], s->first ? " first" : "");
    break;
  case STEP_FETCH:
    put_buffer(w, s);
    put(w, " ahead");
    put_numbers(w, s->n, 1);
    put(w, s->on[0] ? " over" : "");
    put_names(w, s->on);
    break;
  case STEP_CUT:
    put(w, s->n[0] ? " at" : "");
    put_numbers(w, s->n, STEP_NUMBERS);
    break;
  case STEP_STAGE:
    put_buffer(w, s);
    put(w, " by");
    put_names(w, s->on);
    break;
  case STEP_NAME:
  case STEP_FUSE:
  case STEP_PAIR:
  case STEP_FMA: break;
  }
}

static void put_split(struct writer *w, const struct step *s) {
  w->text = arena_printf(w->arena, "%s -> %s %s", w->text, s->made[0], s->made[1]);
  if (!s->n[1])
    return;
  w->text = arena_printf(w->arena, "%s tail%s%s cut", w->text, s->made[2] ? " " : "", s->made[2] ? s->made[2] : "");
  put_numbers(w, s->n + 1, STEP_NUMBERS - 1);
}
static void put_step(struct writer *w, const struct step *s) {
  put(w, ops[s->op]);
  if (s->op != STEP_STAGE && s->op != STEP_FETCH)
    put_names(w, s->on);
  put_operands(w, s);
  if (s->op == STEP_SPLIT) {
    put_split(w, s);
  } else if (s->made[0]) {
    put(w, " ->");
    put_names(w, s->made);
  }
}

char *schedule_print(const struct schedule *s, struct arena *arena) {
  struct writer w = {.arena = arena, .text = ""};
  for (uint32_t i = 0; i < s->variants.count; i++) {
    const struct variant *v = &s->variants.items[i];
    if (i)
      put(&w, "\nelse: ");
    if (v->below)
      w.text = arena_printf(arena, "%swhen n%u < %" PRId64 ": ", w.text, v->size, v->below);
    for (uint32_t j = 0; j < v->steps.count; j++) {
      put(&w, j ? "; " : "");
      put_step(&w, &v->steps.items[j]);
    }
  }
  return arena_strdup(arena, w.text);
}
