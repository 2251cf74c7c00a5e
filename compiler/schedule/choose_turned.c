/* choose_turned.c: products whose second factor is no vector: it lies along the sum, c[m,n] = a[m,k] * b[n,k], as gradients of a layer's
 * input do, or its columns are fewer than a vector has lanes, as those of a last layer of few classes, or not many more.
 *
 * What lies along the sum cannot be a vector, unless it is transposed; and of the two factors the first is the small one where rows are
 * few. So the product is turned: vectors run along the rows m, a tile is some columns n by these vectors, and each element of the
 * large factor is read once, where it lies. Tasks are columns; each copies the rows' part of the small factor, transposed.
 * With few columns the first factor is the large one: it is copied once, or read where it lies, if that is along the rows. */
#include "compiler/schedule/axis_words.h"

struct turned {
  const struct nest *n;
  const struct contraction *c;
  int rows, columns; /* axes m and n */
  struct product_work work;
  int64_t m, width, k;  /* its */
  int64_t lanes, strip; /* rows that a tile takes */
  bool has_few;         /* columns fewer than lanes */
  bool is_across;       /* the first factor lies along the rows */
};

#define TILE_MAX 12 /* columns: each is a load for each term */
#define ROWS_MIN 4
#define FEW_VECTORS 2
#define TASK_COLUMNS 512 /* of a task: fewer do not pay for its copy */
#define COPY_SHARE 4     /* of L2: at most one over this for the copy */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Sums of a tile, and vectors that rows make at most. */
static int64_t sums_max(const struct machine *machine) { return machine->registers / 4 * 3; }
static int64_t vectors_max(const struct machine *machine) { return machine->registers / 8; }

/* ---- which nests ---- */

static bool find_axes(struct turned *t) {
  const struct contraction *c = t->c;
  if (!find_product(t->n, c, &t->rows, &t->columns, &t->work))
    return false;
  const struct contraction_axis *sum = &c->axes[c->par_count];
  t->is_across = t->work.is_transposed = sum->stride[0] != 1;
  t->has_few = sum->stride[1] != 1;
  t->work.is_along = !t->has_few;
  t->work.stride = (double)sum->stride[1] * t->work.bytes;
  return t->is_across ? t->has_few && c->axes[t->rows].stride[0] == 1 : sum->stride[0] == 1;
}
/* Rows whose copy leaves room in L2; what is read where it lies needs none. */
static bool has_room(const struct turned *t, int64_t rows) {
  int64_t bytes = rows * t->k * (int64_t)dtype_size(t->c->dtype);
  return t->is_across || bytes <= t->n->machine->bytes[LEVEL_L2] / COPY_SHARE;
}
/* Less than a vector of columns, or so few that much of their last vector would be lost (a copy of rows costs more than that). */
static bool has_few_columns(const struct turned *t) {
  return t->width < t->lanes || (t->is_across && t->width < FEW_VECTORS * t->lanes && t->width % t->lanes);
}
static bool find_sizes(struct turned *t) {
  const struct machine *machine = t->n->machine;
  t->m = (int64_t)t->work.m;
  t->width = (int64_t)t->work.width;
  t->k = (int64_t)t->work.k;
  t->lanes = (int64_t)t->work.lanes;
  t->strip = t->m < t->lanes && !t->has_few ? t->m : 0;
  for (int64_t vectors = vectors_max(machine); vectors && !t->strip; vectors--)
    t->strip = t->m % (vectors * t->lanes) == 0 && (!t->has_few || has_room(t, vectors * t->lanes)) ? vectors * t->lanes : 0;
  return t->m >= ROWS_MIN && t->strip && has_room(t, t->strip) && (!t->has_few || has_few_columns(t));
}
static bool is_turned(struct turned *t) {
  const struct contraction *c = t->c;
  if ((c->dtype != DTYPE_FLOAT && c->dtype != DTYPE_DOUBLE) || c->factor[0] != c->load[0] || c->factor[1] != c->load[1])
    return false;
  return find_axes(t) && find_sizes(t);
}

/* ---- steps ---- */

static const char *tails_text(const struct turned *t, int64_t tile, int64_t group) {
  const char *tails = "";
  for (int i = 8; i && (t->width % tile || group % tile); i /= 2)
    tails = i < tile ? arena_printf(t->n->arena, "%s %d", *tails ? tails : " tail cut", i) : tails;
  return tails;
}
/* The copy goes by squares of a vector's lanes, read along the sum; whole ones are transposed in registers. */
static const char *copy_text(const struct turned *t, const struct axis_words *words) {
  struct arena *a = t->n->arena;
  if (t->is_across)
    return "";
  const char *m = words->of[t->rows], *n = words->of[t->columns], *k = words->of[t->c->axis_count - 1];
  const char *factor = contraction_buffer(t->c, 0)->name;
  const char *text = arena_printf(a, "stage %s at %so by %s %si -> %sp %sp; ", factor, n, k, m, k, m);
  return arena_printf(a, "%ssplit %sp %lld -> %sq %sr; split %sp %lld -> %sq %sr; order %sq %sq %sr %sr; ", text, m, (long long)t->lanes, m,
                      m, k, (long long)t->lanes, k, k, k, m, m, k);
}

void propose_turned(const struct nest *nest, const struct contraction *c, struct candidates *out) {
  struct turned t = {.n = nest, .c = c};
  if (!is_turned(&t))
    return;
  struct arena *a = nest->arena;
  const struct axis_name names[] = {{t.rows, "m"}, {t.columns, "n"}, {c->par_count, "k"}};
  const struct axis_words words = axis_words_of(nest, c, NULL, names, 3);
  const char *m = words.of[t.rows], *n = words.of[t.columns], *k = words.of[c->par_count],
             *batch = axis_words_others(&words, 0, c->par_count);
  int64_t tile = sums_max(nest->machine) / divide_up(t.strip, t.lanes), tasks = t.width > TASK_COLUMNS ? t.width / TASK_COLUMNS : 1;
  tile = least(least(tile, TILE_MAX), t.width);
  int64_t group = t.has_few ? t.width : divide_up(divide_up(t.width, tasks), tile) * tile;
  const char *text =
    arena_printf(a, "%s; split %s %lld -> %so %si; split %s %lld -> %so %sc; order%s %so %so %sc %si; %s", axis_words_begin(&words), m,
                 (long long)t.strip, m, m, n, (long long)group, n, n, batch, m, n, n, m, copy_text(&t, &words));
  text = arena_printf(a, "%ssplit %sc %lld -> %sb %si%s; sink %si %si under %s in register", text, n, (long long)tile, n, n,
                      tails_text(&t, tile, group), n, m, k);
  const char *squares = t.strip % t.lanes || t.is_across ? "" : arena_printf(a, "%sr ", m);
  text = arena_printf(a, "%s; run%s %so %so tasks; run %si %sunroll; run %si %slanes", text, batch, m, n, n, squares, m,
                      t.is_across ? "" : arena_printf(a, "%sr ", k));
  double cycles = product_turned_cycles(nest->machine, &t.work, (double)t.strip, (double)divide_up(t.width, group), t.has_few);
  /* It must gain that twice (choose.c): what squares cost is known less well. */
  vec_push(&out->items, ((struct candidate){.steps = text, .cycles = cycles * GAIN_MIN}));
}
