/* choose_panels.c: products and convolutions whose second factor lies in panels (compiler/edit/panels.h): for a few vectors of columns all
 * terms one behind the other, so that a tile of rows reads it as one stream, whatever its size. Nothing is copied.
 *
 * A task is a panel and a block of rows. Panels are outermost where they come from beyond the second cache, so that each is read once by
 * all rows; else the rows' factor stays in the first cache, and panels go by. Where lines from there are waited for, few rows ask for the
 * next panel's while they meet this one. */
#include <math.h>

#include "compiler/schedule/axis_words.h"

#define PANEL_TERMS 64  /* of an axis that is none of rows, where its extent is open */
#define HEIGHT_MAX 12   /* rows of a tile: more gain nothing, and leave registers to nothing else */
#define OPEN_WORTH 6    /* known rows, from which on they fill a tile well enough */
#define FEWER_ROWS 1.03 /* of what a tile of fewer rows is expected to take: it must gain that */
#define BLOCK_MIN 96    /* rows of a block, */
#define BLOCK_MAX 480   /* whose part of the first factor stays in the second cache */
#define BLOCK_FEW 48    /* where there are few panels */
#define PANEL_TASKS_MIN 16
#define PANELS_MAX 4  /* of a task, where tiles ask for the next one */
#define VECTORS_MAX 3 /* of a tile: panels of more are cut */

struct paneled {
  const struct nest *n;
  const struct contraction *c;
  int rows;                /* the axis m; -1: there is none; that of columns is c->lanes */
  int64_t width;           /* of a panel */
  int64_t vectors, height; /* of a tile */
  int64_t block;           /* rows of a block; 0: all are one */
  bool asks;               /* tiles of few rows share the hints for the next panel, by parts of the sum */
  struct product_work work;
  struct axis_words words;
};

/* ---- which nests ---- */

/* Operand i of the second factor's load is `op` of the columns' loop and a constant. */
static bool is_by_constant(const struct paneled *p, int i, enum scalar_op op, int64_t *by) {
  const struct kernel *k = p->n->k;
  expr_id e = expr_operand(k, p->c->load[1], i);
  if (expr_get(k, e)->op != op || !expr_is_const(k, expr_operand(k, e, 1), by))
    return false;
  const struct expr *of = expr_get(k, expr_operand(k, e, 0));
  return of->op == SCALAR_LOCAL && of->imm == p->c->axes[p->c->lanes].loop->local;
}
static bool is_in_panels(struct paneled *p) {
  const struct contraction *c = p->c;
  if (c->lanes < 0 || c->axes[c->lanes].role != ROLE_N || c->load[1] == NO_EXPR || c->is_ragged || c->test)
    return false;
  int last = expr_get(p->n->k, c->load[1])->count - 1;
  int64_t by = 0;
  if (last < 1 || !is_by_constant(p, last, SCALAR_FLOORMOD, &p->width))
    return false;
  for (int i = 0; i < last && by != p->width; i++)
    by = is_by_constant(p, i, SCALAR_FLOORDIV, &by) ? by : 0;
  return by == p->width && p->width > 0;
}

/* How much an axis is worth as a tile's rows. One whose extent is open may be the images of a convolution, of which there may be one: it is
 * taken where what is known fills no tile. */
static int64_t rows_worth(const struct contraction_axis *a) { return a->extent < 0 ? OPEN_WORTH : a->extent; }

static void find_sizes(struct paneled *p) {
  const struct contraction *c = p->c;
  struct product_work *w = &p->work;
  w->batch = w->m = w->k = w->width = 1;
  p->rows = -1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    int64_t open = a->role == ROLE_M ? ROWS_USUAL : PANEL_TERMS, most = a->most >= 0 ? a->most : open;
    double extent = (double)(a->extent >= 0 ? a->extent : most);
    bool is_rows = i < c->par_count && a->role == ROLE_M;
    *(i >= c->par_count ? &w->k : i == c->lanes ? &w->width : is_rows ? &w->m : &w->batch) *= extent;
    if (is_rows && (p->rows < 0 || rows_worth(a) >= rows_worth(&c->axes[p->rows])))
      p->rows = i;
  }
  w->bytes = (double)dtype_size(c->dtype);
  w->lanes = (double)p->n->machine->vector_bytes / w->bytes;
  w->is_open = p->rows >= 0 && c->axes[p->rows].extent < 0;
  w->rows_apart = p->rows < 0 ? 0 : fabs((double)c->axes[p->rows].stride[0]) * w->bytes;
  w->is_transposed = p->rows >= 0 && c->axes[c->axis_count - 1].stride[0] != 1;
}

/* ---- tiles ---- */

static int64_t panel_count(const struct paneled *p) { return divide_up((int64_t)p->work.width, p->width); }
/* Of a task, where tiles ask for the next one. */
static int64_t task_panels(const struct paneled *p) {
  int64_t each = panel_count(p) / PANEL_TASKS_MIN;
  return each < 1 ? 1 : each < PANELS_MAX ? each : PANELS_MAX;
}
/* Rows whose part of the first factor takes half of the second cache; fewer where tasks would be too few. */
static void find_block(struct paneled *p) {
  int64_t extent = p->rows < 0 ? 1 : p->c->axes[p->rows].extent, most = extent < 0 ? INT64_MAX : extent;
  int64_t block = p->n->machine->bytes[LEVEL_L2] / 2 / (int64_t)(p->work.k * p->work.bytes + 1);
  block = block < BLOCK_MIN ? BLOCK_MIN : block > BLOCK_MAX ? BLOCK_MAX : block;
  if (panel_count(p) * divide_up((int64_t)p->work.m, block) < PANEL_TASKS_MIN)
    block = BLOCK_FEW;
  block = block / p->height * p->height;
  p->block = block && block < most / 2 ? block : 0;
}

/* ---- steps ---- */

/* What is left of a number of rows that is known and not divided is one tile. */
static const char *tails_text(const struct paneled *p) {
  int64_t rows = p->c->axes[p->rows].extent, rest = rows < 0 ? 0 : rows % p->height;
  const char *text = "";
  if (rows >= 0 && !p->block)
    return rest ? arena_printf(p->n->arena, " tail cut %lld", (long long)rest) : "";
  for (int64_t i = 8; i && (rows < 0 || rest); i /= 2)
    if (i < p->height)
      text = arena_printf(p->n->arena, "%s %lld", *text ? text : " tail cut", (long long)i);
  return text;
}
/* " ba bb": parallel axes that the tile has no word for: of rows, or those that the second factor moves with too. */
static const char *outer_text(const struct paneled *p, bool of_rows) {
  const char *text = "";
  for (int i = 0; i < p->c->par_count; i++)
    if (!p->words.is_named[i] && (p->c->axes[i].role == ROLE_M) == of_rows)
      text = arena_printf(p->n->arena, "%s %s", text, p->words.of[i]);
  return text;
}
/* The columns' loop becomes one over panels, for a narrow machine one over parts of a panel, and lanes; a task that asks has a few panels,
 * so that its thread meets what it asked for. */
static const char *columns_text(const struct paneled *p, const char *n) {
  struct arena *a = p->n->arena;
  long long width = p->width, strip = p->vectors * (int64_t)p->work.lanes;
  if (p->asks)
    return arena_printf(a, "split %s %lld -> %ss %si; split %ss %lld -> %so %sj", n, width, n, n, n, (long long)task_panels(p), n, n);
  return strip < width ? arena_printf(a, "split %s %lld -> %so %sp; split %sp %lld -> %sj %si", n, width, n, n, n, strip, n, n)
                       : arena_printf(a, "split %s %lld -> %so %si", n, width, n, n);
}
/* The loops of tasks, and what they have inside of them in front of their rows. Where panels are far they are outermost. */
static const char *tasks_text(const struct paneled *p, const char *panels, const char *block) {
  const char *others = p->asks ? "" : outer_text(p, true);
  bool is_near = !product_is_far(p->n->machine, &p->work);
  return arena_printf(p->n->arena, "%s%s%s%s", outer_text(p, false), block, is_near ? others : panels, is_near ? panels : others);
}
static const char *inside_text(const struct paneled *p, const char *n) {
  bool is_cut = p->vectors * (int64_t)p->work.lanes < p->width;
  return p->asks ? arena_printf(p->n->arena, " %sj%s", n, outer_text(p, true)) : is_cut ? arena_printf(p->n->arena, " %sj", n) : "";
}
/* The sum's loops; the last one is cut where hints stand between its parts. */
static const char *sum_text(const struct paneled *p, bool with_inner) {
  int last = p->c->axis_count - 1;
  const char *all = axis_words_list(&p->words, p->c->par_count, last), *k = p->words.of[last];
  return arena_printf(p->n->arena, !p->asks ? "%s %s" : with_inner ? "%s %so %si" : "%s %so", all, k, k);
}
/* The lines of the panel behind this one, by all that meets this one. */
static const char *hints_text(const struct paneled *p, const char *n, const char *m) {
  const char *buffer = contraction_buffer(p->c, 1)->name;
  return arena_printf(p->n->arena, "; fetch %s at %sj ahead 1 over%s %so%s", buffer, n, outer_text(p, true), m, sum_text(p, false));
}
static const char *steps_text(struct paneled *p) {
  struct arena *a = p->n->arena;
  const struct axis_name names[] = {{p->rows, "m"}, {p->c->lanes, "n"}};
  p->words = axis_words_of(p->n, p->c, NULL, names, 2);
  const char *n = p->words.of[p->c->lanes], *m = p->rows < 0 ? "" : p->words.of[p->rows], *k = p->words.of[p->c->axis_count - 1];
  const char *row = p->rows < 0 ? "" : arena_printf(a, p->block ? " %ss" : " %s", m), *rows = p->rows < 0 ? "" : arena_printf(a, " %si", m);
  const char *tasks = tasks_text(p, arena_printf(a, " %so", n), p->block ? arena_printf(a, " %sb", m) : "");
  const char *text = arena_printf(a, "%s; %s", axis_words_begin(&p->words), columns_text(p, n));
  if (p->block)
    text = arena_printf(a, "%s; split %s %lld -> %sb %ss", text, m, (long long)p->block, m, m);
  text = arena_printf(a, "%s; order%s%s%s %si", text, tasks, inside_text(p, n), row, n);
  if (p->rows >= 0)
    text = arena_printf(a, "%s; split%s %lld -> %so %si%s", text, row, (long long)p->height, m, m, tails_text(p));
  if (p->asks)
    text = arena_printf(a, "%s; split %s %d -> %so %si", text, k, ASKING_TERMS, k, k);
  text = arena_printf(a, "%s; sink%s %si under%s in register", text, rows, n, sum_text(p, true));
  text = arena_printf(a, "%s%s; run%s tasks", text, p->asks ? hints_text(p, n, m) : "", tasks);
  return arena_printf(a, p->rows < 0 ? "%s; run %si lanes" : "%s; run%s unroll; run %si lanes", text, p->rows < 0 ? n : rows, n);
}

/* Whether two tiles of rows or a few more meet panels that are waited for, each as a whole; one gets it as fast as it comes. An open number
 * is taken for a usual one: many rows lose little by hints. */
static bool may_ask(const struct paneled *p) {
  int64_t terms = p->c->axes[p->c->axis_count - 1].extent;
  return p->work.m >= 2 * (double)p->height && product_panels_wait(p->n->machine, &p->work) && terms >= 2 * ASKING_TERMS &&
         terms % ASKING_TERMS == 0 && p->vectors * (int64_t)p->work.lanes == p->width;
}
/* A tile of as many rows as registers hold sums of; and of fewer, where the first cache loses those, or where what is left of a known
 * number costs less. */
static void propose_tiles(struct paneled *p, struct candidates *out) {
  int64_t m = p->rows < 0 ? 1 : p->c->axes[p->rows].extent, most = (p->n->machine->registers - p->vectors - 1) / p->vectors;
  most = most < HEIGHT_MAX ? most : HEIGHT_MAX;
  int64_t tallest = m < 0 || most < m ? most : m;
  for (p->height = tallest; p->height * 2 > most || p->height == tallest; p->height--) {
    find_block(p);
    for (int asks = 0; asks <= may_ask(p); asks++) {
      p->asks = asks;
      double cycles = product_panel_cycles(p->n->machine, &p->work, p->height, p->vectors, asks);
      vec_push(&out->items, ((struct candidate){.steps = steps_text(p), .cycles = p->height == tallest ? cycles : cycles * FEWER_ROWS}));
    }
  }
}

bool propose_panels(const struct nest *n, const struct contraction *c, struct candidates *out) {
  struct paneled p = {.n = n, .c = c};
  if (!is_in_panels(&p))
    return false;
  find_sizes(&p);
  out->items.items[0].cycles = p.work.batch * p.work.m * p.work.k * p.work.width; /* element by element */
  if (p.width % (int64_t)p.work.lanes || p.work.m < 1)
    return true;
  for (p.vectors = VECTORS_MAX; p.width % (p.vectors * (int64_t)p.work.lanes);)
    p.vectors--;
  propose_tiles(&p, out);
  return true;
}
