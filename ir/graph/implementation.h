/* implementation.h: functions that implement one interface, each for a kind of device: which of them a call runs.
 *
 * A function of the library may say that it implements an interface (`api_implements`), and for which kind of device it is made
 * (`api_preferred_device`). TensorFlow's optimizer then lets a call of it run another function of that interface, the first one that
 * prefers the kind of device on which the call is placed (its implementation selector). Values differ: a sampler of
 * tensorflow_probability is written in ops that any device has, and once more with the random ops of CPUs.
 *
 * Gradients come in pairs, which are chosen among their like: the function that also hands on what its gradient needs (it names
 * it: `backward_function_name`), and the gradient (`forward_function_name`), whose last arguments that is. One thread.
 */
#ifndef TFC_IR_GRAPH_IMPLEMENTATION_H
#define TFC_IR_GRAPH_IMPLEMENTATION_H

#include "ir/graph/graph.h"

/* Once, after the library is read: functions of one interface must have one signature. Where two have not, TensorFlow chooses nowhere, and
 * every call runs what it names. */
void implementations_check(struct graph *library);
/* What runs in the place of the function `name` on a device ("/job:worker/task:0/device:CPU:0"; NULL: none is said). NULL: the function
 * itself. */
const struct function *implementation_find(const struct graph *library, const char *name, const char *device);

#endif
