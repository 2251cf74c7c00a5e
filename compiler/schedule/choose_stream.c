/* choose_stream.c: products of so few rows that what counts is to read the second factor, of which L2 holds little: a matrix times one
 * vector, or a few; the filter of a convolution of a few output pixels.
 *
 * It is read in the order in which it lies, four of its rows side by side, so that the CPU sees long runs and asks for their next lines by
 * itself; the sums of all columns wait on the stack meanwhile. (Tiles that keep sums in registers over all terms go down the columns: each
 * term is in another page.) Tasks are groups of columns: runs of half a page to a page. Where the factor stays in L3, the lines of
 * the next rows are asked for, too: a core waits for each run there; memory itself is the limit of what comes from beyond. */
#include "compiler/schedule/axis_words.h"

struct stream {
  const struct nest *n;
  const struct contraction *c;
  struct product_work work;
  bool is_row[CONTRACTION_AXES]; /* the first factor's own axes: a row for each of their turns; none: one row */
  int64_t batch, m, k, width, lanes;
  int64_t vectors; /* of a tile */
  int64_t tiles;   /* of a task */
};

#define ROWS_MAX 8
#define TERMS 4 /* rows of the second factor that are read side by side */
#define VECTORS_MAX 8
#define RUN_LEAST 2048 /* bytes of a row that a task reads, */
#define RUN_MOST 4096
#define TASKS_MIN 2

/* ---- which nests ---- */

/* One axis of columns; others are rows, terms or batches. */
static bool find_axes(struct stream *s) {
  const struct contraction *c = s->c;
  s->batch = s->m = s->k = 1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    if (a->extent < 1 || (a->role == ROLE_N && i != c->lanes))
      return false;
    s->is_row[i] = a->role == ROLE_M;
    s->m *= s->is_row[i] ? a->extent : 1;
    s->k *= i >= c->par_count ? a->extent : 1;
    s->batch *= a->role == ROLE_BATCH ? a->extent : 1;
  }
  return !c->test && c->lanes >= 0 && c->axes[c->lanes].role == ROLE_N && c->axes[c->lanes].stride[1] == 1;
}
static void find_sizes(struct stream *s) {
  const struct contraction *c = s->c;
  int64_t bytes = (int64_t)dtype_size(c->dtype);
  s->width = c->axes[c->lanes].extent;
  s->lanes = s->n->machine->vector_bytes / bytes;
  s->vectors = VECTORS_MAX;
  while (s->vectors > 1 && s->vectors * s->m > s->n->machine->registers / 2)
    s->vectors /= 2;
  int64_t tile = s->vectors * s->lanes, part = divide_up(s->width, TASKS_MIN), least = RUN_LEAST / bytes, most = RUN_MOST / bytes;
  s->tiles = divide_up(part < least ? least : part > most ? most : part, tile);
  s->work = (struct product_work){.batch = (double)s->batch,
                                  .m = (double)s->m,
                                  .k = (double)s->k,
                                  .width = (double)s->width,
                                  .lanes = (double)s->lanes,
                                  .bytes = (double)bytes,
                                  .stride = (double)(c->axes[c->axis_count - 1].stride[1] * bytes)};
}
static bool is_stream(struct stream *s) {
  const struct contraction *c = s->c;
  if ((c->dtype != DTYPE_FLOAT && c->dtype != DTYPE_DOUBLE) || c->factor[1] != c->load[1] || !find_axes(s) || s->m > ROWS_MAX)
    return false;
  find_sizes(s);
  return product_may_stream(s->n->machine, &s->work) && s->width * (int64_t)s->work.bytes >= RUN_LEAST;
}

/* ---- steps ---- */

/* -1: there are several, or none. */
static int only_row(const struct stream *s) {
  int found = -1;
  for (int i = 0; i < s->c->par_count; i++)
    if (s->is_row[i]) {
      if (found >= 0)
        return -1;
      found = i;
    }
  return found;
}

/* Of the same columns in the next rows. */
static const char *fetch_text(const struct stream *s, const char *terms) {
  double bytes = s->work.batch * s->work.k * s->work.width * s->work.bytes;
  const char *factor = s->n->k->buffers.items[expr_get(s->n->k, s->c->load[1])->imm].name;
  return bytes > (double)s->n->machine->bytes[LEVEL_L3] ? ""
                                                        : arena_printf(s->n->arena, "; fetch %s at %si ahead %d", factor, terms, TERMS);
}

void propose_streams(const struct nest *nest, const struct contraction *c, struct candidates *out) {
  struct stream s = {.n = nest, .c = c};
  if (!nest->machine->has_fma || !is_stream(&s))
    return;
  struct arena *a = nest->arena;
  const struct axis_name names[] = {{c->lanes, "n"}, {c->axis_count - 1, "k"}, {only_row(&s), "m"}};
  const struct axis_words words = axis_words_of(nest, c, NULL, names, 3);
  const char *n = words.of[c->lanes], *k = words.of[c->axis_count - 1], *batch = "", *m = "";
  const char *around = axis_words_list(&words, c->par_count, c->axis_count - 1);
  for (int i = 0; i < c->par_count; i++)
    if (s.is_row[i])
      m = arena_printf(a, "%s %s", m, words.of[i]);
    else if (i != c->lanes)
      batch = arena_printf(a, "%s %s", batch, words.of[i]);
  const char *text =
    arena_printf(a, "%s; fma; split %s %lld -> %ss %si; split %ss %lld -> %st %so; split %s %d -> %so %si", axis_words_begin(&words), n,
                 (long long)(s.vectors * s.lanes), n, n, n, (long long)s.tiles, n, n, k, TERMS, k, k);
  text = arena_printf(a, "%s; order%s %st %so%s %si; sink %so%s %si under%s %so in stack; sink%s %si under %si in register%s", text, batch,
                      n, n, m, n, n, m, n, around, k, m, n, k, fetch_text(&s, k));
  text = arena_printf(a, "%s; run%s %st tasks;%s run %si lanes", text, batch, n, *m ? arena_printf(a, " run%s unroll;", m) : "", n);
  if (out->items.items[0].cycles == 0)
    out->items.items[0].cycles = product_own_cycles(nest->machine, &s.work);
  vec_push(&out->items, ((struct candidate){.steps = text, .cycles = product_stream_cycles(nest->machine, &s.work, s.vectors)}));
}
