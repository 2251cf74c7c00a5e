/* dataset.h: datasets and positions in them.
 *
 * A dataset is a value: a kind, its tensors, and the datasets it is made from; it is held by the scalar of dtype variant that is its
 * handle, and by what was made from it. A cursor is a position in one: it gives the elements, each a tuple of tensors, one after the
 * other. Functions of the graph (of map, filter ...) are parts that the instruction names which asks for the next element, found by the
 * name of the dataset's node; each call has a frame of its own. Elements come in TensorFlow's deterministic order.
 *
 * Threads: of a dataset only its memory changes; a cursor is used by one thread at a time. A cursor below one that reads ahead
 * (read_ahead.h) belongs to the latter's worker.
 */
#ifndef TFC_RUNTIME_DATA_DATASET_H
#define TFC_RUNTIME_DATA_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include "runtime/host/object.h"

#define DATASET_COMPONENTS_MAX 64

struct cursor;
struct dataset;
struct dataset_cache;
/* What a cursor needs of who moves it: a step's call, or what stands for it beside steps (background.h). */
struct dataset_run {
  const struct host_call *call;
};

/* Which inputs a dataset is made from; datasets among the others are values: elements, states, what functions captured. */
enum dataset_made { MADE_FROM_FIRST, MADE_FROM_NONE, MADE_FROM_ALL };

struct dataset_kind {
  const char *op;
  size_t state_size;
  /* The next element, a reference of each tensor, or *end. */
  status (*next)(struct cursor *cursor, const struct dataset_run *run, struct tensor **out, bool *end);
  void (*stop)(struct cursor *cursor);            /* frees what the state holds; NULL: nothing */
  status (*check)(const struct dataset *dataset); /* when it is made; NULL: nothing to check */
  enum dataset_made made;
  uint32_t components;                            /* of an element, where no attribute says it; 0: one */
  int64_t (*size)(const struct dataset *dataset); /* how many elements (dataset_size); NULL: unknown */
  /* how many rows its elements are asked to have, as far as TensorFlow looks for it; NULL: unknown */
  int64_t (*batch)(const struct dataset *dataset);
  bool draws;                                 /* seeds, when a pass begins */
  uint32_t traits;                            /* bits of its file: how it differs from its neighbours */
  status (*rewrite)(struct dataset *dataset); /* changes its sources when it is made, before the check; NULL: they stay */
  /* Whether an element can be reached by its place where those of the sources can (global shuffle); NULL: not. */
  bool (*has_places)(const struct dataset *dataset);
};

/* What a pass leaves to later ones. */
struct dataset_memory {
  atomic_uint passes;          /* SHUFFLE, RANDOM: passes begun, each with seeds of its own */
  struct dataset_cache *cache; /* CACHE: once it is complete */
};

struct dataset {
  struct object object; /* its handle is a scalar that holds it, so that tensors of datasets are tensors of objects */
  const struct dataset_kind *kind;
  struct host_call words; /* only what attributes and the node's name are found by */
  struct tensor **inputs; /* all but datasets */
  struct dataset **sources;
  uint32_t input_count, source_count, component_count;
  struct dataset_memory own, *memory; /* its own, or that of all datasets of the same handle */
};

struct cursor {
  struct dataset *dataset;
  struct cursor **sources; /* one for each source; NULL until it is needed */
  void *state;
  bool ended;
  bool is_counted; /* and so are its sources: none is asked for more than its dataset_size */
  int64_t given;   /* is_counted: elements so far */
};

const struct dataset_kind *dataset_kind_find(const char *op);
void dataset_init(struct dataset *dataset); /* one reference */
struct dataset *dataset_retain(struct dataset *dataset);
void dataset_release(struct dataset *dataset); /* accepts NULL */
/* One of the same inputs and sources, whose passes and cache are its own. */
status dataset_copy(const struct dataset *dataset, struct dataset **out);
/* A handle, which takes the reference when it is made. */
status dataset_handle(struct dataset *dataset, struct tensor **out);
/* The dataset behind a handle, or behind element i of a tensor of handles; NULL when it is none. */
struct dataset *dataset_of(const struct tensor *handle);
struct dataset *dataset_at(const struct tensor *handles, int64_t i);

/* How many elements it gives: DATASET_INFINITE, DATASET_UNKNOWN without running any function or reading any file. */
#define DATASET_INFINITE INT64_C(-1)
#define DATASET_UNKNOWN INT64_C(-2)
int64_t dataset_size(const struct dataset *dataset);
/* For a kind's `size`. */
int64_t dataset_size_of_source(const struct dataset *dataset); /* as many as its first source has */
int64_t dataset_size_kept(const struct dataset *dataset);      /* so, if its attribute preserve_cardinality says so; else unknown */
int64_t dataset_size_infinite(const struct dataset *dataset);  /* infinite, if its first source is; else unknown */
int64_t dataset_size_repeated(const struct dataset *dataset, int64_t count);
int64_t dataset_size_batched(const struct dataset *dataset, int64_t size, bool drops);
int64_t dataset_size_sum(int64_t a, int64_t b); /* these wrap, as TensorFlow's do */
int64_t dataset_size_product(int64_t a, int64_t b);
/* For a kind's `batch`. */
#define DATASET_BATCH_UNKNOWN INT64_C(-1)
int64_t dataset_batch(const struct dataset *dataset);
int64_t dataset_batch_of_source(const struct dataset *dataset);
int64_t dataset_batch_of_all(const struct dataset *dataset);    /* if all sources have the same */
int64_t dataset_batch_given(const struct dataset *dataset);     /* its first input */
int64_t dataset_batch_finalized(const struct dataset *dataset); /* of its source, if its options leave that as it is */
/* For a kind's `has_places`. */
bool dataset_has_places(const struct dataset *dataset);
bool dataset_places_kept(const struct dataset *dataset); /* so, if its attribute preserve_cardinality says so */
bool dataset_is_cached(const struct dataset *dataset);   /* a pass needs no source */
void dataset_cache_free(struct dataset_cache *cache);    /* accepts NULL */

/* At the first element. */
status cursor_create(struct dataset *dataset, struct cursor **out);
void cursor_destroy(struct cursor *cursor); /* accepts NULL */
status cursor_next(struct cursor *cursor, const struct dataset_run *run, struct tensor **out, bool *end);
/* The cursor of source i, made when it is missing; it goes with `cursor`. */
status cursor_source(struct cursor *cursor, uint32_t i, struct cursor **out);
/* Its next element. */
status cursor_source_next(struct cursor *cursor, uint32_t i, const struct dataset_run *run, struct tensor **out, bool *end);
/* Of the first source as they come: what TensorFlow does ahead of time there changes when, not what. */
status cursor_pass_next(struct cursor *cursor, const struct dataset_run *run, struct tensor **out, bool *end);
void element_release(struct tensor **element, uint32_t count);

/* Calls the function of a dataset with the given values (whose references stay the caller's) and those that it captured, which are inputs
 * of the dataset from `first_capture` on. UNIMPLEMENTED when the instruction that moves the cursor has no such function. */
status dataset_call(const struct dataset *dataset, const struct dataset_run *run, struct tensor *const *in, uint32_t in_count,
                    uint32_t first_capture, struct tensor **out, uint32_t out_count);
/* Whether that function may have to wait: for a queue, or in functions that it calls. */
bool dataset_call_may_wait(const struct dataset *dataset, const struct dataset_run *run);
uint32_t dataset_capture_count(const struct dataset *dataset);
/* An element_call (parallel_calls.h): the function of a map. */
status dataset_map_element(const struct dataset *dataset, const struct dataset_run *run, struct tensor *const *element, struct tensor **out,
                           bool *skip);
/* One of several functions of a dataset, by the name of its attribute ("key_func"); the values that it captured are added to `in`. */
status dataset_call_part(const struct dataset *dataset, const struct dataset_run *run, const char *part, struct tensor *const *in,
                         uint32_t in_count, struct tensor **out, uint32_t out_count);
/* The same by name: the factory of an iterator. */
status dataset_call_named(const char *name, const struct dataset_run *run, struct tensor *const *in, uint32_t in_count, struct tensor **out,
                          uint32_t out_count);

/* Parameters. */
#define DATASET_SHARD_HINT INT64_C(-1) /* of num_shards: what shares datasets out says into how many */
status dataset_shard_check(const struct dataset *dataset);
status dataset_int(const struct dataset *dataset, uint32_t input, const char *what, int64_t *out);
bool dataset_bool(const struct dataset *dataset, uint32_t input, bool otherwise);

/* A dataset of elements that are there: `count` tensors, every stride-th of those given, components side by side, of which it takes
 * references. The handle is `out`. `maker` says for errors whose it is. */
status dataset_of_elements(const struct dataset *maker, uint32_t components, struct tensor *const *tensors, uint32_t count, int64_t stride,
                           struct tensor **out);

/* Every stride-th of the tensors as rows of one; `component` is for errors. Or one behind the other as one of the given shape, which has
 * as many elements. */
status rows_stack(struct tensor *const *rows, int64_t count, int64_t stride, uint32_t component, struct tensor **out);
status parts_join(struct tensor *const *rows, int64_t count, int64_t stride, const struct shape *shape, struct tensor **out);

/* The kinds of each file. */
extern const struct dataset_kind dataset_sources[], dataset_orders[], dataset_functions[], dataset_interleaves[], dataset_batches[],
  dataset_windows[], dataset_files[], dataset_shuffles[], dataset_groups[], dataset_choices[], dataset_slices[], dataset_caches[],
  dataset_globals[], dataset_csv[], dataset_prefetches[], dataset_flats[], dataset_saves[], dataset_auto_shards[];

#endif
