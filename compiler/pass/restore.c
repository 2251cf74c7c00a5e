/* restore.c: the variables of a SavedModel start with the values in its folder. A variable is found in the bundle under its own
 * name; one that is not there (local variables) stays uninitialised. */
#include "compiler/pass/pass.h"
#include "compiler/read/read.h"

static status restore_one(struct build *b, struct bundle *bundle, uint32_t var) {
  struct flow_var *v = &b->vars.items[var];
  struct var_initial initial = {.var = var};
  status s = bundle_read(bundle, v->name, &initial.value);
  if (s == NOT_FOUND)
    return OK;
  TRY(s);
  if (initial.value.dtype != v->dtype)
    return fail(INVALID_ARGUMENT, "%s: tensor_name = %s; expected dtype %s does not equal original dtype %s", v->node, v->name,
                dtype_name(v->dtype), dtype_name(initial.value.dtype));
  bool fits = !v->has_shape || v->rank == initial.value.rank;
  for (int i = 0; i < v->rank && fits && v->has_shape; i++)
    fits = v->dims[i] == initial.value.dims[i];
  if (!fits)
    return fail(INVALID_ARGUMENT, "%s: the SavedModel holds another shape of '%s' than the graph", v->node, v->name);
  vec_push(&b->initials, initial);
  return OK;
}

status pass_restore(struct build *b) {
  if (!b->model.variables_prefix || !b->vars.count)
    return OK;
  struct bundle *bundle;
  TRY(bundle_open(b->model.variables_prefix, &b->arena, &bundle));
  for (uint32_t i = 0; i < b->vars.count; i++)
    TRY(restore_one(b, bundle, i));
  return OK;
}
