/* host_checkpoint_v1.c: Save, SaveSlices, Restore and RestoreSlice: checkpoints of the first form, one file each. */
#include <stdlib.h>
#include <string.h>

#include "base/checkpoint_v1.h"
#include "runtime/host/host.h"
#include "runtime/host/host_path.h"

static char *text_at(const struct host_call *call, uint32_t input, uint32_t i) {
  struct string_view view = ((const struct string_view *)call->inputs[input].data)[i];
  return strndup(view.data ? view.data : "", view.size);
}

/* ---- saving ---- */

/* inputs: filename, names, slices (only SaveSlices), tensors */
struct saving {
  struct checkpoint_v1_tensor *tensors;
  uint32_t count, first;
  bool sliced;
};

static status save_begin(const struct host_call *call, struct saving *s) {
  s->first = s->sliced ? 3 : 2;
  s->count = call->input_count - s->first;
  for (uint32_t i = 1; i < s->first; i++)
    if (call->inputs[i].shape.rank != 1 || call->inputs[i].count != s->count)
      return fail(INVALID_ARGUMENT, "input %u must be a vector of %u strings, got %s", i, s->count, shape_text(&call->inputs[i].shape));
  s->tensors = calloc((size_t)s->count + 1, sizeof *s->tensors);
  return s->tensors ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
}

static status save_tensor(const struct host_call *call, const struct saving *s, uint32_t i) {
  struct checkpoint_v1_tensor *t = &s->tensors[i];
  t->tensor = &call->inputs[s->first + i];
  t->name = text_at(call, 1, i);
  t->whole = t->tensor->shape;
  t->slice.rank = t->whole.rank;
  for (int d = 0; d < t->slice.rank; d++)
    t->slice.length[d] = -1;
  char *text = s->sliced ? text_at(call, 2, i) : NULL;
  status result = t->name && (text || !s->sliced) ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
  if (result == OK && text && *text)
    result = checkpoint_slice_parse(text, &t->whole, &t->slice);
  if (result == OK && text && *text) {
    struct shape part = checkpoint_slice_shape(&t->whole, &t->slice);
    if (!shape_equal(&part, &t->tensor->shape))
      result = fail(INVALID_ARGUMENT, "Slice of '%s' is %s, the tensor is %s", t->name, text, shape_text(&t->tensor->shape));
  }
  free(text);
  return result;
}

static status save(struct host_call *call, bool sliced) {
  char path[HOST_PATH_MAX];
  struct saving s = {.sliced = sliced};
  TRY(host_scalar_path(call, 0, "filename", path, sizeof path));
  status result = save_begin(call, &s);
  for (uint32_t i = 0; result == OK && i < s.count; i++)
    result = save_tensor(call, &s, i);
  if (result == OK)
    result = checkpoint_v1_write(path, s.tensors, s.count);
  for (uint32_t i = 0; s.tensors && i < s.count; i++)
    free((char *)(uintptr_t)s.tensors[i].name);
  free(s.tensors);
  return result;
}

status host_save_v1(struct host_call *call) { return save(call, false); }
status host_save_slices_v1(struct host_call *call) { return save(call, true); }

/* ---- restoring: one tensor ---- */

static status give_slice(struct host_call *call, const struct checkpoint_value *value, const char *text) {
  struct shape whole, part;
  struct checkpoint_slice slice;
  struct tensor *tensor;
  TRY(checkpoint_slice_parse(text, &whole, &slice));
  if (!shape_equal(&whole, &value->shape))
    return fail(INVALID_ARGUMENT, "Shape in shape_and_slice spec %s does not match the shape in the save file: %s", shape_text(&whole),
                shape_text(&value->shape));
  part = checkpoint_slice_shape(&whole, &slice);
  TRY(tensor_create(value->dtype, &part, &tensor));
  status result = checkpoint_slice_copy(&slice, &whole, dtype_size(value->dtype), value->data, tensor->data, true);
  if (result == OK) /* views point into the file's bytes */
    return tensor_own_strings(tensor, &call->outputs[0]);
  tensor_release(tensor);
  return result;
}

static status restore_value(struct host_call *call, const struct checkpoint *checkpoint, const char *name, const char *slice) {
  struct checkpoint_entry entry;
  struct checkpoint_value value;
  TRY(checkpoint_find(checkpoint, name, &entry));
  enum dtype wanted = (enum dtype)host_attr_int(call, "dt", entry.dtype);
  if (entry.dtype != wanted)
    return fail(INVALID_ARGUMENT, "tensor_name = %s; expected dtype %s does not equal original dtype %s", name, dtype_name(wanted),
                dtype_name(entry.dtype));
  TRY(checkpoint_read(checkpoint, name, &value));
  return slice && *slice ? give_slice(call, &value, slice) : tensor_copy_in(value.dtype, &value.shape, value.data, &call->outputs[0]);
}

/* inputs: file pattern, name, slice (only RestoreSlice) */
status host_restore_v1(struct host_call *call) {
  char path[HOST_PATH_MAX];
  struct arena arena;
  struct checkpoint *checkpoint;
  TRY(host_scalar_path(call, 0, "file_pattern", path, sizeof path));
  if (call->inputs[1].count != 1 || (call->input_count > 2 && call->inputs[2].count != 1))
    return fail(INVALID_ARGUMENT, "tensor_name and shape_and_slice must be scalars");
  arena_init(&arena);
  status result = checkpoint_open(path, &arena, &checkpoint);
  if (result == NOT_FOUND)
    result = fail(NOT_FOUND, "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for %s", path);
  char *name = text_at(call, 1, 0), *slice = call->input_count > 2 ? text_at(call, 2, 0) : NULL;
  if (result == OK)
    result = name ? restore_value(call, checkpoint, name, slice) : fail(RESOURCE_EXHAUSTED, "no memory");
  free(name);
  free(slice);
  arena_deinit(&arena);
  return result;
}
