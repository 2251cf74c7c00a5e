/* rates.c: see rates.h. Measured with bench_kernel and bench_schedule; of 512-bit vectors on servers of several makers, of 256-bit ones on
 * a Zen 3. */
#include "ir/schedule/rates.h"

#include <float.h>

static const struct tile wide_tiles[] = {{2, 8, 14.8}, {4, 4, 10.4}, {6, 4, 13.8}, {8, 3, 13.8}, {12, 2, 15.2},
                                         {8, 2, 11},   {2, 4, 7.4},  {4, 3, 7.8},  {6, 2, 7.8},  {0, 0, 0}};
static const struct tile narrow_tiles[] = {{2, 4, 4.6}, {4, 3, 6.6}, {6, 2, 6.15}, {4, 2, 4.2}, {0, 0, 0}};

/* What is alike for 512-bit vectors, whether one multiply-add starts in a cycle or two. */
#define WIDE                                                                                                                 \
  .tiles = wide_tiles, .own = {8, 4, 0}, .own_both = {8, 2, 11}, .own_share = 0.90, .own_ends = 40, .pack = {0.6, 2.5, 2.5}, \
  .plain_rows = 8, .streamed_rows = 2 /* more hide the lines that they wait for */, .turned_copy = 1.2,                      \
  .turned_store = 2 /* those of a vector lie apart */, .turned_far = 0.35, .filter_far = 0.65, .filter_apart = 0.62,         \
  .filter_pixel = DBL_MAX, .filter_crowded = 1, .block_line = {2.5, 8, 18}, .ends = {1, 1}

static const struct rates two_wide = {WIDE,
                                      .far_step = 1.25,
                                      .fetch = 1.5,
                                      .turned_share = 0.88,
                                      .block_share = 0.87, /* two vectors of columns are as good as three there */
                                      .along_pack = {0.5, 0.5, 3},
                                      .filter_share = 0.93,
                                      .filter_pack = 0.9,
                                      .filter_near = 0.78,
                                      .filter_parts = 2};
static const struct rates one_wide = {WIDE,
                                      .far_step = 1, /* half a rate hides it */
                                      .across = {0, 1.5},
                                      .rows_far = 6,
                                      .turned_share = 0.94,
                                      .block_share = 0.98,
                                      .along_pack = {0.5, 1, 3},
                                      .filter_share = 0.75, /* loads are hidden */
                                      .filter_near = 0.92,
                                      .filter_parts = 4};
static const struct rates narrow = {.tiles = narrow_tiles,
                                    .far_step = 1,
                                    .fetch = 0.3,
                                    .crowded = {{5, 5, 7}, {6.6, 8, 13.9}},
                                    .across = {0.3, 3},
                                    .rows_far = 0.5,
                                    .own = {6, 2, 0},
                                    .own_both = {4, 2, 5.2},
                                    .own_share = 0.88,
                                    .own_ends = 126,
                                    .pack = {2, 2.5, 3.5},
                                    .plain_rows = 4,
                                    .streamed_rows = 8,
                                    .block_share = 0.98,
                                    .block_line = {2.5, 14, 18},
                                    .ends = {0.05, 0.4},
                                    .along_pack = {1, 1.5, 2.3},
                                    .along_ends = 100,
                                    .turned_share = 0.92,
                                    .turned_copy = 0.8,
                                    .turned_store = 1.2,
                                    .turned_far = 0.15,
                                    .filter_share = 0.65,
                                    .filter_pack = 0.9,
                                    .filter_near = 0.45,
                                    .filter_parts = 2,
                                    .filter_far = 0.35,
                                    .filter_apart = 0.35,
                                    .filter_pixel = 1024,
                                    .filter_crowded = 0.7};

const struct rates *rates_of(const struct machine *machine) {
  return machine->fma_rate <= 1 ? &one_wide : machine->registers < 32 ? &narrow : &two_wide;
}
