/* choose_filter.c: gradients of a convolution's filter, read where they lie: a tile of the filter's elements by vectors of channels keeps
 * its sums in registers while images pass.
 *
 * Three shapes of them, by what gives few loads for a multiply-add:
 *   blocks      channels of the image by vectors of the result's; partial sums wait in the result, so that a block of image rows stays in
 *               the first cache while all tiles of a task meet it
 *   transposed  the result has but one vector of channels: the vectors run along the image's, which lie side by side too
 *   windows     few elements (one channel of the image): all of a window's rows and columns that fit
 *
 * Where the image has no border around it, the rows and columns that a tap meets are fewer than the result's: the sum's loops are ragged.
 * All sizes are known, but for the number of images; no factor has a border's test. */
#include "compiler/schedule/axis_words.h"

struct filter {
  const struct nest *n;
  const struct contraction *c;
  int rows, around;        /* axes: the image's channels (or a window's columns), and the par axis around, -1: none */
  int64_t extent, width;   /* of the rows and of the columns */
  int64_t others, windows; /* turns of the par axes but for rows and columns; of the axis around */
  int64_t images, high, wide;
  int64_t lanes;
  double pixels; /* that each sum adds up, at most */
  bool is_open;  /* a sum may have no first turn that is known */
  struct axis_words words;
};

#define SUMS_MAX 24         /* registers that wait; the others hold a term's vectors */
#define SUMS_MIN 9          /* below, sums wait for themselves */
#define ROWS_MAX 16         /* of a tile: each is one load a term */
#define TASKS_USUAL 6       /* so that some threads have about as much each */
#define GROUP_MIN 16        /* rows of a task: else the result's gradient is read again too often */
#define BLOCK_PIXELS_MIN 64 /* of fewer the sums come and go too often */
#define IMAGES_USUAL 32     /* where their number is open */

/* ---- which nests ---- */

static bool is_bare_store(const struct contraction *c) {
  const struct stmt *s = c->sum->next;
  const struct expr *value = s && s->kind == STMT_STORE && !s->next ? expr_get(c->k, s->value) : NULL;
  return value && value->op == SCALAR_LOCAL && (uint32_t)value->imm == c->local && c->k->buffers.items[s->buffer].mode == BUFFER_OUT &&
         c->k->buffers.items[s->buffer].dtype == c->dtype;
}
static bool is_plain(const struct contraction *c) {
  for (int i = 0; i < 2; i++)
    if (c->factor[i] != c->load[i] || c->guard[i] != NO_EXPR)
      return false;
  return c->dtype == DTYPE_FLOAT && is_bare_store(c);
}
/* par: [window rows, columns ..] rows, columns; red: images, image rows, image columns. */
static bool is_filter(const struct filter *f) {
  const struct contraction *c = f->c;
  int par = c->par_count;
  if (par < 2 || c->axis_count != par + 3 || c->lanes != par - 1 || c->axes[par - 1].role != ROLE_N || !is_plain(c))
    return false;
  for (int i = 0; i < c->axis_count; i++)
    if ((i < par ? c->axes[i].extent : c->axes[i].most) < 1 && i != par)
      return false;
  for (int i = 0; i < par - 1; i++) /* where sums are ragged, a tap moves the result's gradient too */
    if (c->axes[i].role != ROLE_M && (i == par - 2 || c->axes[i].role != ROLE_BATCH || !c->is_ragged))
      return false;
  return c->axes[par + 1].role == ROLE_WINDOW && c->axes[par + 2].role == ROLE_WINDOW && c->axes[par - 1].stride[1] == 1 &&
         c->axes[par - 2].stride[0] == 1 && c->axes[par - 2].stride[FACTOR_RESULT] != STRIDE_OPEN;
}
static void find_extents(struct filter *f) {
  const struct contraction_axis *a = f->c->axes;
  int par = f->c->par_count;
  f->rows = par - 2;
  f->around = par - 3;
  f->extent = a[f->rows].extent;
  f->width = a[par - 1].extent;
  f->windows = f->around < 0 ? 1 : a[f->around].extent;
  f->others = 1;
  for (int i = 0; i < f->rows; i++)
    f->others *= a[i].extent;
  f->images = a[par].extent < 0 ? IMAGES_USUAL : a[par].extent;
  f->high = a[par + 1].most;
  f->wide = a[par + 2].most;
  f->is_open = f->c->is_ragged || a[par].extent < 1;
  f->pixels = (double)(f->images * f->high * f->wide);
  f->lanes = f->n->machine->vector_bytes / (uint32_t)dtype_size(f->c->dtype);
}

/* ---- steps ---- */

static void propose(struct candidates *out, const char *steps, double cycles) {
  vec_push(&out->items, (struct candidate){.steps = steps, .cycles = cycles});
}

static struct filter_stream stream_of(const struct filter *f) {
  const struct contraction_axis *inner = &f->c->axes[f->c->axis_count - 1];
  double bytes = (double)dtype_size(f->c->dtype);
  return (struct filter_stream){.row_bytes = (double)inner->stride[0] * bytes, .column_bytes = (double)inner->stride[1] * bytes};
}

/* ---- blocks ---- */

/* The most rows, without a rest, whose sums fit the registers. */
static int64_t tile_rows(int64_t extent, int64_t vectors) {
  for (int64_t rows = ROWS_MAX; rows > 1; rows--)
    if (extent % rows == 0 && rows * vectors <= SUMS_MAX)
      return rows;
  return 1;
}
/* Rows of a task, whole tiles; 0: there is but one task. */
static int64_t group_rows(const struct filter *f, int64_t strips, int64_t tile) {
  int64_t found = 0;
  for (int64_t groups = 1; f->extent / groups >= GROUP_MIN; groups++)
    if (f->extent % (groups * tile) == 0) {
      found = groups * f->others * strips > 1 ? f->extent / groups : 0;
      if (groups * f->others * strips >= TASKS_USUAL)
        break;
    }
  return found;
}
/* Bytes of an image row that a task meets: of `group` channels, and of `columns` of the gradient. */
static int64_t row_bytes(const struct filter *f, int64_t group, int64_t columns) {
  int64_t step = f->c->axes[f->c->axis_count - 1].stride[0], pixel = step < group && step > 0 ? step : group;
  return f->wide * (pixel + columns) * (int64_t)dtype_size(f->c->dtype);
}
/* Image rows of a block: blocks of about one size, or 0 where too few fit. */
static int64_t block_rows(const struct filter *f, int64_t group, int64_t columns, double bytes) {
  int64_t fit = (int64_t)bytes / row_bytes(f, group, columns);
  int64_t rows = fit ? divide_up(f->high, divide_up(f->high, fit)) : 0;
  return rows * f->wide < BLOCK_PIXELS_MIN && rows < f->high ? 0 : rows;
}
/* level: the cache that holds a block. */
static void propose_blocks(const struct filter *f, int64_t vectors, int level, struct candidates *out) {
  int64_t columns = vectors * f->lanes, tile = tile_rows(f->extent, vectors);
  int64_t group = f->width % columns ? 0 : group_rows(f, f->width / columns, tile);
  double share = level == LEVEL_L1 ? FILTER_L1_SHARE : FILTER_L2_SHARE;
  int64_t block = !group || tile * vectors < SUMS_MIN ? 0 : block_rows(f, group, columns, share * (double)f->n->machine->bytes[level]);
  if (!block)
    return;
  const char *around = axis_words_list(&f->words, 0, f->rows);
  const char *steps = arena_printf(f->n->arena,
                                   "%s; fma; split k %lld -> kg kk; split kk %lld -> ko ki; split m %lld -> mo mi; order%s kg mo ko ki mi; "
                                   "split h %lld -> ho hi; sink ko ki mi under n ho in result%s; sink ki mi under hi w in register; "
                                   "run%s kg mo tasks; run ki unroll; run mi lanes",
                                   axis_words_begin(&f->words), (long long)group, (long long)tile, (long long)columns, around,
                                   (long long)block, f->is_open ? "" : " first", around);
  struct filter_stream from = stream_of(f);
  double tiles = (double)(f->others * (f->extent / tile) * (f->width / columns));
  double turns = (double)(f->images * divide_up(f->high, block)) * (double)(tile * vectors) * FILTER_SUM_CYCLES;
  propose(out, steps, tiles * (filter_tile_cycles(f->n->machine, tile, vectors, f->pixels, level == LEVEL_L1 ? NULL : &from) + turns));
}

/* ---- transposed, windows ---- */

static void propose_transposed(const struct filter *f, struct candidates *out) {
  const int64_t vectors = 3, rows = 8, strip = vectors * f->lanes;
  if (f->width != f->lanes || f->width % rows || f->extent % strip)
    return;
  const char *around = axis_words_list(&f->words, 0, f->rows);
  const char *steps = arena_printf(f->n->arena,
                                   "%s; fma; split k %lld -> ko ki; split m %lld -> mo mi; order%s ko mo mi ki; sink mi ki under n h w in "
                                   "register; run%s ko mo tasks; run mi unroll; run ki lanes",
                                   axis_words_begin(&f->words), (long long)strip, (long long)rows, around, around);
  struct filter_stream from = stream_of(f);
  double tiles = (double)(f->others * (f->extent / strip) * (f->width / rows));
  propose(out, steps, tiles * filter_tile_cycles(f->n->machine, rows, vectors, f->pixels, &from));
}

/* All rows, and twice with two vectors of columns: two rows of the window. */
static void propose_windows(const struct filter *f, struct candidates *out) {
  int64_t vectors = divide_up(f->width, f->lanes), sums = f->extent * vectors;
  bool two = vectors > 1 && f->around >= 0 && f->windows > 1 && 2 * sums <= SUMS_MAX;
  if (f->width % f->lanes || f->extent > ROWS_MAX || sums * (two ? 2 : 1) > SUMS_MAX || sums * (two ? 2 : 1) < SUMS_MIN)
    return;
  const char *split = "", *tile = "k", *around = axis_words_list(&f->words, 0, f->rows), *word = two ? f->words.of[f->around] : "";
  if (two) {
    split = arena_printf(f->n->arena, "; split %s 2 -> %so %si%s", word, word, word, f->windows % 2 ? " tail cut 1" : "");
    around = arena_printf(f->n->arena, "%s %so", axis_words_list(&f->words, 0, f->around), word);
    tile = arena_printf(f->n->arena, "%si k", word);
  }
  const char *steps = arena_printf(f->n->arena, "%s; fma%s; sink %s m under n h w in register; run%s tasks; run %s unroll; run m lanes",
                                   axis_words_begin(&f->words), split, tile, around, tile);
  double tiles = (double)f->others / (two ? 2 : 1);
  propose(out, steps, tiles * filter_tile_cycles(f->n->machine, f->extent * (two ? 2 : 1), vectors, f->pixels, NULL));
}

/* As the target does by itself. */
static double own_cycles(const struct filter *f) {
  const struct filter_work work = {
    .taps = (double)f->others, .rows = (double)f->extent, .columns = (double)f->width, .terms = f->pixels, .lanes = (double)f->lanes};
  double bytes = (double)(f->images * f->high * row_bytes(f, f->extent, f->width));
  return f->c->is_ragged ? filter_along_cycles(f->n->machine, &work, bytes) : filter_own_cycles(f->n->machine, &work);
}
void propose_filters(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct filter f = {.n = n, .c = c};
  /* measured with many registers; sums wait in a result that no other nest has */
  if (!n->machine->has_fma || n->machine->registers < 32 || n->k->body->next || !is_filter(&f))
    return;
  find_extents(&f);
  const int par = c->par_count;
  const struct axis_name names[] = {{f.rows, "k"}, {par - 1, "m"}, {par, "n"}, {par + 1, "h"}, {par + 2, "w"}};
  f.words = axis_words_of(n, c, NULL, names, 5);
  out->items.items[0].cycles = own_cycles(&f);
  for (int64_t vectors = 1; vectors <= 4; vectors++) {
    propose_blocks(&f, vectors, LEVEL_L1, out);
    propose_blocks(&f, vectors, LEVEL_L2, out);
  }
  if (c->is_ragged || n->machine->fma_rate < 2) /* measured with two multiply-adds a cycle */
    return;
  propose_transposed(&f, out);
  propose_windows(&f, out);
}
