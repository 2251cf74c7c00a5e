/* moment.h: places in the protocol where a mishap hurts most: a scenario may want its mishaps there, not at any turn of any thread. */
#ifndef TFC_TESTS_SIMULATOR_MOMENT_H
#define TFC_TESTS_SIMULATOR_MOMENT_H

#include <stdint.h>

enum moment {
  MOMENT_NONE,     /* turns of threads decide */
  MOMENT_LINK,     /* a link is up again */
  MOMENT_CHANGE,   /* a step enters the gate, to change something */
  MOMENT_COMMIT,   /* a step is in the ledger, and not reported yet */
  MOMENT_FREEZE,   /* a task has stopped commits for a checkpoint */
  MOMENT_TAKE,     /* its variables are marked */
  MOMENT_RENAME,   /* a file of its has got its name, which no sync has made safe */
  MOMENT_WRITE,    /* its files are written */
  MOMENT_WHOLE,    /* the coordinator knows that all have written theirs, and has told nobody yet */
  MOMENT_COMPLETE, /* it names the checkpoint as complete */
  MOMENT_RESTORE,  /* it has gone back to one */
  MOMENT_ROUND,    /* a round has been decided */
  MOMENT_ADMIT,    /* a replica is let into rounds */
  MOMENT_GONE,     /* the coordinator hears that a task has done its command, and is about to note it */
  MOMENT_BYE,      /* a task says good-bye */
  MOMENTS
};

#define MOMENT(moment) (1u << (moment))

/* It came, of this task: a mishap that waits for it happens at once. From a fiber, which gives way then. */
void moment_came(enum moment moment, uint32_t task);

#endif
