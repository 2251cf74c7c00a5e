/* cut.h: a checkpoint of the job is of one moment over all holders: who waits for whom, and when an attempt is given up.
 *
 * | coordinator | each holder |
 * | --- | --- |
 * | FREEZE(id) | commits nothing more, answers FROZEN with the last step of each driver |
 * | all have: SNAP(id, the largest of them) | commits what it lacks of these, copies aside, goes on; writes and syncs behind the steps:
 * DONE |
 * | all have: COMMIT(id) | names it in its state file; older ones may go |
 * | somebody refuses, or is late: ABORT(id) | goes on, and removes what it has of the id |
 *
 * It is complete when all have synced theirs, whoever has heard of that: who has said DONE keeps its part until it is told ABORT, or that
 * all go back to an older one. Steps stand still from FREEZE to SNAP: a round trip. An id never comes again.
 *
 * No I/O, no clock, no threads: times are handed in. Owner: the job's thread (job.c).
 */
#ifndef TFC_RUNTIME_CLUSTER_CUT_H
#define TFC_RUNTIME_CLUSTER_CUT_H

#include <stdbool.h>
#include <stdint.h>

#define CUT_HOLDERS_MAX 256
#define CUT_STILL_MS 20 /* steps stand still no longer: then the attempt is given up, and the next may take twice as long */
#define CUT_STILL_MS_MAX 2000

enum cut_message { CUT_NONE, CUT_FREEZE, CUT_SNAP, CUT_COMMIT, CUT_ABORT };

/* ---- the coordinator ---- */

struct cut {
  uint32_t holder_count;
  uint64_t id; /* of the attempt; 0: none is under way */
  bool frozen[CUT_HOLDERS_MAX], taken[CUT_HOLDERS_MAX], done[CUT_HOLDERS_MAX];
  bool is_snapped; /* SNAP was sent */
  uint64_t began_ms;
  uint32_t still_ms; /* 0: CUT_STILL_MS */
};

/* Each returns what all holders are to be told now. */
/* CUT_NONE: one is under way. */
enum cut_message cut_begin(struct cut *cut, uint64_t id, uint64_t now_ms);
/* What holder i (not its task) says of an id; of another than the present one it counts for nothing. */
enum cut_message cut_frozen(struct cut *cut, uint32_t holder, uint64_t id);
enum cut_message cut_taken(struct cut *cut, uint32_t holder, uint64_t id);
enum cut_message cut_done(struct cut *cut, uint32_t holder, uint64_t id);
/* It cannot freeze, lacks a step that does not come, or could not write. */
enum cut_message cut_refused(struct cut *cut, uint32_t holder, uint64_t id);
/* A holder came back without its state, or SNAP cannot be said. */
enum cut_message cut_lost(struct cut *cut);
enum cut_message cut_tick(struct cut *cut, uint64_t now_ms);
/* When cut_tick is due; 0: it need not be called. */
uint64_t cut_due_ms(const struct cut *cut);

/* ---- a holder ---- */

enum cut_seat_state { SEAT_RUNS, SEAT_FROZEN, SEAT_TAKEN };
struct cut_seat {
  enum cut_seat_state state;
  uint64_t id;       /* while not SEAT_RUNS */
  uint64_t since_ms; /* SEAT_FROZEN */
};

/* What the holder has to do, in this order. */
struct cut_duty {
  bool complete;    /* name it in the state file */
  uint64_t discard; /* files and copy of this id; 0: none */
  bool thaw;
  bool freeze; /* then cut_seat_froze says whether it could */
  bool take;   /* commit what it lacks, copy aside, thaw; then cut_seat_took */
  bool refuse; /* tell the coordinator */
};
/* newest: the last complete checkpoint, as the coordinator knows it. */
struct cut_duty cut_seat_freeze(struct cut_seat *seat, uint64_t newest);
void cut_seat_froze(struct cut_seat *seat, uint64_t id, uint64_t now_ms);
struct cut_duty cut_seat_snap(struct cut_seat *seat, uint64_t id);
/* Whether it could be taken; in both cases steps go on. */
void cut_seat_took(struct cut_seat *seat, bool is_taken);
struct cut_duty cut_seat_commit(struct cut_seat *seat, uint64_t id);
struct cut_duty cut_seat_abort(struct cut_seat *seat, uint64_t id);
/* The coordinator does not answer: steps go on. */
struct cut_duty cut_seat_tick(struct cut_seat *seat, uint64_t now_ms);
/* The job goes back to an older checkpoint, or another history begins. What is being written is of one that is over. */
struct cut_duty cut_seat_restore(struct cut_seat *seat);

#endif
