/* status.c: the diagnostic of a thread. Texts are cut, never allocated, so that failing cannot fail. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE 2048
static _Thread_local char diagnostic[TEXT_SIZE];

/* A text is one line, whatever names a graph brings into it: an error is the last line that a program prints. */
static void text_flatten(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || *text == 0x7f)
      *text = ' ';
}

status fail(status code, const char *format, ...) {
  /* an argument may point into the old text: write aside first */
  char text[TEXT_SIZE];
  va_list args;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0)
    text[0] = 0;
  va_end(args);
  text_flatten(text);
  memcpy(diagnostic, text, sizeof text);
  return code;
}

status fail_shown(status code, const char *text, const int64_t shown[STATUS_SHOWN]) {
  char out[TEXT_SIZE];
  size_t used = 0;
  int count = 0;
  for (; *text && used + 24 < sizeof out; text++) {
    if (text[0] == '%' && text[1] == 'd' && count < STATUS_SHOWN) {
      used += (size_t)snprintf(out + used, sizeof out - used, "%lld", (long long)shown[count++]);
      text++;
      continue;
    }
    text += text[0] == '%' && text[1] == '%';
    out[used++] = *text;
  }
  out[used] = 0;
  return fail(code, "%s", out);
}

status status_prefix(status code, const char *format, ...) {
  char text[TEXT_SIZE];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (length < 0)
    return code;
  size_t used = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
  size_t rest = strnlen(diagnostic, TEXT_SIZE - 1);
  if (rest > sizeof text - 1 - used)
    rest = sizeof text - 1 - used;
  memcpy(text + used, diagnostic, rest);
  text[used + rest] = 0;
  text_flatten(text);
  memcpy(diagnostic, text, sizeof text);
  return code;
}

status status_suffix(status code, const char *format, ...) {
  size_t used = strnlen(diagnostic, TEXT_SIZE - 1);
  va_list args;
  va_start(args, format);
  (void)vsnprintf(diagnostic + used, TEXT_SIZE - used, format, args);
  text_flatten(diagnostic + used);
  va_end(args);
  return code;
}

struct kept_status status_keep(status code) {
  return (struct kept_status){.code = code, .text = code == OK ? NULL : strdup(diagnostic)};
}

void status_drop(struct kept_status *kept) {
  free(kept->text);
  *kept = (struct kept_status){.code = OK};
}

status status_repeat(const struct kept_status *kept) {
  return kept->code == OK ? OK : fail(kept->code, "%s", kept->text ? kept->text : "");
}

status status_tell(struct kept_status *kept) {
  status code = status_repeat(kept);
  status_drop(kept);
  return code;
}

const char *status_text(void) { return diagnostic; }

const char *status_name(status code) {
  static const char *const names[] = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
  };
  return (unsigned)code < sizeof names / sizeof *names ? names[code] : "UNKNOWN";
}

int status_exit_code(status code) {
  switch (code) {
  case OK: return 0;
  case UNAVAILABLE:
  case DEADLINE_EXCEEDED:
  case UNAUTHENTICATED: return 69;
  case INTERNAL:
  case UNKNOWN: return 70;
  case PERMISSION_DENIED:
  case DATA_LOSS: return 74;
  case CANCELLED:
  case INVALID_ARGUMENT:
  case NOT_FOUND:
  case ALREADY_EXISTS:
  case RESOURCE_EXHAUSTED:
  case FAILED_PRECONDITION:
  case ABORTED:
  case OUT_OF_RANGE:
  case UNIMPLEMENTED: return 65;
  }
  return 70;
}
