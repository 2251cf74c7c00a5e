/* receive_pool.h: memory for received tensors, used again by the next step.
 *
 * Fresh memory costs more than the network: the system zeroes and maps each page when it is first touched. Steps receive the
 * same sizes again and again, so a block that a tensor gives back is kept, as long as blocks kept and in use together
 * stay below the most that was ever in use at once (or NET_POOL_BYTES): the pool never adds to the program's peak.
 * Any thread.
 */
#ifndef TFC_RUNTIME_NET_RECEIVE_POOL_H
#define TFC_RUNTIME_NET_RECEIVE_POOL_H

#include "base/tensor.h"

/* As tensor_create, for all types but strings. */
status receive_pool_tensor(enum dtype dtype, const struct shape *shape, struct tensor **out);
/* Gives back all blocks that are kept. */
void receive_pool_trim(void);

#endif
