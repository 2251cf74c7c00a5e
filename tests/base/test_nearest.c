/* test_nearest.c: what is offered in place of a name that is not there. */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct {
  const char *a, *b;
  uint32_t distance;
} distances[] = {
  {"loss", "loss", 0}, {"loss", "Loss", 1}, {"loss", "los", 2}, {"los", "loss", 2},       {"loss", "lsos", 2},
  {"loss", "lost", 2}, {"", "abc", 6},      {"abc", "", 6},     {"kitten", "sitting", 6}, {"ab", "ba", 2},
};

static void a_letter_more_less_other_or_exchanged_is_one_change(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
    if (nearest_distance(distances[i].a, distances[i].b) != distances[i].distance)
      fail_msg("%s %s: %u", distances[i].a, distances[i].b, nearest_distance(distances[i].a, distances[i].b));
}

static const struct {
  const char *wanted, *names, *text;
} texts[] = {
  {"los", "accuracy loss", ", it has: loss, accuracy; did you mean 'loss'?"},
  {"los", "loss", ", it has: loss; did you mean 'loss'?"},
  {"loss", "x y train/loss", ", it has: train/loss, x, y; did you mean 'train/loss'?"},
  {"model/loss", "x loss", ", it has: loss, x; did you mean 'loss'?"},
  {"nothing", "x y", ", it has: x, y"},
  {"x", "", ", it has: none"},
  {"n9", "n1 n2 n3 n4 n5 n6 n7 n8 n90 n10", ", it has: n1, n2, n3, n4, n5, n6, n7, n8 and 2 more"},
  {"X", "a x", ", it has: x, a; did you mean 'x'?"},
};

static void names_are_offered_nearest_first(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char names[128], text[256], *rest = names;
    struct nearest nearest;
    snprintf(names, sizeof names, "%s", texts[i].names);
    nearest_begin(&nearest, texts[i].wanted);
    for (char *name; (name = strsep(&rest, " "));)
      nearest_add(&nearest, *name ? name : NULL);
    assert_string_equal(nearest_text(&nearest, ", it has: ", text, sizeof text), texts[i].text);
  }
}

static void a_vocabulary_is_shown_whole(void **state) {
  (void)state;
  static const char *const words[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  char text[256];
  struct nearest nearest;
  nearest_begin_words(&nearest, "z", words, sizeof words / sizeof *words);
  assert_string_equal(nearest_text(&nearest, "there are: ", text, sizeof text), "there are: a, b, c, d, e, f, g, h, i, j");
  assert_null(nearest_meant(&nearest));
  nearest_begin_words(&nearest, "C", words, sizeof words / sizeof *words);
  assert_string_equal(nearest_meant(&nearest), "c");
}

static void names_longer_than_the_table_and_texts_longer_than_their_room_are_cut(void **state) {
  (void)state;
  char name[4096], text[16];
  struct nearest nearest;
  memset(name, 'a', sizeof name);
  name[sizeof name - 1] = 0;
  nearest_begin(&nearest, name);
  nearest_add(&nearest, name);
  nearest_add(&nearest, "b");
  assert_string_equal(nearest_text(&nearest, ", it has: ", text, sizeof text), ", it has: aaaaa");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_letter_more_less_other_or_exchanged_is_one_change),
    cmocka_unit_test(names_are_offered_nearest_first),
    cmocka_unit_test(a_vocabulary_is_shown_whole),
    cmocka_unit_test(names_longer_than_the_table_and_texts_longer_than_their_room_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
