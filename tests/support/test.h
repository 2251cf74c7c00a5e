/* test.h: cmocka with what it wants included before it, and without its fail(), a name of base/status.h;
 * test_fail() takes its place. */
#ifndef TFC_TESTS_TEST_H
#define TFC_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef fail

/* Fails the test with a formatted text: which case of a table it was. */
#define test_fail(...)         \
  do {                         \
    print_error(__VA_ARGS__);  \
    print_error("\n");         \
    _fail(__FILE__, __LINE__); \
  } while (0)

#endif
