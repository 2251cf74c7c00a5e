/* entry_variants.h: one entry compiled for several kinds of feeds, where the graph leaves open what it must know. */
#ifndef TFC_COMPILER_ENTRY_VARIANTS_H
#define TFC_COMPILER_ENTRY_VARIANTS_H

#include "compiler/build.h"
#include "ir/lower/lower.h"

/* The entry, and its variants behind it (struct entry.is_variant), into build->entries. A variant is made for
 *   each combination of ranks of fed placeholders without a shape; ranks that the graph refuses make one that only fails. Those that
 *     the ops take which get the feeds (feed_ranks) come first; of the others only one at a time is refused, where there are many feeds
 *     and one combination works; where there are too many, those that are alike come first;
 *   each size of the feeds that decides a rank by being 1, and by not being 1;
 *   each value of a feed's size that decides a rank (the length of a shape, the depth of indices);
 *   sizes that do not fit a comparison without shape errors;
 *   sizes that need not be equal where the first takes them for it (of which one may be 1, or divides the other), for entries of up to
 *     VARIANT_NODES nodes.
 * The runtime takes the first whose ranks and sizes are those of the feeds. */
status entry_lower_variants(struct build *build, const struct entry_spec *spec);

/* What a lowering found out: as struct lower_findings, the size of a feed by its place. */
struct lower_notes {
  bool undecided, assumed, wants_fed_size;
  uint32_t wants_feed;
  struct feed_size wants_size; /* where wants_fed_size: which */
};
/* What is asked of a lowering: as in struct lower_options. */
enum lower_mode { LOWER_FIRST, LOWER_MISFITS, LOWER_BROADCASTS };
/* lower_entries.c: the request for a spec, and one lowering of it. */
status entry_request(struct build *build, const struct entry_spec *spec, struct lower_request *out);
/* `ones`: answers to the first questions of op_decide_one. What was asked is in out->decisions, of a lowering that failed too. */
status entry_lower(struct build *build, const struct entry_spec *spec, const struct lower_request *request, enum lower_mode mode,
                   const bool *ones, uint32_t one_count, struct lower_notes *notes, struct entry *out);

#endif
