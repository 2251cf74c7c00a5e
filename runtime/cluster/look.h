/* look.h: how another task looks from here: for people, and for who decides what a stalled step waits for. */
#ifndef TFC_RUNTIME_CLUSTER_LOOK_H
#define TFC_RUNTIME_CLUSTER_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct peer_look {
  const char *name, *address; /* valid as long as the cluster */
  bool is_self, is_up, was_up;
  bool is_cut;                            /* was up, and is to go on where it was with another connection */
  uint64_t silent_ms;                     /* a connection stands, or is to come back, and it has said nothing for so long; 0: it talks */
  bool has_phases, is_finished, has_left; /* what it said itself */
  bool is_refused;                        /* waiting for it is of no use */
  uint64_t changed_ms;                    /* by loop_now_ms(): when it came up or was lost; 0: never */
  char reason[200];                       /* why it is not up */
};
/* Any thread. */
void cluster_look(struct cluster *cluster, uint32_t task, struct peer_look *out);

/* "is connected", "was cut off: Connection reset by peer", "was lost: ...", "has not come: Connection refused". */
void peer_look_text(const struct peer_look *look, char *out, size_t size);

/* What GET answers at this path of the task's address ("/status"): a copy of the text, in place of the one before. Who asks costs a
 * reference to it. Any thread. */
void cluster_set_page(struct cluster *cluster, const char *path, const char *content_type, const char *text);

#endif
