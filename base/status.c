/* status.c: the diagnostic of each thread, and what is said of codes. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 2048
static _Thread_local char text[TEXT_SIZE];

status fail(status code, const char *format, ...) {
  char next[TEXT_SIZE]; /* the arguments may be the old text */
  va_list args;
  va_start(args, format);
  vsnprintf(next, sizeof next, format, args);
  va_end(args);
  memcpy(text, next, sizeof next);
  return code;
}

status status_prefix(status code, const char *format, ...) {
  char next[TEXT_SIZE];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(next, sizeof next, format, args);
  va_end(args);
  if (n >= 0 && n < TEXT_SIZE)
    snprintf(next + n, sizeof next - (size_t)n, "%s", text);
  memcpy(text, next, sizeof next);
  return code;
}

status status_suffix(status code, const char *format, ...) {
  size_t n = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, sizeof text - n, format, args);
  va_end(args);
  return code;
}

const char *status_text(void) { return text; }

static const char *const names[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
                                    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
                                    "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
                                    "UNAUTHENTICATED"};

const char *status_name(status code) {
  return (unsigned)code < sizeof names / sizeof names[0] ? names[code] : "UNKNOWN";
}

int status_exit_code(status code) {
  switch (code) {
  case OK: return 0;
  case UNAVAILABLE:
  case DEADLINE_EXCEEDED:
  case UNAUTHENTICATED: return 69;
  case INTERNAL:
  case UNKNOWN:
  case RESOURCE_EXHAUSTED: return 70;
  case DATA_LOSS:
  case PERMISSION_DENIED: return 74;
  default: return 65;
  }
}
