/* host_optional.c: several tensors as one value: optionals, which may have none, and the components of composite tensors. Such a
 * value is a tensor list whose elements may differ in dtype. */
#include "runtime/tensor_list.h"

/* OptionalFromValue, CompositeTensorVariantFromComponents */
status host_bundle_make(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_make_output(call, 0, DTYPE_VARIANT, DTYPE_VARIANT, call->input_count, &list));
  for (uint32_t i = 0; i < call->input_count; i++)
    TRY(host_keep_input(call, i, &list->items[i]));
  return OK;
}

status host_optional_none(struct host_call *call) {
  struct tensor_list *list;
  return list_make_output(call, 0, DTYPE_VARIANT, DTYPE_VARIANT, 0, &list);
}

status host_optional_has_value(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  TRY(host_make_output(call, 0, DTYPE_BOOL, &(struct shape){0}));
  *(bool *)call->outputs[0]->data = list->count > 0;
  return OK;
}

static status give_components(struct host_call *call, const struct tensor_list *list) {
  if (list->count != call->output_count)
    return fail(INVALID_ARGUMENT, "the value has %lld components, not %u", (long long)list->count, call->output_count);
  const struct program_attr *types = host_attr(call, "output_types");
  for (uint32_t i = 0; types && i < types->list.count && i < call->output_count; i++) {
    enum dtype wanted = (enum dtype)program_attr(call->program, types->list.first + i)->i;
    if (list->items[i]->dtype != wanted)
      return fail(INVALID_ARGUMENT, "The given optional does not match the expected type for component %u. Expected: %s. Actual: %s.", i,
                  dtype_name(wanted), dtype_name(list->items[i]->dtype));
  }
  for (uint32_t i = 0; i < call->output_count; i++)
    call->outputs[i] = tensor_retain(list->items[i]);
  return OK;
}

status host_optional_get_value(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  if (list->count == 0)
    return fail(INVALID_ARGUMENT, "The given optional does not have a value.");
  return give_components(call, list);
}

status host_composite_components(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  return give_components(call, list);
}
