/* buffer.h: memory for tensors that a step makes and gives away: kept by size when released, so that a step which runs
 * again asks the system for nothing.
 *
 * Threads: any; a tensor may be released by another thread than the one that made it, after the cache was closed too:
 * the cache lives until its last tensor is gone.
 */
#ifndef TFC_RUNTIME_MEMORY_BUFFER_H
#define TFC_RUNTIME_MEMORY_BUFFER_H

#include "base/tensor.h"

struct buffer_cache;

status buffer_cache_create(struct buffer_cache **out);
/* Frees what is idle; tensors still held free themselves later. Accepts NULL. */
void buffer_cache_close(struct buffer_cache *cache);
/* A tensor with undefined elements, one reference. Strings are views: their bytes belong to somebody else.
 * RESOURCE_EXHAUSTED without memory, INVALID_ARGUMENT for a shape that is none. */
status buffer_tensor(struct buffer_cache *cache, enum dtype dtype, const struct shape *shape, struct tensor **out);

#endif
