/* axis_words.h: what the loops of a nest are called in the steps of its schedule.
 *
 * A generator has words for the axes that its steps tell apart; of the others each parallel one is b and each of a sum k, with a letter
 * (ba, bb, kc ...). A nest that is not the kernel's first has its number behind every word.
 *
 * Owner: the nest's arena. */
#ifndef TFC_COMPILER_SCHEDULE_AXIS_WORDS_H
#define TFC_COMPILER_SCHEDULE_AXIS_WORDS_H

#include "compiler/schedule/choose.h"

struct axis_name {
  int axis; /* -1: there is none */
  const char *word;
};
struct axis_words {
  const struct nest *n;
  const struct contraction *c;
  const char *of[CONTRACTION_AXES];
  bool is_named[CONTRACTION_AXES]; /* by the generator */
};

/* `ending` stands behind every word; NULL: the nest's number, where it has one. */
struct axis_words axis_words_of(const struct nest *n, const struct contraction *c, const char *ending, const struct axis_name *names,
                                int name_count);
/* " ba bb": the axes from .. to-1, all or those that the generator has no word for. */
const char *axis_words_list(const struct axis_words *w, int from, int to);
const char *axis_words_others(const struct axis_words *w, int from, int to);
/* "name i0 i1 i2 -> m n k; fma": the first steps; the second where the machine has them. */
const char *axis_words_begin(const struct axis_words *w);

#endif
