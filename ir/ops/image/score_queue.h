/* score_queue.h: numbers of elements in the order of their scores, the best first and the first of equal ones before others: a binary heap
 * (Williams, "Heapsort") as loops of a kernel. Scores are no NaN, and change for the worse at most, that of the best one alone.
 *
 * Owner: none. For one thread at a time, as the kernel that is being built. */
#ifndef TFC_IR_OPS_SCORE_QUEUE_H
#define TFC_IR_OPS_SCORE_QUEUE_H

#include "ir/lower/lower.h"

struct score_queue {
  uint32_t scores; /* a buffer, of `rank` dimensions, */
  expr_id at[LIMIT_RANK];
  int rank, dim;   /* in which number i's is at[..] with i in dimension `dim` */
  uint32_t heap;   /* scratch, i64 */
  uint32_t length; /* a local */
};
/* `count`: the most that it may hold. To be called where scratch is declared; queue_start in the block that uses it, while it is empty. */
void queue_create(struct kb *kb, struct score_queue *q, uint32_t scores, dim count);
void queue_start(struct kb *kb, struct score_queue *q);
void queue_add(struct kb *kb, struct score_queue *q, expr_id number);
/* Of one that is not empty. */
expr_id queue_best(struct kb *kb, struct score_queue *q);
void queue_drop_best(struct kb *kb, struct score_queue *q);
/* The best one's score has become less. */
void queue_lower_best(struct kb *kb, struct score_queue *q);

#endif
