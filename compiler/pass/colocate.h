/* colocate.h: groups of nodes that must share a device, as TensorFlow forms them: what a reference or resource edge
 * connects, and what `_class` says (loc:@name). Each group has the device that its members ask for together.
 *
 * After registry_check: output dtypes tell which edges are references. One thread. */
#ifndef TFC_COMPILER_PASS_COLOCATE_H
#define TFC_COMPILER_PASS_COLOCATE_H

#include "compiler/build.h"
#include "compiler/device.h"

struct colocation_group {
  struct device_spec requested; /* by all members together */
  struct device_spec resource;  /* where the variable, queue ... of the group was made: binding */
};
struct colocation {
  uint32_t *parent;                /* of each node, in a forest: the root stands for the group */
  struct colocation_group *groups; /* by root */
  struct device_spec *own;         /* what each node itself asks for */
};

/* INVALID_ARGUMENT with TensorFlow's text: a malformed device, groups that cannot be one. Memory is the build's arena. */
status colocation_make(struct build *build, struct colocation *out);
uint32_t colocation_root(const struct colocation *colocation, uint32_t node);

#endif
