/* status.h: what a function that can fail returns, and the text that goes with it.
 *
 * The codes are the 16 canonical ones of gRPC and TensorFlow; their numbers are what travels on the wire. A failing
 * function returns fail(CODE, "text ..."): the text goes into a diagnostic of the calling thread, where the caller finds
 * it with status_text(), or adds to it with status_prefix(). A fault of the user is a status, a fault of ours an assert.
 *
 * Threads: the diagnostic is one per thread. Owner: the text lives until the next fail() of the same thread.
 */
#ifndef TFC_BASE_STATUS_H
#define TFC_BASE_STATUS_H

#include <stdint.h>

typedef enum status {
  OK = 0,
  CANCELLED = 1,         /* somebody asked for it: stop, say nothing more */
  UNKNOWN = 2,           /* a peer reported what has no code of ours */
  INVALID_ARGUMENT = 3,  /* the input is wrong: show the text, do not retry */
  DEADLINE_EXCEEDED = 4, /* waited too long: the text says for what */
  NOT_FOUND = 5,         /* a name that does not exist: show it */
  ALREADY_EXISTS = 6,
  PERMISSION_DENIED = 7,
  RESOURCE_EXHAUSTED = 8,  /* memory or a limit of base/limits.h: the text names it */
  FAILED_PRECONDITION = 9, /* right request, wrong state: for example an uninitialised variable */
  ABORTED = 10,            /* a conflict: the whole step may be tried again */
  OUT_OF_RANGE = 11,       /* the end of a sequence: a closed, empty queue */
  UNIMPLEMENTED = 12,      /* TensorFlow has it and tfc has not: the text names it */
  INTERNAL = 13,           /* a fault of ours */
  UNAVAILABLE = 14,        /* a peer cannot be reached: may be tried again */
  DATA_LOSS = 15,          /* a file is damaged */
  UNAUTHENTICATED = 16,
} status;

/* Records the text (cut at 2047 bytes) and returns the code. */
status fail(status code, const char *format, ...) __attribute__((format(printf, 2, 3), warn_unused_result));
/* The same for a text that is data, a kernel's check: its first "%d" are the values shown, "%%" is one '%'. */
#define STATUS_SHOWN 3 /* at most */
status fail_shown(status code, const char *text, const int64_t shown[STATUS_SHOWN]) __attribute__((warn_unused_result));
/* Puts text in front of the recorded one and returns `code` unchanged: where it happened. */
status status_prefix(status code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts text behind the recorded one and returns `code` unchanged. */
status status_suffix(status code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A failure that is told later, maybe by another thread: all zero is none. `text` is NULL where there was no memory for it. */
struct kept_status {
  status code;
  char *text;
};
/* Keeps `code` and, unless it is OK, this thread's text: in place of nothing. */
struct kept_status status_keep(status code);
/* As the fail() that was kept. */
status status_repeat(const struct kept_status *kept);
/* The same, and frees it: it is none then. */
status status_tell(struct kept_status *kept);
void status_drop(struct kept_status *kept);
/* The text of the last fail() of this thread; never NULL. */
const char *status_text(void);
/* "INVALID_ARGUMENT" and so on; "UNKNOWN" for a number that is none. */
const char *status_name(status code);
/* The exit code of a program that failed so: 65 bad input, 69 a peer, 70 ours, 74 input or output (contract, section 3). */
int status_exit_code(status code);

#define TRY(expr)              \
  do {                         \
    status try_code_ = (expr); \
    if (try_code_ != OK)       \
      return try_code_;        \
  } while (0)

#endif
