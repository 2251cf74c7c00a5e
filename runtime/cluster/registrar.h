/* registrar.h: which process counts under a task's name: kept by the coordinator (ps 0, without ps the chief), for all tasks.
 *
 * A process draws a random number at its start, its incarnation. The registrar gives a name to one incarnation at a time and counts them:
 * the generation. Others take the higher generation of a name and shut out the lower, so two processes under one name never both go on, and
 * never both end: the coordinator alone decides, and a newcomer displaces nobody who answers.
 *
 * | holder of the name | a newcomer asks |
 * | --- | --- |
 * | none, or its connection has ended | granted, with the next generation |
 * | connected | held; the holder is probed |
 * | ... it answers | refused |
 * | ... it has been silent for NET_SILENCE_MS | granted; the holder is refused when it wakes |
 * | none any more, on a connection from before the grant | has to come again: the holder may have been started since, in the place of who
 *   asks, and only be cut off; who is dead does not come again |
 *
 * No I/O, no clock, no threads: events and times are handed in. Owner: the cluster of the coordinator.
 */
#ifndef TFC_RUNTIME_CLUSTER_REGISTRAR_H
#define TFC_RUNTIME_CLUSTER_REGISTRAR_H

#include <stdbool.h>
#include <stdint.h>

enum registrar_answer {
  REGISTRAR_GRANTED,
  REGISTRAR_HELD,      /* ask again after the next event of this name, and with every tick */
  REGISTRAR_REFUSED,   /* the holder lives */
  REGISTRAR_LATE,      /* its connection is older than the holder's grant: on a new one */
  REGISTRAR_DISPLACED, /* who asks held the name once, and it went to another */
};

struct registrar_name {
  uint64_t holder, generation; /* 0: none yet */
  bool is_linked;              /* the holder's connection stands */
  uint64_t granted_ms;         /* to the holder */
  uint64_t heard_ms;           /* the last word of the holder */
  uint32_t probes, answered;   /* probes so far; the last one that was answered */
  uint32_t gone;               /* those up to here went to a connection that has ended: they will not be answered */
};

/* generation: what the asking incarnation was granted before by this registrar; 0: nothing. opened_ms: when its connection was. *probe: 0
 * when it asks for the first time on its connection, then what the last question left there; when it has changed: send the holder a probe
 * with this number. */
enum registrar_answer registrar_ask(struct registrar_name *name, uint64_t incarnation, uint64_t generation, uint64_t opened_ms,
                                    uint64_t now_ms, uint32_t *probe);
/* The granted incarnation's connection stands; has ended. */
void registrar_linked(struct registrar_name *name, uint64_t incarnation, uint64_t now_ms);
void registrar_unlinked(struct registrar_name *name, uint64_t incarnation);
/* Bytes of the holder have come; the answer to a probe has. */
void registrar_heard(struct registrar_name *name, uint64_t now_ms);
void registrar_answered(struct registrar_name *name, uint32_t probe, uint64_t now_ms);

#endif
