/* number_parse.h: a number from text, as TensorFlow reads it: StringToNumber, DecodeCSV, tables from files. */
#ifndef TFC_RUNTIME_TEXT_NUMBER_PARSE_H
#define TFC_RUNTIME_TEXT_NUMBER_PARSE_H

#include <stdbool.h>
#include "base/dtype.h"

/* Sets element i of data; white space around is dropped. False when the text is no number that fits. */
bool number_parse(struct string_view view, enum dtype dtype, void *data, int64_t i);

#endif
