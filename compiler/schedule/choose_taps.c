/* choose_taps.c: gradients of a depthwise filter, by channel: the sums of all taps by vectors of channels stay in registers while images
 * pass, of a filter with many taps those of a row.
 *
 * A block of a row's columns is written out, so that each vector of the image is loaded once for all taps that meet it. Terms outside of
 * the image are behind a test: the rows and the blocks at the borders are code of their own, in which it is decided while compiling.
 * A small image is copied first, one vector's pixels behind each other: in the first cache they would stand in each other's place. Of
 * images beyond L2 a task takes a row for one vector after the other, whose sums wait meanwhile: so whole pixels are read at once. */
#include "compiler/schedule/axis_words.h"

struct taps {
  const struct nest *n;
  const struct contraction *c;
  int rows, columns;    /* par axes: of the filter's taps */
  int high, wide;       /* red axes: of the gradient's rows and columns, which those are together with in an index */
  int64_t lanes, width; /* of a vector; channels */
  struct axis_words words;
};

struct taps_tile {
  int64_t vectors; /* of channels */
  int64_t block;   /* columns of the gradient, written out */
  bool is_whole;   /* all of the filter's rows */
  int64_t group;   /* channels of a task: those of some vectors of a tile each, row by row, or of one tile */
  bool is_staged;  /* the image is copied */
};

#define SUMS_SHARE 3 / 4 /* of the registers, for sums; the others hold a term's vectors */
#define VECTORS_MAX 4
#define STAGED_SHARE 0.8 /* of the first cache, for an image's copy */
#define COLUMNS_MAX 8    /* of a block */
#define POINTS 3         /* of a cut, at most */
#define CORES_USUAL 4    /* where nobody knows how many there are */

/* ---- which nests ---- */

static bool has_sizes(const struct contraction *c, int from, int to) {
  for (int i = from; i < to; i++)
    if (c->axes[i].extent < 1)
      return false;
  return true;
}
static int64_t apart(const struct taps *t, int axis) { return t->c->axes[axis].stride[0]; }
/* par: taps' rows and columns, channels; red: images, rows, columns. */
static bool is_taps(struct taps *t) {
  const struct contraction *c = t->c;
  if (c->lanes != 2 || c->par_count != 3 || c->axis_count != c->par_count + 3)
    return false;
  t->rows = c->lanes - 2;
  t->columns = c->lanes - 1;
  t->high = c->par_count + 1;
  t->wide = c->par_count + 2;
  t->width = c->axes[c->lanes].extent;
  t->lanes = t->n->machine->vector_bytes / (int64_t)dtype_size(c->dtype);
  return c->dtype == DTYPE_FLOAT && c->factor[0] == c->load[0] && c->factor[1] == c->load[1] && c->axes[c->lanes].role == ROLE_BATCH &&
         c->axes[c->lanes].stride[0] == 1 && c->axes[c->lanes].stride[1] == 1 && c->axes[t->rows].role == ROLE_M &&
         c->axes[t->columns].role == ROLE_M && c->axes[t->high].role == ROLE_WINDOW && c->axes[t->wide].role == ROLE_WINDOW &&
         has_sizes(c, 0, c->par_count) && has_sizes(c, t->high, c->axis_count) && apart(t, t->rows) > 0 && apart(t, t->columns) > 0 &&
         apart(t, t->high) % apart(t, t->rows) == 0 && apart(t, t->wide) % apart(t, t->columns) == 0;
}

/* ---- steps ---- */

/* Places at either end of which some tap is outside, where the padding is the same at both ends. */
static int64_t border(const struct taps *t, int axis, int tap_axis) {
  return divide_up(t->c->axes[tap_axis].extent - 1, 2 * (apart(t, axis) / apart(t, tap_axis)));
}
/* "; cut h at 1 55 -> hp0 hp1 hp2", of points that ascend and of which some may be none: what is at a border apart from what is between. */
static const char *cut_text(const struct taps *t, const char *loop, const int64_t points[POINTS], int64_t count) {
  struct arena *a = t->n->arena;
  const char *at = "", *made = arena_printf(a, " %sp0", loop);
  int64_t before = 0;
  for (int i = 0, pieces = 1; i < POINTS; i++) {
    if (points[i] <= before || points[i] >= count)
      continue;
    at = arena_printf(a, "%s %lld", at, (long long)points[i]);
    made = arena_printf(a, "%s %sp%d", made, loop, pieces++);
    before = points[i];
  }
  return before == 0 ? "" : arena_printf(a, "; cut %s at%s ->%s", loop, at, made);
}
/* Rows of the gradient at the borders, where a tile has all rows of taps; blocks of columns there, and one that is smaller. Without a test
 * all taps are inside. */
static const char *cuts_text(const struct taps *t, int64_t block, bool is_whole) {
  struct arena *a = t->n->arena;
  int64_t wide = t->c->axes[t->wide].extent, high = t->c->axes[t->high].extent, blocks = divide_up(wide, block);
  int64_t rows = t->c->test ? border(t, t->high, t->rows) : 0, columns = t->c->test ? border(t, t->wide, t->columns) : 0;
  const char *h = t->words.of[t->high], *w = t->words.of[t->wide];
  const int64_t row_points[POINTS] = {rows, high - rows};
  const int64_t block_points[POINTS] = {divide_up(columns, block), (wide - columns) / block, wide / block};
  return arena_printf(a, "%s; split %s %lld -> %so %si%s", is_whole ? cut_text(t, h, row_points, high) : "", w, (long long)block, w, w,
                      cut_text(t, arena_printf(a, "%so", w), block_points, blocks));
}
static bool is_grouped(const struct taps *t, const struct taps_tile *tile) { return tile->group > tile->vectors * t->lanes; }
/* Tiles whose sums stay in registers for all images. */
static const char *tile_text(const struct taps *t, const struct taps_tile *tile, const char *taps, const char *tasks) {
  const char *m = t->words.of[t->c->lanes], *own = "";
  if (!tile->is_whole && t->c->test)
    own = arena_printf(t->n->arena, " cut %s;", t->words.of[t->high]);
  return arena_printf(t->n->arena, "%s split %s %lld -> %so %si; order %s %s %si; sink %s %si under%s in register", own, m,
                      (long long)(tile->vectors * t->lanes), m, m, tasks, taps, m, taps, m,
                      axis_words_list(&t->words, t->c->par_count, t->c->axis_count));
}
/* Groups of them, whose sums stay there for a row. */
static const char *group_text(const struct taps *t, const struct taps_tile *tile, const char *taps) {
  const char *m = t->words.of[t->c->lanes];
  return arena_printf(t->n->arena,
                      " split %s %lld -> %sg %sr; split %sr %lld -> %so %si; order %sg %so %s %si; sink %so %s %si under%s in stack; "
                      "sink %s %si under %s in register",
                      m, (long long)tile->group, m, m, m, (long long)(tile->vectors * t->lanes), m, m, m, m, taps, m, m, taps, m,
                      axis_words_list(&t->words, t->c->par_count, t->wide), taps, m, t->words.of[t->wide]);
}
static const char *steps_text(const struct taps *t, const struct taps_tile *tile) {
  struct arena *a = t->n->arena;
  const struct contraction *c = t->c;
  const char *m = t->words.of[c->lanes], *y = t->words.of[t->rows], *n = t->words.of[c->par_count];
  const char *taps = tile->is_whole ? arena_printf(a, "%s %s", y, t->words.of[t->columns]) : t->words.of[t->columns];
  const char *tasks = is_grouped(t, tile) ? arena_printf(a, "%sg", m)
                    : tile->is_whole      ? arena_printf(a, "%so", m)
                                          : arena_printf(a, "%s %so", y, m);
  const char *order = is_grouped(t, tile) ? group_text(t, tile, taps) : tile_text(t, tile, taps, tasks);
  const char *stage =
    tile->is_staged ? arena_printf(a, "; stage %s at %s by .1 .2 %si -> ph pw pm", contraction_buffer(c, 0)->name, n, m) : "";
  return arena_printf(a, "%s;%s%s%s; run %s tasks; run %s %si unroll; run %si%s lanes", axis_words_begin(&t->words), order, stage,
                      cuts_text(t, tile->block, tile->is_whole), tasks, taps, t->words.of[t->wide], m, tile->is_staged ? " pm" : "");
}

/* ---- how large the tiles are ---- */

/* Equal blocks of columns, or with a rest as code of its own. */
static int64_t block_of(const struct taps *t) {
  int64_t wide = t->c->axes[t->wide].extent;
  for (int64_t block = COLUMNS_MAX; block > COLUMNS_MAX / 2; block--)
    if (wide % block == 0)
      return block;
  return wide < COLUMNS_MAX ? wide : COLUMNS_MAX;
}
static double terms_of(const struct taps *t) {
  const struct contraction_axis *images = &t->c->axes[t->c->par_count];
  return (double)(images->extent < 1 ? 1 : images->extent) * (double)(t->c->axes[t->high].extent * t->c->axes[t->wide].extent);
}
static double places_of(const struct taps *t) {
  return (double)(apart(t, t->wide) / apart(t, t->columns) * (apart(t, t->high) / apart(t, t->rows))) + 1;
}
/* Of all images of both factors. */
static double bytes_of(const struct taps *t) { return terms_of(t) * places_of(t) * (double)(t->width * (int64_t)dtype_size(t->c->dtype)); }
/* Of one tile. */
static double cycles_of(const struct taps *t, const struct taps_tile *tile) {
  int64_t columns = t->c->axes[t->columns].extent, rows = tile->is_whole ? t->c->axes[t->rows].extent : 1, bytes = dtype_size(t->c->dtype);
  double vectors = (double)tile->vectors, across = (double)(apart(t, t->wide) / apart(t, t->columns));
  double kept = (double)columns - across;
  double reach = ((double)(tile->block - 1) * across + (double)columns) / (double)tile->block;
  const struct taps_work work = {.sums = (double)(rows * columns) * vectors,
                                 .held = ((double)rows * (kept > 0 ? kept : 0) + 1) * vectors,
                                 .loads = ((double)rows * reach + 1) * vectors,
                                 .terms = terms_of(t),
                                 .vectors = vectors,
                                 .places = places_of(t),
                                 .apart = (double)(t->width * bytes),
                                 .bytes = bytes_of(t),
                                 .part = tile->group < t->width ? (double)tile->group / (double)t->width : 1,
                                 .rows = rows,
                                 .wide = (double)t->c->axes[t->wide].extent,
                                 .is_grouped = is_grouped(t, tile),
                                 .is_staged = tile->is_staged};
  return depthwise_filter_cycles(t->n->machine, &work);
}
static void propose_tile(const struct taps *t, const struct taps_tile *tile, int64_t tasks, struct candidates *out) {
  vec_push(&out->items, (struct candidate){.steps = steps_text(t, tile), .cycles = (double)tasks * cycles_of(t, tile)});
}
/* Whether a vector's pixels of one image fit the first cache, where they would meet in few of its sets. */
static bool may_stage(const struct taps *t, const struct taps_tile *tile) {
  const struct kernel_buffer *image = contraction_buffer(t->c, 0);
  int64_t bytes = tile->vectors * (int64_t)t->n->machine->vector_bytes;
  return tile->is_whole && image->rank == 4 && image->dims[1] > 0 && image->dims[2] > 0 && t->width % (tile->vectors * t->lanes) == 0 &&
         (double)(image->dims[1] * image->dims[2] * bytes) <= STAGED_SHARE * (double)t->n->machine->bytes[LEVEL_L1];
}
/* Channels of a task that reads images row by row: as many as leave each core one. */
static int64_t group_of(const struct taps *t, const struct taps_tile *tile) {
  int64_t cores = t->n->machine->cores ? t->n->machine->cores : CORES_USUAL, each = tile->vectors * t->lanes;
  return tile->is_whole && taps_are_far(t->n->machine, bytes_of(t)) ? divide_up(divide_up(t->width, each), cores) * each : each;
}
static void propose(const struct taps *t, int64_t vectors, struct candidates *out) {
  int64_t columns = t->c->axes[t->columns].extent, rows = t->c->axes[t->rows].extent;
  int64_t most = (int64_t)t->n->machine->registers * SUMS_SHARE;
  struct taps_tile tile = {
    .vectors = vectors, .group = vectors * t->lanes, .block = block_of(t), .is_whole = rows * columns * vectors <= most};
  int64_t tasks = divide_up(t->width, vectors * t->lanes) * (tile.is_whole ? 1 : rows);
  if ((tile.is_whole ? rows : 1) * columns * vectors > most || (tasks == 1 && vectors > 1))
    return;
  propose_tile(t, &tile, tasks, out);
  struct taps_tile grouped = tile;
  grouped.group = group_of(t, &tile);
  if (is_grouped(t, &grouped))
    propose_tile(t, &grouped, tasks, out);
  tile.is_staged = may_stage(t, &tile);
  if (tile.is_staged)
    propose_tile(t, &tile, tasks, out);
}
void propose_taps(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct taps t = {.n = n, .c = c};
  if (!is_taps(&t))
    return;
  const struct axis_name names[] = {{t.rows, "y"}, {t.columns, "x"}, {c->lanes, "m"}, {c->par_count, "n"}, {t.high, "h"}, {t.wide, "w"}};
  t.words = axis_words_of(n, c, NULL, names, 6);
  double elements = (double)(c->axes[t.rows].extent * c->axes[t.columns].extent);
  out->items.items[0].cycles = depthwise_filter_plain_cycles(n->machine, elements * (double)divide_up(t.width, t.lanes), terms_of(&t));
  for (int64_t vectors = 1; vectors <= VECTORS_MAX; vectors++)
    propose(&t, vectors, out);
}
