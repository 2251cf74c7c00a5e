/* dataset_size.c: how many elements a dataset will give, and of how many rows, as far as that is known without looking at them: what its
 * kind says, and what several kinds say. */
#include "runtime/data/dataset.h"

int64_t dataset_size(const struct dataset *dataset) { return dataset->kind->size ? dataset->kind->size(dataset) : DATASET_UNKNOWN; }

int64_t dataset_size_of_source(const struct dataset *dataset) {
  return dataset->source_count ? dataset_size(dataset->sources[0]) : DATASET_UNKNOWN;
}

int64_t dataset_size_infinite(const struct dataset *dataset) {
  return dataset_size_of_source(dataset) == DATASET_INFINITE ? DATASET_INFINITE : DATASET_UNKNOWN;
}

int64_t dataset_size_kept(const struct dataset *dataset) {
  return host_attr_int(&dataset->words, "preserve_cardinality", 0) ? dataset_size_of_source(dataset) : DATASET_UNKNOWN;
}

int64_t dataset_size_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

int64_t dataset_size_product(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

int64_t dataset_size_repeated(const struct dataset *dataset, int64_t count) {
  int64_t n = dataset_size_of_source(dataset);
  if (count < 0)
    return n == 0 ? 0 : DATASET_INFINITE;
  return count == 0 ? 0 : n < 0 ? n : dataset_size_product(n, count);
}

int64_t dataset_size_batched(const struct dataset *dataset, int64_t size, bool drops) {
  int64_t n = dataset_size_of_source(dataset);
  return n < 0 ? n : n / size + (n % size && !drops);
}

/* ---- batches: the last one may be smaller ---- */

int64_t dataset_batch(const struct dataset *dataset) {
  return dataset->kind->batch ? dataset->kind->batch(dataset) : DATASET_BATCH_UNKNOWN;
}

int64_t dataset_batch_of_source(const struct dataset *dataset) {
  return dataset->source_count ? dataset_batch(dataset->sources[0]) : DATASET_BATCH_UNKNOWN;
}

int64_t dataset_batch_of_all(const struct dataset *dataset) {
  int64_t size = dataset_batch_of_source(dataset);
  for (uint32_t i = 1; i < dataset->source_count; i++)
    size = dataset_batch(dataset->sources[i]) == size ? size : DATASET_BATCH_UNKNOWN;
  return size;
}

int64_t dataset_batch_given(const struct dataset *dataset) { return host_scalar_int(dataset->inputs[0]); }

/* ---- places ---- */

bool dataset_has_places(const struct dataset *dataset) {
  (void)dataset;
  return true;
}

bool dataset_places_kept(const struct dataset *dataset) { return host_attr_int(&dataset->words, "preserve_cardinality", 0) != 0; }
