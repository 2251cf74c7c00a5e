/* cost.c: see cost.h. */
#include "ir/schedule/cost.h"

#include <math.h>

#include "ir/schedule/rates.h"

/* ---- operations ---- */

enum effort op_effort(enum scalar_op op) {
  switch (op) {
  case SCALAR_NONE:
  case SCALAR_CONST:
  case SCALAR_SIZE:
  case SCALAR_LOCAL: return EFFORT_NONE;
  case SCALAR_LOAD:
  case SCALAR_CAST:
  case SCALAR_BITCAST: return EFFORT_MOVE;
  case SCALAR_DIV: return EFFORT_DIVIDE;
  case SCALAR_REM:
  case SCALAR_FLOORDIV:
  case SCALAR_FLOORMOD:
  case SCALAR_SQRT: return EFFORT_LONG;
  default: return op >= SCALAR_EXP ? EFFORT_FUNCTION : EFFORT_SHORT;
  }
}

/* A multiply-add is the product and the sum that it stands for: whether they round once changes no decision. */
static double operations_in(enum scalar_op op) { return op == SCALAR_FMA ? 2 : 1; }

double op_operations(enum scalar_op op) {
  static const double of[] = {[EFFORT_MOVE] = 1, [EFFORT_SHORT] = 1, [EFFORT_DIVIDE] = 10, [EFFORT_LONG] = 10, [EFFORT_FUNCTION] = 50};
  return of[op_effort(op)] * operations_in(op);
}

int op_repeat_cost(enum scalar_op op, enum dtype dtype) {
  static const int of[] = {[EFFORT_SHORT] = 1, [EFFORT_DIVIDE] = 3, [EFFORT_LONG] = 20, [EFFORT_FUNCTION] = 20};
  return op == SCALAR_DIV && !dtype_is_float(dtype) ? 8 : of[op_effort(op)];
}

bool op_is_written_out(enum scalar_op op, enum dtype dtype) {
  switch (op) {
  case SCALAR_EXP:
  case SCALAR_LOG:
  case SCALAR_TANH: return true;
  case SCALAR_EXPM1:
  case SCALAR_LOG1P:
  case SCALAR_ERF:
  case SCALAR_SIN:
  case SCALAR_COS:
  case SCALAR_TAN:
  case SCALAR_ASIN:
  case SCALAR_ACOS:
  case SCALAR_ATAN:
  case SCALAR_ATAN2:
  case SCALAR_SINH:
  case SCALAR_COSH:
  case SCALAR_ASINH:
  case SCALAR_ACOSH:
  case SCALAR_ATANH: return dtype != DTYPE_DOUBLE;
  default: return false;
  }
}
double op_scalar_ns(enum scalar_op op, enum dtype dtype) {
  static const double of[] = {
    [EFFORT_MOVE] = 0.05, [EFFORT_SHORT] = 0.05, [EFFORT_DIVIDE] = 0.5, [EFFORT_LONG] = 0.5, [EFFORT_FUNCTION] = 10};
  bool is_known = op_is_written_out(op, DTYPE_FLOAT), is_written = op_is_written_out(op, dtype);
  return !is_known ? of[op_effort(op)] * operations_in(op) : dtype == DTYPE_FLOAT ? 0.5 : dtype == DTYPE_DOUBLE && is_written ? 1 : 8;
}
double op_vector_ns(enum scalar_op op, enum dtype dtype) {
  switch (op_effort(op)) {
  case EFFORT_NONE: return 0;
  case EFFORT_MOVE: return op == SCALAR_LOAD ? 0.02 : 0.15; /* most loads are shared */
  case EFFORT_SHORT: return 0.15;
  default: return 5 * op_scalar_ns(op, dtype);
  }
}

/* ---- products ---- */

/* Cycles. What depends on the class of a machine is in rates.c. */
#define LATENCY_CYCLES 4            /* until a sum can be added to again: */
#define WAITING_SHARE 0.97          /* of the rate that tiles of no more sums than begin meanwhile reach */
#define TILE_CYCLES 40              /* a tile begins and ends */
#define STORE_CYCLES 2              /* a vector of sums */
#define FULL_SHARE 0.91             /* of the peak, where sums, vectors and a row's element fill all registers */
#define LOADS_HIDDEN 2              /* loads that begin in a cycle hide behind multiply-adds of tiles */
#define OVERLAPPED_SHARE 0.1        /* of the shorter of two things that go on at the same time */
#define PLAIN_OVERLAPPED_SHARE 0.17 /* and of rows that the target reads in place (Zen 5) */
#define STREAMED_SUM 1 /* loads that a sum costs for each term, as it comes and goes for a few of them, where a far factor streams */
#define PAGE_BYTES 4096
#define CACHE_WAYS 8         /* of the first cache, lines of each of a page's sets */
#define PLAIN_FAR_SHARE 0.67 /* of L3's rate for a far line, for each 8 rows */
#define PLAIN_VECTORS 2      /* of columns, of a plain loop's tile */
#define COLUMNS_MIN 5        /* fewer are added up one by one, */
#define COLUMNS_FEW 3        /* times as long, or longer */
#define COMPUTED_SHARE 0.6   /* of the rate, where each few rows compute a factor again; */
#define COMPUTED_CYCLES 2    /* a vector of one that is computed once */
#define STEP_SHARE 0.95      /* of the peak, for a term of a tile that was not measured */

static double divide_up(double a, double by) { return (double)(((int64_t)a + (int64_t)by - 1) / (int64_t)by); }

bool product_is_far(const struct machine *machine, const struct product_work *w) {
  return w->k * w->width * w->bytes > (double)machine->bytes[LEVEL_L2] / 2;
}
int64_t product_far_vectors(const struct machine *machine) { return rates_of(machine)->lost_line > 0 ? 4 : 2; }
bool product_is_paged(const struct machine *machine, const struct product_work *w) {
  return w->k * w->stride / PAGE_BYTES > rates_of(machine)->pages;
}

#define REST_LEAST 0.5
/* A smaller tile in a whole one's time: no less than that share, and sums wait for each other where they are few. */
static double rest_share(const struct machine *machine, int rows, const struct tile *t, double least) {
  double fmas = rows * t->vectors / machine->fma_rate, whole = t->rows * t->vectors / machine->fma_rate;
  double share = (fmas > LATENCY_CYCLES ? fmas : LATENCY_CYCLES) / whole;
  return share < least ? least : share < 1 ? share : 1;
}
/* Blocks of t->rows rows and what is left, as `tail cut 8 4 2 1` does it, or in one. */
static double row_blocks(const struct machine *machine, double m, const struct tile *t, double least) {
  double whole = (double)((int64_t)m / t->rows), rest = m - whole * t->rows;
  if (t->is_even)
    return whole + (rest > 0 ? rest_share(machine, (int)rest, t, least) : 0);
  for (int size = 8; size; size /= 2)
    for (; size < t->rows && rest >= size; rest -= size)
      whole += rest_share(machine, size, t, least);
  return whole;
}
static bool is_half(const struct machine *machine) { return machine->fma_rate <= 1; }
static double step_cycles(const struct machine *machine, const struct tile *t, double share) {
  return is_half(machine) ? t->rows * t->vectors / (machine->fma_rate * share) : t->step;
}
/* Whether what has so many elements in each batch lies beyond L2 when its turn comes. */
static bool batches_leave(const struct machine *machine, const struct product_work *w, double elements) {
  double batches = rates_of(machine)->batches_leave ? w->batch : 1;
  return batches * elements * w->bytes > (double)machine->bytes[LEVEL_L2] / 2;
}
/* Of a batch's result that goes beyond L2, where multiply-adds do not hide it; runs: several strips side by side. */
static double result_cycles(const struct machine *machine, const struct product_work *w, bool runs) {
  bool far = batches_leave(machine, w, w->m * w->width);
  return far ? w->m * divide_up(w->width, w->lanes) * rates_of(machine)->result[runs] : 0;
}
/* A row's lines that lie across are met by the next tiles, too: they may fill more of L2. */
static bool rows_are_far(const struct machine *machine, const struct product_work *w) {
  return w->m * w->k * w->bytes > (double)machine->bytes[LEVEL_L2] * (w->is_transposed ? rates_of(machine)->across_kept : 0.5);
}
/* Of a first factor beyond L2 that each strip reads anew, row by row. */
static double rows_cycles(const struct machine *machine, const struct product_work *w, double strips) {
  return rows_are_far(machine, w) && !w->is_transposed ? strips * w->m * divide_up(w->k, w->lanes) * rates_of(machine)->rows_far : 0;
}
/* The same, the first time that it is read. */
static double once_far(const struct machine *machine, const struct product_work *w) {
  return rows_are_far(machine, w) ? w->m * divide_up(w->k, w->lanes) * rates_of(machine)->once_far : 0;
}
/* Lines that far apart, of which the first cache keeps as many. */
static double lines_kept(int64_t apart, double ways) { return ways * PAGE_BYTES / (double)(apart < PAGE_BYTES ? apart : PAGE_BYTES); }
/* Terms that many bytes apart fall into few sets of the first cache, and a strip no longer stays there. */
static bool is_crowded(const struct product_work *w, double stride) {
  int64_t apart = bytes_apart(stride);
  return apart >= LINE_BYTES && w->k > lines_kept(apart, CACHE_WAYS);
}
static int crowd_of(int64_t apart) { return apart >= PAGE_BYTES ? CROWD_PAGE : apart >= PAGE_BYTES / 2 ? CROWD_HALF : CROWD_LESS; }
/* Of a line of the second factor. */
static double crowded(const struct rates *rates, const struct product_work *w, bool far) {
  return is_crowded(w, w->stride) ? rates->crowded[far][crowd_of(bytes_apart(w->stride))] : 0;
}
/* Lines of so many columns. */
static double lines_of(const struct machine *machine, const struct product_work *w, double columns) {
  return divide_up(columns, w->lanes) * machine->vector_bytes / LINE_BYTES;
}
static double overlapped_by(double a, double b, double share) { return a > b ? a + b * share : b + a * share; }
static double overlapped(double a, double b) { return overlapped_by(a, b, OVERLAPPED_SHARE); }
/* A tile begins and ends, while the next one's terms begin, if its sums do not wait and leave registers. */
static double ends_cycles(const struct machine *machine, const struct tile *t, bool waits) {
  uint32_t sums = (uint32_t)(t->rows * t->vectors);
  return (TILE_CYCLES + sums * STORE_CYCLES) * (waits ? 1 : rates_of(machine)->ends[sums * 2 > machine->registers]);
}
/* Of a far first factor's line that lies across. */
static double comes_line(const struct machine *machine, const struct product_work *w, bool blocks) {
  bool comes = w->is_transposed && rows_are_far(machine, w);
  return comes ? rates_of(machine)->across_comes[blocks] : 0;
}
/* Of the rate, by how the second factor's rows begin. */
static double aligned_share(const struct machine *machine, const struct product_work *w) {
  bool is_aligned = w->stride == 0 || w->k <= 1 || (int64_t)w->stride % LINE_BYTES == 0;
  return is_aligned ? 1 : rates_of(machine)->unaligned;
}
#define ACROSS_GONE 3.3 /* times as long as a line that L2 keeps for the next tile (Zen 5) */
/* Of a first factor's line that lies across: beyond what L2 has for lines that far apart, each tile gets it anew. */
static double across_line(const struct machine *machine, const struct product_work *w) {
  int64_t apart = bytes_apart(w->m * w->bytes);
  bool is_crowding = is_crowded(w, w->m * w->bytes);
  if (!w->is_transposed || !(rows_are_far(machine, w) || is_crowding))
    return 0;
  bool is_gone = is_crowding && w->k * (double)apart > (double)machine->bytes[LEVEL_L2];
  return rates_of(machine)->across_line * (is_gone ? ACROSS_GONE : 1);
}
#define STREAM_LINE_CYCLES 40   /* a line that no prefetcher finds (Zen 5) */
#define STREAM_COPY_CYCLES 0.45 /* an element of such a line that is copied */
bool product_rows_stream(const struct machine *machine, const struct product_work *w) {
  double each = w->m * w->k * w->bytes, l2 = (double)machine->bytes[LEVEL_L2];
  return w->is_transposed && w->m * w->bytes > rates_of(machine)->stream_row && each > rates_of(machine)->stream_least * l2 &&
         w->batch * each > rates_of(machine)->stream_most * l2;
}
bool product_rows_come(const struct machine *machine, const struct product_work *w) {
  double bytes = w->m * w->bytes;
  return rates_of(machine)->pages_stream && (bytes == PAGE_BYTES || bytes == 2 * PAGE_BYTES);
}
/* Lines of a tile's rows, for each term, that no prefetcher finds. */
static double stream_lines(const struct machine *machine, const struct product_work *w, const struct tile *t) {
  bool is_slow = product_rows_stream(machine, w) && !product_rows_come(machine, w);
  return is_slow ? t->rows * w->bytes / LINE_BYTES : 0;
}
bool tile_loads_hold(const struct machine *machine) { return machine->loads < LOADS_HIDDEN; }
/* How many times as long as its multiply-adds a tile's term takes, where loads begin too slowly to hide behind them. */
static double held_by_loads(const struct machine *machine, double rows, double vectors) {
  double loads = (rows + vectors) / machine->loads, fmas = rows * vectors / machine->fma_rate;
  return tile_loads_hold(machine) && fmas > 0 && loads > fmas ? loads / fmas : 1;
}
/* Of a term's lines that L2 has lost. */
static double lost_term(const struct machine *machine, int64_t apart, double lines) {
  return rates_of(machine)->lost_term[crowd_of(apart)] + lines * rates_of(machine)->lost_line;
}
#define LOST_FROM 0.75 /* of L2 */
#define ASKED_PAGE 0.4 /* of a term in a page that the TLB has lost, where it is asked for ahead */
/* Of a strip's lines of a term that L2 has lost before the next rows meet them: terms that far apart find few of its sets. 0: it has not,
 * or that was not measured. */
static double lost_lines(const struct machine *machine, const struct product_work *w, const struct tile *t, bool fetch) {
  int64_t apart = bytes_apart(w->stride);
  double kept = apart >= LINE_BYTES ? LOST_FROM * (double)machine->bytes[LEVEL_L2] / (double)apart : w->k;
  double page = product_is_paged(machine, w) ? rates_of(machine)->page * (fetch ? ASKED_PAGE : 1) : 0;
  bool is_lost = rates_of(machine)->lost_line > 0 && w->k > kept;
  return is_lost ? lost_term(machine, apart, lines_of(machine, w, t->vectors * w->lanes)) + page : 0;
}
#define ASKED_SHARE 0.985 /* of the peak, where a far factor is asked for: what is near comes for the first time, too */
#define ASKED_LOAD 0.1    /* a load of a term, beside the hints that ask for a far factor, */
#define ROWS_FEW 11       /* rows of a tile whose addresses leave registers for those: with more */
#define ROWS_SHARE 0.12   /* of the multiply-adds' time, */
static double asked_cycles(const struct product_work *w, const struct tile *t) {
  return (t->rows + t->vectors) * ASKED_LOAD + (t->rows > ROWS_FEW && !w->is_transposed ? t->rows * t->vectors * ROWS_SHARE : 0);
}
#define LOST_SHARE 0.02 /* of those, where multiply-adds take longer */
/* A first factor's line that no prefetcher finds: in blocks of terms, for each strip; and otherwise, what multiply-adds do not hide. */
static double stream_line(const struct machine *machine, const struct product_work *w) {
  return rates_of(machine)->stream_line[is_crowded(w, w->m * w->bytes)];
}
static double stream_wait(const struct machine *machine, const struct product_work *w) {
  return rates_of(machine)->stream_wait[is_crowded(w, w->m * w->bytes)];
}
/* Of a term of so many lines of a far second factor, beside a tile's first step: they come no faster than that. */
static double first_lines(const struct rates *rates, double lines, double step, bool fetch) {
  double wait = lines * rates->far_line - step, least = lines * rates->line[fetch];
  return wait > least ? wait : least;
}
double product_tile_cycles(const struct machine *machine, const struct product_work *w, const struct tile *t, bool fetch) {
  const struct rates *rates = rates_of(machine);
  bool far = product_is_far(machine, w);
  double strips = divide_up(w->width, t->vectors * w->lanes), step = step_cycles(machine, t, far ? ASKED_SHARE : STEP_SHARE);
  double lines = lines_of(machine, w, t->vectors * w->lanes), first = 0, lost = 0, rest = REST_LEAST;
  double across = across_line(machine, w) + comes_line(machine, w, false) + stream_lines(machine, w, t) * STREAM_LINE_CYCLES;
  step = overlapped(step, lines * crowded(rates, w, far) + across);
  if (far) {
    step = step * (row_blocks(machine, w->m, t, REST_LEAST) > 1 ? rates->far_step : 1) + (fetch ? t->vectors * rates->fetch : 0);
    lost = lost_lines(machine, w, t, fetch);
    first = lost > 0 ? 0 : first_lines(rates, lines, step, fetch);
    step = overlapped_by(step + (is_half(machine) ? asked_cycles(w, t) : 0), lost, LOST_SHARE);
    rest = w->is_open || lost < step * REST_LEAST ? REST_LEAST : lost < step ? lost / step : 1; /* it waits for the same lines */
  }
  step += product_is_paged(machine, w) && lost == 0 ? rates->page : 0;
  step += w->is_transposed ? rates->across[rows_are_far(machine, w)] + stream_lines(machine, w, t) * stream_wait(machine, w) : 0;
  step /= (w->is_computed ? COMPUTED_SHARE : 1) * aligned_share(machine, w);
  double tile = w->k * step + ends_cycles(machine, t, false);
  double ends = rows_cycles(machine, w, strips) + result_cycles(machine, w, w->by_rows || strips <= 1);
  return w->batch * (strips * (row_blocks(machine, w->m, t, rest) * tile + w->k * first) + ends);
}

#define WAITING_TERMS 256
#define WAITING_TERMS_FEW 128    /* of rows that are asked for ahead, and where lines from beyond L2 were measured to count */
#define WAITING_LEAST 2          /* blocks that are worth it, */
#define WAITING_LEAST_STREAM 1.5 /* of such rows */
#define WAITING_CYCLES 8         /* a vector of sums that comes from beyond L2, and goes */
static int64_t waiting_terms(const struct machine *machine, const struct product_work *w) {
  bool few = product_rows_stream(machine, w) || rates_of(machine)->waiting_line[0] > 0;
  return few ? WAITING_TERMS_FEW : WAITING_TERMS;
}
int64_t product_waiting_terms(const struct machine *machine, const struct product_work *w) {
  double both = w->k * (w->m + w->width) * w->bytes;
  bool streams = product_rows_stream(machine, w), may_stay = both <= (double)machine->bytes[LEVEL_L2] && !streams;
  int64_t terms = waiting_terms(machine, w);
  double least = (double)terms * (streams ? WAITING_LEAST_STREAM : WAITING_LEAST);
  return w->k < least || may_stay ? 0 : terms;
}
int64_t product_waiting_rows(const struct machine *machine, const struct product_work *w, const struct tile *t, int64_t strips) {
  double terms = (double)waiting_terms(machine, w);
  return (int64_t)((double)machine->bytes[LEVEL_L2] / 2 / terms / w->bytes - (double)strips * t->vectors * w->lanes);
}
/* Of the lines of both factors that come from beyond L2: the first one's for each task's columns, the second one's for its rows. */
static double waiting_lines(const struct machine *machine, const struct product_work *w, double strips, double groups) {
  const struct rates *rates = rates_of(machine);
  double first = rates->waiting_line[0] > 0 ? rates->waiting_line[0] : comes_line(machine, w, true);
  first += product_rows_stream(machine, w) ? stream_line(machine, w) : 0;
  return w->k * (strips * divide_up(w->m, w->lanes) * first + groups * divide_up(w->width, w->lanes) * rates->waiting_line[1]);
}
/* A term in blocks of so many, with what lines take that fall into few sets of the first cache. */
static double waiting_step(const struct machine *machine, const struct product_work *w, const struct tile *t, int64_t terms) {
  const struct rates *rates = rates_of(machine);
  struct product_work block = *w;
  block.k = (double)terms;
  bool is_apart = w->stride > w->width * w->bytes; /* the first factor's lines may crowd the same sets */
  double line = is_apart ? crowded(rates, w, is_crowded(w, w->m * w->bytes)) : 0;
  double step = overlapped(step_cycles(machine, t, STEP_SHARE), lines_of(machine, w, t->vectors * w->lanes) * line);
  return step + (is_crowded(&block, w->m * w->bytes) ? rates->waiting_crowd[crowd_of(bytes_apart(w->m * w->bytes))] : 0);
}
double product_waiting_cycles(const struct machine *machine, const struct product_work *w, const struct tile *t,
                              const struct product_waiting *waiting) {
  double strips = divide_up(w->width, t->vectors * w->lanes), blocks = divide_up(w->k, (double)waiting->terms);
  bool is_far = w->m * w->width * w->bytes > (double)machine->bytes[LEVEL_L2] / 2;
  double far = is_far ? blocks * w->m * divide_up(w->width, w->lanes) * WAITING_CYCLES : 0;
  double tile = w->k * waiting_step(machine, w, t, waiting->terms) + blocks * ends_cycles(machine, t, true);
  far += waiting_lines(machine, w, divide_up(strips, (double)waiting->strips), divide_up(w->m, (double)waiting->rows));
  return w->batch * (strips * row_blocks(machine, w->m, t, REST_LEAST) * tile + far);
}

bool product_may_stream(const struct machine *machine, const struct product_work *w) {
  return product_is_far(machine, w) && (w->m <= rates_of(machine)->streamed_rows || product_is_paged(machine, w));
}
#define STREAM_ROWS_FEW 2 /* of the first factor: with more, sums that wait cost more than runs that lie apart */
const struct stream_tile *product_stream_tile(const struct machine *machine, const struct product_work *w) {
  return &rates_of(machine)->stream_tiles[w->m > STREAM_ROWS_FEW];
}
bool product_stream_asks(const struct machine *machine, const struct product_work *w) {
  double come = rates_of(machine)->streams_come;
  return come > 0 ? w->m > come : w->batch * w->k * w->width * w->bytes <= (double)machine->bytes[LEVEL_L3];
}
/* A tile's vectors and rows are loaded for each term. */
double product_stream_cycles(const struct machine *machine, const struct product_work *w, int64_t vectors) {
  double sums = w->m * (double)vectors, tiles = w->k * divide_up(w->width, w->lanes) / (double)vectors;
  double fmas = tiles * sums / machine->fma_rate / rates_of(machine)->streamed_share;
  double loads = tiles * (w->m + (double)vectors + sums * STREAMED_SUM) / machine->loads;
  double lines = w->k * w->width * w->bytes / LINE_BYTES * rates_of(machine)->streamed_line, most = fmas > loads ? fmas : loads;
  return w->batch * (most > lines ? most : lines);
}

/* Where the second factor lies, as rates have it. */
static int place_of(const struct machine *machine, const struct product_work *w) {
  return !product_is_far(machine, w)                                        ? PLACE_NEAR
       : w->k * w->width * w->bytes / PAGE_BYTES > rates_of(machine)->pages ? PLACE_PAGED
                                                                            : PLACE_FAR;
}
#define PLAIN_ROWS 8            /* whose sums stay in registers, so that they share what they load */
#define PLAIN_ACROSS_SHARE 0.40 /* of the peak, at least, where they lie across */

/* Of a second factor that lies along the columns: what is not in L2 comes again for each few rows. */
static double plain_lines(const struct machine *machine, const struct product_work *w) {
  const struct rates *rates = rates_of(machine);
  double line = LINE_BYTES / machine->bandwidth[LEVEL_L3] / PLAIN_FAR_SHARE;
  return product_is_far(machine, w)
         ? w->k * lines_of(machine, w, w->width) * (w->m < PLAIN_ROWS ? rates->line[false] : line * divide_up(w->m, PLAIN_ROWS))
         : 0;
}
/* Of an equal number of rows, four at least, or of eight; those that are left go one by one, and wait for each other. */
static double plain_rows(const struct product_work *w) {
  for (int rows = PLAIN_ROWS; rows >= PLAIN_ROWS / 2; rows--)
    if (w->is_open || w->m < PLAIN_ROWS || (int64_t)w->m % rows == 0)
      return w->m;
  double rest = (double)((int64_t)w->m % PLAIN_ROWS);
  return w->m + rest * (PLAIN_ROWS / 2 - 1);
}
double product_plain_cycles(const struct machine *machine, const struct product_work *w) {
  const struct rates *rates = rates_of(machine);
  double vectors = divide_up(w->width, w->lanes), fmas = plain_rows(w) * w->k * vectors / machine->fma_rate;
  double tiles = divide_up(w->m, PLAIN_ROWS) * vectors / PLAIN_VECTORS * (rates->plain_ends + PLAIN_ROWS * PLAIN_VECTORS * STORE_CYCLES);
  if (w->is_along)
    return w->batch * (fmas + tiles + divide_up(w->m, PLAIN_ROWS) * w->k * w->width * rates->gather[place_of(machine, w)]);
  double lines = plain_lines(machine, w);
  fmas /= (w->is_computed ? COMPUTED_SHARE : 1) * aligned_share(machine, w);
  fmas *= held_by_loads(machine, PLAIN_ROWS, vectors < PLAIN_VECTORS ? vectors : PLAIN_VECTORS);
  fmas /= (w->is_transposed ? PLAIN_ACROSS_SHARE : rates->plain_share) * (w->m < rates->plain_rows ? w->m / rates->plain_rows : 1);
  bool hides = rates->hides_lines && !product_is_paged(machine, w);
  double cycles = (hides ? overlapped_by(fmas, lines, PLAIN_OVERLAPPED_SHARE) : fmas + lines) + tiles + once_far(machine, w);
  return w->batch * cycles * (w->width < COLUMNS_MIN ? COLUMNS_FEW : 1);
}

const struct tile *product_tiles(const struct machine *machine) { return rates_of(machine)->tiles; }
const struct tile *tile_of(const struct machine *machine, int rows, int vectors) {
  for (const struct tile *t = product_tiles(machine); t->rows; t++)
    if (t->rows == rows && t->vectors == vectors)
      return t;
  return NULL;
}
static bool fills_registers(const struct machine *machine, double rows, double vectors) {
  return rows * vectors + vectors + 1 >= machine->registers;
}
static double block_step_cycles(const struct machine *machine, const struct tile *t, double share) {
  double sums = t->rows * t->vectors, step = sums / (machine->fma_rate * share);
  if (fills_registers(machine, t->rows, t->vectors))
    step /= FULL_SHARE;
  double held = sums / machine->fma_rate * held_by_loads(machine, t->rows, t->vectors);
  step = step > held ? step : held;
  return sums > machine->fma_rate * LATENCY_CYCLES ? step : step / WAITING_SHARE;
}
#define STAYS_SHARE 0.99    /* of the rate of copied panels: vectors that come from L2 (Zen 5) */
#define ROWS_STAY 0.8       /* of L2: with more rows beside a block that is read in place, each task gets them anew, */
#define ROWS_AGAIN_CYCLES 5 /* a vector of them (Zen 5) */
#define STAYS_BESIDE 0.25   /* of L2: more of it does not stay beside copies, and beside a result that is written (Zen 4) */
bool product_may_stay(const struct machine *machine, const struct product_work *w, const struct product_blocks *b) {
  bool is_measured = rates_of(machine)->stays_line[b->copies_rows][b->copies_rows ? PLACE_NEAR : PLACE_FAR] > 0;
  bool is_small = w->k * w->width * w->bytes <= STAYS_BESIDE * (double)machine->bytes[LEVEL_L2];
  return is_measured && !w->is_along && (b->copies_rows ? is_small : product_is_far(machine, w));
}
bool product_may_be_narrow(const struct machine *machine, const struct product_work *w) {
  const struct rates *rates = rates_of(machine);
  return rates->narrow_share > 0 && !rates->narrow_asks && (w->is_transposed || !rows_are_far(machine, w));
}
bool product_may_be_asked_for(const struct machine *machine, const struct product_work *w) {
  const struct rates *rates = rates_of(machine);
  bool is_plain = !w->is_along && !w->is_transposed, rows_come = rates->narrow_asks || !rows_are_far(machine, w);
  return rates->narrow_share > 0 && is_plain && rows_come && w->m <= rates->asking_rows && product_is_far(machine, w);
}
/* Of a line of the second factor, as it comes. */
static double block_line(const struct machine *machine, const struct product_work *w, const struct product_blocks *b) {
  const struct rates *rates = rates_of(machine);
  const double *lines = b->is_narrow ? rates->narrow_line[b->asks] : b->in_place ? rates->stays_line[b->copies_rows] : rates->block_line;
  int place = place_of(machine, w);
  bool is_sparse = place == PLACE_FAR && rates->sparse_row > 0 && w->width * w->bytes >= rates->sparse_row;
  return lines[is_sparse ? PLACE_PAGED : place == PLACE_NEAR && batches_leave(machine, w, w->k * w->width) ? PLACE_FAR : place];
}
double product_block_cycles(const struct machine *machine, const struct product_work *w, const struct product_blocks *b) {
  const struct rates *rates = rates_of(machine);
  double strips = divide_up(w->width, b->tile->vectors * w->lanes);
  double tiles = strips * (w->is_open ? w->m / b->tile->rows : row_blocks(machine, w->m, b->tile, REST_LEAST));
  double sums = divide_up(w->k, b->terms) * ends_cycles(machine, b->tile, b->terms < w->k);
  double lines = w->k * lines_of(machine, w, w->width) * block_line(machine, w, b);
  double turned = w->is_along ? w->k * w->width * rates->block_turned : 0;
  double each = rates->block_rows[rows_are_far(machine, w)] + (product_rows_stream(machine, w) ? STREAM_COPY_CYCLES : 0);
  double rows = b->copies_rows ? b->column_tasks * w->m * w->k * each : rows_cycles(machine, w, b->column_tasks) + once_far(machine, w);
  if (b->in_place && !b->copies_rows && w->m * w->k * w->bytes > ROWS_STAY * (double)machine->bytes[LEVEL_L2])
    rows += b->column_tasks * w->m * divide_up(w->k, w->lanes) * ROWS_AGAIN_CYCLES;
  double step =
    block_step_cycles(machine, b->tile, b->is_narrow ? rates->narrow_share : rates->block_share) / (b->in_place ? STAYS_SHARE : 1);
  step *= b->pairs ? machine->fma_rate / (2 * machine->pair_rate) : 1;
  double computed = (b->computes_rows ? b->column_tasks * w->m : 0) + (b->computes_columns ? b->row_tasks * w->width : 0);
  rows += computed * w->k / w->lanes * COMPUTED_CYCLES;
  return w->batch * (tiles * (w->k * step + sums) + b->row_tasks * (lines + turned) + rows + result_cycles(machine, w, !b->is_narrow));
}

/* ---- products whose second factor lies in panels ---- */

/* Of the peak, from all caches: a panel is one stream. */
#define PANELS_SHARE 0.97
#define PANELS_LOADS 0.935    /* of those that begin in a cycle */
#define PANELS_ROW_MISSED 1.3 /* cycles of a row's element that the first cache has lost */
#define PACK_CYCLES 0.6       /* an element that is packed ahead, */
#define PACK_FAR_CYCLES 2.5   /* a far one */
#define PANELS_LATENCY 4      /* cycles until a sum can be added to again: few rows wait for it, */
#define PANELS_L2_SHARE 0.4   /* and of the second cache's bandwidth, for a panel that comes from there */

static double panel_share(const struct machine *machine, double rows, double vectors) {
  if (machine->vector_bytes == 64)
    return rates_of(machine)->panel_share;
  return fills_registers(machine, rows, vectors) ? FULL_SHARE : PANELS_SHARE;
}
/* Rows of a multiple of 1 KB or so find few sets of the first cache: whether a tile's are more than it keeps a line of. */
static bool rows_fall_out(double rows_apart, double rows, double ways) {
  int64_t apart = bytes_apart(rows_apart);
  return apart >= LINE_BYTES && rows > lines_kept(apart, ways);
}
/* One tile meets each panel, which comes from beyond L2 as fast as it can, where that was measured. */
static bool panels_stream(const struct machine *machine, const struct product_work *w, double rows) {
  return rates_of(machine)->panel_stream > 0 && w->m <= rows && product_is_far(machine, w);
}
static double panel_tile_cycles(const struct machine *machine, const struct product_work *w, double rows, double vectors) {
  double step = rows * vectors / (machine->fma_rate * panel_share(machine, rows, vectors));
  double loads = (rows + vectors) / (machine->loads * PANELS_LOADS);
  double bytes = vectors * w->lanes * w->bytes, least = PANELS_LATENCY;
  step = (step > loads ? step : loads) + (rows_fall_out(w->rows_apart, rows, CACHE_WAYS) ? rows * PANELS_ROW_MISSED : 0);
  step = overlapped(step, across_line(machine, w) + comes_line(machine, w, false));
  if (panels_stream(machine, w, rows))
    least = bytes / LINE_BYTES * rates_of(machine)->panel_stream;
  else if (bytes * w->k > (double)machine->bytes[LEVEL_L1] / 2)
    least = bytes / (machine->bandwidth[LEVEL_L2] * PANELS_L2_SHARE);
  least = least > PANELS_LATENCY ? least : PANELS_LATENCY;
  return rows > 0 ? w->k * (step > least ? step : least) + TILE_CYCLES + rows * vectors * STORE_CYCLES : 0;
}
bool product_panels_wait(const struct machine *machine, const struct product_work *w) {
  return rates_of(machine)->panel_line[0] > 0 && w->m <= rates_of(machine)->asking_rows && product_is_far(machine, w);
}
double product_panel_cycles(const struct machine *machine, const struct product_work *w, int64_t rows, int64_t vectors, bool asks) {
  double tiles = w->is_open ? w->m / (double)rows : (double)((int64_t)w->m / rows), rest = w->m - tiles * (double)rows;
  double strips = divide_up(w->width, (double)vectors * w->lanes), whole = panel_tile_cycles(machine, w, (double)rows, (double)vectors);
  double cycles = tiles * whole + panel_tile_cycles(machine, w, rest, (double)vectors);
  double bytes = w->k * (double)vectors * w->lanes * w->bytes;
  bool is_far = product_is_far(machine, w), streams = w->m <= (double)rows; /* one tile meets a panel, which comes as fast as it can */
  double lines = is_far && !panels_stream(machine, w, (double)rows) ? bytes / machine->bandwidth[LEVEL_L3] : 0; /* else its tile's least */
  double waits = is_far && !streams ? bytes / LINE_BYTES * rates_of(machine)->panel_line[asks] : 0;
  cycles += product_rows_stream(machine, w) ? w->k * divide_up(w->m, w->lanes) * stream_line(machine, w) : 0;
  return w->batch * strips * (cycles + waits > lines ? cycles + waits : lines);
}
double product_pack_cycles(const struct machine *machine, const struct product_work *w) {
  return w->batch * w->k * w->width * (product_is_far(machine, w) ? PACK_FAR_CYCLES : PACK_CYCLES);
}

/* ---- products whose second factor lies along the sum ---- */

static double fmas_along(const struct machine *machine, const struct product_work *work) {
  return work->batch * divide_up(work->m, work->lanes) * work->k * work->width / machine->fma_rate;
}
double product_turned_cycles(const struct machine *machine, const struct product_work *work, double strip, double tasks, bool few) {
  const struct rates *rates = rates_of(machine);
  double elements = work->k * work->width, strips = work->m / strip, each = few ? rates->turned_square : rates->turned_copy;
  double far = product_is_far(machine, work) ? strips * elements * rates->turned_far : 0;
  double copies = work->is_transposed ? 0 : strips * tasks * work->k * strip * each, stores = work->m * work->width * rates->turned_store;
  return fmas_along(machine, work) / rates->turned_share + work->batch * (copies + stores + far);
}

#define CROSSED_SHARE 0.88     /* of the multiply-adds, beside the moves of a square; */
#define CROSSED_LOADS 1.06     /* of one vector of columns each waits for a load of its own */
#define CROSSED_ROW_MISSED 0.5 /* cycles of a row's element that the first cache has lost */

double product_crossed_cycles(const struct machine *machine, const struct product_work *work, int64_t vectors) {
  double squares = work->batch * divide_up(work->width, work->lanes) * divide_up(work->k, work->lanes);
  double each = (vectors > 1 ? CROSSED_SHARE : CROSSED_LOADS) / machine->fma_rate;
  double ways = (double)machine->bytes[LEVEL_L1] / PAGE_BYTES; /* all of them: beside the rows there is but the square */
  each += rows_fall_out(work->rows_apart, work->m, ways) ? CROSSED_ROW_MISSED : 0;
  return squares * (rates_of(machine)->crossed_square + work->m * work->lanes * each);
}

#define LINES_APART_SHARE 0.35 /* of what is moved, where no prefetcher finds the next line */
double copy_turned_cycles(const struct machine *machine, const struct turned_copy *copy, double elements, double side) {
  const struct rates *rates = rates_of(machine);
  bool is_far = 2 * copy->elements * copy->bytes > (double)machine->bytes[LEVEL_L2];
  bool is_split = (int64_t)(copy->length * copy->bytes) % LINE_BYTES != 0, is_apart = copy->width * copy->bytes >= PAGE_BYTES / 2.0;
  double moved = is_far ? 2 * copy->bytes / machine->bandwidth[LEVEL_L3] : 0, square = rates->turned_square * copy->lanes / side;
  if (side > 1)
    return elements * (overlapped(square, moved) + (is_far && is_split ? rates->turned_split : 0));
  return elements * (rates->turned_copy + (is_apart ? moved * LINES_APART_SHARE : 0));
}

/* ---- filters ---- */

#define COPIED_SHARE 0.85 /* of the second cache's bandwidth, for vectors that lie side by side */

#define LOAD_SHARE 0.2     /* of a load's time that multiply-adds do not hide */
#define CROWDED_SHARE 0.75 /* of the rate at which both begin, where pixels take so much that few find a set in the first cache */
#define CROWDED_BYTES 3584
#define ROWS_APART_BYTES 256   /* of a pixel of the image: with fewer its lines are read one behind the other */
#define NEAR_HALF_SHARE 0.88   /* with one multiply-add a cycle: in the first cache, */
#define STREAM_HALF_SHARE 0.82 /* and beyond */

double filter_plain_cycles(const struct machine *machine, const struct filter_work *w, double bytes) {
  const struct rates *rates = rates_of(machine);
  bool is_far = bytes > rates->filter_parts * (double)machine->bytes[LEVEL_L2];
  double vectors = divide_up(w->columns, w->lanes), share = is_far ? rates->filter_far : rates->filter_near;
  return w->terms * w->taps * w->rows * vectors / machine->fma_rate / share;
}

/* A term is one load for each row and each vector; also where multiply-adds take longer, loads hold them up. */
double filter_tile_cycles(const struct machine *machine, int64_t rows, int64_t vectors, double terms, const struct filter_stream *from) {
  double loads = (double)(rows + vectors) / machine->loads, fmas = (double)(rows * vectors) / machine->fma_rate;
  double step = loads > fmas ? loads : fmas;
  if (is_half(machine))
    return terms * (step + loads * LOAD_SHARE) / (from && !from->is_near ? STREAM_HALF_SHARE : NEAR_HALF_SHARE);
  const struct rates *rates = rates_of(machine);
  double held = from && from->row_bytes + from->column_bytes >= rates->filter_pixel ? rates->filter_crowded : 1;
  if (!from || from->is_near)
    return terms * (step + loads * LOAD_SHARE) / held;
  double bytes = (double)(vectors * machine->vector_bytes);
  bytes = bytes < LINE_BYTES && from->column_bytes > bytes ? LINE_BYTES : bytes;
  double second = bytes / (from->column_bytes > bytes ? rates->filter_apart : COPIED_SHARE) +
                  LINE_BYTES / (from->row_bytes > ROWS_APART_BYTES ? rates->filter_apart : COPIED_SHARE);
  second /= machine->bandwidth[LEVEL_L2];
  step = step > second ? step : second;
  bool is_crowded = from->row_bytes + from->column_bytes > CROWDED_BYTES;
  return terms * (step + loads * LOAD_SHARE) / (is_crowded ? CROWDED_SHARE : rates->filter_stream);
}

double filter_lines_cycles(const struct machine *machine, double pixels, double row_bytes, double column_bytes,
                           const struct filter_stream *from) {
  const double *line = rates_of(machine)->filter_line;
  double rows = divide_up(row_bytes, LINE_BYTES) * line[from->row_bytes > row_bytes];
  return pixels * (rows + divide_up(column_bytes, LINE_BYTES) * line[from->column_bytes > column_bytes]);
}

/* ---- convolutions under a test ---- */

#define TERM_SHARE 0.90       /* of the rate at which loads and multiply-adds begin, */
#define HALF_TERM_SHARE 0.98  /* and where it takes two for a multiply-add of 512 bits */
#define TESTED_SHARE 0.40     /* of the peak: each term asks */
#define PIXELS_SHARE 0.6      /* and at least, without a test, of a filter beyond L2: rows of pixels are few */
#define BROADCAST_CYCLES 0.1  /* a row's factor, for each vector */
#define HALF_LOAD 0.08        /* where a multiply-add takes two halves, beside hints, */
#define HALF_COPIED_LOAD 0.02 /* and without */
#define PAIR_BYTES 128        /* that come from beyond the second cache together */

double conv_product_cycles(const struct machine *machine, const struct product_work *w) {
  double all = product_plain_cycles(machine, w),
         least = w->batch * w->m * w->k * divide_up(w->width, w->lanes) / machine->fma_rate / PIXELS_SHARE;
  return product_is_far(machine, w) && all < least ? least : all;
}
double conv_plain_cycles(const struct machine *machine, double vectors, double terms, double apart) {
  return vectors * terms * (1 / machine->fma_rate / TESTED_SHARE * LOADS_HIDDEN / machine->loads + apart);
}
static double pairs_of(const struct machine *machine, const struct conv_tile *t) {
  return divide_up((double)(t->vectors * machine->vector_bytes), PAIR_BYTES);
}
/* Of a crowded filter's lines of a term, from the second row of tiles on; 0: it is not known. */
static double crowded_term(const struct machine *machine, const struct conv_tile *t) {
  double lines = divide_up((double)(t->vectors * machine->vector_bytes), LINE_BYTES);
  return t->place == FILTER_CROWDED ? lost_term(machine, bytes_apart(t->apart), lines) : 0;
}
double conv_first_cycles(const struct machine *machine, const struct conv_tile *t) {
  double lost = crowded_term(machine, t), first = pairs_of(machine, t) * rates_of(machine)->conv_pair[1];
  return lost > 0 && first > lost ? t->terms * (first - lost) : 0;
}
/* A term of a tile of so many cycles, when its vectors of the filter are there. */
static double term_cycles(const struct machine *machine, double step, const struct conv_tile *t) {
  double bytes = (double)(t->vectors * machine->vector_bytes);
  double lost = crowded_term(machine, t);
  double far = lost > 0 ? lost : pairs_of(machine, t) * rates_of(machine)->conv_pair[t->place == FILTER_CROWDED];
  double share = t->place == FILTER_COPIED ? COPIED_SHARE : rates_of(machine)->conv_apart;
  double second = t->terms * bytes > (double)machine->bytes[LEVEL_L1] ? bytes / (machine->bandwidth[LEVEL_L2] * share) : 0;
  step = step > LATENCY_CYCLES ? step : LATENCY_CYCLES;
  if (t->place == FILTER_FAR || t->place == FILTER_CROWDED)
    return overlapped_by(step, far, lost > 0 ? LOST_SHARE : 0);
  return overlapped_by(step, second, rates_of(machine)->conv_second);
}
/* A load of a term, beside the multiply-adds. */
static double conv_load(const struct machine *machine, enum filter_place place) {
  return !is_half(machine) ? BROADCAST_CYCLES : place == FILTER_COPIED ? HALF_COPIED_LOAD : HALF_LOAD;
}
double conv_tile_cycles(const struct machine *machine, const struct conv_tile *t) {
  double rows = (double)t->rows, sums = rows * (double)t->vectors, fmas = sums / machine->fma_rate;
  double loads = (rows + (double)t->vectors) / machine->loads, step = term_cycles(machine, fmas > loads ? fmas : loads, t);
  bool is_wide = t->terms * (double)(t->vectors * machine->vector_bytes) > (double)machine->bytes[LEVEL_L2] / 2;
  step /= t->place == FILTER_COPIED && is_wide ? rates_of(machine)->conv_strip : 1;
  step += rows_fall_out(t->pixels_apart, rows, (double)machine->bytes[LEVEL_L1] / PAGE_BYTES) ? rows * PANELS_ROW_MISSED : 0;
  step = (step + loads * conv_load(machine, t->place)) / (is_half(machine) ? HALF_TERM_SHARE : TERM_SHARE);
  return t->terms * step + TILE_CYCLES + sums * STORE_CYCLES;
}
double conv_copy_cycles(const struct machine *machine, double bytes, double apart, double turned) {
  bool is_far = bytes > (double)machine->bytes[LEVEL_L2];
  double line = rates_of(machine)->block_line[is_far ? PLACE_FAR : PLACE_NEAR];
  double lost = is_far ? lost_term(machine, bytes_apart(apart), 1) : 0;
  return bytes / LINE_BYTES * (line > lost ? line : lost) + turned * rates_of(machine)->block_turned;
}

#define AHEAD_SHARE 0.4 /* of a line from another cache: the rest was asked for before */
#define ALONE_SHARE 1.0
#define HALF_PAGE 2048
#define ROW_SHARE 0.6 /* of that, where the pixels of a row come at once */
/* Of pixels, some vectors of each, that a term brings from beyond the first cache; those that are half a page apart were not asked for. */
static double pixels_cycles(const struct machine *machine, double pixels, double vectors, int level, bool is_alone) {
  double bytes = pixels * divide_up(vectors * (double)machine->vector_bytes, PAIR_BYTES) * PAIR_BYTES;
  return bytes / machine->bandwidth[level] * (is_alone ? ALONE_SHARE : AHEAD_SHARE);
}
double depthwise_tile_cycles(const struct machine *machine, int64_t rows, int64_t vectors, double terms, double taps, double apart,
                             double bytes) {
  double sums = (double)(rows * vectors), columns = (double)(rows - 1) * apart + taps;
  columns = columns < (double)rows * taps ? columns : (double)rows * taps; /* that lie apart: some are never met */
  double fmas = sums / machine->fma_rate, loads = (double)vectors * (columns / taps + 1) / machine->loads;
  double step = fmas > loads ? fmas : loads;
  step = step > LATENCY_CYCLES ? step : LATENCY_CYCLES;
  step += bytes >= HALF_PAGE ? pixels_cycles(machine, columns / taps, (double)vectors, LEVEL_L2, true) * ROW_SHARE : 0;
  return terms * step / TERM_SHARE + TILE_CYCLES + sums * STORE_CYCLES;
}

#define TESTED_FILTER_SHARE 0.10 /* of the peak */
#define STAGED_CYCLES 1.5        /* of a vector: its copy */
#define SPILLED_BYTES 50         /* a cycle, of sums and loads that wait in memory */

double depthwise_filter_plain_cycles(const struct machine *machine, double vectors, double terms) {
  return vectors * terms / machine->fma_rate / TESTED_FILTER_SHARE;
}
bool taps_are_far(const struct machine *machine, double bytes) {
  return bytes > (double)machine->bytes[LEVEL_L2] * rates_of(machine)->taps_far;
}
/* Of sums that wait row by row, and of the rows of an image that L2 gives for each row of taps anew. */
static double taps_waiting_cycles(const struct machine *machine, const struct taps_work *work) {
  double again = (double)(work->rows - 1) * work->vectors * (double)machine->vector_bytes / machine->bandwidth[LEVEL_L2] * AHEAD_SHARE;
  return work->is_grouped ? 2 * work->sums / machine->loads / work->wide + again : 0;
}
/* Parts of pairs are lost sooner. An image that is copied has its pixels one behind the other. */
static double taps_far_cycles(const struct machine *machine, const struct taps_work *work) {
  int level = taps_are_far(machine, work->bytes) ? LEVEL_L3 : LEVEL_L2;
  double pairs = work->vectors * (double)machine->vector_bytes / PAIR_BYTES, lone = HALF_PAGE * (pairs < 1 ? pairs : 1);
  double far = pixels_cycles(machine, work->places, work->vectors, level, work->apart >= lone && !work->is_staged && !work->is_grouped);
  far *= level == LEVEL_L3 ? pow(work->part, -rates_of(machine)->taps_parted) : 1;
  return far + taps_waiting_cycles(machine, work) + (work->is_staged ? (work->places - 1) * work->vectors * STAGED_CYCLES : 0);
}
double depthwise_filter_cycles(const struct machine *machine, const struct taps_work *work) {
  double spilled = work->sums + work->held - (double)machine->registers;
  double fmas = work->sums / machine->fma_rate, loads = work->loads / machine->loads;
  double step = (fmas > loads ? fmas : loads) + (spilled > 0 ? spilled * (double)machine->vector_bytes / SPILLED_BYTES : 0);
  return work->terms * ((step > LATENCY_CYCLES ? step : LATENCY_CYCLES) / TERM_SHARE + taps_far_cycles(machine, work));
}
