/* page.h: what a task is at, as text and as JSON: what `tfc status` shows. Bounded; no numbers by which a session is known. */
#ifndef TFC_RUNTIME_PROCESS_PAGE_H
#define TFC_RUNTIME_PROCESS_PAGE_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 16384
#define PAGE_PEERS 64 /* further ones are counted */
#define PAGE_DRIVERS 64

struct page_peer {
  const char *name, *address;
  char state[256];  /* "is connected", "was lost: ..." */
  uint64_t since_s; /* how long it has been so */
};
struct page_driver {
  const char *name;
  uint32_t command; /* which of its commands */
  uint64_t last;    /* the last step of it that is applied here */
};
struct page_facts {
  const char *task, *stage; /* "worker_0", "runs its phases" */
  uint32_t phase, phases;   /* phase 0: none has begun */
  const char *entry;
  int64_t step, steps;    /* steps 0: not known yet */
  const char *waits;      /* "" : for nothing */
  const char *checkpoint; /* what is known of it; "": nothing */
  struct page_peer peers[PAGE_PEERS];
  uint32_t peer_count, more_peers;
  struct page_driver drivers[PAGE_DRIVERS];
  uint32_t driver_count;
};

/* Both end in a line end; out: PAGE_BYTES. */
void page_write_text(const struct page_facts *facts, char *out);
void page_write_json(const struct page_facts *facts, char *out);

#endif
