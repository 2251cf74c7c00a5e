/* regex.h: regular expressions with RE2's syntax and meaning: UTF-8, leftmost match, earlier alternatives first, and time
 * that is linear in the text: threads run side by side (Thompson, Pike), nothing is tried twice.
 *
 * Not there: classes by Unicode property (\p{Greek}), \C; case is folded for ASCII letters only. They are UNIMPLEMENTED.
 */
#ifndef TFC_RUNTIME_TEXT_REGEX_H
#define TFC_RUNTIME_TEXT_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include "base/status.h"

#define REGEX_GROUPS 10 /* that a rewrite can name: \0 .. \9 */

struct regex;

/* INVALID_ARGUMENT says what is wrong with the pattern. */
status regex_create(const char *pattern, size_t size, struct regex **out);
void regex_destroy(struct regex *regex); /* accepts NULL */
/* Groups of the pattern, without the whole. */
int regex_group_count(const struct regex *regex);

struct regex_span {
  long begin, end; /* -1: took no part */
};
/* Whether the text from `from` on has a match (the whole of it: when `full`). groups: REGEX_GROUPS places, or NULL.
 * RESOURCE_EXHAUSTED without memory. */
status regex_match(const struct regex *regex, const char *text, size_t size, size_t from, bool full, bool *found,
                   struct regex_span *groups);

/* What is at the front of a text that is not empty, as RE2 takes it: a surrogate is a code point too, of damaged text each byte stands
 * alone (-1). *used: its bytes. */
int32_t regex_decode(const char *text, size_t size, size_t *used);

#endif
