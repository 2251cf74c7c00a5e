/* host_entropy.c: integers of which nobody knows the next: from the operating system. */
#include <sys/random.h>

#include "runtime/host/host.h"

status host_entropy(struct host_call *call) {
  const struct tensor *sizes = &call->inputs[0];
  struct shape shape = {.rank = (int)sizes->count};
  for (int64_t i = 0; i < sizes->count; i++)
    shape.dims[i] = sizes->dtype == DTYPE_INT64 ? ((const int64_t *)sizes->data)[i] : ((const int32_t *)sizes->data)[i];
  TRY(host_make_output(call, 0, (enum dtype)host_attr_int(call, "dtype", DTYPE_INT64), &shape));
  struct tensor *out = call->outputs[0];
  size_t size = (size_t)out->count * dtype_size(out->dtype);
  for (size_t at = 0; at < size;) {
    ssize_t got = getrandom((char *)out->data + at, size - at, 0);
    if (got < 0)
      return fail(UNAVAILABLE, "the system has no random numbers");
    at += (size_t)got;
  }
  return OK;
}
