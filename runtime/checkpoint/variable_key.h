/* variable_key.h: under which key a checkpoint has a variable: its name, or, for part i of a partitioned variable, the
 * name of the whole and the slice that it is. */
#ifndef TFC_RUNTIME_CHECKPOINT_VARIABLE_KEY_H
#define TFC_RUNTIME_CHECKPOINT_VARIABLE_KEY_H

#include "base/checkpoint.h"

struct variable;

#define VARIABLE_KEY_MAX 1024

/* False: the variable is no part; its key is its name. */
bool variable_key_slice(const struct variable *variable, char key[VARIABLE_KEY_MAX], struct shape *whole, struct checkpoint_slice *slice);

#endif
