/* checkpoint_slice.c: the part of a tensor that a variable is, in TensorFlow's words: "10 4 0,5:-" is rows 0 to 4 of [10,4]. */
#include <stdlib.h>
#include <string.h>

#include "base/checkpoint.h"

static bool take_number(const char **at, int64_t *out) {
  char *end;
  *out = strtoll(*at, &end, 10);
  bool good = end > *at && *out >= 0;
  *at = end;
  return good;
}

status checkpoint_slice_parse(const char *text, struct shape *whole, struct checkpoint_slice *slice) {
  const char *at = text;
  *whole = (struct shape){0};
  *slice = (struct checkpoint_slice){0};
  for (const char *space; (space = strchr(at, ' ')); at = space + 1) {
    const char *end = at;
    if (whole->rank == LIMIT_RANK || !take_number(&end, &whole->dims[whole->rank++]) || end != space)
      return fail(INVALID_ARGUMENT, "can't parse shape and slice: '%s'", text);
  }
  for (;; at++) {
    if (slice->rank == LIMIT_RANK)
      return fail(INVALID_ARGUMENT, "can't parse shape and slice: '%s'", text);
    int d = slice->rank++;
    slice->length[d] = -1;
    if (*at == '-')
      at++;
    else if (!take_number(&at, &slice->start[d]) || *at++ != ',' || !take_number(&at, &slice->length[d]))
      return fail(INVALID_ARGUMENT, "can't parse shape and slice: '%s'", text);
    if (*at != ':')
      break;
  }
  if (*at || slice->rank != whole->rank)
    return fail(INVALID_ARGUMENT, "can't parse shape and slice: '%s'", text);
  for (int d = 0; d < slice->rank; d++)
    if (slice->length[d] >= 0 && (slice->start[d] > whole->dims[d] || slice->length[d] > whole->dims[d] - slice->start[d]))
      return fail(INVALID_ARGUMENT, "slice '%s' is not inside its shape", text);
  return OK;
}

struct shape checkpoint_slice_shape(const struct shape *whole, const struct checkpoint_slice *slice) {
  struct shape shape = *whole;
  for (int d = 0; d < shape.rank; d++)
    shape.dims[d] = slice->length[d] < 0 ? whole->dims[d] : slice->length[d];
  return shape;
}
