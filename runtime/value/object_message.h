/* object_message.h: variant tensors as bytes: TensorProto, whose content are messages VariantTensorDataProto. */
#ifndef TFC_RUNTIME_VALUE_OBJECT_MESSAGE_H
#define TFC_RUNTIME_VALUE_OBJECT_MESSAGE_H

#include "base/wire.h"
#include "runtime/host/object.h"

/* How objects of a kind are written, and made again. */
struct object_message {
  const char *type_name; /* TensorFlow's */
  /* Tensor i that is in it; NULL: there are no more. */
  struct tensor *(*item)(const struct object *object, uint32_t i);
  struct string_view (*metadata)(const struct object *object); /* NULL: it has none */
  /* A new object around `count` tensors, which it retains. INVALID_ARGUMENT: these are none of such an object. */
  status (*make)(struct tensor *const *items, uint32_t count, struct string_view metadata, struct object **out);
};
extern const struct object_message ragged_message, composite_message, tensor_object_message;

/* The TensorProto. UNIMPLEMENTED: elements that are not written, or that hold variants. */
status objects_message_write(struct wire_buffer *buffer, const struct tensor *tensor);
/* Whether it is the TensorProto of a variant tensor. */
bool is_objects_message(struct wire wire);
/* INVALID_ARGUMENT: it is none; UNIMPLEMENTED: elements of a kind that is not read. */
status objects_message_read(struct wire wire, struct tensor **out);

#endif
