/* import_runners.c: collections that hold messages: `queue_runners`, each what the threads of one QueueRunner run, and
 * `savers`. */
#include <string.h>

#include "compiler/read/import.h"

#define CODES 17 /* of TensorFlow's statuses */

/* A cond that enqueues is named by the tensor that it gives. */
static const char *operation_of(const char *name, struct arena *arena) { return arena_strndup(arena, name, strcspn(name, ":")); }

static void import_runner(const Tensorflow__QueueRunnerDef *def, struct arena *arena, struct model *out) {
  struct queue_runner runner = {.queue = arena_strdup(arena, def->queue_name),
                                .close_op = arena_strdup(arena, def->close_op_name),
                                .cancel_op = arena_strdup(arena, def->cancel_op_name)};
  for (size_t i = 0; i < def->n_enqueue_op_name; i++)
    vec_push(&runner.enqueue_ops, operation_of(def->enqueue_op_name[i], arena));
  for (size_t i = 0; i < def->n_queue_closed_exception_types; i++)
    if (def->queue_closed_exception_types[i] > 0 && def->queue_closed_exception_types[i] < CODES)
      runner.end_codes |= UINT64_C(1) << def->queue_closed_exception_types[i];
  if (!runner.end_codes)
    runner.end_codes = UINT64_C(1) << OUT_OF_RANGE; /* as in files of before there was a choice */
  vec_push(&out->queue_runners, runner);
}

static status import_runner_item(const struct attr_value *item, struct arena *arena, struct model *out) {
  const ProtobufCMessageDescriptor *message = &tensorflow__queue_runner_def__descriptor;
  status result = wire_check(message, item->s.data, item->s.size);
  Tensorflow__QueueRunnerDef *def =
    result == OK ? tensorflow__queue_runner_def__unpack(NULL, item->s.size, (const uint8_t *)item->s.data) : NULL;
  if (!def)
    return fail(result == OK ? INVALID_ARGUMENT : result, "the collection 'queue_runners' holds what is no QueueRunnerDef");
  import_runner(def, arena, out);
  tensorflow__queue_runner_def__free_unpacked(def, NULL);
  return OK;
}

static status import_saver_item(const struct attr_value *item, struct arena *arena, struct model *out) {
  const ProtobufCMessageDescriptor *message = &tensorflow__saver_def__descriptor;
  status result = wire_check(message, item->s.data, item->s.size);
  Tensorflow__SaverDef *def = result == OK ? tensorflow__saver_def__unpack(NULL, item->s.size, (const uint8_t *)item->s.data) : NULL;
  if (!def)
    return fail(result == OK ? INVALID_ARGUMENT : result, "the collection 'savers' holds what is no SaverDef");
  vec_push(&out->savers, (struct saver_names){arena_strdup(arena, def->filename_tensor_name), arena_strdup(arena, def->save_tensor_name),
                                              arena_strdup(arena, def->restore_op_name)});
  tensorflow__saver_def__free_unpacked(def, NULL);
  return OK;
}

typedef status (*item_import)(const struct attr_value *item, struct arena *arena, struct model *out);

static status import_collection(const char *name, item_import import, struct arena *arena, struct model *out) {
  for (uint32_t i = 0; i < out->collections.count; i++) {
    const struct attr *a = &out->collections.items[i];
    for (uint32_t k = 0; k < a->value.list.count && strcmp(a->name, name) == 0; k++)
      TRY(import(&a->value.list.items[k], arena, out));
  }
  return OK;
}

status import_runners(struct arena *arena, struct model *out) {
  TRY(import_collection("queue_runners", import_runner_item, arena, out));
  return import_collection("savers", import_saver_item, arena, out);
}
