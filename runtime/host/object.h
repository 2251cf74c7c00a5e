/* object.h: variant tensors whose elements are objects: encoded ragged tensors, sparse matrices, optionals, maps, lists of tensors.
 *
 * An object is counted and does not change once it is in a tensor, but for one that nobody else has (object_reuse). The
 * tensor's data are pointers, NULL where nothing was put; each holds a reference.
 */
#ifndef TFC_RUNTIME_HOST_OBJECT_H
#define TFC_RUNTIME_HOST_OBJECT_H

#include "runtime/host/host.h"

struct object;
struct object_message;
struct object_kind {
  const char *name;                 /* for errors */
  void (*destroy)(struct object *); /* frees it, too */
  /* ZerosLike and AddN of such variants; NULL: there are none. */
  status (*zeros)(const struct object *object, struct object **out);
  status (*add)(const struct object *a, const struct object *b, struct object **out);
  const struct object_message *message; /* how it is written (object_message.h); NULL: it is not */
};
struct object {
  const struct object_kind *kind;
  _Atomic int references;
};

void object_init(struct object *object, const struct object_kind *kind); /* one reference */
struct object *object_retain(struct object *object);                     /* NULL stays NULL */
void object_release(struct object *object);                              /* accepts NULL */

/* A variant tensor of empty elements. */
status objects_create(const struct shape *shape, struct tensor **out);
static inline struct object **objects_of(const struct tensor *tensor) { return tensor->data; }
/* Takes one reference of the object. */
static inline void objects_put(struct tensor *tensor, int64_t i, struct object *object) { objects_of(tensor)[i] = object; }
bool tensor_has_objects(const struct tensor *tensor);
/* `count` elements of a tensor of objects from `first` on, shared, as a new tensor of the shape. */
status objects_share(const struct tensor *from, int64_t first, const struct shape *shape, struct tensor **out);

/* Element by element; the sum with an empty element is the other one. */
status objects_zeros(const struct tensor *from, struct tensor **out);
status objects_add(const struct tensor *a, const struct tensor *b, struct tensor **out);

/* Output i: a scalar that holds the object; takes its reference, also on failure. */
status object_output(struct host_call *call, uint32_t i, struct object *object);
/* Output 0 is the tensor of input 0, whose object the caller may change: nobody else has it. False: somebody has, nothing was done. */
bool object_reuse(struct host_call *call, struct object *object);
/* The tensor of objects that input i is; INVALID_ARGUMENT for anything else. */
status objects_input(const struct host_call *call, uint32_t i, const struct tensor **out);
/* The object of this kind that the scalar input i holds. */
status object_input(const struct host_call *call, uint32_t i, const struct object_kind *kind, struct object **out);

#endif
