/* choose_product.c: products whose factors are read where they lie: a tile of rows and vectors of columns keeps its sums in registers, and
 * nothing is packed. That wins where packing is not paid back: few rows, or few terms.
 * Strips of columns are outermost: the strip's part of the second factor stays in the cache while all rows meet it. Where that factor lies
 * far, more rows than a few are worth a copy of the part, a block of terms at a time; sums wait on the stack meanwhile. */
#include <string.h>

#include "compiler/schedule/choose.h"

#define FETCH_AHEAD 16 /* terms */
#define ROWS_USUAL 64  /* where their number is open: what tiles are chosen for */
#define ROWS_MAX 4096

/* What is done with each axis. */
struct product {
  const struct nest *n;
  const struct contraction *c;
  int rows, columns;         /* axes of the tile */
  double batch, m, k, width; /* turns of the other par axes together; extents; columns */
  bool open;                 /* the rows' extent is size `size` of the kernel */
  uint32_t size;
};

/* Words for loops: m and n are the tile's, b and k the others, by letters. */
static const char *axis_text(const struct product *p, int axis) {
  const char *word = axis == p->rows        ? "m"
                   : axis == p->columns     ? "n"
                   : axis < p->c->par_count ? arena_printf(p->n->arena, "b%c", 'a' + axis)
                                            : arena_printf(p->n->arena, "k%c", 'a' + axis - p->c->par_count);
  return p->n->number ? arena_printf(p->n->arena, "%s_%d", word, p->n->number) : word;
}
/* Words of the axes from .. to-1, but for the two of the tile. */
static const char *others_text(const struct product *p, int from, int to) {
  const char *text = "";
  for (int i = from; i < to; i++)
    if (i != p->rows && i != p->columns)
      text = arena_printf(p->n->arena, "%s %s", text, axis_text(p, i));
  return text;
}

/* ---- which nests ---- */

/* The axis whose iterations make the rows of tiles: the longest that the first factor alone has. */
static int find_rows(const struct contraction *c) {
  int rows = -1;
  for (int i = 0; i < c->par_count; i++)
    if (c->axes[i].role == ROLE_M &&
        (rows < 0 || c->axes[i].extent < 0 || (c->axes[rows].extent >= 0 && c->axes[i].extent >= c->axes[rows].extent)))
      rows = i;
  return rows;
}
/* One axis of rows, one of columns; all sizes known, but for the rows'. */
static bool find_sizes(struct product *p) {
  const struct contraction *c = p->c;
  p->batch = p->k = 1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    bool other = i < c->par_count && i != p->rows && i != p->columns && a->role != ROLE_BATCH;
    if (a->role == ROLE_WINDOW || other || (a->extent < 0 && i != p->rows))
      return false;
    if (i >= c->par_count)
      p->k *= (double)a->extent;
    else if (i != p->rows && i != p->columns)
      p->batch *= (double)a->extent;
  }
  const struct contraction_axis *rows = &c->axes[p->rows];
  const struct expr *extent = expr_get(c->k, rows->loop->value);
  p->open = rows->extent < 0;
  p->m = p->open ? ROWS_USUAL : (double)rows->extent;
  p->width = (double)c->axes[p->columns].extent;
  p->size = (uint32_t)extent->imm;
  return !p->open || extent->op == SCALAR_SIZE;
}
static bool is_product(struct product *p) {
  const struct contraction *c = p->c;
  p->rows = find_rows(c);
  p->columns = c->lanes;
  if (p->rows < 0 || p->columns < 0 || c->axes[p->columns].role != ROLE_N || (c->dtype != DTYPE_FLOAT && c->dtype != DTYPE_DOUBLE))
    return false;
  return c->factor[1] == c->load[1] && c->axes[p->columns].stride[1] == 1 && find_sizes(p);
}

/* ---- cost ---- */

struct tile {
  int rows, vectors;
  double step; /* measured cycles of a term, where the machine starts two multiply-adds a cycle and the second factor lies in L2 */
};
static const struct tile tiles[] = {{2, 8, 14.8}, {4, 4, 10.4}, {6, 4, 13.8}, {8, 3, 13.8}, {12, 2, 15.2},
                                    {8, 2, 11},   {2, 4, 7.4},  {4, 3, 7.8},  {6, 2, 7.8}}; /* the last three for 16 registers */

/* Cycles, measured in the same way; `far`: the second factor takes more than half of L2. */
#define TILE_CYCLES 40   /* a tile begins and ends */
#define STORE_CYCLES 2   /* a vector of sums */
#define FETCH_CYCLES 1.5 /* a hint */
#define LINE_FETCHED 3   /* a far line that was asked for ahead */
#define LINE_MISSED 4    /* and not */
#define FAR_STEP \
  1.25 /* times a step, from the second row of tiles on: columns of a far factor fall out of the caches; half a rate hides it */
#define PAGE_CYCLES 20      /* a term in a page that the TLB has lost */
#define PAGES 1536          /* that it holds */
#define PACKED_SHARE 0.90   /* of the peak that the target reaches with packed panels */
#define PLAIN_SHARE 0.70    /* without, from 8 rows on */
#define PLAIN_FAR_CYCLES 6  /* a far line, for each 8 rows */
#define PACK_CYCLES 0.6     /* an element */
#define PACK_FAR_CYCLES 2.5 /* a far one */
#define PACKED_ROWS 33      /* from which on it packs */
#define PACK_ROWS_CYCLES 1  /* an element of the first factor, where both are packed: */
#define BOTH_MIN 6000       /* for more terms, or a transposed factor, */
#define BOTH_TERMS 256      /* in blocks of so many, */
#define BOTH_STRIPS 8       /* for so many panels at a time */
#define BLOCK_SHARE 0.88    /* of the peak that blocks of terms reach, */
#define BLOCK_CYCLES 20     /* beside the copy of a far line */
#define GAIN_MIN 1.06       /* expected, below which the target's own way stays */

static double divide_up(double a, double by) { return (double)(((int64_t)a + (int64_t)by - 1) / (int64_t)by); }
static double lanes_of(const struct product *p) { return (double)p->n->machine->vector_bytes / (double)dtype_size(p->c->dtype); }
static double factor_bytes(const struct product *p) { return p->k * p->width * (double)dtype_size(p->c->dtype); }
static bool is_far(const struct product *p) { return factor_bytes(p) > (double)p->n->machine->bytes[LEVEL_L2] / 2; }

static double step_cycles(const struct product *p, const struct tile *t) {
  const struct machine *m = p->n->machine;
  return m->fma_rate > 1 ? t->step : t->rows * t->vectors / (m->fma_rate * 0.95);
}
/* Blocks of t->rows rows and what is left, as `tail cut 8 4 2 1` does it: a smaller tile takes no less than half of the whole one's time. */
static double row_blocks(double m, const struct tile *t) {
  double whole = (double)((int64_t)m / t->rows), rest = m - whole * t->rows;
  for (int size = 8; size; size /= 2)
    for (; size < t->rows && rest >= size; rest -= size)
      whole += size * 2 > t->rows ? 1 : 0.5;
  return whole;
}
static double in_place_cycles(const struct product *p, const struct tile *t, double m, bool fetch) {
  double strips = divide_up(p->width, t->vectors * lanes_of(p)), step = step_cycles(p, t), line = 0;
  if (is_far(p)) {
    step = step * (row_blocks(m, t) > 1 && p->n->machine->fma_rate > 1 ? FAR_STEP : 1) + (fetch ? t->vectors * FETCH_CYCLES : 0);
    line = fetch ? LINE_FETCHED : LINE_MISSED;
  }
  double stride = (double)p->c->axes[p->c->axis_count - 1].stride[1] * (double)dtype_size(p->c->dtype);
  step += p->k * stride / 4096 > PAGES ? PAGE_CYCLES : 0;
  double tile = p->k * step + TILE_CYCLES + t->rows * t->vectors * STORE_CYCLES;
  return p->batch * strips * (row_blocks(m, t) * tile + p->k * t->vectors * line);
}
/* Both factors in panels, as where the first is transposed or the sum is long: tiles of 8 x 2 vectors, blocks of terms, and the rows' factor
 * anew for each chunk of panels. */
static double own_both_cycles(const struct product *p, double m) {
  static const struct tile tile = {8, 2, 11};
  double strips = divide_up(p->width, tile.vectors * lanes_of(p));
  double tile_cycles = p->k * step_cycles(p, &tile) + divide_up(p->k, BOTH_TERMS) * (TILE_CYCLES + tile.rows * tile.vectors * STORE_CYCLES);
  double packed =
    p->k * p->width * (is_far(p) ? PACK_FAR_CYCLES : PACK_CYCLES) + m * p->k * divide_up(strips, BOTH_STRIPS) * PACK_ROWS_CYCLES;
  return p->batch * (strips * divide_up(m, tile.rows) * tile_cycles + packed);
}
static bool own_packs_both(const struct product *p) { return p->k > BOTH_MIN || p->c->axes[p->c->axis_count - 1].stride[0] != 1; }

/* In panels, tiles of 8 x 4 vectors; in place below, of 8 rows. */
static double own_cycles(const struct product *p, double m) {
  double vectors = divide_up(p->width, lanes_of(p)), fmas = m * p->k * vectors / p->n->machine->fma_rate;
  double tiles_cycles = divide_up(m, 8) * vectors / 4 * (TILE_CYCLES + 32 * STORE_CYCLES);
  if (m >= PACKED_ROWS && own_packs_both(p))
    return own_both_cycles(p, m);
  if (m >= PACKED_ROWS)
    return p->batch * (fmas / PACKED_SHARE + tiles_cycles + p->k * p->width * (is_far(p) ? PACK_FAR_CYCLES : PACK_CYCLES));
  double lines = is_far(p) ? p->k * vectors * (m < 8 ? LINE_MISSED : PLAIN_FAR_CYCLES * divide_up(m, 8)) : 0;
  return p->batch * (fmas / (PLAIN_SHARE * (m < 8 ? m / 8 : 1)) + tiles_cycles + lines);
}

/* ---- steps ---- */

static const char *begin_text(const struct product *p) {
  const char *from = "", *to = "";
  for (int i = 0; i < p->c->axis_count; i++) {
    from = arena_printf(p->n->arena, "%s i%d", from, p->n->first_loop + i);
    to = arena_printf(p->n->arena, "%s %s", to, axis_text(p, i));
  }
  return arena_printf(p->n->arena, "name%s ->%s; fma; ", from, to);
}
static const char *steps_text(const struct product *p, const struct tile *t, bool fetch) {
  struct arena *a = p->n->arena;
  const char *m = axis_text(p, p->rows), *n = axis_text(p, p->columns), *batch = others_text(p, 0, p->c->par_count);
  const char *sum = others_text(p, p->c->par_count, p->c->axis_count), *tails = "";
  for (int i = 8; i && (p->open || (int64_t)p->m % t->rows); i /= 2)
    tails = i < t->rows ? arena_printf(a, "%s %d", *tails ? tails : " tail cut", i) : tails;
  const char *text =
    arena_printf(a, "%ssplit %s %d -> %so %si; order%s %so %s %si; split %s %d -> %so %si%s; sink %si %si under%s in register",
                 begin_text(p), n, (int)lanes_of(p) * t->vectors, n, n, batch, n, m, n, m, t->rows, m, m, tails, m, n, sum);
  if (fetch)
    text = arena_printf(a, "%s; fetch %s at %s ahead %d", text, p->n->k->buffers.items[expr_get(p->n->k, p->c->load[1])->imm].name,
                        axis_text(p, p->c->axis_count - 1), FETCH_AHEAD);
  return arena_printf(a, "%s; run%s %so tasks; run %si unroll; run %si lanes", text, batch, n, m, n);
}
/* Rows from which on packing wins, where their number is open; 0: always. */
static int64_t rows_limit(const struct product *p, const struct tile *t, bool fetch) {
  int64_t limit = 0;
  for (int64_t m = 2; m <= ROWS_MAX; m *= 2)
    if (in_place_cycles(p, t, (double)m, fetch) * GAIN_MIN < own_cycles(p, (double)m))
      limit = m + 1;
  return limit;
}
static void propose(const struct product *p, const struct tile *t, bool fetch, struct candidates *out) {
  struct candidate c = {.steps = steps_text(p, t, fetch), .size = p->size, .below = p->open ? rows_limit(p, t, fetch) : 0};
  if (p->open && !c.below)
    return;
  c.cycles = in_place_cycles(p, t, p->m, fetch) * GAIN_MIN;
  vec_push(&out->items, c);
}

/* ---- blocks of terms ---- */

#define BLOCK_ROWS 8 /* of a tile: sums that wait have no tails */
#define BLOCK_VECTORS 3
#define BLOCK_TERMS 512
#define BLOCK_ROWS_MIN 16  /* fewer do not pay for the copy */
#define BLOCK_ROWS_MAX 512 /* sums of a strip on the stack: 96 KB */

static bool suits_blocks(const struct product *p) {
  bool one_sum = p->c->axis_count - p->c->par_count == 1 && p->c->axes[p->c->axis_count - 1].stride[0] == 1,
       fits = p->n->machine->registers >= BLOCK_ROWS * BLOCK_VECTORS + BLOCK_VECTORS + 1;
  return is_far(p) && fits && one_sum && !p->open && p->batch == 1 && p->k >= 2 * BLOCK_TERMS && p->m >= BLOCK_ROWS_MIN &&
         p->m <= BLOCK_ROWS_MAX && (int64_t)p->m % BLOCK_ROWS == 0 && p->width >= BLOCK_VECTORS * lanes_of(p);
}
static void propose_blocks(const struct product *p, struct candidates *out) {
  struct arena *a = p->n->arena;
  const char *m = axis_text(p, p->rows), *n = axis_text(p, p->columns), *k = axis_text(p, p->c->axis_count - 1);
  const char *factor = p->n->k->buffers.items[expr_get(p->n->k, p->c->load[1])->imm].name;
  const char *text =
    arena_printf(a, "%ssplit %s %d -> %so %si; order %so %s %si; split %s %d -> %so %si; split %s %d -> %sb %sk", begin_text(p), n,
                 (int)lanes_of(p) * BLOCK_VECTORS, n, n, n, m, n, m, BLOCK_ROWS, m, m, k, BLOCK_TERMS, k, k);
  text = arena_printf(a, "%s; sink %so %si %si under %sb in stack; stage %s at %sb by %sk %si -> %sp %sq", text, m, m, n, k, factor, k, k,
                      n, k, n);
  text =
    arena_printf(a, "%s; sink %si %si under %sk in register; run %so tasks; run %si unroll; run %si %sq lanes", text, m, n, k, n, m, n, n);
  double vectors = divide_up(p->width, lanes_of(p)), fmas = p->m * p->k * vectors / p->n->machine->fma_rate;
  vec_push(&out->items, ((struct candidate){.steps = text, .cycles = (fmas / BLOCK_SHARE + p->k * vectors * BLOCK_CYCLES) * GAIN_MIN}));
}

/* What lies far comes in few lines at a time; tiles of very few rows are for very few rows; none is wider than the result. */
static bool suits(const struct product *p, const struct tile *t) {
  bool narrow = (!is_far(p) || p->m < 8 || t->vectors == 2) && t->vectors * lanes_of(p) <= p->width;
  int live = t->rows * t->vectors + t->vectors + 1;
  return t->rows <= p->m && narrow && live <= (int)p->n->machine->registers && (t->rows > 2 || p->m < 4);
}
void propose_products(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct product p = {.n = n, .c = c};
  if (!n->machine->has_fma || !is_product(&p)) /* nothing was measured without */
    return;
  out->items.items[0].cycles = own_cycles(&p, p.m);
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
    if (suits(&p, &tiles[i]))
      propose(&p, &tiles[i], is_far(&p) && p.m >= 8, out);
  if (suits_blocks(&p))
    propose_blocks(&p, out);
}
