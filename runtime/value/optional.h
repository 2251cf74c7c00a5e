/* optional.h: values that may be missing: objects with the components of an element, or with none. */
#ifndef TFC_RUNTIME_VALUE_OPTIONAL_H
#define TFC_RUNTIME_VALUE_OPTIONAL_H

#include "runtime/host/host.h"

/* Output i: an optional of these components, of which it takes references; none: no value. */
status optional_output(struct host_call *call, uint32_t i, struct tensor *const *components, uint32_t count);

#endif
