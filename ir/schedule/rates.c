/* rates.c: see rates.h. Measured with bench_kernel and bench_schedule: of two multiply-adds of 512-bit vectors a cycle on a Xeon of
 * 2023 or later, of those that loads hold up on an Ice Lake, of those with a fast second cache on a Zen 5, of one multiply-add on servers
 * of several makers, of 256-bit ones on a Zen 3. */
#include "ir/schedule/rates.h"

#include <float.h>

#define TILE(rows, vectors, step) \
  { rows, vectors, step, false }
static const struct tile wide_tiles[] = {TILE(2, 8, 12.4), TILE(4, 4, 10),  TILE(6, 4, 12),  TILE(8, 3, 13.1), TILE(12, 2, 15.2),
                                         TILE(8, 2, 9.4),  TILE(2, 4, 7.1), TILE(4, 3, 8.2), TILE(6, 2, 7.7),  TILE(0, 0, 0)};
static const struct tile held_tiles[] = {TILE(2, 8, 14),  TILE(4, 4, 9.2), TILE(6, 4, 12.2), TILE(8, 3, 12),  TILE(12, 2, 13.3),
                                         TILE(8, 2, 9.5), TILE(2, 4, 7.6), TILE(4, 3, 6.9),  TILE(6, 2, 7.8), TILE(0, 0, 0)};
static const struct tile fed_tiles[] = {TILE(2, 8, 8.4), TILE(4, 4, 8.2), TILE(6, 4, 12.2), TILE(8, 3, 12.2), TILE(12, 2, 12.7),
                                        TILE(8, 2, 8.1), TILE(2, 4, 4.6), TILE(4, 3, 6.3),  TILE(6, 2, 6.15), TILE(0, 0, 0)};
static const struct tile narrow_tiles[] = {TILE(2, 4, 4.6), TILE(4, 3, 6.6), TILE(6, 2, 6.15), TILE(4, 2, 4.2), TILE(0, 0, 0)};

#define STREAM_TILES .stream_tiles = {{4, 8}, {4, 8}}
/* What is alike for 512-bit vectors. */
#define WIDE .turned_square = 0.3, .filter_pixel = DBL_MAX, .filter_crowded = 1
/* Far images of a depthwise filter. */
#define TAPS_PARTED(power, from) .taps_parted = power, .taps_far = from
#define TAPS_WHOLE TAPS_PARTED(0, 1) /* not measured */
/* What is usual. */
#define USUAL \
  STREAM_TILES, .pages = 1536, .stream_least = 0.25, .stream_most = 4, .stream_row = 1024, .pages_stream = true, .streamed_share = 0.8
/* Two multiply-adds a cycle, of a mesh that brings a far line in nine cycles, and in sixteen one that lies a page behind the one before. */
#define MESHED                                                                                                                             \
  WIDE, USUAL, .streamed_rows = 2, .far_step = 1.25, .fetch = 1.6, .unaligned = 0.83, .crowded = {{0, 0.2, 2.6}, {0.3, 7, 3}},             \
               .streamed_line = 8, .across_kept = 0.35, .rows_far = 2.4, .line = {5.3, 0.5}, .result = {7.6, 1}, .once_far = 8,            \
               .gather = {1, 2.5, 1.8}, .plain_ends = 20, .panel_share = 0.97, .panel_line = {4, 2}, .block_share = 0.92,                  \
               .block_line = {7.4, 15, 18.5}, .narrow_share = 0.97, .asking_rows = 96, .block_turned = 0.02, .block_rows = {0.4, 1},       \
               .ends = {0.13, 0.1}, .turned_split = 0.35, .turned_share = 0.85, .turned_store = 0.7, .turned_far = 0.11,                   \
               .crossed_square = 95, .conv_apart = 0.89, .conv_second = 0.1, .conv_strip = 0.85, .filter_near = 0.53, .filter_parts = 1.2, \
               .filter_far = 0.15, .filter_stream = 0.84, .filter_apart = 0.9, .filter_line = {6, 14}, TAPS_PARTED(0.4, 0.5)
static const struct rates two_wide = {MESHED,
                                      .plain_rows = 8,
                                      .tiles = wide_tiles,
                                      .across = {0.9, 0.9},
                                      .across_comes = {30, 0},
                                      .far_line = 10,
                                      .stream_wait = {0, 45},
                                      .stream_line = {0, 50},
                                      .waiting_line = {10, 10},
                                      .waiting_crowd = {2.8, 3.2, 5.5},
                                      .page = 6,
                                      .plain_share = 0.85,
                                      .narrow_line = {{5, 9, 15.5}, {5, 2.9, 6}},
                                      .turned_copy = 1.2,
                                      .conv_pair = {10.2, 14}}; /* 8.6 where nobody else asks that cache, when a copy is as fast */
/* The same where loads hold up multiply-adds, and elements that are transposed one by one take longer. */
static const struct rates held_wide = {MESHED,
                                       .plain_rows = 5,
                                       .tiles = held_tiles,
                                       .across = {3, 3},
                                       .across_comes = {30, 24},
                                       .page = 10,
                                       .plain_share = 0.78,
                                       .narrow_line = {{5, 9, 15.5}, {5, 8, 9}},
                                       .turned_copy = 3,
                                       .conv_pair = {13, 16}};
static const struct rates fed_wide = {WIDE,
                                      TAPS_WHOLE,
                                      USUAL,
                                      .plain_rows = 8,
                                      .turned_copy = 1.2,
                                      .tiles = fed_tiles,
                                      .unaligned = 1,
                                      .far_step = 1,
                                      .fetch = 0.2,
                                      .crowded = {{1, 1, 1.5}, {4, 4.5, 7}},
                                      .streamed_line = 3.4,
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
                                      .panel_share = 0.985,
                                      .block_share = 0.985,
                                      .block_line = {1.5, 4, 8},
                                      .stays_line = {{0, 0.25, 1.3}}, /* measured on a Zen 5 alone */
                                      .block_turned = 0.05,
                                      .block_rows = {0.33, 0.33},
                                      .ends = {0.1, 0.1},
                                      .turned_share = 0.95,
                                      .turned_store = 2,
                                      .turned_far = 0.08,
                                      .crossed_square = 48,
                                      .filter_near = 0.78,
                                      .filter_parts = 2,
                                      .filter_far = 0.65,
                                      .filter_stream = 0.93,
                                      .filter_apart = 0.45,
                                      .conv_apart = 0.45,
                                      .conv_pair = {8.5, 15},
                                      .conv_strip = 1};
static const struct rates one_wide = {WIDE,
                                      TAPS_WHOLE,
                                      .plain_rows = 8,
                                      .tiles = wide_tiles,
                                      .turned_copy = 1.2,
                                      .unaligned = 1,
                                      .far_step = 1, /* half a rate hides it */
                                      .streamed_line = 3.4,
                                      .streamed_rows = 8,
                                      .streamed_share = 0.65,
                                      .stream_tiles = {{8, 4}, {16, 8}},
                                      .streams_come = 4,
                                      .across = {0, 0.5},
                                      .across_kept = 0.75, /* beside the second factor and what the step has there */
                                      .rows_far = 1.5,
                                      .stream_least = 0.125,
                                      .stream_most = 2, /* in a step they do, alone they stay in L3 */
                                      .stream_row = 768,
                                      .stream_wait = {45, 45},
                                      .stream_line = {10, 10},
                                      .pages = 3072, /* of a Zen 4 */
                                      .page = 20,
                                      .line = {4, 3},
                                      .lost_term = {6, 11, 15},
                                      .lost_line = 1.4,
                                      .result = {14, 6},
                                      .batches_leave = true,
                                      .gather = {0.5, 1, 1},
                                      .plain_share = 0.7,
                                      .plain_ends = 40,
                                      .panel_stream = 2.65,
                                      .panel_share = 0.985,
                                      .block_share = 0.98,
                                      .stays_line = {{0}, {0.2}},
                                      .narrow_share = 0.98,
                                      .narrow_asks = true,
                                      .asking_rows = 512,
                                      .narrow_line = {{0}, {2.5, 3, 4}},
                                      .sparse_row = 3072,
                                      .block_line = {2.5, 8, 18},
                                      .block_turned = 0.2,
                                      .block_rows = {0.4, 1},
                                      .ends = {1, 1},
                                      .turned_share = 0.94,
                                      .turned_store = 2, /* those of a vector lie apart */
                                      .turned_far = 0.35,
                                      .crossed_square = 90, /* not measured */
                                      .conv_apart = 0.62,
                                      .conv_pair = {8.5, 15},
                                      .conv_strip = 1,
                                      .filter_near = 0.92,
                                      .filter_parts = 4,
                                      .filter_far = 0.65,
                                      .filter_stream = 0.93, /* not used */
                                      .filter_apart = 0.62};
static const struct rates narrow = {USUAL,
                                    TAPS_WHOLE,
                                    .tiles = narrow_tiles,
                                    .unaligned = 1,
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
                                    .streamed_line = 3.4,
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
                                    .conv_pair = {8.5, 15},
                                    .conv_strip = 1,
                                    .filter_near = 0.45,
                                    .filter_parts = 2,
                                    .filter_far = 0.35,
                                    .filter_stream = 0.93,
                                    .filter_apart = 0.35,
                                    .filter_pixel = 1024,
                                    .filter_crowded = 0.7};

const struct rates *rates_of(const struct machine *machine) {
  if (machine->registers < 32)
    return &narrow;
  return machine->fma_rate <= 1                               ? &one_wide
       : tile_loads_hold(machine)                             ? &held_wide
       : machine->bandwidth[LEVEL_L2] < machine->vector_bytes ? &two_wide
                                                              : &fed_wide;
}
