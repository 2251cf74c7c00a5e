/* element_text.h: one element of a tensor as text: for printed fetches and messages. */
#ifndef TFC_RUNTIME_TEXT_ELEMENT_TEXT_H
#define TFC_RUNTIME_TEXT_ELEMENT_TEXT_H

#include <stddef.h>
#include <stdio.h>
#include "base/tensor.h"

/* Element i of `data`, shortest text that reads back as the same number. Strings: cut to fit. */
void element_text(enum dtype dtype, const void *data, int64_t i, char *text, size_t size);
/* The whole tensor, nested brackets, at most `most` elements of each dimension's ends. */
void tensor_print(FILE *out, const struct tensor *tensor, int64_t most);

#endif
