/* host_staging.c: the ops on staging areas. They have no handle: an area is found by container and name, made by whoever
 * comes first. */
#include <string.h>

#include "runtime/resource/staging.h"

static status find_area(struct host_call *call, enum staging_area kind, struct staging **out) {
  const struct program_attr *dtypes = host_attr(call, "dtypes");
  struct staging_spec spec = {
    .area = kind,
    .capacity = host_attr_int(call, "capacity", 0),
    .memory_limit = host_attr_int(call, "memory_limit", 0),
    .width = dtypes ? dtypes->list.count : 0,
  };
  struct resource *resource;
  bool is_new;
  TRY(host_get_resource(call, &staging_makers[kind], &spec, &is_new, &resource));
  *out = (struct staging *)resource;
  return OK;
}

/* A request with the indices of input `indices` (UINT32_MAX: none) and the values from input `first` on. */
static status make_request(struct host_call *call, enum staging_kind kind, uint32_t indices, uint32_t first, struct staging_request **out) {
  uint32_t index_count = indices == UINT32_MAX ? 0 : (uint32_t)call->inputs[indices].count;
  uint32_t value_count = kind == STAGING_PUT ? call->input_count - first : 0;
  struct staging_request *r = staging_request_create(kind, index_count, value_count);
  if (!r)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  r->index_count = index_count;
  if (index_count)
    memcpy(r->indices, call->inputs[indices].data, sizeof *r->indices * index_count);
  for (; r->value_count < value_count; r->value_count++) {
    status result = host_keep_input(call, first + r->value_count, &r->values[r->value_count]);
    if (result != OK) {
      staging_request_free(r);
      return result;
    }
  }
  *out = r;
  return OK;
}

static status run(struct host_call *call, enum staging_area kind, struct staging_request *request) {
  struct staging *area;
  status result = find_area(call, kind, &area);
  if (result == OK)
    return staging_run(area, call, request);
  staging_request_free(request);
  return result;
}

static status give_size(struct host_call *call, enum staging_area kind, bool incomplete) {
  struct staging *area;
  TRY(find_area(call, kind, &area));
  return host_give_number(call, 0, DTYPE_INT32, staging_size(area, incomplete));
}

static status clear(struct host_call *call, enum staging_area kind) {
  struct staging *area;
  TRY(find_area(call, kind, &area));
  staging_clear(area);
  return OK;
}

/* ---- areas in a line ---- */

status host_stage(struct host_call *call) {
  struct staging_request *r;
  TRY(make_request(call, STAGING_PUT, UINT32_MAX, 0, &r));
  return run(call, STAGING_LINE, r);
}

status host_unstage(struct host_call *call) {
  struct staging_request *r;
  TRY(make_request(call, STAGING_TAKE, UINT32_MAX, 0, &r));
  return run(call, STAGING_LINE, r);
}

status host_stage_peek(struct host_call *call) {
  struct staging_request *r;
  if (call->inputs[0].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "index must be scalar");
  TRY(make_request(call, STAGING_PEEK, UINT32_MAX, 0, &r));
  r->key = host_scalar_int(&call->inputs[0]);
  return run(call, STAGING_LINE, r);
}

status host_stage_size(struct host_call *call) { return give_size(call, STAGING_LINE, false); }
status host_stage_clear(struct host_call *call) { return clear(call, STAGING_LINE); }

/* ---- areas with keys ---- */

static status put_key(struct host_call *call, enum staging_area kind) {
  struct staging_request *r;
  if (call->inputs[0].count == 0)
    return fail(INVALID_ARGUMENT, "key must not be empty");
  if (call->inputs[0].count != 1)
    return fail(INVALID_ARGUMENT, "key must be an int64 scalar, got tensor with shape: %s", shape_text(&call->inputs[0].shape));
  TRY(make_request(call, STAGING_PUT, 1, 2, &r));
  r->key = host_scalar_int(&call->inputs[0]);
  return run(call, kind, r);
}

static status get_key(struct host_call *call, enum staging_area kind, enum staging_kind how) {
  struct staging_request *r;
  if (call->inputs[0].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "key must be an int64 scalar: %s", shape_text(&call->inputs[0].shape));
  TRY(make_request(call, how, 1, 0, &r));
  r->key = host_scalar_int(&call->inputs[0]);
  return run(call, kind, r);
}

static status take_any(struct host_call *call, enum staging_area kind) {
  struct staging_request *r;
  TRY(make_request(call, STAGING_TAKE, 0, 0, &r));
  r->any_key = true;
  return run(call, kind, r);
}

#define KEYED(name, kind)                                                                              \
  status host_##name##_stage(struct host_call *call) { return put_key(call, kind); }                   \
  status host_##name##_unstage(struct host_call *call) { return get_key(call, kind, STAGING_TAKE); }   \
  status host_##name##_unstage_any(struct host_call *call) { return take_any(call, kind); }            \
  status host_##name##_peek(struct host_call *call) { return get_key(call, kind, STAGING_PEEK); }      \
  status host_##name##_size(struct host_call *call) { return give_size(call, kind, false); }           \
  status host_##name##_incomplete_size(struct host_call *call) { return give_size(call, kind, true); } \
  status host_##name##_clear(struct host_call *call) { return clear(call, kind); }
KEYED(map, STAGING_MAP)
KEYED(ordered_map, STAGING_ORDERED_MAP)
#undef KEYED
