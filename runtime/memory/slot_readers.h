/* slot_readers.h: which instructions of a part read a slot, however it reaches them: through blocks and from turn to turn of a loop. */
#ifndef TFC_RUNTIME_MEMORY_SLOT_READERS_H
#define TFC_RUNTIME_MEMORY_SLOT_READERS_H

#include <stdbool.h>
#include "runtime/program/program.h"

#define SLOT_READ_BY_SEVERAL UINT32_MAX
struct slot_reader {
  uint32_t only;           /* the only instruction, counted from the part's first, + 1; 0: none; SLOT_READ_BY_SEVERAL */
  bool by_several_threads; /* one of them is dealt to threads */
};
/* is_dealt: by instruction of the part. out: one for each of its slots, from part->slots.first on; an alias' root has its readers. */
void slot_readers_find(const struct program *program, const struct program_part *part, const bool *is_dealt, struct slot_reader *out);

#endif
