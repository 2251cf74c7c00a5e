/* choose_crossed.c: products of few rows whose second factor lies along the sum, c[m,n] = a[m,k] * b[n,k]: the gradient of a layer's input
 * in a small batch, a few queries against all keys.
 *
 * Where rows fill no vector, vectors run along the columns, and b is transposed on its way: a square of columns and terms at a time, from
 * memory through registers to the first cache, whose lines all rows then meet while their sums stay in registers. b is read once, in the
 * order in which it lies, and nothing is packed. */
#include "compiler/schedule/axis_words.h"

#define ROWS_MIN 3    /* fewer are sums of vectors along k, as the target does by itself */
#define VECTORS_MAX 2 /* of columns: more lines at a time than memory gives fast */

struct crossed {
  const struct nest *n;
  const struct contraction *c;
  int rows, columns; /* axes m and n */
  int64_t lanes, vectors;
  struct product_work work;
};

static bool find_sizes(struct crossed *x) {
  const struct contraction *c = x->c;
  if (!find_product(x->n, c, &x->rows, &x->columns, &x->work) || c->axes[c->par_count].stride[1] != 1)
    return false;
  int64_t m = (int64_t)x->work.m, width = (int64_t)x->work.width;
  x->lanes = (int64_t)x->work.lanes;
  x->work.is_along = true;
  x->work.rows_apart = (double)c->axes[x->rows].stride[0] * x->work.bytes;
  x->vectors = VECTORS_MAX; /* whole squares; the sums take three quarters of the registers at most */
  while (x->vectors && (width % (x->vectors * x->lanes) || m * x->vectors * 4 > x->n->machine->registers * 3))
    x->vectors--;
  return m >= ROWS_MIN && m < x->lanes && x->vectors && x->work.k >= x->work.lanes;
}

/* Each block of terms of a strip is copied, by squares, and met by all rows. */
static const char *steps_text(const struct crossed *x) {
  struct arena *a = x->n->arena;
  const struct axis_name names[] = {{x->rows, "m"}, {x->columns, "n"}, {x->c->par_count, "k"}};
  const struct axis_words words = axis_words_of(x->n, x->c, NULL, names, 3);
  const char *m = words.of[x->rows], *n = words.of[x->columns], *k = words.of[x->c->par_count];
  const char *batch = axis_words_others(&words, 0, x->c->par_count);
  const char *factor = contraction_buffer(x->c, 1)->name;
  long long lanes = (long long)x->lanes, strip = lanes * (long long)x->vectors;
  const char *text = arena_printf(a, "%s; split %s %lld -> %so %si; order%s %so %s %si; split %s %lld -> %sb %sk", axis_words_begin(&words),
                                  n, strip, n, n, batch, n, m, n, k, lanes, k, k);
  text = arena_printf(a, "%s; sink %s %si under %sb %sk in register; stage %s at %sb by %sk %si -> %sp %sp", text, m, n, k, k, factor, k, k,
                      n, k, n);
  text = arena_printf(a, "%s; split %sp %lld -> %sq %sr; split %sp %lld -> %sq %sr; order %sq %sq %sr %sr", text, k, lanes, k, k, n, lanes,
                      n, n, n, k, n, k);
  return arena_printf(a, "%s; run%s %so tasks; run %s %sr unroll; run %si %sr lanes", text, batch, n, m, n, n, k);
}

void propose_crossed(const struct nest *nest, const struct contraction *c, struct candidates *out) {
  struct crossed x = {.n = nest, .c = c};
  bool is_product = (c->dtype == DTYPE_FLOAT || c->dtype == DTYPE_DOUBLE) && c->factor[0] == c->load[0] && c->factor[1] == c->load[1];
  if (!is_product || !find_sizes(&x))
    return;
  double cycles = product_crossed_cycles(nest->machine, &x.work, x.vectors);
  vec_push(&out->items, ((struct candidate){.steps = steps_text(&x), .cycles = cycles}));
}
