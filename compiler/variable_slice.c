/* variable_slice.c: the graph does not say what a part is of; the names of all parts and their sizes do. Where the
 * sizes leave the axis open it is the first, as partitioners have it. */
#include "compiler/variable_slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART "/part_"

/* Where "/part_N" is in a name, followed by "/" or the end; *end behind it. NULL: nowhere. */
static const char *find_part(const char *name, long *number, const char **end) {
  for (const char *at = name; (at = strstr(at, PART)); at++) {
    char *after;
    const char *digits = at + strlen(PART);
    if (*digits < '0' || *digits > '9')
      continue;
    *number = strtol(digits, &after, 10);
    *end = after;
    if (*after == 0 || *after == '/')
      return at;
  }
  return NULL;
}

struct parts {
  struct build *build;
  const char *name; /* of the one that is asked for */
  size_t before;    /* length of what comes before "/part_N" */
  const char *after;
  const struct flow_var *like;
};

/* Part i of the same variable, of the same rank; NULL: there is none. */
static const struct flow_var *part_at(const struct parts *p, long i) {
  char name[1024];
  snprintf(name, sizeof name, "%.*s" PART "%ld%s", (int)p->before, p->name, i, p->after);
  for (uint32_t v = 0; v < p->build->vars.count; v++) {
    const struct flow_var *var = &p->build->vars.items[v];
    if (strcmp(var->name, name) == 0 && strcmp(var->container, p->like->container) == 0)
      return var->has_shape && var->rank == p->like->rank && var->dtype == p->like->dtype ? var : NULL;
  }
  return NULL;
}

/* The axis along which the parts are cut; -1: they do not fit each other. */
static int cut_axis(const struct parts *p, long count) {
  int axis = 0;
  bool is_found = false;
  for (long i = 0; i < count; i++)
    for (int d = 0; d < p->like->rank; d++)
      if (part_at(p, i)->dims[d] != part_at(p, 0)->dims[d]) {
        if (is_found && axis != d)
          return -1;
        is_found = true;
        axis = d;
      }
  return axis;
}

const char *variable_slice(struct build *build, uint32_t number) {
  struct parts p = {.build = build, .like = &build->vars.items[number]};
  long self, count = 0;
  const char *at = find_part(p.like->name, &self, &p.after);
  if (!at || !p.like->has_shape || p.like->rank == 0)
    return "";
  p.name = p.like->name;
  p.before = (size_t)(at - p.name);
  while (part_at(&p, count))
    count++;
  int axis = self < count ? cut_axis(&p, count) : -1;
  if (axis < 0)
    return "";
  int64_t whole = 0, start = 0;
  for (long i = 0; i < count; i++) {
    start = i == self ? whole : start;
    whole += part_at(&p, i)->dims[axis];
  }
  const char *text = "";
  for (int d = 0; d < p.like->rank; d++)
    text = arena_printf(&build->arena, "%s%lld ", text, (long long)(d == axis ? whole : p.like->dims[d]));
  for (int d = 0; d < p.like->rank; d++)
    text = arena_printf(&build->arena, "%s%s%lld,%lld", text, d ? ":" : "", (long long)(d == axis ? start : 0), (long long)p.like->dims[d]);
  return text;
}
