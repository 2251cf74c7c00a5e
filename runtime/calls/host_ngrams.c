/* host_ngrams.c: StringNGrams: of each row of a ragged tensor, all runs of so many neighbours, joined; rows may be padded. */
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/element_number.h"
#include "runtime/text/string_output.h"

struct ngrams {
  const struct host_call *call;
  struct string_view separator, left, right;
  int64_t pad; /* -1: as much as the width allows */
  const struct string_view *data;
};

static int64_t pad_of(const struct ngrams *g, int64_t width) {
  int64_t most = width - 1;
  return g->pad < 0 || g->pad > most ? most : g->pad;
}

static int64_t count_of(const struct ngrams *g, int64_t length, int64_t width) {
  int64_t count = length + 2 * pad_of(g, width) - width + 1;
  return count > 0 ? count : 0;
}

static void put_ngram(const struct ngrams *g, struct string_output *out, int64_t from, int64_t length, int64_t width, int64_t pad,
                      int64_t k) {
  for (int64_t i = 0; i < width; i++) {
    int64_t at = k + i - pad;
    struct string_view part = at < 0 ? g->left : at >= length ? g->right : g->data[from + at];
    if (i)
      string_output_add(out, g->separator.data, g->separator.size);
    string_output_add(out, part.data, part.size);
  }
  string_output_next(out);
}

/* The n-grams of a row, and one of the whole row where it is too short for any and that is wanted. */
static int64_t row_count(const struct ngrams *g, int64_t length, int64_t *whole) {
  const struct program_attr *widths = host_attr(g->call, "ngram_widths");
  int64_t total = 0;
  *whole = 0;
  for (uint32_t w = 0; w < widths->list.count; w++)
    total += count_of(g, length, program_attr(g->call->program, widths->list.first + w)->i);
  if (total == 0 && length > 0 && host_attr_int(g->call, "preserve_short_sequences", 0)) {
    *whole = length + 2 * (g->pad > 0 ? g->pad : 0);
    total = 1;
  }
  return total;
}

static status check_splits(const struct host_call *call) {
  const struct tensor *splits = &call->inputs[1];
  for (int64_t i = 0; i < splits->count; i++) {
    int64_t at = element_int(splits, i), before = i ? element_int(splits, i - 1) : 0;
    if (at < before || at > call->inputs[0].count || (i == 0 && at != 0))
      return fail(INVALID_ARGUMENT, "Invalid split value %lld, must be in [%lld, %lld]", (long long)at, (long long)before,
                  (long long)call->inputs[0].count);
  }
  return OK;
}

status host_string_ngrams(struct host_call *call) {
  const struct tensor *splits = &call->inputs[1];
  const struct program_attr *widths = host_attr(call, "ngram_widths");
  struct ngrams g = {call,
                     host_attr_string(call, "separator", " "),
                     host_attr_string(call, "left_pad", ""),
                     host_attr_string(call, "right_pad", ""),
                     host_attr_int(call, "pad_width", 0),
                     call->inputs[0].data};
  TRY(check_splits(call));
  for (uint32_t w = 0; w < widths->list.count; w++) {
    int64_t width = program_attr(call->program, widths->list.first + w)->i;
    if (width < 1 || width > (1 << 20))
      return fail(INVALID_ARGUMENT, "ngram_widths must contain positive values, got %lld", (long long)width);
  }
  int64_t rows = splits->count > 0 ? splits->count - 1 : 0, total = 0, whole = 0;
  TRY(host_make_output(call, 1, splits->dtype, &splits->shape));
  for (int64_t r = 0; r < splits->count; r++) {
    if (r)
      total += row_count(&g, element_int(splits, r) - element_int(splits, r - 1), &whole);
    if (r && whole && g.pad < 0) /* it is as wide as the n-grams say, and there are none */
      return fail(INVALID_ARGUMENT,
                  "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not provided, got %lld",
                  (long long)g.pad);
    element_put_int(call->outputs[1], r, total);
  }
  struct string_output out;
  TRY(string_output_begin(&out, &(struct shape){1, {total}}, &call->outputs[0]));
  for (int64_t r = 0; r < rows; r++) {
    int64_t from = element_int(splits, r), length = element_int(splits, r + 1) - from;
    row_count(&g, length, &whole);
    if (whole) {
      put_ngram(&g, &out, from, length, whole, (whole - length) / 2, 0);
      continue;
    }
    for (uint32_t w = 0; w < widths->list.count; w++) {
      int64_t width = program_attr(call->program, widths->list.first + w)->i;
      for (int64_t k = 0; k < count_of(&g, length, width); k++)
        put_ngram(&g, &out, from, length, width, pad_of(&g, width), k);
    }
  }
  return string_output_end(&out);
}
