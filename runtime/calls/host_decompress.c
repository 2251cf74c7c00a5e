/* host_decompress.c: DecodeCompressed. */
#include "runtime/data/inflate.h"
#include "runtime/host/host.h"
#include "runtime/text/string_output.h"

status host_decode_compressed(struct host_call *call) {
  struct string_view type = host_attr_string(call, "compression_type", "");
  struct string_output out;
  TRY(string_output_begin(&out, &call->inputs[0].shape, &call->outputs[0]));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    struct string_view in = ((const struct string_view *)call->inputs[0].data)[i];
    struct wire_buffer bytes = {0};
    status result = type.size ? inflate_bytes(in.data, in.size, type.data[0] == 'G', &bytes) : OK;
    if (result == OK)
      string_output_put(&out, type.size ? (const void *)bytes.data : in.data, type.size ? bytes.size : in.size);
    wire_buffer_free(&bytes);
    TRY(result);
  }
  return string_output_end(&out);
}
