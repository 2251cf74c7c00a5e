/* panels.c: see panels.h. */
#include "base/panels.h"

#include <string.h>

int64_t panels_sizes(const struct panels *p, int64_t *sizes) {
  int64_t count = p->width;
  for (int i = 0, from = 0; i < p->rank; i++) {
    sizes[i] = i == p->outer ? (p->count + p->width - 1) / p->width : p->dims[p->order[from++]];
    count *= sizes[i];
  }
  sizes[p->rank] = p->width;
  return count;
}

/* One row of a panel after the other, in the order of memory. */
struct panel_walk {
  const struct panels *panels;
  int64_t sizes[LIMIT_RANK + 1], strides[LIMIT_RANK], at[LIMIT_RANK];
  int64_t rows;
};
static void walk_begin(struct panel_walk *w, const struct panels *p) {
  int64_t step = 1;
  *w = (struct panel_walk){.panels = p};
  w->rows = panels_sizes(p, w->sizes) / p->width;
  for (int i = p->rank - 1; i >= 0; step *= p->dims[i--])
    w->strides[i] = step;
}
/* Where the row's first element lies in the dense value, and how many of the row are elements of it. */
static int64_t walk_row(struct panel_walk *w, int64_t *inside) {
  const struct panels *p = w->panels;
  int64_t from = w->at[p->outer] * p->width, offset = (p->first + from) * w->strides[p->lanes];
  for (int i = 0, other = 0; i < p->rank; i++)
    offset += i == p->outer ? 0 : w->at[i] * w->strides[p->order[other++]];
  *inside = p->count - from < p->width ? p->count - from : p->width;
  for (int i = p->rank - 1; i >= 0 && ++w->at[i] == w->sizes[i]; i--)
    w->at[i] = 0;
  return offset;
}
static void copy_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t count, size_t element) {
  if (to_stride == 1 && from_stride == 1) {
    memcpy(to, from, (size_t)count * element);
    return;
  }
  for (int64_t i = 0; i < count; i++)
    memcpy(to + (size_t)(i * to_stride) * element, from + (size_t)(i * from_stride) * element, element);
}

void panels_pack(const struct panels *p, const void *dense, size_t element, void *packed) {
  struct panel_walk w;
  char *to = packed;
  for (walk_begin(&w, p); w.rows > 0; w.rows--, to += (size_t)p->width * element) {
    int64_t inside, offset = walk_row(&w, &inside);
    copy_elements(to, 1, (const char *)dense + (size_t)offset * element, w.strides[p->lanes], inside, element);
    memset(to + (size_t)inside * element, 0, (size_t)(p->width - inside) * element);
  }
}

void panels_unpack(const struct panels *p, const void *packed, size_t element, void *dense) {
  struct panel_walk w;
  const char *from = packed;
  for (walk_begin(&w, p); w.rows > 0; w.rows--, from += (size_t)p->width * element) {
    int64_t inside, offset = walk_row(&w, &inside);
    copy_elements((char *)dense + (size_t)offset * element, w.strides[p->lanes], from, 1, inside, element);
  }
}
