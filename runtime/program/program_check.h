/* program_check.h: whether a program's references lie within its tables. */
#ifndef TFC_RUNTIME_PROGRAM_PROGRAM_CHECK_H
#define TFC_RUNTIME_PROGRAM_PROGRAM_CHECK_H

#include "base/status.h"
#include "runtime/program/program.h"

/* DATA_LOSS naming what is wrong: the executable was damaged, or made by another version. Linear in the program's size. */
status program_check(const struct program *program);

#endif
