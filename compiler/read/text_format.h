/* text_format.h: protobuf's text form (.pbtxt) into messages, for any message that has a descriptor.
 *
 * Fields that the descriptor has not are skipped, as they are in the binary form. The text is untrusted: nesting is bounded,
 * and memory is taken in proportion to what has been read. Owner of the message: the arena. One thread. */
#ifndef TFC_COMPILER_READ_TEXT_FORMAT_H
#define TFC_COMPILER_READ_TEXT_FORMAT_H

#include <protobuf-c/protobuf-c.h>
#include "base/arena.h"
#include "base/status.h"

/* INVALID_ARGUMENT with line and column. */
status text_parse(const char *text, size_t size, const ProtobufCMessageDescriptor *descriptor, struct arena *arena, ProtobufCMessage **out);

#endif
