/* dataset_interleave.c: elements become datasets, a few of which are read in turn. In TensorFlow's parallel kinds those whose turn comes
 * next are opened, and read ahead, before it comes: the order is that of the turns all the same. */
#include <stdlib.h>
#include <string.h>

#include "runtime/data/dataset.h"
#include "runtime/data/parallel_calls.h"
#include "runtime/data/read_ahead.h"

#define CYCLE_MAX 4096
#define CYCLE_AUTO 8      /* when TensorFlow may choose */
#define AHEAD_AUTO_MAX 64 /* elements of one dataset */

/* A dataset that is read, or why there is none. */
struct lane {
  bool is_taken;
  struct cursor *cursor;    /* NULL: free, or failed */
  struct read_ahead *ahead; /* of the cursor; NULL: it is read when it is asked */
  struct kept_status error; /* failed: until its turn */
};
struct interleave_state {
  struct lane *lanes; /* cycle of them */
  int64_t cycle, block, at, in_block, open_count;
  int64_t span, ahead; /* how many lanes, from the one whose turn it is, are opened; elements that are read ahead, 0: none */
  bool source_ended, is_parallel;
};

/* The inputs behind the captured values of a kind, by number from there; NONE: it has no such input. */
#define NONE UINT32_MAX
struct interleave_inputs {
  const char *op;
  uint32_t cycle, block, at_once, buffer;
  bool may_choose; /* a cycle_length of -1: as TensorFlow's AUTOTUNE likes it */
};
static const struct interleave_inputs input_places[] = {
  {"FlatMapDataset", NONE, NONE, NONE, NONE, false},    {"InterleaveDataset", 0, 1, NONE, NONE, true},
  {"ParallelInterleaveDataset", 0, 1, NONE, 3, false},  {"LegacyParallelInterleaveDatasetV2", 0, 1, NONE, 2, false},
  {"ParallelInterleaveDatasetV2", 0, 1, 2, NONE, true}, {"ParallelInterleaveDatasetV3", 0, 1, 2, NONE, true},
  {"ParallelInterleaveDatasetV4", 0, 1, 4, 2, true},
};

static const struct interleave_inputs *inputs_of(const struct dataset *d) {
  const struct interleave_inputs *found = input_places;
  while (strcmp(found->op, d->kind->op) != 0)
    found++;
  return found;
}

/* One of those inputs; `otherwise` when the kind has none. */
static status input_at(const struct dataset *d, uint32_t place, const char *what, int64_t otherwise, int64_t *out) {
  *out = otherwise;
  return place == NONE ? OK : dataset_int(d, dataset_capture_count(d) + place, what, out);
}

/* ---- lanes ---- */

static void lane_close(struct lane *lane) {
  read_ahead_destroy(lane->ahead);
  cursor_destroy(lane->cursor);
  status_drop(&lane->error);
  *lane = (struct lane){0};
}

static void interleave_stop(struct cursor *c) {
  struct interleave_state *s = c->state;
  for (int64_t i = 0; s->lanes && i < s->cycle; i++)
    lane_close(&s->lanes[i]);
  free(s->lanes);
}

/* The dataset that the function makes of the next element; none is left: no cursor. */
static status lane_read_source(struct cursor *c, const struct dataset_run *run, struct cursor **out) {
  struct interleave_state *s = c->state;
  struct tensor *element[DATASET_COMPONENTS_MAX], *handle;
  uint32_t count = c->dataset->sources[0]->component_count;
  TRY(cursor_source_next(c, 0, run, element, &s->source_ended));
  if (s->source_ended)
    return OK;
  status result = dataset_call(c->dataset, run, element, count, 0, &handle, 1);
  element_release(element, count);
  TRY(result);
  struct dataset *dataset = dataset_of(handle);
  result = dataset && dataset->component_count == c->dataset->component_count
           ? cursor_create(dataset, out)
           : fail(INVALID_ARGUMENT, "The function must return a dataset of %u components", c->dataset->component_count);
  tensor_release(handle);
  return result;
}

/* In the parallel kinds a lane that cannot be opened is taken, too: all it gives is the error, in its turn. */
static status lane_open(struct cursor *c, const struct dataset_run *run, struct lane *lane) {
  struct interleave_state *s = c->state;
  status result = lane_read_source(c, run, &lane->cursor);
  if (result != OK && (!s->is_parallel || result == CANCELLED))
    return result;
  if (result != OK)
    lane->error = status_keep(result);
  lane->is_taken = lane->cursor || result != OK;
  s->open_count += lane->is_taken;
  if (lane->cursor && s->ahead > 0 && s->open_count <= PARALLEL_CALLS_MAX &&
      read_ahead_create(lane->cursor, s->ahead, run, &lane->ahead) != OK)
    lane->ahead = NULL; /* then it is read when it is asked */
  return OK;
}

/* Lanes are opened in the order of their turns, as if each was opened in its turn. */
static status open_lanes(struct cursor *c, const struct dataset_run *run) {
  struct interleave_state *s = c->state;
  for (int64_t k = 0; k < s->span && !s->source_ended; k++) {
    struct lane *lane = &s->lanes[(s->at + k) % s->cycle];
    if (!lane->is_taken)
      TRY(lane_open(c, run, lane));
  }
  return OK;
}

/* ---- turns ---- */

static status interleave_start(struct cursor *c) {
  struct interleave_state *s = c->state;
  const struct interleave_inputs *in = inputs_of(c->dataset);
  s->is_parallel = in->at_once != NONE || in->buffer != NONE;
  int64_t at_once, threads;
  TRY(input_at(c->dataset, in->cycle, "cycle_length", 1, &s->cycle));
  TRY(input_at(c->dataset, in->block, "block_length", 1, &s->block));
  TRY(input_at(c->dataset, in->at_once, "num_parallel_calls", -1, &at_once));
  TRY(input_at(c->dataset, in->buffer, "buffer_output_elements", -1, &s->ahead));
  s->cycle = s->cycle == -1 ? CYCLE_AUTO : s->cycle;
  threads = at_once == -1 ? s->cycle : at_once;
  s->span = !s->is_parallel ? 1 : threads < s->cycle ? threads : s->cycle;
  s->span = s->span < PARALLEL_CALLS_MAX ? s->span : PARALLEL_CALLS_MAX;
  if (s->ahead == -1)
    s->ahead = !s->is_parallel ? 0 : s->block < AHEAD_AUTO_MAX / 2 ? 2 * s->block : AHEAD_AUTO_MAX;
  s->lanes = calloc((size_t)s->cycle, sizeof *s->lanes);
  return s->lanes ? OK : fail(RESOURCE_EXHAUSTED, "no memory for an iterator");
}

static void turn(struct interleave_state *s) {
  s->in_block = 0;
  s->at = (s->at + 1) % s->cycle;
}

static status lane_next(struct lane *lane, const struct dataset_run *run, struct tensor **out, bool *end) {
  *end = !lane->cursor;
  if (!lane->cursor)
    return status_tell(&lane->error);
  return lane->ahead ? read_ahead_next(lane->ahead, run, out, end) : cursor_next(lane->cursor, run, out, end);
}

/* An error is an element of its block in the parallel kinds; in the others it takes no place. */
static status interleave_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct interleave_state *s = c->state;
  if (!s->lanes)
    TRY(interleave_start(c));
  for (;;) {
    TRY(open_lanes(c, run));
    *end = s->source_ended && s->open_count == 0;
    if (*end)
      return OK;
    struct lane *lane = &s->lanes[s->at];
    status result = OK;
    bool is_over = true;
    if (lane->is_taken)
      result = lane_next(lane, run, out, &is_over);
    if (result == CANCELLED || (result != OK && !s->is_parallel))
      return result;
    if (result != OK || !is_over) {
      if (++s->in_block == s->block)
        turn(s);
      return result;
    }
    s->open_count -= lane->is_taken;
    lane_close(lane);
    turn(s);
  }
}

static status interleave_check(const struct dataset *d) {
  const struct interleave_inputs *in = inputs_of(d);
  int64_t cycle, block, at_once, buffer;
  TRY(input_at(d, in->cycle, "cycle_length", 1, &cycle));
  TRY(input_at(d, in->block, "block_length", 1, &block));
  TRY(input_at(d, in->at_once, "num_parallel_calls", -1, &at_once));
  TRY(input_at(d, in->buffer, "buffer_output_elements", -1, &buffer));
  if (cycle < 1 && !(in->may_choose && cycle == -1))
    return fail(INVALID_ARGUMENT, "`cycle_length` must be > 0");
  if (block < 1)
    return fail(INVALID_ARGUMENT, "`block_length` must be > 0");
  if (buffer < 1 && buffer != -1)
    return fail(INVALID_ARGUMENT, "`buffer_output_elements` must be > 0");
  if (at_once < 1 && at_once != -1)
    return fail(INVALID_ARGUMENT, "num_parallel_calls must be greater than zero.");
  if (cycle != -1 && at_once > cycle)
    return fail(INVALID_ARGUMENT,
                "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either `tf.data.AUTOTUNE` or a value "
                "less than or equal to `cycle_length`. However, `num_parallel_calls` is %lld and `cycle_length` is %lld",
                (long long)at_once, (long long)cycle);
  return cycle <= CYCLE_MAX ? OK : fail(UNIMPLEMENTED, "a cycle_length of %lld", (long long)cycle);
}

#define INTERLEAVE(op, how_many) \
  { op, sizeof(struct interleave_state), interleave_next, interleave_stop, interleave_check, .size = how_many }

const struct dataset_kind dataset_interleaves[] = {
  INTERLEAVE("FlatMapDataset", NULL),
  INTERLEAVE("InterleaveDataset", NULL),
  INTERLEAVE("ParallelInterleaveDataset", NULL),
  INTERLEAVE("LegacyParallelInterleaveDatasetV2", NULL),
  INTERLEAVE("ParallelInterleaveDatasetV2", dataset_size_infinite),
  INTERLEAVE("ParallelInterleaveDatasetV3", dataset_size_infinite),
  INTERLEAVE("ParallelInterleaveDatasetV4", dataset_size_infinite),
  {0},
};
