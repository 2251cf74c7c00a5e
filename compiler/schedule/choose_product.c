/* choose_product.c: products whose factors are read where they lie: a tile of rows and vectors of columns keeps its sums in registers, and
 * nothing is packed. That wins where packing is not paid back: few rows, or few terms. Of many terms, along which both factors lie apart
 * (gradients of weights over many rows), blocks stay in L2 for all tiles of a task, while the sums wait in the result.
 * Strips of columns are outermost: the strip's part of the second factor stays in the cache while all rows meet it. Where an open number of
 * terms is few, the second factor stays there as a whole, and rows are outermost, so that the result is written in its order. */
#include <float.h>

#include "compiler/schedule/axis_words.h"

#define FETCH_AHEAD 16      /* terms */
#define FEW_TERMS 1024      /* of all loops of the sum: below, the strip's part of the second factor stays in L2, */
#define FEW_TERMS_ALONG 512 /* or all of it; from so many on blocks are worth their copies */
#define EVEN_ROWS 3         /* of a tile that is made smaller, at least, */
#define EVEN_SUMS 8         /* and its sums: fewer wait for each other */
#define SHARED_CYCLES 20000 /* what takes longer has parts of rows, too, where strips alone are few tasks */

/* What is done with each axis. */
struct product {
  const struct nest *n;
  const struct contraction *c;
  int rows, columns;        /* axes of the tile */
  struct product_work work; /* batch: turns of the other par axes together */
  bool open;                /* the rows' extent is a size of the kernel, */
  bool turns_open;          /* the number of turns is one, */
  bool columns_open;        /* that of columns, */
  bool terms_open;          /* that of terms */
};

/* ---- which nests ---- */

/* The axis whose iterations make the rows of tiles: the longest that the first factor alone has, an open one if there is no other. */
static int find_rows(const struct contraction *c) {
  int rows = -1;
  for (int i = 0; i < c->par_count; i++)
    if (c->axes[i].role == ROLE_M && (rows < 0 || c->axes[i].extent >= c->axes[rows].extent))
      rows = i;
  return rows;
}
/* One axis of rows, one of columns; others that the first factor alone has are turns, as batches are: images, of which each has pixels as
 * rows. For sizes that are open guesses are judged. */
static bool find_sizes(struct product *p) {
  const struct contraction *c = p->c;
  struct product_work *w = &p->work;
  w->batch = w->k = 1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    bool is_other = i < c->par_count && i != p->rows && i != p->columns, is_open = a->extent < 0;
    if (a->role == ROLE_WINDOW || (is_other && a->role == ROLE_N))
      return false;
    if (i >= c->par_count)
      w->k *= axis_terms(c, i);
    else if (is_other)
      w->batch *= axis_turns(a);
    p->terms_open = p->terms_open || (i >= c->par_count && is_open);
    p->turns_open = p->turns_open || (is_other && is_open);
  }
  const struct contraction_axis *rows = &c->axes[p->rows], *columns = &c->axes[p->columns];
  p->open = rows->extent < 0;
  p->columns_open = columns->extent < 0;
  w->m = p->open ? ROWS_USUAL : (double)rows->extent;
  w->width = p->columns_open ? COLUMNS_USUAL : (double)columns->extent;
  w->bytes = (double)dtype_size(c->dtype);
  w->lanes = (double)p->n->machine->vector_bytes / w->bytes;
  w->is_open = p->open;
  w->is_computed = is_computed(c);
  w->is_transposed = c->axes[c->axis_count - 1].stride[0] != 1;
  int64_t apart = c->axes[c->axis_count - 1].stride[1];
  w->stride = (apart < 0 ? w->width : (double)apart) * w->bytes;
  return true;
}
static bool is_product(struct product *p) {
  const struct contraction *c = p->c;
  p->rows = find_rows(c);
  p->columns = c->lanes;
  if (p->rows < 0 || p->columns < 0 || c->axes[p->columns].role != ROLE_N || (c->dtype != DTYPE_FLOAT && c->dtype != DTYPE_DOUBLE))
    return false;
  return c->factor[1] == c->load[1] && c->axes[p->columns].stride[1] == 1 && find_sizes(p);
}

static bool has_open(const struct product *p) { return p->open || p->turns_open || p->columns_open || p->terms_open; }

/* ---- steps ---- */

/* What is less than a tile in smaller ones, or in one. */
static const char *tails_text(const struct product *p, const struct tile *t) {
  const char *tails = "";
  struct arena *arena = p->n->arena;
  int64_t rest = (int64_t)p->work.m % t->rows;
  if (!p->open && rest == 0)
    return tails;
  if (t->is_even)
    return arena_printf(arena, " tail cut %lld", (long long)rest);
  for (int i = 8; i; i /= 2)
    tails = i < t->rows ? arena_printf(arena, "%s %d", *tails ? tails : " tail cut", i) : tails;
  return tails;
}
static int64_t strips_of(const struct product *p, const struct tile *t) {
  return divide_up((int64_t)p->work.width, (int64_t)p->work.lanes * t->vectors);
}
/* Rows of a task, whole tiles: few where other axes alone (`beside`) make few tasks. As many for each task, if about so many can be. */
static int64_t task_rows(const struct product *p, const struct tile *t, int64_t beside, int64_t wanted, int64_t most) {
  int64_t rows = (int64_t)p->work.m, parts = divide_up(wanted, beside);
  parts = divide_up(rows, parts) > most ? divide_up(rows, most) : parts;
  int64_t tiles = divide_up(divide_up(rows, parts), t->rows);
  for (int64_t even = tiles; even >= divide_up(tiles, 2); even--)
    if (rows % (even * t->rows) == 0)
      return even * t->rows;
  return tiles * t->rows;
}
/* Rows of a task. */
static int64_t group_rows(const struct product *p, const struct tile *t, bool fetch) {
  int64_t all = (int64_t)p->work.m;
  bool may = !has_open(p) && !p->n->shared && product_tile_cycles(p->n->machine, &p->work, t, fetch) >= SHARED_CYCLES;
  return may ? task_rows(p, t, strips_of(p, t) * (int64_t)p->work.batch, tasks_wanted(p->n->machine), all) : all;
}
/* The step that gives each task some of the rows, which then are called *row within *group; or none. */
static const char *groups_text(const struct product *p, const struct tile *t, bool fetch, const char **row, const char **group) {
  struct arena *a = p->n->arena;
  int64_t each = group_rows(p, t, fetch);
  *group = "";
  if (each >= (int64_t)p->work.m)
    return "";
  const char *m = *row;
  *row = arena_printf(a, "%sr", m);
  *group = arena_printf(a, " %sg", m);
  return arena_printf(a, " split %s %lld -> %sg %sr;", m, (long long)each, m, m);
}
static const char *steps_text(const struct product *p, const struct tile *t, bool fetch) {
  struct arena *a = p->n->arena;
  const struct axis_name names[] = {{p->rows, "m"}, {p->columns, "n"}};
  const struct axis_words words = axis_words_of(p->n, p->c, NULL, names, 2);
  const char *m = words.of[p->rows], *n = words.of[p->columns], *batch = axis_words_others(&words, 0, p->c->par_count);
  const char *sum = axis_words_others(&words, p->c->par_count, p->c->axis_count);
  const char *tails = tails_text(p, t), *row = m, *group;
  const char *groups = groups_text(p, t, fetch, &row, &group);
  const char *text =
    arena_printf(a, "%s; split %s %d -> %so %si;%s order%s %so%s %s %si; split %s %d -> %so %si%s; sink %si %si under%s in register",
                 axis_words_begin(&words), n, (int)p->work.lanes * t->vectors, n, n, groups, batch, n, group, row, n, row, t->rows, m, m,
                 tails, m, n, sum);
  if (fetch)
    text =
      arena_printf(a, "%s; fetch %s at %s ahead %d", text, contraction_buffer(p->c, 1)->name, words.of[p->c->axis_count - 1], FETCH_AHEAD);
  return arena_printf(a, "%s; run%s %so%s tasks; run %si unroll; run %si lanes", text, batch, n, group, m, n);
}
/* Tiles go along rows, past all of the second factor, which the second cache keeps. Of nests that share loops a turn has few rows, and what
 * it writes and reads beside the sum is long rows; else tiles' rows are tasks. */
static const char *along_rows_text(const struct product *p, const struct tile *t) {
  struct arena *a = p->n->arena;
  const struct axis_name names[] = {{p->rows, "m"}, {p->columns, "n"}};
  const struct axis_words words = axis_words_of(p->n, p->c, NULL, names, 2);
  const char *m = words.of[p->rows], *n = words.of[p->columns], *batch = axis_words_others(&words, 0, p->c->par_count);
  const char *sum = axis_words_others(&words, p->c->par_count, p->c->axis_count);
  const char *tails = tails_text(p, t);
  const char *text =
    arena_printf(a, "%s; split %s %d -> %so %si; order%s %s %so %si; split %s %d -> %so %si%s; order %so %so %si %si",
                 axis_words_begin(&words), n, (int)p->work.lanes * t->vectors, n, n, batch, m, n, n, m, t->rows, m, m, tails, m, n, m, n);
  const char *tasks = p->n->shared ? batch : arena_printf(a, "%s %so", batch, m);
  return arena_printf(a, "%s; sink %si %si under%s in register; run%s tasks; run %si unroll; run %si lanes", text, m, n, sum, tasks, m, n);
}
/* In blocks of terms: sums wait in the result. */
static const char *waiting_text(const struct product *p, const struct tile *t, const struct product_waiting *w) {
  struct arena *a = p->n->arena;
  const struct axis_name names[] = {{p->rows, "m"}, {p->columns, "n"}, {p->c->axis_count - 1, "k"}};
  const struct axis_words words = axis_words_of(p->n, p->c, NULL, names, 3);
  const char *m = words.of[p->rows], *n = words.of[p->columns], *k = words.of[p->c->axis_count - 1];
  const char *batch = axis_words_others(&words, 0, p->c->par_count), *tails = tails_text(p, t);
  const char *strips = w->strips > 1 ? arena_printf(a, "; split %so %lld -> %so %sj", n, (long long)w->strips, n, n) : "";
  const char *strip = w->strips > 1 ? arena_printf(a, " %sj", n) : "";
  const char *text =
    arena_printf(a, "%s; split %s %d -> %so %si%s; split %s %lld -> %sg %sr; order%s %so %sg%s %sr %si", axis_words_begin(&words), n,
                 (int)p->work.lanes * t->vectors, n, n, strips, m, (long long)w->rows, m, m, batch, n, m, strip, m, n);
  text = arena_printf(a, "%s; split %s %lld -> %sb %sk; sink%s %sr %si under %sb in result first; split %sr %d -> %so %si%s", text, k,
                      (long long)w->terms, k, k, strip, m, n, k, m, t->rows, m, m, tails);
  text = arena_printf(a, "%s; sink %si %si under %sk in register", text, m, n, k);
  if (product_rows_stream(p->n->machine, &p->work) &&
      !product_rows_come(p->n->machine, &p->work)) /* the next block's, while this one is summed up */
    text = arena_printf(a, "%s; fetch %s at %sk ahead %lld", text, contraction_buffer(p->c, 0)->name, k, (long long)w->terms);
  return arena_printf(a, "%s; run%s %so %sg tasks; run %si unroll; run %si lanes", text, batch, n, m, m, n);
}
/* What a task has where about so many are wanted, of so many strips each. */
static bool find_waiting(const struct product *p, const struct tile *t, int64_t strips, int64_t wanted, struct product_waiting *w) {
  int64_t most = product_waiting_rows(p->n->machine, &p->work, t, strips), groups = divide_up(strips_of(p, t), strips);
  w->strips = strips;
  w->rows = most < t->rows ? 0 : task_rows(p, t, groups * (int64_t)p->work.batch, wanted, most);
  return w->rows >= t->rows;
}
/* Of tasks of several strips. Too few are no choice; where there is one for each core, one that begins late has nobody to take over. */
static double strips_cycles(const struct product *p, const struct tile *t, const struct product_waiting *w) {
  const struct machine *machine = p->n->machine;
  int64_t groups = divide_up(strips_of(p, t), w->strips) * divide_up((int64_t)p->work.m, w->rows), tasks = groups * (int64_t)p->work.batch;
  double late = tasks < tasks_wanted(machine) ? FEWER_TASKS : 1;
  return tasks < tasks_fewest(machine) ? DBL_MAX : product_waiting_cycles(machine, &p->work, t, w) * late;
}
/* Tasks of several strips read the first factor less often: the best of those. */
static void propose_waiting_strips(const struct product *p, const struct tile *t, struct product_waiting w, struct candidates *out) {
  const int64_t wanted[] = {tasks_wanted(p->n->machine), tasks_fewest(p->n->machine)};
  struct product_waiting best = w;
  double least = DBL_MAX;
  for (int64_t strips = 2; strips < 2 * strips_of(p, t); strips *= 2)
    for (int i = 0; i < 2; i++) {
      double cycles = find_waiting(p, t, strips, wanted[i], &w) ? strips_cycles(p, t, &w) : DBL_MAX;
      if (cycles < least) {
        least = cycles;
        best = w;
      }
    }
  if (least < DBL_MAX)
    vec_push(&out->items, ((struct candidate){.steps = waiting_text(p, t, &best), .cycles = least}));
}
static void propose_waiting(const struct product *p, const struct tile *t, struct candidates *out) {
  bool fills = t->rows * t->vectors * 3 >= (int)p->n->machine->registers * 2; /* else it reads from L2 as fast as it computes */
  bool may_wait =
    fills && !has_open(p) && p->work.is_transposed && p->c->axis_count == p->c->par_count + 1 && !p->n->k->body->next && stores_sum(p->c);
  struct product_waiting w = {.terms = may_wait ? product_waiting_terms(p->n->machine, &p->work) : 0};
  if (w.terms == 0)
    return;
  if (find_waiting(p, t, 1, tasks_wanted(p->n->machine), &w))
    vec_push(&out->items,
             ((struct candidate){.steps = waiting_text(p, t, &w), .cycles = product_waiting_cycles(p->n->machine, &p->work, t, &w)}));
  propose_waiting_strips(p, t, w, out);
}
/* For few of an axis of open extent: what is right for many may not be. */
static void propose_few(const struct product *p, int axis, int64_t below, struct candidate c, struct candidates *out) {
  c.size = (uint32_t)contraction_size(p->c, axis);
  c.below = below;
  if (contraction_size(p->c, axis) >= 0)
    vec_push(&out->items, c);
}
/* The sum's loop of an open number of turns, of which each has so many terms; -1: there is none, or several. */
static int open_terms(const struct product *p, int64_t *each) {
  int found = -1;
  *each = 1;
  for (int i = p->c->par_count; i < p->c->axis_count; i++) {
    int64_t extent = p->c->axes[i].extent;
    if (extent < 0 && found >= 0)
      return -1;
    found = extent < 0 ? i : found;
    *each *= extent < 1 ? 1 : extent;
  }
  return found;
}
/* For so few terms. */
static void propose_few_terms(const struct product *p, int64_t most, struct candidate c, struct candidates *out) {
  int64_t each;
  int axis = open_terms(p, &each);
  if (axis >= 0 && most / each > 1)
    propose_few(p, axis, most / each, c, out);
}
/* Few terms, of an open number, of rows that lie along their columns, as in gradients of weights. */
static bool may_go_along(const struct product *p) { return p->terms_open && p->work.is_transposed && !p->open && !p->columns_open; }
static void propose_along(const struct product *p, const struct tile *t, struct candidates *out) {
  int64_t row = (int64_t)(p->work.width * p->work.bytes), kept = p->n->machine->bytes[LEVEL_L2] / 2 / row;
  struct product_work less = p->work;
  less.k = TERMS_LESS;
  less.by_rows = true;
  propose_few_terms(p, kept < FEW_TERMS_ALONG ? kept : FEW_TERMS_ALONG,
                    (struct candidate){.steps = along_rows_text(p, t), .less = product_tile_cycles(p->n->machine, &less, t, false)}, out);
}
static void propose(const struct product *p, const struct tile *t, bool fetch, struct candidates *out) {
  bool along = p->n->shared && !p->open;
  struct candidate c = {.steps = along ? along_rows_text(p, t) : steps_text(p, t, fetch),
                        .cycles = product_tile_cycles(p->n->machine, &p->work, t, fetch)};
  struct product_work less = p->work;
  less.m = p->open ? ROWS_LESS : less.m;
  less.k = p->terms_open ? TERMS_LESS : less.k;
  c.less = p->open || p->terms_open ? product_tile_cycles(p->n->machine, &less, t, fetch) : 0;
  vec_push(&out->items, c);
  if (p->open)
    propose_few(p, p->rows, FEW_ROWS, c, out);
  if (p->terms_open && !may_go_along(p))
    propose_few_terms(p, FEW_TERMS, c, out);
}

/* Tiles of very few rows are for very few rows; none is wider than the result. */
static bool suits(const struct product *p, const struct tile *t) {
  int live = t->rows * t->vectors + t->vectors + 1;
  return t->rows <= p->work.m && t->vectors * p->work.lanes <= p->work.width && live <= (int)p->n->machine->registers &&
         (t->rows > 2 || p->work.m < 4);
}
/* The same tile with fewer rows, as many for each, unless a smaller one that was measured is nearer; of no rows: there is none. */
static struct tile even_tile(const struct product *p, const struct tile *t) {
  struct tile even = {.vectors = t->vectors, .is_even = true};
  if (has_open(p) || p->work.m < 1)
    return even;
  int64_t m = (int64_t)p->work.m, rows = divide_up(m, divide_up(m, t->rows));
  for (const struct tile *other = product_tiles(p->n->machine); other->rows; other++)
    if (other->vectors == t->vectors && other->rows < t->rows && other->rows >= rows)
      return even;
  even.rows = rows < t->rows && rows >= EVEN_ROWS && rows * t->vectors >= EVEN_SUMS ? (int)rows : 0;
  even.step = t->step * (double)rows / t->rows;
  return even;
}
/* Where that is better than its own rows and what they leave; what is left must be left of each task's. */
static void propose_even(const struct product *p, const struct tile *t, bool fetch, struct candidates *out) {
  struct tile even = even_tile(p, t);
  const struct machine *machine = p->n->machine;
  bool may = even.rows && suits(p, &even) && ((int64_t)p->work.m % even.rows == 0 || group_rows(p, &even, fetch) >= (int64_t)p->work.m);
  if (may && (!suits(p, t) || product_tile_cycles(machine, &p->work, &even, fetch) < product_tile_cycles(machine, &p->work, t, fetch)))
    propose(p, &even, fetch, out);
}
void propose_products(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct product p = {.n = n, .c = c};
  if (!is_product(&p))
    return;
  bool is_far = product_is_far(n->machine, &p.work) && p.work.m >= 8;
  for (const struct tile *t = product_tiles(n->machine); t->rows; t++) {
    bool may = !is_far || (t->vectors >= 2 && t->vectors <= product_far_vectors(n->machine));
    if (may && suits(&p, t))
      propose(&p, t, is_far, out);
    if (may_go_along(&p) && suits(&p, t))
      propose_along(&p, t, out);
    if (may)
      propose_even(&p, t, is_far, out);
    if (suits(&p, t))
      propose_waiting(&p, t, out);
  }
}
