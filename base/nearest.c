/* nearest.c: three rows of the table of distances are enough; names are cut where they are longer than a row. */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LETTERS_MAX 128
#define SCOPE_COST 3 /* more than a wrong letter, less than two */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t letter_cost(char a, char b) {
  if (a == b)
    return 0;
  return tolower((unsigned char)a) == tolower((unsigned char)b) ? 1 : 2;
}

uint32_t nearest_distance(const char *a, const char *b) {
  uint32_t m = (uint32_t)strnlen(a, LETTERS_MAX), n = (uint32_t)strnlen(b, LETTERS_MAX);
  uint32_t rows[3][LETTERS_MAX + 1];
  for (uint32_t j = 0; j <= n; j++)
    rows[0][j] = 2 * j;
  for (uint32_t i = 1; i <= m; i++) {
    uint32_t *row = rows[i % 3];
    const uint32_t *before = rows[(i + 2) % 3], *before_that = rows[(i + 1) % 3];
    row[0] = 2 * i;
    for (uint32_t j = 1; j <= n; j++) {
      row[j] = least(before[j - 1] + letter_cost(a[i - 1], b[j - 1]), least(before[j], row[j - 1]) + 2);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], before_that[j - 2] + 2);
    }
  }
  return rows[m % 3][n];
}

static const char *last_scope(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash ? slash + 1 : name;
}

static bool is_scope_of(const char *wanted, const char *name) {
  size_t length = strlen(wanted);
  for (const char *at = name; (at = strstr(at, wanted)); at++)
    if ((at == name || at[-1] == '/') && (!at[length] || at[length] == '/'))
      return true;
  return false;
}

/* Of whole names, and of what they are called within their scopes. */
static uint32_t name_distance(const char *wanted, const char *name) {
  uint32_t distance = nearest_distance(wanted, name);
  const char *inner = last_scope(wanted), *other = last_scope(name);
  if ((inner != wanted || other != name) && *inner && *other)
    distance = least(distance, SCOPE_COST + nearest_distance(inner, other));
  return *wanted && is_scope_of(wanted, name) ? least(distance, SCOPE_COST) : distance;
}

void nearest_begin(struct nearest *nearest, const char *wanted) { *nearest = (struct nearest){.wanted = wanted, .room = NEAREST_SHOWN}; }

void nearest_begin_words(struct nearest *nearest, const char *wanted, const char *const *words, size_t count) {
  *nearest = (struct nearest){.wanted = wanted, .room = NEAREST_WORDS};
  for (size_t i = 0; i < count; i++)
    nearest_add(nearest, words[i]);
}

void nearest_add(struct nearest *nearest, const char *name) {
  if (!name)
    return;
  uint32_t distance = name_distance(nearest->wanted, name), at = nearest->shown;
  nearest->total++;
  while (at > 0 && nearest->best[at - 1].distance > distance)
    at--;
  if (at == nearest->room)
    return;
  nearest->shown += nearest->shown < nearest->room;
  memmove(&nearest->best[at + 1], &nearest->best[at], (nearest->shown - 1 - at) * sizeof nearest->best[0]);
  nearest->best[at].name = name;
  nearest->best[at].distance = distance;
}

/* A third of the letters may be wrong, or all scopes; of one or two letters none but their case. */
const char *nearest_meant(const struct nearest *nearest) {
  uint32_t length = (uint32_t)strlen(nearest->wanted), most = length < 3 ? 1 : 2 * length / 3;
  bool is_near = nearest->shown && nearest->best[0].distance <= (length > 2 && most < SCOPE_COST ? SCOPE_COST : most);
  return is_near ? nearest->best[0].name : NULL;
}

const char *nearest_list(const struct nearest *nearest, const char *lead, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "%s%s", lead, nearest->total ? "" : "none");
  for (uint32_t i = 0; i < nearest->shown && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", nearest->best[i].name);
  if (nearest->total > nearest->shown && used < size)
    snprintf(text + used, size - used, " and %llu more", (unsigned long long)(nearest->total - nearest->shown));
  return text;
}

const char *nearest_text(const struct nearest *nearest, const char *lead, char *text, size_t size) {
  size_t used = strlen(nearest_list(nearest, lead, text, size));
  const char *meant = nearest_meant(nearest);
  if (meant)
    snprintf(text + used, size - used, "; did you mean '%s'?", meant);
  return text;
}
