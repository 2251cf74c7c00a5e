/* import_places.c: where in the user's program each node was made: GraphDebugInfo, in a graph or beside a SavedModel. Of each trace the
 * innermost frame outside of TensorFlow is kept. */
#include <stdlib.h>
#include <string.h>

#include "compiler/read/import.h"

typedef Tensorflow__GraphDebugInfo__FileLineCol frame_def;
typedef Tensorflow__GraphDebugInfo__StackTrace trace_def;

/* Messages by their numbers, sorted. */
struct numbered {
  uint64_t key;
  const void *value;
};
static int compare_keys(const void *a, const void *b) {
  const struct numbered *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}
static const void *find_numbered(const struct numbered *items, size_t count, uint64_t key) {
  const struct numbered *found = count ? bsearch(&(struct numbered){key, NULL}, items, count, sizeof *items, compare_keys) : NULL;
  return found ? found->value : NULL;
}

struct debug_info {
  const Tensorflow__GraphDebugInfo *def;
  struct numbered *frames, *traces;
};

static bool is_library(const char *file) {
  return strstr(file, "/tensorflow/python/") || strstr(file, "/tensorflow/core/") || strstr(file, "/site-packages/keras/");
}

static const char *frame_file(const struct debug_info *d, const frame_def *f) {
  return f && f->file_index >= 0 && (size_t)f->file_index < d->def->n_files ? d->def->files[f->file_index] : NULL;
}

static const frame_def *frame_at(const struct debug_info *d, const trace_def *t, size_t i) {
  return i < t->n_file_line_cols ? t->file_line_cols[i]
                                 : find_numbered(d->frames, d->def->n_frames_by_id, t->frame_id[i - t->n_file_line_cols]);
}

static const char *trace_place(const struct debug_info *d, const trace_def *t, struct arena *arena) {
  const frame_def *best = NULL;
  for (size_t i = t ? t->n_file_line_cols + t->n_frame_id : 0; i-- > 0;) {
    const frame_def *f = frame_at(d, t, i);
    const char *file = frame_file(d, f);
    if (!file)
      continue;
    best = best ? best : f;
    if (!is_library(file)) {
      best = f;
      break;
    }
  }
  return best ? arena_printf(arena, "%s:%d", frame_file(d, best), best->line) : NULL;
}

static void add_place(struct graph *graph, const char *key, const char *place) {
  if (place && map_insert(&graph->place_names, arena_strdup(graph->arena, key), graph->places.count))
    vec_push(&graph->places, place);
}

void import_places(const Tensorflow__GraphDebugInfo *def, struct graph *graph) {
  struct debug_info d = {.def = def};
  d.frames = calloc(def->n_frames_by_id + 1, sizeof *d.frames);
  d.traces = calloc(def->n_traces_by_id + 1, sizeof *d.traces);
  for (size_t i = 0; d.frames && i < def->n_frames_by_id; i++)
    d.frames[i] = (struct numbered){def->frames_by_id[i]->key, def->frames_by_id[i]->value};
  for (size_t i = 0; d.traces && i < def->n_traces_by_id; i++)
    d.traces[i] = (struct numbered){def->traces_by_id[i]->key, def->traces_by_id[i]->value};
  if (d.frames && d.traces) {
    qsort(d.frames, def->n_frames_by_id, sizeof *d.frames, compare_keys);
    qsort(d.traces, def->n_traces_by_id, sizeof *d.traces, compare_keys);
    for (size_t i = 0; i < def->n_traces; i++)
      add_place(graph, def->traces[i]->key, trace_place(&d, def->traces[i]->value, graph->arena));
    for (size_t i = 0; i < def->n_name_to_trace_id; i++)
      add_place(graph, def->name_to_trace_id[i]->key,
                trace_place(&d, find_numbered(d.traces, def->n_traces_by_id, def->name_to_trace_id[i]->value), graph->arena));
  }
  free(d.frames);
  free(d.traces);
}
