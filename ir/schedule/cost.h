/* cost.h: the cost model: what work is expected to take on one core. Passes, generators of schedules and targets ask here; none has figures
 * of its own for an operation, a byte, a loop or a tile; generators (compiler/schedule/choose_*.c) have cut-offs of their own, for
 * sizes that none of their tiles suits.
 *
 * Cycles of products and filters are over a struct machine, and decide which schedule is taken (compiler/schedule). Operations are counted,
 * or in nanoseconds, where only ratios decide: whether a value is computed again, which loop becomes lanes, how much a task is. All figures
 * were measured with bench_kernel and bench_schedule, on 512-bit servers unless rates.c says otherwise; bench_schedule says how good the
 * choices are.
 *
 * Owner: none. Safe for many threads. */
#ifndef TFC_IR_SCHEDULE_COST_H
#define TFC_IR_SCHEDULE_COST_H

#include "ir/kernel/kernel.h"
#include "ir/schedule/machine.h"

/* ---- operations ---- */

/* What a scalar operation is to a core. */
enum effort {
  EFFORT_NONE,     /* constants, sizes, locals */
  EFFORT_MOVE,     /* loads and casts: nothing beside the load that they stand at */
  EFFORT_SHORT,    /* an instruction of a cycle or two */
  EFFORT_DIVIDE,   /* div */
  EFFORT_LONG,     /* other quotients, remainders, square roots */
  EFFORT_FUNCTION, /* exp and what comes after it in scalars.def */
};
enum effort op_effort(enum scalar_op op);
/* Counted: a short one is 1, a multiply-add 2. */
double op_operations(enum scalar_op op);
/* Of the same value computed once more beside a load: what a pass may repeat (compiler/pass/fuse.c). */
int op_repeat_cost(enum scalar_op op, enum dtype dtype);
/* Functions that targets write out for vectors of a float dtype. */
bool op_is_written_out(enum scalar_op op, enum dtype dtype);
/* Nanoseconds of one scalar; of one vector. */
double op_scalar_ns(enum scalar_op op, enum dtype dtype);
double op_vector_ns(enum scalar_op op, enum dtype dtype);

#define REPEAT_COST_MAX 3 /* op_repeat_cost of what is no slower than the load that it replaces */

/* Of a loop as lanes, in operations. */
#define GATHER_OPERATIONS 2.2  /* a lane that is loaded by itself */
#define SCATTER_OPERATIONS 2.4 /* and stored */
#define OPEN_LINE_OPERATIONS 5 /* and whose line waits for the next of them */
#define STRIDED_OPERATIONS 3   /* lanes two apart or backwards, all of them */
#define INDEX_SHARE 0.3        /* of a load's index: neighbours share it */
#define WIDE_SHARE 1.5         /* of an operation on elements of 8 bytes */
#define SLOWEST_LANE 2         /* times the turns of a while loop that one lane takes: the most of all lanes */
#define PAR_OPERATIONS 2       /* begin and end of a loop of par as lanes */
#define RED_OPERATIONS 6       /* of a sum: its lanes are added up */

#define SQUARE_LOADS 2 /* that are transposed in registers for one store (codegen_square.c): each takes as many as a square has rows */

/* ---- loops and tasks ---- */

#define TRIPS_OPEN 64.0    /* of a loop whose extent is a size */
#define TRIPS_INSIDE 8.0   /* and of one that is only known inside */
#define LOOP_NS 0.5        /* a loop that is entered */
#define STATEMENT_NS 0.05  /* beside its operations */
#define STORE_NS 0.15      /* a vector */
#define BYTE_NS 0.03       /* from memory */
#define JAMMED_SHARE 0.05  /* of what operations cost one by one, where several sums of vectors stay in registers */
#define LANES_NS_SHARE 5.0 /* an operation of lanes takes so many times what op_scalar_ns says of an element, which most share */
#define TASK_NS 8000.0     /* a task should take about this long */
#define SINGLE_NS 3000.0   /* and what takes less is not divided */

/* ---- products and filters: cycles of one core ---- */

#define GAIN_MIN 1.06 /* expected, below which loops stay plain */

/* c[m,width] = a[m,k] * b[k,width], `batch` times. */
struct product_work {
  double batch, m, k, width;
  double lanes;       /* of a vector */
  double bytes;       /* of an element */
  double stride;      /* bytes between the second factor's elements of neighbouring terms */
  double rows_apart;  /* bytes between the first factor's rows; 0: not known */
  bool is_transposed; /* the first factor's terms do not lie side by side, */
  bool is_along;      /* but the second one's do: it lies along the sum */
  bool is_open;       /* m is a guess: the step knows it */
  bool is_computed;   /* a factor is computed of what it loads */
  bool by_rows;       /* tiles go along the result's rows: it is written in its order */
};
/* Rows by vectors of sums that stay in registers. */
struct tile {
  int rows, vectors;
  double step;  /* measured cycles of a term, where the machine starts two multiply-adds a cycle and the second factor lies in L2 */
  bool is_even; /* what is left of the rows is one tile, not one of each power of two */
};
/* Whether its loads hold up multiply-adds of tiles that load much for each. */
bool tile_loads_hold(const struct machine *machine);
/* Those that were measured on machines of this class, behind them one of no rows. */
const struct tile *product_tiles(const struct machine *machine);

/* Whether the second factor comes from beyond L2: it takes more than half of it. */
bool product_is_far(const struct machine *machine, const struct product_work *work);
/* The most vectors of a tile whose second factor is far: such lines come few at a time, but where more were measured. */
int64_t product_far_vectors(const struct machine *machine);
/* Whether the second factor's neighbouring terms lie in more pages than the TLB holds. */
bool product_is_paged(const struct machine *machine, const struct product_work *work);
/* Whether so few rows may have the second factor read as it lies. */
bool product_may_stream(const struct machine *machine, const struct product_work *work);
/* How it is read then, and whether the next rows' lines are asked for meanwhile. */
struct stream_tile {
  int terms;   /* rows of it, side by side, */
  int vectors; /* so many of each at most */
};
const struct stream_tile *product_stream_tile(const struct machine *machine, const struct product_work *work);
bool product_stream_asks(const struct machine *machine, const struct product_work *work);
/* As plain loops, without steps. */
double product_plain_cycles(const struct machine *machine, const struct product_work *work);
/* By tiles, both factors where they lie; fetch: the second is asked for ahead. */
double product_tile_cycles(const struct machine *machine, const struct product_work *work, const struct tile *tile, bool fetch);
/* The same in blocks of terms, whose parts of both factors stay in L2 while the sums wait in the result. */
struct product_waiting {
  int64_t terms;        /* of a block */
  int64_t rows, strips; /* of a task: rows, and tiles' columns side by side */
};
double product_waiting_cycles(const struct machine *machine, const struct product_work *work, const struct tile *tile,
                              const struct product_waiting *waiting);
/* Terms of such a block; 0: all data stay in L2 anyway. Rows of a task that leave room for a block, beside so many tiles' columns; none
 * or less: there is none. */
int64_t product_waiting_terms(const struct machine *machine, const struct product_work *work);
int64_t product_waiting_rows(const struct machine *machine, const struct product_work *work, const struct tile *tile, int64_t strips);
/* Whether the first factor lies across and comes from beyond the caches, all batches together; such rows that are a page or two long come
 * by each page's own stream. */
bool product_rows_stream(const struct machine *machine, const struct product_work *work);
bool product_rows_come(const struct machine *machine, const struct product_work *work);
/* A far second factor read as it lies, a few of its rows at a time, while the sums of all columns wait in the first cache. */
double product_stream_cycles(const struct machine *machine, const struct product_work *work, int64_t vectors);
/* The second factor in panels: of so many vectors of columns all terms lie one behind the other. Tiles of so many rows, what is left is one
 * of its own, unless their number is open; and what it costs to bring it there, once. */
double product_panel_cycles(const struct machine *machine, const struct product_work *work, int64_t rows, int64_t vectors, bool asks);
/* Whether panels come from beyond L2 and are waited for, so that asking for the next one ahead (`asks`) is worth a thought. */
bool product_panels_wait(const struct machine *machine, const struct product_work *work);
double product_pack_cycles(const struct machine *machine, const struct product_work *work);
/* The tile of this form; NULL: none was measured. */
const struct tile *tile_of(const struct machine *machine, int rows, int vectors);
/* By blocks of terms, each of which is copied first, or brought into L2 by the first rows that meet it. */
struct product_blocks {
  const struct tile *tile;
  double terms;                         /* of a block */
  double column_tasks;                  /* each copies its part of the second factor, */
  double row_tasks;                     /* as each of these does; */
  bool copies_rows;                     /* and its rows of the first, which lies across */
  bool in_place;                        /* it is not copied */
  bool computes_rows, computes_columns; /* each element of a factor for each task */
  bool is_narrow;                       /* of few columns, so that its lines find room in L2, and a strip of it in the first cache, */
  bool pairs;                           /* of terms, which are multiplied and added up together */
  bool asks;                            /* and the next block's are asked for while this one is summed up */
};
/* Whether a block may be read in place: a far one, of which L2 gives what tiles take; a small one beside rows that are copied. */
bool product_may_stay(const struct machine *machine, const struct product_work *work, const struct product_blocks *blocks);
/* Whether narrow tasks are worth a thought: not where each of them gets rows from beyond L2 anew. And whether a second factor is asked for
 * a block ahead by narrow tasks: it lies along the columns, the first one along the sum, its lines from beyond L2 are waited for, and so
 * few rows meet a block that a hint lasts. */
bool product_may_be_narrow(const struct machine *machine, const struct product_work *work);
bool product_may_be_asked_for(const struct machine *machine, const struct product_work *work);
double product_block_cycles(const struct machine *machine, const struct product_work *work, const struct product_blocks *blocks);
/* Of a second factor that lies along the sum, turned: strips of so many rows, copied by each task. few: of few columns; the first factor is
 * copied once then, or not at all, where it lies across. */
double product_turned_cycles(const struct machine *machine, const struct product_work *work, double strip, double tasks, bool few);
/* And of few rows, with the second factor transposed by squares on its way, so many vectors of columns side by side. */
double product_crossed_cycles(const struct machine *machine, const struct product_work *work, int64_t vectors);
/* Elements that are stored in another order than they are read in: so many lie side by side there, and so many where they go. */
struct turned_copy {
  double elements, width, length;
  double bytes, lanes; /* of an element; of a vector */
};
/* Of some of them, one by one (`side` 1), or by squares whose sides are so many lanes. */
double copy_turned_cycles(const struct machine *machine, const struct turned_copy *copy, double elements, double side);

/* A convolution's filter: for each of `taps` rows x columns sums of `terms` pixels. As plain loops, from factors of `bytes` in all. */
struct filter_work {
  double taps, rows, columns, terms;
  double lanes; /* of a vector */
};
double filter_plain_cycles(const struct machine *machine, const struct filter_work *work, double bytes);
/* A tile of so many rows and vectors, over `terms`; from: where its data lie, each of them for many sums; NULL: in the first cache, side by
 * side. */
struct filter_stream {
  double row_bytes, column_bytes; /* between neighbouring pixels, of the image and of the result's gradient */
  bool is_near;                   /* a block of them fits the first cache */
};
double filter_tile_cycles(const struct machine *machine, int64_t rows, int64_t vectors, double terms, const struct filter_stream *from);
/* And so many pixels from beyond the second cache, of each of which a task reads so many bytes of both factors. */
double filter_lines_cycles(const struct machine *machine, double pixels, double row_bytes, double column_bytes,
                           const struct filter_stream *from);
#define FILTER_L1_SHARE 0.85 /* of a cache, for a block that stays in it */
#define FILTER_L2_SHARE 0.25
#define FILTER_SUM_CYCLES 3 /* a vector of sums comes from the result and goes back */

/* A convolution whose terms stand under a test: `vectors` of the result, each the sum of `terms`, as plain loops, where `apart`
 * elements of a vector of the filter are loaded one by one; a tile, terms of whose filter lie so many bytes `apart`; a copy of such a
 * filter of so many bytes (0 apart: side by side), of which so many elements are transposed. */
enum filter_place {
  FILTER_NEAR,    /* in the second cache, its rows apart */
  FILTER_FAR,     /* each term's vectors come from beyond it */
  FILTER_CROWDED, /* and find few sets in the caches: multiples of 1 KB apart */
  FILTER_COPIED,  /* in the second cache, what a tile needs side by side */
};
double conv_plain_cycles(const struct machine *machine, double vectors, double terms, double apart);
/* One without a test, as plain loops: pixels are rows of a product. */
double conv_product_cycles(const struct machine *machine, const struct product_work *work);
struct conv_tile {
  int64_t rows, vectors;
  double terms, apart;
  double pixels_apart; /* bytes between neighbours of the rows */
  enum filter_place place;
};
/* A tile; and what the first one of a strip takes more, for lines that come from memory. */
double conv_tile_cycles(const struct machine *machine, const struct conv_tile *tile);
double conv_first_cycles(const struct machine *machine, const struct conv_tile *tile);
double conv_copy_cycles(const struct machine *machine, double bytes, double apart, double turned);
/* A depthwise one's tile: each row of `taps` meets columns of its image that overlap, neighbours of the tile `apart` columns and `bytes`
 * from each other. */
double depthwise_tile_cycles(const struct machine *machine, int64_t rows, int64_t vectors, double terms, double taps, double apart,
                             double bytes);
/* The gradient of a depthwise filter under a test, as conv_plain_cycles has it. */
double depthwise_filter_plain_cycles(const struct machine *machine, double vectors, double terms);
/* One by tiles, each of all pixels for some vectors of channels. */
struct taps_work {
  double sums;     /* vectors that are summed up */
  double held;     /* vectors that a turn keeps for the next one, beside these */
  double loads;    /* vectors that are loaded for a term of all sums */
  double terms;    /* of each sum */
  double vectors;  /* that lie side by side in a pixel */
  double places;   /* pixels of both factors that come with a term */
  double apart;    /* bytes between pixels */
  double bytes;    /* of all images of both factors */
  double part;     /* of a pixel, that is read before the next part */
  int64_t rows;    /* of taps, which all meet a pixel of the image */
  double wide;     /* a row's terms */
  bool is_grouped; /* sums wait for the other vectors of their part in each row */
  bool is_staged;  /* the image's part is copied before it is read */
};
double depthwise_filter_cycles(const struct machine *machine, const struct taps_work *work);
/* Whether images of so many bytes come from beyond L2. */
bool taps_are_far(const struct machine *machine, double bytes);

#endif
