/* tensor_array.h: tensor arrays: lists that are changed in place, with what may be done to each element. An element is written
 * once, and, unless the array says otherwise, read once; arrays of gradients add what is written, and give zeros where nothing
 * was. Rules and texts are those of TensorFlow's TensorArray. Threads: as lists (tensor_list.h).
 */
#ifndef TFC_RUNTIME_RESOURCE_TENSOR_ARRAY_H
#define TFC_RUNTIME_RESOURCE_TENSOR_ARRAY_H

#include "runtime/value/tensor_list.h"

struct array_options {
  bool dynamic_size; /* a write behind the end makes it longer */
  bool clear_after_read;
  bool identical_shapes; /* the first element's shape is that of all */
};

/* A new array of `size` elements without values as output 0; its handle has the dtype given. */
status array_make_output(struct host_call *call, enum dtype handle, enum dtype dtype, int64_t size, const struct array_options *options,
                         struct tensor_list **out);
/* The array of the gradients for a source, as output 0: made at the first call, the same afterwards. prefix: dimensions in
 * front of the elements' own, or NULL. */
status array_gradient_output(struct host_call *call, enum dtype handle, struct tensor_list *array, struct string_view source,
                             const struct shape *prefix);
/* The array behind input 0. INVALID_ARGUMENT when it is none, is closed, or holds another dtype (DTYPE_INVALID: any). */
status array_input(const struct host_call *call, enum dtype dtype, struct tensor_list **out);
/* The same, of any dtype, closed or not. */
status array_input_any(const struct host_call *call, struct tensor_list **out);
/* Takes one reference of the tensor. */
status array_write(struct tensor_list *array, int64_t index, struct tensor *tensor);
status array_read(struct tensor_list *array, int64_t index, struct tensor **out);
/* Reads many (NULL: all of 0 .. count-1) into an array of the caller's, freed with tensors_release. */
status array_read_many(struct tensor_list *array, const int32_t *indices, int64_t count, struct tensor ***out);
/* The number of elements, for pack and concat: of gradients, what the array itself was unpacked or split to. */
int64_t array_pack_size(const struct tensor_list *array);
void array_mark_size(struct tensor_list *array, int64_t size);
void array_close(struct tensor_list *array);

#endif
