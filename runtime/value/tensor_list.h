/* tensor_list.h: lists of tensors that live as long as a step needs them: tensor arrays (tensor_array.h), stacks, tensor lists.
 *
 * A list is held by the scalar tensor that is its handle (dtype resource or variant), and goes with the last reference to
 * one; there is no name and no table. Tensor arrays and stacks are changed in place through their handle; tensor
 * lists are values: who changes one makes a new one that shares the elements, or takes the old one if nobody else has it. Threads: a list
 * that is changed in place is used by one step, whose flow orders the uses.
 */
#ifndef TFC_RUNTIME_VALUE_TENSOR_LIST_H
#define TFC_RUNTIME_VALUE_TENSOR_LIST_H

#include "runtime/host/host.h"
#include "runtime/host/object.h"

/* What is known of a shape. */
struct partial_shape {
  int rank;                 /* -1: nothing */
  int64_t dims[LIMIT_RANK]; /* -1: not known */
};
struct tensor_list {
  struct object object; /* first: a tensor list is an object of a variant; arrays and stacks have handles of their own */
  enum dtype dtype;
  struct partial_shape shape; /* of elements */
  struct tensor **items;      /* NULL: not written */
  int64_t count, capacity;
  bool grows;                /* a write behind the end makes it longer */
  bool adds;                 /* a second write adds: sums of lists */
  bool closed;               /* a stack that gives nothing any more */
  int64_t limit;             /* the most elements; -1: any number */
  struct array_state *array; /* of a tensor array; else NULL */
  /* An array and the arrays of its gradients are one family: all live as long as a handle of one of them. */
  struct tensor_list *first; /* of the family: the array itself */
  struct tensor_list *next;  /* in the family */
  _Atomic int handles;       /* in the first: of the whole family */
  char *source;              /* of gradients: which */
};

/* A new list of `count` missing elements as output i of the call. RESOURCE_EXHAUSTED, INVALID_ARGUMENT (count < 0). */
status list_make_output(struct host_call *call, uint32_t i, enum dtype handle, enum dtype dtype, int64_t count, struct tensor_list **out);
/* Another member of the family of `array`, empty, named after its source. RESOURCE_EXHAUSTED. */
status list_make_relative(struct tensor_list *array, struct string_view source, struct tensor_list **out);
/* The relative of that source, or NULL. */
struct tensor_list *list_find_relative(const struct tensor_list *array, struct string_view source);
/* Output i: one more handle of a list. */
status list_make_handle(struct host_call *call, uint32_t i, enum dtype handle, struct tensor_list *list);
/* The list behind input i: a scalar. */
status list_input(const struct host_call *call, uint32_t i, struct tensor_list **out);
status list_resize(struct tensor_list *list, int64_t count);
/* Takes one reference of the tensor. INVALID_ARGUMENT names the index. */
status list_set(struct tensor_list *list, int64_t index, struct tensor *tensor);
/* The list that element k of a tensor of variants is; INVALID_ARGUMENT when it is none. */
status list_of_element(const struct tensor *tensor, int64_t k, struct tensor_list **out);
/* A copy of the list, sharing its elements. */
status list_clone(const struct tensor_list *from, struct tensor_list **out);
/* Output 0 for the list of input 0, to be changed: a copy, or the list itself when nobody else has it. */
status list_change_input(struct host_call *call, struct tensor_list *from, struct tensor_list **out);

/* a + b, element by element, for numbers and objects. INVALID_ARGUMENT, UNIMPLEMENTED. */
status tensor_sum(const struct tensor *a, const struct tensor *b, struct tensor **out);
/* A tensor of zeros (empty strings). */
status tensor_zeros(enum dtype dtype, const struct shape *shape, struct tensor **out);
/* Elements that lie behind each other in a tensor: row `index`, or rows first .. first+count-1 kept as a dimension. */
status tensor_row(const struct tensor *tensor, int64_t index, struct tensor **out);
status tensor_rows(const struct tensor *tensor, int64_t first, int64_t count, struct tensor **out);
/* `count` tensors behind each other as one of the given shape, which has as many elements. */
status tensor_join(enum dtype dtype, const struct shape *shape, struct tensor *const *parts, int64_t count, struct tensor **out);
void tensors_release(struct tensor **tensors, int64_t count); /* the array, too; accepts NULL, also for a tensor */
/* Tensors on a new first dimension; shapes must agree. `empty`: the element's shape when there are none. */
status tensors_stack(enum dtype dtype, struct tensor **parts, int64_t count, const struct shape *empty, struct tensor **out);
/* Tensors behind each other along their first dimension, and the length of each. `empty`: as above. */
status tensors_concat(enum dtype dtype, struct tensor **parts, int64_t count, const struct shape *empty, struct tensor **out,
                      struct tensor **lengths);

/* *into becomes what it says and what the other says. INVALID_ARGUMENT when they contradict. */
status partial_shape_merge(struct partial_shape *into, const struct partial_shape *other);
void partial_shape_of(const struct shape *shape, struct partial_shape *out);
bool partial_shape_fits(const struct partial_shape *partial, const struct shape *shape);
/* Whether it says everything: then *out is the shape. */
bool partial_shape_full(const struct partial_shape *partial, struct shape *out);
/* "[2,?]", "<unknown>"; a buffer of the calling thread. */
const char *partial_shape_text(const struct partial_shape *partial);

#endif
