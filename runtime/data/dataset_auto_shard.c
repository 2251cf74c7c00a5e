/* dataset_auto_shard.c: datasets that are shared out to workers. As TensorFlow's rewriting of graphs does it, a dataset is changed when it
 * is made: an AutoShardDataset passes on what its source gives, and somewhere among the sources is a shard that was not there. By files it
 * stands in front of what reads them, so that each worker reads files of its own; by data at the end. */
#include <string.h>

#include "runtime/data/dataset.h"

enum { POLICY_OFF = -1, POLICY_AUTO = 0, POLICY_FILE = 1, POLICY_DATA = 2, POLICY_HINT = 3 };

/* ---- kinds, in any of their versions ---- */

/* Their elements come one by one out of the first source: a shard in front of it is one of what they give. */
static const char *const passing[] = {"BatchDataset",       "CacheDataset",
                                      "FilterDataset",      "FinalizeDataset",
                                      "MapAndBatchDataset", "MapDataset",
                                      "ModelDataset",       "MaxIntraOpParallelismDataset",
                                      "OptimizeDataset",    "OptionsDataset",
                                      "PaddedBatchDataset", "ParallelBatchDataset",
                                      "ParallelMapDataset", "ParseExampleDataset",
                                      "PrefetchDataset",    "PrivateThreadPoolDataset",
                                      "RebatchDataset",     "RepeatDataset",
                                      "ShardDataset",       "ShuffleAndRepeatDataset",
                                      "ShuffleDataset",     "SkipDataset",
                                      "TakeDataset",        "UnbatchDataset",
                                      "WindowDataset",      NULL};
static const char *const flattening[] = {"FlatMapDataset", "InterleaveDataset", "LegacyParallelInterleaveDataset",
                                         "ParallelInterleaveDataset", NULL};

static bool is_one_of(const struct dataset *d, const char *const *names) {
  for (; *names; names++) {
    size_t length = strlen(*names);
    const char *rest = d->kind->op + length;
    if (strncmp(d->kind->op, *names, length) == 0 && (*rest == 0 || (*rest == 'V' && rest[1] >= '0' && rest[1] <= '9')))
      return true;
  }
  return false;
}

/* ---- copies with other sources; each gives a reference ---- */

struct rewriting {
  const struct dataset *maker; /* the AutoShardDataset */
  struct dataset *shuffle;     /* of those that were left out the one furthest from the end */
};

typedef status rewrite(struct dataset *d, struct rewriting *r, struct dataset **out);

/* With each source rewritten. */
static status copy_rewritten(const struct dataset *d, struct rewriting *r, rewrite *rewrite_source, struct dataset **out) {
  TRY(dataset_copy(d, out));
  for (uint32_t i = 0; i < d->source_count; i++) {
    struct dataset *source;
    status result = rewrite_source(d->sources[i], r, &source);
    if (result != OK) {
      dataset_release(*out);
      return result;
    }
    dataset_release((*out)->sources[i]);
    (*out)->sources[i] = source;
  }
  return OK;
}

/* Made from `source`, the reference to which is taken, whatever comes of it. */
static status copy_of(const struct dataset *d, struct dataset *source, struct dataset **out) {
  struct dataset *copy;
  status result = dataset_copy(d, &copy);
  if (result != OK) {
    dataset_release(source);
    return result;
  }
  dataset_release(copy->sources[0]);
  copy->sources[0] = source;
  *out = copy;
  return OK;
}

/* Of the elements of `source` those of this worker; the reference to it is taken. */
static status shard_of(struct dataset *source, const struct rewriting *r, struct dataset **out) {
  uint32_t components = source->component_count;
  TRY(copy_of(r->maker, source, out));
  (*out)->kind = dataset_kind_find("ShardDataset");
  (*out)->component_count = components;
  return OK;
}

static status without_shuffles(struct dataset *d, struct rewriting *r, struct dataset **out) {
  static const char *const names[] = {"ShuffleDataset", NULL};
  if (!is_one_of(d, names))
    return copy_rewritten(d, r, without_shuffles, out);
  r->shuffle = d;
  return without_shuffles(d->sources[0], r, out);
}

/* With a shard in front of it. What was shuffled before is shuffled behind the shard: workers must not choose from different orders. */
static status shard_before(struct dataset *d, struct rewriting *r, struct dataset **out) {
  struct dataset *source;
  r->shuffle = NULL;
  TRY(without_shuffles(d->sources[0], r, &source));
  TRY(shard_of(source, r, &source));
  if (r->shuffle)
    TRY(copy_of(r->shuffle, source, &source));
  return copy_of(d, source, out);
}

/* ---- by files ---- */

/* Whether it gives datasets that are elements of its source: a pipeline made from several. */
static bool flattens_datasets(const struct dataset *d) {
  static const char *const names[] = {"TensorSliceDataset", "TensorDataset", NULL};
  const struct dataset *source = is_one_of(d, flattening) ? d->sources[0] : NULL;
  return source && is_one_of(source, names) && source->input_count && source->inputs[0]->count && dataset_at(source->inputs[0], 0);
}

/* With a shard behind one among its sources that flattens datasets, with only passing kinds between; *out is NULL where there is none. */
static status shard_flattened(struct dataset *d, struct rewriting *r, struct dataset **out) {
  struct dataset *source = d->sources[0];
  *out = NULL;
  if (flattens_datasets(source))
    return shard_before(d, r, out);
  if (!is_one_of(source, passing))
    return OK;
  TRY(shard_flattened(source, r, &source));
  return source ? copy_of(d, source, out) : OK;
}

/* NOT_FOUND: it does not get names of files from a dataset. The number of elements that somebody vouched for no longer holds. */
static status by_files(struct dataset *d, struct rewriting *r, struct dataset **out) {
  static const char *const asserting[] = {"AssertCardinalityDataset", NULL}, *const joining[] = {"ConcatenateDataset", "ZipDataset", NULL};
  bool is_flattening = is_one_of(d, flattening);
  if (is_one_of(d, asserting))
    return by_files(d->sources[0], r, out);
  if (!is_flattening && !is_one_of(d, passing) && !is_one_of(d, joining))
    return fail(NOT_FOUND, "Did not find a shardable source, walked to '%s' (%s), which gets no names of files from a dataset",
                host_node_name(&d->words), d->kind->op);
  *out = NULL;
  if (is_flattening)
    TRY(shard_flattened(d, r, out));
  if (*out)
    return OK;
  return host_attr_int(&d->words, "reads_files", 0) ? shard_before(d, r, out) : copy_rewritten(d, r, by_files, out);
}

/* ---- by hints ---- */

static status by_hints(struct dataset *d, struct rewriting *r, struct dataset **out) {
  static const char *const names[] = {"ShardDataset", NULL};
  if (!is_one_of(d, names) || host_scalar_int(d->inputs[0]) != DATASET_SHARD_HINT)
    return copy_rewritten(d, r, by_hints, out);
  struct dataset *source;
  TRY(by_hints(d->sources[0], r, &source));
  return shard_of(source, r, out);
}

/* ---- AutoShardDataset ---- */

static status by_policy(struct dataset *d, int64_t policy, struct dataset **out) {
  struct rewriting r = {.maker = d};
  struct dataset *source = d->sources[0];
  if (policy == POLICY_HINT)
    return by_hints(source, &r, out);
  status result = policy == POLICY_DATA ? NOT_FOUND : by_files(source, &r, out);
  if (policy == POLICY_FILE || result != NOT_FOUND)
    return result;
  dataset_retain(source);
  return shard_of(source, &r, out);
}

static status auto_shard_rewrite(struct dataset *d) {
  int64_t policy = host_attr_int(&d->words, "auto_shard_policy", POLICY_AUTO);
  struct dataset *source = d->sources[0];
  TRY(dataset_shard_check(d));
  if (policy == POLICY_OFF || host_scalar_int(d->inputs[0]) == 1)
    return OK;
  TRY(by_policy(d, policy, &source));
  dataset_release(d->sources[0]);
  d->sources[0] = source;
  return OK;
}

const struct dataset_kind dataset_auto_shards[] = {
  {"AutoShardDataset", 0, cursor_pass_next, .rewrite = auto_shard_rewrite, .size = dataset_size_of_source},
  {0},
};
