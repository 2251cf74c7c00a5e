/* variable_key.c: "w/part_1/Adam", slice "10 4 5,5:0,4" is rows 5 to 9 of "w/Adam". */
#include "runtime/checkpoint/variable_key.h"

#include <stdio.h>
#include <string.h>

#include "runtime/memory/variable.h"

#define PART "/part_"

/* The name without its "/part_N". */
static bool whole_name(const char *name, char key[VARIABLE_KEY_MAX]) {
  for (const char *at = name; (at = strstr(at, PART)); at++) {
    const char *end = at + strlen(PART);
    size_t digits = strspn(end, "0123456789");
    if (digits > 0 && (end[digits] == 0 || end[digits] == '/'))
      return snprintf(key, VARIABLE_KEY_MAX, "%.*s%s", (int)(at - name), name, end + digits) < VARIABLE_KEY_MAX;
  }
  return false;
}

bool variable_key_slice(const struct variable *variable, char key[VARIABLE_KEY_MAX], struct shape *whole, struct checkpoint_slice *slice) {
  return *variable->slice && whole_name(variable->name, key) && checkpoint_slice_parse(variable->slice, whole, slice) == OK;
}
