/* choose_conv.c: convolutions that read their image where it lies: a tile of a row's columns by vectors of channels keeps its sums in
 * registers while all taps and channels pass.
 *
 * The terms of columns outside of the image stand under a test (ir/ops/nn/conv_inside.c). The tiles at both ends of a row are code of
 * their own, and the columns of taps are written out: so every test is decided while compiling.
 * The filter is read where it lies, its channels along the vectors; where it takes much of L2, vectors of channels are outermost, and its
 * lines are asked for ahead. */
#include "compiler/schedule/axis_words.h"

struct conv {
  const struct nest *n;
  const struct contraction *c;
  int columns, taps; /* axes that the test is about */
  int64_t wide, width, lanes;
  double others, terms; /* turns of the other par axes; of all sums, at most */
  struct axis_words words;
};

#define SUMS_MAX 16
#define ROWS_MAX 16
#define VECTORS_MAX 5
#define REST_COST 1.02
#define PIECES_MAX 6   /* of a row's tiles: that a cut can make */
#define FILTER_SHARE 4 /* of L2: from one over this on the filter does not stay in it beside the image */
#define FETCH_AHEAD 32 /* terms, of such a filter */

/* ---- which nests ---- */

/* The only axis of these that the test is about; -1: none, or several. */
static int tested_axis(const struct conv *v, int from, int to) {
  int found = -1;
  for (int i = from; i < to; i++)
    if (uses_local(v->n->uses, v->c->test->value, v->c->axes[i].loop->local)) {
      if (found >= 0)
        return -1;
      found = i;
    }
  return found;
}
static bool find_sizes(struct conv *v) {
  const struct contraction *c = v->c;
  v->others = v->terms = 1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    double turns = a->most < 0 ? 1 : (double)a->most;
    if (i >= c->par_count)
      v->terms *= turns;
    else if (i != v->columns && i != c->lanes)
      v->others *= turns;
  }
  v->wide = c->axes[v->columns].extent;
  v->width = c->axes[c->lanes].extent;
  v->lanes = v->n->machine->vector_bytes / (int64_t)dtype_size(c->dtype);
  return v->wide > 0 && v->width > 0 && c->axes[v->taps].extent > 0;
}
static bool is_conv(struct conv *v) {
  const struct contraction *c = v->c;
  if (!c->test || c->lanes != c->par_count - 1 || c->axes[c->lanes].role != ROLE_N || c->axes[c->lanes].stride[1] != 1)
    return false;
  v->columns = tested_axis(v, 0, c->par_count);
  v->taps = tested_axis(v, c->par_count, c->axis_count);
  return v->columns >= 0 && v->taps >= 0 && (c->dtype == DTYPE_FLOAT || c->dtype == DTYPE_DOUBLE) && c->factor[0] == c->load[0] &&
         c->factor[1] == c->load[1] && find_sizes(v);
}

/* ---- steps ---- */

/* Each tile that a tap may leave, and one that is smaller, is a piece; those between are one. NULL: too many pieces. */
static const char *cut_text(const struct conv *v, int64_t rows) {
  struct arena *a = v->n->arena;
  int64_t tiles = divide_up(v->wide, rows), reach = v->c->axes[v->taps].extent - 1, left = divide_up(reach, rows), pieces = 1;
  int64_t right = v->wide > reach ? (v->wide - reach) / rows : 0;
  const char *w = v->words.of[v->columns], *points = "", *made = arena_printf(a, " %sp0", w);
  for (int64_t i = 1; i < tiles; i++)
    if (i <= left || i >= right) {
      points = arena_printf(a, "%s %lld", points, (long long)i);
      made = arena_printf(a, "%s %sp%lld", made, w, (long long)pieces++);
    }
  if (pieces > PIECES_MAX)
    return NULL;
  return pieces == 1 ? "" : arena_printf(a, "; cut %so at%s ->%s", w, points, made);
}

static double filter_bytes(const struct conv *v) { return v->terms * (double)(v->width * (int64_t)dtype_size(v->c->dtype)); }
static bool is_far(const struct conv *v) { return filter_bytes(v) > (double)v->n->machine->bytes[LEVEL_L2] / FILTER_SHARE; }
static const char *fetch_text(const struct conv *v) {
  const char *filter = v->n->k->buffers.items[expr_get(v->n->k, v->c->load[1])->imm].name;
  return arena_printf(v->n->arena, "; fetch %s at %s ahead %d", filter, v->words.of[v->c->axis_count - 1], FETCH_AHEAD);
}
static const char *steps_text(const struct conv *v, int64_t rows, int64_t vectors) {
  struct arena *a = v->n->arena;
  int par = v->c->par_count;
  const char *w = v->words.of[v->columns], *m = v->words.of[v->c->lanes], *around = axis_words_others(&v->words, 0, par);
  const char *sums = axis_words_list(&v->words, par, v->c->axis_count), *cut = cut_text(v, rows);
  const char *tasks = is_far(v) ? arena_printf(a, " %so%s", m, around) : arena_printf(a, "%s %so", around, m);
  if (!cut)
    return NULL;
  const char *text = arena_printf(a, "%s;%s split %s %lld -> %so %si; split %s %lld -> %so %si; order%s %so %si %si%s",
                                  axis_words_begin(&v->words), v->n->machine->has_fma ? " fma;" : "", w, (long long)rows, w, w, m,
                                  (long long)(vectors * v->lanes), m, m, tasks, w, w, m, cut);
  text = arena_printf(a, "%s; sink %si %si under%s in register%s", text, w, m, sums, is_far(v) ? fetch_text(v) : "");
  return arena_printf(a, "%s; run%s tasks; run %si %s unroll; run %si lanes", text, is_far(v) || !*around ? tasks : around, w,
                      v->words.of[v->taps], m);
}

/* ---- how large the tiles are ---- */

static double cycles_of(const struct conv *v, int64_t rows, int64_t vectors) {
  const struct machine *machine = v->n->machine;
  bool far = filter_bytes(v) > (double)machine->bytes[LEVEL_L2];
  double row = (double)(v->wide / rows) * conv_tile_cycles(machine, rows, vectors, v->terms, far);
  if (v->wide % rows) /* code of its own, which is nothing to gain by itself */
    row = (row + conv_tile_cycles(machine, v->wide % rows, vectors, v->terms, far)) * REST_COST;
  return v->others * (double)divide_up(v->width, vectors * v->lanes) * row;
}
static void propose(const struct conv *v, int64_t vectors, struct candidates *out) {
  struct candidate best = {0};
  for (int64_t rows = 1; rows <= ROWS_MAX && rows <= v->wide && rows * vectors <= SUMS_MAX; rows++) {
    double cycles = cycles_of(v, rows, vectors);
    const char *steps =
      rows * vectors + vectors < v->n->machine->registers && (!best.steps || cycles <= best.cycles) ? steps_text(v, rows, vectors) : NULL;
    if (steps)
      best = (struct candidate){.steps = steps, .cycles = cycles};
  }
  if (best.steps)
    vec_push(&out->items, best);
}
void propose_convs(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct conv v = {.n = n, .c = c};
  if (!is_conv(&v))
    return;
  const struct axis_name names[] = {{v.columns, "w"}, {c->lanes, "m"}, {v.taps, "t"}};
  v.words = axis_words_of(n, c, NULL, names, 3);
  out->items.items[0].cycles = conv_own_cycles(n->machine, v.others * (double)(v.wide * divide_up(v.width, v.lanes)), v.terms);
  for (int64_t vectors = 1; vectors <= VECTORS_MAX && (vectors - 1) * v.lanes < v.width; vectors++)
    propose(&v, vectors, out);
}
