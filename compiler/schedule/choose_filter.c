/* choose_filter.c: gradients of a convolution's filter: a tile of the filter's elements by vectors of channels keeps its sums in registers
 * while images pass.
 *
 * Three shapes of those that are read where they lie, by what gives few loads for a multiply-add:
 *   blocks      channels of the image by vectors of the result's; partial sums wait in the result, so that a block of image rows stays in
 *               the first cache while all tiles of a task meet it
 *   transposed  the result has but one vector of channels: the vectors run along the image's, which lie side by side too
 *   windows     few elements (one channel of the image): all of a window's rows and columns that fit
 * Where the machine multiplies pairs of bfloat16, blocks of both factors are copied instead, neighbouring pixels side by side.
 *
 * Where the image has no border around it, the rows and columns that a tap meets are fewer than the result's: the sum's loops are ragged.
 * All sizes are known, but for the number of images; no factor has a border's test. */
#include "compiler/schedule/axis_words.h"

struct filter {
  const struct nest *n;
  const struct contraction *c;
  int rows, around;        /* axes: the image's channels (or a window's columns), and the par axis around, -1: none; */
  int high_axis;           /* that of the image's rows, in front of its columns' */
  int64_t extent, width;   /* of the rows and of the columns */
  int64_t others, windows; /* turns of the par axes but for rows and columns; of the axis around */
  int64_t images, high, wide;
  int64_t lanes;
  double pixels;  /* that each sum adds up, at most */
  bool is_open;   /* a sum may have no first turn that is known */
  bool is_paired; /* the machine multiplies pairs of pixels */
  struct axis_words words;
};

#define SUMS_MIN 8          /* below, sums wait for themselves */
#define ROWS_MAX 16         /* of a tile: each is one load a term */
#define TASKS_USUAL 6       /* so that some threads have about as much each */
#define GROUP_MIN 16        /* rows of a task: else the result's gradient is read again too often */
#define BLOCK_PIXELS_MIN 48 /* of fewer the sums come and go too often */
#define IMAGES_USUAL 32     /* where their number is open */
#define GROUPS_COST 4       /* as plain loops: of eight channels 28M cycles, where as many terms of one group take 4M */

/* ---- which nests ---- */

/* Factors as they are loaded, whose sums may wait in the result; or pairs of bfloat16, which are copied. */
static bool has_factors(struct filter *f) {
  const struct contraction *c = f->c;
  bool are_loads = true;
  for (int i = 0; i < FACTORS; i++) {
    if (c->load[i] == NO_EXPR || c->guard[i] != NO_EXPR)
      return false;
    are_loads = are_loads && c->factor[i] == c->load[i];
  }
  f->is_paired = may_be_paired(f->n, c);
  return f->is_paired || (are_loads && c->dtype == DTYPE_FLOAT && stores_sum(c));
}
/* par: [window rows, columns ..] rows, columns; red: images (of volumes also their depth), image rows, image columns. */
static bool is_filter(struct filter *f) {
  const struct contraction *c = f->c;
  int par = c->par_count, red = c->axis_count - par;
  if (par < 2 || red < 3 || red > 4 || c->lanes != par - 1 || c->axes[par - 1].role != ROLE_N || !has_factors(f))
    return false;
  for (int i = 0; i < c->axis_count; i++)
    if ((i < par ? c->axes[i].extent : c->axes[i].most) < 1 && i != par)
      return false;
  for (int i = 0; i < par - 1; i++) /* groups; where sums are ragged, a tap moves the result's gradient, too */
    if (c->axes[i].role != ROLE_M && (i == par - 2 || c->axes[i].role != ROLE_BATCH))
      return false;
  return c->axes[par + red - 2].role == ROLE_WINDOW && c->axes[par + red - 1].role == ROLE_WINDOW && c->axes[par - 1].stride[1] == 1 &&
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
  f->high_axis = f->c->axis_count - 2;
  f->images = a[par].extent < 0 ? IMAGES_USUAL : a[par].extent;
  for (int i = par + 1; i < f->high_axis; i++)
    f->images *= a[i].most;
  f->high = a[f->high_axis].most;
  f->wide = a[f->high_axis + 1].most;
  f->is_open = f->c->is_ragged || a[par].extent < 1;
  f->pixels = (double)(f->images * f->high * f->wide);
  f->lanes = lanes_for(f->n, f->c->dtype, f->width);
}

/* Registers that wait; the others hold a term's vectors. */
static int64_t sums_max(const struct filter *f) { return f->n->machine->registers / 4 * 3; }
/* Of few registers no power of two is the most that fits: a task's last tile may be smaller, code of its own. */
static bool has_rests(const struct filter *f) { return f->n->machine->registers < 32; }

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

/* The most rows whose sums fit the registers: without a rest, but where registers are few. */
static int64_t tile_rows(const struct filter *f, int64_t vectors) {
  for (int64_t rows = ROWS_MAX < f->extent ? ROWS_MAX : f->extent; rows > 1; rows--)
    if ((has_rests(f) || f->extent % rows == 0) && rows * vectors <= sums_max(f))
      return rows;
  return 1;
}
/* Rows of a task, whole tiles unless they may leave a rest; around: tasks that there are beside. 0: there is but one task. */
static int64_t group_rows(const struct filter *f, int64_t around, int64_t tile) {
  int64_t found = 0;
  for (int64_t groups = 1; groups == 1 || f->extent / groups >= GROUP_MIN; groups++)
    if (f->extent % (groups * (has_rests(f) ? 1 : tile)) == 0) {
      found = groups * around > 1 ? f->extent / groups : 0;
      if (groups * around >= TASKS_USUAL)
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
/* What blocks are: `tile` rows by `vectors`, `group` rows and `columns` of a task, `block` rows of an image. */
struct blocks {
  int64_t tile, vectors, columns, group, block;
  bool is_around; /* a task has all turns of the axis around: its factors come from afar but once for them */
};
static const char *tails_text(const struct filter *f, const struct blocks *b) {
  const char *tails = "";
  for (int i = 8; i && b->group % b->tile; i /= 2)
    tails = i < b->tile ? arena_printf(f->n->arena, "%s %d", *tails ? tails : " tail cut", i) : tails;
  return tails;
}
static const char *blocks_text(const struct filter *f, const struct blocks *b) {
  struct arena *a = f->n->arena;
  const char *tasks = axis_words_list(&f->words, 0, b->is_around ? f->around : f->rows);
  const char *inner = b->is_around ? arena_printf(a, "%s ", f->words.of[f->around]) : "", *first = f->is_open ? "" : " first";
  const char *images = axis_words_list(&f->words, f->c->par_count, f->high_axis);
  if (!has_rests(f)) /* all rows of a tile alike: they need no order of their own */
    return arena_printf(a,
                        "%s; split k %lld -> kg kk; split kk %lld -> ko ki; split m %lld -> mo mi; order%s kg mo %sko ki mi; "
                        "split h %lld -> ho hi; sink %sko ki mi under%s ho in result%s; sink ki mi under hi w in register; "
                        "run%s kg mo tasks; run ki unroll; run mi lanes",
                        axis_words_begin(&f->words), (long long)b->group, (long long)b->tile, (long long)b->columns, tasks, inner,
                        (long long)b->block, inner, images, first, tasks);
  return arena_printf(a,
                      "%s; split k %lld -> kg kk; split m %lld -> mo mi; order%s kg mo %skk mi; split h %lld -> ho hi; "
                      "sink %skk mi under%s ho in result%s; split kk %lld -> ko ki%s; sink ki mi under hi w in register; "
                      "run%s kg mo tasks; run ki unroll; run mi lanes",
                      axis_words_begin(&f->words), (long long)b->group, (long long)b->columns, tasks, inner, (long long)b->block, inner,
                      images, first, (long long)b->tile, tails_text(f, b), tasks);
}
/* Of all rows of a task by one strip of columns; from: as filter_tile_cycles has it. */
static double group_cycles(const struct filter *f, const struct blocks *b, const struct filter_stream *from) {
  double turns = (double)(f->images * divide_up(f->high, b->block)), cycles = 0;
  for (int64_t left = b->group, rows = b->tile; left > 0; left -= rows) {
    while (rows > left) /* as the tails are cut */
      rows = rows > 8 ? 8 : rows & (rows - 1) ? rows & (rows - 1) : rows / 2;
    cycles +=
      filter_tile_cycles(f->n->machine, rows, b->vectors, f->pixels, from) + turns * (double)(rows * b->vectors) * FILTER_SUM_CYCLES;
  }
  return cycles;
}
/* Bytes of both factors' images. */
static double all_bytes(const struct filter *f) { return (double)(f->images * f->high * row_bytes(f, f->extent, f->width)); }
/* Of what so many tasks get from beyond the second cache, if that does not hold all images. */
static double lines_cycles(const struct filter *f, double tasks, int64_t rows, int64_t columns, const struct filter_stream *from) {
  double bytes = (double)dtype_size(f->c->dtype);
  if (all_bytes(f) <= (double)f->n->machine->bytes[LEVEL_L2])
    return 0;
  return filter_lines_cycles(f->n->machine, tasks * f->pixels, (double)rows * bytes, (double)columns * bytes, from);
}
/* Whether tasks that have all turns of the axis around are enough of them. */
static bool may_go_around(const struct filter *f, int64_t strips) {
  return f->around >= 0 && f->others / f->windows * strips * divide_up(f->extent, GROUP_MIN) >= TASKS_USUAL;
}
/* level: the cache that holds a block. */
static void propose_blocks(const struct filter *f, int64_t vectors, int level, bool is_around, struct candidates *out) {
  struct blocks b = {.tile = tile_rows(f, vectors), .vectors = vectors, .columns = vectors * f->lanes, .is_around = is_around};
  int64_t strips = f->width / b.columns;
  double around = (double)(is_around ? f->windows : 1);
  b.group = f->width % b.columns ? 0 : group_rows(f, f->others / (int64_t)around * strips, b.tile);
  bool fits = b.group && b.tile * vectors >= SUMS_MIN && b.tile * vectors + vectors < f->n->machine->registers;
  double bytes = (level == LEVEL_L1 ? FILTER_L1_SHARE : FILTER_L2_SHARE) * (double)f->n->machine->bytes[level];
  b.block = fits ? block_rows(f, b.group, b.columns, bytes) : 0;
  while (fits && !b.block && has_rests(f) && b.group % 2 == 0 && b.group / 2 >= GROUP_MIN) {
    b.group /= 2; /* fewer of its columns, so that a block fits */
    b.block = block_rows(f, b.group, b.columns, bytes);
  }
  if (!b.block)
    return;
  struct filter_stream from = stream_of(f);
  from.is_near = level == LEVEL_L1;
  double groups = (double)(f->others * (f->extent / b.group) * strips);
  double far = lines_cycles(f, groups / around, b.group, b.columns, &from);
  if (is_around && !has_rests(f) && far == 0) /* nothing is gained */
    return;
  propose(out, blocks_text(f, &b), groups * group_cycles(f, &b, &from) + far);
}
/* Few registers have all turns around in a task where they can: blocks of theirs are small. */
static void propose_all_blocks(const struct filter *f, struct candidates *out) {
  for (int64_t vectors = 1; vectors <= 4; vectors++)
    for (int level = LEVEL_L1; level <= LEVEL_L2; level++) {
      bool may = may_go_around(f, f->width / (vectors * f->lanes));
      if (!may || !has_rests(f))
        propose_blocks(f, vectors, level, false, out);
      if (may)
        propose_blocks(f, vectors, level, true, out);
    }
}

/* ---- transposed, windows ---- */

static const char *sums_list(const struct filter *f) { return axis_words_list(&f->words, f->c->par_count, f->c->axis_count); }

static void propose_transposed(const struct filter *f, struct candidates *out) {
  const int64_t vectors = 3, rows = 8, strip = vectors * f->lanes;
  if (f->width != f->lanes || f->width % rows || f->extent % strip)
    return;
  const char *around = axis_words_list(&f->words, 0, f->rows);
  const char *steps = arena_printf(f->n->arena,
                                   "%s; split k %lld -> ko ki; split m %lld -> mo mi; order%s ko mo mi ki; sink mi ki under%s in "
                                   "register; run%s ko mo tasks; run mi unroll; run ki lanes",
                                   axis_words_begin(&f->words), (long long)strip, (long long)rows, around, sums_list(f), around);
  struct filter_stream from = stream_of(f);
  double tiles = (double)(f->others * (f->extent / strip) * (f->width / rows));
  propose(out, steps, tiles * filter_tile_cycles(f->n->machine, rows, vectors, f->pixels, &from));
}

/* All rows, and as many turns of the axis around as registers have sums for: of a window several rows, or columns. */
static void propose_windows(const struct filter *f, struct candidates *out) {
  int64_t vectors = divide_up(f->width, f->lanes), sums = f->extent * vectors;
  if (f->width % f->lanes || f->extent > ROWS_MAX || sums > sums_max(f))
    return;
  int64_t fit = sums_max(f) / sums, turns = f->around < 0 ? 1 : fit < f->windows ? fit : f->windows;
  while (f->around > 0 && f->windows % turns) /* one loop of tasks, inside of another */
    turns--;
  int64_t rest = f->windows % turns;
  if (sums * turns < SUMS_MIN)
    return;
  const char *split = "", *tile = "k", *around = axis_words_list(&f->words, 0, f->rows), *word = turns > 1 ? f->words.of[f->around] : "";
  if (turns > 1) {
    const char *tail = rest ? arena_printf(f->n->arena, " tail cut %lld", (long long)rest) : "";
    split = arena_printf(f->n->arena, "; split %s %lld -> %so %si%s", word, (long long)turns, word, word, tail);
    around = arena_printf(f->n->arena, "%s %so", axis_words_list(&f->words, 0, f->around), word);
    tile = arena_printf(f->n->arena, "%si k", word);
  }
  const char *steps = arena_printf(f->n->arena, "%s%s; sink %s m under%s in register; run%s tasks; run %s unroll; run m lanes",
                                   axis_words_begin(&f->words), split, tile, sums_list(f), around, tile);
  const struct machine *machine = f->n->machine;
  double tiles = (double)f->others / (double)f->windows;
  double cycles = (double)(f->windows / turns) * filter_tile_cycles(machine, f->extent * turns, vectors, f->pixels, NULL);
  cycles += rest ? filter_tile_cycles(machine, f->extent * rest, vectors, f->pixels, NULL) : 0;
  propose(out, steps, tiles * cycles);
}

/* ---- pairs ---- */

/* Both factors of a block are copied, pixels two by two; a task's sums, all columns of some rows, wait on the stack. */
static const char *pairs_text(const struct filter *f, const struct blocks *b) {
  struct arena *a = f->n->arena;
  const char *tasks = axis_words_list(&f->words, 0, f->rows), *images = axis_words_list(&f->words, f->c->par_count, f->high_axis);
  const char *text =
    arena_printf(a,
                 "%s; split k %lld -> kg kk; split kk %lld -> ko ki; split m %lld -> mo mi; order%s kg ko mo ki mi; split h %lld -> ho hi; "
                 "sink ko mo ki mi under%s ho in stack; split w %d -> wu wv",
                 axis_words_begin(&f->words), (long long)b->group, (long long)b->tile, (long long)b->columns, tasks, (long long)b->block,
                 images, PAIR_TERMS);
  text =
    arena_printf(a,
                 "%s; stage %s%s at ho by mo hi wu mi wv -> po ph pw pm pz; order ph pw po pm; "
                 "stage %s%s at ho by ko hi wu ki wv -> qo qh qw qk qz; order qh qw qo qk",
                 text, contraction_buffer(f->c, 1)->name, narrow_text(f->c, 1), contraction_buffer(f->c, 0)->name, narrow_text(f->c, 0));
  return arena_printf(a, "%s; sink ki mi under hi wu in register; pair wv; run%s kg tasks; run ki pz qz unroll; run mi pm qk lanes", text,
                      tasks);
}
static double pairs_cycles(const struct filter *f, const struct blocks *b) {
  const struct machine *machine = f->n->machine;
  double groups = (double)(f->others * (f->extent / b->group)), tiles = (double)(b->group / b->tile) * (double)(f->width / b->columns);
  double tile = filter_tile_cycles(machine, b->tile, b->vectors, f->pixels / PAIR_TERMS, NULL) * machine->fma_rate / machine->pair_rate;
  double sums = (double)(f->images * divide_up(f->high, b->block) * b->tile * b->vectors) * FILTER_SUM_CYCLES;
  double copied = f->pixels * (double)(b->group + f->width) * PAIR_BYTES;
  return groups * (tiles * (tile + sums) + conv_copy_cycles(machine, copied, 0, 0));
}
/* Rows of a task, whole tiles: not all of them, so that there are tasks enough, and that their sums leave room in L2. */
static int64_t pairs_rows(const struct filter *f, int64_t tile) {
  int64_t rows = group_rows(f, f->others, tile), room = f->n->machine->bytes[LEVEL_L2] / 4 / (f->width * (int64_t)dtype_size(f->c->dtype));
  rows = rows ? rows : f->extent; /* one task */
  while (rows > tile && (rows > room || f->extent % rows != 0))
    rows -= tile;
  return rows;
}
static void propose_pairs(const struct filter *f, struct candidates *out) {
  for (int64_t vectors = 1; vectors <= 4; vectors++) {
    struct blocks b = {.tile = tile_rows(f, vectors), .vectors = vectors, .columns = vectors * f->lanes};
    if (f->width % b.columns || f->extent % b.tile || b.tile * vectors < SUMS_MIN)
      continue;
    b.group = pairs_rows(f, b.tile);
    double bytes = FILTER_L2_SHARE * (double)f->n->machine->bytes[LEVEL_L2];
    b.block = block_rows(f, b.group, f->width, bytes);
    if (b.block && b.tile * vectors + vectors < f->n->machine->registers)
      propose(out, pairs_text(f, &b), pairs_cycles(f, &b));
  }
}

/* As plain loops. */
static double loops_cycles(const struct filter *f) {
  const struct filter_work work = {
    .taps = (double)f->others, .rows = (double)f->extent, .columns = (double)f->width, .terms = f->pixels, .lanes = (double)f->lanes};
  double cycles = filter_plain_cycles(f->n->machine, &work, all_bytes(f));
  return has_groups(f->c) ? cycles * GROUPS_COST : cycles;
}
void propose_filters(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct filter f = {.n = n, .c = c};
  /* sums wait in a result that no other nest has */
  if (n->k->body->next || !is_filter(&f))
    return;
  find_extents(&f);
  const int par = c->par_count;
  const struct axis_name names[] = {{f.rows, "k"}, {par - 1, "m"}, {par, "n"}, {f.high_axis, "h"}, {f.high_axis + 1, "w"}};
  f.words = axis_words_of(n, c, NULL, names, 5);
  if (f.is_paired) {
    propose_pairs(&f, out);
    return;
  }
  out->items.items[0].cycles = loops_cycles(&f);
  propose_all_blocks(&f, out);
  if (c->is_ragged || n->machine->fma_rate < 2) /* measured with two multiply-adds a cycle */
    return;
  propose_transposed(&f, out);
  propose_windows(&f, out);
}
