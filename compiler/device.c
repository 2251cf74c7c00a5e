/* device.c: the grammar of device names: repeated /job:J /replica:N /task:N /device:TYPE[:N], and the old /cpu:N, /gpu:N. */
#include "compiler/device.h"

#include <stdio.h>
#include <string.h>

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool take(const char **p, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*p, word, length))
    return false;
  *p += length;
  return true;
}

/* A letter, then letters, digits and '_'; or `*`. */
static bool take_name(struct arena *arena, const char **p, const char **out) {
  if (take(p, "*")) {
    *out = NULL;
    return true;
  }
  const char *start = *p;
  if (!is_letter(**p))
    return false;
  while (is_letter(**p) || is_digit(**p) || **p == '_')
    ++*p;
  *out = arena_strndup(arena, start, (size_t)(*p - start));
  return true;
}

/* Digits, or `*`. */
static bool take_number(const char **p, int64_t *out) {
  if (take(p, "*")) {
    *out = DEVICE_OPEN;
    return true;
  }
  int64_t value = 0;
  if (!is_digit(**p))
    return false;
  for (; is_digit(**p); ++*p) {
    value = value * 10 + (**p - '0');
    if (value > INT32_MAX)
      return false;
  }
  *out = value;
  return true;
}

static bool take_device(struct arena *arena, const char **p, struct device_spec *out) {
  if (!take_name(arena, p, &out->type))
    return false;
  out->id = DEVICE_OPEN;
  return !take(p, ":") || take_number(p, &out->id);
}

static bool take_legacy(const char **p, const char *type, struct device_spec *out) {
  out->type = type;
  return take_number(p, &out->id);
}

static bool take_part(struct arena *arena, const char **p, struct device_spec *out) {
  if (take(p, "/job:"))
    return take_name(arena, p, &out->job);
  if (take(p, "/replica:"))
    return take_number(p, &out->replica);
  if (take(p, "/task:"))
    return take_number(p, &out->task);
  if (take(p, "/device:"))
    return take_device(arena, p, out);
  if (take(p, "/cpu:") || take(p, "/CPU:"))
    return take_legacy(p, "CPU", out);
  if (take(p, "/gpu:") || take(p, "/GPU:"))
    return take_legacy(p, "GPU", out);
  return false;
}

bool device_parse(struct arena *arena, const char *text, struct device_spec *out) {
  *out = DEVICE_SPEC_OPEN;
  if (!strcmp(text, "/"))
    return true;
  while (*text)
    if (!take_part(arena, &text, out)) {
      *out = DEVICE_SPEC_OPEN;
      return false;
    }
  return true;
}

const char *device_text(struct arena *arena, const struct device_spec *spec) {
  char replica[32] = "", task[32] = "", id[32] = "*";
  if (spec->replica != DEVICE_OPEN)
    snprintf(replica, sizeof replica, "/replica:%lld", (long long)spec->replica);
  if (spec->task != DEVICE_OPEN)
    snprintf(task, sizeof task, "/task:%lld", (long long)spec->task);
  if (spec->id != DEVICE_OPEN)
    snprintf(id, sizeof id, "%lld", (long long)spec->id);
  bool device = spec->type || spec->id != DEVICE_OPEN;
  return arena_printf(arena, "%s%s%s%s%s%s%s%s", spec->job ? "/job:" : "", spec->job ? spec->job : "", replica, task,
                      device ? "/device:" : "", device ? spec->type ? spec->type : "*" : "", device ? ":" : "", device ? id : "");
}

static bool names_agree(const char *a, const char *b) { return !a || !b || !strcmp(a, b); }

static bool numbers_agree(int64_t a, int64_t b) { return a == DEVICE_OPEN || b == DEVICE_OPEN || a == b; }

static bool names_equal(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

bool device_equal(const struct device_spec *a, const struct device_spec *b) {
  return names_equal(a->job, b->job) && names_equal(a->type, b->type) && a->replica == b->replica && a->task == b->task && a->id == b->id;
}

bool device_compatible(const struct device_spec *a, const struct device_spec *b) {
  return names_agree(a->job, b->job) && names_agree(a->type, b->type) && numbers_agree(a->replica, b->replica) &&
         numbers_agree(a->task, b->task) && numbers_agree(a->id, b->id);
}

bool device_matches(const struct device_spec *pattern, const struct device_spec *device) { return device_compatible(pattern, device); }

void device_override(struct device_spec *into, const struct device_spec *from) {
  if (from->job)
    into->job = from->job;
  if (from->type)
    into->type = from->type;
  if (from->replica != DEVICE_OPEN)
    into->replica = from->replica;
  if (from->task != DEVICE_OPEN)
    into->task = from->task;
  if (from->id != DEVICE_OPEN)
    into->id = from->id;
}

static status merge_fail(struct arena *arena, const char *what, const struct device_spec *a, const struct device_spec *b) {
  return fail(INVALID_ARGUMENT, "Cannot merge devices with incompatible %s: '%s' and '%s'", what, device_text(arena, a),
              device_text(arena, b));
}

status device_merge(struct arena *arena, const struct device_spec *from, bool soft, struct device_spec *into) {
  if (!names_agree(into->job, from->job))
    return merge_fail(arena, "jobs", into, from);
  if (!numbers_agree(into->replica, from->replica))
    return merge_fail(arena, "replicas", into, from);
  if (!numbers_agree(into->task, from->task))
    return merge_fail(arena, "tasks", into, from);
  bool types = names_agree(into->type, from->type), ids = numbers_agree(into->id, from->id);
  if (!types && !soft)
    return merge_fail(arena, "types", into, from);
  if (types && !ids && !soft)
    return merge_fail(arena, "ids", into, from);
  device_override(into, from);
  if (!types)
    into->type = NULL;
  if (!types || !ids)
    into->id = DEVICE_OPEN;
  return OK;
}
