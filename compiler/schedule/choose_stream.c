/* choose_stream.c: products of so few rows that what counts is to read the second factor, of which L2 holds little: a matrix times one
 * vector, or a few; the filter of a convolution of a few output pixels. Rows whose sums would fill the registers, and an open number of
 * them, go a few at a time: the factor is read again for the next.
 *
 * It is read in the order in which it lies, a few of its rows side by side, so that the CPU sees long runs and asks for their next lines by
 * itself; the sums of all columns wait on the stack meanwhile. (Tiles that keep sums in registers over all terms go down the columns: each
 * term is in another page.) Tasks are groups of columns: runs of a quarter of a page to a page. Where the factor stays in L3, the lines of
 * the next rows are asked for on some machines, too: a core waits for each run there; memory itself is the limit of what comes from
 * beyond. */
#include "compiler/schedule/axis_words.h"

struct stream {
  const struct nest *n;
  const struct contraction *c;
  struct product_work work;
  bool is_row[CONTRACTION_AXES]; /* the first factor's own axes: a row for each of their turns; none: one row */
  int open;                      /* the row axis whose extent is a size of the kernel; -1: none */
  int64_t batch, m, k, width, lanes;
  int parted;      /* the row axis of which a pass has some; -1: a pass has all rows */
  int64_t part;    /* so many of its turns, */
  int64_t pass;    /* and so many rows in all */
  int64_t vectors; /* of a tile */
  int64_t tiles;   /* of a task */
  int64_t terms;   /* rows of the second factor that are read side by side */
};

#define ROWS_MAX 16    /* for more, copied blocks read the factor once, */
#define PIXELS_MAX 8   /* and of a pass that has all of several axes */
#define OPEN_PART 4    /* rows of a pass, where their number is open */
#define ROW_LEAST 2048 /* bytes of a row of the second factor, */
#define RUN_MOST 4096  /* and of what a task reads of it */
#define STREAM_TASKS_MIN 2

/* ---- which nests ---- */

/* One axis of columns; others are rows, terms or batches. */
static bool find_axes(struct stream *s) {
  const struct contraction *c = s->c;
  s->batch = s->m = s->k = 1;
  s->open = -1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    bool is_open = a->extent < 0 && a->role == ROLE_M && s->open < 0 && contraction_size(c, i) >= 0;
    if ((a->extent < 1 && !is_open) || (a->role == ROLE_N && i != c->lanes))
      return false;
    s->open = is_open ? i : s->open;
    s->is_row[i] = a->role == ROLE_M;
    s->m *= s->is_row[i] && !is_open ? a->extent : 1;
    s->k *= i >= c->par_count ? a->extent : 1;
    s->batch *= a->role == ROLE_BATCH ? a->extent : 1;
  }
  return !c->test && c->lanes >= 0 && c->axes[c->lanes].role == ROLE_N && c->axes[c->lanes].stride[1] == 1;
}
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
/* Two vectors of columns at least, so that sums and what they are added to fit the registers. */
static void part_rows(struct stream *s) {
  int64_t most = s->n->machine->registers / 4;
  s->parted = s->open >= 0 ? s->open : s->m > most ? only_row(s) : -1;
  s->part = s->open < 0 ? divide_up(s->m, divide_up(s->m, most)) : s->m < OPEN_PART ? OPEN_PART / s->m : 1;
  s->pass = s->open >= 0 ? s->part * s->m : s->parted >= 0 ? s->part : s->m;
}
static void find_sizes(struct stream *s) {
  const struct contraction *c = s->c;
  int64_t bytes = (int64_t)dtype_size(c->dtype);
  s->width = c->axes[c->lanes].extent;
  s->lanes = s->n->machine->vector_bytes / bytes;
  s->work = (struct product_work){.batch = (double)s->batch,
                                  .m = (double)s->pass,
                                  .k = (double)s->k,
                                  .width = (double)s->width,
                                  .lanes = (double)s->lanes,
                                  .bytes = (double)bytes,
                                  .stride = (double)(c->axes[c->axis_count - 1].stride[1] * bytes)};
  const struct stream_tile *tile = product_stream_tile(s->n->machine, &s->work);
  s->terms = tile->terms;
  s->vectors = tile->vectors;
  while (s->vectors > 1 && s->vectors * s->pass > s->n->machine->registers / 2)
    s->vectors /= 2;
  int64_t part = divide_up(s->width, STREAM_TASKS_MIN), most = RUN_MOST / bytes;
  s->tiles = divide_up(part > most ? most : part, s->vectors * s->lanes);
}
static bool is_stream(struct stream *s) {
  const struct contraction *c = s->c;
  if ((c->dtype != DTYPE_FLOAT && c->dtype != DTYPE_DOUBLE) || c->factor[1] != c->load[1] || !find_axes(s) || s->m > ROWS_MAX)
    return false;
  part_rows(s);
  if (s->pass > PIXELS_MAX)
    return false;
  find_sizes(s);
  return product_may_stream(s->n->machine, &s->work) && s->width * (int64_t)s->work.bytes >= ROW_LEAST;
}

/* ---- what it takes ---- */

static double pass_cycles(const struct stream *s, int64_t rows) {
  struct product_work w = s->work;
  w.m = (double)rows;
  return product_stream_cycles(s->n->machine, &w, s->vectors);
}
/* For so many turns, where their number is open: as many as are whole passes. */
static double open_cycles(const struct stream *s, int64_t turns) { return (double)(turns / s->part) * pass_cycles(s, s->pass); }
static double known_cycles(const struct stream *s) {
  int64_t rest = s->m % s->pass;
  return (double)(s->m / s->pass) * pass_cycles(s, s->pass) + (rest ? pass_cycles(s, rest) : 0);
}
static double loops_cycles(const struct stream *s, double rows) {
  struct product_work w = s->work;
  w.m = rows;
  return product_plain_cycles(s->n->machine, &w);
}

/* ---- steps ---- */

/* Of the same columns in the next rows. */
static const char *fetch_text(const struct stream *s, const char *terms) {
  const char *factor = contraction_buffer(s->c, 1)->name;
  return product_stream_asks(s->n->machine, &s->work)
         ? arena_printf(s->n->arena, "; fetch %s at %si ahead %lld", factor, terms, (long long)s->terms)
         : "";
}

/* The rows' axes of a tile, with a space in front. */
static const char *rows_text(const struct stream *s, const struct axis_words *words) {
  const char *rows = s->part > 1 && s->parted >= 0 ? arena_printf(s->n->arena, " %si", words->of[s->parted]) : "";
  for (int i = 0; i < s->c->par_count; i++)
    rows = s->is_row[i] && i != s->parted ? arena_printf(s->n->arena, "%s %s", rows, words->of[i]) : rows;
  return rows;
}
/* A pass's rows are told apart when columns are. */
static const char *part_text(const struct stream *s, const struct axis_words *words, const char *rows) {
  if (s->parted < 0 || s->part == 1)
    return "";
  const char *m = words->of[s->parted], *n = words->of[s->c->lanes], *tails = "";
  int64_t rest = s->open >= 0 ? 0 : s->m % s->part;
  for (int64_t i = s->open >= 0 ? s->part / 2 : rest; i; i = rest ? 0 : i / 2)
    tails = arena_printf(s->n->arena, "%s %lld", *tails ? tails : " tail cut", (long long)i);
  return arena_printf(s->n->arena, "; split %s %lld -> %so %si%s; order %so %so%s %si", m, (long long)s->part, m, m, tails, m, n, rows, n);
}
static const char *steps_text(const struct stream *s) {
  const struct contraction *c = s->c;
  struct arena *a = s->n->arena;
  const struct axis_name names[] = {{c->lanes, "n"}, {c->axis_count - 1, "k"}, {s->parted >= 0 ? s->parted : only_row(s), "m"}};
  const struct axis_words words = axis_words_of(s->n, c, NULL, names, 3);
  const char *n = words.of[c->lanes], *k = words.of[c->axis_count - 1], *m = rows_text(s, &words), *batch = "", *all = "";
  const char *around = axis_words_list(&words, c->par_count, c->axis_count - 1);
  for (int i = 0; i < c->par_count; i++)
    if (s->is_row[i])
      all = i != s->parted ? arena_printf(a, "%s %s", all, words.of[i]) : all;
    else if (i != c->lanes)
      batch = arena_printf(a, "%s %s", batch, words.of[i]);
  const char *parted = s->parted < 0 ? "" : arena_printf(a, " %s", words.of[s->parted]);
  const char *text =
    arena_printf(a, "%s; split %s %lld -> %ss %si; split %ss %lld -> %st %so; split %s %lld -> %so %si", axis_words_begin(&words), n,
                 (long long)(s->vectors * s->lanes), n, n, n, (long long)s->tiles, n, n, k, (long long)s->terms, k, k);
  text = arena_printf(a, "%s; order%s %st%s %so%s %si%s; sink %so%s %si under%s %so in stack; sink%s %si under %si in register%s", text,
                      batch, n, parted, n, all, n, part_text(s, &words, m), n, m, n, around, k, m, n, k, fetch_text(s, k));
  return arena_printf(a, "%s; run%s %st tasks;%s run %si lanes", text, batch, n, *m ? arena_printf(a, " run%s unroll;", m) : "", n);
}

static void propose_open(const struct stream *s, struct candidates *out) {
  int64_t less = divide_up(ROWS_LESS, s->m);
  struct candidate c = {.cycles = open_cycles(s, ROWS_USUAL),
                        .less = open_cycles(s, less),
                        .size = (uint32_t)contraction_size(s->c, s->open),
                        .below = ROWS_MAX / s->m + 1};
  if (c.less * GAIN_MIN > loops_cycles(s, (double)(less * s->m)))
    return;
  c.steps = steps_text(s);
  vec_push(&out->items, c);
}
void propose_streams(const struct nest *nest, const struct contraction *c, struct candidates *out) {
  struct stream s = {.n = nest, .c = c};
  if (!is_stream(&s))
    return;
  if (s.open >= 0) {
    propose_open(&s, out);
    return;
  }
  vec_push(&out->items, ((struct candidate){.steps = steps_text(&s), .cycles = known_cycles(&s)}));
}
