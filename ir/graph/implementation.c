/* implementation.c: see implementation.h. */
#include "ir/graph/implementation.h"

#include <string.h>

#include "ir/graph/function.h"
#include "ir/graph/registry.h"

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool same_args(const struct op_arg *a, uint32_t a_count, const struct op_arg *b, uint32_t b_count) {
  bool same = a_count == b_count;
  for (uint32_t i = 0; same && i < a_count; i++)
    same = a[i].dtype == b[i].dtype && a[i].is_ref == b[i].is_ref && same_text(a[i].type_attr, b[i].type_attr) &&
           same_text(a[i].number_attr, b[i].number_attr) && same_text(a[i].list_attr, b[i].list_attr);
  return same;
}

static bool are_siblings(const struct function *a, const struct function *b) {
  return a->interface && b->interface && a->role == b->role && strcmp(a->interface, b->interface) == 0;
}

/* What the functions of a pair hand on differs from one implementation to another. */
static bool signatures_agree(const struct function *a, const struct function *b) {
  return (a->role == FUNCTION_BACKWARD || same_args(a->args, a->arg_count, b->args, b->arg_count)) &&
         (a->role == FUNCTION_FORWARD || same_args(a->rets, a->ret_count, b->rets, b->ret_count));
}

/* The first function of the library with the interface and role of this one: all are compared with it. */
static const struct function *first_sibling(const struct graph *library, const struct function *f) {
  for (uint32_t i = 0; i < library->functions.count; i++)
    if (are_siblings(&library->functions.items[i], f))
      return &library->functions.items[i];
  return f;
}

void implementations_check(struct graph *library) {
  bool agree = true;
  for (uint32_t i = 0; i < library->functions.count && agree; i++) {
    const struct function *f = &library->functions.items[i];
    /* made for a device, but of no interface: TensorFlow reads no further */
    agree = f->interface ? signatures_agree(first_sibling(library, f), f) : !f->preferred_device;
  }
  for (uint32_t i = 0; i < library->functions.count && !agree; i++)
    library->functions.items[i].interface = NULL;
}

/* Whether "CPU" is the kind of "/job:worker/task:0/device:CPU:0". */
static bool is_device_type(const char *device, const char *type) {
  const char *at = device ? strstr(device, "device:") : NULL;
  size_t length = type ? strlen(type) : 0;
  return at && length && strncmp(at + strlen("device:"), type, length) == 0 && at[strlen("device:") + length] == ':';
}

const struct function *implementation_find(const struct graph *library, const char *name, const char *device) {
  const struct function *f = function_find(library, name);
  for (uint32_t i = 0; f && f->interface && i < library->functions.count; i++) {
    const struct function *other = &library->functions.items[i];
    if (other != f && are_siblings(f, other) && is_device_type(device, other->preferred_device))
      return other;
  }
  return NULL;
}
