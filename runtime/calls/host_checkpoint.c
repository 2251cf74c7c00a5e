/* host_checkpoint.c: SaveV2, RestoreV2 and MergeV2Checkpoints. A variable may be saved and restored in slices; which one is in a
 * text of TensorFlow's: "10 4 0,5:-" is rows 0 to 4 of [10,4]. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checkpoint_write.h"
#include "runtime/host/host.h"
#include "runtime/host/host_path.h"

/* ---- saving ---- */

/* Inputs: prefix, names, slices, then tensors; the first three of the same form in both ops. */
static status check_names(const struct host_call *call, uint32_t tensors) {
  for (uint32_t i = 1; i < 3; i++)
    if (call->inputs[i].shape.rank != 1 || call->inputs[i].count != tensors)
      return fail(INVALID_ARGUMENT, "%s must be a vector of %u strings, got %s", i == 1 ? "tensor_names" : "shape_and_slices", tensors,
                  shape_text(&call->inputs[i].shape));
  return OK;
}

static char *copy_text(const struct host_call *call, uint32_t input, uint32_t i) {
  struct string_view view = ((const struct string_view *)call->inputs[input].data)[i];
  return strndup(view.data ? view.data : "", view.size);
}

static status save_one(struct checkpoint_writer *writer, const char *name, const char *slice_text, const struct tensor *tensor) {
  struct shape whole, part;
  struct checkpoint_slice slice;
  if (!*slice_text)
    return checkpoint_writer_add(writer, name, tensor);
  TRY(checkpoint_slice_parse(slice_text, &whole, &slice));
  part = checkpoint_slice_shape(&whole, &slice);
  if (!shape_equal(&part, &tensor->shape))
    return fail(INVALID_ARGUMENT, "Slice of '%s' is %s, the tensor is %s", name, slice_text, shape_text(&tensor->shape));
  return checkpoint_writer_add_slice(writer, name, &whole, &slice, tensor);
}

status host_save(struct host_call *call) {
  char prefix[HOST_PATH_MAX];
  struct checkpoint_writer *writer;
  uint32_t tensors = call->input_count - 3;
  TRY(host_scalar_path(call, 0, "prefix", prefix, sizeof prefix));
  TRY(check_names(call, tensors));
  TRY(checkpoint_writer_create(prefix, &writer));
  status result = OK;
  for (uint32_t i = 0; i < tensors && result == OK; i++) {
    char *name = copy_text(call, 1, i), *slice = copy_text(call, 2, i);
    result = name && slice ? save_one(writer, name, slice, &call->inputs[i + 3]) : fail(RESOURCE_EXHAUSTED, "no memory");
    free(name);
    free(slice);
  }
  if (result == OK)
    return checkpoint_writer_close(writer);
  checkpoint_writer_destroy(writer);
  return result;
}

/* ---- restoring ---- */

static status restore_value(struct host_call *call, uint32_t i, const struct checkpoint_value *value, const char *slice_text) {
  if (!*slice_text)
    return tensor_copy_in(value->dtype, &value->shape, value->data, &call->outputs[i]);
  struct shape whole, part;
  struct checkpoint_slice slice;
  struct tensor *tensor;
  TRY(checkpoint_slice_parse(slice_text, &whole, &slice));
  if (!shape_equal(&whole, &value->shape))
    return fail(INVALID_ARGUMENT, "Shape in shape_and_slice spec %s does not match the shape in the save file: %s", shape_text(&whole),
                shape_text(&value->shape));
  part = checkpoint_slice_shape(&whole, &slice);
  TRY(tensor_create(value->dtype, &part, &tensor));
  status result = checkpoint_slice_copy(&slice, &whole, dtype_size(value->dtype), value->data, tensor->data, true);
  if (result == OK) /* views point into the file's bytes */
    return tensor_own_strings(tensor, &call->outputs[i]);
  tensor_release(tensor);
  return result;
}

static status restore_one(struct host_call *call, const struct checkpoint *checkpoint, uint32_t i, const char *name, const char *slice) {
  const struct program_attr *dtypes = host_attr(call, "dtypes");
  struct checkpoint_entry entry;
  struct checkpoint_value value;
  TRY(checkpoint_find(checkpoint, name, &entry));
  enum dtype wanted = dtypes && i < dtypes->list.count ? (enum dtype)program_attr(call->program, dtypes->list.first + i)->i : entry.dtype;
  if (entry.dtype != wanted)
    return fail(INVALID_ARGUMENT, "tensor_name = %s; expected dtype %s does not equal original dtype %s", name, dtype_name(wanted),
                dtype_name(entry.dtype));
  TRY(checkpoint_read(checkpoint, name, &value));
  return restore_value(call, i, &value, slice);
}

status host_restore(struct host_call *call) {
  char prefix[HOST_PATH_MAX];
  TRY(host_scalar_path(call, 0, "prefix", prefix, sizeof prefix));
  TRY(check_names(call, call->output_count));
  struct arena arena;
  struct checkpoint *checkpoint;
  arena_init(&arena);
  status result = checkpoint_open(prefix, &arena, &checkpoint);
  if (result == NOT_FOUND)
    result = fail(NOT_FOUND, "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for %s", prefix);
  for (uint32_t i = 0; i < call->output_count && result == OK; i++) {
    char *name = copy_text(call, 1, i), *slice = copy_text(call, 2, i);
    result = name && slice ? restore_one(call, checkpoint, i, name, slice) : fail(RESOURCE_EXHAUSTED, "no memory");
    free(name);
    free(slice);
  }
  arena_deinit(&arena);
  return result;
}

status host_tensor_rank(struct host_call *call) { return host_give_number(call, 0, DTYPE_INT32, call->inputs[0].shape.rank); }

/* ---- merging ---- */

static void remove_folders(const char *const *prefixes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    char folder[HOST_PATH_MAX];
    const char *slash = strrchr(prefixes[i], '/');
    if (!slash || slash == prefixes[i])
      continue;
    size_t size = (size_t)(slash - prefixes[i]);
    memcpy(folder, prefixes[i], size);
    folder[size] = 0;
    rmdir(folder); /* stays when something else is in it */
  }
}

status host_merge_checkpoints(struct host_call *call) {
  char to[HOST_PATH_MAX];
  TRY(host_scalar_path(call, 1, "destination_prefix", to, sizeof to));
  uint32_t count = (uint32_t)call->inputs[0].count;
  char **prefixes = calloc((size_t)count + 1, sizeof *prefixes);
  status result = prefixes ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < count && result == OK; i++) {
    char path[HOST_PATH_MAX];
    result = host_path(((const struct string_view *)call->inputs[0].data)[i], path, sizeof path);
    prefixes[i] = result == OK ? strdup(path) : NULL;
  }
  if (result == OK)
    result = checkpoint_merge((const char *const *)prefixes, count, to, host_attr_int(call, "allow_missing_files", 0) != 0);
  if (result == OK && host_attr_int(call, "delete_old_dirs", 1))
    remove_folders((const char *const *)prefixes, count);
  for (uint32_t i = 0; prefixes && i < count; i++)
    free(prefixes[i]);
  free(prefixes);
  return result;
}
