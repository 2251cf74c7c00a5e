/* dataset_order.c: datasets that choose among elements or change their order, but not the elements. */
#include <stdlib.h>
#include <string.h>

#include "runtime/data/dataset.h"

struct count_state {
  int64_t at;
};

static status threads_check(const struct dataset *d) {
  int64_t count;
  TRY(dataset_int(d, 0, "the number of threads", &count));
  return count >= 0 ? OK
                    : fail(INVALID_ARGUMENT, "%s must be >= 0", d->kind->op[0] == 'M' ? "`max_intra_op_parallelism`" : "`num_threads`");
}

static status count_check(const struct dataset *d) {
  int64_t count;
  return dataset_int(d, 0, "count", &count);
}

static status take_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  int64_t count;
  TRY(dataset_int(c->dataset, 0, "count", &count));
  *end = count >= 0 && s->at >= count;
  if (*end)
    return OK;
  TRY(cursor_source_next(c, 0, run, out, end)); /* an element that fails does not count */
  s->at++;
  return OK;
}

/* After an element that fails as many are skipped anew, as in TensorFlow. */
static status skip_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  int64_t count;
  TRY(dataset_int(c->dataset, 0, "count", &count));
  *end = count < 0;
  for (int64_t i = s->at; !*end && i < count; i++) {
    TRY(cursor_source_next(c, 0, run, out, end));
    if (!*end)
      element_release(out, c->dataset->component_count);
  }
  s->at = count;
  return *end ? OK : cursor_source_next(c, 0, run, out, end);
}

/* A source without elements ends even what is repeated for ever. */
struct repeat_state {
  int64_t rounds;
  bool had_element;
};

/* Behind the last round TensorFlow makes an iterator for one more, which nobody reads: what draws seeds when a pass begins has done so. */
static void begin_unread(const struct dataset *d) {
  bool has_turns = strcmp(d->kind->op, "ConcatenateDataset") == 0; /* its second source begins when the first is over */
  if (d->kind->draws)
    atomic_fetch_add(&d->memory->passes, 1);
  for (uint32_t i = 0; !d->kind->draws && !dataset_is_cached(d) && i < d->source_count && (i == 0 || !has_turns); i++)
    begin_unread(d->sources[i]);
}

static status repeat_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct repeat_state *s = c->state;
  int64_t count;
  TRY(dataset_int(c->dataset, 0, "count", &count));
  for (;;) {
    *end = count >= 0 && s->rounds >= count;
    if (*end)
      return OK;
    TRY(cursor_source_next(c, 0, run, out, end));
    if (!*end) {
      s->had_element = true;
      return OK;
    }
    cursor_destroy(c->sources[0]);
    c->sources[0] = NULL;
    s->rounds++;
    if (s->rounds == count)
      begin_unread(c->dataset->sources[0]);
    if (!s->had_element && count < 0)
      return OK;
    s->had_element = false;
  }
}

status dataset_shard_check(const struct dataset *d) {
  int64_t shards, index;
  TRY(dataset_int(d, 0, "num_shards", &shards));
  TRY(dataset_int(d, 1, "index", &index));
  if (shards < 1)
    return fail(INVALID_ARGUMENT, "Number of shards must be greater than zero (currently num_shards = %lld).", (long long)shards);
  return index >= 0 && index < shards
         ? OK
         : fail(INVALID_ARGUMENT, "Index must be between 0 and %lld (currently index = %lld).", (long long)shards - 1, (long long)index);
}

static status shard_check(const struct dataset *d) {
  int64_t shards;
  TRY(dataset_int(d, 0, "num_shards", &shards));
  return shards == DATASET_SHARD_HINT ? OK : dataset_shard_check(d);
}

/* Passes by `count` elements, or to the end. Where one of them fails, as many are passed by anew, as in TensorFlow. */
static status shard_pass(struct cursor *c, const struct dataset_run *run, int64_t count, bool *end) {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  *end = false;
  for (int64_t i = 0; i < count && !*end; i++) {
    TRY(cursor_source_next(c, 0, run, element, end));
    if (!*end)
      element_release(element, c->dataset->component_count);
  }
  ((struct count_state *)c->state)->at += *end ? 0 : count;
  return OK;
}

/* require_non_empty: the other shards have elements, too. Those that an AutoShardDataset made always have. */
static status shard_check_others(struct cursor *c, const struct dataset_run *run, int64_t shards) {
  int64_t at = ((struct count_state *)c->state)->at;
  bool end = false, is_implied = strstr(program_text(c->dataset->words.program, c->dataset->words.instr->tf_op), "AutoShard") != NULL;
  if (at < shards && host_attr_int(&c->dataset->words, "require_non_empty", is_implied))
    TRY(shard_pass(c, run, shards - at, &end));
  return end ? fail(INVALID_ARGUMENT, "the dataset has only %lld elements, which is not enough for the required %lld shards", (long long)at,
                    (long long)shards)
             : OK;
}

static status shard_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  int64_t shards = host_scalar_int(c->dataset->inputs[0]), index = host_scalar_int(c->dataset->inputs[1]);
  if (shards == DATASET_SHARD_HINT)
    return fail(FAILED_PRECONDITION, "`tf.data.Dataset.shard(SHARD_HINT, ...)` can only be used with `AutoShardPolicy.HINT`");
  TRY(shard_pass(c, run, index - s->at % shards + (index < s->at % shards ? shards : 0), end));
  if (*end)
    return OK;
  TRY(cursor_source_next(c, 0, run, out, end));
  if (*end)
    return OK;
  s->at++;
  status result = shard_check_others(c, run, shards);
  if (result != OK)
    element_release(out, c->dataset->component_count);
  return result;
}

/* ---- how many ---- */

static int64_t take_size(const struct dataset *d) {
  int64_t n = dataset_size_of_source(d), count = host_scalar_int(d->inputs[0]);
  if (n == DATASET_UNKNOWN)
    return n;
  return n == DATASET_INFINITE ? count : count == DATASET_INFINITE ? n : n < count ? n : count;
}

static int64_t skip_size(const struct dataset *d) {
  int64_t n = dataset_size_of_source(d), count = host_scalar_int(d->inputs[0]);
  return n < 0 ? n : count < 0 || n < count ? 0 : n - count;
}

static int64_t repeat_size(const struct dataset *d) { return dataset_size_repeated(d, host_scalar_int(d->inputs[0])); }

static int64_t shard_size(const struct dataset *d) {
  int64_t n = dataset_size_of_source(d), shards = host_scalar_int(d->inputs[0]);
  return n < 0 ? n : n / shards + (host_scalar_int(d->inputs[1]) < n % shards);
}

static bool skip_has_places(const struct dataset *d) { return host_scalar_int(d->inputs[0]) >= 0; }

static bool repeat_has_places(const struct dataset *d) { return host_scalar_int(d->inputs[0]) > 0; }

const struct dataset_kind dataset_orders[] = {
  {"FinalizeDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source, .batch = dataset_batch_finalized},
  {"OptimizeDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source},
  {"OptimizeDatasetV2", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source},
  {"NonSerializableDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source},
  {"LatencyStatsDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source},
  {"BytesProducedStatsDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source},
  {"MaxIntraOpParallelismDataset", 0, cursor_pass_next, NULL, threads_check, .size = dataset_size_of_source},
  {"PrivateThreadPoolDataset", 0, cursor_pass_next, NULL, threads_check, .size = dataset_size_of_source},
  {"ThreadPoolDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source},
  {"OptionsDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source, .batch = dataset_batch_of_source,
   .has_places = dataset_has_places},
  {"ModelDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source, .batch = dataset_batch_of_source},
  {"RewriteDataset", 0, cursor_pass_next, NULL, NULL, .size = dataset_size_of_source},
  {"TakeDataset", sizeof(struct count_state), take_next, NULL, count_check, .size = take_size, .batch = dataset_batch_of_source,
   .has_places = dataset_has_places},
  {"SkipDataset", sizeof(struct count_state), skip_next, NULL, count_check, .size = skip_size, .batch = dataset_batch_of_source,
   .has_places = skip_has_places},
  {"RepeatDataset", sizeof(struct repeat_state), repeat_next, NULL, count_check, .size = repeat_size, .batch = dataset_batch_of_source,
   .has_places = repeat_has_places},
  {"ShardDataset", sizeof(struct count_state), shard_next, NULL, shard_check, .size = shard_size, .batch = dataset_batch_of_source,
   .has_places = dataset_has_places},
  {0},
};
