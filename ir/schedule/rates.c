/* rates.c: see rates.h. Measured with bench_kernel and bench_schedule; of 512-bit vectors on servers of several makers, of those with a
 * fast second cache on a Zen 5, of 256-bit ones on a Zen 3. */
#include "ir/schedule/rates.h"

#include <float.h>

/* What is alike for all. */
#define ANY .waiting = 8, .conv_pair = {8.5, 15}

static const struct tile wide_tiles[] = {{2, 8, 14.8}, {4, 4, 10.4}, {6, 4, 13.8}, {8, 3, 13.8}, {12, 2, 15.2},
                                         {8, 2, 11},   {2, 4, 7.4},  {4, 3, 7.8},  {6, 2, 7.8},  {0, 0, 0}};
static const struct tile fed_tiles[] = {{2, 8, 8.4}, {4, 4, 8.2}, {6, 4, 12.2}, {8, 3, 12.2}, {12, 2, 12.7},
                                        {8, 2, 8.1}, {2, 4, 4.6}, {4, 3, 6.3},  {6, 2, 6.15}, {0, 0, 0}};
static const struct tile narrow_tiles[] = {{2, 4, 4.6}, {4, 3, 6.6}, {6, 2, 6.15}, {4, 2, 4.2}, {0, 0, 0}};

/* What is alike for 512-bit vectors; turned_square was measured on a Zen 5 alone. */
#define WIDE                                                                                                           \
  ANY, .plain_rows = 8, .turned_copy = 1.2, .turned_store = 2 /* those of a vector lie apart */, .turned_square = 0.3, \
       .filter_pixel = DBL_MAX, .filter_crowded = 1
/* And where caches lag behind multiply-adds, whether one of them starts in a cycle or two. */
#define LAGGING                                                                                                                       \
  WIDE, .tiles = wide_tiles, .streamed_rows = 2 /* more hide the lines that they wait for */, .turned_far = 0.35, .filter_far = 0.65, \
        .filter_apart = 0.62, .block_line = {2.5, 8, 18}, .ends = {1, 1}, .page = 20, .across_kept = 1, .conv_apart = 0.62,           \
        .line = {4, 3}, .plain_share = 0.7, .plain_ends = 40, .gather = {0.5, 1, 1}, .block_turned = 0.2, .block_rows = {0.4, 0.7},   \
        .crossed_square = 90 /* not measured */

static const struct rates two_wide = {LAGGING,
                                      .far_step = 1.25,
                                      .fetch = 1.5,
                                      .turned_share = 0.88,
                                      .block_share = 0.87, /* two vectors of columns are as good as three there */
                                      .filter_near = 0.78,
                                      .filter_parts = 2};
static const struct rates fed_wide = {WIDE,
                                      .tiles = fed_tiles,
                                      .far_step = 1,
                                      .fetch = 0.2,
                                      .crowded = {{1, 1, 1.5}, {4, 4.5, 7}},
                                      .across_line = 6,
                                      .across_kept = 0.5,
                                      .page = 2,
                                      .line = {2, 1},
                                      .plain_share = 0.95,
                                      .plain_ends = 10,
                                      .gather = {0.4, 0.9, 0.9},
                                      .hides_lines = true,
                                      .once_far = 3.5,
                                      .streamed_rows = 4,
                                      .block_share = 0.985,
                                      .block_line = {1.5, 4, 8},
                                      .stays_line = {0, 0.25, 1.3}, /* measured on a Zen 5 alone */
                                      .block_turned = 0.05,
                                      .block_rows = {0.33, 0.33},
                                      .ends = {0.1, 0.1},
                                      .turned_share = 0.95,
                                      .turned_far = 0.08,
                                      .crossed_square = 48,
                                      .filter_near = 0.78,
                                      .filter_parts = 2,
                                      .filter_far = 0.65,
                                      .filter_apart = 0.45,
                                      .conv_apart = 0.45};
static const struct rates one_wide = {LAGGING,
                                      .far_step = 1, /* half a rate hides it */
                                      .across = {0, 1.5},
                                      .rows_far = 6,
                                      .result = {14, 6},
                                      .turned_share = 0.94,
                                      .block_share = 0.98,
                                      .filter_near = 0.92,
                                      .filter_parts = 4};
static const struct rates narrow = {ANY,
                                    .tiles = narrow_tiles,
                                    .far_step = 1,
                                    .fetch = 0.3,
                                    .crowded = {{5, 5, 7}, {6.6, 8, 13.9}},
                                    .across = {0.3, 3},
                                    .across_kept = 1,
                                    .rows_far = 0.5,
                                    .page = 20,
                                    .line = {4, 3},
                                    .plain_share = 0.7,
                                    .plain_ends = 40,
                                    .gather = {0.5, 1, 1}, /* not measured */
                                    .plain_rows = 4,
                                    .streamed_rows = 8,
                                    .block_share = 0.98,
                                    .block_line = {2.5, 14, 18},
                                    .block_turned = 0.2,
                                    .block_rows = {0.4, 0.7},
                                    .ends = {0.05, 0.4},
                                    .turned_share = 0.92,
                                    .turned_copy = 0.8,
                                    .turned_store = 1.2,
                                    .turned_far = 0.15,
                                    .turned_square = 0.5, /* not measured, */
                                    .crossed_square = 32, /* nor this */
                                    .conv_apart = 0.62,
                                    .filter_near = 0.45,
                                    .filter_parts = 2,
                                    .filter_far = 0.35,
                                    .filter_apart = 0.35,
                                    .filter_pixel = 1024,
                                    .filter_crowded = 0.7};

const struct rates *rates_of(const struct machine *machine) {
  if (machine->registers < 32)
    return &narrow;
  return machine->fma_rate <= 1 ? &one_wide : machine->bandwidth[LEVEL_L2] < machine->vector_bytes ? &two_wide : &fed_wide;
}
