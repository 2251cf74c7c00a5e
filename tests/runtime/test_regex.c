/* Regular expressions: what RE2 says of the same patterns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/regex.h"
#include "tests/support/test.h"

struct match_case {
  const char *pattern, *text;
  int begin, end; /* of the leftmost match; -1: none */
};

static const struct match_case matches[] = {
  {"a+", "xaab", 1, 3},
  {"a+?", "xaab", 1, 2},
  {"a|ab", "ab", 0, 1},
  {"(ab|a)(c|bcd)?", "abcd", 0, 3},
  {"", "abc", 0, 0},
  {"^b", "ab", -1, -1},
  {"(?m)^b", "a\nb", 2, 3},
  {"b$", "ab\n", -1, -1},
  {"\\bfoo\\b", "a foo.", 2, 5},
  {"\\d{2,3}", "a1234", 1, 4},
  {"[^a-c]+", "abcxyz", 3, 6},
  {"(?i)HeL", "xhello", 1, 4},
  {".", "\n", -1, -1},
  {"(?s).", "\n", 0, 1},
  {"é.", "aéß", 1, 5},
  {"[[:digit:]x]+", "ab12x", 2, 5},
  {"\\Qa.b\\E", "aab a.b", 4, 7},
  {"(a*)*b", "aaab", 0, 4},
  {"x{0}y", "xy", 1, 2},
  {"a{,2}", "a{,2}", 0, 5},
  {"\\x41\\x{42}", "AB", 0, 2},
  {"\\pL+", "1aéΩ2", 1, 6},
  {"[^\\p{Greek}]+$", "Ωab", 2, 4},
  {"\\P{^Lu}", "aB", 1, 2},
};

static void the_leftmost_match_prefers_earlier_alternatives(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof matches / sizeof *matches; i++) {
    const struct match_case *m = &matches[i];
    struct regex *regex;
    struct regex_span groups[REGEX_GROUPS];
    bool found;
    assert_int_equal(regex_create(m->pattern, strlen(m->pattern), &regex), OK);
    assert_int_equal(regex_match(regex, m->text, strlen(m->text), 0, false, &found, groups), OK);
    if (found != (m->begin >= 0) || (found && (groups[0].begin != m->begin || groups[0].end != m->end)))
      test_fail("%s on %s: %ld to %ld", m->pattern, m->text, found ? groups[0].begin : -1, found ? groups[0].end : -1);
    regex_destroy(regex);
  }
}

static void a_full_match_takes_the_whole_text(void **state) {
  (void)state;
  struct regex *regex;
  bool found;
  assert_int_equal(regex_create("a|ab", 4, &regex), OK);
  assert_int_equal(regex_match(regex, "ab", 2, 0, true, &found, NULL), OK);
  assert_true(found);
  assert_int_equal(regex_match(regex, "abc", 3, 0, true, &found, NULL), OK);
  assert_false(found);
  regex_destroy(regex);
}

static void groups_say_what_they_matched(void **state) {
  (void)state;
  struct regex *regex;
  struct regex_span groups[REGEX_GROUPS];
  bool found;
  const char *pattern = "(?P<key>\\w+)=(?:x|(y))?";
  assert_int_equal(regex_create(pattern, strlen(pattern), &regex), OK);
  assert_int_equal(regex_group_count(regex), 2);
  assert_int_equal(regex_match(regex, " k=x", 4, 0, false, &found, groups), OK);
  assert_true(found);
  assert_int_equal(groups[1].begin, 1);
  assert_int_equal(groups[1].end, 2);
  assert_int_equal(groups[2].begin, -1);
  regex_destroy(regex);
}

static void patterns_that_are_wrong_are_refused(void **state) {
  (void)state;
  static const char *const bad[] = {"(",           ")",       "a**",  "*",    "[a", "[b-a]", "\\8",
                                    "a{2,1}",      "a{1001}", "(?<n", "(?z)", "\\", "\xff",  "(((a{100}){100}){100})",
                                    "\\p{Nobody}", "\\p",     "\\p{L"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct regex *regex;
    if (regex_create(bad[i], strlen(bad[i]), &regex) != INVALID_ARGUMENT)
      test_fail("%s is taken", bad[i]);
  }
}

static void single_bytes_are_unimplemented(void **state) {
  (void)state;
  struct regex *regex;
  assert_int_equal(regex_create("\\C", 2, &regex), UNIMPLEMENTED);
}

/* Backtracking would take 2^30 steps. */
static void nested_repeats_take_linear_time(void **state) {
  (void)state;
  char text[31] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  struct regex *regex;
  bool found;
  assert_int_equal(regex_create("(a|aa)+$x", 9, &regex), OK);
  assert_int_equal(regex_match(regex, text, 30, 0, false, &found, NULL), OK);
  assert_false(found);
  regex_destroy(regex);
  assert_int_equal(regex_create("(?:(?:(?:){1000}){1000}){1000}", 30, &regex), OK);
  regex_destroy(regex);
}

/* Any bytes as pattern and text: an answer or a refusal. */
static void random_patterns_do_no_harm(void **state) {
  (void)state;
  static const char letters[] = "ab()[]{}*+?|^$.\\dwsb-,01:iP<>\xc3\xa9\n";
  srand(7);
  for (int i = 0; i < 20000; i++) {
    char pattern[24], text[24];
    size_t size = (size_t)rand() % sizeof pattern, text_size = (size_t)rand() % sizeof text;
    for (size_t k = 0; k < sizeof pattern; k++) {
      pattern[k] = letters[(size_t)rand() % (sizeof letters - 1)];
      text[k] = letters[(size_t)rand() % (sizeof letters - 1)];
    }
    struct regex *regex;
    struct regex_span groups[REGEX_GROUPS];
    bool found = false;
    if (regex_create(pattern, size, &regex) != OK)
      continue;
    assert_int_equal(regex_match(regex, text, text_size, 0, i & 1, &found, groups), OK);
    if (found)
      assert_true(groups[0].begin >= 0 && groups[0].begin <= groups[0].end && groups[0].end <= (long)text_size);
    regex_destroy(regex);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_leftmost_match_prefers_earlier_alternatives),
    cmocka_unit_test(a_full_match_takes_the_whole_text),
    cmocka_unit_test(groups_say_what_they_matched),
    cmocka_unit_test(patterns_that_are_wrong_are_refused),
    cmocka_unit_test(single_bytes_are_unimplemented),
    cmocka_unit_test(nested_repeats_take_linear_time),
    cmocka_unit_test(random_patterns_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
