/* host_regex.c: RegexFullMatch and RegexReplace, their patterns from inputs or from attributes. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/regex.h"
#include "runtime/text/string_output.h"

/* ---- full match ---- */

static status match_all(struct host_call *call, const struct regex *regex) {
  TRY(host_make_output(call, 0, DTYPE_BOOL, &call->inputs[0].shape));
  for (int64_t i = 0; i < call->inputs[0].count; i++) {
    struct string_view view = ((const struct string_view *)call->inputs[0].data)[i];
    TRY(regex_match(regex, view.data, view.size, 0, true, (bool *)call->outputs[0]->data + i, NULL));
  }
  return OK;
}

static status full_match(struct host_call *call, struct string_view pattern) {
  struct regex *regex;
  TRY(regex_create(pattern.data, pattern.size, &regex));
  status result = match_all(call, regex);
  regex_destroy(regex);
  return result;
}

static status check_scalar(const struct host_call *call, uint32_t i, const char *name) {
  return call->inputs[i].count == 1 && call->inputs[i].shape.rank == 0
         ? OK
         : fail(INVALID_ARGUMENT, "%s must be scalar, but received %s", name, shape_text(&call->inputs[i].shape));
}

status host_regex_full_match(struct host_call *call) {
  TRY(check_scalar(call, 1, "Pattern"));
  return full_match(call, host_scalar_string(&call->inputs[1]));
}
status host_static_regex_full_match(struct host_call *call) { return full_match(call, host_attr_string(call, "pattern", "")); }

/* ---- replace ---- */

struct replace {
  const struct regex *regex;
  struct string_view rewrite;
  bool global;
  struct string_output out;
};

/* What RE2 makes of a wrong rewrite: one that asks for more groups than there are replaces nothing; one with a wrong escape
 * ends there, and replaces nothing when only the first match is replaced. */
static bool is_hopeless(const struct replace *r) {
  bool wrong = false;
  int groups = 0;
  for (uint64_t i = 0; i < r->rewrite.size; i++) {
    if (r->rewrite.data[i] != '\\')
      continue;
    char c = ++i < r->rewrite.size ? r->rewrite.data[i] : 0;
    if (c >= '0' && c <= '9')
      groups = c - '0' > groups ? c - '0' : groups;
    else
      wrong |= c != '\\';
  }
  return groups > regex_group_count(r->regex) || (wrong && !r->global);
}

static void put_rewrite(struct replace *r, const char *text, const struct regex_span *groups) {
  for (uint64_t i = 0; i < r->rewrite.size; i++) {
    char c = r->rewrite.data[i], next = i + 1 < r->rewrite.size ? r->rewrite.data[i + 1] : 0;
    if (c != '\\' || next == '\\') {
      string_output_add(&r->out, &c, 1);
      i += c == '\\';
      continue;
    }
    if (next < '0' || next > '9')
      return;
    struct regex_span span = groups[next - '0'];
    if (span.begin >= 0)
      string_output_add(&r->out, text + span.begin, (size_t)(span.end - span.begin));
    i++;
  }
}

/* An empty match right behind the last match does not count. */
static status replace_one(struct replace *r, struct string_view in) {
  size_t at = 0;
  long last_end = -1;
  while (at <= in.size) {
    struct regex_span groups[REGEX_GROUPS];
    bool found;
    TRY(regex_match(r->regex, in.data, in.size, at, false, &found, groups));
    if (!found)
      break;
    string_output_add(&r->out, in.data + at, (size_t)groups[0].begin - at);
    if (groups[0].begin == last_end && groups[0].end == last_end) {
      size_t used = 1;
      if ((size_t)last_end < in.size) {
        regex_decode(in.data + last_end, in.size - (size_t)last_end, &used);
        string_output_add(&r->out, in.data + last_end, used);
      }
      at = (size_t)last_end + used;
      continue;
    }
    put_rewrite(r, in.data, groups);
    at = (size_t)groups[0].end;
    last_end = groups[0].end;
    if (!r->global)
      break;
  }
  if (at < in.size)
    string_output_add(&r->out, in.data + at, in.size - at);
  string_output_next(&r->out);
  return OK;
}

static status replace_all(struct host_call *call, const struct regex *regex, struct string_view rewrite) {
  struct replace r = {.regex = regex, .rewrite = rewrite, .global = host_attr_int(call, "replace_global", 1) != 0};
  bool hopeless = is_hopeless(&r);
  TRY(string_output_begin(&r.out, &call->inputs[0].shape, &call->outputs[0]));
  for (int64_t i = 0; i < call->inputs[0].count; i++) {
    struct string_view in = ((const struct string_view *)call->inputs[0].data)[i];
    if (hopeless)
      string_output_put(&r.out, in.data, in.size);
    else
      TRY(replace_one(&r, in));
  }
  return string_output_end(&r.out);
}

static status replace(struct host_call *call, struct string_view pattern, struct string_view rewrite) {
  struct regex *regex;
  TRY(regex_create(pattern.data, pattern.size, &regex));
  status result = replace_all(call, regex, rewrite);
  regex_destroy(regex);
  return result;
}

status host_regex_replace(struct host_call *call) {
  TRY(check_scalar(call, 1, "Pattern"));
  TRY(check_scalar(call, 2, "Rewrite"));
  return replace(call, host_scalar_string(&call->inputs[1]), host_scalar_string(&call->inputs[2]));
}
status host_static_regex_replace(struct host_call *call) {
  return replace(call, host_attr_string(call, "pattern", ""), host_attr_string(call, "rewrite", ""));
}
