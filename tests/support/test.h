/* test.h: cmocka with what it wants included before it, and without its fail(), a name of base/status.h. */
#ifndef TFC_TESTS_TEST_H
#define TFC_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef fail

#endif
