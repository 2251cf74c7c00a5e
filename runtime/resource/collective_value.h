/* collective_value.h: what comes of the values that the members of a group give, in the order of the members. Pure. */
#ifndef TFC_RUNTIME_RESOURCE_COLLECTIVE_VALUE_H
#define TFC_RUNTIME_RESOURCE_COLLECTIVE_VALUE_H

#include "base/status.h"
#include "base/tensor.h"
#include "runtime/value/element_sum.h"

enum collective_kind {
  COLLECTIVE_REDUCE,     /* all get the merged values */
  COLLECTIVE_GATHER,     /* all get the values behind each other along their first dimension */
  COLLECTIVE_BROADCAST,  /* one gives, all get it */
  COLLECTIVE_ALL_TO_ALL, /* member i gets row i of each */
  COLLECTIVE_SCATTER,    /* member i gets part i of the merged values, along their first dimension */
};
struct collective_values {
  enum collective_kind kind;
  enum element_merge merge;
  bool mean;
  int64_t count;               /* members */
  struct tensor *const *given; /* one each; NULL: it gives nothing */
};
/* What all members get, or what their own results are taken from (of all to all: each one's value, so that any will do). A new reference.
 * INVALID_ARGUMENT: the shapes do not go together; INTERNAL: none or two send in a broadcast. */
status collective_common(const struct collective_values *values, struct tensor **out);
/* A member's own result. */
status collective_own(const struct collective_values *values, struct tensor *common, int64_t member, struct tensor **out);

#endif
