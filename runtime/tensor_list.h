/* tensor_list.h: lists of tensors that live as long as a step needs them: tensor arrays, stacks, tensor lists.
 *
 * A list is held by the scalar tensor that is its handle (dtype resource or variant), and goes with the last reference to
 * one; there is no name and no table. Tensor arrays and stacks are changed in place through their handle; tensor
 * lists are values: who changes one makes a new one that shares the elements. Threads: a list that is changed in place is
 * used by one step, whose flow orders the uses.
 */
#ifndef TFC_RUNTIME_TENSOR_LIST_H
#define TFC_RUNTIME_TENSOR_LIST_H

#include "runtime/host.h"

struct tensor_list {
  enum dtype dtype;
  int rank;                  /* of elements, where the graph says it; -1: not known */
  int64_t dims[LIMIT_RANK];  /* -1: not known */
  struct tensor **items;     /* NULL: not written */
  int64_t count, capacity;
  bool grows;                /* a write behind the end makes it longer */
  bool adds;                 /* a second write adds: arrays of gradients */
  /* An array and the arrays of its gradients are one family: all live as long as a handle of one of them. */
  struct tensor_list *first; /* of the family: the array itself */
  struct tensor_list *next;  /* in the family */
  _Atomic int handles;       /* in the first: of the whole family */
  char *source;              /* of gradients: which */
};

/* A new list of `count` missing elements as output i of the call. RESOURCE_EXHAUSTED, INVALID_ARGUMENT (count < 0). */
status list_make_output(struct host_call *call, uint32_t i, enum dtype handle, enum dtype dtype, int64_t count,
                        struct tensor_list **out);
/* The gradients of an array for a source, as output 0: made at the first call, the same list afterwards. */
status list_gradient_output(struct host_call *call, struct tensor_list *array, struct string_view source);
/* The list behind input i. */
status list_input(const struct host_call *call, uint32_t i, struct tensor_list **out);
status list_resize(struct tensor_list *list, int64_t count);
/* Takes one reference of the tensor. OUT_OF_RANGE or INVALID_ARGUMENT names the index. */
status list_set(struct tensor_list *list, int64_t index, struct tensor *tensor);
/* One reference of the element; zeros where nothing was written, when its shape is known. */
status list_get(const struct tensor_list *list, int64_t index, struct tensor **out);
/* A copy of the list as output i, sharing its elements. */
status list_copy_output(struct host_call *call, uint32_t i, const struct tensor_list *from, struct tensor_list **out);

/* Elements that lie behind each other in a tensor: row `index`, or rows first .. first+count-1 kept as a dimension. */
status tensor_row(const struct tensor *tensor, int64_t index, struct tensor **out);
status tensor_rows(const struct tensor *tensor, int64_t first, int64_t count, struct tensor **out);
/* The elements as one tensor, on a new first dimension; shapes must agree. The indices are `count` numbers, or NULL for all. */
status list_stack(const struct tensor_list *list, const int32_t *indices, int64_t count, struct tensor **out);
/* The elements behind each other along their first dimension, and the length of each. */
status list_concat(const struct tensor_list *list, struct tensor **out, struct tensor **lengths);

#endif
