/* dataset_prefetch.c: elements that are made ahead, while steps run: what is below is a worker's alone (read_ahead.c). */
#include "runtime/data/dataset.h"
#include "runtime/data/read_ahead.h"

struct prefetch_state {
  struct read_ahead *ahead; /* NULL: not begun */
};

static void prefetch_stop(struct cursor *c) { read_ahead_destroy(((struct prefetch_state *)c->state)->ahead); }

static status prefetch_check(const struct dataset *d) {
  int64_t size;
  TRY(dataset_int(d, 0, "buffer_size", &size));
  return size >= -1 ? OK : fail(INVALID_ARGUMENT, "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning");
}

/* `slack_period` and `legacy_autotune` say when to make elements, and how many where buffer_size does not: they change no result. */
static status prefetch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct prefetch_state *s = c->state;
  int64_t size = host_scalar_int(c->dataset->inputs[0]);
  if (size == 0)
    return cursor_source_next(c, 0, run, out, end);
  if (!s->ahead) {
    struct cursor *source;
    TRY(cursor_source(c, 0, &source));
    TRY(read_ahead_create(source, size < 0 ? READ_AHEAD_AUTO : size, run, &s->ahead));
  }
  return read_ahead_next(s->ahead, run, out, end);
}

const struct dataset_kind dataset_prefetches[] = {
  {"PrefetchDataset", sizeof(struct prefetch_state), prefetch_next, prefetch_stop, prefetch_check, .size = dataset_size_of_source,
   .batch = dataset_batch_of_source, .has_places = dataset_has_places},
  {0},
};
