/* master_attr.h: are the attributes of a client's node those of the build? Any thread. */
#ifndef TFC_RUNTIME_MASTER_MASTER_ATTR_H
#define TFC_RUNTIME_MASTER_MASTER_ATTR_H

#include "runtime/master/master.h"
#include "runtime/value/tensor_message.h"

/* entry: one entry of NodeDef.attr {1 name, 2 AttrValue}. False when the build's node has the attribute with another value. Not
 * compared: attributes that only one side has (clients write defaults out), and those whose name begins with '_'. */
bool master_attr_agrees(const struct master_node *node, struct wire entry);

#endif
