/* choose_conv.c: convolutions: a tile of a row's columns by vectors of channels keeps its sums in registers while all taps and channels
 * pass.
 *
 * Where the image has no zeros around it, the terms of columns outside stand under a test (ir/ops/nn/conv_inside.c). The tiles at both ends
 * of a row are code of their own then, and the columns of taps are written out: so every test is decided while compiling. A padded image,
 * one tap at every second pixel, a phase of the gradient of an input need no test; the rest of a row alone is code of its own.
 * The filter is read where it lies, its channels along the vectors; where it takes much of L2, vectors of channels are outermost, and its
 * lines are asked for ahead. One beyond L2, and one whose rows find few sets of the caches, may be copied by each task, the vectors that it
 * needs of all taps; one that lies along the sum, as in the gradient of an input, always is, and squares are transposed in registers then.
 * Where the machine multiplies pairs of bfloat16, the filter is copied, too, the terms of a pair side by side.
 * Of a depthwise one the image's channels lie along the vectors too: columns of an image that several taps meet are loaded once, and
 * channels are innermost, as they lie. (Without a test plain loops are as good there.) */
#include <math.h>

#include "compiler/schedule/axis_words.h"

struct conv {
  const struct nest *n;
  const struct contraction *c;
  bool is_by_channel; /* depthwise */
  int columns;        /* the axis of a row's pixels, of which a tile has some; */
  int taps;           /* that of the taps which a test is about; -1: there is none */
  int64_t wide, width, lanes;
  bool is_open;         /* how wide a row is, only the step knows */
  double others, terms; /* turns of the other par axes; of all sums, at most */
  bool is_along;        /* the filter lies along the sum */
  bool is_paired;       /* terms are multiplied two by two: `terms` counts pairs then */
  struct axis_words words;
};
/* A tile, and whether the filter is copied: each strip of vectors by `parts` tasks, which have `part` turns of the axis `parted` each;
 * -1: of none. */
struct form {
  int64_t rows, vectors;
  bool is_staged;
  int parted;
  int64_t part;
  double parts;
};

#define SUMS_MAX 16
#define ROWS_MAX 16
#define VECTORS_MAX 5
#define REST_COST 1.02
#define PIECES_MAX 6       /* of a row's tiles: that a cut can make */
#define FILTER_SHARE 4     /* of L2: from one over this on the filter does not stay in it beside the image */
#define FETCH_AHEAD 32     /* terms, of such a filter */
#define CROWDED_TERMS 64   /* so many rows */
#define CROWDED_BYTES 1024 /* rows of a filter that are multiples of it apart fall into few sets of the caches */
#define STACK_BYTES 2097152.0
#define PART_PIXELS 256 /* of a task that copies the filter: fewer do not pay for a copy of their own */

/* ---- which nests ---- */

/* Where a place of the image decides which taps there are, all of the filter's are copied as they lie, else those of the loops. */
static bool copies_all(const struct conv *v) { return v->c->test || v->c->is_ragged; }
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
/* Without a test: the innermost pixels; -1: of one kind of pixels and one of terms it is a product. */
static int free_columns(const struct contraction *c) {
  int pixels = 0, found = -1;
  for (int i = 0; i < c->par_count; i++)
    if (c->axes[i].role == ROLE_M) {
      pixels++;
      found = i;
    }
  return (pixels > 1 || c->axis_count > c->par_count + 1) && c->axes[c->axis_count - 1].stride[0] == 1 ? found : -1;
}
static bool find_sizes(struct conv *v) {
  const struct contraction *c = v->c;
  v->others = v->terms = 1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    double turns = axis_turns(a);
    if (i >= c->par_count && a->most < 0)
      return false;
    if (i >= c->par_count)
      v->terms *= turns;
    else if (i != v->columns && i != c->lanes)
      v->others *= turns;
  }
  v->terms /= v->is_paired ? PAIR_TERMS : 1;
  v->is_open = c->axes[v->columns].extent < 0 && !c->test;
  v->wide = v->is_open ? ROWS_USUAL : c->axes[v->columns].extent;
  v->width = c->axes[c->lanes].extent;
  v->lanes = lanes_for(v->n, c->dtype, v->width);
  bool are_sums = v->is_along && v->width < v->lanes; /* few outputs of a filter along the sum: plain loops have vectors of terms */
  return v->wide > 0 && v->width > 0 && (c->test || !are_sums) && (v->taps < 0 || c->axes[v->taps].extent > 0);
}
/* Factors as they are loaded, or pairs of bfloat16: a filter of which the loops' taps are copied may be computed. */
static bool has_factors(struct conv *v) {
  const struct contraction *c = v->c;
  if (c->lanes < 0 || c->lanes != c->par_count - 1 || (c->dtype != DTYPE_FLOAT && c->dtype != DTYPE_DOUBLE))
    return false;
  v->is_paired = !c->test && c->load[1] != NO_EXPR && may_be_paired(v->n, c) && !is_computed_narrow(c, 0) &&
                 !(copies_all(v) && is_computed_narrow(c, 1));
  return v->is_paired || (c->factor[0] == c->load[0] && c->factor[1] == c->load[1]);
}
static bool is_conv(struct conv *v) {
  const struct contraction *c = v->c;
  if (!has_factors(v))
    return false;
  v->is_by_channel = c->axes[c->lanes].role == ROLE_BATCH && c->axes[c->lanes].stride[0] == 1 && c->axes[c->lanes].stride[1] == 1;
  if (c->axes[c->lanes].role != ROLE_N && !(c->test && v->is_by_channel))
    return false;
  v->is_along = c->axes[c->lanes].stride[1] != 1;
  if (v->is_along && (c->axes[c->axis_count - 1].stride[1] != 1 || c->axes[c->axis_count - 1].role != ROLE_K))
    return false;
  v->columns = c->test ? tested_axis(v, 0, c->par_count) : free_columns(c);
  if (v->columns < 0)
    return false;
  v->taps = c->test ? tested_axis(v, c->par_count, c->axis_count) : -1;
  return (v->taps >= 0 || !c->test) && find_sizes(v);
}

/* ---- steps ---- */

/* Each tile that a tap may leave, and one that is smaller, is a piece; those between are one. NULL: too many pieces. */
static const char *cut_text(const struct conv *v, int64_t rows) {
  struct arena *a = v->n->arena;
  int64_t tiles = divide_up(v->wide, rows), reach = v->c->test ? v->c->axes[v->taps].extent - 1 : 0;
  int64_t left = divide_up(reach, rows), pieces = 1;
  int64_t right = v->wide > reach ? (v->wide - reach) / rows : 0;
  const char *w = v->words.of[v->columns], *points = "", *made = arena_printf(a, " %sp0", w);
  if (v->is_open)
    return "";
  for (int64_t i = 1; i < tiles; i++)
    if (i <= left || i >= right) {
      points = arena_printf(a, "%s %lld", points, (long long)i);
      made = arena_printf(a, "%s %sp%lld", made, w, (long long)pieces++);
    }
  if (pieces > PIECES_MAX)
    return NULL;
  return pieces == 1 ? "" : arena_printf(a, "; cut %so at%s ->%s", w, points, made);
}

/* Into tiles; of an open row, whose loops must stand in their order before that, also what full tiles leave. */
static const char *split_text(const struct conv *v, int64_t rows) {
  const char *w = v->words.of[v->columns], *text = arena_printf(v->n->arena, "; split %s %lld -> %so %si", w, (long long)rows, w, w);
  const char *tail = "";
  for (int64_t size = 8; v->is_open && size; size /= 2)
    if (size < rows)
      tail = arena_printf(v->n->arena, "%s %lld", *tail ? tail : " tail cut", (long long)size);
  return arena_printf(v->n->arena, "%s%s", text, tail);
}

/* Whether a filter along the sum is copied by squares. */
static bool has_squares(const struct conv *v) {
  int64_t terms = v->c->axes[v->c->axis_count - 1].extent;
  return v->is_along && v->width % v->lanes == 0 && terms % (v->lanes * (v->is_paired ? PAIR_TERMS : 1)) == 0;
}
static double filter_bytes(const struct conv *v) { return v->terms * (double)(v->width * (int64_t)dtype_size(v->c->dtype)); }
static bool is_far(const struct conv *v) { return filter_bytes(v) > (double)v->n->machine->bytes[LEVEL_L2] / FILTER_SHARE; }
static const char *filter_text(const struct conv *v) { return contraction_buffer(v->c, 1)->name; }
static const char *fetch_text(const struct conv *v) {
  return arena_printf(v->n->arena, "; fetch %s at %s ahead %d", filter_text(v), v->words.of[v->c->axis_count - 1], FETCH_AHEAD);
}
/* The par axes that a tile does not have; of one that tasks have parts of, what is inside of a part. Where the filter is copied groups are
 * outside of all that. */
static const char *around_text(const struct conv *v, const struct form *f) {
  const char *text = "";
  for (int i = 0; i < v->c->par_count; i++)
    if (i != v->columns && i != v->c->lanes && !(f->is_staged && is_group(v->c, i)))
      text = arena_printf(v->n->arena, "%s %s%s", text, v->words.of[i], i == f->parted ? "i" : "");
  return text;
}
/* The loops whose turns are tasks: where the filter is copied, its vectors, groups, and the part of an axis; *last of them. */
static const char *copy_tasks_text(const struct conv *v, const struct form *f, const char **last) {
  struct arena *a = v->n->arena;
  *last = arena_printf(a, "%so", v->words.of[v->c->lanes]);
  const char *text = arena_printf(a, " %s", *last);
  for (int i = 0; i < v->c->par_count; i++)
    if (is_group(v->c, i)) {
      *last = v->words.of[i];
      text = arena_printf(a, "%s %s", text, *last);
    }
  if (f->parted < 0)
    return text;
  *last = arena_printf(a, "%so", v->words.of[f->parted]);
  return arena_printf(a, "%s %s", text, *last);
}
static const char *tasks_text(const struct conv *v, const struct form *f, const char *around) {
  const char *last;
  if (f->is_staged)
    return copy_tasks_text(v, f, &last);
  return is_far(v) || !*around ? arena_printf(v->n->arena, " %so%s", v->words.of[v->c->lanes], around) : around;
}
static int tap_count(const struct conv *v) {
  return copies_all(v) ? expr_get(v->n->k, v->c->load[1])->count - 2 : v->c->axis_count - 1 - v->c->par_count;
}
/* All taps, then terms by channels; of a filter along the sum, squares. */
static const char *stage_text(const struct conv *v, const struct form *f) {
  struct arena *a = v->n->arena;
  const char *k = v->words.of[v->c->axis_count - 1], *m = v->words.of[v->c->lanes], *taps = "", *loops = "";
  for (int i = 0; i < tap_count(v); i++) {
    taps = copies_all(v) ? arena_printf(a, "%s .%d", taps, i) : arena_printf(a, "%s %s", taps, v->words.of[v->c->par_count + i]);
    loops = arena_printf(a, "%s %sp%d", loops, m, i);
  }
  const char *at;
  copy_tasks_text(v, f, &at);
  const char *text = arena_printf(a, "; stage %s at %s by%s %s %si ->%s %sp %sp", filter_text(v), at, taps, k, m, loops, k, m);
  if (v->is_paired)
    text = arena_printf(a, "; split %s %d -> %su %sv; stage %s%s at %s by%s %su %si %sv ->%s %sp %sp %sz", k, PAIR_TERMS, k, k,
                        filter_text(v), narrow_text(v->c, 1), at, taps, k, m, k, loops, k, m, k);
  if (!has_squares(v))
    return text;
  text = arena_printf(a, "%s; split %sp %d -> %sq %sr; split %sp %d -> %sq %sr", text, k, (int)v->lanes, k, k, m, (int)v->lanes, m, m);
  return arena_printf(a, "%s; order%s %sq %sq %sr %sr", text, loops, m, k, m, k);
}
static const char *copy_lanes_text(const struct conv *v) {
  const char *k = v->words.of[v->c->axis_count - 1], *m = v->words.of[v->c->lanes];
  const char *pairs = v->is_paired ? arena_printf(v->n->arena, "; run %sz unroll", k) : "";
  return has_squares(v) ? arena_printf(v->n->arena, "; run %sr unroll; run %sr lanes%s", m, k, pairs)
                        : arena_printf(v->n->arena, "; run %sp lanes%s", m, pairs);
}
static int64_t row_bytes(const struct conv *v) { return v->width * (int64_t)dtype_size(v->c->dtype); }
static bool is_crowded(const struct conv *v) { return v->terms >= CROWDED_TERMS && row_bytes(v) % CROWDED_BYTES == 0; }
/* Of a crowded filter's lines those that are asked for push each other out: so small images as open ones may be feel it. */
static bool asks_ahead(const struct conv *v) { return is_far(v) && !(v->is_open && is_crowded(v)); }
static const char *steps_text(const struct conv *v, const struct form *f) {
  struct arena *a = v->n->arena;
  const char *w = v->words.of[v->columns], *m = v->words.of[v->c->lanes], *cut = cut_text(v, f->rows), *around = around_text(v, f);
  const char *sums = axis_words_list(&v->words, v->c->par_count, v->c->axis_count), *tasks = tasks_text(v, f, around), *order = tasks;
  if (!cut)
    return NULL;
  const char *split = split_text(v, f->rows), *columns = v->is_open ? w : arena_printf(a, "%so", w);
  const char *text = arena_printf(a, "%s%s; split %s %lld -> %so %si", axis_words_begin(&v->words), v->is_open ? "" : split, m,
                                  (long long)(f->vectors * v->lanes), m, m);
  if (f->parted >= 0) {
    const char *p = v->words.of[f->parted];
    text = arena_printf(a, "%s; split %s %lld -> %so %si", text, p, (long long)f->part, p, p);
  }
  if (f->is_staged)
    order = arena_printf(a, "%s%s", tasks, around);
  else if (v->is_by_channel)
    order = around;
  else if (!is_far(v) && *around)
    order = arena_printf(a, "%s %so", around, m);
  const char *inner = v->is_by_channel ? arena_printf(a, " %so", m) : "", *k = v->words.of[v->c->axis_count - 1];
  const char *pair = v->is_paired ? arena_printf(a, "; pair %sv", k) : "";
  if (v->is_paired)
    sums = arena_printf(a, "%s %su", axis_words_list(&v->words, v->c->par_count, v->c->axis_count - 1), k);
  text = arena_printf(a, "%s; order%s %s%s%s %si%s%s%s; sink %si %si under%s in register%s", text, order, columns, inner,
                      v->is_open ? "" : arena_printf(a, " %si", w), m, f->is_staged ? stage_text(v, f) : "", cut, v->is_open ? split : "",
                      w, m, sums, pair);
  const char *written = v->c->test ? arena_printf(a, " %s", v->words.of[v->taps]) : "";
  return arena_printf(a, "%s%s; run%s tasks; run %si%s unroll; run %si lanes%s", text, asks_ahead(v) && !f->is_staged ? fetch_text(v) : "",
                      tasks, w, written, m, f->is_staged ? copy_lanes_text(v) : "");
}

/* ---- how large the tiles are ---- */

/* Of all strips, once. */
static double copy_cycles(const struct conv *v) {
  double apart = v->is_along ? 0 : (double)row_bytes(v);
  return conv_copy_cycles(v->n->machine, filter_bytes(v), apart, v->is_along ? v->terms * (double)v->width : 0);
}
/* Of a filter beyond L2 a strip may stay there while all tiles meet it. Its rows find as many sets as the power of two by which they lie
 * apart leaves. */
static bool strip_stays(const struct conv *v, int64_t vectors) {
  double lines = (double)divide_up(vectors * v->n->machine->vector_bytes, LINE_BYTES), apart = (double)bytes_apart((double)row_bytes(v));
  return v->terms * lines <= (double)v->n->machine->bytes[LEVEL_L2] / (apart > LINE_BYTES ? apart : LINE_BYTES) / 2;
}
/* Those of one in L2 may fall out of the first cache. */
static enum filter_place place_of(const struct conv *v, int64_t vectors) {
  if (filter_bytes(v) <= (double)v->n->machine->bytes[LEVEL_L2])
    return is_crowded(v) ? FILTER_FAR : FILTER_NEAR;
  return is_crowded(v) ? FILTER_CROWDED : strip_stays(v, vectors) ? FILTER_NEAR : FILTER_FAR;
}
static struct conv_tile conv_tile_of(const struct conv *v, int64_t rows, const struct form *f) {
  return (struct conv_tile){.rows = rows,
                            .vectors = f->vectors,
                            .terms = v->terms,
                            .apart = (double)row_bytes(v),
                            .pixels_apart = fabs((double)v->c->axes[v->columns].stride[0]) * (double)dtype_size(v->c->dtype),
                            .place = f->is_staged ? FILTER_COPIED : place_of(v, f->vectors)};
}
static double tile_cycles(const struct conv *v, int64_t rows, const struct form *f) {
  const struct machine narrow = machine_narrow(v->n->machine, (uint32_t)(v->lanes * (int64_t)dtype_size(v->c->dtype)));
  const struct conv_tile tile = conv_tile_of(v, rows, f);
  if (!v->is_by_channel)
    return conv_tile_cycles(&narrow, &tile);
  const struct contraction_axis *taps = &v->c->axes[v->taps]; /* there are taps: it is under a test */
  double apart = taps->stride[0] ? fabs((double)v->c->axes[v->columns].stride[0] / (double)taps->stride[0]) : 1;
  return depthwise_tile_cycles(&narrow, rows, f->vectors, v->terms, (double)taps->extent, apart, tile.pixels_apart);
}
static double cycles_of(const struct conv *v, const struct form *f) {
  const struct conv_tile tile = conv_tile_of(v, f->rows, f);
  double row = (double)(v->wide / f->rows) * tile_cycles(v, f->rows, f);
  if (v->wide % f->rows) /* code of its own, which is nothing to gain by itself */
    row = (row + tile_cycles(v, v->wide % f->rows, f)) * REST_COST;
  double strip = v->others * row + (v->is_by_channel ? 0 : conv_first_cycles(v->n->machine, &tile));
  return (double)divide_up(v->width, f->vectors * v->lanes) * strip + (f->is_staged ? f->parts * copy_cycles(v) : 0);
}
/* The best number of rows for so many vectors. */
static void propose(const struct conv *v, struct form f, struct candidates *out) {
  struct candidate best = {0};
  for (f.rows = 1; f.rows <= ROWS_MAX && f.rows <= v->wide && f.rows * f.vectors <= SUMS_MAX; f.rows++) {
    double cycles = cycles_of(v, &f);
    bool fits = f.rows * f.vectors + f.vectors < v->n->machine->registers;
    const char *steps = fits && (!best.steps || cycles <= best.cycles) ? steps_text(v, &f) : NULL;
    if (steps)
      best = (struct candidate){.steps = steps, .cycles = cycles};
  }
  if (best.steps)
    vec_push(&out->items, best);
}
/* Whether a thread's stack has room for a strip's copy; of several vectors it shall stay in L2. */
static bool fits_stack(const struct conv *v, int64_t vectors) {
  double bytes = v->terms * (double)(vectors * v->n->machine->vector_bytes);
  return bytes <= (vectors > 1 ? (double)(v->n->machine->bytes[LEVEL_L2] / 4 * 3) : STACK_BYTES);
}
/* With a copy of the filter. Of few strips each has tasks for parts of an axis. */
static void propose_staged(const struct conv *v, int64_t vectors, struct candidates *out) {
  struct form f = {.vectors = vectors, .is_staged = true, .parted = -1, .parts = 1};
  double pixels = v->others * (double)v->wide;
  int64_t strips = divide_up(v->width, vectors * v->lanes), wanted = divide_up(tasks_wanted(v->n->machine), strips);
  if (!fits_stack(v, vectors))
    return;
  wanted = wanted < (int64_t)(pixels / PART_PIXELS) ? wanted : (int64_t)(pixels / PART_PIXELS);
  for (int i = 0; i < v->c->par_count && wanted > 1; i++) {
    int64_t extent = v->c->axes[i].extent, parts = extent < wanted ? extent : wanted;
    if (i == v->columns || i == v->c->lanes || is_group(v->c, i) || parts < 2 || (double)parts <= f.parts)
      continue;
    f.parted = i;
    f.part = divide_up(extent, parts);
    f.parts = (double)divide_up(extent, f.part);
  }
  propose(v, f, out);
}
/* As plain loops. */
static double loops_cycles(const struct conv *v) {
  const struct product_work work = {.batch = v->others,
                                    .m = (double)v->wide,
                                    .k = v->terms * (v->is_paired ? PAIR_TERMS : 1),
                                    .width = (double)v->width,
                                    .lanes = (double)v->lanes,
                                    .bytes = (double)dtype_size(v->c->dtype),
                                    .stride = (double)(v->width * (int64_t)dtype_size(v->c->dtype)),
                                    .is_along = v->is_along};
  double vectors = work.batch * work.m * (double)divide_up(v->width, v->lanes), apart = v->is_along ? (double)v->lanes : 0;
  return v->c->test || has_groups(v->c) ? conv_plain_cycles(v->n->machine, vectors, v->terms, apart)
                                        : conv_product_cycles(v->n->machine, &work);
}
void propose_convs(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct conv v = {.n = n, .c = c};
  if (!is_conv(&v))
    return;
  const struct axis_name names[] = {{v.columns, "w"}, {c->lanes, "m"}, {v.taps, "t"}};
  v.words = axis_words_of(n, c, NULL, names, 3);
  out->items.items[0].cycles = loops_cycles(&v);
  bool may_copy = filter_bytes(&v) > (double)n->machine->bytes[LEVEL_L2] || is_crowded(&v);
  for (int64_t count = 1; count <= VECTORS_MAX && (count - 1) * v.lanes < v.width; count++) {
    if (!v.is_along && !v.is_paired)
      propose(&v, (struct form){.vectors = count, .parted = -1}, out);
    if (v.is_along || v.is_paired || (may_copy && !v.is_by_channel))
      propose_staged(&v, count, out);
  }
}
