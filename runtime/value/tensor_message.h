/* tensor_message.h: TensorProto and the tensors of the runtime. Any thread. */
#ifndef TFC_RUNTIME_VALUE_TENSOR_MESSAGE_H
#define TFC_RUNTIME_VALUE_TENSOR_MESSAGE_H

#include "base/tensor.h"
#include "base/wire.h"

/* Reads a TensorProto: tensor_content, or values, the last one repeated. INVALID_ARGUMENT: sizes that do not fit,
 * unknown rank, types that cannot be fed; nothing large is allocated for bytes that are not there. */
status tensor_message_read(struct wire wire, struct tensor **out);
/* Writes NamedTensorProto {name, tensor} as field `number`; name NULL: a TensorProto. */
void tensor_message_write(struct wire_buffer *buffer, uint32_t number, const char *name, const struct tensor *tensor);
/* To the byte as TensorFlow writes them: dtype and shape alone, and the TensorProto with each value in the field of its dtype. */
void tensor_message_put_head(struct wire_buffer *buffer, const struct tensor *tensor);
void tensor_message_put_values(struct wire_buffer *buffer, const struct tensor *tensor);
/* The shape and the bytes of a TensorProto of any dtype; of variants, too. */
status tensor_message_head(struct wire wire, struct shape *shape, struct wire *content);

#endif
