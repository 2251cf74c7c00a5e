/* axis_words.c: see axis_words.h. */
#include "compiler/schedule/axis_words.h"

struct axis_words axis_words_of(const struct nest *n, const struct contraction *c, const char *ending, const struct axis_name *names,
                                int name_count) {
  struct axis_words w = {.n = n, .c = c};
  const char *number = ending ? ending : n->number ? arena_printf(n->arena, "_%d", n->number) : "";
  for (int i = 0; i < name_count; i++)
    if (names[i].axis >= 0) {
      w.of[names[i].axis] = arena_printf(n->arena, "%s%s", names[i].word, number);
      w.is_named[names[i].axis] = true;
    }
  for (int i = 0; i < c->axis_count; i++)
    if (!w.is_named[i])
      w.of[i] = i < c->par_count ? arena_printf(n->arena, "b%c%s", 'a' + i, number)
                                 : arena_printf(n->arena, "k%c%s", 'a' + i - c->par_count, number);
  return w;
}

static const char *list(const struct axis_words *w, int from, int to, bool with_named) {
  const char *text = "";
  for (int i = from; i < to; i++)
    if (with_named || !w->is_named[i])
      text = arena_printf(w->n->arena, "%s %s", text, w->of[i]);
  return text;
}
const char *axis_words_list(const struct axis_words *w, int from, int to) { return list(w, from, to, true); }
const char *axis_words_others(const struct axis_words *w, int from, int to) { return list(w, from, to, false); }

const char *axis_words_begin(const struct axis_words *w) {
  const char *loops = "";
  bool has_fma = w->n->machine->has_fma && dtype_is_float(w->c->dtype);
  for (int i = 0; i < w->c->axis_count; i++)
    loops = arena_printf(w->n->arena, "%s i%d", loops, w->n->first_loop + i);
  return arena_printf(w->n->arena, "name%s ->%s%s", loops, axis_words_list(w, 0, w->c->axis_count), has_fma ? "; fma" : "");
}
