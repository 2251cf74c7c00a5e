/* tensor_proto.h: TensorProto as TensorFlow writes it: numbers as content, strings one by one. (Reading: tensor_message.h.) */
#ifndef TFC_RUNTIME_VALUE_TENSOR_PROTO_H
#define TFC_RUNTIME_VALUE_TENSOR_PROTO_H

#include "base/tensor.h"
#include "base/wire.h"

/* The fields of a TensorProto. */
void tensor_proto_put(struct wire_buffer *out, const struct tensor *tensor);
/* The same with strings as content, too: all lengths, then all bytes. */
void tensor_proto_put_content(struct wire_buffer *out, const struct tensor *tensor);

#endif
