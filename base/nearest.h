/* nearest.h: what there is, nearest first, for errors about a name that is not there: "did you mean".
 *
 * Names are added one by one and kept by reference; only the nearest are kept, so that a graph of any size can be asked. The
 * distance is the number of letters to change, add, leave out or exchange with their neighbour (Damerau's, each pair at most
 * once), where another case counts half; a name whose last scope fits is near as well ("loss" is near "train/loss").
 */
#ifndef TFC_BASE_NEAREST_H
#define TFC_BASE_NEAREST_H

#include <stddef.h>
#include <stdint.h>

#define NEAREST_SHOWN 8  /* of names that there may be any number of */
#define NEAREST_WORDS 16 /* of a vocabulary, which is shown whole: it has no more words */

struct nearest {
  const char *wanted;
  struct {
    const char *name;
    uint32_t distance;
  } best[NEAREST_WORDS]; /* of `shown` names, the nearest first, else in the order of adding */
  uint32_t shown, room;
  uint64_t total;
};

void nearest_begin(struct nearest *nearest, const char *wanted);
/* The same, and adds the words of a vocabulary. */
void nearest_begin_words(struct nearest *nearest, const char *wanted, const char *const *words, size_t count);
/* NULL is no name. */
void nearest_add(struct nearest *nearest, const char *name);
/* Twice the number of changes, less for what fits but for its case. */
uint32_t nearest_distance(const char *a, const char *b);
/* Behind a sentence that says what is missing, with the lead ", it has: ": ", it has: loss, logits; did you mean 'loss'?",
 * ", it has: x, y and 7 more", ", it has: none". `text` has `size` bytes and is what is returned. */
const char *nearest_text(const struct nearest *nearest, const char *lead, char *text, size_t size);
/* The same without the question. */
const char *nearest_list(const struct nearest *nearest, const char *lead, char *text, size_t size);
/* The name that may have been meant; NULL: none is near enough. */
const char *nearest_meant(const struct nearest *nearest);

#endif
