/* rehearsal.h: a part that receives what depends on its own changes, and is to change all or nothing.
 *
 * Such a part (it adds to a variable, sends what is there then, and goes on with the answer) cannot wait with its changes
 * until all has come. It runs twice: first as a rehearsal up to its last receive, whose changes are made on copies of the
 * variables and whose messages are sent; then for good, on the variables, with what the rehearsal received, drew and was
 * given by host calls, and without a wait up to there. A driver that is lost during the rehearsal leaves nothing of the step.
 * Host calls of the rehearsal are made, and the step's record (record.h) keeps them for the next try.
 *
 * A replica's own part of an all-reduce with several means behind each other is run once: nobody else changes its variables, so the copies
 * take their places when the last mean has come. Until then the replica has the state of the step before, and may give it to others.
 *
 * One thread: the frame's. Owner: who runs the part. */
#ifndef TFC_RUNTIME_STEP_REHEARSAL_H
#define TFC_RUNTIME_STEP_REHEARSAL_H

#include "runtime/step/frame.h"

struct rehearsal;

/* Whether it changes a variable, or a branch or loop of it does: random draws are no change that others would miss. */
bool instr_changes_variable(const struct program *program, const struct program_instr *instr);
/* So many instructions of a part's outer block are rehearsed: up to the last receive that comes behind a change of a variable;
 * 0: none. */
uint32_t rehearsal_length(const struct program *program, const struct program_part *part);

/* is_own: the copies become the variables. RESOURCE_EXHAUSTED. */
status rehearsal_create(struct task *task, const struct part *part, bool is_own, struct rehearsal **out);
/* False: the part is run again, or NULL. */
bool rehearsal_is_own(const struct rehearsal *rehearsal);
/* Accepts NULL. */
void rehearsal_destroy(struct rehearsal *rehearsal);
/* It went well: the next run is for good; of one's own part, that of the rest. */
void rehearsal_end(struct rehearsal *rehearsal);

/* All below accept frames without one. */

/* Changes are made on copies. */
bool rehearsal_is_on(const struct frame *frame);
/* What the instruction changes is a copy, or a generator that draws the same again: nothing of it is there yet. */
bool rehearsal_covers(const struct frame *frame, const struct program_instr *instr);
/* Those of the part's outer block that run now, in order. */
struct program_range rehearsal_instrs(const struct frame *frame, struct program_range instrs);
/* Not yet, or not again: an instruction of the outer block behind the last receive, during the rehearsal; after it a message, or what ran
 * then in one's own part. */
bool rehearsal_skips(const struct frame *frame, const struct program_instr *instr);
/* The variable that the frame is to use, whose number it is. Before a change, which is about to be made: RESOURCE_EXHAUSTED. */
struct variable *rehearsal_variable(const struct frame *frame, uint32_t number);
status rehearsal_change(struct frame *frame, uint32_t number);
/* Of what is run again, during the rehearsal: what came there is kept, with a reference of each. RESOURCE_EXHAUSTED. */
status rehearsal_keep(struct frame *frame, const struct program_instr *instr, struct tensor *const *values, uint32_t count);
/* After it: what came there, the next time the run comes to it; it stays the rehearsal's. False: nothing. */
bool rehearsal_find(struct frame *frame, const struct program_instr *instr, struct tensor ***out);

#endif
