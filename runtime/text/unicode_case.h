/* unicode_case.h: capitals and small letters, as the Unicode Character Database has them for no language in particular. Any thread. */
#ifndef TFC_RUNTIME_TEXT_UNICODE_CASE_H
#define TFC_RUNTIME_TEXT_UNICODE_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNICODE_CASE_BYTES 8 /* that one code point becomes, at most */

/* What a code point becomes, in UTF-8: the number of bytes in `out`. */
size_t unicode_upper(int32_t code, char *out);
size_t unicode_lower(int32_t code, char *out);
/* The same of the whole text's code point at `at`, which is a capital sigma: another small letter at a word's end. */
size_t unicode_lower_sigma(const char *text, size_t size, size_t at, char *out);
#define CAPITAL_SIGMA 0x3a3

#endif
