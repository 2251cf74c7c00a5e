/* codegen_pack.h: what the files of contractions with a packed operand share: sizes, panels. See codegen_pack.c. Private to them. */
#ifndef TFC_TARGETS_CPU_CODEGEN_PACK_H
#define TFC_TARGETS_CPU_CODEGEN_PACK_H

#include "targets/cpu/codegen.h"

#define ROW_GROUPS 8    /* groups of copies in a tile */
#define DEPTH_BLOCK 256 /* terms of a block where both factors are packed */
#define BLOCK_CHUNK 8   /* panels in a tile then */

/* codegen_pack.c: sizes, where the kernel's are at hand */
value emit_divided_up(struct codegen *c, value n, value by);
value emit_pack_terms(struct codegen *c, const struct phase *p);  /* of a sum */
value emit_panel_count(struct codegen *c, const struct phase *p); /* of the lanes' loop */
int64_t panel_row_bytes(const struct phase *p);
value emit_panel_chunk(struct codegen *c, const struct phase *p); /* panels of a tile */
value emit_row_blocks(struct codegen *c, const struct phase *p);  /* of ROW_GROUPS groups of copies */

/* codegen_panel.c */
/* Where the panel of the lanes at hand begins: by the loops that the packed operand depends on. */
value panel_base(struct codegen *c, const struct phase *p, value panel);
value mask_before(struct codegen *c, value left, uint32_t lanes); /* lanes x i1: those before `left` */
value panel_mask(struct codegen *c, const struct phase *p, value base);

#endif
