/* tune.c: candidates measured instead of guessed; see tune.h. */
#include "compiler/schedule/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "compiler/schedule/measure.h"

#define SECONDS_OF_NEST 0.1 /* of measuring; half of what is left where that is less */

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static const char *words_of(const struct candidate *c) { return c->steps ? c->steps : PLAIN_LOOPS; }

status tuner_open(struct tuner *t) {
  if (t->folder && mkdir(t->folder, 0777) != 0 && errno != EEXIST)
    return fail(DATA_LOSS, "--cache %s: %s", t->folder, strerror(errno));
  if (t->folder && access(t->folder, W_OK | X_OK) != 0)
    return fail(DATA_LOSS, "--cache %s: %s", t->folder, strerror(errno));
  return OK;
}

/* ---- findings ---- */

static const char *finding_path(const struct tuner *t, const struct nest *n) {
  const struct machine *m = n->machine;
  const char *hash = kernel_hash_text(kernel_hash(n->k), n->arena);
  return arena_printf(n->arena, "%s/%s.%d.%s-%u-%u-%g-%lld-%lld-%lld.schedule", t->folder, hash, n->number, m->name, m->vector_bytes,
                      m->registers, m->fma_rate, (long long)m->bytes[LEVEL_L1], (long long)m->bytes[LEVEL_L2],
                      (long long)m->bytes[LEVEL_L3]);
}

/* The first line is the steps. */
static bool finding_read(const char *path, const struct candidates *all, uint32_t *out) {
  char *line = NULL;
  size_t size = 0;
  bool found = false;
  FILE *file = fopen(path, "r");
  if (file && getline(&line, &size, file) > 0) {
    line[strcspn(line, "\n")] = 0;
    for (uint32_t i = 0; i < all->items.count && !found; i++)
      if ((found = strcmp(line, words_of(&all->items.items[i])) == 0))
        *out = i;
  }
  free(line);
  if (file)
    fclose(file);
  return found;
}

static status finding_write(const char *path, const struct candidates *all, const uint32_t *tried, const double *seconds, uint32_t count,
                            uint32_t best, struct arena *arena) {
  const char *beside = arena_printf(arena, "%s.tmp-%d", path, (int)getpid());
  FILE *file = fopen(beside, "w");
  if (!file)
    return fail(DATA_LOSS, "%s: %s", beside, strerror(errno));
  fprintf(file, "%s\n", words_of(&all->items.items[tried[best]]));
  for (uint32_t i = 0; i < count; i++)
    fprintf(file, "; %.2f us: %s\n", seconds[i] * 1e6, words_of(&all->items.items[tried[i]]));
  bool wrote = !ferror(file);
  if ((fclose(file) == 0) & wrote && rename(beside, path) == 0)
    return OK;
  status result = fail(DATA_LOSS, "%s: %s", path, strerror(errno));
  unlink(beside);
  return result;
}

/* ---- measuring ---- */

/* The forms of the kernel that the candidates make, those that can be; which they are goes to `tried`. */
static uint32_t make_forms(const struct nest *n, const struct candidates *all, struct kernel **forms, uint32_t *tried) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < all->items.count; i++) {
    const struct candidate *c = &all->items.items[i];
    struct schedule s = {0};
    struct kernel *form = NULL;
    if (c->steps && (schedule_parse(candidate_text(c, n->arena), n->arena, &s) != OK || schedule_apply(n->k, &s, n->arena, &form) != OK))
      continue;
    if (!form) {
      form = arena_alloc(n->arena, sizeof *form);
      *form = *n->k;
    }
    form->name = arena_printf(n->arena, "form%u", count);
    forms[count] = form;
    tried[count++] = i;
  }
  return count;
}

/* Also what compiling takes is taken from what is left. */
static status measure_nest(struct tuner *t, const struct nest *n, struct kernel *const *forms, uint32_t count, double *seconds) {
  double begin = seconds_now(), budget = t->seconds / 2 < SECONDS_OF_NEST ? t->seconds / 2 : SECONDS_OF_NEST;
  status result = measure_forms(forms, count, n->machine->name, budget, seconds);
  double taken = seconds_now() - begin;
  t->seconds = taken < t->seconds ? t->seconds - taken : 0;
  return result;
}

static bool is_open(const struct nest *n, const struct candidates *all) {
  bool is_open = n->k->size_count > 0;
  for (uint32_t i = 0; i < all->items.count; i++)
    is_open = is_open || all->items.items[i].below;
  return is_open;
}

status tuner_pick(struct tuner *t, const struct nest *n, const struct candidates *all, bool *found, uint32_t *out) {
  *found = false;
  if (all->items.count < 2)
    return OK;
  const char *path = t->folder ? finding_path(t, n) : NULL;
  if (path && finding_read(path, all, out)) {
    *found = true;
    t->known++;
    return OK;
  }
  if (is_open(n, all) || t->seconds <= 0) {
    t->guessed++;
    return OK;
  }
  struct kernel **forms = ARENA_ARRAY(n->arena, struct kernel *, all->items.count);
  uint32_t *tried = ARENA_ARRAY(n->arena, uint32_t, all->items.count), best = 0;
  double *seconds = ARENA_ARRAY(n->arena, double, all->items.count);
  uint32_t count = make_forms(n, all, forms, tried);
  TRY(measure_nest(t, n, forms, count, seconds));
  for (uint32_t i = 1; i < count; i++)
    best = seconds[i] < seconds[best] ? i : best;
  t->measured++;
  *found = true;
  *out = tried[best];
  return path ? finding_write(path, all, tried, seconds, count, best, n->arena) : OK;
}
