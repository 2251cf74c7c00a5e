/* rates.h: what was measured on each class of machines, where classes differ; cost.c computes with it.
 *
 * Classes: 512-bit vectors, two multiply-adds of them a cycle; the same with fewer than two loads beside them; the same with a second cache
 * that delivers one each cycle; one multiply-add of them a cycle; 256-bit vectors and 16 registers.
 *
 * Owner: static. Safe for many threads. */
#ifndef TFC_IR_SCHEDULE_RATES_H
#define TFC_IR_SCHEDULE_RATES_H

#include "ir/schedule/cost.h"

/* Where a product's second factor lies: in L2; beyond; beyond, and in more pages than the TLB holds. */
enum { PLACE_NEAR, PLACE_FAR, PLACE_PAGED, PLACES };
/* How far its terms lie apart, where few find a set in the first cache: multiples of less than half a page, of half a one, of one. */
enum { CROWD_LESS, CROWD_HALF, CROWD_PAGE, CROWDS };

/* Shares are of the peak, unless they say of what; others are cycles. */
struct rates {
  const struct tile *tiles;     /* of products whose factors are read where they lie; the last has no rows */
  double far_step, fetch;       /* times a step, from the second row of tiles on: columns of a far factor fall out of the caches; a hint */
  double crowded[2][CROWDS];    /* a line, of a near factor, a far one */
  double unaligned;             /* of the rate, where a factor's rows begin amid lines: vectors are parts of two */
  double across[2];             /* a term of a first factor that lies across, near and far; */
  double across_line;           /* its line, of a far one, which multiply-adds may hide; */
  double across_kept;           /* of L2, what such a factor may fill and be near; */
  double across_comes[2];       /* a far one's line, for each term of a tile; a block of terms at a time; */
  double waiting_line[2];       /* or, where that was measured, such a line of the first factor, and of the second; */
  double waiting_crowd[CROWDS]; /* a term of a first factor that lies across in few sets of the first cache, then; */
  double rows_far;              /* and a vector of one that does not, for each strip */
  double stream_least;          /* of L2, a batch of a first factor that lies across and comes from beyond the caches, */
  double stream_most;           /* which more than that of all batches does, */
  double stream_row;            /* with rows of so many bytes: of shorter ones several lie in a page, which the prefetchers follow; */
  double stream_wait[2];        /* its line, which multiply-adds do not hide, and where such fall into few sets of the first cache, */
  double stream_line[2];        /* and in blocks of terms, for each strip; */
  bool pages_stream;            /* but rows of a page or two come by each page's own stream */
  double pages, page;           /* that the TLB holds; a term in one that it has lost, */
  double line[2];               /* and a far line at first, as it is missed, and asked for ahead; */
  double far_line;              /* and at least, where multiply-adds take less; */
  double lost_term[CROWDS];     /* a term whose lines are far each time that rows meet them, at least, */
  double lost_line;             /* with each of its lines; 0: not measured */

  double result[2];      /* a far line of the result, by strips, and where those of several strips lie side by side; */
  bool batches_leave;    /* one batch's makes room for the next one's, and goes beyond L2 where all together do; factors come from there */
  double once_far;       /* a vector of a first factor from beyond L2 that lies along the sum, in blocks, too */
  double gather[PLACES]; /* plain loops: an element of a second factor along the sum, for each few rows; */
  double plain_share;    /* of others, of the peak, */
  double plain_rows;     /* of so many rows: with fewer, multiply-adds wait for each other; */
  double plain_ends;     /* a tile begins and ends; */
  bool hides_lines;      /* multiply-adds go on while lines of a far factor come, unless those are in a page each */
  double streamed_rows;  /* so many may have a far factor read as it lies, where its terms are not in a page each, */
  double streamed_line;  /* and its line, behind the one in front of it; */
  double streamed_share; /* of the peak, what rows reach meanwhile */
  struct stream_tile stream_tiles[2]; /* of it, for few rows of the first factor, and for more; */
  double streams_come; /* with so many, its next rows' lines come by themselves: asked for, they take longer; 0: those from beyond L3 */

  double panel_share;            /* of tiles, from panels, with vectors of 512 bits; */
  double panel_stream;           /* a far line of those that one tile reads, behind the one in front of it; 0: not measured; */
  double panel_line[2];          /* one that is waited for, and where it is asked for a panel ahead; */
  double block_share;            /* from copied ones */
  double block_line[PLACES];     /* a line that is copied, */
  double sparse_row;             /* of rows of so many bytes or more such a line takes as long as where pages are lost; 0: it does not; */
  double narrow_share;           /* of tiles whose strip stays in the first cache; 0: they are no better; */
  double narrow_line[2][PLACES]; /* a line of narrow tasks, and where it is asked for a block ahead, */
  double asking_rows;            /* while so many rows meet this one, or fewer: more take longer than a hint lasts; */
  bool narrow_asks;              /* narrow tasks gain by that alone, and also with rows from beyond L2; */
  double stays_line[2][PLACES];  /* one that is not, at first: where L2 gives what tiles take, and beside rows that are; 0: it does not */
  double block_turned;           /* an element that is transposed then, */
  double block_rows[2];          /* and one of the first factor, near and far */
  double ends[2];                /* of what a tile's beginning and end take: of one whose sums leave half of the registers, others */

  /* second factors along the sum */
  double turned_share, turned_copy, turned_store; /* by the tile; an element that is transposed, one that is stored; */
  double turned_square;                           /* one that is transposed for a few columns, in whole squares, */
  double turned_split;                            /* and more, beyond L2, where rows of squares are no whole lines; */
  double turned_far;                              /* one of the second factor beyond L2 */
  double crossed_square;                          /* a square of the second factor that is transposed for few rows */

  /* convolutions */
  double conv_apart;   /* of L2's rate, for vectors of the filter that lie apart, */
  double conv_second;  /* and of the shorter of that and of the multiply-adds, beside the longer; */
  double conv_pair[2]; /* two lines of it from beyond L2, and of multiples of 1 KB apart */
  double conv_strip;   /* of the rate of a strip that is copied, where it is more than half of L2 */

  double taps_parted; /* with which power a far pixel of a depthwise filter's images takes longer, where a part of it is read at a time; */
  double taps_far;    /* of L2, images that are far */

  /* filters */
  double filter_near, filter_parts, filter_far; /* in place: of factors in so many L2, and of others */
  double filter_stream;                         /* of the rate of tiles in the first cache, from beyond it */
  double filter_apart;                          /* of L2's rate, for vectors of rows that lie apart */
  double filter_line[2];                        /* a line of pixels that each task gets from beyond L2: one behind the other; apart */
  double filter_pixel, filter_crowded;          /* of tiles in the first cache, from so many bytes of a pixel of both factors on */
};

const struct rates *rates_of(const struct machine *machine);

#endif
