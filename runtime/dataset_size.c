/* dataset_size.c: how many elements a dataset will give, as far as that is known without looking at them. */
#include <string.h>

#include "runtime/dataset.h"

static int64_t known(const struct dataset *d);

static bool is_one_of(const char *op, const char *const *list) {
  for (; *list; list++)
    if (strcmp(op, *list) == 0)
      return true;
  return false;
}

static int64_t input_of(const struct dataset *d, uint32_t i) { return i < d->input_count ? host_scalar_int(d->inputs[i]) : 0; }

static int64_t range_size(const struct dataset *d) {
  int64_t start = input_of(d, 0), stop = input_of(d, 1), step = input_of(d, 2);
  if (step > 0 ? start >= stop : start <= stop)
    return 0;
  uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t each = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
  return (int64_t)((span - 1) / each + 1);
}

static int64_t repeated(int64_t n, int64_t count) {
  if (count < 0)
    return n == 0 ? 0 : DATASET_INFINITE;
  return count == 0 ? 0 : n < 0 ? n : n * count;
}

static int64_t batched(int64_t n, int64_t size, bool drops) { return n < 0 ? n : n / size + (n % size && !drops); }

static int64_t window_size(const struct dataset *d, int64_t n) {
  int64_t size = input_of(d, 0), shift = input_of(d, 1), rest = n - ((size - 1) * input_of(d, 2) + 1);
  if (n < 0)
    return n;
  return !dataset_bool(d, 3, false) ? n / shift + (n % shift != 0) : rest < 0 ? 0 : rest / shift + 1;
}

/* Of several sources: the shortest, or all together. */
static int64_t zipped(const struct dataset *d) {
  int64_t least = DATASET_INFINITE;
  for (uint32_t i = 0; i < d->source_count; i++) {
    int64_t n = known(d->sources[i]);
    if (n == DATASET_UNKNOWN)
      return n;
    least = n != DATASET_INFINITE && (least == DATASET_INFINITE || n < least) ? n : least;
  }
  return least;
}

static int64_t concatenated(int64_t a, int64_t b) {
  if (a == DATASET_INFINITE || b == DATASET_INFINITE)
    return DATASET_INFINITE;
  return a == DATASET_UNKNOWN || b == DATASET_UNKNOWN ? DATASET_UNKNOWN : a + b;
}

static int64_t taken(int64_t n, int64_t count) {
  if (n == DATASET_UNKNOWN)
    return n;
  return n == DATASET_INFINITE ? count : count == DATASET_INFINITE ? n : n < count ? n : count;
}

/* From the size of the first source. */
static int64_t derived(const struct dataset *d, const char *op, int64_t n) {
  static const char *const passing[] = {
    "PrefetchDataset", "OptionsDataset", "ModelDataset", "RewriteDataset", "CacheDataset", "CacheDatasetV2", "ScanDataset", "FinalizeDataset",
    "OptimizeDataset", "OptimizeDatasetV2", "NonSerializableDataset", "LatencyStatsDataset", "BytesProducedStatsDataset", "SleepDataset",
    "MaxIntraOpParallelismDataset", "GlobalShuffleDataset", "PrivateThreadPoolDataset", "ChooseFastestDataset", NULL };
  static const char *const mapping[] = { "MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", NULL };
  static const char *const batching[] = { "BatchDataset", "BatchDatasetV2", "ParallelBatchDataset", NULL };
  static const char *const shuffling[] = { "ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3", NULL };
  static const char *const spreading[] = { "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4",
                                           "InterleaveDataset", NULL };
  uint32_t captures = (uint32_t)host_attr_int(&d->words, "captures", 0);
  if (is_one_of(op, passing) || is_one_of(op, shuffling))
    return strcmp(op, "ScanDataset") == 0 && !host_attr_int(&d->words, "preserve_cardinality", 0) ? DATASET_UNKNOWN : n;
  if (is_one_of(op, mapping))
    return host_attr_int(&d->words, "preserve_cardinality", 0) ? n : DATASET_UNKNOWN;
  if (is_one_of(op, batching))
    return batched(n, input_of(d, 0), dataset_bool(d, d->input_count - 1, false));
  if (is_one_of(op, spreading))
    return n == DATASET_INFINITE ? n : DATASET_UNKNOWN;
  if (strncmp(op, "PaddedBatch", 11) == 0)
    return batched(n, input_of(d, 0), dataset_bool(d, 1 + 2 * d->component_count, false));
  if (strncmp(op, "MapAndBatch", 11) == 0)
    return host_attr_int(&d->words, "preserve_cardinality", 0) ? batched(n, input_of(d, captures), dataset_bool(d, captures + 2, false))
                                                               : DATASET_UNKNOWN;
  if (strncmp(op, "ShuffleAndRepeat", 16) == 0)
    return repeated(n, input_of(d, 3));
  if (strcmp(op, "RepeatDataset") == 0)
    return repeated(n, input_of(d, 0));
  if (strcmp(op, "TakeDataset") == 0)
    return taken(n, input_of(d, 0));
  if (strcmp(op, "SkipDataset") == 0)
    return n < 0 ? n : input_of(d, 0) < 0 || n < input_of(d, 0) ? 0 : n - input_of(d, 0);
  if (strcmp(op, "ShardDataset") == 0)
    return n < 0 ? n : n / input_of(d, 0) + (input_of(d, 1) < n % input_of(d, 0));
  if (strcmp(op, "WindowDataset") == 0)
    return window_size(d, n);
  return DATASET_UNKNOWN;
}

static int64_t known(const struct dataset *d) {
  const char *op = d->kind->op;
  if (strcmp(op, "RangeDataset") == 0)
    return range_size(d);
  if (strcmp(op, "TensorDataset") == 0)
    return 1;
  if (strcmp(op, "TensorSliceDataset") == 0)
    return d->input_count ? d->inputs[0]->shape.dims[0] : 0;
  if (strcmp(op, "SparseTensorSliceDataset") == 0)
    return *(const int64_t *)d->inputs[2]->data;
  if (strcmp(op, "window elements") == 0 || strcmp(op, "ListDataset") == 0)
    return d->component_count ? d->input_count / d->component_count : 0;
  if (strncmp(op, "RandomDataset", 13) == 0)
    return DATASET_INFINITE;
  if (strcmp(op, "AssertCardinalityDataset") == 0)
    return input_of(d, 0);
  if (strcmp(op, "ZipDataset") == 0)
    return zipped(d);
  if (strcmp(op, "ConcatenateDataset") == 0)
    return concatenated(known(d->sources[0]), known(d->sources[1]));
  if (strcmp(op, "DirectedInterleaveDataset") == 0) {
    for (uint32_t i = 1; i < d->source_count; i++)
      if (known(d->sources[i]) == DATASET_INFINITE)
        return DATASET_INFINITE;
    return DATASET_UNKNOWN;
  }
  return d->source_count ? derived(d, op, known(d->sources[0])) : DATASET_UNKNOWN;
}

int64_t dataset_size(const struct dataset *dataset) { return known(dataset); }
