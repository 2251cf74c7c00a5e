/* collective.h: steps of several drivers that meet: each gives a tensor, all get the sum or mean of them; or they only wait
 * for each other, and one of them is told that it leads.
 *
 * A round is over when `size` drivers have come; whoever comes then begins the next. The result is summed in the order of
 * the drivers' numbers, whatever the order in which they came. When a step that waits is given up, its round cannot end:
 * the others of the round fail with ABORTED, unless its driver will repeat it. Threads: any.
 */
#ifndef TFC_RUNTIME_RESOURCE_COLLECTIVE_H
#define TFC_RUNTIME_RESOURCE_COLLECTIVE_H

#include "runtime/host/host.h"
#include "runtime/memory/container.h"
#include "runtime/resource/collective_value.h"

#define COLLECTIVE_SIZE_MAX 4096 /* LIMIT_TASKS */

struct collective;
struct collective_spec {
  int64_t size;
  bool mean;
  enum collective_kind kind;
  enum element_merge merge;
};
extern const struct resource_maker collective_maker; /* argument: const struct collective_spec * */

/* Ends at once or later (host.h). With an input: output 0 is the result. Without: output 0 is a bool, true for one of all. member: which of
 * several in one step; their order is that of (driver, member). `gives`: input 0 is its value. comes_again: when the step is given up its
 * driver will repeat it, so that the others wait for that. */
status collective_meet(struct collective *collective, struct host_call *call, int64_t member, bool gives, bool comes_again);
/* INTERNAL when the group was begun with another size or for something else. */
status collective_check(const struct collective *collective, const struct collective_spec *spec);

/* A task that belongs to the group was missing too long: a round that waits for it ends with UNAVAILABLE and the text. */
void collective_lose(struct collective *collective, uint32_t driver, const char *text);
/* A task that belongs to the group begins no more steps: rounds without it end with FAILED_PRECONDITION, now and later. */
void collective_leave(struct collective *collective, uint32_t driver);

#endif
